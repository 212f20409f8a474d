//! Any bytes are metadata or are refused with a reason; accepted metadata can be written and read
//! again.

use std::sync::Arc;

use kymo_decode::{Compile, Decoder};
use kymo_format::write::{to_json, to_tsdl};

/// The promise for the bytes of a metadata stream.
///
/// # Panics
///
/// If it is broken.
pub fn hold(data: &[u8]) {
    let metadata = kymo_format::parse(data);
    for found in &metadata.diagnostics {
        assert!(found.span.end <= metadata.text.len(), "{found:?} lies outside of the text");
        assert!(!found.render_plain(&metadata.text, "metadata").is_empty(), "{found:?} says nothing");
    }
    let Some(trace) = metadata.trace_class else {
        assert!(!metadata.diagnostics.is_empty(), "refused without a reason");
        return;
    };
    // Some are not expressible in a language, some cannot be decoded: then they are refused.
    for text in [to_tsdl(&trace).ok(), to_json(&trace).ok()].into_iter().flatten() {
        let again = kymo_format::parse(text.as_bytes());
        assert!(again.trace_class.is_some(), "what was written is refused: {:?}\n{text}", again.diagnostics);
    }
    drop(Decoder::new(Arc::new(trace), Compile::Never));
}
