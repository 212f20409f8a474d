//! Cases of `gaps`.

use expect_test::expect;

use super::{Busy, Gaps, SPANS_MAX};
use crate::testing::{Random, Script, Sum, text};
use crate::{Analysis, Wishes};

#[test]
fn gaps_of_all_are_where_no_lane_has_an_event() {
    let script = Script::parse(
        "lane cpu=0 span=0..1000 hole=610..620 lost=3 streams=0,2
         lane cpu=1 span=0..1000 streams=1
         10 0 'a'
         20 1 'a'
         100 0 'a'
         300 0 'a'
         350 1 'a'
         600 0 'a'
         650 0 'a'
         700 1 'a'",
    );
    let wishes = Wishes { top: Some(4), ..Wishes::default() };
    let gaps = Gaps::new(&script.setup(&wishes));
    expect![[r#"
        gaps
          begin=350 end=600 length=250 kind=`quiet`
          begin=100 end=300 length=200 kind=`quiet`
          begin=20 end=100 length=80 kind=`quiet`
          begin=300 end=350 length=50 kind=`quiet`
          stream=`0, 2` cpu=0 begin=300 end=600 length=300 kind=`quiet`
          stream=`0, 2` cpu=0 begin=100 end=300 length=200 kind=`quiet`
          stream=`0, 2` cpu=0 begin=10 end=100 length=90 kind=`quiet`
          stream=`0, 2` cpu=0 begin=600 end=650 length=50 kind=`loss`
          stream=`1` cpu=1 begin=350 end=700 length=350 kind=`quiet`
          stream=`1` cpu=1 begin=20 end=350 length=330 kind=`quiet`
    "#]]
    .assert_eq(&text(&gaps.finish(&script.state(&gaps)).unwrap()));
    script.check_cuts(&gaps, 200);
}

/// Spans are as coarse as they have to be, in whatever order events are added.
#[test]
fn long_traces_have_longer_spans() {
    let mut busy = Busy::new(None);
    let far = i64::try_from(SPANS_MAX * 3).expect("it is a small number");
    for time in [0, 1, 3, far] {
        busy.add(time, time);
    }
    assert_eq!(busy.gaps().collect::<Vec<_>>(), [(3, far)]);
    assert_eq!(busy, {
        let mut early = Busy::new(Some((0, far)));
        early.merge(&Busy::new(None));
        for time in [0, 1, 3, far] {
            early.add(time, time);
        }
        early
    });
}

#[test]
fn cuts_change_nothing() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut script = String::from("lane cpu=0 hole=500000..900000\nlane cpu=1\nlane cpu=2\n");
        let mut time = 0;
        for _ in 0..120 {
            time += if random.below(4) == 0 { random.below(90_000) } else { random.below(5) };
            script += &format!("{time} {} 'n'\n", random.below(3));
        }
        let script = Script::parse(&script);
        let wishes = Wishes { top: Some(5), max_ns: (seed % 2 == 0).then_some(70_000), ..Wishes::default() };
        let gaps = Gaps::new(&script.setup(&wishes));
        script.check_cuts(&gaps, 20);
    }
}

/// A gap belongs to the period in which it ends.
#[test]
fn periods_add_up() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut script = String::from("lane cpu=0 span=0..9000\nlane cpu=1 span=0..9000\nlane cpu=2 span=0..9000\n");
        let mut time = 0;
        for _ in 0..120 {
            time += if random.below(4) == 0 { random.below(200) } else { random.below(5) };
            script += &format!("{time} {} 'n'\n", random.below(3));
        }
        let script = Script::parse(&script);
        let wishes = Wishes { top: Some(1000), ..Wishes::default() };
        let sum = |keys| Sum { class: "gaps", keys, column: "length" };
        script.check_periods(20, &wishes, Gaps::new, &[sum(&["cpu", "begin", "end", "kind"])]);
    }
}

/// Written by hand: a gap over a whole period, and one over a border.
#[test]
fn a_gap_belongs_to_the_period_in_which_it_ends() {
    let script = Script::parse(
        "lane cpu=0 span=0..400 streams=0
         lane cpu=1 span=0..400 streams=1
         10 0 'a'
         90 1 'a'
         350 0 'a'
         360 1 'a'",
    );
    let wishes = Wishes::default();
    let answers = script.periods(&[100, 200, 300], &wishes, Gaps::new);
    expect![[r#"
        gaps
          begin=10 end=90 length=80 kind=`quiet`
        gaps
        gaps
        gaps
          begin=90 end=350 length=260 kind=`quiet`
          begin=350 end=360 length=10 kind=`quiet`
          stream=`0` cpu=0 begin=10 end=350 length=340 kind=`quiet`
          stream=`1` cpu=1 begin=90 end=360 length=270 kind=`quiet`
    "#]]
    .assert_eq(&answers.iter().map(text).collect::<String>());
}

/// Only some CPUs.
#[test]
fn only_some_cpus() {
    let script = Script::parse(
        "lane cpu=0 span=0..1000 hole=20..30 lost=?
         lane cpu=1 span=0..1000
         10 0 'a'
         300 0 'a'
         400 1 'a'
         450 1 'a'",
    );
    let wishes = Wishes { cpus: vec![1], ..Wishes::default() };
    let gaps = Gaps::new(&script.setup(&wishes));
    expect![[r#"
        gaps
          begin=400 end=450 length=50 kind=`quiet`
          stream=`` cpu=1 begin=400 end=450 length=50 kind=`quiet`
    "#]]
    .assert_eq(&text(&gaps.finish(&script.state(&gaps)).unwrap()));
    script.check_cuts(&gaps, 100);
}
