//! Answers that have their memory until they were taken, however slowly.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;

use crate::pool::HeldMemory;

/// Bytes that are handed to a connection at a time: as many may still lie there when the memory is given back.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes as an answer of some kind.
pub(crate) fn answer(kind: &'static str, bytes: Vec<u8>, mut held: HeldMemory) -> Response {
    held.keep(bytes.len());
    let length = HeaderValue::from(bytes.len());
    let pieces = stream::unfold((Bytes::from(bytes), held), |(mut left, held)| async move {
        let piece = left.split_to(left.len().min(PIECE_BYTES));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (left, held)))
    });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CONTENT_LENGTH, length)];
    (headers, Body::from_stream(pieces)).into_response()
}
