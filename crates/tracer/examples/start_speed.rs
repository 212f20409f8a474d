//! What a program pays before its first event, and a thread for its own first one:
//! `cargo run --release -p kymo-tracer --example start_speed`.
//!
//! Medians in us: memory for a process and 10 events (in children, 41 of them), the first event of a thread (of 101), with the next
//! one beside it; and what all of it leaves resident.
#![allow(unsafe_code, reason = "the environment is set before anybody reads it, and children are made")]

#[cfg(target_os = "linux")]
#[path = "../tests/suite/recorder/mod.rs"]
mod recorder;

#[cfg(target_os = "linux")]
fn main() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::Instant;

    use kymo_tracer::{Event, control_file};

    static EVENTS: [Event; 10] = [const { Event::new(b"event bench:first\nfield u32 value\n") }; 10];

    fn median(mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn micros(what: impl FnOnce()) -> f64 {
        let begin = Instant::now();
        what();
        begin.elapsed().as_nanos() as f64 / 1000.0
    }

    let folder = recorder::folder();
    if std::env::args().nth(1).as_deref() == Some("child") {
        let time = micros(|| EVENTS.iter().for_each(|event| assert!(event.register())));
        println!("{time}");
        std::fs::remove_dir_all(folder).expect("it is ours");
        return;
    }
    let this = std::env::current_exe().expect("it runs");
    let child = |_| {
        let output = std::process::Command::new(&this).arg("child").output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
    };
    println!("process {:.1} us", median((0..41).map(child).collect()));
    EVENTS.iter().for_each(|event| assert!(event.register()));
    let path = Path::new(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let resident = || path.metadata().expect("it is there").blocks() / 2;
    println!("process {} KiB", resident());
    recorder::Watch::new(path).recorder.switch(0, 1).expect("it can be written");
    let first = || {
        let event = || micros(|| EVENTS[0].record(&[0; 4]));
        std::thread::spawn(move || (event(), event())).join().expect("it ends")
    };
    let times: Vec<(f64, f64)> = (0..101).map(|_| first()).collect();
    println!(
        "thread  {:.1} us, next {:.2} us",
        median(times.iter().map(|time| time.0).collect()),
        median(times.iter().map(|time| time.1).collect())
    );
    println!("threads {} KiB", resident());
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
