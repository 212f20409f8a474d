//! The kernel's descriptions of its events: files `format` of tracefs.
//!
//! ```
//! use kymo_ftrace::format::{EventFormat, FormatShape};
//! let text = "name: softirq_entry\nID: 223\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
//!     \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\n\
//!     print fmt: \"vec=%u\", REC->vec\n";
//! let format = EventFormat::parse("irq", text).unwrap();
//! assert_eq!((format.id, format.fields[0].name.as_str(), format.fields[0].shape), (223, "vec", FormatShape::Scalar));
//! ```

use crate::print::PrintFacts;

/// Fields of an event at most: more are no description of an event.
const FIELDS_MAX: usize = 256;
/// Bytes of a record at most.
const RECORD_MAX: u32 = 1 << 16;

/// An event of the kernel, as it lies in the ring buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The subsystem, such as `sched`.
    pub system: String,
    /// Its name.
    pub name: String,
    /// The number in its records.
    pub id: u16,
    /// Fields that all events have.
    pub common: Vec<FormatField>,
    /// Its fields.
    pub fields: Vec<FormatField>,
    /// Names of values.
    pub print: PrintFacts,
}

/// A field, as it lies in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatField {
    /// Its name.
    pub name: String,
    /// Its type in C, or that of its elements.
    pub type_name: String,
    /// Where it begins, in bytes.
    pub offset: u32,
    /// Bytes of it in the fixed part of the record.
    pub size: u32,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Its shape.
    pub shape: FormatShape,
}

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatShape {
    /// One value.
    Scalar,
    /// So many elements.
    Array(u32),
    /// A number tells where elements are: its upper half how many bytes, its lower half where, from the record's begin.
    Located,
    /// The same, from the end of this field.
    LocatedBehind,
}

/// An error in a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct FormatProblem {
    /// The line, from 1.
    pub line: usize,
    /// The kind of error.
    pub kind: FormatProblemKind,
}

/// The kind of error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatProblemKind {
    /// A line that must be there is not.
    #[error("there is no line `{0}`")]
    Missing(&'static str),
    /// A number is expected.
    #[error("`{0}` is no number")]
    Number(String),
    /// A field is not described as fields are.
    #[error("`{0}` describes no field")]
    Field(String),
    /// A field lies behind the largest record.
    #[error("the field `{0}` is outside of any record")]
    Outside(String),
    /// Too many fields.
    #[error("more than {FIELDS_MAX} fields")]
    TooMany,
}

impl EventFormat {
    /// Reads a description.
    ///
    /// # Errors
    ///
    /// The first line that is not as the kernel writes it.
    pub fn parse(system: &str, text: &str) -> Result<Self, FormatProblem> {
        let mut format = Self {
            system: system.to_owned(),
            name: String::new(),
            id: 0,
            common: Vec::new(),
            fields: Vec::new(),
            print: PrintFacts::default(),
        };
        let mut has_id = false;
        for (number, line) in text.lines().enumerate() {
            let at = |kind| FormatProblem { line: number + 1, kind };
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("name: ") {
                name.clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID: ") {
                format.id = id.parse().map_err(|_| at(FormatProblemKind::Number(id.to_owned())))?;
                has_id = true;
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                let field = FormatField::parse(field).map_err(at)?;
                let is_common = field.name.starts_with("common_");
                let fields = if is_common { &mut format.common } else { &mut format.fields };
                if fields.len() == FIELDS_MAX {
                    return Err(at(FormatProblemKind::TooMany));
                }
                fields.push(field);
            } else if let Some(line) = line.strip_prefix("print fmt:") {
                format.print = PrintFacts::read(line);
                break;
            }
        }
        let missing =
            |what| FormatProblem { line: text.lines().count().max(1), kind: FormatProblemKind::Missing(what) };
        match (format.name.is_empty(), has_id) {
            (true, _) => Err(missing("name: ...")),
            (_, false) => Err(missing("ID: ...")),
            _ => Ok(format),
        }
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl FormatField {
    /// Reads a line behind `field:`.
    pub(crate) fn parse(line: &str) -> Result<Self, FormatProblemKind> {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next().unwrap_or("");
        let (mut offset, mut size, mut is_signed) = (None, None, false);
        for part in parts.filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once(':') else {
                return Err(FormatProblemKind::Field(line.to_owned()));
            };
            let value: u32 = value.parse().map_err(|_| FormatProblemKind::Number(value.to_owned()))?;
            match key {
                "offset" => offset = Some(value),
                "size" => size = Some(value),
                "signed" => is_signed = value != 0,
                _ => {}
            }
        }
        let (Some(offset), Some(size)) = (offset, size) else { return Err(FormatProblemKind::Field(line.to_owned())) };
        let (type_name, name, shape) =
            declaration(declared, size).ok_or_else(|| FormatProblemKind::Field(line.to_owned()))?;
        if offset > RECORD_MAX || size > RECORD_MAX - offset {
            return Err(FormatProblemKind::Outside(name));
        }
        Ok(Self { name, type_name, offset, size, is_signed, shape })
    }

    /// Its elements are characters.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.type_name == "char" || self.type_name == "const char"
    }

    /// It is an address.
    #[must_use]
    pub fn is_pointer(&self) -> bool {
        self.type_name.ends_with('*') || self.type_name.contains("(*")
    }

