//! What of SQL is asked of predicates and of tables; one binary, which is linked once.

mod expressions;
mod tables;
