//! The programs that count: one at each tracepoint.
//!
//! ```text
//! event that begins   key ── begins[key] = now
//! event that counts   key ── took = now - begins[key]; begins[key] = 0
//!                     fields ── condition, a part of its own: no ── end
//!                     keys, bucket ── counts[keys, bucket] += 1, sums
//! ```
//!
//! A row is one lookup: a histogram is in the key, so that a key has rows for the buckets that occur and no others. Each CPU has
//! its own numbers in a row. [`super::begins`] knows what has begun.

use std::os::fd::BorrowedFd;

use super::begins::BeginsOfPrograms;
use super::fields::WatchSource;
use super::parts::{ReadPart, StackOverflow, StackRoom, parts, update};
use super::pieces::{self, PiecePlaces};
use super::{BUCKET_BITS, BUCKETS};
use crate::assembly::{BpfAssembly, Condition, KernelFunction, Label, R0, R1, R2, R3, R4, R6, R8, STACK};
use crate::thread_limit::{RecordedThreads, ThreadLimit};

/// The kernel's word for an entry that must be new.
const NEW: i32 = 1;
/// Places of numbers in their map.
pub(crate) const UNPLACED: usize = 0;
pub(crate) const UNBEGUN: usize = 8;
pub(crate) const TALLY_BYTES: u32 = 16;

/// A condition, and the values that it is about, one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct CompiledCondition {
    pub(crate) inputs: Vec<ReadPart>,
    pub(crate) instructions: Vec<[u8; 8]>,
}

/// A program to be written.
#[derive(Clone, Debug)]
pub(super) struct CountingPlan {
    /// The place of the event in the request.
    pub(super) event: i32,
    pub(super) condition: Option<CompiledCondition>,
    pub(super) keys: Vec<ReadPart>,
    /// Numbers, and whether they may be negative.
    pub(super) sums: Vec<(WatchSource, bool)>,
    /// The number, and whether it may be negative.
    pub(super) histogram: Option<(WatchSource, bool)>,
    /// The key of what has begun.
    pub(super) since: Option<Vec<ReadPart>>,
    /// Threads that the event is about.
    pub(super) threads: RecordedThreads,
}

/// Maps of the programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountingMaps<'a> {
    pub(super) counts: BorrowedFd<'a>,
    pub(super) begins: Option<BeginsOfPrograms<'a>>,
    pub(super) tally: BorrowedFd<'a>,
    /// Several programs add to a row: one may interrupt another on its CPU.
    pub(super) is_shared: bool,
    /// Only events of these threads are counted; `None`: all are.
    pub(super) threads: Option<&'a ThreadLimit>,
}

/// Writes the program of an event that is counted.
pub(super) fn counted(plan: &CountingPlan, maps: CountingMaps<'_>) -> Result<Vec<[u8; 8]>, StackOverflow> {
    let mut room = StackRoom::default();
    let places = PiecePlaces { scratch: room.take(8)?, took: room.take(8)?, event: plan.event };
    let mut code = BpfAssembly::default();
    let [end, unplaced, unbegun, test] = std::array::from_fn(|_| code.label());
    code.copy(R6, R1);
    if let Some(limit) = maps.threads {
        plan.threads.check(&mut code, limit, places.scratch, end);
    }
    if let (Some(keys), Some(begins)) = (&plan.since, maps.begins) {
        took(&mut code, keys, begins, unbegun, &mut room, places)?;
    }
    if let Some(condition) = &plan.condition {
        let base = room.take(condition.inputs.iter().map(ReadPart::bytes).sum())?;
        parts(&mut code, &condition.inputs, base, places);
        code.copy(R1, STACK);
        code.add(R1, base.into());
        code.call_part(test);
        code.jump_if(Condition::Equal, R0, 0, end);
    }
    let key = key(&mut code, plan, &mut room, places)?;
    let sums = plan.sums.iter().map(|(source, _)| {
        let place = room.take(8)?;
        pieces::number(&mut code, source, place, places);
        Ok(place)
    });
    let sums = sums.collect::<Result<Vec<i16>, _>>()?;
    add(&mut code, maps, (key, &sums), unplaced, &mut room)?;
    code.jump(end);
    // The verifier takes nothing that no jump leads to.
    let unbegun = plan.since.is_some().then_some((unbegun, UNBEGUN));
    for (label, place) in std::iter::once((unplaced, UNPLACED)).chain(unbegun) {
        code.place(label);
        code.map_value(R1, maps.tally, place as i32);
        code.set(R2, 1);
        code.add_to((R1, 0), R2);
        code.jump(end);
    }
    code.place(end);
    code.exit();
    code.place(test);
    code.append(plan.condition.iter().flat_map(|condition| condition.instructions.iter().copied()));
    Ok(code.finish())
}

