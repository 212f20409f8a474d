//! Memory that is shared: models of it, real threads, and programs that lie; one binary, which is linked once.

mod hostile;
mod model;
mod threads;
