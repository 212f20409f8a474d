//! The length of an event of the kernel, as its class says it.

use kymo_format::model::{FieldClass, FieldKind};

/// Bytes of a field; `None`: there are fewer. `members` are the values of numbers before it.
pub(crate) fn measured(class: &FieldClass, bytes: &[u8], members: &mut Vec<u64>) -> Option<usize> {
    let length = match &class.kind {
        FieldKind::Integer(integer) => {
            let length = integer.bits.length as usize / 8;
            let value = bytes.get(..length)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            members.push(value);
            length
        }
        FieldKind::StaticText(text) => text.length as usize,
        FieldKind::NullTerminatedText(_) => bytes.iter().position(|byte| *byte == 0)? + 1,
        FieldKind::StaticArray(array) => array.length as usize * measured(&array.element, &[0; 8], &mut Vec::new())?,
        FieldKind::DynamicArray(array) => {
            // Its length is the member before it.
            *members.last()? as usize * measured(&array.element, &[0; 8], &mut Vec::new())?
        }
        FieldKind::Structure(structure) => {
            let mut at = 0;
            for member in &structure.members {
                at += measured(&member.class, bytes.get(at..)?, members)?;
            }
            at
        }
        other => panic!("no field of the kernel is {other:?}"),
    };
    (length <= bytes.len()).then_some(length)
}
