//! Cases of `rates`.

use expect_test::{Expect, expect};

use super::Rates;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let rates = Rates::new(&script.setup(wishes));
    expect.assert_eq(&text(&rates.finish(&script.state(&rates)).unwrap()));
    script.check_cuts(&rates, 100);
}

const SCRIPT: &str = "
    lane cpu=0 span=0..250 hole=110..120 lost=3
    lane cpu=1 span=10..200
    0 0 'open'
    99 0 'open'
    99 1 'close'
    150 1 'close'
    249 0 'open'";

/// The last period is shorter: it counts, but is neither the least nor the most.
#[test]
fn periods_begin_with_the_trace() {
    check(
        SCRIPT,
        &Wishes { period_ns: Some(100), ..Wishes::default() },
        &expect![[r#"
        rates
          name=`open` count=3[3,6] min=0 avg=1 max=2
          name=`close` count=2[2,5] min=1 avg=1 max=1
        course
          period=0..100 name=`open` count=2
          period=0..100 name=`close` count=1
          period=100..200 name=`close` count=1[1,4]
          period=200..250 name=`open` count=1
    "#]],
    );
}

#[test]
fn lanes_may_be_told_apart() {
    check(
        SCRIPT,
        &Wishes { period_ns: Some(125), by: vec!["cpu".to_owned()], top: Some(1), ..Wishes::default() },
        &expect![[r#"
            rates
              stream=`` cpu=0 count=3[3,6] min=1 avg=2 max=2
              and 1 more
            course
              period=0..125 stream=`` cpu=0 count=2[2,5]
              period=125..250 stream=`` cpu=0 count=1
        "#]],
    );
}

/// Without begin and end periods double until there are no more than wanted.
#[test]
fn periods_double_where_nobody_says_how_long_the_trace_is() {
    check(
        "lane cpu=0
         1000 0 'open'
         1001 0 'open'
         1020 0 'open'
         1400 0 'open'",
        &Wishes { bins: 4, ..Wishes::default() },
        &expect![[r#"
            rates
              name=`open` count=4 min=0 avg=1 max=3
            course
              period=896..1024 name=`open` count=3
              period=1280..1408 name=`open` count=1
        "#]],
    );
}

/// Too many periods: a nanosecond each would be too much.
#[test]
fn cuts_change_nothing() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut script = String::from(if seed % 2 == 0 {
            "lane cpu=0\nlane cpu=1\n"
        } else {
            "lane cpu=0 span=0..9000000\nlane cpu=1\n"
        });
        let mut time = 0;
        for _ in 0..100 {
            time += random.below(90_000);
            script += &format!("{time} {} 'n{}'\n", random.below(2), random.below(4));
        }
        let script = Script::parse(&script);
        let by = if seed % 3 == 0 { vec!["cpu".to_owned(), "class".to_owned()] } else { Vec::new() };
        let wishes = Wishes { period_ns: (seed % 4 < 2).then_some(1), by, ..Wishes::default() };
        let rates = Rates::new(&script.setup(&wishes));
        script.check_cuts(&rates, 20);
    }
}

/// Only some CPUs: what others lost does not matter then.
#[test]
fn only_some_cpus() {
    check(
        SCRIPT,
        &Wishes { period_ns: Some(125), cpus: vec![1], ..Wishes::default() },
        &expect![[r#"
        rates
          name=`close` count=2 min=1 avg=1 max=1
        course
          period=0..125 name=`close` count=1
          period=125..250 name=`close` count=1
    "#]],
    );
}
