//! Pieces of programs: a value is read from where it is to a place on the stack.
//!
//! Addresses are followed by the kernel's function that reads memory and finds zeros where there is none. Behind arguments
//! that are never null, a program looks itself, which takes a tenth of the time.

use super::fields::{ArgumentPath, COMPAT_CALL, PathEnd, WatchSource};
use super::known::ValueChange;
use crate::assembly::{BpfAssembly, Condition, KernelFunction, R0, R1, R2, R3, R6, R7, STACK};

/// Real-time priorities.
const REAL_TIME: i32 = 100;
/// Bits of a sector's bytes.
const SECTOR_BITS: i32 = 9;
/// The flag of 32-bit callers in `thread_info.status`.
const THREAD_COMPAT: i32 = kymo_ftrace::texts::TEXT_COMPAT as i32;
/// States of threads that traces tell.
const REPORTED: i32 = 0x7f;
const UNINTERRUPTIBLE: i32 = 2;
/// Threads of the kernel that only wait; the kernel's other words for waiting.
const IDLE: i32 = 0x402;
const WAITING: i32 = 0x9000;

/// Where the pieces have room, on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PiecePlaces {
    /// 8 bytes.
    pub(crate) scratch: i16,
    /// How long it took, in nanoseconds.
    pub(crate) took: i16,
    /// The place of the event in the request.
    pub(crate) event: i32,
}

/// Reads an integer, in 64 bits. r6 is the address of the arguments; r0 to r5 change.
pub(crate) fn number(code: &mut BpfAssembly, source: &WatchSource, to: i16, places: PiecePlaces) {
    match source {
        WatchSource::Thread => {
            code.call(KernelFunction::ProcessAndThread);
            code.shift_left(R0, 32);
            code.shift_right(R0, 32);
        }
        WatchSource::Process => {
            code.call(KernelFunction::ProcessAndThread);
            code.shift_right(R0, 32);
        }
        WatchSource::Cpu => code.call(KernelFunction::Cpu),
        WatchSource::Event => code.set(R0, places.event),
        WatchSource::Took => code.load(R0, (STACK, places.took), 8),
        WatchSource::State { preempted, thread, state, end_offset } => {
            self::state(code, [*preempted, *thread, *state], *end_offset, places);
        }
        WatchSource::Argument(path) => argument(code, path, places),
        WatchSource::Call { number, status_offset } => call(code, number, *status_offset, places),
        WatchSource::ThreadName => code.set(R0, 0),
    }
    code.store((STACK, to), R0, 8);
}

/// Reads a text, to so many bytes, of which the last ones are zero.
pub(crate) fn text(code: &mut BpfAssembly, source: &WatchSource, to: i16, capacity: u32, places: PiecePlaces) {
    for at in (0..capacity as i16).step_by(8) {
        code.store_constant((STACK, to + at), 0, 8);
    }
    let WatchSource::Argument(path) = source else {
        point(code, to);
        code.set(R2, capacity as i32);
        return code.call(KernelFunction::CurrentName);
    };
    let PathEnd::Text { offset, capacity: own } = path.end else { return };
    let end = code.label();
    follow(code, path, places);
    code.jump_if(Condition::Equal, R1, 0, end);
    code.copy(R3, R1);
    code.add(R3, offset as i32);
    point(code, to);
    code.set(R2, own.min(capacity) as i32);
    code.call(KernelFunction::ReadKernelText);
    code.place(end);
}

/// r1 is the address of a place on the stack.
fn point(code: &mut BpfAssembly, place: i16) {
    code.copy(R1, STACK);
    code.add(R1, place.into());
}

/// r1 becomes the last address of a path, or 0.
fn follow(code: &mut BpfAssembly, path: &ArgumentPath, places: PiecePlaces) {
    let end = code.label();
    code.load(R1, (R6, 8 * i16::from(path.argument)), 8);
    for (number, offset) in path.hops.iter().enumerate() {
        match i16::try_from(*offset) {
            Ok(offset) if number == 0 && path.is_never_null => code.load(R1, (R1, offset), 8),
            _ => {
                code.jump_if(Condition::Equal, R1, 0, end);
                read(code, *offset, 8, places);
                code.load(R1, (STACK, places.scratch), 8);
            }
        }
    }
    code.place(end);
}

/// Reads so many bytes behind the address in r1 to the scratch; zeros if it cannot be read.
fn read(code: &mut BpfAssembly, offset: u32, bytes: u8, places: PiecePlaces) {
    code.copy(R3, R1);
    code.add(R3, offset as i32);
    code.store_constant((STACK, places.scratch), 0, 8);
    point(code, places.scratch);
    code.set(R2, bytes.into());
    code.call(KernelFunction::ReadKernel);
}

