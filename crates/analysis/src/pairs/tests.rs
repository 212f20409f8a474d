//! Cases of `pairs`: pairs, unmatched events, and cuts in between.

use expect_test::{Expect, expect};
use kymo_filter::NamePath;

use super::{PairsAnalysis, PairsOptions};
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn path(text: &str) -> NamePath {
    NamePath::parse(text).expect("paths of tests are right")
}

fn options(keys: &[&str], is_nested: bool) -> PairsOptions {
    PairsOptions { keys: keys.iter().map(|key| (path(key), path(key))).collect(), is_nested, ..PairsOptions::default() }
}

fn check(script: &str, options: &PairsOptions, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let wishes = Wishes { bins: 2, ..wishes.clone() };
    let pairs = PairsAnalysis::new(&script.setup(&wishes), options);
    expect.assert_eq(&text(&pairs.finish(&script.state(&pairs)).unwrap()));
    script.check_cuts(&pairs, 200);
}

/// Unwanted groups are not counted, nor are ends of unknown groups.
#[test]
fn names_choose_groups() {
    check(
        "lane cpu=0 span=0..1000
         5 0 end name=gone within=5 group=function
         10 0 begin name=main within=5 group=function
         20 0 begin name=work within=5 group=function
         30 0 end name=work within=5 group=function
         50 0 end name=main within=5 group=function
         60 0 begin name=worst within=5 group=function
         70 0 begin name=main within=6 group=function",
        &options(&[], true),
        &Wishes { names: vec!["wor*".to_owned()], ..Wishes::default() },
        &expect![[r#"
            total
              count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=1 lost_inside=0 began_before=0 without_key=0 given_up=0
            per-group
              group=`work` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0
              group=`worst` count=0 total=0 never_ended=1 lost_inside=0
            longest
              duration=10 begin=20 end=30 key=`function, 5` group=`work`
            open
              begin=60 key=`function, 5` group=`worst`
            distribution
              low=10 high=11 count=1
        "#]],
    );
}

/// A request that is answered on another CPU; one of each kind that has no other end.
#[test]
fn requests_meet_replies_on_other_cpus() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         5 1 end +id=3
         10 0 begin +id=7
         20 0 begin +id=8
         25 1 end +id=9
         30 1 end +id=7
         40 1 begin +id=?
         50 0 begin +id=8
         70 1 end +id=8
         90 1 begin +id=11",
        &options(&["id"], false),
        &Wishes::default(),
        &expect![[r#"
            total
              count=2 total=40 min=20 avg=20 max=20 stdev=0 p50=20 p90=20 p99=20 p999=20 never_ended=2 lost_inside=0 began_before=2 without_key=1 given_up=0
            per-group
              count=2 total=40 min=20 avg=20 max=20 stdev=0 p50=20 p90=20 p99=20 p999=20 never_ended=2 lost_inside=0
            longest
              duration=20 begin=10 end=30 key=7
              duration=20 begin=50 end=70 key=8
            open
              begin=90 key=11
            distribution
              low=20 high=21 count=2
        "#]],
    );
}

/// A pair that begins twice ends twice, the last one first; a key may have several fields, texts
/// too.
#[test]
fn nested_beginnings_end_in_the_other_order() {
    check(
        "lane cpu=0 span=0..1000
         10 0 begin +id=7 +name=a
         20 0 begin +id=7 +name=a
         25 0 begin +id=7 +name=b
         30 0 end +id=7 +name=a
         50 0 end +id=7 +name=a
         60 0 end +id=7 +name=a",
        &options(&["id", "name"], true),
        &Wishes::default(),
        &expect![[r#"
            total
              count=2 total=50 min=10 avg=25 max=40 stdev=21 p50=10 p90=40 p99=40 p999=40 never_ended=1 lost_inside=0 began_before=1 without_key=0 given_up=0
            per-group
              count=2 total=50 min=10 avg=25 max=40 stdev=21 p50=10 p90=40 p99=40 p999=40 never_ended=1 lost_inside=0
            longest
              duration=40 begin=10 end=50 key=`7, a`
              duration=10 begin=20 end=30 key=`7, a`
            open
              begin=25 key=`7, b`
            distribution
              low=10 high=20 count=1
              low=20 high=41 count=1
        "#]],
    );
}

/// Functions: names are groups, a thread is a place. Without nesting recursion would be lost.
#[test]
fn roles_make_keys_and_groups() {
    check(
        "lane cpu=0 span=0..1000
         10 0 begin name=main within=5 group=function
         20 0 begin name=work within=5 group=function
         25 0 begin name=work within=6 group=function
         30 0 end name=work within=5 group=function
         35 0 end name=work within=6 group=function
         50 0 end name=main within=5 group=function",
        &options(&[], true),
        &Wishes::default(),
        &expect![[r#"
            total
              count=3 total=60 min=10 avg=20 max=40 stdev=17 p50=10 p90=40 p99=40 p999=40 never_ended=0 lost_inside=0 began_before=0 without_key=0 given_up=0
            per-group
              group=`main` count=1 total=40 min=40 avg=40 max=40 p50=40 p90=40 p99=40 p999=40 never_ended=0 lost_inside=0
              group=`work` count=2 total=20 min=10 avg=10 max=10 stdev=0 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0
            longest
              duration=40 begin=10 end=50 key=`function, 5` group=`main`
              duration=10 begin=20 end=30 key=`function, 5` group=`work`
              duration=10 begin=25 end=35 key=`function, 6` group=`work`
            open
            distribution
              low=10 high=20 count=2
              low=20 high=41 count=1
        "#]],
    );
}

/// Events that end one phase and begin the next.
#[test]
fn equal_events_make_periods() {
    check(
        "lane cpu=0 span=0..1000
         10 0 end+begin
         110 0 end+begin
         215 0 end+begin",
        &options(&[], false),
        &Wishes::default(),
        &expect![[r#"
            total
              count=2 total=205 min=100 avg=103 max=105 stdev=4 p50=100 p90=105 p99=105 p999=105 never_ended=1 lost_inside=0 began_before=1 without_key=0 given_up=0
            per-group
              count=2 total=205 min=100 avg=103 max=105 stdev=4 p50=100 p90=105 p99=105 p999=105 never_ended=1 lost_inside=0
            longest
              duration=105 begin=110 end=215
              duration=100 begin=10 end=110
            open
              begin=215
            distribution
              low=100 high=102 count=1
              low=102 high=106 count=1
        "#]],
    );
}

/// A lost event may have been the real end.
#[test]
fn holes_make_pairs_doubtful() {
    check(
        "lane cpu=0 span=0..1000 hole=30..40 lost=2
         10 0 begin +id=1
         50 0 end +id=1
         60 0 begin +id=1
         70 0 end +id=1",
        &options(&["id"], false),
        &Wishes::default(),
        &expect![[r#"
            total
              count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=1 began_before=0 without_key=0 given_up=0
            per-group
              count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=1
            longest
              duration=10 begin=60 end=70 key=1
            open
            distribution
              low=10 high=11 count=1
        "#]],
    );
}

/// Only some: by thread, by duration, and no more than one row.
#[test]
fn wishes_choose() {
    let wishes =
        Wishes { tids: vec![5], min_ns: Some(10), top: Some(1), by: vec!["key".to_owned()], ..Wishes::default() };
    check(
        "lane cpu=0 span=0..1000
         10 0 begin +id=1 @tid=5
         15 0 end +id=1 @tid=6
         20 0 begin +id=2 @tid=6
         50 0 end +id=2 @tid=5
         60 0 begin +id=3 @tid=5
         70 0 end +id=3 @tid=5
         75 0 begin +id=4 @tid=5
         95 0 end +id=4 @tid=5
         97 0 begin +id=5 @tid=6
         98 0 end +id=9 @tid=6",
        &options(&["id"], false),
        &wishes,
        &expect![[r#"
            total
              count=2 total=30 min=10 avg=15 max=20 stdev=7 p50=10 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 began_before=0 without_key=0 given_up=0
            per-group
              group=4 count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0
              and 1 more
            longest
              duration=20 begin=75 end=95 key=4 group=4
            open
            distribution
              low=10 high=14 count=1
              low=14 high=21 count=1
        "#]],
    );
}

/// Beginnings and ends at random: cutting changes nothing.
#[test]
fn cuts_change_nothing() {
    for seed in 0..80 {
        let mut random = Random(seed);
        let lanes = 1 + random.below(3);
        let mut script: String = (0..lanes)
            .map(|lane| format!("lane cpu={lane} span=0..3000 hole={0}..{1}\n", 900 * lane, 900 * lane + 30))
            .collect();
        let mut time = 0;
        for _ in 0..150 {
            time += random.below(20);
            let what = ["begin", "end", "end+begin", "begin", "end"][random.below(5)];
            script +=
                &format!("{time} {} {what} name=n{} +id={}\n", random.below(lanes), random.below(3), random.below(6));
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        let pairs = PairsAnalysis::new(&script.setup(&wishes), &options(&["id"], seed % 2 == 0));
        script.check_cuts(&pairs, 20);
    }
}
