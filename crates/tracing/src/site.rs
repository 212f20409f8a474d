//! Callsites, and the events that each of them is.
//!
//! ```text
//! address of the metadata ──> SITES ──> site ──> site ──> ...         never changed, never taken away: nobody locks anything
//!                                        └─ events: base ──> variant ──> variant
//! ```

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use kymo_tracer::Event;
use tracing_core::Metadata;

use crate::definition::definition;
use crate::values::{FIELDS_MAX, Kind, Kinds, Shape, Values};

/// Lists of sites, by the address of their metadata.
static SITES: [OnceLock<&'static Site>; 1 << SITES_BITS] = [const { OnceLock::new() }; 1 << SITES_BITS];
const SITES_BITS: u32 = 12;

/// What is known of a callsite.
#[derive(Debug)]
pub(crate) struct Site {
    metadata: &'static Metadata<'static>,
    kind: SiteKind,
    /// It has happened, so that types of fields are known; or it never happens.
    has_happened: AtomicBool,
    next: OnceLock<&'static Self>,
}

/// What a callsite makes.
#[derive(Debug)]
pub(crate) enum SiteKind {
    /// Events, or the question whether anybody wants them.
    Event(Events),
    Span(Box<Span>),
    /// Nothing that could be recorded: there is no tracer, or it has no room for more definitions.
    Nothing,
}

/// What happens to spans.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) new: Events,
    pub(crate) begin: &'static Event,
    pub(crate) end: &'static Event,
    pub(crate) close: &'static Event,
    pub(crate) record: Events,
    pub(crate) follows: Events,
}

/// What stands before the fields of a span's events.
const NEW: &[&str] = &["span", "parent"];
const SPAN: &[&str] = &["span"];
const FOLLOWS: &[&str] = &["span", "follows"];

impl Site {
    /// That of a callsite. The first to ask defines it.
    #[inline]
    pub(crate) fn of(metadata: &'static Metadata<'static>) -> &'static Self {
        let mut place = place(metadata);
        loop {
            let site = place.get_or_init(|| Box::leak(Box::new(Self::new(metadata))));
            if ptr::eq(site.metadata, metadata) {
                return site;
            }
            place = &site.next;
        }
    }

    /// The same, if somebody has asked before.
    #[inline]
    pub(crate) fn known(metadata: &Metadata<'_>) -> Option<&'static Self> {
        let mut place = place(metadata);
        loop {
            let site = place.get()?;
            if ptr::addr_eq(site.metadata, metadata) {
                return Some(site);
            }
            place = &site.next;
        }
    }

    #[cold]
    fn new(metadata: &'static Metadata<'static>) -> Self {
        // `enabled!` asks; what it asks for are callsites of their own.
        let asks = metadata.name().starts_with("enabled ");
        let kind = if metadata.is_span() && !asks {
            Span::new(metadata).map(|span| SiteKind::Span(Box::new(span)))
        } else {
            Events::new(metadata, "", &[]).map(SiteKind::Event)
        };
        let has_happened = AtomicBool::new(asks || kind.is_none());
        Self { metadata, kind: kind.unwrap_or(SiteKind::Nothing), has_happened, next: OnceLock::new() }
    }

    pub(crate) fn kind(&self) -> &SiteKind {
        &self.kind
    }

    /// Whether it has to be told what happens: somebody wants it, or its types are not known yet. Whoever filters by a number could not choose
    /// it before there is one.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_on() || !self.has_happened.load(Ordering::Relaxed)
    }

    /// It happens; the first time, its types are made known, whether somebody wants it or not.
    #[inline]
    pub(crate) fn happens(&self, visit: impl FnOnce(&mut Kinds)) {
        if !self.has_happened.load(Ordering::Relaxed) {
            self.learn(visit);
        }
    }

    #[cold]
    fn learn(&self, visit: impl FnOnce(&mut Kinds)) {
        self.has_happened.store(true, Ordering::Relaxed);
        let mut kinds = Kinds::default();
        visit(&mut kinds);
        match &self.kind {
            SiteKind::Event(events) => _ = events.variant(kinds.shape()),
            SiteKind::Span(span) => _ = span.new.variant(kinds.shape()),
            SiteKind::Nothing => {}
        }
    }

    /// Whether somebody wants anything of it.
    #[inline]
    fn is_on(&self) -> bool {
        match &self.kind {
            SiteKind::Event(events) => events.is_on(),
            SiteKind::Span(span) => span.is_on(),
            SiteKind::Nothing => false,
        }
    }
}

