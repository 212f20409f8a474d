//! The look-up of a key in an array, or in a hash table whose keys have 1, 2, 4 or 8 bytes, without a call.
//!
//! ```text
//! array        the key is the index of the value
//! hash table   word = the key; at its home or behind it is a place with the word, or a free one: kymo_ir::machine::table
//! ```

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use kymo_ir::machine::BpfMapType;
use kymo_ir::machine::native::{HOME_MULTIPLIER, KeyPlace, value_address};

use super::code::FunctionWriter;
use super::kinds::MemoryAccess;
use super::state::{MapRow, state_offset};

/// The register with the address of the key.
const KEY: u8 = 2;

impl FunctionWriter<'_, '_> {
    /// Writes the look-up; r0 becomes the address of the value, or 0.
    pub(super) fn look_up(&mut self, map: u32) {
        write(self, map);
    }
}

fn write(writer: &mut FunctionWriter<'_, '_>, map: u32) {
    let definition = &writer.plan.maps[map as usize];
    let bytes = definition.key_bytes as u8;
    // If the key cannot be read, the evaluator says so.
    let place = writer.place(MemoryAccess { base: KEY, offset: 0, bytes, is_write: false });
    let key = writer.load(place, bytes);
    let key = if bytes == 8 { key } else { writer.builder.ins().uextend(types::I64, key) };
    let value = match definition.map_type {
        BpfMapType::Array | BpfMapType::PerCpuArray => array(writer, map, key),
        _ => hash(writer, map, key),
    };
    writer.set(0, value);
}

fn array(writer: &mut FunctionWriter<'_, '_>, map: u32, key: Value) -> Value {
    let definition = &writer.plan.maps[map as usize];
    let (stride, entries) = (definition.value_bytes.next_multiple_of(8), definition.entries_max);
    let (stride, first) = (writer.number(stride.into()), writer.number(value_address(map as usize, 0, 0)));
    let (entries, zero) = (writer.number(entries.into()), writer.number(0));
    let distance = writer.builder.ins().imul(key, stride);
    let mut value = writer.builder.ins().iadd(first, distance);
    if definition.map_type == BpfMapType::PerCpuArray {
        // In a traced program, each run at the same time has a line of values.
        let line = writer.load_state(state_offset!(line));
        let line_bytes = definition.value_bytes.next_multiple_of(8) as u64 * u64::from(definition.entries_max);
        let line_bytes = writer.number(line_bytes);
        let before = writer.builder.ins().imul(line, line_bytes);
        value = writer.builder.ins().iadd(value, before);
    }
    let is_there = writer.builder.ins().icmp(IntCC::UnsignedLessThan, key, entries);
    writer.builder.ins().select(is_there, value, zero)
}

fn hash(writer: &mut FunctionWriter<'_, '_>, map: u32, word: Value) -> Value {
    let [values_bytes, places, mask, seed] = [
        std::mem::offset_of!(MapRow, values_bytes),
        std::mem::offset_of!(MapRow, places),
        std::mem::offset_of!(MapRow, places_mask),
        std::mem::offset_of!(MapRow, seed),
    ]
    .map(|offset| writer.of_row(map, offset));
    let multiplier = writer.number(HOME_MULTIPLIER);
    let mixed = writer.builder.ins().bxor(word, seed);
    let low = writer.builder.ins().imul(mixed, multiplier);
    let high = writer.builder.ins().umulhi(mixed, multiplier);
    let home = writer.builder.ins().bxor(low, high);
    let home = writer.builder.ins().band(home, mask);
    let [at_place, taken, next, found, end] = [(); 5].map(|()| writer.builder.create_block());
    let index = writer.builder.append_block_param(at_place, types::I64);
    let result = writer.builder.append_block_param(end, types::I64);
    writer.builder.ins().jump(at_place, &[home.into()]);

    // At most a quarter of the places are taken: one behind it is free.
    writer.builder.switch_to_block(at_place);
    let place_bytes = writer.number(size_of::<KeyPlace>() as u64);
    let distance = writer.builder.ins().imul(index, place_bytes);
    let place = writer.builder.ins().iadd(places, distance);
    let flags = writer.of_tables();
    let slot = writer.builder.ins().load(types::I32, flags, place, std::mem::offset_of!(KeyPlace, slot) as i32);
    let zero = writer.number(0);
    writer.builder.ins().brif(slot, taken, &[], end, &[zero.into()]);

    writer.builder.switch_to_block(taken);
    let other = writer.builder.ins().load(types::I64, flags, place, std::mem::offset_of!(KeyPlace, word) as i32);
    let is_it = writer.builder.ins().icmp(IntCC::Equal, other, word);
    writer.builder.ins().brif(is_it, found, &[], next, &[]);

    writer.builder.switch_to_block(next);
    let one = writer.number(1);
    let behind = writer.builder.ins().iadd(index, one);
    let behind = writer.builder.ins().band(behind, mask);
    writer.builder.ins().jump(at_place, &[behind.into()]);

    writer.builder.switch_to_block(found);
    let offset = writer.builder.ins().load(types::I32, flags, place, std::mem::offset_of!(KeyPlace, offset) as i32);
    let offset = writer.builder.ins().uextend(types::I64, offset);
    // Whatever the table says: nothing outside of the values becomes an address.
    let is_value = writer.builder.ins().icmp(IntCC::UnsignedLessThan, offset, values_bytes);
    writer.go_on_if(is_value);
    let first = writer.number(value_address(map as usize, 0, 0));
    let value = writer.builder.ins().iadd(first, offset);
    writer.builder.ins().jump(end, &[value.into()]);
    writer.builder.switch_to_block(end);
    result
}