/// r0 becomes the value at the end of a path.
fn argument(code: &mut BpfAssembly, path: &ArgumentPath, places: PiecePlaces) {
    match path.end {
        // As a copy: with addresses that the verifier knows, a program may not count.
        PathEnd::Value { is_address: true, .. } => {
            code.copy(R1, R6);
            read(code, 8 * u32::from(path.argument), 8, places);
            code.load(R0, (STACK, places.scratch), 8);
        }
        PathEnd::Value { bytes, is_signed, is_address: false } => {
            code.load(R0, (R6, 8 * i16::from(path.argument)), 8);
            extend(code, 8 * bytes, is_signed);
        }
        PathEnd::Memory { offset, bytes, is_signed, bits } => {
            let end = code.label();
            follow(code, path, places);
            match i16::try_from(offset) {
                Ok(offset) if path.hops.is_empty() && path.is_never_null && bits.is_none() => {
                    code.load(R0, (R1, offset), bytes);
                }
                _ => {
                    code.set(R0, 0);
                    code.jump_if(Condition::Equal, R1, 0, end);
                    read(code, offset, bytes, places);
                    code.load(R0, (STACK, places.scratch), bytes);
                }
            }
            match bits {
                Some((shift, width)) => {
                    code.shift_right(R0, shift.into());
                    extend(code, width, is_signed);
                }
                None => extend(code, 8 * bytes, is_signed),
            }
            code.place(end);
        }
        PathEnd::Text { .. } => code.set(R0, 0),
    }
    match path.change {
        ValueChange::Priority => code.add(R0, -REAL_TIME),
        ValueChange::Sectors => code.shift_right(R0, SECTOR_BITS),
        ValueChange::Same | ValueChange::Call | ValueChange::State => {}
    }
}

/// r0 becomes the number of a system call, and whose it is.
fn call(code: &mut BpfAssembly, number: &ArgumentPath, status_offset: Option<u32>, places: PiecePlaces) {
    let Some(offset) = status_offset.and_then(|offset| i16::try_from(offset).ok()) else {
        return argument(code, number, places);
    };
    code.call(KernelFunction::CurrentTask);
    code.load(R7, (R0, offset), 4);
    code.and(R7, THREAD_COMPAT);
    code.shift_left(R7, COMPAT_CALL.trailing_zeros() as i32 - THREAD_COMPAT.trailing_zeros() as i32);
    argument(code, number, places);
    code.or_register(R0, R7);
}

/// The lowest bits of r0 fill it.
fn extend(code: &mut BpfAssembly, bits: u8, is_signed: bool) {
    if bits < 64 {
        let above = 64 - i32::from(bits);
        code.shift_left(R0, above);
        if is_signed { code.shift_right_signed(R0, above) } else { code.shift_right(R0, above) }
    }
}

/// r0 becomes the state of a thread at its switch, as traces tell it: the highest of the states that they know.
fn state(code: &mut BpfAssembly, arguments: [u8; 3], end_offset: u32, places: PiecePlaces) {
    let [preempted, thread, state] = arguments.map(|argument| 8 * i16::from(argument));
    let (end, waits) = (code.label(), code.label());
    code.load(R1, (R6, thread), 8);
    code.load(R2, (R6, preempted), 8);
    code.set(R0, 0);
    code.and(R2, 0xff);
    code.jump_if(Condition::NotEqual, R2, 0, end);
    read(code, end_offset, 4, places);
    code.load(R3, (STACK, places.scratch), 4);
    code.load(R2, (R6, state), 8);
    code.copy(R1, R2);
    code.and(R1, IDLE);
    code.jump_if(Condition::Equal, R1, IDLE, waits);
    code.copy(R1, R2);
    code.and(R1, WAITING);
    code.jump_if(Condition::NotEqual, R1, 0, waits);
    code.or_register(R3, R2);
    code.and(R3, REPORTED);
    for bit in (0..REPORTED.count_ones()).rev().map(|bit| 1 << bit) {
        code.set(R0, bit);
        code.copy(R1, R3);
        code.and(R1, bit);
        code.jump_if(Condition::NotEqual, R1, 0, end);
    }
    code.set(R0, 0);
    code.jump(end);
    code.place(waits);
    code.set(R0, UNINTERRUPTIBLE);
    code.place(end);
}
