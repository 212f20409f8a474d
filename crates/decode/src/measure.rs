//! The properties of a field class' size that are known without reading: fixed sizes, strides, byte
//! orders.

use kymo_format::model::{FieldClass, FieldKind, FixedBits, Structure, TextEncoding};
use kymo_units::ByteOrder;

/// The size in bits of a field that begins at a multiple of its alignment, if it is always the same.
pub(crate) fn fixed_size(class: &FieldClass) -> Option<u64> {
    match &class.kind {
        // Checked, here and below: lengths come from metadata, and may be any.
        FieldKind::StaticText(text) => text.length.checked_mul(8),
        FieldKind::StaticBlob(blob) => blob.length.checked_mul(8),
        FieldKind::Structure(structure) => structure_size(structure),
        FieldKind::StaticArray(array) => {
            let size = fixed_size(&array.element)?;
            // The last element is not followed by padding, so it counts with its size, not its
            // stride.
            let stride = size.checked_next_multiple_of(array.element.alignment())?;
            match array.length.checked_sub(1) {
                None => Some(0),
                Some(before) => stride.checked_mul(before)?.checked_add(size),
            }
        }
        _ => fixed_bits(class).map(|bits| u64::from(bits.length)),
    }
}

fn structure_size(structure: &Structure) -> Option<u64> {
    structure.members.iter().try_fold(0_u64, |offset, member| {
        offset.checked_next_multiple_of(member.class.alignment())?.checked_add(fixed_size(&member.class)?)
    })
}

fn fixed_bits(class: &FieldClass) -> Option<FixedBits> {
    match &class.kind {
        FieldKind::BitArray(bits) | FieldKind::Boolean(bits) | FieldKind::Real(bits) => Some(*bits),
        FieldKind::BitMap(map) => Some(map.bits),
        FieldKind::Integer(integer) => Some(integer.bits),
        _ => None,
    }
}

/// The distance in bits from one element to the next, if it is always the same and the last one is as long.
pub(crate) fn stride(element: &FieldClass) -> Option<u64> {
    fixed_size(element).filter(|size| *size > 0 && size % element.alignment() == 0)
}

/// The length of a real number in the class that no program reads, if there is one.
pub(crate) fn unreadable_real(class: &FieldClass) -> Option<u32> {
    match &class.kind {
        FieldKind::Real(bits) => Some(bits.length).filter(|length| !matches!(length, 16 | 32 | 64)),
        FieldKind::Structure(structure) => structure.members.iter().find_map(|member| unreadable_real(&member.class)),
        FieldKind::StaticArray(array) => unreadable_real(&array.element),
        FieldKind::DynamicArray(array) => unreadable_real(&array.element),
        FieldKind::Optional(optional) => unreadable_real(&optional.content),
        FieldKind::Variant(variant) => variant.options.iter().find_map(|option| unreadable_real(&option.class)),
        _ => None,
    }
}

/// Whether a field of the class, or inside it, has a role or updates a clock.
pub(crate) fn has_roles(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Structure(structure) => structure.members.iter().any(|member| has_roles(&member.class)),
        FieldKind::StaticArray(array) => has_roles(&array.element),
        FieldKind::DynamicArray(array) => has_roles(&array.element),
        FieldKind::Optional(optional) => has_roles(&optional.content),
        FieldKind::Variant(variant) => variant.options.iter().any(|option| has_roles(&option.class)),
        _ => !class.roles().is_empty() || class.integer_meaning().is_some_and(|meaning| meaning.clock.is_some()),
    }
}

/// The byte order that all fixed-size numbers in the class share; `None` if they differ or there are none.
pub(crate) fn only_order(class: &FieldClass) -> Option<ByteOrder> {
    let mut orders = Vec::new();
    collect_orders(class, &mut orders);
    match orders[..] {
        [order] => Some(order),
        _ => None,
    }
}

/// Adds each byte order of fixed-size numbers in the class once.
pub(crate) fn collect_orders(class: &FieldClass, into: &mut Vec<ByteOrder>) {
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.iter().for_each(|member| collect_orders(&member.class, into));
        }
        FieldKind::StaticArray(array) => collect_orders(&array.element, into),
        FieldKind::DynamicArray(array) => collect_orders(&array.element, into),
        FieldKind::Optional(optional) => collect_orders(&optional.content, into),
        FieldKind::Variant(variant) => {
            variant.options.iter().for_each(|option| collect_orders(&option.class, into));
        }
        _ => {
            if let Some(bits) = fixed_bits(class)
                && !into.contains(&bits.byte_order)
            {
                into.push(bits.byte_order);
            }
        }
    }
}

/// The largest `g` such that reading the field moves by multiples of `2^g` bits, apart from
/// alignments.
pub(crate) fn granularity(class: &FieldClass) -> u8 {
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.iter().map(|member| granularity(&member.class)).min().unwrap_or(63)
        }
        FieldKind::StaticArray(array) => granularity(&array.element),
        FieldKind::DynamicArray(array) => granularity(&array.element),
        FieldKind::Optional(optional) => granularity(&optional.content),
        FieldKind::Variant(variant) => {
            variant.options.iter().map(|option| granularity(&option.class)).min().unwrap_or(63)
        }
        _ => fixed_bits(class).map_or(3, |bits| bits.length.trailing_zeros() as u8),
    }
}

/// Whether anything in the class has an alignment.
pub(crate) fn aligns(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Optional(optional) => aligns(&optional.content),
        FieldKind::Variant(variant) => variant.options.iter().any(|option| aligns(&option.class)),
        FieldKind::Structure(structure) => {
            structure.alignment() > 1 || structure.members.iter().any(|member| aligns(&member.class))
        }
        FieldKind::StaticArray(array) => class.alignment() > 1 || aligns(&array.element),
        FieldKind::DynamicArray(array) => class.alignment() > 1 || aligns(&array.element),
        _ => class.alignment() > 1,
    }
}

/// Bytes in a code unit.
pub(crate) fn unit(encoding: TextEncoding) -> u8 {
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => 1,
        TextEncoding::Utf16Be | TextEncoding::Utf16Le => 2,
        TextEncoding::Utf32Be | TextEncoding::Utf32Le => 4,
    }
}
