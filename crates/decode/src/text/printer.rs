//! Prints events: knows for each class what never changes, and runs the program that prints the rest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use kymo_format::{DataStreamClass, FieldKind};
use kymo_ir::{Fault, Program, State, Window, eval};
use kymo_jit::Text;

use crate::decoder::Decoder;
use crate::head::PacketHead;
use crate::lower::LowerError;
use crate::text::pretty::{PrettyFace, PrettyOptions, head};

/// Prints events of one trace. Shared by threads.
#[derive(Debug)]
pub struct Printer {
    decoder: Arc<Decoder>,
    options: PrettyOptions,
    streams: Vec<StreamPrinter>,
}

#[derive(Debug)]
struct StreamPrinter {
    packet_context: OnceLock<Program>,
    classes: Vec<OnceLock<ClassPrinter>>,
}

#[derive(Debug)]
struct ClassPrinter {
    head: Vec<u8>,
    program: Program,
    /// Records that the evaluator printed.
    evaluated: AtomicUsize,
    compiled: OnceLock<Option<Text>>,
}

/// What is the same in all lines of a packet's events.
#[derive(Clone, Debug, Default)]
pub struct PacketText(Vec<u8>);

/// An event to be printed.
#[derive(Debug)]
pub struct Event<'a> {
    /// Index of the data stream class.
    pub stream_class: usize,
    /// Dense index of the event record class.
    pub event_class: usize,
    /// Where its body is.
    pub position: u64,
    /// The bytes.
    pub window: Window<'a>,
    /// What stands before in the line.
    pub packet: &'a PacketText,
}

impl Printer {
    /// A printer of a trace.
    #[must_use]
    pub fn new(decoder: Arc<Decoder>, options: PrettyOptions) -> Self {
        let stream = |class: &DataStreamClass| StreamPrinter {
            packet_context: OnceLock::new(),
            classes: class.event_classes.iter().map(|_| OnceLock::new()).collect(),
        };
        let streams = decoder.trace_class().stream_classes.iter().map(stream).collect();
        Self { decoder, options, streams }
    }

    /// What is the same in all lines of a packet's events.
    ///
    /// # Errors
    ///
    /// The packet's context cannot be read again.
    pub fn packet(&self, head: &PacketHead, window: Window<'_>) -> Result<PacketText, Fault> {
        let mut text = PacketText::default();
        if !shows_packet_context(self.decoder.stream_class(head.stream_class)) {
            return Ok(text);
        }
        let program = self.streams[head.stream_class].packet_context.get_or_init(|| {
            let dialect = self.decoder.trace_class().dialect;
            let mut face = PrettyFace::new(&self.options, dialect, false);
            lowered(self.decoder.packet_context(head.stream_class, &mut face))
        });
        let mut state = self.decoder.state(head, 0);
        eval::emit(program, window, head.context_start, &mut state, &mut text.0)?;
        Ok(text)
    }

    /// Appends an event's line, but for its stamp.
    ///
    /// # Errors
    ///
    /// What could not be read; nothing is appended then.
    pub fn event(&self, event: &Event<'_>, state: &mut State, out: &mut Vec<u8>) -> Result<(), Fault> {
        let class = self.streams[event.stream_class].classes[event.event_class]
            .get_or_init(|| self.class(event.stream_class, event.event_class));
        let start = out.len();
        out.extend_from_slice(&class.head);
        out.extend_from_slice(&event.packet.0);
        if let Some(text) = class.compiled(&self.decoder)
            && text.run(event.window, event.position, state, out)
        {
            out.push(b'\n');
            return Ok(());
        }
        let result = eval::emit(&class.program, event.window, event.position, state, out);
        match result {
            Ok(_) => out.push(b'\n'),
            Err(_) => out.truncate(start),
        }
        result.map(drop)
    }

    fn class(&self, stream_class: usize, event_class: usize) -> ClassPrinter {
        let trace = self.decoder.trace_class();
        let stream = &trace.stream_classes[stream_class];
        let event = &stream.event_classes[event_class];
        let head = head(trace, event, &self.options, stream.default_clock.is_some());
        let mut face = PrettyFace::new(&self.options, trace.dialect, shows_packet_context(stream));
        let program = lowered(self.decoder.body(stream_class, event_class, &mut face));
        ClassPrinter { head, program, evaluated: AtomicUsize::new(0), compiled: OnceLock::new() }
    }
}

/// Whether packets' contexts have anything but what readers of packets need.
fn shows_packet_context(stream: &DataStreamClass) -> bool {
    let Some(FieldKind::Structure(context)) = stream.packet_context.as_ref().map(|class| &class.kind) else {
        return false;
    };
    context.members.iter().any(|member| member.class.roles().is_empty())
}

/// Compiling a program that prints costs about as much as printing so many records without.
const COMPILE_AFTER: usize = 4000;

impl ClassPrinter {
    /// Machine code, once that is worth it.
    fn compiled(&self, decoder: &Decoder) -> Option<&Text> {
        let engine = decoder.engine()?;
        if !decoder.compiles_at_once() && self.evaluated.fetch_add(1, Ordering::Relaxed) < COMPILE_AFTER {
            return None;
        }
        self.compiled.get_or_init(|| Text::new(engine, self.program.clone())).as_ref()
    }
}

/// Classes were lowered for the scan before: what a face adds cannot fail.
fn lowered(program: Result<Program, LowerError>) -> Program {
    program.expect("every class was lowered when the decoder was made")
}
