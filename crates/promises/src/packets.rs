//! Evaluator, machine code and the tree reader find the same in any bytes: events, values, lines and faults.
//!
//! ```text
//! bytes ── how many choices │ choices ──> a small trace class │ packet
//!                                           ├── evaluator, all in memory at once ──┐
//!                                           ├── machine code, likewise ────────────┤ the same Reading
//!                                           ├── machine code, a few bytes at once ─┘
//!                                           └── tree reader: the same values of the same events
//! ```

use std::sync::Arc;

use kymo_decode::tree::FieldErrorKind;
use kymo_decode::tree::stream::{self, FileFault};
use kymo_decode::{Compile, LowerError};
use kymo_format::TraceClass;
use kymo_format::model::Scope;
use kymo_format::value::Value;
use kymo_random::classes::trace_class_of_any_bytes;

use crate::reading::{FileContents, PacketContents, PlainReader, RECORDS_MAX};

/// The promise for a trace class and a packet that bytes describe.
///
/// # Panics
///
/// If it is broken.
pub fn hold(data: &[u8]) {
    let (trace, packet, number) = split(data);
    same_by_all(&Arc::new(trace), packet, number).expect("such trace classes can be decoded");
}

/// The trace class and the packet that bytes describe, and a number to choose variants of the test by.
#[must_use]
pub fn split(data: &[u8]) -> (TraceClass, &[u8], usize) {
    let (&[count, number], rest) = data.split_first_chunk().unwrap_or((&[0, 0], &[]));
    let (choices, packet) = rest.split_at(rest.len().min(usize::from(count)));
    (trace_class_of_any_bytes(choices.iter().map(|&byte| byte.into()).collect()), packet, number.into())
}

/// All engines find the same in `bytes`. `number` chooses how much is in memory at once, and the way to print.
///
/// # Errors
///
/// The trace class cannot be decoded.
///
/// # Panics
///
/// If they do not.
pub fn same_by_all(trace: &Arc<TraceClass>, bytes: &[u8], number: usize) -> Result<(), LowerError> {
    let evaluated = PlainReader::new(trace, Compile::Never, number)?.read(bytes, bytes.len());
    let compiled = PlainReader::new(trace, Compile::AtOnce, number)?;
    same(&evaluated, &compiled.read(bytes, bytes.len()), "machine code");
    same(&evaluated, &compiled.read(bytes, 1 + number * 7 % 61), "machine code on parts of packets");
    agrees_with_tree(trace, bytes, &evaluated);
    Ok(())
}

fn same(evaluated: &FileContents, other: &FileContents, engine: &str) {
    for (number, (one, two)) in evaluated.packets.iter().zip(&other.packets).enumerate() {
        for (one, two) in one.events.iter().zip(&two.events) {
            assert_eq!(one, two, "an event of packet {number} by the evaluator and by {engine}");
        }
        assert_eq!(one, two, "packet {number} by the evaluator and by {engine}");
    }
    assert_eq!(evaluated, other, "the file by the evaluator and by {engine}");
}

/// The events that the tree reader finds before its first fault are those of the reading, and both
/// stop at the same event.
fn agrees_with_tree(trace: &TraceClass, bytes: &[u8], reading: &FileContents) {
    let (packets, fault) = stream::read_file(trace, bytes);
    let last = packets.len().wrapping_sub(1);
    for (number, (tree, read)) in packets.iter().zip(&reading.packets).enumerate() {
        let fault = fault.as_ref().filter(|_| number == last);
        if read.is_cut || fault.is_some_and(is_of_head) {
            break;
        }
        for (index, (tree, read)) in tree.events.iter().zip(&read.events).enumerate() {
            if let Ok(fields) = &read.fields {
                let expected = [&tree.common, &tree.specific, &tree.payload];
                let expected = expected.map(|value| value.clone().unwrap_or(Value::Structure(Vec::new())));
                let found = (read.cycles, read.class as usize, by_scope(fields));
                assert_eq!(found, (tree.cycles, tree.class, expected), "event {index} of packet {number} by the tree");
            }
        }
        let (of_tree, of_read) = (tree.events.len().min(RECORDS_MAX), complete(read));
        let only_tree = fault.is_some_and(is_only_of_tree);
        let agrees = of_read == of_tree || only_tree && of_read > of_tree;
        assert!(agrees, "packet {number}: {of_read} events, by the tree {of_tree}: {:?}, {fault:?}", read.stop);
    }
}

/// Event records before the first that cannot be read.
fn complete(packet: &PacketContents) -> usize {
    packet.events.iter().position(|event| event.fields.is_err()).unwrap_or(packet.events.len())
}

fn by_scope(fields: &[(Scope, Value)]) -> [Value; 3] {
    let scopes = [Scope::EventCommonContext, Scope::EventSpecificContext, Scope::EventPayload];
    scopes.map(|scope| {
        let members = fields.iter().filter(|(of, _)| *of == scope).map(|(_, value)| value.clone());
        Value::Structure(members.collect())
    })
}

/// The packet's head or sizes are at fault, which the two sides look at in different orders.
fn is_of_head(fault: &FileFault) -> bool {
    matches!(fault, FileFault::Magic { .. } | FileFault::StreamClass { .. } | FileFault::Sizes { .. })
}

/// Limits of the tree reader.
fn is_only_of_tree(fault: &FileFault) -> bool {
    let limits = [FieldErrorKind::ClockOverflow, FieldErrorKind::ManyValues, FieldErrorKind::MixedOrder];
    fault.field().is_some_and(|kind| limits.contains(kind))
}
