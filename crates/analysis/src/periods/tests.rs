//! Cases of periods: the found periods, and errors in definitions.

mod sums;

use super::{Definitions, Period, PeriodBorder, PeriodEnd};
use crate::key::KeyValue;

/// Periods of borders that are written as `time rule-of-the-definition values`: `10 +frame 7`, `20 -frame`.
fn periods(definitions: &[&str], captures: &[&str], borders: &str) -> String {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let definitions = Definitions::parse(&owned(definitions), &owned(captures)).unwrap();
    let names: Vec<&str> = definitions.names().collect();
    let border = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (is_begin, name) = (words[1].starts_with('+'), &words[1][1..]);
        let is_rule = |rule: &(usize, bool)| names[rule.0] == name && rule.1 == is_begin;
        let rule = definitions.rules.iter().position(is_rule).unwrap() as u32;
        let values = words[2..].iter().map(|word| word.parse().ok().map(KeyValue::Integer)).collect();
        PeriodBorder { time: words[0].parse().unwrap(), rule, values }
    };
    let mut borders: Vec<PeriodBorder> =
        borders.lines().map(str::trim).filter(|line| !line.is_empty()).map(border).collect();
    // As an event that fulfills several rules does.
    borders.sort_by_key(|border| (border.time, border.rule));
    let found = definitions.periods(&borders);
    let line = |(period, end): (&Period, i64)| {
        let told: String = period
            .captures
            .iter()
            .map(|value| value.as_ref().map_or(" -".into(), |value| format!(" {value}")))
            .collect();
        format!("{} {}..{end}{told}\n", names[period.definition], period.begin)
    };
    let lines: String = found.ended().map(line).collect();
    let open: Vec<&Period> = found.periods.iter().filter(|period| period.ended().is_none()).collect();
    assert!(open.iter().all(|period| (period.end == PeriodEnd::Never) == period.parent.is_none()));
    format!("{lines}never ended {}", open.len())
}

#[test]
fn without_an_end_each_begin_ends_the_one_before() {
    let found = periods(&["f : vsync"], &[], "10 -f\n10 +f\n20 -f\n20 +f\n45 -f\n45 +f");
    assert_eq!(found, "f 10..20\nf 20..45\nnever ended 1");
}

/// An end ends all that it fits, as in lttng-analyses: also those that began twice.
#[test]
fn ends_are_compared_with_begins() {
    let found = periods(
        &["r : begin : end if id == $begin.id"],
        &["r : what=id, peer=from : result=ret"],
        "10 +r 1 5
         20 +r 2 6
         25 +r 1
         30 -r 3 0
         40 -r 1 0
         50 -r 2 9",
    );
    assert_eq!(found, "r 10..40 1 5 0\nr 20..50 2 6 9\nr 25..40 1 - 0\nnever ended 0");
}

/// Colons have white space around them, of any kind; only the first one may stand alone.
#[test]
fn parts_stand_between_colons() {
    let captures = |text: &str| {
        let definitions =
            Definitions::parse(&[": a:b :\n  c:d if x == $begin.x".to_owned()], &[text.to_owned()]).unwrap();
        let definition = &definitions.definitions[0];
        assert_eq!((definition.name.as_str(), definition.is_chain), ("", false));
        definition.captures.iter().map(|capture| (capture.name.clone(), capture.of_end)).collect::<Vec<_>>()
    };
    assert_eq!(captures(": : to=y"), [("to".to_owned(), true)]);
    assert_eq!(captures(":from=y"), [("from".to_owned(), false)]);
    assert_eq!(captures(" : from=y : to=y"), [("from".to_owned(), false), ("to".to_owned(), true)]);
}

#[test]
fn children_need_a_parent_and_end_with_it() {
    let found = periods(
        &["draw(frame) : draw_begin if cpu == $parent.cpu : draw_end", "frame : vsync"],
        &[],
        "5 +draw 1
         10 -frame 1
         10 +frame 1
         12 +draw 1
         13 +draw 2
         15 -draw
         20 +draw 1
         30 -frame 1
         30 +frame 1
         30 +draw 1
         40 -draw
         50 -draw
         50 -frame 1
         50 +frame 1",
    );
    // At 5 there is no frame; on CPU 2 neither; the one of 20 did not end before its frame; that of
    // 30 not yet begun then.
    assert_eq!(found, "frame 10..30\ndraw 12..15\nframe 30..50\nnever ended 2");
}

#[test]
fn numbers_are_compared_as_such_and_what_lacks_is_like_nothing() {
    let found = periods(
        &["p : a : b if seq >= $begin.seq && $begin.kind != kind"],
        &[],
        "1 +p 10 1
         2 -p 9 2
         3 -p 10 1
         4 -p 10 -
         5 -p 11 2",
    );
    assert_eq!(found, "p 1..5\nnever ended 0");
}

#[test]
fn mistakes_are_told() {
    let problem = |definitions: &[&str], captures: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Definitions::parse(&owned(definitions), &owned(captures)).unwrap_err().to_string()
    };
    for (definitions, captures, wanted) in [
        (&["vsync"][..], &[][..], "is no length of time"),
        (&["a : b : c : d"], &[], "is no length of time"),
        (&["a(x) : b"], &[], "there are no periods called `x`"),
        (&["a : b", "a : c"], &[], "two definitions of periods called `a`"),
        (&["a(b) : x", "b(a) : y"], &[], "would be within themselves"),
        (&["a : b if x == $begin.x"], &[], "there is no such event"),
        (&["a : b : c if x == $parent.x"], &[], "there is no such event"),
        (&["a : b : c if x == $begin.x || y"], &[], "joined by `&&`"),
        (&["a : b : c if x + 1 == $begin.x"], &[], "found `+`"),
        (&["a : b if x =="], &[], "`x ==`: "),
        (&["a : b"], &["x : y=z"], "there are no periods called `x`"),
        (&["a : b"], &["a : y"], "says nothing of periods"),
        (&["a : b"], &["a : a=a,b=b,c=c,d=d,e=e,f=f,g=g,h=h,i=i"], "more than 8 fields"),
    ] {
        let found = problem(definitions, captures);
        assert!(found.contains(wanted), "{definitions:?}: {found}");
    }
}
