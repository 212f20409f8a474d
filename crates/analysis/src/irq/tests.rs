//! Cases of `irq`: interrupts that nest, that are cut off, and softirqs that wait.

use expect_test::{Expect, expect};

use super::Irq;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check_with(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let irq = Irq::new(&script.setup(wishes));
    expect.assert_eq(&text(&irq.finish(&script.state(&irq)).unwrap()));
    script.check_cuts(&irq, 200);
}

fn check(script: &str, by: &[&str], expect: &Expect) {
    let by = by.iter().map(|&by| by.to_owned()).collect();
    check_with(script, &Wishes { by, bins: 2, ..Wishes::default() }, expect);
}

/// Handlers nest; the outer one's duration has the inner one in it.
#[test]
fn handlers_nest() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 irq_entry irq=17 irq_name=disk
         120 0 irq_entry irq=18 irq_name=net
         130 0 irq_exit irq=18
         200 0 irq_exit irq=17
         210 1 irq_entry irq=17 irq_name=disk2
         215 1 irq_exit irq=17",
        &["hard", "top"],
        &expect![[r#"
            hard
              irq=`irq 17 disk2` count=2 total=105 min=5 avg=53 max=100 stdev=67 p50=5 p90=100 p99=100 p999=100 began_before=0 never_ended=0 lost_inside=0
              irq=`irq 18 net` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=0 never_ended=0 lost_inside=0
            hard-per-cpu
              cpu=0 irq=`irq 17 disk2` count=1 total=100 min=100 max=100
              cpu=0 irq=`irq 18 net` count=1 total=10 min=10 max=10
              cpu=1 irq=`irq 17 disk2` count=1 total=5 min=5 max=5
            hard-distribution
              low=5 high=22 count=2
              low=22 high=101 count=1
            top
              begin=100 duration=100 cpu=0 irq=`irq 17 disk2`
              begin=120 duration=10 cpu=0 irq=`irq 18 net`
              begin=210 duration=5 cpu=1 irq=`irq 17 disk2`
            top-raised
        "#]],
    );
}

/// Interrupts that began before the trace, never ended, or do not fit.
#[test]
fn ends_that_do_not_fit() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000 hole=50..60 lost=1
         100 0 irq_exit irq=17
         110 0 irq_exit irq=17
         120 0 irq_entry irq=17 irq_name=disk
         130 0 irq_entry irq=17 irq_name=disk
         140 0 irq_exit irq=17
         150 0 irq_entry irq=18 irq_name=net
         40 1 irq_entry irq=18 irq_name=net
         55 1 irq_exit irq=18
         80 1 irq_exit irq=19
         90 1 irq_entry irq=17
         30 1 irq_entry irq=20",
        &["hard"],
        &expect![[r#"
            hard
              irq=`irq 17 disk` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=1 never_ended=1 lost_inside=2
              irq=`irq 18 net` count=0 total=0 began_before=0 never_ended=1 lost_inside=1
              irq=`irq 19 ?` count=0 total=0 began_before=0 never_ended=0 lost_inside=1
              irq=`irq 20 ?` count=0 total=0 began_before=0 never_ended=0 lost_inside=1
            hard-per-cpu
              cpu=0 irq=`irq 17 disk` count=1 total=10 min=10 max=10
            hard-distribution
              low=10 high=11 count=1
        "#]],
    );
}

/// A softirq waits since it was raised first; one that is raised while it is served waits for the
/// next time.
#[test]
fn softirqs_wait() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 softirq_raise vec=3
         110 0 softirq_raise vec=3
         150 0 softirq_entry vec=3
         160 0 softirq_raise vec=3
         170 0 softirq_exit vec=3
         200 0 softirq_entry vec=3
         230 0 softirq_exit vec=3
         240 0 softirq_entry vec=1
         250 0 softirq_exit vec=1
         300 0 softirq_raise vec=3
         300 1 softirq_entry vec=3
         400 1 softirq_exit vec=3",
        &["soft", "top", "irq"],
        &expect![[r#"
            soft
              irq=`softirq 3 ?` count=3 total=150 min=20 avg=50 max=100 stdev=44 p50=30 p90=100 p99=100 p999=100 began_before=0 never_ended=0 lost_inside=0 raises=4 raise_count=2 raise_total=90 raise_min=40 raise_avg=45 raise_max=50 raise_stdev=7 raise_never_ended=1
              irq=`softirq 1 ?` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=0 never_ended=0 lost_inside=0 raises=0 raise_count=0 raise_total=0 raise_never_ended=0
            soft-per-cpu
              cpu=1 irq=`softirq 3 ?` count=1 total=100 min=100 max=100
              cpu=0 irq=`softirq 3 ?` count=2 total=50 min=20 max=30
              cpu=0 irq=`softirq 1 ?` count=1 total=10 min=10 max=10
            soft-distribution
              low=10 high=32 count=3
              low=32 high=101 count=1
            raise-distribution
              low=40 high=45 count=1
              low=45 high=51 count=1
            soft-distribution-of
              low=10 high=11 count=1
            soft-distribution-of
              low=20 high=45 count=2
              low=45 high=101 count=1
            top
              begin=300 duration=100 cpu=1 irq=`softirq 3 ?`
              begin=200 duration=30 cpu=0 irq=`softirq 3 ?`
              begin=150 duration=20 cpu=0 irq=`softirq 3 ?`
              begin=240 duration=10 cpu=0 irq=`softirq 1 ?`
            top-raised
              begin=100 duration=50 cpu=0 irq=`softirq 3 ?`
              begin=160 duration=40 cpu=0 irq=`softirq 3 ?`
        "#]],
    );
}

