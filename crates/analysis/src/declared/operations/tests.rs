//! Cases of operations: steps on several CPUs, operations without an end, clocks that disagree, cuts in between.

use expect_test::{Expect, expect};

use super::super::tests::script;
use super::super::{AnalysisDeclaration, DeclaredAnalysis};
use crate::testing::{Random, text};
use crate::{Analysis, Wishes};

const DELETE: &str = "
    name = 'mine'
    [[operations]]
    name = 'delete'
    key = 'seq'
    begin = 'call'
    end = 'resp'
    early = 10
";

const KINDS: &str = "
    name = 'mine'
    [[operations]]
    name = 'all'
    key = 'seq'
    group = 'kind'
    within = 'core'
    begin = ['call', 'enter']
    step = 's*'
    end = ['resp', 'leave']
";

fn check(declaration: &str, events: &str, wishes: &Wishes, expect: &Expect) {
    let declaration = AnalysisDeclaration::parse(declaration).unwrap();
    let script = script(events, &declaration);
    let wishes = Wishes { bins: 1, ..wishes.clone() };
    let declared = DeclaredAnalysis::new(&script.setup(&wishes), &declaration);
    expect.assert_eq(&text(&declared.finish(&script.state(&declared)).unwrap()));
    script.check_cuts(&declared, 200);
}

