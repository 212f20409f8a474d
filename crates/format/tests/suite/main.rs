//! Metadata that are read and written: random, damaged, hostile, those of the corpus; one binary, which is linked once.

mod assumptions;
mod corpus_json;
mod hostile;
mod streams;
mod unused;
mod write_corpus;
mod write_random;