/// How long it took, or to `unbegun`.
fn took(
    code: &mut BpfAssembly,
    keys: &[ReadPart],
    begins: BeginsOfPrograms<'_>,
    unbegun: Label,
    room: &mut StackRoom,
    places: PiecePlaces,
) -> Result<(), StackOverflow> {
    code.call(KernelFunction::Nanos);
    code.copy(R8, R0);
    begins.look_up(code, keys, room, places)?;
    code.jump_if(Condition::Equal, R0, 0, unbegun);
    code.load(R1, (R0, 0), 8);
    code.jump_if(Condition::Equal, R1, 0, unbegun);
    code.store_constant((R0, 0), 0, 8);
    // Another one may have begun on another CPU meanwhile.
    code.subtract_register(R8, R1);
    code.jump_if(Condition::LessSigned, R8, 0, unbegun);
    code.store((STACK, places.took), R8, 8);
    Ok(())
}

/// Puts the key of the row on the stack.
fn key(
    code: &mut BpfAssembly,
    plan: &CountingPlan,
    room: &mut StackRoom,
    places: PiecePlaces,
) -> Result<i16, StackOverflow> {
    let bytes: u32 = plan.keys.iter().map(ReadPart::bytes).sum();
    let key = room.take(bytes + 8)?;
    parts(code, &plan.keys, key, places);
    let bucket_at = key + bytes as i16;
    code.store_constant((STACK, bucket_at), 0, 8);
    if let Some((source, is_signed)) = &plan.histogram {
        let place = room.take(8)?;
        pieces::number(code, source, place, places);
        bucket(code, *is_signed);
        code.store((STACK, bucket_at), R1, 4);
    }
    Ok(key)
}

/// r1 becomes the bucket of the number in r0.
fn bucket(code: &mut BpfAssembly, is_signed: bool) {
    let end = code.label();
    if is_signed {
        code.set(R1, BUCKETS as i32);
        code.jump_if(Condition::LessSigned, R0, 0, end);
    }
    code.copy(R1, R0);
    code.copy(R2, R0);
    code.shift_right(R2, BUCKET_BITS as i32);
    code.jump_if(Condition::Equal, R2, 0, end);
    // r2 becomes the place of the highest bit, less those of a part.
    code.copy(R3, R2);
    code.set(R2, 0);
    for bits in [32, 16, 8, 4, 2, 1] {
        let low = code.label();
        code.copy(R4, R3);
        code.shift_right(R4, bits);
        code.jump_if(Condition::Equal, R4, 0, low);
        code.copy(R3, R4);
        code.add(R2, bits);
        code.place(low);
    }
    code.shift_right_by(R1, R2);
    code.shift_left(R2, BUCKET_BITS as i32);
    code.add_register(R1, R2);
    code.place(end);
}

/// Adds to the row of a key, which is made if it is not there.
fn add(
    code: &mut BpfAssembly,
    maps: CountingMaps<'_>,
    (key, sums): (i16, &[i16]),
    unplaced: Label,
    room: &mut StackRoom,
) -> Result<(), StackOverflow> {
    let found = code.label();
    let bytes = 8 * (1 + sums.len() as u32);
    let zeros = room.take(bytes)?;
    code.look_up(maps.counts, key);
    code.jump_if(Condition::NotEqual, R0, 0, found);
    for at in (0..bytes as i16).step_by(8) {
        code.store_constant((STACK, zeros + at), 0, 8);
    }
    update(code, maps.counts, key, zeros, NEW);
    code.look_up(maps.counts, key);
    code.jump_if(Condition::Equal, R0, 0, unplaced);
    code.place(found);
    for (number, place) in std::iter::once(None).chain(sums.iter().map(Some)).enumerate() {
        let at = 8 * number as i16;
        match place {
            Some(place) => code.load(R1, (STACK, *place), 8),
            None => code.set(R1, 1),
        }
        if maps.is_shared {
            code.add_to((R0, at), R1);
        } else {
            code.load(R2, (R0, at), 8);
            code.add_register(R2, R1);
            code.store((R0, at), R2, 8);
        }
    }
    Ok(())
}
