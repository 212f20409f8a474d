//! Callsites and their events.
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
use crate::values::{EventValues, FIELDS_MAX, FieldShape, KindCollector, ValueKind};

/// Hash table of linked lists of sites, by the address of their metadata.
static SITES: [OnceLock<&'static Site>; 1 << SITES_BITS] = [const { OnceLock::new() }; 1 << SITES_BITS];
const SITES_BITS: u32 = 12;

/// State of a callsite.
#[derive(Debug)]
pub(crate) struct Site {
    metadata: &'static Metadata<'static>,
    kind: SiteKind,
    /// The callsite was reached, so the types of its fields are known; or it is never reached.
    has_happened: AtomicBool,
    next: OnceLock<&'static Self>,
}

/// Kind of a callsite.
#[derive(Debug)]
pub(crate) enum SiteKind {
    /// Events, or the `enabled!` check for events.
    Event(EventDefinitions),
    Span(Box<SpanEvents>),
    /// Not recordable: there is no tracer, or it has no room for more definitions.
    Nothing,
}

/// The events of a span.
#[derive(Debug)]
pub(crate) struct SpanEvents {
    pub(crate) new: EventDefinitions,
    pub(crate) begin: &'static Event,
    pub(crate) end: &'static Event,
    pub(crate) close: &'static Event,
    pub(crate) record: EventDefinitions,
    pub(crate) follows: EventDefinitions,
}

/// Fields that precede those of a span's events.
const NEW: &[&str] = &["span", "parent"];
const SPAN: &[&str] = &["span"];
const FOLLOWS: &[&str] = &["span", "follows"];

impl Site {
    /// The site of a callsite. The first call defines it.
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

    /// The site of a callsite, if it is already defined.
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
        // `enabled!` has callsites of its own.
        let asks = metadata.name().starts_with("enabled ");
        let kind = if metadata.is_span() && !asks {
            SpanEvents::new(metadata).map(|span| SiteKind::Span(Box::new(span)))
        } else {
            EventDefinitions::new(metadata, "", &[]).map(SiteKind::Event)
        };
        let has_happened = AtomicBool::new(asks || kind.is_none());
        Self { metadata, kind: kind.unwrap_or(SiteKind::Nothing), has_happened, next: OnceLock::new() }
    }

    pub(crate) fn kind(&self) -> &SiteKind {
        &self.kind
    }

    /// Whether the callsite must report its events: one of them is on, or the types are not known
    /// yet. Events are reported until the types are known, because a recorder cannot choose a
    /// filter on a number before a definition has one.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_on() || !self.has_happened.load(Ordering::Relaxed)
    }

    /// Notes that the callsite was reached. The first time, this defines its types, whether the
    /// event is on or off.
    #[inline]
    pub(crate) fn happens(&self, visit: impl FnOnce(&mut KindCollector)) {
        if !self.has_happened.load(Ordering::Relaxed) {
            self.learn(visit);
        }
    }

    #[cold]
    fn learn(&self, visit: impl FnOnce(&mut KindCollector)) {
        self.has_happened.store(true, Ordering::Relaxed);
        let mut kinds = KindCollector::default();
        visit(&mut kinds);
        match &self.kind {
            SiteKind::Event(events) => _ = events.variant(kinds.shape()),
            SiteKind::Span(span) => _ = span.new.variant(kinds.shape()),
            SiteKind::Nothing => {}
        }
    }

    /// Whether any of its events is on.
    #[inline]
    fn is_on(&self) -> bool {
        match &self.kind {
            SiteKind::Event(events) => events.is_on(),
            SiteKind::Span(span) => span.is_on(),
            SiteKind::Nothing => false,
        }
    }
}

/// Head of the list that contains a callsite.
#[inline]
fn place(metadata: &Metadata<'_>) -> &'static OnceLock<&'static Site> {
    let address = ptr::from_ref(metadata).addr() as u64;
    // Fibonacci hashing, because metadata lie one after the other in memory.
    &SITES[(address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SITES_BITS)) as usize]
}

impl SpanEvents {
    fn new(metadata: &'static Metadata<'static>) -> Option<Self> {
        let fixed = |suffix, role| {
            let event = leak(definition(metadata, suffix, role, SPAN, std::iter::empty()));
            event.register().then_some(event)
        };
        let new = EventDefinitions::new(metadata, "_new", NEW)?;
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

/// Definitions of one event, which differ in the set of fields and their types.
#[derive(Debug)]
pub(crate) struct EventDefinitions {
    metadata: &'static Metadata<'static>,
    suffix: &'static str,
    before: &'static [&'static str],
    /// The first definition. Its switch decides whether later ones are on when they are defined.
    base: &'static Event,
    variants: OnceLock<&'static EventVariant>,
}

#[derive(Debug)]
struct EventVariant {
    shape: Box<[FieldShape]>,
    event: &'static Event,
    next: OnceLock<&'static Self>,
}

impl EventDefinitions {
    /// The events of a callsite. Its fields are text until their types are known.
    fn new(
        metadata: &'static Metadata<'static>,
        suffix: &'static str,
        before: &'static [&'static str],
    ) -> Option<Self> {
        let shape: Box<[FieldShape]> = metadata
            .fields()
            .iter()
            .take(FIELDS_MAX)
            .map(|field| FieldShape::new(field.index(), ValueKind::Text))
            .collect();
        let base = leak(text(metadata, suffix, before, &shape));
        let variant: &EventVariant = Box::leak(Box::new(EventVariant { shape, event: base, next: OnceLock::new() }));
        base.register().then(|| Self { metadata, suffix, before, base, variants: OnceLock::from(variant) })
    }

    /// Other events of the same callsite, which are defined when they first occur.
    fn like(&self, suffix: &'static str, before: &'static [&'static str]) -> Self {
        Self { suffix, before, variants: OnceLock::new(), ..*self }
    }

    /// Whether any definition is on. A recorder that filters by a number may have turned off the
    /// first definition, because all of its fields are text.
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

    /// Like [`is_on`](Self::is_on). The first time, this defines the types, whether the event is on
    /// or off.
    pub(crate) fn happen(&self, visit: impl FnOnce(&mut KindCollector)) -> bool {
        if self.variants.get().is_none() {
            let mut kinds = KindCollector::default();
            visit(&mut kinds);
            self.variant(kinds.shape());
        }
        self.is_on()
    }

    /// Records the values with the definition of their types.
    #[inline]
    pub(crate) fn record(&self, values: &mut EventValues) {
        values.record(self.variant(values.shape()));
    }

    fn variant(&self, shape: &[FieldShape]) -> &'static Event {
        let mut place = &self.variants;
        loop {
            let variant = place.get_or_init(|| self.define(shape));
            if *variant.shape == *shape {
                return variant.event;
            }
            place = &variant.next;
        }
    }

    /// Defines a variant. If it cannot be registered, its event stays off forever.
    #[cold]
    fn define(&self, shape: &[FieldShape]) -> &'static EventVariant {
        let event = leak(text(self.metadata, self.suffix, self.before, shape));
        event.register_like(self.base);
        Box::leak(Box::new(EventVariant { shape: shape.into(), event, next: OnceLock::new() }))
    }
}

fn text(metadata: &Metadata<'_>, suffix: &str, before: &[&str], shape: &[FieldShape]) -> String {
    definition(metadata, suffix, None, before, shape.iter().map(|shape| shape.field()))
}

/// Creates an event that lives forever.
fn leak(definition: String) -> &'static Event {
    Box::leak(Box::new(Event::new(definition.leak().as_bytes())))
}
