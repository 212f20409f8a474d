//! Firings of triggers in a trace: events `kymo:trigger`, in a stream of their own, because they come later than their
//! times: the recorder's other events may be in the files already.

use std::sync::{Arc, LazyLock};

use kymo_schema::definition::EventClass;
use kymo_schema::field::{FieldType, IntegerType, ScalarType, ValueLabel};

use crate::trace::chunk::StreamNumber;
use crate::trace::own::{CLASSES_MAX, OwnEvents, class, field, number};
use crate::trace::{OWN_BYTES, OWN_SPAN, Output, put_own};
use crate::trigger::{TriggerEffect, TriggerFiring};

/// A firing of a trigger.
#[derive(Clone, Debug)]
pub(crate) struct TraceFiring {
    /// The trigger.
    pub(crate) trigger: String,
    pub(crate) effect: TriggerEffect,
    /// Ticks of the clock of the program: of its event, or slightly before it.
    pub(crate) ticks: u64,
    /// The program's [`key`](crate::program::ProgramIdentity::key), and its PID as it sees itself.
    pub(crate) program: u64,
    pub(crate) vpid: u32,
    /// The rest.
    pub(crate) told: TriggerFiring,
}

/// Firings that wait for their packet.
#[derive(Debug)]
pub(crate) struct FiringStream {
    /// The ID of their events.
    id: u16,
    stream: StreamNumber,
    events: OwnEvents,
}

/// The class of firings, which only traces with one have.
static TRIGGER: LazyLock<Arc<EventClass>> = LazyLock::new(|| {
    let text = |name: &str| field(name, FieldType::Text);
    let labels = TriggerEffect::ALL.map(|effect| ValueLabel { name: effect.word().to_owned(), value: effect as i128 });
    let effect = FieldType::Scalar(ScalarType::Enumeration(IntegerType::unsigned(1), labels.to_vec()));
    let fields = vec![
        text("trigger"),
        field("effect", effect),
        text("event"),
        number("program", false, true),
        number("vpid", false, false),
        number("pid", false, false),
        number("vtid", false, false),
        text("name"),
        field("watched", FieldType::Scalar(ScalarType::Boolean)),
    ];
    class("trigger", fields)
});

impl TraceFiring {
    fn put(&self, to: &mut FiringStream, cycles: u64) {
        let Self { trigger, effect, program, vpid, told, .. } = self;
        let mut fields = Vec::new();
        super::own::add_texts(&mut fields, [trigger]);
        fields.push(*effect as u8);
        super::own::add_texts(&mut fields, [&told.event]);
        let numbers = [*program, (*vpid).into(), told.pid.into(), told.tid.into()];
        numbers.iter().for_each(|number| fields.extend(number.to_le_bytes()));
        super::own::add_texts(&mut fields, [&told.program]);
        fields.push(told.is_late.into());
        to.events.put(to.id, cycles, &fields);
    }
}

impl Output {
    /// A trigger has fired. Its event is in the files with the next beat.
    pub(crate) fn fired(&mut self, firing: &TraceFiring) {
        let cycles = firing.ticks.saturating_sub(self.facts.base);
        let is_far = |known: &FiringStream| cycles.saturating_sub(known.events.begin) > OWN_SPAN;
        if self.firings.as_ref().is_some_and(|known| is_far(known) || known.events.bytes.len() > OWN_BYTES) {
            self.put_firings();
        }
        if self.firings.is_none() {
            let id = self.chunk.class(&[]).and_then(|class| Ok((class, self.chunk.event(class, &TRIGGER)?)));
            match id {
                Ok((class, Some(id))) => {
                    let stream = self.chunk.stream(class, cycles);
                    let events = OwnEvents::new([0; CLASSES_MAX], self.chunk.before_events(), cycles);
                    self.firings = Some(FiringStream { id, stream, events });
                }
                // The chunk has no more ids: its other events matter more.
                Ok((_, None)) => return,
                Err(error) => {
                    self.error = Some(error.into());
                    return;
                }
            }
        }
        if let Some(known) = &mut self.firings {
            firing.put(known, cycles);
        }
    }

    /// Writes the firings; when that fails, some of them wait for the next attempt.
    pub(crate) fn put_firings(&mut self) {
        let Some(known) = &mut self.firings else { return };
        let error = put_own(&mut self.chunk, &mut self.tally, &mut known.events, known.stream);
        self.error = error.or(self.error.take());
    }

    /// The chunk ends: the next one has a stream of its own. Returns the firings that could not be written.
    pub(crate) fn end_firings(&mut self) -> u64 {
        self.firings.take().map_or(0, |mut known| known.events.give_up())
    }
}
