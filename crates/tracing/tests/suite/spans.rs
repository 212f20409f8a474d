//! Spans: made, entered, left and closed, nested, moved between threads; beside other layers, and in children.
//!
//! Each test is alone, as a process has one subscriber and one tracer.

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use expect_test::expect;
use tracing::span::Id;
use tracing::{Span, Subscriber, debug_span, info, info_span};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

use crate::alone;
use crate::read::Read;

/// Numbers of spans are in the order in which they are seen first.
fn numbered(text: &str) -> String {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let word = |word: &str| match word.split_once('=') {
        Some((name @ ("span" | "parent" | "follows"), number)) if number != "0" => {
            let next = seen.len() + 1;
            format!("{name}={}", seen.entry(number.to_owned()).or_insert(next))
        }
        _ => word.to_owned(),
    };
    let mut word = word;
    let lines = text.lines().map(|line| line.split(' ').map(&mut word).collect::<Vec<_>>().join(" ") + "\n");
    lines.collect()
}

fn request() {
    let outer = info_span!("request", id = 7, path = "/", status = tracing::field::Empty);
    let entered = outer.enter();
    let inner = debug_span!("query", table = "users");
    inner.in_scope(|| info!(name: "rows", count = 3));
    inner.follows_from(&outer);
    drop(inner);
    outer.record("status", 200);
    drop(entered);
    let _again = outer.enter();
}

fn switch_all(read: &mut Read) {
    let all: Vec<_> = read.defined().into_iter().map(|(id, _)| id).collect();
    all.iter().for_each(|id| read.recorder.switch(*id, 1).expect("it can be written"));
}

#[test]
fn what_happens_to_spans_is_recorded() {
    alone::run("spans::what_happens_to_spans_is_recorded", |_| {
        tracing_subscriber::registry().with(kymo_tracing::layer()).init();
        request();
        let mut read = Read::own();
        let defined: Vec<_> = read.defined().into_iter().map(|(_, text)| text).collect();
        let of_request = |text: &&String| text.starts_with("event suite.spans:request");
        let texts = defined.iter().filter(of_request).map(|text| {
            let lines = text.lines().filter(|line| !line.starts_with("source "));
            lines.collect::<Vec<_>>().join("|") + "\n"
        });
        expect![[r#"
            event suite.spans:request_new|level 6|field u64 span|field u64 parent|field text id|field text path|field text status
            event suite.spans:request_begin|level 6|role begin|field u64 span
            event suite.spans:request_end|level 6|role end|field u64 span
            event suite.spans:request_close|level 6|field u64 span
            event suite.spans:request_new|level 6|field u64 span|field u64 parent|field i64 id|field text path
            event suite.spans:request_record|level 6|field u64 span|field i64 status
        "#]].assert_eq(&texts.collect::<String>());
        let mut read = Read::own();
        switch_all(&mut read);
        request();
        expect![[r#"
            suite.spans:request_new span=1 parent=0 id=7 path="/"
            suite.spans:request_begin span=1
            suite.spans:query_new span=2 parent=1 table="users"
            suite.spans:query_begin span=2
            suite.spans:rows count=3
            suite.spans:query_end span=2
            suite.spans:query_follows span=2 follows=1
            suite.spans:query_close span=2
            suite.spans:request_record span=1 status=200
            suite.spans:request_end span=1
            suite.spans:request_begin span=1
            suite.spans:request_end span=1
            suite.spans:request_close span=1
        "#]]
        .assert_eq(&numbered(&read.text()));
        let only_new: Vec<_> = Read::own().defined();
        let leave = |read: &Read, what: &str| {
            only_new.iter().for_each(|(id, text)| {
                read.recorder.switch(*id, text.contains(what).into()).expect("it can be written");
            });
        };
        leave(&read, "request_record");
        request();
        assert_eq!(numbered(&read.text()), "suite.spans:request_record span=1 status=200\n");
        leave(&read, "request_end");
        request();
        expect![[r#"
            suite.spans:request_end span=1
            suite.spans:request_end span=1
        "#]]
        .assert_eq(&numbered(&read.text()));
    });
}

/// Spans go from thread to thread, as those of futures do; each thread has its own begins and ends.
#[test]
fn spans_are_entered_by_several_threads() {
    alone::run("spans::spans_are_entered_by_several_threads", |_| {
        tracing_subscriber::registry().with(kymo_tracing::layer()).init();
        let spans = || -> Vec<Span> { (0..4).map(|number| info_span!("task", number)).collect() };
        let step = |step: u64| info!(name: "step", step);
        spans()[0].in_scope(|| step(0));
        let mut read = Read::own();
        switch_all(&mut read);
        const STEPS: u64 = 500;
        let (spans, barrier) = (Arc::new(spans()), Arc::new(Barrier::new(4)));
        let threads = (0..4).map(|thread| {
            let (spans, barrier) = (Arc::clone(&spans), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                for number in 0..STEPS {
                    let span = &spans[((number + thread) % 4) as usize];
                    span.in_scope(|| step(number));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        drop(spans);
        let mut open: HashMap<u32, Vec<String>> = HashMap::new();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for event in read.events() {
            let (name, rest) = event.text.split_once(' ').expect("all have fields");
            *counts.entry(name.to_owned()).or_default() += 1;
            let open = open.entry(event.tid).or_default();
            match name {
                "suite.spans:task_begin" => open.push(rest.to_owned()),
                "suite.spans:task_end" => assert_eq!(open.pop().as_deref(), Some(rest)),
                "suite.spans:step" => assert_eq!(open.len(), 1, "it is in a span"),
                _ => {}
            }
        }
        assert!(open.values().all(Vec::is_empty), "{open:?}");
        let expected = [("new", 4), ("begin", 4 * STEPS), ("end", 4 * STEPS), ("close", 4)];
        let expected = expected.map(|(name, count)| (format!("suite.spans:task_{name}"), count));
        let expected = expected.into_iter().chain([("suite.spans:step".to_owned(), 4 * STEPS)]);
        assert_eq!(counts, expected.collect::<HashMap<_, _>>());
    });
}

/// A layer that notes what it sees.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.lock().expect("nobody panics").push(event.metadata().name().to_owned());
    }

    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.lock().expect("nobody panics").push(attributes.metadata().name().to_owned());
    }
}

#[test]
fn other_layers_see_what_they_want() {
    alone::run("spans::other_layers_see_what_they_want", |_| {
        let (all, infos) = (Notes::default(), Notes::default());
        tracing_subscriber::registry()
            .with(infos.clone().with_filter(LevelFilter::INFO))
            .with(kymo_tracing::layer())
            .with(all.clone())
            .init();
        let noted = |notes: &Notes| std::mem::take(&mut *notes.0.lock().expect("nobody panics")).join(" ");
        request();
        let expected = ("request query rows".to_owned(), "request rows".to_owned());
        assert_eq!((noted(&all), noted(&infos)), expected);
        assert_eq!(Read::own().text(), "");
        let mut read = Read::own();
        switch_all(&mut read);
        request();
        assert_eq!((noted(&all), noted(&infos)), expected);
        assert_eq!(read.text().lines().count(), 13);
    });
}
