//! The decoder of one trace class: finds packets' heads and event records; its programs are shared
//! by all threads that read the trace.

use std::sync::Arc;

use kymo_format::model::{DataStreamClass, TraceClass};
use kymo_ir::{Program, Records, ScanStop, State, Window, eval};

use crate::head::{self, HeadError, PacketHead};
use crate::lower::LowerError;
use crate::plan::{BodyFace, TracePlan};
use crate::slots;

/// Reads packets of one trace class.
#[derive(Debug)]
pub struct Decoder {
    trace: Arc<TraceClass>,
    pub(crate) plan: TracePlan,
}

impl Decoder {
    /// Writes the programs for a trace class.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn new(trace: Arc<TraceClass>) -> Result<Self, LowerError> {
        let plan = TracePlan::new(&trace)?;
        Ok(Self { trace, plan })
    }

    /// What the trace says of itself.
    #[must_use]
    pub fn trace_class(&self) -> &Arc<TraceClass> {
        &self.trace
    }

    /// The data stream class with that index.
    #[must_use]
    pub fn stream_class(&self, index: usize) -> &DataStreamClass {
        &self.trace.stream_classes[index]
    }

    /// Reads the head of the packet that begins at the window's first byte. `clock_cycles` is the stream's
    /// clock before it: a timestamp of few bits continues from there.
    ///
    /// # Errors
    ///
    /// See [`HeadError`]; where [`kymo_ir::FaultKind::wants_more`], a longer window may help.
    pub fn head(&self, window: Window<'_>, clock_cycles: u64) -> Result<PacketHead, HeadError> {
        head::read(&self.trace, &self.plan, window, clock_cycles)
    }

    /// The state in which a packet's first event record is read.
    #[must_use]
    pub fn state(&self, head: &PacketHead, clock_cycles: u64) -> State {
        State { clock: clock_cycles, slots: head.slots.to_vec() }
    }

    /// Finds event records from `position` on: see [`kymo_ir::eval::scan`].
    pub fn scan(
        &self,
        stream_class: usize,
        window: Window<'_>,
        position: &mut u64,
        state: &mut State,
        records: &mut Records,
        limit: usize,
    ) -> ScanStop {
        let plan = &self.plan.streams[stream_class].scan;
        eval::scan(plan, window, position, state, records, limit)
    }

    /// The program that reads the fields of one event record class for a face. It runs at the positions
    /// that [`Decoder::scan`] finds.
    pub(crate) fn body(
        &self,
        stream_class: usize,
        event_class: usize,
        face: &mut dyn BodyFace,
    ) -> Result<Program, LowerError> {
        let stream = self.stream_class(stream_class);
        self.plan.body(&self.trace, stream, &self.plan.streams[stream_class], event_class, face)
    }

    /// The program that reads a packet's context for a face. It runs at [`PacketHead::context_start`].
    pub(crate) fn packet_context(&self, stream_class: usize, face: &mut dyn BodyFace) -> Result<Program, LowerError> {
        let stream = self.stream_class(stream_class);
        self.plan.packet_context(&self.trace, stream, face)
    }

    /// How many slots a [`State`] of this decoder has.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        slots::count(&self.plan.slots)
    }
}
