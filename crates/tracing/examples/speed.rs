//! What events and spans of `tracing` cost: `cargo run --release -p kymo-tracing --example speed [only]`.
//!
//! Nobody drains: lanes are overwritten. Each figure is the median of fifteen runs.

#[cfg(target_os = "linux")]
#[path = "../tests/suite/read/mod.rs"]
mod read;

#[cfg(target_os = "linux")]
fn main() {
    use kymo_lane::{OverflowMode, RecordingSettings, contexts};
    use tracing::{info, info_span};
    use tracing_subscriber::prelude::*;

    const COUNT: u64 = 200_000;

    fn measure(what: &str, mut act: impl FnMut(u64)) {
        let run = |_| {
            let begin = std::time::Instant::now();
            (0..COUNT).for_each(&mut act);
            begin.elapsed().as_secs_f64() * 1e9 / COUNT as f64
        };
        let mut runs: Vec<f64> = (0..15).map(run).collect();
        runs.sort_by(f64::total_cmp);
        println!("    {what:<24}{:6.1} ns", runs[7]);
    }

    fn measure_all(title: &str) {
        println!("{title}");
        let text = std::hint::black_box("example.org");
        measure("u64", |number| info!(name: "number", number));
        measure("u64, i64, text", |number| info!(name: "three", number, x = -1, host = text));
        measure("message with a number", |number| info!(name: "message", "{number} of them"));
        let span = info_span!("request");
        measure("span entered and left", |_| span.in_scope(|| ()));
        measure("span made and closed", |number| drop(info_span!("query", number)));
    }

    measure_all("no subscriber");
    if std::env::args().any(|argument| argument == "only") {
        tracing_subscriber::registry().with(kymo_tracing::only()).init();
    } else {
        tracing_subscriber::registry().with(kymo_tracing::layer()).init();
    }
    measure_all("off");
    let mut read = read::Read::own();
    let wants = RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 32, pool: 512, contexts: contexts::CPU };
    read.recorder.say(&wants).expect("it can be written");
    let all = read.defined();
    all.iter().for_each(|(id, _)| read.recorder.switch(*id, 1).expect("it can be written"));
    measure_all("on");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