/// Only long ones on one CPU.
#[test]
fn wishes_narrow() {
    let wishes = Wishes { min_ns: Some(10), cpus: vec![0], bins: 2, top: Some(1), ..Wishes::default() };
    check_with(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 irq_entry irq=17
         105 0 irq_exit irq=17
         110 0 irq_entry irq=17
         125 0 irq_exit irq=17
         200 0 irq_entry irq=18
         225 0 irq_exit irq=18
         300 1 irq_entry irq=17
         400 1 irq_exit irq=17",
        &wishes,
        &expect![[r#"
            hard
              irq=`irq 18 ?` count=1 total=25 min=25 avg=25 max=25 p50=25 p90=25 p99=25 p999=25 began_before=0 never_ended=0 lost_inside=0
              and 1 more
            hard-per-cpu
              cpu=0 irq=`irq 18 ?` count=1 total=25 min=25 max=25
              and 1 more
            hard-distribution
              low=10 high=16 count=1
              low=16 high=26 count=1
            soft
            soft-per-cpu
            top
              begin=200 duration=25 cpu=0 irq=`irq 18 ?`
            top-raised
        "#]],
    );
}

/// Random events: cutting changes nothing.
#[test]
fn anything_cut_anywhere() {
    for seed in 0..300_u64 {
        let mut random = Random(seed.wrapping_mul(77_777));
        let lanes = 1 + random.below(3);
        let mut script: String = (0..lanes)
            .map(|lane| {
                format!("lane cpu={lane} span=0..3000 hole={0}..{1} lost=?\n", 700 * lane + 200, 700 * lane + 240)
            })
            .collect();
        let roles =
            ["irq_entry irq_name=n irq", "irq_exit irq", "softirq_raise vec", "softirq_entry vec", "softirq_exit vec"];
        for step in 1..100 {
            let (role, number) = (roles[random.below(roles.len())], random.below(2));
            script += &format!("{} {} {role}={number}\n", step * 20, random.below(lanes));
        }
        let script = Script::parse(&script);
        let wishes = Wishes { bins: 3, top: (seed % 3 == 0).then_some(2), ..Wishes::default() };
        let irq = Irq::new(&script.setup(&wishes));
        script.check_cuts(&irq, 10);
    }
}

/// A selection of interrupts excludes softirqs, and the other way round.
#[test]
fn interrupts_are_chosen_by_number() {
    let script = "lane cpu=0 span=0..1000
         100 0 irq_entry irq=17 irq_name=disk
         120 0 irq_exit irq=17
         130 0 irq_entry irq=18 irq_name=net
         170 0 irq_exit irq=18
         180 0 softirq_raise vec=17
         190 0 softirq_entry vec=17
         200 0 softirq_exit vec=17
         210 0 softirq_entry vec=3
         240 0 softirq_exit vec=3";
    let check = |by: &[&str], irqs: &[i64], softirqs: &[i64], expect: &Expect| {
        let by = by.iter().map(|&by| by.to_owned()).collect();
        let (irqs, softirqs) = (irqs.to_vec(), softirqs.to_vec());
        check_with(script, &Wishes { by, bins: 1, irqs, softirqs, ..Wishes::default() }, expect);
    };
    check(
        &["hard", "soft"],
        &[17],
        &[],
        &expect![[r#"
        hard
          irq=`irq 17 disk` count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 began_before=0 never_ended=0 lost_inside=0
        hard-per-cpu
          cpu=0 irq=`irq 17 disk` count=1 total=20 min=20 max=20
        hard-distribution
          low=20 high=21 count=1
        soft
        soft-per-cpu
    "#]],
    );
    check(
        &["top"],
        &[],
        &[17, 5],
        &expect![[r#"
        top
          begin=190 duration=10 cpu=0 irq=`softirq 17 ?`
        top-raised
          begin=180 duration=10 cpu=0 irq=`softirq 17 ?`
    "#]],
    );
    check(
        &["top"],
        &[18],
        &[3],
        &expect![[r#"
        top
          begin=130 duration=40 cpu=0 irq=`irq 18 net`
          begin=210 duration=30 cpu=0 irq=`softirq 3 ?`
        top-raised
    "#]],
    );
}
