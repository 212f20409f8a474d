//! What an event costs in a program: `cargo run --release -p kymo-tracer --example event_speed`.
//!
//! Medians of 15 runs of 2 million, in ns, nobody draining, in overwrite mode: an event that is off, and one of a u32,
//! alone and with each context; return addresses only if it was built with `-C force-frame-pointers`.
#![allow(unsafe_code, reason = "the environment is set before anybody reads it")]

#[cfg(target_os = "linux")]
#[path = "../tests/suite/recorder/mod.rs"]
mod recorder;

#[cfg(target_os = "linux")]
fn main() {
    use std::hint::black_box;
    use std::os::unix::ffi::OsStrExt;
    use std::time::Instant;

    use kymo_lane::{OverflowMode, RecordingSettings, contexts};
    use kymo_tracer::{Context, Event, Own, control_file, ticks};

    const EVENTS: u32 = 2_000_000;
    static OFF: Event = Event::new(b"off: value u32");
    static ON: Event = Event::new(b"on: value u32");

    static NUMBER: Context = Context::new(b"context number\nfield u64 number\n", 8, number);

    extern "C" fn number(own: &mut Own) {
        own.value = 7;
    }

    fn median(mut event: impl FnMut(u32)) -> f64 {
        let mut run = || {
            let begin = Instant::now();
            (0..EVENTS).for_each(&mut event);
            begin.elapsed().as_nanos() as f64 / f64::from(EVENTS)
        };
        run();
        let mut times: Vec<f64> = (0..15).map(|_| run()).collect();
        times.sort_by(f64::total_cmp);
        times[7]
    }

    let folder = recorder::folder();
    assert!(OFF.register() && ON.register());
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let watch = recorder::Watch::new(path);
    let say = |contexts| {
        let wants = RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 32, pool: 512, contexts };
        watch.recorder.say(&wants).expect("it can be written");
    };
    say(0);
    watch.recorder.switch(1, 1).expect("it can be written");
    println!("loop  {:.2} ns", median(|value| _ = black_box(value)));
    println!("clock {:.2} ns", median(|_| _ = black_box(ticks())));
    println!("off   {:.2} ns", median(|value| OFF.record(&black_box(value).to_le_bytes())));
    let on = || median(|value| ON.record(&black_box(value).to_le_bytes()));
    println!("on    {:.2} ns", on());
    assert!(NUMBER.register());
    for (name, context) in [
        ("cpu_id", contexts::CPU),
        ("pid", contexts::PID),
        ("tid", contexts::TID),
        ("name", contexts::NAME),
        ("ip", contexts::IP),
        ("stack", contexts::STACK),
        ("own u64", contexts::FIRST_OWN),
    ] {
        say(context);
        println!("on, with {name:8} {:.2} ns", on());
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
