//! All contents of a trace, one message a block, byte for byte as Babeltrace 2.1's
//! `sink.text.details`.
//!
//! ```text
//! Trace class:                                       once per trace: `classes`
//!   Stream class (ID 0):
//!
//! [1,017 cycles, 1,457,111,225,177,517,006 ns from origin]     of the caller: when
//! {Trace 0, Stream class ID 0, Stream ID 2}                    of the caller: where
//! Event `sched_switch` (Class ID 35):                          per event class: `head`
//!   Payload:                                                   ┐
//!     prev_tid: 4,297                                          ┘ program: `DetailsFace`
//! ```
//!
//! Blobs and maps of bits, unknown to every version available for comparison, have the same form.
//! The depth of a field is known from its class, so indentation is literal text of the program.

mod classes;

use kymo_format::model::{
    self, Dialect, DisplayBase, EventRecordClass, FieldClass, IntegerMeaning, Optional, Scope, Structure,
};
use kymo_ir::{BytesStyle, Emit, IntegerStyle, NumberSource, Op, RealStyle, Reg, TextStyle};

use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::plan::BodyFace;
use crate::text::json::is_hidden;
use crate::text::paint::{Paint, Tone};
use crate::text::script::{PendingText, encoding, literal_op};

pub use classes::{ClockFacts, StreamTraits, trace_class};

/// A number as people read it: `12,345`.
#[must_use]
pub fn grouped(value: i64) -> String {
    number(value as u64, true)
}

/// The same, without a sign.
#[must_use]
pub fn grouped_unsigned(value: u64) -> String {
    number(value, false)
}

fn number(value: u64, signed: bool) -> String {
    let mut text = Vec::new();
    kymo_ir::emit::integer(&mut text, value, signed, IntegerStyle::Grouped);
    String::from_utf8_lossy(&text).into_owned()
}

/// The text before the fields of an event.
pub(crate) fn head(event: &EventRecordClass, paint: Paint) -> Vec<u8> {
    let mut head = paint.text(Tone::BrightYellow, "Event");
    if let Some(name) = &event.name {
        head += &format!(" `{}`", paint.text(Tone::Green, name));
    }
    let id = paint.text(Tone::Bold, &grouped_unsigned(event.id));
    head += &format!(" (Class ID {id}):\n");
    head.into_bytes()
}

/// Writes the fields of an event, or of a packet's context.
pub(crate) struct DetailsFace {
    dialect: Dialect,
    paint: Paint,
    script: PendingText,
    hides_roles: bool,
    /// Open structures.
    structures: usize,
    /// Spaces before a name.
    indent: usize,
}

impl DetailsFace {
    pub(crate) fn new(dialect: Dialect, paint: Paint) -> Self {
        Self { dialect, paint, script: PendingText::default(), hides_roles: false, structures: 0, indent: 2 }
    }

    fn line(&mut self) {
        let indent = self.indent;
        self.script.literal(format!("\n{:indent$}", ""));
    }

    fn none(&mut self, what: &str) {
        let text = self.paint.text(Tone::BrightMagenta, what);
        self.script.literal(format!(" {text}"));
    }

    /// A value, which is bold.
    fn emit(&mut self, builder: &mut ProgramBuilder, emit: Emit) {
        self.script.literal(format!(" {}", self.paint.start(Tone::Bold)));
        self.script.emit(builder, emit);
        self.script.literal(self.paint.end());
    }

    /// A boolean is green or red.
    fn boolean(&mut self, builder: &mut ProgramBuilder, on: Reg) {
        self.script.flush(builder);
        let [no, yes] = [(Tone::BrightRed, "No"), (Tone::BrightGreen, "Yes")]
            .map(|(tone, text)| literal_op(builder, format!(" {}", self.paint.text(tone, text)).as_bytes()));
        let arms = vec![(vec![(0, 0)], vec![no])];
        builder.push(Op::Switch { on, signed: false, arms, default: Some(vec![yes]) });
    }

