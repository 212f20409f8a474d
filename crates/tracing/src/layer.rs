//! The layer and filter that `tracing` calls: they decide which callsites are enabled, and record
//! their events.

use kymo_tracer::Event;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layer, Layered};
use tracing_subscriber::registry::LookupSpan;

use crate::site::{Site, SiteKind, SpanEvents};
use crate::values::{EventValues, is_at_event};

/// A layer that passes events and spans to Kymograph's tracer. It sees only events and spans that
/// are being recorded; other layers see the same as without it.
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(kymo_tracing::layer());
/// tracing::subscriber::with_default(subscriber, || tracing::info!(answer = 42));
/// ```
#[must_use]
pub fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> Filtered<Recording, Wanted, S> {
    Recording.with_filter(Wanted)
}

/// Like [`layer`], for a program without other layers. `tracing` creates nothing for events and
/// spans that are not recorded, neither spans nor their IDs. Other layers would not see them
/// either.
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(kymo_tracing::only());
/// tracing::subscriber::with_default(subscriber, || assert!(!tracing::enabled!(tracing::Level::ERROR)));
/// ```
#[must_use]
pub fn only<S: Subscriber + for<'s> LookupSpan<'s>>() -> Layered<Wanted, Recording, S> {
    Recording.and_then(Wanted)
}

/// The layer that records events and spans.
#[derive(Clone, Copy, Debug)]
pub struct Recording;

/// The filter that enables callsites that are being recorded.
#[derive(Clone, Copy, Debug)]
pub struct Wanted;

impl Wanted {
    /// Also enables every callsite while values of another event are formatted. Otherwise
    /// `tracing-subscriber` would reject that other event in place of this one, because it keeps
    /// the last answer of a filter per thread. [`Recording`] checks again.
    #[inline]
    fn lets_through(metadata: &Metadata<'_>) -> bool {
        Site::known(metadata).is_none_or(Site::is_wanted) || is_at_event()
    }

    fn interest(metadata: &'static Metadata<'static>) -> Interest {
        match Site::of(metadata).kind() {
            SiteKind::Nothing => Interest::never(),
            _ => Interest::sometimes(),
        }
    }
}

impl<S> Filter<S> for Wanted {
    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        Self::lets_through(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        Self::interest(metadata)
    }
}

impl<S: Subscriber> Layer<S> for Wanted {
    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        Self::lets_through(metadata)
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        Self::interest(metadata)
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Recording {
    fn on_event(&self, event: &tracing_core::Event<'_>, _: Context<'_, S>) {
        let site = Site::of(event.metadata());
        site.happens(|kinds| event.record(kinds));
        if let SiteKind::Event(events) = site.kind()
            && events.is_on()
        {
            EventValues::with(&[], |values| event.record(values), |values| events.record(values));
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let site = Site::of(attributes.metadata());
        site.happens(|kinds| attributes.record(kinds));
        if let SiteKind::Span(span) = site.kind()
            && span.new.is_on()
        {
            let parent = context.span(id).and_then(|span| Some(span.parent()?.id().into_u64()));
            let numbers = [id.into_u64(), parent.unwrap_or(0)];
            EventValues::with(&numbers, |values| attributes.record(values), |values| span.new.record(values));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = span(id, &context).filter(|span| span.record.happen(|kinds| record.record(kinds))) {
            EventValues::with(&[id.into_u64()], |values| record.record(values), |values| span.record.record(values));
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some(span) = span(id, &context).filter(|span| span.follows.happen(|_| ())) {
            EventValues::with(&[id.into_u64(), follows.into_u64()], |_| (), |values| span.follows.record(values));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = span(id, &context) {
            record(span.begin, id);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = span(id, &context) {
            record(span.end, id);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = span(&id, &context) {
            record(span.close, &id);
        }
    }
}

/// The events of the span's callsite.
fn span<S: Subscriber + for<'s> LookupSpan<'s>>(id: &Id, context: &Context<'_, S>) -> Option<&'static SpanEvents> {
    match Site::of(context.metadata(id)?).kind() {
        SiteKind::Span(span) => Some(span),
        _ => None,
    }
}

/// Records an event whose only field is the span's ID.
fn record(event: &'static Event, id: &Id) {
    let number = id.into_u64();
    if event.is_kept(&number)
        && let Some(mut write) = event.enter(size_of_val(&number) as u64)
    {
        write.put(&number.to_le_bytes());
        write.leave();
    }
}
