//! Events of all kinds of values, as a recorder reads them.
//!
//! Each test is alone, as a process has one subscriber and one tracer.

use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};

use expect_test::{Expect, expect};
use tracing::{debug, error, event, info, trace, warn};
use tracing_subscriber::prelude::*;

use crate::alone;
use crate::read::Read;

/// Records what somebody does, from the begin of it.
#[track_caller]
fn check(read: &mut Read, act: impl FnOnce(), expected: &Expect) {
    act();
    expected.assert_eq(&read.text());
}

/// Has events while it is formatted.
struct Talks;

impl fmt::Debug for Talks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        info!(name: "inner", depth = 2, "formatted");
        trace!(name: "inner_off", "nobody wants it");
        f.write_str("talks")
    }
}

/// Counts how often it is formatted.
struct Counts<'a>(&'a AtomicU32);

impl fmt::Debug for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fetch_add(1, Ordering::Relaxed);
        f.write_str("counted")
    }
}

#[test]
fn events_are_what_they_were() {
    alone::run("events::events_are_what_they_were", |_| {
        tracing_subscriber::registry().with(kymo_tracing::layer()).init();
        run();
    });
}

/// Nothing is asked of anybody else.
#[test]
fn events_are_what_they_were_where_nobody_else_sees_them() {
    alone::run("events::events_are_what_they_were_where_nobody_else_sees_them", |_| {
        tracing_subscriber::registry().with(kymo_tracing::only()).init();
        run();
        asks(&mut Read::own());
    });
}

