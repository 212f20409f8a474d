//! Helper functions that programs have at events of traced programs.

use super::limits::{
    COMPARE_TEXT, CPU, DELETE, KEY_BYTES_MAX, LOOK_UP, PROCESS_AND_THREAD, RANDOM, THREAD_NAME, UPDATE,
    UPDATE_BYTES_MAX, is_clock, is_copy,
};
use super::memory::{RunMemory, map_at, value_address};
use super::surroundings::{ObjectFact, ObjectStopKind, ObjectSurroundings};

/// Bytes of a text that helper functions copy or compare, at most.
const COPY_BYTES_MAX: u64 = 1 << 12;
/// Bytes of a thread's name.
const NAME_BYTES: usize = 16;

const BAD_ADDRESS: i64 = -14;

/// Calls a helper function; its result.
pub(super) fn call<S: ObjectSurroundings>(
    memory: &mut RunMemory<'_, '_, S>,
    steps: &mut u32,
    (number, registers): (u32, &[u64; 11]),
) -> Result<u64, ObjectStopKind> {
    let [_, first, second, third, fourth, ..] = *registers;
    let surroundings = &mut *memory.surroundings;
    match number {
        LOOK_UP | UPDATE | DELETE => on_map(memory, number, [first, second, third, fourth]),
        RANDOM => Ok(surroundings.fact(ObjectFact::Random)),
        CPU => Ok(surroundings.fact(ObjectFact::Cpu)),
        PROCESS_AND_THREAD => Ok(surroundings.fact(ObjectFact::ProcessAndThread)),
        THREAD_NAME => {
            let name = surroundings.thread_name();
            let size = (second & 0xffff_ffff) as usize;
            if !memory.may_write(first, size) {
                return Err(ObjectStopKind::OutsideMemory);
            }
            count(steps, second & 0xffff_ffff)?;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES).min(NAME_BYTES - 1);
            let text = name[..end].iter().copied().chain(core::iter::repeat(0));
            for (at, byte) in (0..size).zip(text) {
                let byte = if at + 1 < size { byte } else { 0 };
                memory.store(first + at as u64, 1, byte.into())?;
            }
            Ok(0)
        }
        COMPARE_TEXT => compare((memory, steps), first, second & 0xffff_ffff, third),
        number if is_clock(number) => Ok(surroundings.fact(ObjectFact::Nanos)),
        number if is_copy(number) => copy((memory, steps), first, second & 0xffff_ffff, third),
        _ => copy_text((memory, steps), first, second & 0xffff_ffff, third),
    }
}

fn on_map<S: ObjectSurroundings>(
    memory: &mut RunMemory<'_, '_, S>,
    number: u32,
    [map, key, value, flags]: [u64; 4],
) -> Result<u64, ObjectStopKind> {
    let map_number = map_at(map).ok_or(ObjectStopKind::NoMap)?;
    let [key_size, value_size] = memory.image.sizes(map_number).ok_or(ObjectStopKind::NoMap)?;
    let mut key_bytes = [0; KEY_BYTES_MAX];
    // Images whose keys are longer are none.
    let key_bytes = key_bytes.get_mut(..key_size).ok_or(ObjectStopKind::NoMap)?;
    memory.copy(key, key_bytes)?;
    let result = match number {
        LOOK_UP => {
            let offset = memory.surroundings.look_up(map_number, key_bytes);
            return Ok(offset.map_or(0, |offset| value_address(map_number, offset)));
        }
        UPDATE => {
            let mut value_bytes = [0; UPDATE_BYTES_MAX];
            let value_bytes = value_bytes.get_mut(..value_size).ok_or(ObjectStopKind::NoMap)?;
            memory.copy(value, value_bytes)?;
            memory.surroundings.update(map_number, key_bytes, value_bytes, flags)
        }
        _ => memory.surroundings.remove(map_number, key_bytes),
    };
    Ok(result.cast_unsigned())
}

/// Counts bytes as steps: 64 of them are one.
fn count(steps: &mut u32, bytes: u64) -> Result<(), ObjectStopKind> {
    if bytes > COPY_BYTES_MAX {
        return Err(ObjectStopKind::NoEnd);
    }
    *steps = steps.checked_sub(bytes as u32 / 64).ok_or(ObjectStopKind::NoEnd)?;
    Ok(())
}

/// Copies memory; what cannot be read is 0, and an error the program's.
fn copy<S: ObjectSurroundings>(
    (memory, steps): (&mut RunMemory<'_, '_, S>, &mut u32),
    to: u64,
    size: u64,
    from: u64,
) -> Result<u64, ObjectStopKind> {
    if !memory.may_write(to, size as usize) {
        return Err(ObjectStopKind::OutsideMemory);
    }
    count(steps, size)?;
    let is_readable = (0..size).all(|at| memory.load(from.wrapping_add(at), 1).is_ok());
    for at in 0..size {
        let byte = if is_readable { memory.load(from.wrapping_add(at), 1)? } else { 0 };
        memory.store(to + at, 1, byte)?;
    }
    Ok(if is_readable { 0 } else { BAD_ADDRESS.cast_unsigned() })
}

/// Copies a text with the zero byte at its end; how many bytes these are.
fn copy_text<S: ObjectSurroundings>(
    (memory, steps): (&mut RunMemory<'_, '_, S>, &mut u32),
    to: u64,
    size: u64,
    from: u64,
) -> Result<u64, ObjectStopKind> {
    if size == 0 {
        return Ok(0);
    }
    if !memory.may_write(to, size as usize) {
        return Err(ObjectStopKind::OutsideMemory);
    }
    count(steps, size)?;
    for at in 0..size {
        let Ok(byte) = memory.load(from.wrapping_add(at), 1) else {
            for at in 0..size {
                memory.store(to + at, 1, 0)?;
            }
            return Ok(BAD_ADDRESS.cast_unsigned());
        };
        let byte = if at + 1 == size { 0 } else { byte };
        memory.store(to + at, 1, byte)?;
        if byte == 0 {
            return Ok(at + 1);
        }
    }
    Ok(size)
}

/// How two texts compare, as `strncmp` does.
fn compare<S: ObjectSurroundings>(
    (memory, steps): (&mut RunMemory<'_, '_, S>, &mut u32),
    left: u64,
    size: u64,
    right: u64,
) -> Result<u64, ObjectStopKind> {
    count(steps, size)?;
    for at in 0..size {
        let byte = memory.load(left.wrapping_add(at), 1)?;
        let other = memory.load(right.wrapping_add(at), 1)?;
        if byte != other {
            return Ok((byte.cast_signed() - other.cast_signed()).cast_unsigned());
        }
        if byte == 0 {
            break;
        }
    }
    Ok(0)
}
