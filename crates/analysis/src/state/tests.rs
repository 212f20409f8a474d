//! Whatever happens to the bytes of a state, they are refused, or are the state.

use super::{Head, StateError, checksum, decode, encode};
use crate::block::Block;
use crate::count::Count;
use crate::cpu::Cpu;
use crate::declared::{Declaration, Declared};
use crate::gaps::Gaps;
use crate::io::Io;
use crate::irq::Irq;
use crate::pairs::{Pairs, PairsOptions};
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
        reseal(analysis, script, &damaged);
    }
    let of_other_traces = Script::parse("lane cpu=0\n lane cpu=1\n lane cpu=2\n 5 0 'else'");
    for setup in [of_other_traces.setup(&wishes), script.setup(&other)] {
        assert_eq!(decode(analysis, &setup, &bytes).err(), Some(StateError::OtherSetup { name }));
    }
}

/// Reads damaged bytes whose checksum is right: they are read to the end or refused, and take no more memory than they have.
fn reseal<A: Analysis>(analysis: &A, script: &Script, bytes: &[u8]) {
    let Ok((head, state)) = postcard::take_from_bytes::<Head>(bytes) else { return };
    let head = Head { checksum: checksum(state), ..head };
    let mut sealed = postcard::to_allocvec(&head).expect("a head can be encoded");
    sealed.extend(state);
    let _ = decode(analysis, &script.setup(&Wishes::default()), &sealed);
}

#[test]
fn damaged_states_are_refused() {
    let script = Script::parse(TRACE);
    let wishes = Wishes::default();
    let setup = &script.setup(&wishes);
    let declaration = Declaration::parse(DECLARATION).expect("the declaration is right");
    check(&script, &Count::new(setup));
    check(&script, &Cpu::new(setup));
    check(&script, &Syscalls::new(setup));
    check(&script, &Io::new(setup));
    check(&script, &Sched::new(setup));
    check(&script, &Irq::new(setup));
    check(&script, &Block::new(setup));
    check(&script, &Rates::new(setup));
    check(&script, &Gaps::new(setup));
    check(&script, &Pairs::new(setup, &PairsOptions::default()));
    check(&script, &Declared::new(setup, &declaration));
}
