//! Damaged bytes of a state are refused, or are the state.

use super::{StateError, StateHeader, checksum, decode, encode};
use crate::block::BlockAnalysis;
use crate::count::CountAnalysis;
use crate::cpu::Cpu;
use crate::declared::{AnalysisDeclaration, DeclaredAnalysis};
use crate::gaps::Gaps;
use crate::io::Io;
use crate::irq::Irq;
use crate::memory::MemoryAnalysis;
use crate::pairs::{PairsAnalysis, PairsOptions};
use crate::rates::Rates;
use crate::sched::Sched;
use crate::syscalls::Syscalls;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

/// Something of everything.
const TRACE: &str = "
    lane cpu=0 span=0..1000 hole=300..350 lost=2
    lane cpu=1 span=0..1000
    5 0 thread_switch prev_tid=0 next_tid=5 next_comm=bash
    10 0 syscall_entry syscall=read fd=3
    20 0 thread_switch prev_tid=5 prev_state=1 next_tid=6 next_comm=make
    25 1 irq_entry irq=7
    30 1 irq_exit irq=7
    40 1 thread_wakeup woken_tid=5
    50 0 thread_fork parent_tid=6 child_tid=8 child_pid=8 child_comm=cc
    60 1 thread_switch prev_tid=0 next_tid=5 next_comm=bash
    65 1 syscall_exit syscall=read ret=12
    70 1 syscall_entry syscall=openat
    75 1 page_alloc order=2
    80 0 page_free order=0
    400 1 begin name=phase
    500 0 thread_switch prev_tid=6 prev_state=0 next_tid=8 next_comm=cc
    600 1 end name=phase
    700 1 begin name=other
    800 0 'plain'
";

const DECLARATION: &str = "
name = 'own'
[[counters]]
name = 'events'
change = { event = '*', add = 1 }
[[states]]
name = 'how'
set = [{ event = 'plain', to = 'odd' }]
";

/// Bytes that were changed in one place, or cut, or grew.
fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    match random.below(4) {
        0 => damaged.truncate(random.below(bytes.len())),
        1 => damaged.insert(random.below(bytes.len()), random.below(256) as u8),
        _ => damaged[random.below(bytes.len())] ^= 1 << random.below(8),
    }
    damaged
}

fn check<A: Analysis>(script: &Script, analysis: &A) {
    let (wishes, other) = (Wishes::default(), Wishes { bins: 7, ..Wishes::default() });
    let setup = script.setup(&wishes);
    let name = analysis.identity().name;
    let answer = |state: &A::State| text(&analysis.finish(state).expect("nothing is put aside"));
    let state = script.state(analysis);
    let whole = answer(&state);
    let bytes = encode(analysis, &setup, &state).expect("a state can be encoded");
    let random = &mut Random(name.len() as u64);
    for _ in 0..2000 {
        let damaged = damaged(&bytes, random);
        if let Ok(state) = decode(analysis, &setup, &damaged) {
            assert_eq!(whole, answer(&state), "{name}: {damaged:?} instead of {bytes:?}");
        }
        // Read to the end or refused, without taking more memory than there are bytes.
        let _ = resealed(&damaged).map(|sealed| decode(analysis, &setup, &sealed).is_ok());
    }
    let of_other_traces = Script::parse("lane cpu=0\n lane cpu=1\n lane cpu=2\n 5 0 'else'");
    for setup in [of_other_traces.setup(&wishes), script.setup(&other)] {
        assert_eq!(decode(analysis, &setup, &bytes).err(), Some(StateError::OtherSetup { name }));
    }
}

/// Bytes of a state with another one in it, and the right checksum for that.
fn resealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, state) = postcard::take_from_bytes::<StateHeader>(bytes).ok()?;
    let head = StateHeader { checksum: checksum(state), ..head };
    let mut sealed = postcard::to_allocvec(&head).expect("a head can be encoded");
    sealed.extend(state);
    Some(sealed)
}

/// Merges a forged state on either side, and finishes; returns the faults.
fn merged<A: Analysis>(analysis: &A, script: &Script, sealed: &[u8]) -> Option<String> {
    let wishes = Wishes::default();
    let setup = script.setup(&wishes);
    let forged = || decode(analysis, &setup, sealed).ok();
    forged()?;
    let merge = || {
        for is_left in [true, false] {
            let (own, forged) = (script.state(analysis), forged().expect("it was decoded before"));
            let (mut left, right) = if is_left { (forged, own) } else { (own, forged) };
            let _ = analysis.finish(if is_left { &left } else { &right });
            analysis.merge(&mut left, right);
            let _ = analysis.finish(&left);
        }
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(merge)).err()?;
    let said =
        panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref().map(|said: &&str| (*said).into()));
    // Sums that are too large wrap in the answer: a forged state gives a forged number.
    said.filter(|said| !said.contains("with overflow"))
}

fn check_forged<A: Analysis>(script: &Script, analysis: &A) {
    let wishes = Wishes::default();
    let bytes = encode(analysis, &script.setup(&wishes), &script.state(analysis)).expect("a state can be encoded");
    let (random, name) = (&mut Random(5), analysis.identity().name);
    let mut decoded = 0;
    for _ in 0..6000 {
        let Some(sealed) = resealed(&damaged(&bytes, random)) else { continue };
        decoded += u64::from(decode(analysis, &script.setup(&wishes), &sealed).is_ok());
        let problem = merged(analysis, script, &sealed);
        assert_eq!(problem, None, "{name}: {sealed:?}");
    }
    assert!(decoded > 500, "{name}: {decoded} forged states were merged");
}

/// The checksum is no signature: states that pass although they are forged do no harm.
#[test]
fn forged_states_are_merged_or_refused() {
    let script = Script::parse(TRACE);
    let wishes = Wishes::default();
    let setup = &script.setup(&wishes);
    let declaration = AnalysisDeclaration::parse(DECLARATION).expect("the declaration is right");
    check_forged(&script, &CountAnalysis::new(setup));
    check_forged(&script, &Cpu::new(setup));
    check_forged(&script, &Sched::new(setup));
    check_forged(&script, &MemoryAnalysis::new(setup));
    check_forged(&script, &Irq::new(setup));
    check_forged(&script, &BlockAnalysis::new(setup));
    check_forged(&script, &Rates::new(setup));
    check_forged(&script, &Gaps::new(setup));
    check_forged(&script, &PairsAnalysis::new(setup, &PairsOptions::default()));
    check_forged(&script, &Syscalls::new(setup));
    check_forged(&script, &Io::new(setup));
    check_forged(&script, &DeclaredAnalysis::new(setup, &declaration));
}

#[test]
fn damaged_states_are_refused() {
    let script = Script::parse(TRACE);
    let wishes = Wishes::default();
    let setup = &script.setup(&wishes);
    let declaration = AnalysisDeclaration::parse(DECLARATION).expect("the declaration is right");
    check(&script, &CountAnalysis::new(setup));
    check(&script, &Cpu::new(setup));
    check(&script, &Syscalls::new(setup));
    check(&script, &Io::new(setup));
    check(&script, &Sched::new(setup));
    check(&script, &MemoryAnalysis::new(setup));
    check(&script, &Irq::new(setup));
    check(&script, &BlockAnalysis::new(setup));
    check(&script, &Rates::new(setup));
    check(&script, &Gaps::new(setup));
    check(&script, &PairsAnalysis::new(setup, &PairsOptions::default()));
    check(&script, &DeclaredAnalysis::new(setup, &declaration));
}
