//! Random trace classes, written and read again, are what they were; what changes on the way to a language
//! is what `as_ctf1` and `as_ctf2` say.

use kymo_format::model::TraceClass;
use kymo_format::testing::{plain_trace_class, trace_class};
use kymo_format::write::{as_ctf1, as_ctf2, to_json, to_tsdl};
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
