//! Any bytes are records of texts of system calls, or are refused; a call gets a text only of a record of its own thread, number,
//! argument and address, and no record is of two calls.
//!
//! ```text
//! u8 flags of a round, u8 length │ a record │ ...
//! ```

use std::collections::HashMap;

use kymo_ftrace::texts::{NO_ARGUMENT, TEXT_AT_EXIT, TextJoin, TextRecord};
use kymo_ftrace::{ARGUMENTS_MAX, CallRecord, CallTable};

/// Ticks of a second, so that a tick is a nanosecond.
const FREQUENCY: u64 = 1_000_000_000;
/// All arguments.
const ALL: u8 = (1 << ARGUMENTS_MAX) - 1;
/// A record, without its text: thread, number, argument, address.
type TextKey = (u32, u16, u8, u64);

/// The promise; how many texts were joined.
pub(crate) fn hold(mut data: &[u8]) -> u64 {
    let mut join = TextJoin::new(FREQUENCY);
    let mut known: HashMap<TextKey, Vec<Vec<u8>>> = HashMap::new();
    let (mut calls, mut joined, mut round) = (Vec::new(), 0, 0);
    while let Some((&[flags, length], behind)) = data.split_first_chunk::<2>() {
        let Some((bytes, behind)) = behind.split_at_checked(length.into()) else { break };
        data = behind;
        let Some(record) = TextRecord::read(bytes) else { continue };
        if let Some(text) = record.text {
            assert!(!text.contains(&0), "a text ends at its first zero");
        }
        join.add(record.nanos, &record);
        let key = (record.tid, record.number, record.argument, record.address);
        known.entry(key).or_default().extend(record.text.map(<[u8]>::to_vec));
        let mut arguments = [0; ARGUMENTS_MAX];
        arguments.iter_mut().enumerate().for_each(|(at, argument)| *argument = record.address >> (at % 2));
        let is_exit = record.flags & TEXT_AT_EXIT != 0;
        let call = CallRecord { tid: record.tid, number: record.number.into(), is_exit, arguments };
        calls.push((record.nanos, call));
        if flags & 1 == 0 {
            round += 1;
            join.end_round(flags & 2 != 0);
            joined += calls.drain(..).map(|(nanos, call)| ask(&mut join, &mut known, nanos, &call)).sum::<u64>();
        }
    }
    // Nothing stays for ever.
    (0..20).for_each(|_| join.end_round(false));
    assert_eq!(join.waiting(), 0, "after {round} rounds");
    joined
}

fn ask(join: &mut TextJoin, known: &mut HashMap<TextKey, Vec<Vec<u8>>>, nanos: u64, call: &CallRecord) -> u64 {
    let mut joined = 0;
    for _ in 0..2 {
        let table = join.table(nanos, call);
        for table in [table, CallTable::Native] {
            let texts = join.take(nanos, call, table, ALL);
            for ((argument, address), text) in (0..NO_ARGUMENT).zip(call.arguments).zip(&texts.texts) {
                let Some(text) = text else { continue };
                let key = (call.tid, call.number as u16, argument, address);
                let all = known.get_mut(&key).expect("a text is of a record of this call");
                let at = all.iter().position(|one| **one == **text).expect("a text is taken once");
                all.swap_remove(at);
                joined += 1;
            }
        }
    }
    joined
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let record = |nanos: u64, argument: u8, flags: u8, text: &[u8]| {
        let mut record = nanos.to_le_bytes().to_vec();
        record.extend(0x1000_u64.to_le_bytes());
        record.extend([7, 0, 0, 0, 1, 1, argument, flags, text.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        record.extend(text);
        record
    };
    let entry = |flags: u8, record: &[u8]| [&[flags, record.len() as u8], record].concat();
    let plain = entry(0, &record(10_000, 0, 0, b"/a\0"));
    let compat = [entry(1, &record(20_000, NO_ARGUMENT, 2, b"")), entry(0, &record(20_000, 2, 2, b"/b\0"))].concat();
    let again = [entry(1, &record(30_000, 0, 4, b"")), entry(2, &record(30_000, 0, 1, b"/c\0"))].concat();
    vec![plain.clone(), [plain, compat, again].concat()]
}
