//! One JSON object per event, one event per line; every number is exact.
//!
//! ```text
//! {"time":1376592664828559410,"cycles":…,"trace":"t","stream":0,"event":"n","id":5,"payload":{"a":1,"b":"x"}}
//! └──────── of the caller, per stream and event ───────────────┘└ per class ───┘└──────── program ────────┘
//! ```
//!
//! An integer is a number; an enumeration is `{"value":3,"labels":["a"]}`; a bit map likewise; a
//! blob is a string of hexadecimal digits; an empty optional is `null`; a variant is the value of
//! its option.

use kymo_format::model::{self, Dialect, EventRecordClass, FieldClass, Optional, Scope, Structure, Variant};
use kymo_ir::{BytesStyle, Emit, IntegerStyle, LabelStyle, NumberSource, Op, RealStyle, Reg, TextStyle};

use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::plan::BodyFace;
use crate::text::script::{PendingText, add_labels, encoding, literal_op};

/// The text before the fields.
pub(crate) fn head(event: &EventRecordClass) -> Vec<u8> {
    let mut head = Vec::new();
    if let Some(name) = &event.name {
        head.extend_from_slice(b"\"event\":");
        kymo_ir::emit::text(&mut head, name.as_bytes(), kymo_ir::Encoding::Utf8, TextStyle::Json);
        head.push(b',');
    }
    head.extend_from_slice(format!("\"id\":{}", event.id).as_bytes());
    head
}

/// Writes the fields of an event, or of a packet's context.
pub(crate) struct JsonFace {
    dialect: Dialect,
    pub(crate) script: PendingText,
    hides_roles: bool,
    /// For each open structure, whether a member was written.
    members: Vec<bool>,
}

impl JsonFace {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, script: PendingText::default(), hides_roles: false, members: Vec::new() }
    }

    fn string(&mut self, text: &str) {
        let mut string = Vec::new();
        kymo_ir::emit::text(&mut string, text.as_bytes(), kymo_ir::Encoding::Utf8, TextStyle::Json);
        self.script.literal(string);
    }

    fn integer(&mut self, builder: &mut ProgramBuilder, from: Reg, signed: bool) {
        self.script.emit(builder, Emit::Integer { from, signed, style: IntegerStyle::Decimal });
    }
}

/// In packets' contexts, fields with a role are for readers of packets.
pub(crate) fn is_hidden(hides_roles: bool, depth: usize, structure: &Structure, index: usize) -> bool {
    hides_roles && depth == 1 && !structure.members[index].class.roles().is_empty()
}

impl Face for JsonFace {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        match value {
            FreshValue::Integer { register, meaning, .. } if meaning.enumeration => {
                let labels = add_labels(builder, &meaning.mappings, meaning.signed);
                self.script.literal("{\"value\":");
                self.integer(builder, register, meaning.signed);
                self.script.literal(",\"labels\":");
                self.script.emit(builder, Emit::Label { from: register, labels, style: LabelStyle::Json });
                self.script.literal("}");
            }
            FreshValue::Integer { register, meaning, .. } => self.integer(builder, register, meaning.signed),
            FreshValue::Boolean { register: from } => {
                self.script.emit(builder, Emit::Integer { from, signed: false, style: IntegerStyle::Boolean });
            }
            FreshValue::BitArray { register, .. } => self.integer(builder, register, false),
            FreshValue::BitMap { register: from, map } => {
                let labels = add_labels(builder, &map.flags, false);
                self.script.literal("{\"value\":");
                self.integer(builder, from, false);
                self.script.literal(",\"labels\":");
                self.script.emit(builder, Emit::Flags { from, labels, style: LabelStyle::Json });
                self.script.literal("}");
            }
            FreshValue::Real { register: from, width } => {
                self.script.emit(builder, Emit::Real { from, width, style: RealStyle::Json });
            }
            FreshValue::Text { start, length, encoding: of } => {
                let text = Emit::Text { start, length, encoding: encoding(of), style: TextStyle::Json };
                self.script.emit(builder, text);
            }
            FreshValue::Blob { start, length } => {
                self.script.literal("\"");
                self.script.emit(builder, Emit::Bytes { start, length, style: BytesStyle::Hexadecimal });
                self.script.literal("\"");
            }
        }
    }

    fn structure(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.script.literal("{");
        self.members.push(false);
    }

    fn member(&mut self, _: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        if is_hidden(self.hides_roles, self.members.len(), structure, index) {
            return false;
        }
        let before = self.members.last_mut().expect("a structure is open");
        if std::mem::replace(before, true) {
            self.script.literal(",");
        }
        self.string(model::display_name(self.dialect, &structure.members[index].name));
        self.script.literal(":");
        true
    }

    fn structure_end(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.members.pop();
        self.script.literal("}");
    }

    fn array(&mut self, builder: &mut ProgramBuilder, _: NumberSource, _: &FieldClass) {
        self.script.literal("[");
        self.script.flush(builder);
    }

    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        let further = literal_op(builder, b",");
        let arms = vec![(vec![(0, 0)], Vec::new())];
        builder.push(Op::Switch { on: index, signed: false, arms, default: Some(vec![further]) });
    }

    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn array_end(&mut self, _: &mut ProgramBuilder) {
        self.script.literal("]");
    }

    fn choice(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn present_end(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.script.flush(builder);
    }

    fn absent(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        self.script.literal("null");
        self.script.flush(builder);
    }

    fn option_end(&mut self, builder: &mut ProgramBuilder, _: &Variant, _: usize) {
        self.script.flush(builder);
    }
}

impl BodyFace for JsonFace {
    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        self.hides_roles = scope == Scope::PacketContext;
        self.script.literal(match scope {
            Scope::PacketHeader => ",\"packet_header\":",
            Scope::PacketContext => ",\"packet_context\":",
            Scope::EventHeader => ",\"header\":",
            Scope::EventCommonContext => ",\"common_context\":",
            Scope::EventSpecificContext => ",\"context\":",
            Scope::EventPayload => ",\"payload\":",
        });
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        self.script.flush(builder);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