fn run() {
    let (first, line) = (|| info!(name: "first", target: "app::start", "hello"), line!());
    first();
    let mut read = Read::own();
    let defined = read.defined();
    let expected = format!("event app.start:first\nlevel 6\nsource {}:{line}\nfield text message\n", file!());
    assert!(defined.iter().any(|(_, text)| *text == expected), "{defined:#?}");
    check(&mut read, first, &expect![""]);
    read.switch("first", 1);
    check(
        &mut read,
        first,
        &expect![[r#"
        app.start:first message="hello"
    "#]],
    );
    values(&mut read);
    types_change(&mut read);
    levels(&mut read);
    inner_events(&mut read);
    is_cut(&mut read);
    many(&mut read);
}

fn values(read: &mut Read) {
    let act = || {
        info!(
            name: "values", target: "test", a = 1_u8, b = -2, c = 0.5, d = true, e = "text", f = %1.25, g = ?Some(3),
            h = &b"bytes"[..], i = 1_i128 << 100, j = NonZero::new(7_u16), k = None::<u32>, l = String::from("own"),
            m = tracing::field::Empty, "with space" = 1_u64, r#type = 2_u64, s = true, t.u = false,
            error = &fmt::Error as &(dyn std::error::Error + 'static), "{} of them", 20
        );
    };
    act();
    // It has happened, though nobody wanted it: so it can be filtered by its numbers.
    let is_typed = |text: &str| text.starts_with("event test:values") && text.contains("field u64 a\nfield i64 b\n");
    assert_eq!(read.defined().iter().filter(|(_, text)| is_typed(text)).count(), 1);
    read.switch("values", 1);
    check(
        read,
        act,
        &expect![[r#"
        test:values message="20 of them" a=1 b=-2 c=0.5 d=true e="text" f="1.25" g="Some(3)" h=[98, 121, 116, 101, 115] i="1267650600228229401496703205376" j=7 l="own" with_space=1 type=2 s=true t.u=false error="an error occurred when formatting an argument"
    "#]],
    );
}

/// A field of another type is another definition, which the recorder's switch is taken over to.
fn types_change(read: &mut Read) {
    let act = |text: bool| {
        let value: &dyn tracing::Value = if text { &"one" } else { &1 };
        info!(name: "changes", target: "test", value, rest = 0.5);
    };
    act(true);
    read.switch("changes", 1);
    act(true);
    act(false);
    check(
        read,
        || act(true),
        &expect![[r#"
        test:changes value="one" rest=0.5
        test:changes value=1 rest=0.5
        test:changes value="one" rest=0.5
    "#]],
    );
    let of_it = |read: &mut Read| read.defined().len();
    assert_eq!(of_it(read), 0, "a definition is there once");
    read.switch("changes", 0);
    act(false);
    check(read, || act(true), &expect![""]);
    read.switch("changes", 1);
    check(
        read,
        || act(false),
        &expect![[r#"
        test:changes value=1 rest=0.5
    "#]],
    );
}

fn levels(read: &mut Read) {
    let line = line!() + 6;
    let act = || {
        error!(name: "levels", target: "a::b:c", "1");
        warn!(name: "levels", target: "a::b:c", "2");
        debug!(name: "levels", target: "a::b:c", "3");
        trace!(name: "levels", target: "a::b:c", "4");
        event!(tracing::Level::INFO, answer = 42);
    };
    read.defined();
    act();
    let defined = read.defined();
    let without_source = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("source "));
        lines.collect::<Vec<_>>().join("|")
    };
    let texts: Vec<_> = defined.iter().map(|(_, text)| without_source(text)).collect();
    expect![[r#"
        [
            "event a.b_c:levels|level 3|field text message",
            "event a.b_c:levels|level 4|field text message",
            "event a.b_c:levels|level 13|field text message",
            "event a.b_c:levels|level 14|field text message",
            "event suite.events:event crates/tracing/tests/suite/events.rs:LINE|level 6|field text answer",
            "event suite.events:event crates/tracing/tests/suite/events.rs:LINE|level 6|field i64 answer",
        ]"#]]
    .assert_eq(&format!("{texts:#?}").replace(&format!(".rs:{line}"), ".rs:LINE"));
}

/// A value that has events of its own, and one of an event that is off.
fn inner_events(read: &mut Read) {
    let act = || info!(name: "outer", value = ?Talks, last = 1);
    act();
    read.switch("outer", 1);
    act();
    read.switch("inner", 1);
    check(
        read,
        act,
        &expect![[r#"
        suite.events:outer value="talks" last=1
        suite.events:inner message="formatted" depth=2
        suite.events:outer value="talks" last=1
    "#]],
    );
    let count = AtomicU32::new(0);
    let act = || info!(name: "counts", value = ?Counts(&count));
    act();
    assert_eq!(count.load(Ordering::Relaxed), 0, "nobody wants it");
    read.switch("counts", 1);
    check(
        read,
        act,
        &expect![[r#"
        suite.events:counts value="counted"
    "#]],
    );
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// Whoever asks before he has an event can be switched as that event can.
fn asks(read: &mut Read) {
    let (asks, line) = (|| tracing::enabled!(tracing::Level::INFO), line!());
    assert!(!asks());
    read.switch(&format!("enabled {}:{line}", file!()), 1);
    assert!(asks());
}

fn is_cut(read: &mut Read) {
    let long = format!("x{}", "ä".repeat(20_000));
    let act = || info!(name: "long", a = long.as_str(), b = "short", c = ?vec![1; 20_000], d = 1);
    act();
    read.switch("long", 1);
    act();
    let text = read.text();
    let (a, rest) = text.split_once(" b=").expect("it is there");
    let (b, rest) = rest.split_once(" c=").expect("it is there");
    let (c, d) = rest.split_once(" d=").expect("it is there");
    assert_eq!((b, d), ("\"short\"", "1\n"));
    let lengths = [a.len() - "suite.events:long a=\"\"".len(), c.len() - "\"\"".len()];
    // Three lengths, "short" and a number: what is left is for both. The first one ends with a whole letter.
    assert_eq!(lengths, [8181, 8182], "of {}", ((16 << 10) - 3 * 2 - 5 - 8) / 2);
    assert_eq!(read.recorder.losses(0).expect("it can be read").cut, 1);
}

/// Each of these is a callsite, and each has a list to be found in.
fn many(read: &mut Read) {
    macro_rules! sites {
        ($($digit:literal)*) => { sites!(@ [$($digit)*] $($digit)*) };
        (@ $all:tt $($digit:literal)*) => { $(sites!(@@ $digit $all);)* };
        (@@ $first:literal [$($digit:literal)*]) => { $(info!(name: "many", number = 10 * $first + $digit);)* };
    }
    let act = || {
        sites!(0 1 2 3 4 5 6 7 8 9);
    };
    act();
    read.switch("many", 1);
    act();
    let text = read.text();
    let expected: String = (0..100).map(|number| format!("suite.events:many number={number}\n")).collect();
    assert_eq!(text, expected);
}
