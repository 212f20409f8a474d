//! What is written is read again: random traces, those of the corpus, and headers; one binary, which is linked once.

mod corpus;
mod header;
mod random;
