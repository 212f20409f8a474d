//! One line per event, byte for byte as Babeltrace 2.1's `sink.text.pretty` writes it.
//!
//! ```text
//! [17:46:22.794565804] (+0.000001868) host:proc:(pid) name: { cpu_id = 2 }, { vpid = 7 }, { a = 1 }
//! └───────── stamp, per event ───────┘└─ per event class ──┘└ per packet ─┘└──── program ────────┘
//! ```

use kymo_format::TraceClass;
use kymo_format::model::{
    self, Dialect, EnvironmentValue, EventRecordClass, FieldClass, Optional, Scope, Structure, Variant,
};
use kymo_ir::emit::pretty_name;
use kymo_ir::{BytesStyle, Emit, IntegerStyle, LabelStyle, NumberSource, Op, RealStyle, Reg, TextStyle};
use kymo_schema::level::LogLevel;

use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::plan::BodyFace;
use crate::text::paint::{Paint, Tone};
use crate::text::script::{PendingText, add_labels, encoding, literal_op, pretty_style};

/// The contents of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrettyOptions {
    /// Names of payload fields.
    pub payload_names: bool,
    /// Names of context fields.
    pub context_names: bool,
    /// Names of scopes.
    pub scope_names: bool,
    /// Names in the part before the fields.
    pub header_names: bool,
    /// The shown fields of the trace and of the event class.
    pub fields: PrettyFields,
    /// An enumeration value without label is split into bits that have one.
    pub enum_flags: bool,
    /// Colors, as Babeltrace uses them.
    pub paint: Paint,
    /// The name of the trace: see [`trace_name`].
    pub trace_name: String,
}

/// A trace's name, as Babeltrace makes it: its host's name, and where it is below the folder that the user named.
#[must_use]
pub fn trace_name(trace: &TraceClass, below: &str) -> String {
    let host = match trace.environment("hostname") {
        Some(EnvironmentValue::Text(host)) => Some(&**host),
        _ => None,
    };
    let parts: Vec<&str> = host.into_iter().chain((!below.is_empty()).then_some(below)).collect();
    parts.join("/")
}

/// The shown fields of the trace and of the event class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PrettyFields {
    pub trace: bool,
    pub hostname: bool,
    pub domain: bool,
    pub procname: bool,
    pub vpid: bool,
    pub log_level: bool,
    pub emf: bool,
}

impl Default for PrettyOptions {
    fn default() -> Self {
        Self {
            payload_names: true,
            context_names: true,
            scope_names: false,
            header_names: false,
            fields: PrettyFields {
                trace: false,
                hostname: true,
                domain: false,
                procname: true,
                vpid: true,
                log_level: false,
                emf: false,
            },
            enum_flags: false,
            paint: Paint::default(),
            trace_name: String::new(),
        }
    }
}

