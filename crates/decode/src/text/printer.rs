//! Prints events: holds the constant text of each class, and runs the program that prints the rest.

use std::sync::{Arc, OnceLock};

use kymo_format::model::EventRecordClass;
use kymo_format::{DataStreamClass, FieldKind};
use kymo_ir::{PacketWindow, ProgramFault, ReadProgram, ReadState, eval};
use kymo_jit::CompiledText;

use crate::decoder::Decoder;
use crate::head::PacketHead;
use crate::hot::Hot;
use crate::lower::LowerError;
use crate::plan::BodyFace;
use crate::text::csv::{self, FlatFace};
use crate::text::details::{self, DetailsFace};
use crate::text::json::{self, JsonFace};
use crate::text::paint::Paint;
use crate::text::pretty::{self, PrettyFace, PrettyOptions};

/// How an event becomes a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// As Babeltrace writes it.
    Pretty(PrettyOptions),
    /// As Babeltrace's `sink.text.details` writes the fields; of other messages the caller writes most.
    Details(Paint),
    /// A JSON object, but for the part that the caller writes before.
    Json,
    /// Cells of CSV, but for those that the caller writes before.
    Csv {
        /// A cell for each field; otherwise one with a JSON object.
        flat: bool,
    },
}

/// Prints events of one trace. Shared by threads.
#[derive(Debug)]
pub struct Printer {
    decoder: Arc<Decoder>,
    format: LineFormat,
    streams: Vec<StreamPrinter>,
}

#[derive(Debug)]
struct StreamPrinter {
    packet_context: OnceLock<ReadProgram>,
    classes: Vec<OnceLock<ClassPrinter>>,
}

#[derive(Debug)]
struct ClassPrinter {
    head: Vec<u8>,
    program: ReadProgram,
    compiled: Hot<CompiledText>,
}

/// The common text of all lines of a packet's events.
#[derive(Clone, Debug, Default)]
pub struct PacketText(Vec<u8>);

impl PacketText {
    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// An event to be printed.
#[derive(Debug)]
pub struct PrinterEvent<'a> {
    /// Index of the data stream class.
    pub stream_class: usize,
    /// Dense index of the event record class.
    pub event_class: usize,
    /// Where its body is.
    pub position: u64,
    /// The bytes.
    pub window: PacketWindow<'a>,
    /// The preceding text in the line.
    pub packet: &'a PacketText,
}

impl Printer {
    /// A printer of a trace.
    #[must_use]
    pub fn new(decoder: Arc<Decoder>, format: LineFormat) -> Self {
        let stream = |class: &DataStreamClass| StreamPrinter {
            packet_context: OnceLock::new(),
            classes: class.event_classes.iter().map(|_| OnceLock::new()).collect(),
        };
        let streams = decoder.trace_class().stream_classes.iter().map(stream).collect();
        Self { decoder, format, streams }
    }

    /// The common text of all lines of a packet's events.
    ///
    /// # Errors
    ///
    /// The packet's context cannot be read again.
    pub fn packet(&self, head: &PacketHead, window: PacketWindow<'_>) -> Result<PacketText, ProgramFault> {
        let mut text = PacketText::default();
        if !shows_packet_context(self.decoder.stream_class(head.stream_class)) {
            return Ok(text);
        }
        let program = self.streams[head.stream_class]
            .packet_context
            .get_or_init(|| lowered(self.decoder.packet_context(head.stream_class, &mut *self.face(false))));
        let mut state = self.decoder.state(head, 0);
        eval::emit(program, window, head.context_start, &mut state, &mut text.0)?;
        Ok(text)
    }

    /// Appends an event's line, but for its stamp.
    ///
    /// # Errors
    ///
    /// Returns the fault if a field is unreadable; nothing is appended then.
    pub fn event(
        &self,
        event: &PrinterEvent<'_>,
        state: &mut ReadState,
        out: &mut Vec<u8>,
    ) -> Result<(), ProgramFault> {
        let class = self.streams[event.stream_class].classes[event.event_class]
            .get_or_init(|| self.class(event.stream_class, event.event_class));
        let start = out.len();
        out.extend_from_slice(&class.head);
        out.extend_from_slice(&event.packet.0);
        if let Some(text) = class.compiled(&self.decoder)
            && text.run(event.window, event.position, state, out)
        {
            self.end_line(start, out);
            return Ok(());
        }
        let result = eval::emit(&class.program, event.window, event.position, state, out);
        match result {
            Ok(_) => self.end_line(start, out),
            Err(_) => out.truncate(start),
        }
        result.map(drop)
    }

