//! What events mean, what is read of them, and what the document says of both; one binary, which is linked once.

mod documentation;
mod mappings;
mod projection;
