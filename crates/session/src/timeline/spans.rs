//! How true buckets are, of the spans of time that chunks and nodes cover.

use super::tiles::{Quality, TileSpan};

/// How true spans of time are, in their order.
#[derive(Default)]
pub(super) struct SpanQualities(Vec<((i64, i64), Quality)>);

impl SpanQualities {
    pub(super) fn add(&mut self, span: (i64, i64), quality: Quality) {
        self.0.push((span, quality));
    }

    /// The same of all buckets of a window: one across two spans is as true as the worse of them.
    pub(super) fn buckets(&self, bucket: impl Fn(i64) -> u64, (first, count): (u64, u32)) -> Vec<TileSpan> {
        let place = |bucket: u64| bucket.saturating_sub(first).min(count.into()) as u32;
        let mut spans: Vec<TileSpan> = Vec::new();
        let push = |spans: &mut Vec<TileSpan>, begin: u32, end: u32, quality: Quality| match spans.last_mut() {
            _ if begin >= end => {}
            Some(last) if last.quality == quality && last.end == begin => last.end = end,
            _ => spans.push(TileSpan { begin, end, quality }),
        };
        let mut at = 0;
        for &(span, quality) in &self.0 {
            let (begin, end) = (place(bucket(span.0)), place(bucket(span.1 - 1) + 1));
            // A bucket across a border is as true as the worse side.
            let is_worse = begin < at && spans.last().is_some_and(|last| last.quality < quality);
            if is_worse && let Some(last) = spans.last_mut() {
                last.end = begin.max(last.begin);
                at = last.end;
            }
            spans.retain(|span| span.begin < span.end);
            push(&mut spans, at, begin, Quality::Unknown);
            push(&mut spans, begin.max(at), end, quality);
            at = end.max(at);
        }
        push(&mut spans, at, count, Quality::Unknown);
        spans
    }
}

/// Events behind a time in this bucket are not all known yet.
pub(super) fn building_from(spans: &mut Vec<TileSpan>, bucket: u32) {
    let lowered = spans.iter().flat_map(|span| match span.quality {
        Quality::Exact => {
            let at = bucket.clamp(span.begin, span.end);
            let behind = TileSpan { begin: at, quality: Quality::Building, ..*span };
            vec![TileSpan { end: at, ..*span }, behind]
        }
        _ => vec![*span],
    });
    *spans = lowered.filter(|span| span.begin < span.end).collect();
}

/// More events may come in the bucket of the watermark: its content is incomplete.
pub(super) fn not_whole(spans: &mut Vec<TileSpan>, bucket: Option<u64>) {
    let Some(bucket) = bucket.and_then(|bucket| u32::try_from(bucket).ok()) else { return };
    let is_there = |span: &TileSpan| (span.begin..span.end).contains(&bucket) && span.quality == Quality::Exact;
    let Some(number) = spans.iter().position(is_there) else { return };
    let TileSpan { begin, end, quality } = spans[number];
    let parts = [
        TileSpan { begin, end: bucket, quality },
        TileSpan { begin: bucket, end: bucket + 1, quality: Quality::Building },
        TileSpan { begin: bucket + 1, end, quality },
    ];
    spans.splice(number..=number, parts.into_iter().filter(|span| span.begin < span.end));
}
