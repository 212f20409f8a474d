//! Cases of own analyses: files, their errors, and their answers. Conditions are evaluated where
//! classes are bound, and are tested there (`tests/suite/projection.rs`).

use expect_test::{Expect, expect};

use super::{AnalysisDeclaration, DeclaredAnalysis, History};
use crate::mapping::{Section, ValueSource};
use crate::roles::{EventRole, rule};
use crate::testing::{Random, Script, text};
use crate::{Analysis, BoundClass, BoundRole, FieldSlot, Wishes};

fn slot(value: &str) -> FieldSlot {
    value.parse().map_or_else(|_| FieldSlot::Text(value.as_bytes().into()), FieldSlot::Integer)
}

/// A trace from lines as in [`Script`], with names and fields of events, bound to a file.
pub(super) fn script(text: &str, declaration: &AnalysisDeclaration) -> Script {
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lanes: Vec<&str> = lines.extract_if(.., |line| line.starts_with("lane")).collect();
    let mut script = Script::parse(&lanes.join("\n"));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let fields: Vec<(&str, &str)> = words[3..].iter().filter_map(|word| word.split_once('=')).collect();
        let value = |source: &ValueSource| match source {
            ValueSource::Path(path) => {
                let field = fields.iter().find(|field| field.0 == path.to_string());
                field.map_or(FieldSlot::Absent, |field| slot(field.1))
            }
            ValueSource::Integer(value) => FieldSlot::Integer(*value),
            ValueSource::Text(text) => FieldSlot::Text(text.as_bytes().into()),
            ValueSource::Capture(_) => panic!("captures are tested elsewhere"),
        };
        let sections = declaration.mapping().sections;
        let has = |section: &Section| {
            let is_there = |place: &usize| section.fields[*place].first().map(value) != Some(FieldSlot::Absent);
            section.required.iter().all(is_there)
        };
        let matching = sections.iter().filter(|section| section.captures(words[2]).is_some() && has(section));
        let roles = matching
            .map(|section| BoundRole {
                role: EventRole::Rule,
                slots: section.fields.iter().map(|said| said.first().map_or(FieldSlot::Absent, value)).collect(),
            })
            .collect();
        let mut context: [FieldSlot; 4] = Default::default();
        context[crate::roles::TID] =
            fields.iter().find(|field| field.0 == "@tid").map_or(FieldSlot::Absent, |tid| slot(tid.1));
        let class =
            BoundClass { name: words[2].into(), roles, is_selected: true, tid_path: None, context, extra: Vec::new() };
        script.events.push((words[0].parse().unwrap(), words[1].parse().unwrap(), script.classes.len()));
        script.classes.push(class);
    }
    script.events.sort_by_key(|event| (event.0, event.1));
    script
}

fn check(declaration: &str, events: &str, wishes: &Wishes, expect: &Expect) {
    let declaration = AnalysisDeclaration::parse(declaration).unwrap();
    let script = script(events, &declaration);
    let wishes = Wishes { bins: 2, ..wishes.clone() };
    let declared = DeclaredAnalysis::new(&script.setup(&wishes), &declaration);
    expect.assert_eq(&text(&declared.finish(&script.state(&declared)).unwrap()));
    script.check_cuts(&declared, 200);
}

fn check_problems(declaration: &str, expect: &Expect) {
    expect.assert_eq(&AnalysisDeclaration::parse(declaration).unwrap_err().to_string());
}

const SERVER: &str = r#"
name = "server"

[[pairs]]
name = "request"
begin = { event = "begin", key = "request_id" }
end = ["end", { event = "abort" }]
key = "id"
group = "kind"

[[states]]
name = "worker"
key = [{ value = "worker" }, "tid"]
set = [
    { event = "begin", to = "busy" },
    { event = "end", to = { field = "then" } },
    { event = "quit" },
]

[[counters]]
name = "queue"
change = [{ event = "begin", add = 1 }, { event = "end", add = -1 }, { event = "length", to = { field = "length" } }]
"#;