/// Where the list begins that has a callsite.
#[inline]
fn place(metadata: &Metadata<'_>) -> &'static OnceLock<&'static Site> {
    let address = ptr::from_ref(metadata).addr() as u64;
    // Fibonacci hashing: metadata lie one behind the other.
    &SITES[(address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SITES_BITS)) as usize]
}

impl Span {
    fn new(metadata: &'static Metadata<'static>) -> Option<Self> {
        let fixed = |suffix, role| {
            let event = leak(definition(metadata, suffix, role, SPAN, std::iter::empty()));
            event.register().then_some(event)
        };
        let new = Events::new(metadata, "_new", NEW)?;
        let (begin, end) = (fixed("_begin", Some("begin"))?, fixed("_end", Some("end"))?);
        let close = fixed("_close", None)?;
        let (record, follows) = (new.like("_record", SPAN), new.like("_follows", FOLLOWS));
        Some(Self { new, begin, end, close, record, follows })
    }

    fn is_on(&self) -> bool {
        let events = [&self.new, &self.record, &self.follows];
        events.iter().any(|events| events.is_on())
            || [self.begin, self.end, self.close].iter().any(|event| event.is_on())
    }
}

/// Definitions of one event, which differ in which fields there are and what types they have.
#[derive(Debug)]
pub(crate) struct Events {
    metadata: &'static Metadata<'static>,
    suffix: &'static str,
    before: &'static [&'static str],
    /// Its first one says whether others are on when they are defined.
    base: &'static Event,
    variants: OnceLock<&'static Variant>,
}

#[derive(Debug)]
struct Variant {
    shape: Box<[Shape]>,
    event: &'static Event,
    next: OnceLock<&'static Self>,
}

impl Events {
    /// Those of a callsite: its fields are text, as long as nothing else is known.
    fn new(
        metadata: &'static Metadata<'static>,
        suffix: &'static str,
        before: &'static [&'static str],
    ) -> Option<Self> {
        let shape: Box<[Shape]> =
            metadata.fields().iter().take(FIELDS_MAX).map(|field| Shape::new(field.index(), Kind::Text)).collect();
        let base = leak(text(metadata, suffix, before, &shape));
        let variant: &Variant = Box::leak(Box::new(Variant { shape, event: base, next: OnceLock::new() }));
        base.register().then(|| Self { metadata, suffix, before, base, variants: OnceLock::from(variant) })
    }

    /// Other events of the same callsite, which are defined when they happen.
    fn like(&self, suffix: &'static str, before: &'static [&'static str]) -> Self {
        Self { suffix, before, variants: OnceLock::new(), ..*self }
    }

    /// Whether somebody wants one of them. Who filters by a number may not want that whose fields are text.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        if self.base.is_on() {
            return true;
        }
        let mut place = &self.variants;
        while let Some(variant) = place.get() {
            if variant.event.is_on() {
                return true;
            }
            place = &variant.next;
        }
        false
    }

    /// The same; the first time, types are made known, whether somebody wants it or not.
    pub(crate) fn happen(&self, visit: impl FnOnce(&mut Kinds)) -> bool {
        if self.variants.get().is_none() {
            let mut kinds = Kinds::default();
            visit(&mut kinds);
            self.variant(kinds.shape());
        }
        self.is_on()
    }

    /// Records what has these values.
    #[inline]
    pub(crate) fn record(&self, values: &mut Values) {
        values.record(self.variant(values.shape()));
    }

    fn variant(&self, shape: &[Shape]) -> &'static Event {
        let mut place = &self.variants;
        loop {
            let variant = place.get_or_init(|| self.define(shape));
            if *variant.shape == *shape {
                return variant.event;
            }
            place = &variant.next;
        }
    }

    /// Of what cannot be defined there is an event too, which is off for ever.
    #[cold]
    fn define(&self, shape: &[Shape]) -> &'static Variant {
        let event = leak(text(self.metadata, self.suffix, self.before, shape));
        event.register_like(self.base);
        Box::leak(Box::new(Variant { shape: shape.into(), event, next: OnceLock::new() }))
    }
}

fn text(metadata: &Metadata<'_>, suffix: &str, before: &[&str], shape: &[Shape]) -> String {
    definition(metadata, suffix, None, before, shape.iter().map(|shape| shape.field()))
}

/// An event for ever.
fn leak(definition: String) -> &'static Event {
    Box::leak(Box::new(Event::new(definition.leak().as_bytes())))
}
