//! Events that are made from values, and not from records.
//!
//! ```
//! use kymo_ftrace::fields::{FieldList, KernelValue};
//! let mut fields = FieldList::default();
//! fields.add("irq", KernelValue::U32(7));
//! fields.add("name", KernelValue::Text("timer"));
//! assert_eq!(fields.finish().1, b"\x07\0\0\0timer\0");
//! ```

use kymo_format::model::{FieldClass, FieldKind, Member, Structure, TextEncoding};

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
    /// Text up to a zero byte.
    Text(&'a str),
    /// The name of a thread, 16 bytes.
    ThreadName(&'a str),
}

/// Fields with their values.
#[derive(Debug, Default)]
pub struct FieldList {
    members: Vec<Member>,
    bytes: Vec<u8>,
}

impl FieldList {
    /// Adds a field.
    pub fn add(&mut self, name: &str, value: KernelValue<'_>) {
        let bytes = &mut self.bytes;
        let class = match value {
            KernelValue::U8(value) => put(bytes, &value.to_le_bytes(), false),
            KernelValue::U16(value) => put(bytes, &value.to_le_bytes(), false),
            KernelValue::U32(value) => put(bytes, &value.to_le_bytes(), false),
            KernelValue::U64(value) => put(bytes, &value.to_le_bytes(), false),
            KernelValue::I32(value) => put(bytes, &value.to_le_bytes(), true),
            KernelValue::Text(text) => {
                // The first zero byte ends a text.
                bytes.extend(text.bytes().take_while(|byte| *byte != 0));
                bytes.push(0);
                FieldClass::new(FieldKind::NullTerminatedText(TextEncoding::Utf8))
            }
            KernelValue::ThreadName(name) => {
                let end = bytes.len() + THREAD_NAME;
                bytes.extend(name.bytes().take(THREAD_NAME - 1));
                bytes.resize(end, 0);
                FieldClass::new(text(THREAD_NAME as u64))
            }
        };
        self.members.push(Member { name: name.to_owned(), class });
    }

    /// The structure of all fields, and their bytes.
    #[must_use]
    pub fn finish(self) -> (FieldClass, Vec<u8>) {
        let structure = Structure { members: self.members, minimum_alignment: 8 };
        (FieldClass::new(FieldKind::Structure(structure)), self.bytes)
    }
}

fn put(bytes: &mut Vec<u8>, value: &[u8], is_signed: bool) -> FieldClass {
    bytes.extend_from_slice(value);
    integer(value.len() as u8, is_signed, false)
}