/// One event may concern all: it begins a pair, sets a state, changes a number.
#[test]
fn events_concern_pairs_states_and_counters() {
    check(
        SERVER,
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 begin request_id=1 kind=get tid=5
         150 0 begin request_id=2 kind=put tid=6
         200 1 end id=1 tid=5 then=idle
         300 1 length length=7
         350 0 begin request_id=3 kind=get tid=5
         400 1 abort id=2 tid=6
         500 0 end id=3 tid=5 then=idle
         600 0 quit tid=6
         700 0 begin kind=get tid=6",
        &Wishes::default(),
        &expect![[r#"
            total
              count=3 total=500 min=100 avg=167 max=250 stdev=76 p50=150 p90=250 p99=250 p999=250 never_ended=0 lost_inside=0 began_before=0 without_key=1 given_up=0
            per-group
              group=`get` count=2 total=250 min=100 avg=125 max=150 stdev=35 p50=100 p90=150 p99=150 p999=150 never_ended=0 lost_inside=0
              group=`put` count=1 total=250 min=250 avg=250 max=250 p50=250 p90=250 p99=250 p999=250 never_ended=0 lost_inside=0
            longest
              duration=250 begin=150 end=400 key=2 group=`put`
              duration=150 begin=350 end=500 key=3 group=`get`
              duration=100 begin=100 end=200 key=1 group=`get`
            open
            distribution
              low=100 high=158 count=2
              low=158 high=251 count=1
            states
              key=`worker, 6` value=`busy` total=750 share=0.750 count=2 min=300 max=450 never_ended=1 lost_inside=0
              key=`worker, 5` value=`idle` total=650 share=0.650 count=2 min=150 max=500 never_ended=1 lost_inside=0
              key=`worker, 5` value=`busy` total=250 share=0.250 count=2 min=100 max=150 never_ended=0 lost_inside=0
              key=`worker, 6` value=? total=150 share=0.150 count=1 min=150 max=150 never_ended=0 lost_inside=0
              key=`worker, 5` value=? total=100 share=0.100 count=1 min=100 max=100 never_ended=0 lost_inside=0
            counters
              changes=7 min=1 max=8 last=8 in_doubt=false
            counter-course
              period=0..500 value=8 min=1 max=8
              period=500..1000 value=8 min=7 max=8
        "#]],
    );
}

/// In a hole anything may have happened; a thread's own events only, and states of all together.
#[test]
fn doubts_and_wishes() {
    let wishes = Wishes { tids: vec![5], by: vec!["value".to_owned()], ..Wishes::default() };
    check(
        SERVER,
        "lane cpu=0 span=0..1000 hole=150..160
         100 0 begin request_id=1 kind=get tid=5 @tid=5
         150 0 begin request_id=2 kind=put tid=6 @tid=6
         200 0 end id=1 tid=5 then=idle @tid=5
         300 0 begin request_id=3 tid=7 @tid=5",
        &wishes,
        &expect![[r#"
            total
              count=0 total=0 never_ended=1 lost_inside=1 began_before=0 without_key=0 given_up=0
            per-group
              count=0 total=0 never_ended=1 lost_inside=0
              group=`get` count=0 total=0 never_ended=0 lost_inside=1
            longest
            open
              begin=300 key=3
            distribution
            states
              value=`busy` total=800[700,1100] share=0.800[0.700,1.100] count=2 min=100 max=700 never_ended=1 lost_inside=1
              value=`idle` total=800[800,1200] share=0.800[0.800,1.200] count=1 min=800 max=800 never_ended=1 lost_inside=0
              value=? total=400[100,500] share=0.400[0.100,0.500] count=2 min=100 max=300 never_ended=0 lost_inside=1
            counters
              changes=3 min=0 max=1 last=1 in_doubt=true
            counter-course
              period=0..500 value=1 min=0 max=1
        "#]],
    );
}

#[test]
fn cuts_change_nothing() {
    let declaration = AnalysisDeclaration::parse(&SERVER.replace("group =", "nested = true\ngroup =")).unwrap();
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut events = String::from("lane cpu=0 span=0..3000 hole=1500..1530\nlane cpu=1 span=0..3000\n");
        let mut time = 0;
        for _ in 0..120 {
            time += random.below(20);
            let name = ["begin", "end", "abort", "quit", "length"][random.below(5)];
            let (lane, id, tid, number) = (random.below(2), random.below(5), random.below(4), random.below(9));
            events += &format!(
                "{time} {lane} {name} request_id={id} id={id} kind=k{number} tid={tid} then=s{number} length={number}\n"
            );
        }
        let script = script(&events, &declaration);
        let wishes = Wishes::default();
        let declared = DeclaredAnalysis::new(&script.setup(&wishes), &declaration);
        script.check_cuts(&declared, 20);
    }
}

/// Ends come before begins, others stay in the order of the file.
#[test]
fn ends_come_first() {
    let declaration = AnalysisDeclaration::parse(SERVER).unwrap();
    let shown: Vec<String> = declaration.rules.iter().map(|rule| format!("{} {:?}", rule.item, rule.act)).collect();
    assert_eq!(shown, ["0 End", "0 End", "0 Begin", "1 Set", "1 Set", "1 Clear", "2 Add", "2 Add", "2 To"]);
    assert_eq!(EventRole::Rule.facts().fields.len(), rule::KEY_8 + 1);
}

/// All errors are reported at once, with places and suggestions.
#[test]
fn mistakes_are_told_with_their_places() {
    check_problems(
        r#"nam = "x"
[[pair]]
[[pairs]]
name = "a"
begin = { event = "e", when = "size >" }
end = { evnt = "e" }
key = ["a", "b"]
nested = 3
[[states]]
name = "s"
set = ["e", { event = "e", to = true }, { event = "e", key = "x", to = 1 }]
[[counters]]
name = "c"
key = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
change = { event = "e" }
[[counters]]
name = "d"
change = [{ event = "e*", add = { capture = 2 } }, { event = "e", to = 99999999999999999999 }]
"#,
        &expect![[r#"
            1:1: an own analysis has no `nam`; did you mean `name`?
            1:1: an own analysis lacks `name`: its displayed name
            2:3: an own analysis has no `pair`; did you mean `pairs`?
            5:38: found the end, expected a value: a field, a number, a text, or `(`
            6:7: `end` lacks `event`: the name of an event, or a pattern of it
            6:9: `end` has no `evnt`; did you mean `event`?
            8:10: found an integer, expected a truth value
            11:8: found a text, expected an event's name, a table (`{ event = ..., when = ... }`), or a list of these
            11:33: found a truth value, expected a text, an integer, or the value of a field: `{ field = "name" }`
            11:41: fields of this key: 1; of another one that it shall meet: 0
            15:10: a change either adds (`add`) or sets (`to`)
            15:10: a key of 9 fields; 8 are the most
            18:11: there is no star number 2: patterns of this event have 1
            18:72: 99999999999999999999 is above 9223372036854775807, the highest integer"#]],
    );
    check_problems("name = 'a'\n[[states]", &expect!["2:10: this is no TOML: unclosed array table, expected `]`"]);
}

/// The examples of the documentation work.
#[test]
fn examples_are_right() {
    let text = include_str!("../../../../docs/own-analyses.md");
    let examples: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 4);
    for example in examples {
        let whole =
            if example.starts_with("name") { example.to_owned() } else { format!("name = 'example'\n{example}") };
        AnalysisDeclaration::parse(&whole).unwrap_or_else(|problems| panic!("{problems}\n{whole}"));
    }
}

/// Written by hand: the state of a worker at any instant, with unknown times and lost events.
#[test]
fn states_are_asked_at_an_instant() {
    let declaration = AnalysisDeclaration::parse(SERVER).unwrap().states();
    assert_eq!(declaration.items.len(), 1);
    let script = script(
        "lane cpu=0 span=0..1000 hole=340..345
         lane cpu=1 span=0..1000
         100 0 begin request_id=1 tid=5
         150 0 quit tid=6
         200 1 end id=1 tid=5 then=idle
         250 1 end id=1 then=idle
         400 0 begin request_id=3 tid=5
         500 0 begin request_id=4 tid=6",
        &declaration,
    );
    let wishes = Wishes::default();
    let history = History::new(&script.setup(&wishes), &declaration);
    script.check_cuts(&history, 100);
    let (runs, texts) = history.into_runs(script.state(&history));
    let at = |at: i64| {
        let mut found = Vec::new();
        runs.each(|run| found.extend((run.begin <= at && at < run.end).then_some(run))).unwrap();
        format!("at {at}\n{}", text(&texts.at(at, &wishes, &found)))
    };
    let told: String = [50, 170, 300, 400, 999].map(at).concat();
    expect![[r#"
        at 50
        own-states
          key=`worker, 5` state=? since=? for=? until=100 uncertain=false
          key=`worker, 6` state=? since=? for=? until=150 uncertain=false
        left-out
          without_field=1 given_up=0
        at 170
        own-states
          key=`worker, 5` state=`busy` since=100 for=70 until=200 uncertain=false
        left-out
          without_field=1 given_up=0
        at 300
        own-states
          key=`worker, 5` state=`idle` since=200 for=100 until=400 uncertain=true
        left-out
          without_field=1 given_up=0
        at 400
        own-states
          key=`worker, 5` state=`busy` since=400 for=0 uncertain=false
        left-out
          without_field=1 given_up=0
        at 999
        own-states
          key=`worker, 5` state=`busy` since=400 for=599 uncertain=false
          key=`worker, 6` state=`busy` since=500 for=499 uncertain=false
        left-out
          without_field=1 given_up=0
    "#]]
    .assert_eq(&told);
}

/// Random states of random things, cut anywhere.
#[test]
fn histories_cut_anywhere() {
    let declaration = AnalysisDeclaration::parse(SERVER).unwrap().states();
    for seed in 0..100 {
        let mut random = Random(seed);
        let mut events = "lane cpu=0 span=0..3000\nlane cpu=1 span=0..3000 hole=700..800\n".to_owned();
        for step in 1..120 {
            let (lane, tid) = (random.below(2), random.below(4));
            let what = ["begin", "end then=idle", "end then=3", "quit", "end"][random.below(5)];
            let (name, fields) = what.split_once(' ').unwrap_or((what, ""));
            events += &format!("{} {lane} {name} tid={tid} {fields}\n", step * 20);
        }
        let script = script(&events, &declaration);
        let wishes = Wishes::default();
        script.check_cuts(&History::new(&script.setup(&wishes), &declaration), 20);
    }
}
