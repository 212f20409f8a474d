//! Cases of `count`.

use expect_test::expect;

use super::CountAnalysis;
use crate::testing::{Script, text};
use crate::{Analysis, Wishes};

#[test]
fn events_are_counted_by_class_and_lane() {
    let script = Script::parse(
        "lane cpu=0 span=0..100 hole=20..30 lost=4
         lane cpu=1 span=0..100
         10 0 'open'
         15 1 'close'
         40 0 'open'
         50 1 thread_fork child_tid=7",
    );
    let wishes = Wishes::default();
    let count = CountAnalysis::new(&script.setup(&wishes));
    expect![[r#"
        per-class
          name=`open` count=2[2,6]
          name=`close` count=1[1,5]
          name=`thread_fork` count=1[1,5]
        per-stream
          stream=`` cpu=0 count=2[2,6] lost=4
          stream=`` cpu=1 count=2 lost=0
        total
          count=4[4,8] lost=4
    "#]]
    .assert_eq(&text(&count.finish(&script.state(&count)).unwrap()));
    script.check_cuts(&count, 100);
}

/// Nobody knows how many are lost with a packet.
#[test]
fn what_is_lost_may_be_unknown() {
    let script = Script::parse("lane cpu=0 span=0..100 hole=20..30 lost=?\n 10 0 'open'");
    let wishes = Wishes::default();
    let count = CountAnalysis::new(&script.setup(&wishes));
    expect![[r#"
        per-class
          name=`open` count=1[1,none]
        per-stream
          stream=`` cpu=0 count=1[1,none] lost=0[0,none]
        total
          count=1[1,none] lost=0[0,none]
    "#]]
    .assert_eq(&text(&count.finish(&script.state(&count)).unwrap()));
}
