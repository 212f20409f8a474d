//! What the tracer has for every program, beside events of `tracing` and of the program's own.
//!
//! The test is alone, as a process has one subscriber and one tracer.

use expect_test::expect;
use kymo_tracer::marks::{Checkpoint, Direction, Level, set_snap_length};
use kymo_tracer::{
    begin, checkpoint, counter, end, log, packet, receive, rpc_call, rpc_dispatch, rpc_reply, rpc_return, scope, send,
    signal_receive, signal_submit,
};
use tracing_subscriber::prelude::*;

use crate::alone;
use crate::read::Read;

kymo_tracer::event! {
    fn own(number: i32, name: &str) = "test:own", level 4;
}

fn everything() {
    scope!("outer");
    own(-1, "one");
    for _ in 0..2 {
        scope!("inner");
    }
    log!(Level::Warning, "{} of {}", 2, "five");
    checkpoint!("init", 7, std::ptr::without_provenance(0x10), Checkpoint::Start);
    begin!("by hand", 1);
    tracing::info!(name: "beside", "a text");
    end!("by hand", 1);
    counter!("queue", -3);
    send!(0xFF);
    receive!(0xFF);
    rpc_call!("open", 3);
    rpc_dispatch!("open", 3);
    rpc_reply!("open", 3);
    rpc_return!("open", 3);
    signal_submit!(5, 1);
    signal_receive!(5, 1);
    packet!("eth0", Direction::Inbound, &[1, 2, 3]);
    set_snap_length(2);
    packet!("eth0", Direction::Outbound, &[1, 2, 3]);
}

#[test]
fn marks_are_recorded() {
    alone::run("marks::marks_are_recorded", |_| {
        tracing_subscriber::registry().with(kymo_tracing::layer()).init();
        everything();
        let mut read = Read::own();
        let defined = read.defined();
        defined.iter().for_each(|(id, _)| read.recorder.switch(*id, 1).expect("it can be written"));
        let marks = defined.iter().filter(|(_, text)| text.starts_with("event kymo:")).count();
        assert_eq!(marks, 14, "{defined:#?}");
        everything();
        expect![[r#"
            kymo:begin key=#0 name="outer"
            test:own number=-1 name="one"
            kymo:begin key=#1 name="inner"
            kymo:end key=#1 name="inner"
            kymo:begin key=#1 name="inner"
            kymo:end key=#1 name="inner"
            kymo:log level=4 text="2 of five"
            kymo:checkpoint name="init" data=7 object=16 type=1
            kymo:begin key=1 name="by hand"
            suite.marks:beside message="a text"
            kymo:end key=1 name="by hand"
            kymo:counter name="queue" value=-3
            kymo:send id=255
            kymo:receive id=255
            kymo:rpc_call id=3 name="open"
            kymo:rpc_dispatch id=3 name="open"
            kymo:rpc_reply id=3 name="open"
            kymo:rpc_return id=3 name="open"
            kymo:signal_submit context=5 number=1
            kymo:signal_receive context=5 number=1
            kymo:packet interface="eth0" direction=1 link=1 length=3 received=0 data=[1, 2]
            kymo:packet interface="eth0" direction=2 link=1 length=3 received=0 data=[1, 2]
            kymo:end key=#0 name="outer"
        "#]]
        .assert_eq(&keys(&read.text()));
        let long = "ä".repeat(1000);
        log!(Level::Info, "{long}");
        assert_eq!(read.text().trim_end(), format!("kymo:log level=6 text={:?}", "ä".repeat(512)));
        assert_eq!(read.recorder.losses(0).expect("it can be read").cut, 1);
        let mut evaluated = 0;
        let mut value = || {
            evaluated += 1;
            evaluated
        };
        log!(Level::Debug, "{}", value());
        read.switch("log", 0);
        log!(Level::Debug, "{}", value());
        assert_eq!(evaluated, 1, "nobody wants the second one");
        // What has begun while nobody wanted it does not end.
        read.text();
        read.switch("begin", 0);
        {
            scope!("off");
            read.switch("begin", 1);
        }
        assert_eq!(read.text(), "");
    });
}

/// Addresses are what they are, but the same ones are the same.
fn keys(text: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut words = text.split_inclusive([' ', '\n']).map(|word| {
        let Some(key) = word.strip_prefix("key=").filter(|key| key.len() > 4) else { return word.to_owned() };
        let number = seen.iter().position(|other| *other == key).unwrap_or_else(|| {
            seen.push(key);
            seen.len() - 1
        });
        format!("key=#{number} ")
    });
    words.by_ref().collect()
}
