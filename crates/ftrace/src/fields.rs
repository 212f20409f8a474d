//! Events that are made from values, and not from records.
//!
//! ```
//! use kymo_ftrace::fields::{FieldList, KernelValue};
//! let mut fields = FieldList::default();
//! fields.add("irq", KernelValue::U32(7));
//! fields.add("name", KernelValue::Text("timer"));
//! assert_eq!(fields.bytes(), b"\x07\0\0\0timer\0");
//! ```

use std::borrow::Cow;

use kymo_format::model::{
    DynamicArray, EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedInteger, IntegerRange,
    Member, Scope, Structure, TextEncoding,
};

use crate::plan::{THREAD_NAME, integer, text};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum KernelValue<'a> {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I32(i32),
    I64(i64),
    /// 64 bits that people see in hexadecimal.
    Hex(u64),
    /// Text up to a zero byte.
    Text(&'a str),
    /// The name of a thread, 16 bytes: any bytes up to a zero byte.
    ThreadName(&'a [u8]),
    /// Addresses, with their number before them.
    Addresses(&'a [u64]),
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
enum ValueShape {
    Integer { bytes: u8, is_signed: bool, is_hexadecimal: bool },
    Text,
    ThreadName,
    Addresses,
}

/// Fields with their values.
#[derive(Debug)]
pub struct FieldList {
    members: Vec<(Cow<'static, str>, ValueShape)>,
    bytes: Vec<u8>,
}

impl Default for FieldList {
    fn default() -> Self {
        // Most lists stay as long.
        Self { members: Vec::with_capacity(10), bytes: Vec::with_capacity(96) }
    }
}

impl FieldList {
    /// Adds a field.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, value: KernelValue<'_>) {
        let bytes = &mut self.bytes;
        let shape = match value {
            KernelValue::U8(value) => put(bytes, &value.to_le_bytes(), false, false),
            KernelValue::U16(value) => put(bytes, &value.to_le_bytes(), false, false),
            KernelValue::U32(value) => put(bytes, &value.to_le_bytes(), false, false),
            KernelValue::U64(value) => put(bytes, &value.to_le_bytes(), false, false),
            KernelValue::I32(value) => put(bytes, &value.to_le_bytes(), true, false),
            KernelValue::I64(value) => put(bytes, &value.to_le_bytes(), true, false),
            KernelValue::Hex(value) => put(bytes, &value.to_le_bytes(), false, true),
            KernelValue::Text(text) => {
                // The first zero byte ends a text.
                bytes.extend(text.bytes().take_while(|byte| *byte != 0));
                bytes.push(0);
                ValueShape::Text
            }
            KernelValue::ThreadName(name) => {
                let end = bytes.len() + THREAD_NAME;
                bytes.extend(name.iter().take_while(|byte| **byte != 0).take(THREAD_NAME - 1));
                bytes.resize(end, 0);
                ValueShape::ThreadName
            }
            KernelValue::Addresses(all) => {
                bytes.extend_from_slice(&(all.len() as u32).to_le_bytes());
                bytes.extend(all.iter().flat_map(|address| address.to_le_bytes()));
                ValueShape::Addresses
            }
        };
        self.members.push((name.into(), shape));
    }

    /// The bytes of all fields.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The structure of all fields. Making it takes longer than adding them: it is needed once for each event class.
    #[must_use]
    pub fn class(&self) -> FieldClass {
        self.class_with_labels(&[])
    }

    /// The same, where values of an integer have these names, the first one of 0.
    #[must_use]
    pub fn class_with_names(&self, of: &str, names: &[String]) -> FieldClass {
        let names: Vec<(String, i64)> = names.iter().cloned().zip(0..).collect();
        self.class_with_labels(&[(of, &names)])
    }

    /// The same, where values of these integers have names.
    #[must_use]
    pub fn class_with_labels(&self, labels: &[(&str, &[(String, i64)])]) -> FieldClass {
        let mut members: Vec<Member> = Vec::with_capacity(self.members.len());
        for (name, shape) in &self.members {
            let mut class = match *shape {
                ValueShape::Integer { bytes, is_signed, is_hexadecimal } => integer(bytes, is_signed, is_hexadecimal),
                ValueShape::Text => FieldClass::new(FieldKind::NullTerminatedText(TextEncoding::Utf8)),
                ValueShape::ThreadName => FieldClass::new(text(THREAD_NAME as u64)),
                ValueShape::Addresses => {
                    let length = Member { name: format!("_{name}_length"), class: integer(4, false, false) };
                    members.push(length);
                    addresses_behind(members.len() - 1)
                }
            };
            if let Some((_, labels)) = labels.iter().find(|(of, _)| name == of) {
                set_labels(&mut class, labels);
            }
            members.push(Member { name: name.clone().into_owned(), class });
        }
        let structure = Structure { members, minimum_alignment: 8 };
        FieldClass::new(FieldKind::Structure(structure))
    }
}

/// Addresses, of which a member tells the number.
fn addresses_behind(length: usize) -> FieldClass {
    let length = FieldPath { scope: Scope::EventPayload, steps: vec![FieldPathStep::Member(length)] };
    let element = Box::new(integer(8, false, true));
    FieldClass::new(FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment: 8 }))
}

fn set_labels(class: &mut FieldClass, labels: &[(String, i64)]) {
    if let FieldKind::Integer(FixedInteger { meaning, .. }) = &mut class.kind {
        let mapping = |(label, value): &(String, i64)| {
            let ranges = vec![IntegerRange { lower: (*value).into(), upper: (*value).into() }];
            EnumerationMapping { label: label.clone(), ranges }
        };
        meaning.mappings = labels.iter().map(mapping).collect();
        meaning.enumeration = true;
    }
}

fn put(into: &mut Vec<u8>, value: &[u8], is_signed: bool, is_hexadecimal: bool) -> ValueShape {
    into.extend_from_slice(value);
    ValueShape::Integer { bytes: value.len() as u8, is_signed, is_hexadecimal }
}
