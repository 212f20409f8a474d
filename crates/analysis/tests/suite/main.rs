//! Meanings of events, fields that are read, and the document about both; one binary, which is
//! linked once.

mod documentation;
mod mappings;
mod projection;
