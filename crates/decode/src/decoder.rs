//! The decoder of one trace class: finds packets' heads and event records; its programs are shared
//! by all threads that read the trace.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use kymo_format::model::{DataStreamClass, TraceClass};
use kymo_ir::{PacketWindow, ReadProgram, ReadState, Records, ScanPlan, ScanStop, eval};
use kymo_jit::{COMPILE_AFTER, JitEngine, Scan};

use crate::head::{self, HeadError, PacketHead};
use crate::lower::LowerError;
use crate::measure;
use crate::plan::{BodyFace, TracePlan};
use crate::slots;

/// Reads packets of one trace class.
#[derive(Debug)]
pub struct Decoder {
    trace: Arc<TraceClass>,
    pub(crate) plan: TracePlan,
    compile: Compile,
    engine: Option<JitEngine>,
    scans: Vec<LazyScan>,
}

/// The scan of a data stream class: machine code as soon as it was used enough to be worth compiling.
#[derive(Debug, Default)]
pub(crate) struct LazyScan {
    /// Records that the evaluator found.
    evaluated: AtomicUsize,
    compiled: OnceLock<Option<Scan>>,
}

/// Whether programs may become machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// Never: the evaluator runs them.
    Never,
    #[default]
    /// When a program was used often enough to be worth it.
    WhenWorthIt,
    /// Before it is first used.
    AtOnce,
}

impl Compile {
    /// Records that the evaluator reads before.
    fn after(self) -> usize {
        match self {
            Self::AtOnce => 0,
            Self::Never | Self::WhenWorthIt => COMPILE_AFTER as usize,
        }
    }
}

impl Decoder {
    /// Writes the programs for a trace class.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn new(trace: Arc<TraceClass>, compile: Compile) -> Result<Self, LowerError> {
        readable(&trace)?;
        let plan = TracePlan::new(&trace)?;
        let engine = if compile == Compile::Never { None } else { JitEngine::new() };
        let scans = plan.streams.iter().map(|_| LazyScan::default()).collect();
        Ok(Self { trace, plan, compile, engine, scans })
    }

    /// Compiles programs, where that is possible and wanted.
    pub(crate) fn engine(&self) -> Option<&JitEngine> {
        self.engine.as_ref()
    }

    /// Programs are compiled before they are first used.
    pub(crate) fn compiles_at_once(&self) -> bool {
        self.compile == Compile::AtOnce
    }

    /// The trace's class.
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
    pub fn head(&self, window: PacketWindow<'_>, clock_cycles: u64) -> Result<PacketHead, HeadError> {
        head::read(&self.trace, &self.plan, window, clock_cycles)
    }

    /// The state in which a packet's first event record is read.
    #[must_use]
    pub fn state(&self, head: &PacketHead, clock_cycles: u64) -> ReadState {
        ReadState { clock: clock_cycles, slots: head.slots.to_vec() }
    }

    /// Finds event records from `position` on: see [`kymo_ir::eval::scan`].
    pub fn scan(
        &self,
        stream_class: usize,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
        limit: usize,
    ) -> ScanStop {
        let plan = &self.plan.streams[stream_class].scan;
        self.scan_plan(plan, &self.scans[stream_class], window, position, state, records, limit)
    }

    /// Finds event records by a plan, with machine code once it was used enough.
    #[allow(clippy::too_many_arguments, reason = "what a scan takes, and the plan with its code")]
    pub(crate) fn scan_plan(
        &self,
        plan: &Arc<ScanPlan>,
        lazy: &LazyScan,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
        limit: usize,
    ) -> ScanStop {
        let Some(engine) = &self.engine else {
            return eval::scan(plan, window, position, state, records, limit);
        };
        if lazy.evaluated.load(Ordering::Relaxed) < self.compile.after() {
            // Records that are read count, also those that no filter wants.
            let mut reads = self.compile.after();
            let stop = eval::scan_few(plan, window, position, state, records, limit, &mut reads);
            // Relaxed: a count that is late only means that the code is compiled a little later.
            lazy.evaluated.fetch_add(self.compile.after() - reads, Ordering::Relaxed);
            if stop != ScanStop::Full || records.len() >= limit {
                return stop;
            }
        }
        let compile_after = self.compile.after() as u32;
        match lazy.compiled.get_or_init(|| Scan::new(engine, plan, compile_after)) {
            Some(scan) => scan.run(window, position, state, records, limit),
            None => eval::scan(plan, window, position, state, records, limit),
        }
    }

    /// The program that reads the fields of one event record class for a face. It runs at the positions
    /// that [`Decoder::scan`] finds.
    pub(crate) fn body(
        &self,
        stream_class: usize,
        event_class: usize,
        face: &mut dyn BodyFace,
    ) -> Result<ReadProgram, LowerError> {
        let stream = self.stream_class(stream_class);
        self.plan.body(&self.trace, stream, &self.plan.streams[stream_class], event_class, face)
    }

    /// The program that reads a packet's context for a face. It runs at [`PacketHead::context_start`].
    pub(crate) fn packet_context(
        &self,
        stream_class: usize,
        face: &mut dyn BodyFace,
    ) -> Result<ReadProgram, LowerError> {
        let stream = self.stream_class(stream_class);
        self.plan.packet_context(&self.trace, stream, face)
    }

    /// How many slots a [`ReadState`] of this decoder has.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        slots::count(&self.plan.slots)
    }
}

/// Finding records passes over fields that no face can read: that error must not wait until a face
/// reads them.
fn readable(trace: &TraceClass) -> Result<(), LowerError> {
    let streams = trace.stream_classes.iter().flat_map(|stream| {
        let events = stream.event_classes.iter().flat_map(|event| [&event.specific_context, &event.payload]);
        [&stream.packet_context, &stream.event_header, &stream.event_common_context].into_iter().chain(events)
    });
    let classes = [&trace.packet_header].into_iter().chain(streams).flatten();
    match classes.filter_map(measure::unreadable_real).next() {
        Some(length) => Err(LowerError::RealLength { length }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a number is passed over when records are found, so that only printing it would have failed.
    #[test]
    fn a_real_of_128_bits_is_refused_at_once() {
        let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
            event { name = \"e\"; fields := struct { floating_point { exp_dig = 15; mant_dig = 113; } x; }; };";
        let trace = kymo_format::parse(metadata.as_bytes()).trace_class.expect("the metadata are right");
        let refused = Decoder::new(Arc::new(trace), Compile::Never).expect_err("no program reads it");
        assert_eq!(refused, LowerError::RealLength { length: 128 });
    }
}