/// The text between the stamp and the fields.
pub(crate) fn head(trace: &TraceClass, event: &EventRecordClass, options: &PrettyOptions, stamped: bool) -> Vec<u8> {
    let named = options.header_names;
    let mut line = HeadLine { text: String::new(), named, started: stamped && named, parts: 0, paint: options.paint };
    let text = |name: &str| match trace.environment(name) {
        Some(EnvironmentValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    if options.fields.trace {
        line.trace(&options.trace_name);
    }
    if options.fields.hostname {
        line.part("trace:hostname", text("hostname"));
    }
    if options.fields.domain {
        line.part("trace:domain", text("domain"));
    }
    if options.fields.procname {
        line.part("trace:procname", text("procname"));
    }
    if options.fields.vpid {
        let vpid = match trace.environment("vpid") {
            Some(EnvironmentValue::Integer(vpid)) => Some(format!("({vpid})")),
            _ => None,
        };
        line.part("trace:vpid", vpid);
    }
    if options.fields.log_level {
        line.part("loglevel", event.log_level.and_then(log_level));
    }
    if options.fields.emf {
        line.part("model.emf.uri", event.emf_uri.clone());
    }
    line.finish(event.name.as_deref())
}

struct HeadLine {
    text: String,
    named: bool,
    /// A named stamp precedes. Without it Babeltrace separates nothing.
    started: bool,
    parts: usize,
    paint: Paint,
}

impl HeadLine {
    /// Babeltrace puts no separator behind the trace's name, and one too many where names are shown.
    fn trace(&mut self, name: &str) {
        if self.named {
            self.label("trace");
            self.text += &pretty_name(name);
            self.text += ", ";
        } else {
            self.text += &pretty_name(name);
        }
    }

    /// `, name = `
    fn label(&mut self, name: &str) {
        let separator = if self.started { ", " } else { "" };
        self.text += &format!("{separator}{} = ", self.paint.text(Tone::Bold, name));
    }

    fn part(&mut self, name: &str, value: Option<String>) {
        let Some(value) = value else { return };
        if self.named {
            self.label(name);
        } else if self.parts > 0 {
            self.text += ":";
        }
        self.text += &pretty_name(&value);
        self.parts += 1;
    }

    fn finish(mut self, event: Option<&str>) -> Vec<u8> {
        let event = match event {
            Some(name) => self.paint.text(Tone::BrightMagenta, name),
            None => self.paint.text(Tone::BrightRed, "<unknown>"),
        };
        if self.named {
            self.label("name");
            self.text += &event;
            self.text += ", ";
        } else {
            if self.parts > 0 {
                self.text += " ";
            }
            self.text += &event;
            self.text += ": ";
        }
        self.text.into_bytes()
    }
}

fn log_level(level: i64) -> Option<String> {
    Some(format!("{} ({level})", LogLevel::of(level)?.constant))
}

/// Writes the fields of an event, or of a packet's context.
pub(crate) struct PrettyFace<'a> {
    options: &'a PrettyOptions,
    dialect: Dialect,
    script: PendingText,
    /// A scope was written before.
    scopes: bool,
    /// Names of fields are shown in the current scope.
    names: bool,
    /// Fields of packets' contexts with a role are not shown.
    hides_roles: bool,
    /// For each open structure, whether a member was written.
    members: Vec<bool>,
}

impl<'a> PrettyFace<'a> {
    /// `after_packet`: the text of a packet's context precedes.
    pub(crate) fn new(options: &'a PrettyOptions, dialect: Dialect, after_packet: bool) -> Self {
        Self {
            options,
            dialect,
            script: PendingText::default(),
            scopes: after_packet,
            names: true,
            hides_roles: false,
            members: Vec::new(),
        }
    }

    fn enumeration(&mut self, builder: &mut ProgramBuilder, register: Reg, meaning: &model::IntegerMeaning, bits: u8) {
        let labels = add_labels(builder, &meaning.mappings, meaning.signed);
        let style = match (self.options.enum_flags, self.options.paint) {
            (false, Paint(false)) => LabelStyle::Pretty,
            (true, Paint(false)) => LabelStyle::PrettyFlags,
            (false, Paint(true)) => LabelStyle::Painted,
            (true, Paint(true)) => LabelStyle::PaintedFlags,
        };
        self.script.literal("( ");
        self.script.emit(builder, Emit::Label { from: register, labels, style });
        self.script.literal(" : container = ");
        self.integer(builder, register, meaning, bits);
        self.script.literal(" )");
    }

    fn integer(&mut self, builder: &mut ProgramBuilder, from: Reg, meaning: &model::IntegerMeaning, bits: u8) {
        let style = pretty_style(meaning.base, bits);
        self.bold(builder, Emit::Integer { from, signed: meaning.signed, style });
    }

    /// Values are bold.
    fn bold(&mut self, builder: &mut ProgramBuilder, emit: Emit) {
        self.script.literal(self.options.paint.start(Tone::Bold));
        self.script.emit(builder, emit);
        self.script.literal(self.options.paint.end());
    }
}

impl Face for PrettyFace<'_> {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        match value {
            FreshValue::Integer { register, width, meaning } if meaning.enumeration => {
                self.enumeration(builder, register, meaning, width.unwrap_or(64));
            }
            FreshValue::Integer { register, width, meaning } => {
                self.integer(builder, register, meaning, width.unwrap_or(64));
            }
            FreshValue::Boolean { register: from } => {
                self.bold(builder, Emit::Integer { from, signed: false, style: IntegerStyle::Boolean });
            }
            FreshValue::BitArray { register: from, width: bits } => {
                let style = IntegerStyle::HexadecimalUpper { bits };
                self.bold(builder, Emit::Integer { from, signed: false, style });
            }
            FreshValue::BitMap { register: from, map } => {
                let labels = add_labels(builder, &map.flags, false);
                self.script.literal("( ");
                let style = if self.options.paint.0 { LabelStyle::Painted } else { LabelStyle::Pretty };
                self.script.emit(builder, Emit::Flags { from, labels, style });
                self.script.literal(" : ");
                let style = IntegerStyle::HexadecimalUpper { bits: map.bits.length as u8 };
                self.bold(builder, Emit::Integer { from, signed: false, style });
                self.script.literal(" )");
            }
            FreshValue::Real { register: from, width } => {
                self.bold(builder, Emit::Real { from, width, style: RealStyle::General });
            }
            FreshValue::Text { start, length, encoding: of } => {
                let text = Emit::Text { start, length, encoding: encoding(of), style: TextStyle::Pretty };
                self.bold(builder, text);
            }
            FreshValue::Blob { start, length } => {
                self.script.literal(format!("{}0x", self.options.paint.start(Tone::Bold)));
                self.script.emit(builder, Emit::Bytes { start, length, style: BytesStyle::Hexadecimal });
                self.script.literal(self.options.paint.end());
            }
        }
    }

    fn structure(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.script.literal("{");
        self.members.push(false);
    }

    fn member(&mut self, _: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        let member = &structure.members[index];
        if self.hides_roles && self.members.len() == 1 && !member.class.roles().is_empty() {
            return false;
        }
        let before = self.members.last_mut().expect("a structure is open");
        self.script.literal(if *before { ", " } else { " " });
        *before = true;
        if self.names {
            let name = model::display_name(self.dialect, &member.name);
            self.script.literal(format!("{} = ", self.options.paint.text(Tone::Cyan, name)));
        }
        true
    }

    fn structure_end(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.members.pop();
        self.script.literal(" }");
    }

    fn array(&mut self, builder: &mut ProgramBuilder, _: NumberSource, _: &FieldClass) {
        self.script.literal("[");
        self.script.flush(builder);
    }

    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        let first = literal_op(builder, b" ");
        let further = literal_op(builder, b", ");
        let arms = vec![(vec![(0, 0)], vec![first])];
        builder.push(Op::Switch { on: index, signed: false, arms, default: Some(vec![further]) });
        if self.names {
            self.script.literal("[");
            self.script.emit(builder, Emit::Integer { from: index, signed: false, style: IntegerStyle::Decimal });
            self.script.literal("] = ");
        }
    }

    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn array_end(&mut self, _: &mut ProgramBuilder) {
        self.script.literal(" ]");
    }

    fn choice(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn present(&mut self, _: &mut ProgramBuilder, _: &Optional) {
        self.script.literal("{ ");
    }

    fn present_end(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.script.literal(" }");
        self.script.flush(builder);
    }

    fn absent(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.script.literal("<none>");
        self.script.flush(builder);
    }

    fn option(&mut self, _: &mut ProgramBuilder, _: &Variant, _: usize) {
        self.script.literal("{ ");
    }

    fn option_end(&mut self, builder: &mut ProgramBuilder, _: &Variant, _: usize) {
        self.script.literal(" }");
        self.script.flush(builder);
    }
}

impl BodyFace for PrettyFace<'_> {
    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        if self.scopes {
            self.script.literal(", ");
        }
        self.scopes = true;
        self.hides_roles = scope == Scope::PacketContext;
        self.names = if scope == Scope::EventPayload { self.options.payload_names } else { self.options.context_names };
        if self.options.scope_names {
            self.script.literal(format!("{} = ", self.options.paint.text(Tone::Bold, scope_name(scope))));
        }
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "trace.packet.header",
        Scope::PacketContext => "stream.packet.context",
        Scope::EventHeader => "stream.event.header",
        Scope::EventCommonContext => "stream.event.context",
        Scope::EventSpecificContext => "event.context",
        Scope::EventPayload => "event.fields",
    }
}
