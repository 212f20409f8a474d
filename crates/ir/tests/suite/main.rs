//! Read programs and predicates: what is verified, trimmed, kept and written; one binary, which is linked once.

mod keep;
mod machine;
mod machine_oracles;
mod printf;
mod random;
mod random_predicates;
mod trim;
mod verify;
