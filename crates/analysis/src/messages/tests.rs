//! Cases of `flows`: arrivals, those that lack an end, clocks that disagree, and cuts in between.

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::MessagesAnalysis;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let wishes = Wishes { bins: 2, ..wishes.clone() };
    let messages = MessagesAnalysis::new(&script.setup(&wishes));
    expect.assert_eq(&text(&messages.finish(&script.state(&messages)).unwrap()));
    script.check_cuts(&messages, 200);
}

/// Of each kind one: arrived, never received, sent before, without a key, received first.
const SCRIPT: &str = "lane cpu=0 span=0..1000
    lane cpu=1 span=0..1000
    5 1 receive key=3 @tid=2 @comm=server
    10 0 send key=7 @tid=1 @comm=client
    20 0 send key=7 @tid=1 @comm=client
    30 1 receive key=7 name=ask @tid=2 @comm=server
    35 1 receive key=? @tid=2 @comm=server
    50 1 receive key=7 name=ask @tid=2 @comm=server
    60 1 receive key=8 name=ask early=20 @tid=2 @comm=server
    70 0 send key=8 @tid=1 @comm=client
    80 1 receive key=9 name=ask early=5 @tid=2 @comm=server
    90 0 send key=9 name=ask @tid=3 @comm=late";

#[test]
fn routes_have_latencies_and_messages_without_an_end_are_counted() {
    check(
        SCRIPT,
        &Wishes::default(),
        &expect![[r#"
        total
          count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 never_received=1 sent_before=3 lost_inside=0 without_key=0 given_up=0
        per-route
          from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask` count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 lost_inside=0
        longest
          latency=30 sent=20 received=50 from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask`
          latency=20 sent=10 received=30 from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask`
        early
          early_by=10 received=60 sent=70 from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask`
        open
          sent=90 from=`late pid ? tid 3` name=`ask`
        distribution
          low=20 high=24 count=1
          low=24 high=31 count=1
    "#]],
    );
}

/// The counters of CPUs were compared: they may be 15 ns apart.
#[test]
fn what_is_received_first_within_the_bound_of_the_counters_takes_no_time() {
    let script = "lane cpu=0 span=0..1000 apart=15
        lane cpu=1 span=0..1000 apart=15
        10 1 receive key=7
        20 0 send key=7
        50 1 receive key=8
        70 0 send key=8
        100 1 receive key=9 early=30
        120 0 send key=9";
    check(
        script,
        &Wishes { by: vec!["cpu".to_owned()], ..Wishes::default() },
        &expect![[r#"
        total
          count=1 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 early=1 never_received=1 sent_before=1 lost_inside=0 without_key=0 given_up=0
        per-route
          from_cpu=0 to_cpu=1 count=1 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 early=1 lost_inside=0
        longest
          latency=0 sent=20 received=20 from_cpu=0 to_cpu=1
        early
          early_by=20 received=100 sent=120 from_cpu=0 to_cpu=1
        open
          sent=70 from_cpu=0
        distribution
          low=0 high=1 count=1
    "#]],
    );
}

#[test]
fn routes_are_by_cpu_or_by_name_if_that_is_wished() {
    let by =
        |by: &[&str]| Wishes { by: by.iter().map(ToString::to_string).collect(), top: Some(1), ..Wishes::default() };
    check(
        SCRIPT,
        &by(&["cpu"]),
        &expect![[r#"
        total
          count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 never_received=1 sent_before=3 lost_inside=0 without_key=0 given_up=0
        per-route
          from_cpu=0 to_cpu=1 count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 lost_inside=0
        longest
          latency=30 sent=20 received=50 from_cpu=0 to_cpu=1
        early
          early_by=10 received=60 sent=70 from_cpu=0 to_cpu=1
        open
          sent=90 from_cpu=0
        distribution
          low=20 high=24 count=1
          low=24 high=31 count=1
    "#]],
    );
    check(
        SCRIPT,
        &by(&["name"]),
        &expect![[r#"
        total
          count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 never_received=1 sent_before=3 lost_inside=0 without_key=0 given_up=0
        per-route
          name=`ask` count=2 total=50 min=20 avg=25 max=30 stdev=7 p50=20 p90=30 p99=30 p999=30 early=1 lost_inside=0
        longest
          latency=30 sent=20 received=50 name=`ask`
        early
          early_by=10 received=60 sent=70 name=`ask`
        open
          sent=90 name=`ask`
        distribution
          low=20 high=24 count=1
          low=24 high=31 count=1
    "#]],
    );
}

/// A message is a thread's that sends or receives it.
#[test]
fn messages_of_wanted_threads() {
    let of_late = Wishes { tids: vec![3], ..Wishes::default() };
    check(
        SCRIPT,
        &of_late,
        &expect![[r#"
        total
          count=0 total=0 early=0 never_received=1 sent_before=0 lost_inside=0 without_key=0 given_up=0
        per-route
        longest
        early
        open
          sent=90 from=`late pid ? tid 3` name=`ask`
        distribution
    "#]],
    );
    let slow = Wishes { min_ns: Some(30), names: vec!["ask".to_owned()], ..Wishes::default() };
    check(
        SCRIPT,
        &slow,
        &expect![[r#"
        total
          count=1 total=30 min=30 avg=30 max=30 p50=30 p90=30 p99=30 p999=30 early=0 never_received=1 sent_before=0 lost_inside=0 without_key=0 given_up=0
        per-route
          from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask` count=1 total=30 min=30 avg=30 max=30 p50=30 p90=30 p99=30 p999=30 early=0 lost_inside=0
        longest
          latency=30 sent=20 received=50 from=`client pid ? tid 1` to=`server pid ? tid 2` name=`ask`
        early
        open
          sent=90 from=`late pid ? tid 3` name=`ask`
        distribution
          low=30 high=31 count=1
    "#]],
    );
}

/// Where events were lost, a receive may have another send.
#[test]
fn losses_make_messages_uncertain() {
    check(
        "lane cpu=0 span=0..1000 hole=15..18
         lane cpu=1 span=0..1000
         10 0 send key=7
         20 1 receive key=7
         30 1 receive key=8
         40 0 send key=9
         50 1 receive key=9",
        &Wishes::default(),
        &expect![[r#"
            total
              count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 early=0 never_received=0 sent_before=0 lost_inside=2 without_key=0 given_up=0
            per-route
              from=`stream ` to=`stream ` name=`receive` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 early=0 lost_inside=1
            longest
              latency=10 sent=40 received=50 from=`stream ` to=`stream ` name=`receive`
            early
            open
            distribution
              low=10 high=11 count=1
        "#]],
    );
}

/// At one time, a send is before its receive, whichever lane comes first.
#[test]
fn messages_that_take_no_time_arrive() {
    check(
        "lane
         lane
         10 0 receive key=1 early=5
         10 1 send key=1",
        &Wishes::default(),
        &expect![[r#"
            total
              count=1 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 early=0 never_received=0 sent_before=0 lost_inside=0 without_key=0 given_up=0
            per-route
              from=`stream ` to=`stream ` name=`receive` count=1 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 early=0 lost_inside=0
            longest
              latency=0 sent=10 received=10 from=`stream ` to=`stream ` name=`receive`
            early
            open
            distribution
              low=0 high=1 count=1
        "#]],
    );
}

/// However a trace is cut, routes and counts are those of one reading.
#[test]
fn cuts_change_nothing() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let (mut script, mut time) = (String::from("lane cpu=0\nlane cpu=1\nlane cpu=2\n"), 5);
        for _ in 0..200 {
            time += random.below(4);
            let (lane, key, tid) = (random.below(3), random.below(4), 1 + random.below(3));
            let role = match random.below(4) {
                0 | 1 => "send".to_owned(),
                2 => "receive count=2".to_owned(),
                _ => format!("receive early={}", random.below(9)),
            };
            writeln!(
                script,
                "{time} {lane} {role} key={key} name=n{} @tid={tid} @comm=c{}",
                random.below(2),
                random.below(3)
            )
            .unwrap();
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        let messages = MessagesAnalysis::new(&script.setup(&wishes));
        script.check_cuts(&messages, 20);
    }
}