    /// ` Length 3:`, or that there is nothing.
    fn length(&mut self, builder: &mut ProgramBuilder, count: Reg) {
        self.script.flush(builder);
        let empty = format!(" {}", self.paint.text(Tone::BrightMagenta, "Empty"));
        let empty = literal_op(builder, empty.as_bytes());
        let before = literal_op(builder, format!(" Length {}", self.paint.start(Tone::Bold)).as_bytes());
        let after = literal_op(builder, format!("{}:", self.paint.end()).as_bytes());
        let number = Op::Emit(Emit::Integer { from: count, signed: false, style: IntegerStyle::Grouped });
        let arms = vec![(vec![(0, 0)], vec![empty])];
        builder.push(Op::Switch { on: count, signed: false, arms, default: Some(vec![before, number, after]) });
    }
}

fn integer_style(meaning: &IntegerMeaning) -> IntegerStyle {
    match meaning.base {
        DisplayBase::Decimal => IntegerStyle::Grouped,
        DisplayBase::Octal => IntegerStyle::GroupedOctal,
        DisplayBase::Hexadecimal | DisplayBase::Binary => IntegerStyle::GroupedHexadecimal,
    }
}

impl Face for DetailsFace {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        let emit = match value {
            FreshValue::Integer { register: from, meaning, .. } => {
                Emit::Integer { from, signed: meaning.signed, style: integer_style(meaning) }
            }
            FreshValue::Boolean { register } => return self.boolean(builder, register),
            FreshValue::BitArray { register: from, .. } | FreshValue::BitMap { register: from, .. } => {
                Emit::Integer { from, signed: false, style: IntegerStyle::GroupedHexadecimal }
            }
            FreshValue::Real { register: from, width } => Emit::Real { from, width, style: RealStyle::Fixed },
            FreshValue::Text { start, length, encoding: of } => {
                Emit::Text { start, length, encoding: encoding(of), style: TextStyle::Raw }
            }
            FreshValue::Blob { start, length } => Emit::Bytes { start, length, style: BytesStyle::Hexadecimal },
        };
        self.emit(builder, emit);
    }

    fn structure(&mut self, _: &mut ProgramBuilder, structure: &Structure) {
        self.structures += 1;
        self.indent += 2;
        let shown = |index: &usize| !is_hidden(self.hides_roles, self.structures, structure, *index);
        if !(0..structure.members.len()).any(|index| shown(&index)) {
            self.none("Empty");
        }
    }

    fn member(&mut self, _: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        if is_hidden(self.hides_roles, self.structures, structure, index) {
            return false;
        }
        self.line();
        let name = model::display_name(self.dialect, &structure.members[index].name);
        self.script.literal(format!("{}:", self.paint.text(Tone::Cyan, name)));
        true
    }

    fn structure_end(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.structures -= 1;
        self.indent -= 2;
    }

    fn array(&mut self, builder: &mut ProgramBuilder, count: NumberSource, _: &FieldClass) {
        match count {
            NumberSource::Constant(0) => self.none("Empty"),
            NumberSource::Constant(count) => {
                let count = self.paint.text(Tone::Bold, &grouped_unsigned(count));
                self.script.literal(format!(" Length {count}:"));
            }
            NumberSource::Register(count) => self.length(builder, count),
        }
        self.script.flush(builder);
        self.indent += 2;
    }

    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        self.line();
        self.script.literal(format!("{}[", self.paint.start(Tone::Cyan)));
        self.script.emit(builder, Emit::Integer { from: index, signed: false, style: IntegerStyle::Grouped });
        self.script.literal(format!("]{}:", self.paint.end()));
    }

    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn array_end(&mut self, _: &mut ProgramBuilder) {
        self.indent -= 2;
    }

    fn choice(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn present_end(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.script.flush(builder);
    }

    fn absent(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.none("None");
        self.script.flush(builder);
    }

    fn option_end(&mut self, builder: &mut ProgramBuilder, _: &model::Variant, _: usize) {
        self.script.flush(builder);
    }
}

impl BodyFace for DetailsFace {
    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        self.hides_roles = scope == Scope::PacketContext;
        let name = match scope {
            Scope::PacketHeader => "Header",
            Scope::PacketContext => "Context",
            Scope::EventHeader => "Event header",
            Scope::EventCommonContext => "Common context",
            Scope::EventSpecificContext => "Specific context",
            Scope::EventPayload => "Payload",
        };
        self.script.literal(format!("  {}:", self.paint.text(Tone::Magenta, name)));
    }

    fn scope_end(&mut self, _: &mut ProgramBuilder) {
        self.script.literal("\n");
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