/// Worked out by hand: two whole operations of 100 ns, with steps on the other CPU.
#[test]
fn steps_have_offsets_and_latencies() {
    check(
        DELETE,
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         20 1 remote seq=77
         50 0 resp seq=1
         100 0 call seq=7
         110 0 other size=3
         130 1 remote seq=7
         180 1 done seq=7
         200 0 resp seq=7
         300 0 call seq=8
         310 1 remote seq=8
         400 0 resp seq=8
         495 1 remote seq=9
         500 0 call seq=9
         550 0 resp seq=9
         600 0 call seq=10
         610 0 call seq=10",
        &Wishes::default(),
        &expect![[r#"
            operations
              operation=`delete` count=2 total=200 min=100 avg=100 max=100 stdev=0 p50=100 p90=100 p99=100 p999=100 never_ended=2 lost_inside=0 out_of_order=1
            steps
              operation=`delete` step=`remote` count=2 total=40 share=0.200 min=10 avg=20 p50=10 p99=30 max=30 offset_min=10 offset_avg=20 offset_p50=10 offset_p99=30 offset_max=30
              operation=`delete` step=`done` count=1 total=50 share=0.250 min=50 avg=50 p50=50 p99=50 max=50 offset_min=80 offset_avg=80 offset_p50=80 offset_p99=80 offset_max=80
              operation=`delete` step=`resp` count=2 total=110 share=0.550 min=20 avg=55 p50=20 p99=90 max=90 offset_min=100 offset_avg=100 offset_p50=100 offset_p99=100 offset_max=100
            longest-operations
              duration=100 begin=100 operation=`delete` key=7 cpu=0 steps=3
              duration=100 begin=300 operation=`delete` key=8 cpu=0 steps=2
            breakdown
              operation=`delete` key=7 step=`call` cpu=0 time=100 offset=0 latency=0
              operation=`delete` key=7 step=`remote` cpu=1 time=130 offset=30 latency=30
              operation=`delete` key=7 step=`done` cpu=1 time=180 offset=80 latency=50
              operation=`delete` key=7 step=`resp` cpu=0 time=200 offset=100 latency=20
              operation=`delete` key=8 step=`call` cpu=0 time=300 offset=0 latency=0
              operation=`delete` key=8 step=`remote` cpu=1 time=310 offset=10 latency=10
              operation=`delete` key=8 step=`resp` cpu=0 time=400 offset=100 latency=90
            unmatched
              began_before=1 lost_inside=0 loose_steps=2 without_field=0 given_up=0
            operation-durations
              low=100 high=101 count=2
        "#]],
    );
}

/// An operation within another with the same number; the same number on another CPU; only wanted durations.
#[test]
fn operations_with_one_number_are_told_apart() {
    check(
        KINDS,
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 call seq=7 kind=user core=0
         110 0 enter seq=7 kind=monitor core=0
         115 1 call seq=7 kind=user core=1
         120 1 sent seq=7
         130 0 leave seq=7 kind=monitor core=0
         150 0 resp seq=7 kind=user core=0
         160 1 resp seq=7 kind=user core=1
         170 1 resp seq=7 kind=user",
        &Wishes { min_ns: Some(30), ..Wishes::default() },
        &expect![[r#"
            operations
              operation=`user` count=2 total=95 min=45 avg=48 max=50 stdev=4 p50=45 p90=50 p99=50 p999=50 never_ended=0 lost_inside=0 out_of_order=0
            steps
              operation=`user` step=`enter` count=1 total=10 share=0.105 min=10 avg=10 p50=10 p99=10 max=10 offset_min=10 offset_avg=10 offset_p50=10 offset_p99=10 offset_max=10
              operation=`user` step=`sent` count=2 total=10 share=0.105 min=5 avg=5 p50=5 p99=5 max=5 offset_min=5 offset_avg=13 offset_p50=5 offset_p99=20 offset_max=20
              operation=`user` step=`call` count=1 total=5 share=0.053 min=5 avg=5 p50=5 p99=5 max=5 offset_min=15 offset_avg=15 offset_p50=15 offset_p99=15 offset_max=15
              operation=`user` step=`leave` count=2 total=20 share=0.211 min=10 avg=10 p50=10 p99=10 max=10 offset_min=15 offset_avg=23 offset_p50=15 offset_p99=30 offset_max=30
              operation=`user` step=`resp` count=3 total=50 share=0.526 min=10 avg=17 p50=20 p99=20 max=20 offset_min=35 offset_avg=43 offset_p50=45 offset_p99=50 offset_max=50
            longest-operations
              duration=50 begin=100 operation=`user` key=7 cpu=0 steps=5
              duration=45 begin=115 operation=`user` key=7 cpu=1 steps=4
            breakdown
              operation=`user` key=7 step=`call` cpu=0 time=100 offset=0 latency=0
              operation=`user` key=7 step=`enter` cpu=0 time=110 offset=10 latency=10
              operation=`user` key=7 step=`call` cpu=1 time=115 offset=15 latency=5
              operation=`user` key=7 step=`sent` cpu=1 time=120 offset=20 latency=5
              operation=`user` key=7 step=`leave` cpu=0 time=130 offset=30 latency=10
              operation=`user` key=7 step=`resp` cpu=0 time=150 offset=50 latency=20
              operation=`user` key=7 step=`call` cpu=1 time=115 offset=0 latency=0
              operation=`user` key=7 step=`sent` cpu=1 time=120 offset=5 latency=5
              operation=`user` key=7 step=`leave` cpu=0 time=130 offset=15 latency=10
              operation=`user` key=7 step=`resp` cpu=0 time=150 offset=35 latency=20
              operation=`user` key=7 step=`resp` cpu=1 time=160 offset=45 latency=10
            unmatched
              began_before=0 lost_inside=0 loose_steps=0 without_field=1 given_up=0
            operation-durations
              low=30 high=51 count=2
        "#]],
    );
}

/// An operation that another machine has a step of.
#[test]
fn steps_name_their_machine() {
    check(
        DELETE,
        "lane cpu=0 span=0..1000
         lane cpu=0 host=1 span=0..1000
         100 0 call seq=7
         130 1 remote seq=7
         200 0 resp seq=7",
        &Wishes::default(),
        &expect![[r#"
            operations
              operation=`delete` count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 never_ended=0 lost_inside=0 out_of_order=0
            steps
              operation=`delete` step=`remote` count=1 total=30 share=0.300 min=30 avg=30 p50=30 p99=30 max=30 offset_min=30 offset_avg=30 offset_p50=30 offset_p99=30 offset_max=30
              operation=`delete` step=`resp` count=1 total=70 share=0.700 min=70 avg=70 p50=70 p99=70 max=70 offset_min=100 offset_avg=100 offset_p50=100 offset_p99=100 offset_max=100
            longest-operations
              duration=100 begin=100 operation=`delete` key=7 cpu=0 host=`machine 1` steps=2
            breakdown
              operation=`delete` key=7 step=`call` cpu=0 host=`machine 1` time=100 offset=0 latency=0
              operation=`delete` key=7 step=`remote` cpu=0 host=`machine 2` time=130 offset=30 latency=30
              operation=`delete` key=7 step=`resp` cpu=0 host=`machine 1` time=200 offset=100 latency=70
            unmatched
            operation-durations
              low=100 high=101 count=1
        "#]],
    );
}

/// A step may be missing in a hole, and so may a begin and an end.
#[test]
fn holes_cast_doubt() {
    check(
        DELETE,
        "lane cpu=0 span=0..1000 hole=140..150
         100 0 call seq=7
         200 0 resp seq=7
         210 0 resp seq=8
         300 0 call seq=9
         310 0 resp seq=9",
        &Wishes { top: Some(1), ..Wishes::default() },
        &expect![[r#"
            operations
              operation=`delete` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=1 out_of_order=0
            steps
              operation=`delete` step=`resp` count=1 total=10 share=1.000 min=10 avg=10 p50=10 p99=10 max=10 offset_min=10 offset_avg=10 offset_p50=10 offset_p99=10 offset_max=10
            longest-operations
              duration=10 begin=300 operation=`delete` key=9 cpu=0 steps=1
            breakdown
              operation=`delete` key=9 step=`call` cpu=0 time=300 offset=0 latency=0
              and 1 more
            unmatched
              began_before=0 lost_inside=1 loose_steps=0 without_field=0 given_up=0
            operation-durations
              low=10 high=11 count=1
        "#]],
    );
}

#[test]
fn cuts_change_nothing() {
    for (seed, text) in (0..60).map(|seed| (seed, [DELETE, KINDS][seed as usize % 2])) {
        let declaration = AnalysisDeclaration::parse(text).unwrap();
        let mut random = Random(seed);
        let mut events = String::from("lane cpu=0 span=0..3000 hole=1500..1530\nlane cpu=1 span=0..3000\n");
        let mut time = 0;
        for _ in 0..120 {
            time += random.below(20);
            let name = ["call", "enter", "leave", "resp", "sent", "s"][random.below(6)];
            let (lane, seq, kind, core) = (random.below(2), random.below(4), random.below(2), random.below(2));
            events += &format!("{time} {lane} {name} seq={seq} kind=k{kind} core={core}\n");
        }
        let script = script(&events, &declaration);
        let wishes = Wishes::default();
        script.check_cuts(&DeclaredAnalysis::new(&script.setup(&wishes), &declaration), 20);
    }
}
