//! Where an access to the program's memory is in the memory of this process.
//!
//! ```text
//! proven inside of the context, the stack or a value      begin of it + distance
//! probably inside of one of these                         the same, if the distance fits; else the evaluator goes on
//! else                                                    the place that was found last, or a call that finds one
//! ```

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use kymo_ir::machine::BpfMapType;
use kymo_ir::machine::native::{context_address, stack_end, value_address};

use super::code::FunctionWriter;
use super::kinds::{MemoryAccess, MemoryRegion, NumberKind};
use super::state::state_offset;

/// A piece of memory with one address for a whole run.
struct FixedPiece {
    /// For programs.
    begin: u64,
    bytes: Value,
    /// In this process.
    place: Value,
}

impl FunctionWriter<'_, '_> {
    /// The address of the bytes of an access.
    pub(super) fn place(&mut self, access: MemoryAccess) -> Value {
        if let Some((region, distance)) = self.known.proven(access, self.plan.maps) {
            return self.proven_place(region, distance, access);
        }
        let offset = self.number(i64::from(access.offset) as u64);
        let base = self.register(access.base);
        let address = self.builder.ins().iadd(base, offset);
        match self.probable_piece(access) {
            Some(piece) => {
                let begin = self.number(piece.begin);
                let distance = self.builder.ins().isub(address, begin);
                let is_inside = self.fits(distance, piece.bytes, access.bytes);
                self.go_on_if(is_inside);
                self.builder.ins().iadd(piece.place, distance)
            }
            None => self.found_place(address, access),
        }
    }

    fn proven_place(&mut self, region: MemoryRegion, distance: i64, access: MemoryAccess) -> Value {
        match region {
            MemoryRegion::Stack => {
                let distance = self.number(distance as u64);
                self.builder.ins().iadd(self.frame, distance)
            }
            MemoryRegion::Context => {
                let end = distance as usize + usize::from(access.bytes);
                self.facts.context_bytes = self.facts.context_bytes.max(end);
                let distance = self.number(distance as u64);
                self.builder.ins().iadd(self.context[0], distance)
            }
            MemoryRegion::Value(map) => {
                // It is inside of a value, so that the lower half of the address is how far it is from the first one.
                let values = self.values(map);
                let (base, offset) = (self.register(access.base), self.number(i64::from(access.offset) as u64));
                let address = self.builder.ins().iadd(base, offset);
                let low = self.builder.ins().ireduce(types::I32, address);
                let low = self.builder.ins().uextend(types::I64, low);
                self.builder.ins().iadd(values, low)
            }
        }
    }

    /// The piece that an access is probably in.
    fn probable_piece(&mut self, access: MemoryAccess) -> Option<FixedPiece> {
        let (NumberKind::Near(region) | NumberKind::Exact { region, .. }) = self.known.of(access.base) else {
            return None;
        };
        match region {
            MemoryRegion::Context => {
                let [place, bytes] = self.context;
                Some(FixedPiece { begin: context_address(), bytes, place })
            }
            MemoryRegion::Stack => {
                self.facts.writes_stack |= access.is_write;
                let whole = self.outside.stack_bytes();
                let bytes = self.number(whole);
                Some(FixedPiece { begin: stack_end(0) - whole, bytes, place: self.stack })
            }
            MemoryRegion::Value(map) => {
                let definition = &self.plan.maps[map as usize];
                let is_single = definition.map_type == BpfMapType::Array && definition.entries_max == 1;
                if !is_single || access.is_write && definition.is_read_only {
                    return None;
                }
                let bytes = self.number(definition.value_bytes.into());
                let place = self.values(map);
                Some(FixedPiece { begin: value_address(map as usize, 0, 0), bytes, place })
            }
        }
    }

    /// Whether so many bytes at a distance are inside of a piece.
    fn fits(&mut self, distance: Value, piece_bytes: Value, bytes: u8) -> Value {
        let is_inside = self.builder.ins().icmp(IntCC::UnsignedLessThan, distance, piece_bytes);
        if bytes == 1 {
            return is_inside;
        }
        let rest = self.builder.ins().isub(piece_bytes, distance);
        let bytes = self.number(bytes.into());
        let is_enough = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, rest, bytes);
        self.builder.ins().band(is_inside, is_enough)
    }

    /// The address of bytes anywhere.
    fn found_place(&mut self, address: Value, access: MemoryAccess) -> Value {
        let (again, found) = (self.builder.create_block(), self.builder.create_block());
        let result = self.builder.append_block_param(found, types::I64);
        let begin = self.load_state(state_offset!(place_begin));
        let last_bytes = if access.is_write { state_offset!(place_writable) } else { state_offset!(place_bytes) };
        let last_bytes = self.load_state(last_bytes);
        let distance = self.builder.ins().isub(address, begin);
        let is_last = self.fits(distance, last_bytes, access.bytes);
        let place = self.load_state(state_offset!(place));
        let place = self.builder.ins().iadd(place, distance);
        self.builder.ins().brif(is_last, found, &[place.into()], again, &[]);
        self.builder.switch_to_block(again);
        let (bytes, is_write) = (self.number(access.bytes.into()), self.number(access.is_write.into()));
        let place = self.call_outside(self.outside.find(), &[self.state, address, bytes, is_write]);
        let zero = self.number(0);
        let is_there = self.builder.ins().icmp(IntCC::NotEqual, place, zero);
        self.go_on_if(is_there);
        self.builder.ins().jump(found, &[place.into()]);
        self.builder.switch_to_block(found);
        result
    }
}
