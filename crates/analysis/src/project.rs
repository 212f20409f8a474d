//! Projection: from the records of a batch to the rows that an analysis needs.
//!
//! ```text
//! records    class 7 │ 1 │ 7 │ 0 │ 7        which of them are bound, and which row of their class each is
//! places     (0, 0) (1, 0) (0, 1)   (0, 2)
//!
//! class 0    positions of its rows ──FieldReader::read──> its cells
//! class 1    ...
//! ```
//!
//! This is the hot loop of all analyses: one pass over the records, one over those that have columns, then machine code
//! for each class that occurs. A class without columns is not read at all.

use std::sync::Arc;

use kymo_decode::fields::FieldValue;
use kymo_ir::{PacketWindow, ReadState};
use kymo_scan::{BatchEvents, Packet};

use crate::bind::{Bindings, EventNumbering, StreamBinding, Variants};
use crate::events::{EventRows, PacketValue};

/// Turns batches of one data stream into rows. Its memory is reused.
#[derive(Debug)]
pub struct Projector<'b> {
    bindings: &'b Bindings,
    stream: &'b StreamBinding,
    /// For each class of events its number from the stream's first on, or [`NEVER`] or [`DEPENDS`].
    numbers: Vec<u32>,
    /// For each number, how many records of it there are; all zero between batches.
    counts: Vec<u32>,
    /// Numbers that occur.
    present: Vec<u32>,
    /// Positions of the rows, as [`EventRows::places`] has them.
    found: Vec<u64>,
    /// Positions number by number.
    positions: Vec<u64>,
    packet: Option<Arc<Packet>>,
    /// Values of the packet that conditions need.
    condition_states: Vec<ReadState>,
    values: Arc<[Option<PacketValue>]>,
    state: ReadState,
    /// Numbers and rows that could not be read.
    unread: Vec<(u32, u32)>,
    unreadable: u64,
}

/// No event of the class is bound.
const NEVER: u32 = u32::MAX;
/// Events are asked.
const DEPENDS: u32 = u32::MAX - 1;
/// After so many records of a class and batch that could not be read, the rest is left out.
const FAULTS_MAX: usize = 16;

impl<'b> Projector<'b> {
    /// A projector for data streams of a class, by its place in [`Bindings::streams`].
    #[must_use]
    pub fn new(bindings: &'b Bindings, stream: usize) -> Self {
        let stream = &bindings.streams[stream];
        let number = |numbers: &EventNumbering| match numbers {
            EventNumbering::Never => NEVER,
            EventNumbering::Always(number) => number - stream.first,
            EventNumbering::Depends(_) => DEPENDS,
        };
        Self {
            bindings,
            stream,
            numbers: stream.numbers.iter().map(number).collect(),
            counts: vec![0; stream.event_classes.len()],
            present: Vec::new(),
            found: Vec::new(),
            positions: Vec::new(),
            packet: None,
            condition_states: stream.conditions.iter().map(|_| ReadState::default()).collect(),
            values: Arc::default(),
            state: ReadState::default(),
            unread: Vec::new(),
            unreadable: 0,
        }
    }

    /// Records with unreadable fields so far. They are left out.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Replaces the rows by those of the batch that are bound. `keys` are the batch's.
    pub fn project(&mut self, events: &BatchEvents, keys: &[i64], rows: &mut EventRows) {
        self.enter(events);
        rows.packet = Arc::clone(&self.values);
        rows.cells.resize_with(self.bindings.classes.len(), Default::default);
        self.place(events, keys, rows);
        self.sort(rows);
        self.read(events.window(), rows);
        if !self.unread.is_empty() {
            self.leave_out(rows);
        }
        for &number in &self.present {
            self.counts[number as usize] = 0;
        }
    }

    /// Reads the requested values of a packet, when it begins.
    fn enter(&mut self, events: &BatchEvents) {
        if self.packet.as_ref().is_some_and(|packet| Arc::ptr_eq(packet, &events.packet)) {
            return;
        }
        let (head, window) = (&events.packet.head, events.packet.head_window());
        let value = |value: Option<FieldValue>| match value? {
            FieldValue::Integer(value) => Some(PacketValue::Integer(value as i64)),
            FieldValue::Text(text) => Some(PacketValue::Text(text)),
            FieldValue::Real(_) => None,
        };
        self.values = self.stream.reader.packet(head, window).into_iter().map(value).collect();
        for (filter, state) in self.stream.conditions.iter().zip(&mut self.condition_states) {
            *state = self.stream.decoder.state(head, 0);
            filter.enter(head, window, state);
        }
        self.state = self.stream.decoder.state(head, 0);
        self.packet = Some(Arc::clone(&events.packet));
    }

