//! Sessions as their users see them; one binary, which is linked once.

#[cfg(feature = "export")]
#[path = "../../../tracer/tests/suite/alone.rs"]
mod alone;
#[cfg(feature = "export")]
mod cancelling;
#[cfg(feature = "export")]
mod export;
mod lttng_filter;
mod messages;
mod packets;
mod shrinking;
