//! The promises, held on inputs that are made here and on those of `tests/`; one binary, which is linked once.

mod cases;
mod cursor;
mod ir;
mod smoke;
mod written;