    /// The beginning of the lines of a class.
    fn head(&self, stream: &DataStreamClass, event: &EventRecordClass) -> Vec<u8> {
        let trace = self.decoder.trace_class();
        match &self.format {
            LineFormat::Pretty(options) => pretty::head(trace, event, options, stream.default_clock.is_some()),
            LineFormat::Details(paint) => details::head(event, *paint),
            LineFormat::Json => json::head(event),
            LineFormat::Csv { flat } => {
                let mut head = Vec::new();
                csv::cell(&mut head, event.name.as_deref().unwrap_or_default());
                if !flat {
                    head.extend_from_slice(&[b',', csv::OPEN]);
                    head.extend_from_slice(format!("{{\"id\":{}", event.id).as_bytes());
                }
                head
            }
        }
    }

    /// Writes fields; `after_packet`: behind those of the packet's context.
    fn face(&self, after_packet: bool) -> Box<dyn BodyFace + '_> {
        let dialect = self.decoder.trace_class().dialect;
        match &self.format {
            LineFormat::Pretty(options) => Box::new(PrettyFace::new(options, dialect, after_packet)),
            LineFormat::Details(paint) => Box::new(DetailsFace::new(dialect, *paint)),
            LineFormat::Json | LineFormat::Csv { flat: false } => Box::new(JsonFace::new(dialect)),
            LineFormat::Csv { flat: true } => Box::new(FlatFace::new(dialect)),
        }
    }

    /// Ends the line behind the fields of the event; the line began at `start`.
    fn end_line(&self, start: usize, out: &mut Vec<u8>) {
        match &self.format {
            LineFormat::Pretty(_) => {}
            LineFormat::Details(_) => return,
            LineFormat::Json => out.push(b'}'),
            LineFormat::Csv { flat } => {
                if !flat {
                    out.extend_from_slice(&[b'}', csv::CLOSE]);
                }
                csv::quote(out, start);
            }
        }
        out.push(b'\n');
    }

    /// Names of the cells that an event of the class has in flat CSV.
    #[must_use]
    pub fn columns(decoder: &Decoder, stream_class: usize, event_class: usize) -> Vec<String> {
        let mut face = FlatFace::new(decoder.trace_class().dialect);
        if shows_packet_context(decoder.stream_class(stream_class)) {
            drop(lowered(decoder.packet_context(stream_class, &mut face)));
        }
        let columns = std::mem::replace(&mut face, FlatFace::new(decoder.trace_class().dialect)).columns;
        drop(lowered(decoder.body(stream_class, event_class, &mut face)));
        [columns, face.columns].concat()
    }

    fn class(&self, stream_class: usize, event_class: usize) -> ClassPrinter {
        let stream = self.decoder.stream_class(stream_class);
        let event = &stream.event_classes[event_class];
        let head = self.head(stream, event);
        let mut face = self.face(shows_packet_context(stream));
        let program = lowered(self.decoder.body(stream_class, event_class, &mut *face));
        ClassPrinter { head, program, compiled: Hot::default() }
    }
}

/// Whether packets' contexts have more fields than readers of packets need.
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
    fn compiled(&self, decoder: &Decoder) -> Option<&CompiledText> {
        let engine = decoder.engine()?;
        let after = if decoder.compiles_at_once() { 0 } else { COMPILE_AFTER };
        self.compiled.get(1, after, || CompiledText::new(engine, self.program.clone()))
    }
}

/// Classes were lowered for the scan before: the additions of a face cannot fail.
fn lowered(program: Result<ReadProgram, LowerError>) -> ReadProgram {
    program.expect("every class was lowered when the decoder was made")
}
