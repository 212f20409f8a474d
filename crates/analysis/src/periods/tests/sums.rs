//! Cases of sums over periods: by name, by captures, within each other; and cuts in between.

use expect_test::{Expect, expect};

use super::super::{Definitions, Order, PeriodsAnalysis};
use crate::mapping::{Section, ValueSource};
use crate::roles::EventRole;
use crate::testing::{Random, Script, text};
use crate::{Analysis, BoundClass, BoundRole, FieldSlot, Wishes};

/// The options.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    definitions: &'a [&'a str],
    captures: &'a [&'a str],
    aggregate_by: Option<&'a str>,
    select: &'a [&'a str],
    group_by: &'a [&'a str],
    order: Order,
    min_ns: Option<u64>,
    top: Option<usize>,
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A trace from lines as in [`Script`], with names and fields of events, bound to definitions.
fn script(definitions: &Definitions, text: &str) -> Script {
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lanes: Vec<&str> = lines.extract_if(.., |line| line.starts_with("lane")).collect();
    let mut script = Script::parse(&lanes.join("\n"));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |source: &ValueSource| match source {
            ValueSource::Path(path) => {
                let field = words[3..].iter().filter_map(|word| word.split_once('='));
                field.filter(|field| field.0 == path.to_string()).map(|field| slot(field.1)).next().unwrap_or_default()
            }
            ValueSource::Integer(value) => FieldSlot::Integer(*value),
            ValueSource::Text(_) | ValueSource::Capture(_) => panic!("periods do not ask for that"),
        };
        let sections = definitions.mapping().sections;
        let matching = sections.iter().filter(|section| section.captures(words[2]).is_some());
        let slots = |section: &Section| -> Vec<FieldSlot> {
            section.fields.iter().map(|said| said.first().map_or(FieldSlot::Absent, value)).collect()
        };
        let roles = matching.map(|section| BoundRole { role: EventRole::Rule, slots: slots(section) }).collect();
        let class = BoundClass {
            name: words[2].into(),
            roles,
            is_selected: true,
            tid_path: None,
            context: Default::default(),
            extra: Vec::new(),
        };
        script.events.push((words[0].parse().unwrap(), words[1].parse().unwrap(), script.classes.len()));
        script.classes.push(class);
    }
    script.events.sort_by_key(|event| (event.0, event.1));
    script
}

fn slot(value: &str) -> FieldSlot {
    value.parse().map_or_else(|_| FieldSlot::Text(value.as_bytes().into()), FieldSlot::Integer)
}

fn check(asked: Asked<'_>, events: &str, tables: &[&str], expect: &Expect) {
    let definitions = Definitions::parse(&owned(asked.definitions), &owned(asked.captures)).unwrap();
    let (select, group_by) = (owned(asked.select), owned(asked.group_by));
    let sums = definitions.sums(&select, asked.aggregate_by, &group_by, asked.order).unwrap();
    let script = script(&definitions, events);
    let wishes = Wishes { bins: 2, min_ns: asked.min_ns, top: asked.top, ..Wishes::default() };
    let periods = PeriodsAnalysis::new(&script.setup(&wishes), &definitions, &sums);
    let mut answer = periods.finish(&script.state(&periods)).unwrap();
    answer.tables.retain(|table| tables.contains(&table.class));
    expect.assert_eq(&text(&answer));
    script.check_cuts(&periods, 200);
}

const REQUESTS: Asked<'_> = Asked {
    definitions: &[
        "request : begin : end if id == $begin.id",
        "parse(request) : parse_begin if id == $parent.id : parse_end if id == $parent.id",
        "query(request) : query_begin if id == $parent.id : query_end if id == $begin.id && n == $begin.n",
        "wait(query) : wait_begin : wait_end",
    ],
    captures: &["request : client=client : status=status", "query : table=table"],
    aggregate_by: None,
    select: &[],
    group_by: &[],
    order: Order::Duration,
    min_ns: None,
    top: None,
};

