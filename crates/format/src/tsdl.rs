//! tsdl
