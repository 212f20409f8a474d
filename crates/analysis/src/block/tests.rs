//! Cases of `block`.

use expect_test::{Expect, expect};

use super::BlockAnalysis;
use crate::testing::{Random, Script, Sum, text};
use crate::{Analysis, Wishes};

fn check(script: &str, expect: &Expect) {
    let script = Script::parse(script);
    let wishes = Wishes { bins: 2, ..Wishes::default() };
    let block = BlockAnalysis::new(&script.setup(&wishes));
    expect.assert_eq(&text(&block.finish(&script.state(&block)).unwrap()));
    script.check_cuts(&block, 200);
}

/// A request is merged with another while it waits, is done in two pieces, on another CPU.
#[test]
fn requests_are_queued_issued_and_completed() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         5 0 disk_state disk_dev=8388608 disk_name=sda
         10 0 block_insert dev=8388608 sector=64 sectors=8
         20 0 block_issue dev=8388608 sector=64 sectors=16 rwbs=R
         30 1 block_complete dev=8388608 sector=64 sectors=8
         50 1 block_complete dev=8388608 sector=72 sectors=8 error=-5
         60 0 block_issue dev=8388609 sector=0 sectors=8 rwbs=WS
         70 0 block_issue dev=8388609 sector=0 sectors=8 rwbs=1
         90 1 block_complete dev=8388609 sector=0 sectors=8
         95 0 block_issue dev=8388609 sector=8 sectors=8 rwbs=0",
        &expect![[r#"
            per-device
              device=`8,1` reads=1 writes=2 sectors=24 bytes=12288 errors=0 count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 queue_count=0 queue_total=0 began_before=0 never_ended=2 lost_inside=0
              device=`sda` reads=1 writes=0 sectors=16 bytes=8192 errors=1 count=1 total=30 min=30 avg=30 max=30 p50=30 p90=30 p99=30 p999=30 queue_count=1 queue_total=10 queue_min=10 queue_avg=10 queue_max=10 began_before=1 never_ended=0 lost_inside=0
            longest
              latency=30 begin=20 end=50 device=`sda` sector=64 sectors=16 kind=`read`
              latency=20 begin=70 end=90 device=`8,1` sector=0 sectors=8 kind=`write`
            distribution
              low=20 high=24 count=1
              low=24 high=31 count=1
        "#]],
    );
}

/// A request that a hole overlaps is doubtful, and so is one without a begin behind a hole.
#[test]
fn holes_make_requests_doubtful() {
    check(
        "lane cpu=0 span=0..1000 hole=50..60 lost=1
         20 0 block_complete dev=1048577 sector=64 sectors=8
         40 0 block_insert dev=1048577 sector=8 sectors=8
         45 0 block_issue dev=1048577 sector=8 sectors=8
         70 0 block_complete dev=1048577 sector=8 sectors=8
         80 0 block_complete dev=1048577 sector=128 sectors=8",
        &expect![[r#"
            per-device
              device=`1,1` reads=1 writes=0 sectors=8 bytes=4096 errors=0 count=0 total=0 queue_count=1 queue_total=5 queue_min=5 queue_avg=5 queue_max=5 began_before=1 never_ended=0 lost_inside=2
            longest
            distribution
        "#]],
    );
}

#[test]
fn cuts_change_nothing() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut script = String::from("lane cpu=0 span=0..3000 hole=1500..1530\nlane cpu=1 span=0..3000\n");
        let mut time = 0;
        for _ in 0..150 {
            time += random.below(20);
            let what = ["insert", "issue", "complete"][random.below(3)];
            let (lane, dev, sector) = (random.below(2), random.below(2), 8 * random.below(5));
            script += &format!(
                "{time} {lane} block_{what} dev={dev} sector={sector} sectors={}\n",
                8 * (1 + random.below(2))
            );
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        let block = BlockAnalysis::new(&script.setup(&wishes));
        script.check_cuts(&block, 20);
        let columns =
            ["reads", "writes", "sectors", "errors", "count", "total", "queue_count", "queue_total", "began_before"];
        let sums = columns.map(|column| Sum { class: "per-device", keys: &["device"], column });
        script.check_periods(20, &wishes, BlockAnalysis::new, &sums);
    }
}