/// Two requests at a time, one with queries that overlap; a third never ends, nor does a query of the second one.
const EVENTS: &str = "lane cpu=0 span=0..1000
     lane cpu=1 span=0..1000
     5 0 end id=9 status=1
     100 0 begin id=1 client=ann
     110 0 parse_begin id=1
     115 1 begin id=2 client=bob
     120 0 parse_end id=1
     125 1 parse_begin id=2
     130 0 query_begin id=1 n=1 table=a
     131 0 wait_begin
     135 1 parse_end id=2
     140 0 query_begin id=1 n=2 table=b
     141 0 wait_end
     150 0 query_end id=1 n=1
     160 0 query_end id=1 n=2
     170 1 query_begin id=2 n=1 table=a
     200 0 end id=1 status=0
     315 1 end id=2 status=5
     400 0 begin id=3 client=ann
     420 0 parse_begin id=3";

/// The first view: durations, groups, the longest ones, those that never ended.
#[test]
fn periods_are_counted_by_name() {
    check(
        REQUESTS,
        EVENTS,
        &["statistics", "periods", "open", "distribution"],
        &expect![[r#"
        statistics
          name=`request` count=2 total=300 min=100 avg=150 max=200 stdev=71 p50=100 p90=200 p99=200 p999=200 never_ended=1 lost_inside=0 ended_nothing=1
          name=`parse` count=2 total=20 min=10 avg=10 max=10 stdev=0 p50=10 p90=10 p99=10 p999=10 never_ended=1 lost_inside=0 ended_nothing=0
          name=`query` count=2 total=40 min=20 avg=20 max=20 stdev=0 p50=20 p90=20 p99=20 p999=20 never_ended=1 lost_inside=0 ended_nothing=0
          name=`wait` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 ended_nothing=0
        periods
          duration=200 begin=115 end=315 name=`request` capture_1=`bob` capture_2=5 uncertain=false
          duration=100 begin=100 end=200 name=`request` capture_1=`ann` capture_2=0 uncertain=false
          duration=20 begin=130 end=150 name=`query` parent=100 capture_3=`a` uncertain=false
          duration=20 begin=140 end=160 name=`query` parent=100 capture_3=`b` uncertain=false
          duration=10 begin=110 end=120 name=`parse` parent=100 uncertain=false
          duration=10 begin=125 end=135 name=`parse` parent=115 uncertain=false
          duration=10 begin=131 end=141 name=`wait` parent=130 uncertain=false
        open
          begin=170 name=`query` parent=115 parent_end=315 capture_3=`a` uncertain=false
          begin=400 name=`request` capture_1=`ann` uncertain=false
          begin=420 name=`parse` parent=400 uncertain=false
        distribution
          low=100 high=141 count=1
          low=141 high=201 count=1
        distribution
          low=10 high=11 count=2
        distribution
          low=20 high=21 count=2
        distribution
          low=10 high=11 count=1
    "#]],
    );
}

/// Captures of a request also group its parts.
#[test]
fn periods_are_counted_by_what_is_told_of_them() {
    let asked = Asked { group_by: &["request.client", "table"], ..REQUESTS };
    check(
        asked,
        EVENTS,
        &["statistics"],
        &expect![[r#"
        statistics
          name=`request` group_1=`bob` count=1 total=200 min=200 avg=200 max=200 p50=200 p90=200 p99=200 p999=200 never_ended=0 lost_inside=0 ended_nothing=0
          name=`request` group_1=`ann` count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 never_ended=1 lost_inside=0 ended_nothing=0
          name=`request` count=0 total=0 never_ended=0 lost_inside=0 ended_nothing=1
          name=`parse` group_1=`ann` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=1 lost_inside=0 ended_nothing=0
          name=`parse` group_1=`bob` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 ended_nothing=0
          name=`query` group_1=`ann` group_2=`a` count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 ended_nothing=0
          name=`query` group_1=`ann` group_2=`b` count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 ended_nothing=0
          name=`query` group_1=`bob` group_2=`a` count=0 total=0 never_ended=1 lost_inside=0 ended_nothing=0
          name=`wait` group_1=`ann` group_2=`a` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 ended_nothing=0
    "#]],
    );
    let asked = Asked { group_by: &["request.status"], min_ns: Some(100), ..REQUESTS };
    check(
        asked,
        EVENTS,
        &["statistics", "periods"],
        &expect![[r#"
        statistics
          name=`request` group_1=5 count=1 total=200 min=200 avg=200 max=200 p50=200 p90=200 p99=200 p999=200 never_ended=0 lost_inside=0 ended_nothing=0
          name=`request` group_1=0 count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 never_ended=0 lost_inside=0 ended_nothing=0
          name=`request` count=0 total=0 never_ended=1 lost_inside=0 ended_nothing=1
          name=`parse` count=0 total=0 never_ended=1 lost_inside=0 ended_nothing=0
          name=`query` group_1=5 count=0 total=0 never_ended=1 lost_inside=0 ended_nothing=0
        periods
          duration=200 begin=115 end=315 name=`request` capture_1=`bob` capture_2=5 uncertain=false
          duration=100 begin=100 end=200 name=`request` capture_1=`ann` capture_2=0 uncertain=false
    "#]],
    );
}

/// Queries that overlap count twice in the share, once in the covered time; waits lie within
/// queries and are not looked at unless that is asked for.
#[test]
fn parts_of_requests_are_summed_up() {
    let asked = Asked { aggregate_by: Some("request"), select: &["parse", "query"], ..REQUESTS };
    check(
        asked,
        EVENTS,
        &["per-part", "per-parent"],
        &expect![[r#"
        per-part
          part=`parse` periods=2 with=2 count=2 total=20 min=10 avg=10 max=10 stdev=0 p50=10 p90=10 p99=10 p999=10 share=0.067 covered=20 covered_share=0.067 never_ended=0 lost_inside=0
          part=`query` periods=2 with=1 count=2 total=40 min=0 avg=20 max=40 stdev=28 p50=0 p90=40 p99=40 p999=40 share=0.133 covered=30 covered_share=0.100 never_ended=1 lost_inside=0
          periods=2 with=2 total=250 min=60 avg=125 max=190 stdev=92 p50=60 p90=190 p99=190 p999=190 share=0.833 covered=250 covered_share=0.833 never_ended=0 lost_inside=0
        per-parent
          duration=200 begin=115 end=315 capture_1=`bob` capture_2=5 part=`parse` count=1 total=10 min=10 avg=10 max=10 share=0.050 covered=10 covered_share=0.050 never_ended=0 uncertain=false
          duration=200 begin=115 end=315 capture_1=`bob` capture_2=5 part=`query` count=0 total=0 share=0.000 covered=0 covered_share=0.000 never_ended=1 uncertain=false
          duration=200 begin=115 end=315 capture_1=`bob` capture_2=5 total=190 share=0.950 covered=190 covered_share=0.950 never_ended=0 uncertain=false
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 part=`parse` count=1 total=10 min=10 avg=10 max=10 share=0.100 covered=10 covered_share=0.100 never_ended=0 uncertain=false
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 part=`query` count=2 total=40 min=20 avg=20 max=20 stdev=0 share=0.400 covered=30 covered_share=0.300 never_ended=0 uncertain=false
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 total=60 share=0.600 covered=60 covered_share=0.600 never_ended=0 uncertain=false
    "#]],
    );
    let asked = Asked { group_by: &["request.client"], order: Order::Time, top: Some(3), ..asked };
    check(
        asked,
        EVENTS,
        &["per-part", "per-parent"],
        &expect![[r#"
        per-part
          part=`parse` group_1=`bob` periods=1 with=1 count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 share=0.050 covered=10 covered_share=0.050 never_ended=0 lost_inside=0
          part=`query` group_1=`bob` periods=1 with=0 count=0 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 share=0.000 covered=0 covered_share=0.000 never_ended=1 lost_inside=0
          group_1=`bob` periods=1 with=1 total=190 min=190 avg=190 max=190 p50=190 p90=190 p99=190 p999=190 share=0.950 covered=190 covered_share=0.950 never_ended=0 lost_inside=0
          and 3 more
        per-parent
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 part=`parse` count=1 total=10 min=10 avg=10 max=10 share=0.100 covered=10 covered_share=0.100 never_ended=0 uncertain=false
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 part=`query` count=2 total=40 min=20 avg=20 max=20 stdev=0 share=0.400 covered=30 covered_share=0.300 never_ended=0 uncertain=false
          duration=100 begin=100 end=200 capture_1=`ann` capture_2=0 total=60 share=0.600 covered=60 covered_share=0.600 never_ended=0 uncertain=false
          and 3 more
    "#]],
    );
    let asked = Asked { select: &["wait"], min_ns: Some(150), ..asked };
    check(
        asked,
        EVENTS,
        &["per-part"],
        &expect![[r#"
        per-part
          part=`wait` group_1=`bob` periods=1 with=0 count=0 total=0 min=0 avg=0 max=0 p50=0 p90=0 p99=0 p999=0 share=0.000 covered=0 covered_share=0.000 never_ended=0 lost_inside=0
          group_1=`bob` periods=1 with=1 total=200 min=200 avg=200 max=200 p50=200 p90=200 p99=200 p999=200 share=1.000 covered=200 covered_share=1.000 never_ended=0 lost_inside=0
    "#]],
    );
}

/// Frames follow each other; events between two of them are part of the first. The first one began
/// when its event was seen.
#[test]
fn an_event_ends_a_period_and_begins_the_next() {
    let asked = Asked {
        definitions: &["frame : vsync", "draw(frame) : draw_begin : draw_end"],
        captures: &["frame : number=number : next=number"],
        aggregate_by: Some("frame"),
        order: Order::Time,
        ..REQUESTS
    };
    check(
        asked,
        "lane span=0..1000
         5 0 draw_begin
         10 0 vsync number=1
         12 0 draw_begin
         14 0 draw_end
         20 0 vsync number=2
         20 0 draw_begin
         20 0 draw_end
         26 0 draw_begin
         30 0 vsync number=3
         30 0 vsync number=4",
        &["statistics", "per-part", "per-parent", "open"],
        &expect![[r#"
            statistics
              name=`frame` count=3 total=20 min=0 avg=7 max=10 stdev=6 p50=10 p90=10 p99=10 p999=10 never_ended=1 lost_inside=0 ended_nothing=0
              name=`draw` count=2 total=2 min=0 avg=1 max=2 stdev=1 p50=0 p90=2 p99=2 p999=2 never_ended=1 lost_inside=0 ended_nothing=0
            per-part
              part=`draw` periods=3 with=2 count=2 total=2 min=0 avg=1 max=2 stdev=1 p50=0 p90=2 p99=2 p999=2 share=0.100 covered=2 covered_share=0.100 never_ended=1 lost_inside=0
              periods=3 with=2 total=18 min=0 avg=6 max=10 stdev=5 p50=8 p90=10 p99=10 p999=10 share=0.900 covered=18 covered_share=0.900 never_ended=0 lost_inside=0
            per-parent
              duration=10 begin=10 end=20 capture_1=1 capture_2=2 part=`draw` count=1 total=2 min=2 avg=2 max=2 share=0.200 covered=2 covered_share=0.200 never_ended=0 uncertain=false
              duration=10 begin=10 end=20 capture_1=1 capture_2=2 total=8 share=0.800 covered=8 covered_share=0.800 never_ended=0 uncertain=false
              duration=10 begin=20 end=30 capture_1=2 capture_2=3 part=`draw` count=1 total=0 min=0 avg=0 max=0 share=0.000 covered=0 covered_share=0.000 never_ended=1 uncertain=false
              duration=10 begin=20 end=30 capture_1=2 capture_2=3 total=10 share=1.000 covered=10 covered_share=1.000 never_ended=0 uncertain=false
              duration=0 begin=30 end=30 capture_1=3 capture_2=4 total=0 covered=0 never_ended=0 uncertain=false
            open
              begin=26 name=`draw` parent=20 parent_end=30 uncertain=false
              begin=30 name=`frame` capture_1=4 uncertain=false
        "#]],
    );
}

#[test]
fn each_period_follows_the_one_that_it_is_within() {
    check(
        Asked { order: Order::Hierarchy, ..REQUESTS },
        EVENTS,
        &["periods"],
        &expect![[r#"
        periods
          duration=100 begin=100 end=200 name=`request` capture_1=`ann` capture_2=0 uncertain=false
          duration=10 begin=110 end=120 name=`parse` parent=100 uncertain=false
          duration=20 begin=130 end=150 name=`query` parent=100 capture_3=`a` uncertain=false
          duration=10 begin=131 end=141 name=`wait` parent=130 uncertain=false
          duration=20 begin=140 end=160 name=`query` parent=100 capture_3=`b` uncertain=false
          duration=200 begin=115 end=315 name=`request` capture_1=`bob` capture_2=5 uncertain=false
          duration=10 begin=125 end=135 name=`parse` parent=115 uncertain=false
    "#]],
    );
}

/// Where events may be missing, a period is no measure; nor is one that contains it.
#[test]
fn losses_leave_doubts() {
    let events = "lane cpu=0 span=0..1000 hole=40..45 hole=300..400 lost=?
         10 0 begin id=1 client=ann
         20 0 parse_begin id=1
         30 0 parse_end id=1
         50 0 end id=1 status=0
         60 0 begin id=2 client=ann
         70 0 parse_begin id=2
         80 0 end id=2 status=0
         200 0 begin id=3 client=bob
         500 0 begin id=4 client=bob
         510 0 query_begin id=4 n=1 table=a
         515 0 query_end id=4 n=1
         520 0 end id=4 status=0
         600 0 begin id=5 client=bob";
    let asked = Asked { aggregate_by: Some("request"), ..REQUESTS };
    check(
        asked,
        events,
        &["statistics", "per-part", "per-parent", "periods", "open"],
        &expect![[r#"
        statistics
          name=`request` count=2 total=40 min=20 avg=20 max=20 stdev=0 p50=20 p90=20 p99=20 p999=20 never_ended=1 lost_inside=2 ended_nothing=0
          name=`parse` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=1 lost_inside=0 ended_nothing=0
          name=`query` count=1 total=5 min=5 avg=5 max=5 p50=5 p90=5 p99=5 p999=5 never_ended=0 lost_inside=0 ended_nothing=0
        per-part
          part=`parse` periods=2 with=0 count=0 total=0 min=0 avg=0 max=0 stdev=0 p50=0 p90=0 p99=0 p999=0 share=0.000 covered=0 covered_share=0.000 never_ended=1 lost_inside=1
          part=`query` periods=2 with=1 count=1 total=5 min=0 avg=3 max=5 stdev=4 p50=0 p90=5 p99=5 p999=5 share=0.125 covered=5 covered_share=0.125 never_ended=0 lost_inside=1
          part=`wait` periods=2 with=0 count=0 total=0 min=0 avg=0 max=0 stdev=0 p50=0 p90=0 p99=0 p999=0 share=0.000 covered=0 covered_share=0.000 never_ended=0 lost_inside=1
          periods=2 with=2 total=35 min=15 avg=18 max=20 stdev=4 p50=15 p90=20 p99=20 p999=20 share=0.875 covered=35 covered_share=0.875 never_ended=0 lost_inside=1
        per-parent
          duration=40 begin=10 end=50 capture_1=`ann` capture_2=0 part=`parse` count=1 total=10 min=10 avg=10 max=10 share=0.250 covered=10 covered_share=0.250 never_ended=0 uncertain=true
          duration=40 begin=10 end=50 capture_1=`ann` capture_2=0 total=30 share=0.750 covered=30 covered_share=0.750 never_ended=0 uncertain=true
          duration=20 begin=60 end=80 capture_1=`ann` capture_2=0 part=`parse` count=0 total=0 share=0.000 covered=0 covered_share=0.000 never_ended=1 uncertain=false
          duration=20 begin=60 end=80 capture_1=`ann` capture_2=0 total=20 share=1.000 covered=20 covered_share=1.000 never_ended=0 uncertain=false
          duration=20 begin=500 end=520 capture_1=`bob` capture_2=0 part=`query` count=1 total=5 min=5 avg=5 max=5 share=0.250 covered=5 covered_share=0.250 never_ended=0 uncertain=false
          duration=20 begin=500 end=520 capture_1=`bob` capture_2=0 total=15 share=0.750 covered=15 covered_share=0.750 never_ended=0 uncertain=false
        periods
          duration=40 begin=10 end=50 name=`request` capture_1=`ann` capture_2=0 uncertain=true
          duration=20 begin=60 end=80 name=`request` capture_1=`ann` capture_2=0 uncertain=false
          duration=20 begin=500 end=520 name=`request` capture_1=`bob` capture_2=0 uncertain=false
          duration=10 begin=20 end=30 name=`parse` parent=10 uncertain=false
          duration=5 begin=510 end=515 name=`query` parent=500 capture_3=`a` uncertain=false
        open
          begin=70 name=`parse` parent=60 parent_end=80 uncertain=false
          begin=200 name=`request` capture_1=`bob` uncertain=true
          begin=600 name=`request` capture_1=`bob` uncertain=false
    "#]],
    );
}

/// With any events in any order, cuts change nothing.
#[test]
fn cuts_change_nothing() {
    let definitions = Definitions::parse(&owned(REQUESTS.definitions), &owned(REQUESTS.captures)).unwrap();
    let by = owned(&["client", "query.table", "status"]);
    let sums = definitions.sums(&[], Some("request"), &by, Order::Time).unwrap();
    for seed in 0..60 {
        let random = &mut Random(seed);
        let lanes = 1 + random.below(3);
        let mut events: String =
            (0..lanes).map(|lane| format!("lane cpu={lane} span=0..900 hole=300..310\n")).collect();
        let mut time = 0;
        for _ in 0..100 {
            time += random.below(3) * random.below(9);
            let kind = ["", "parse_", "query_", "wait_"][random.below(4)];
            let side = ["begin", "end"][random.below(2)];
            let (lane, id, n, status) = (random.below(lanes), random.below(3), random.below(2), random.below(3));
            events += &format!("{time} {lane} {kind}{side} id={id} n={n} client={status} status={n} table={status}\n");
        }
        let script = script(&definitions, &events);
        let wishes = Wishes { top: (seed % 3 == 0).then_some(3), ..Wishes::default() };
        script.check_cuts(&PeriodsAnalysis::new(&script.setup(&wishes), &definitions, &sums), 20);
    }
}

#[test]
fn what_there_is_not_cannot_be_summed_up() {
    let definitions = Definitions::parse(&owned(REQUESTS.definitions), &owned(REQUESTS.captures)).unwrap();
    let problem = |select: &[&str], parent: Option<&str>, by: &[&str]| {
        definitions.sums(&owned(select), parent, &owned(by), Order::Time).unwrap_err().to_string()
    };
    for (found, wanted) in [
        (problem(&[], Some("x"), &[]), "there are no periods called `x`"),
        (problem(&["x"], Some("request"), &[]), "there are no periods called `x`"),
        (problem(&["parse"], Some("query"), &[]), "periods called `parse` are not within periods called `query`"),
        (problem(&[], Some("wait"), &[]), "no periods are within periods called `wait`"),
        (problem(&[], None, &["request.table"]), "`request.table` is no word that --period-captures tells"),
        (problem(&[], None, &["x"]), "`x` is no word that --period-captures tells"),
    ] {
        assert!(found.contains(wanted), "{found}");
    }
}