    /// Finds which records are bound, and as which row of which number.
    fn place(&mut self, events: &BatchEvents, keys: &[i64], rows: &mut EventRows) {
        let Self { stream, numbers, counts, present, found, condition_states, .. } = self;
        let (records, window, first) = (&events.records, events.window(), stream.first);
        present.clear();
        // Written in place and cut off behind: pushing three times for each record took a third longer.
        found.resize(keys.len(), 0);
        rows.times.resize(keys.len(), 0);
        rows.places.resize(keys.len(), (0, 0));
        let mut kept = 0;
        for (row, (&class, &key)) in records.classes.iter().zip(keys).enumerate() {
            let mut number = numbers.get(class as usize).copied().unwrap_or(NEVER);
            if number >= DEPENDS {
                if number == NEVER {
                    continue;
                }
                let record = (class, records.positions[row], records.cycles[row]);
                match ask(stream, condition_states, window, record) {
                    Some(chosen) => number = chosen,
                    None => continue,
                }
            }
            let count = &mut counts[number as usize];
            if *count == 0 {
                present.push(number);
            }
            rows.places[kept] = (first + number, *count);
            rows.times[kept] = key;
            found[kept] = records.positions[row];
            *count += 1;
            kept += 1;
        }
        found.truncate(kept);
        rows.times.truncate(kept);
        rows.places.truncate(kept);
    }

    /// Puts positions together that are of one number.
    fn sort(&mut self, rows: &EventRows) {
        // The counts become where the positions of each number begin.
        let mut begin = 0;
        for &number in &self.present {
            let count = &mut self.counts[number as usize];
            begin += std::mem::replace(count, begin);
        }
        if self.present.len() <= 1 {
            std::mem::swap(&mut self.found, &mut self.positions);
            return;
        }
        let (counts, first) = (&self.counts[..], self.stream.first);
        self.positions.resize(begin as usize, 0);
        let positions = &mut self.positions[..];
        for (&(number, row), &position) in rows.places.iter().zip(&self.found) {
            positions[(counts[(number - first) as usize] + row) as usize] = position;
        }
    }

    /// Fills the cells of all numbers that occur.
    fn read(&mut self, window: PacketWindow<'_>, rows: &mut EventRows) {
        for (place, &number) in self.present.iter().enumerate() {
            let event_class = self.stream.event_classes[number as usize] as usize;
            if !self.stream.reader.reads(event_class) {
                continue;
            }
            let begin = self.counts[number as usize] as usize;
            let next = self.present.get(place + 1).map(|&next| self.counts[next as usize] as usize);
            let positions = &self.positions[begin..next.unwrap_or(self.positions.len())];
            let cells = &mut rows.cells[(self.stream.first + number) as usize];
            if self.stream.reader.read(event_class, window, positions, &mut self.state, cells).is_ok() {
                continue;
            }
            // If several records cannot be read, it is unknown which: the readable ones are kept.
            let mut readable: Vec<u64> = positions.to_vec();
            let mut at: Vec<u32> = (0..positions.len() as u32).collect();
            while let Err(fault) = self.stream.reader.read(event_class, window, &readable, &mut self.state, cells) {
                let until = if self.unread.len() < FAULTS_MAX { fault.row + 1 } else { readable.len() };
                self.unread.extend(at.drain(fault.row..until).map(|row| (self.stream.first + number, row)));
                readable.drain(fault.row..until);
            }
        }
    }

    /// Leaves out rows that could not be read.
    fn leave_out(&mut self, rows: &mut EventRows) {
        self.unreadable += self.unread.len() as u64;
        self.unread.sort_unstable();
        let mut kept = 0;
        for row in 0..rows.places.len() {
            let (number, place) = rows.places[row];
            let Err(before) = self.unread.binary_search(&(number, place)) else { continue };
            let others = self.unread[..before].partition_point(|unread| unread.0 < number);
            rows.places[kept] = (number, place - (before - others) as u32);
            rows.times[kept] = rows.times[row];
            kept += 1;
        }
        rows.places.truncate(kept);
        rows.times.truncate(kept);
        self.unread.clear();
    }
}

/// The number of a record whose meaning depends on its fields; a record: class, position, cycles.
fn ask(
    stream: &StreamBinding,
    states: &mut [ReadState],
    window: PacketWindow<'_>,
    record: (u32, u64, u64),
) -> Option<u32> {
    let (class, position, cycles) = record;
    let EventNumbering::Depends(Variants { roles, numbers }) = &stream.numbers[class as usize] else { return None };
    let mut variant = 0;
    for conditions in roles {
        let mut holds = |condition: &Option<usize>| {
            let Some(condition) = *condition else { return true };
            let (filter, state) = (&stream.conditions[condition], &mut states[condition]);
            filter.keeps(class as usize, window, position, cycles, state).unwrap_or(false)
        };
        let place = conditions.iter().position(&mut holds).unwrap_or(conditions.len());
        let is_certain = conditions.iter().any(Option::is_none);
        variant = variant * (conditions.len() + usize::from(!is_certain)) + place;
    }
    Some(numbers[variant]? - stream.first)
}
