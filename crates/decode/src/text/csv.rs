//! One line per event, as RFC 4180 has it: a cell for each field where all events have the same fields, one cell
//! with a JSON object otherwise.
//!
//! ```text
//! 1376592664828559410,…,t,0,sched_switch,3,"a,b","[1,2]"        a structure's members are cells of their own,
//! └─ of the caller ──────┘ └ per class ─┘└── program ───┘       lists, optionals and variants are JSON
//! ```
//!
//! A program writes JSON between two marks that neither JSON nor an unquoted cell can have; when
//! the line is complete, the text between them is quoted.

use kymo_format::model::{self, Dialect, FieldClass, Optional, Scope, Structure, Variant};
use kymo_ir::{BytesStyle, Emit, IntegerStyle, LabelStyle, NumberSource, RealStyle, Reg, TextStyle};

use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::plan::BodyFace;
use crate::text::json::{JsonFace, is_hidden};
use crate::text::script::{add_labels, encoding};

/// Before JSON.
pub(crate) const OPEN: u8 = 0x1e;
/// Behind JSON.
pub(crate) const CLOSE: u8 = 0x1f;

/// Quotes the JSON in the text appended to a line.
pub(crate) fn quote(out: &mut Vec<u8>, start: usize) {
    if !out[start..].contains(&OPEN) {
        return;
    }
    let line = out.split_off(start);
    let (mut quoted, mut json) = (false, false);
    for byte in line {
        match byte {
            OPEN | CLOSE if !quoted => {
                json = byte == OPEN;
                out.push(b'"');
            }
            b'"' if json => out.extend_from_slice(b"\"\""),
            _ => {
                quoted ^= byte == b'"';
                out.push(byte);
            }
        }
    }
}

/// A cell as it is written.
pub(crate) fn cell(out: &mut Vec<u8>, text: &str) {
    kymo_ir::emit::text(out, text.as_bytes(), kymo_ir::Encoding::Utf8, TextStyle::Csv);
}

/// Writes a cell for each field.
pub(crate) struct FlatFace {
    dialect: Dialect,
    /// Writes fields that are not flat; has the script of both.
    json: JsonFace,
    hides_roles: bool,
    /// Names that lead to the field that follows.
    path: Vec<String>,
    /// Lists and choices around it.
    nested: usize,
    /// Names of the cells.
    pub(crate) columns: Vec<String>,
}

impl FlatFace {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let json = JsonFace::new(dialect);
        Self { dialect, json, hides_roles: false, path: Vec::new(), nested: 0, columns: Vec::new() }
    }

    fn begin_cell(&mut self, suffix: &str) {
        self.columns.push(self.path.join(".") + suffix);
        self.json.script.literal(",");
    }

    /// A list or a choice begins.
    fn nest(&mut self) {
        if self.nested == 0 {
            self.begin_cell("");
            self.json.script.literal([OPEN]);
        }
        self.nested += 1;
    }

    fn unnest(&mut self) {
        self.nested -= 1;
        if self.nested == 0 {
            self.json.script.literal([CLOSE]);
        }
    }

    fn labelled(&mut self, builder: &mut ProgramBuilder, from: Reg, signed: bool, label: Emit) {
        self.begin_cell("");
        self.json.script.emit(builder, Emit::Integer { from, signed, style: IntegerStyle::Decimal });
        self.begin_cell(".labels");
        self.json.script.literal([OPEN]);
        self.json.script.emit(builder, label);
        self.json.script.literal([CLOSE]);
    }
}

impl Face for FlatFace {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        if self.nested > 0 {
            return self.json.value(builder, value);
        }
        match value {
            FreshValue::Integer { register: from, meaning, .. } if meaning.enumeration => {
                let labels = add_labels(builder, &meaning.mappings, meaning.signed);
                let label = Emit::Label { from, labels, style: LabelStyle::Json };
                return self.labelled(builder, from, meaning.signed, label);
            }
            FreshValue::BitMap { register: from, map } => {
                let labels = add_labels(builder, &map.flags, false);
                let label = Emit::Flags { from, labels, style: LabelStyle::Json };
                return self.labelled(builder, from, false, label);
            }
            _ => self.begin_cell(""),
        }
        let emit = match value {
            FreshValue::Real { register: from, width } => Emit::Real { from, width, style: RealStyle::Shortest },
            FreshValue::Text { start, length, encoding: of } => {
                Emit::Text { start, length, encoding: encoding(of), style: TextStyle::Csv }
            }
            FreshValue::Blob { start, length } => Emit::Bytes { start, length, style: BytesStyle::Hexadecimal },
            _ => return self.json.value(builder, value),
        };
        self.json.script.emit(builder, emit);
    }

    fn structure(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        if self.nested > 0 {
            return self.json.structure(builder, structure);
        }
        self.path.push(String::new());
    }

    fn member(&mut self, builder: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        if self.nested > 0 {
            return self.json.member(builder, structure, index);
        }
        let name = model::display_name(self.dialect, &structure.members[index].name);
        let depth = self.path.iter().filter(|part| !SCOPES.contains(&part.as_str())).count();
        *self.path.last_mut().expect("a structure is open") = name.to_owned();
        !is_hidden(self.hides_roles, depth, structure, index)
    }

    fn structure_end(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        if self.nested > 0 {
            return self.json.structure_end(builder, structure);
        }
        self.path.pop();
    }

    fn array(&mut self, builder: &mut ProgramBuilder, count: NumberSource, element: &FieldClass) {
        self.nest();
        self.json.array(builder, count, element);
    }

    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        self.json.element(builder, index);
    }

    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        self.json.element_end(builder);
    }

    fn array_end(&mut self, builder: &mut ProgramBuilder) {
        self.json.array_end(builder);
        self.unnest();
    }

    fn choice(&mut self, builder: &mut ProgramBuilder) {
        self.nest();
        self.json.choice(builder);
    }

    fn present_end(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        self.json.present_end(builder, optional);
    }

    fn absent(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        self.json.absent(builder, optional);
    }

    fn option_end(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        self.json.option_end(builder, variant, index);
    }

    fn choice_end(&mut self, _: &mut ProgramBuilder) {
        self.unnest();
    }
}

const SCOPES: [&str; 5] = ["packet_header", "packet_context", "header", "common_context", "context"];

impl BodyFace for FlatFace {
    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        self.hides_roles = scope == Scope::PacketContext;
        self.path.clear();
        self.path.extend(match scope {
            Scope::PacketHeader => Some(SCOPES[0].to_owned()),
            Scope::PacketContext => Some(SCOPES[1].to_owned()),
            Scope::EventHeader => Some(SCOPES[2].to_owned()),
            Scope::EventCommonContext => Some(SCOPES[3].to_owned()),
            Scope::EventSpecificContext => Some(SCOPES[4].to_owned()),
            Scope::EventPayload => None,
        });
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        self.json.script.flush(builder);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{CLOSE, OPEN, cell, quote};

    #[test]
    fn json_is_quoted_and_text_is_left() {
        let mut line = b"before".to_vec();
        cell(&mut line, "a\u{1e}\"b");
        line.extend_from_slice(&[b',', OPEN]);
        line.extend_from_slice(br#"["x","\u001e"]"#);
        line.extend_from_slice(&[CLOSE, b',', b'1']);
        quote(&mut line, 6);
        let expected = "before\"a\u{1e}\"\"b\",\"[\"\"x\"\",\"\"\\u001e\"\"]\",1";
        assert_eq!(String::from_utf8(line).expect("it is UTF-8"), expected);
    }
}