    /// Bytes of an element: of a scalar, its own.
    #[must_use]
    pub fn element_bytes(&self) -> u32 {
        match self.shape {
            FormatShape::Scalar => self.size,
            FormatShape::Array(count) => self.size / count.max(1),
            FormatShape::Located | FormatShape::LocatedBehind => c_bytes(&self.type_name),
        }
    }
}

/// The type, the name and the shape of a declaration of C.
fn declaration(declared: &str, size: u32) -> Option<(String, String, FormatShape)> {
    let (declared, located) = match declared.split_once(' ') {
        Some(("__data_loc", rest)) => (rest.trim(), Some(FormatShape::Located)),
        Some(("__rel_loc", rest)) => (rest.trim(), Some(FormatShape::LocatedBehind)),
        _ => (declared, None),
    };
    if let Some(shape) = located {
        // `char[] name`
        let (element, name) = declared.rsplit_once(' ')?;
        let element = element.trim().strip_suffix("[]").unwrap_or(element).trim();
        return named(element, name).map(|(element, name)| (element, name, shape));
    }
    if let Some((before, count)) = declared.strip_suffix(']').and_then(|declared| declared.rsplit_once('[')) {
        let (element, name) = type_and_name(before.trim())?;
        let bytes = c_bytes(&element);
        // The number may be the name of a constant.
        let count = count.trim().parse().ok().filter(|count| *count > 0 && size.is_multiple_of(*count));
        let count = count.or_else(|| size.is_multiple_of(bytes).then_some(size / bytes)).unwrap_or(size);
        return Some((element, name, FormatShape::Array(count)));
    }
    if let Some((before, behind)) = declared.split_once("(*") {
        // A pointer to a function.
        let name = behind.split(')').next()?.trim();
        return named(&format!("{before}(*)"), name).map(|(kind, name)| (kind, name, FormatShape::Scalar));
    }
    let (kind, name) = type_and_name(declared)?;
    let is_value = matches!(size, 1 | 2 | 4 | 8);
    Some((kind, name, if is_value { FormatShape::Scalar } else { FormatShape::Array(size) }))
}

fn type_and_name(declared: &str) -> Option<(String, String)> {
    let begin = declared.rfind([' ', '*', '\t'])? + 1;
    let (kind, name) = declared.split_at(begin);
    named(kind.trim(), name)
}

fn named(kind: &str, name: &str) -> Option<(String, String)> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (!name.is_empty() && !kind.is_empty() && is_name(name)).then(|| (kind.to_owned(), name.to_owned()))
}

/// Bytes of a type of C; 1 if it is not known, so that its bytes are shown.
fn c_bytes(name: &str) -> u32 {
    if name.ends_with('*') {
        return 8;
    }
    let last = name.rsplit(' ').next().unwrap_or(name);
    match last {
        "short" | "u16" | "__u16" | "s16" | "__s16" | "uint16_t" | "int16_t" | "__be16" | "__le16" => 2,
        "int" | "unsigned" | "u32" | "__u32" | "s32" | "__s32" | "uint32_t" | "int32_t" | "__be32" | "__le32"
        | "pid_t" | "gfp_t" | "dev_t" => 4,
        "long" | "u64" | "__u64" | "s64" | "__s64" | "uint64_t" | "int64_t" | "size_t" | "ssize_t" | "loff_t"
        | "sector_t" => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> FormatField {
        FormatField::parse(text).expect("it is one")
    }

    #[test]
    fn declarations_of_all_shapes() {
        let text = field("char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;");
        assert_eq!((text.shape, text.is_text(), text.element_bytes()), (FormatShape::Array(16), true, 1));
        let named = field("char comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;");
        assert_eq!(named.shape, FormatShape::Array(16));
        let numbers = field("unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;");
        assert_eq!((numbers.shape, numbers.element_bytes()), (FormatShape::Array(6), 8));
        let located = field("__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;");
        assert_eq!((located.name.as_str(), located.shape, located.is_text()), ("filename", FormatShape::Located, true));
        let behind = field("__rel_loc u32[] cpus;\toffset:8;\tsize:4;\tsigned:0;");
        assert_eq!((behind.shape, behind.element_bytes()), (FormatShape::LocatedBehind, 4));
        let pointer = field("const char * filename;\toffset:24;\tsize:8;\tsigned:0;");
        assert_eq!(
            (pointer.name.as_str(), pointer.is_pointer(), pointer.shape),
            ("filename", true, FormatShape::Scalar)
        );
        let function = field("void (*function)(void *);\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!((function.name.as_str(), function.is_pointer()), ("function", true));
        let structure = field("struct foo bar;\toffset:8;\tsize:24;\tsigned:0;");
        assert_eq!((structure.shape, structure.element_bytes()), (FormatShape::Array(24), 1));
    }

    #[test]
    fn what_is_no_description_is_told_with_its_line() {
        let of = |text: &str| EventFormat::parse("sched", text).expect_err("it is none").to_string();
        assert_eq!(of("name: a\nID: x\n"), "line 2: `x` is no number");
        assert_eq!(of("name: a\n"), "line 1: there is no line `ID: ...`");
        assert_eq!(
            of("name: a\nID: 1\n\tfield:int;\toffset:0;\tsize:4;\n"),
            "line 3: `int;\toffset:0;\tsize:4;` describes no field"
        );
        assert_eq!(
            of("name: a\nID: 1\n\tfield:int b;\toffset:70000;\tsize:4;\n"),
            "line 3: the field `b` is outside of any record"
        );
    }
}
