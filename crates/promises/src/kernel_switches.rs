//! Any bytes are records of perf about context switches, or end where one is not whole; each event that they become has some of
//! the fields that are listed for it.
//!
//! ```text
//! u8 flags │ records of perf, of two CPUs in turns
//! ```

use std::collections::{HashMap, HashSet};

use kymo_format::model::{FieldClass, FieldKind, Member};
use kymo_ftrace::perf_sched::{SchedFact, SchedTracker, classes, lost_record, next_record};

use crate::measured::measured;

/// The promise; how many events there were.
pub(crate) fn hold(data: &[u8]) -> u64 {
    let Some((&flags, mut bytes)) = data.split_first() else { return 0 };
    let scope = (flags & 1 != 0).then(|| HashSet::from([1, 2, 3]));
    let is_all = scope.is_none();
    let mut tracker = SchedTracker::new(scope, flags & 2 != 0);
    tracker.knows(1, b"first");
    let declared = classes();
    let mut known: HashMap<(&str, u8), FieldClass> = HashMap::new();
    let (mut events, mut cpu) = (0, 0);
    while let Some((record, rest)) = next_record(bytes) {
        assert!(rest.len() + 8 <= bytes.len(), "it goes on");
        bytes = rest;
        cpu = (cpu + u32::from(flags & 4 != 0)) % 2;
        if let SchedFact::Lost { .. } = record.fact {
            tracker.loses(cpu);
        }
        let mut told = 0;
        tracker.record(cpu, &record, |event| {
            let class = event.fields.class();
            let whole = declared.iter().find(|(_, name, _)| *name == event.name).expect("it is listed");
            assert!(is_part(members(&class), members(&whole.2)), "{}", event.name);
            let fields = event.fields.bytes();
            assert_eq!(measured(&class, fields, &mut Vec::new()), Some(fields.len()), "{}", event.name);
            assert_eq!(known.entry((event.name, event.variant)).or_insert_with(|| class.clone()), &class);
            told += 1;
        });
        // A new program is a new name, too.
        assert!(told <= 2, "{told} events of {record:?}");
        if let (true, SchedFact::Out { .. }) = (is_all, record.fact) {
            assert_eq!(told, 1, "{record:?}");
        }
        events += told;
    }
    events
}

fn members(class: &FieldClass) -> &[Member] {
    let FieldKind::Structure(structure) = &class.kind else { panic!("events have structures: {class:?}") };
    &structure.members
}

/// Whether all of these are among the others, in their order.
fn is_part(some: &[Member], all: &[Member]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let record = |kind: u32, flags: u16, words: &[i32], tid: i32| {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = 8 + body.len() as u16 + 16;
        let trailer = [&1_i32.to_le_bytes()[..], &tid.to_le_bytes(), &77_u64.to_le_bytes()].concat();
        [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &length.to_le_bytes(), &body, &trailer].concat()
    };
    let name = [1, 2, i32::from_le_bytes(*b"anot"), i32::from_le_bytes(*b"her\0")];
    let (switch, out, preempted) = (15, 1 << 13, 1 << 14);
    let all = [
        record(7, 0, &[1, 1, 2, 1, 0, 0], 1),
        record(switch, out, &[2, 2], 1),
        record(switch, 0, &[1, 1], 2),
        record(3, 1 << 13, &name, 2),
        record(switch, out | preempted, &[1, 1], 2),
        record(4, 0, &[2, 1, 2, 1, 0, 0], 2),
        record(switch, out | preempted, &[0, 0], -1),
        lost_record(99),
        record(switch, out, &[-1, -1], -1),
        record(switch, 0, &[2, 2], -1),
    ];
    let all = all.concat();
    (0..8).map(|flags| [&[flags], &all[..]].concat()).collect()
}
