//! Random trace classes, written and read again, are what they were; what changes on the way to a language
//! is what `as_ctf1` and `as_ctf2` say.

use kymo_format::model::TraceClass;
use kymo_format::write::{as_ctf1, as_ctf2, to_json, to_tsdl};
use kymo_random::classes::{plain_trace_class, trace_class};
use proptest::prelude::*;

fn read(text: &str) -> TraceClass {
    let metadata = kymo_format::parse(text.as_bytes());
    let found: Vec<String> = metadata.diagnostics.iter().map(|it| it.render_plain(&metadata.text, "written")).collect();
    assert!(found.is_empty(), "what was written is sound:\n{}\n{text}", found.concat());
    metadata.trace_class.expect("nothing is wrong")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ctf2(trace in trace_class()) {
        prop_assert_eq!(as_ctf2(&trace).expect("it is CTF 2 already"), trace.clone());
        let text = to_json(&trace).expect("it is CTF 2 already");
        prop_assert_eq!(read(&text), trace, "{}", text);
    }

    #[test]
    fn ctf1(trace in prop_oneof![trace_class(), plain_trace_class()]) {
        if let Ok(expected) = as_ctf1(&trace) && let Ok(text) = to_tsdl(&trace) {
            prop_assert_eq!(read(&text), expected, "{}", text);
        }
    }

    /// There and back: CTF 1.8 that came from CTF 2 is CTF 2 again, with the same bytes.
    #[test]
    fn both(trace in plain_trace_class()) {
        let Ok(text) = to_tsdl(&trace) else { return Ok(()) };
        let old = read(&text);
        let Ok(text) = to_json(&old) else { return Ok(()) };
        let new = read(&text);
        prop_assert_eq!(&new, &as_ctf2(&old).expect("it was written"));
        prop_assert_eq!(as_ctf2(&new).expect("it is CTF 2 already"), new);
    }
}

/// The tests above prove little if most trace classes are refused.
#[test]
fn most_plain_trace_classes_are_tsdl() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut reasons = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        let trace = plain_trace_class().new_tree(&mut runner).expect("there are trace classes").current();
        let reason = to_tsdl(&trace).err().map_or("written".to_owned(), |problem| problem.reason.to_string());
        *reasons.entry(reason).or_insert(0) += 1;
    }
    println!("{reasons:#?}");
    assert!(reasons["written"] > 600, "{reasons:#?}");
}

/// Text with some characters gone, doubled, or taken from elsewhere.
fn damaged(text: &str, seed: u64) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut state = seed;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for _ in 0..1 + next(4) {
        let (from, to, length) = (next(bytes.len()), next(bytes.len()), 1 + next(24));
        let piece: Vec<u8> = bytes[from..(from + length).min(bytes.len())].to_vec();
        match next(4) {
            0 => drop(bytes.drain(from..(from + length).min(bytes.len()))),
            1 => drop(bytes.splice(to..to, piece)),
            2 if to < bytes.len() => {
                const MARKS: &[u8] = b"{}[]<>;:=,\"'\\0-9aZ_ \n\x00\xff";
                bytes[to] = MARKS[next(MARKS.len())];
            }
            _ => drop(bytes.splice(to..(to + length).min(bytes.len()), piece)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damaged metadata are read or refused; what is read can be checked and written; every finding can be told.
    #[test]
    fn damaged_text_is_refused_or_read(trace in plain_trace_class(), seed in any::<u64>()) {
        for text in [to_tsdl(&trace).ok(), to_json(&trace).ok()].into_iter().flatten() {
            let metadata = kymo_format::parse(damaged(&text, seed).as_bytes());
            for found in &metadata.diagnostics {
                prop_assert!(found.span.end <= metadata.text.len(), "{:?}", found);
                prop_assert!(!found.render_plain(&metadata.text, "damaged").is_empty());
            }
            if let Some(trace) = metadata.trace_class {
                let _ = (to_tsdl(&trace), to_json(&trace));
            }
        }
    }
}
