//! What filters cost at the sites of events: `cargo run --release -p kymo-recorder --example site_speed`, pinned to a CPU that has nothing
//! else to do.
//!
//! The program records itself: filters are put into it as a recorder puts them into others. An event has as many `u32` fields as its filter
//! has predicates `field == constant`; all of them are true, or all but the last. Medians of 15 rounds of a million events each.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use kymo_lane::{NoArena, OverflowMode, RecordingSettings, WriterThread, contexts};
use kymo_recorder::filters::{ClassFilter, FilterCompiler, Placer, ProgramConstants, RecordedEvent};
use kymo_recorder::program::Program;
use kymo_schema::definition::EventClass;

const EVENTS: u32 = 1_000_000;
const ROUNDS: usize = 15;

macro_rules! events {
    ($($event:ident $name:literal $loop:ident $last:ident: $($field:ident $value:literal)*;)*) => {
        $(kymo_tracer::event! {
            /// An event with so many fields.
            fn $event($($field: u32,)* $last: u32) = $name;
        }
        #[inline(never)]
        fn $loop(events: u32, last: u32) {
            for _ in 0..events {
                $event($($value,)* black_box(last));
            }
        })*
        const DEFINITIONS: &[(&str, fn(u32, u32), &[(&str, u32)])] =
            &[$((stringify!($event), $loop, &[$((stringify!($field), $value),)* (stringify!($last), 7)])),*];
    };
}

events! {
    one "speed:one" loop_one f00: ;
    ten "speed:ten" loop_ten f09: f00 11 f01 12 f02 13 f03 14 f04 15 f05 16 f06 17 f07 18 f08 19;
    fifty "speed:fifty" loop_fifty f49: f00 11 f01 12 f02 13 f03 14 f04 15 f05 16 f06 17 f07 18 f08 19
        f10 21 f11 22 f12 23 f13 24 f14 25 f15 26 f16 27 f17 28 f18 29 f19 30
        f20 31 f21 32 f22 33 f23 34 f24 35 f25 36 f26 37 f27 38 f28 39 f29 40
        f30 41 f31 42 f32 43 f33 44 f34 45 f35 46 f36 47 f37 48 f38 49 f39 50
        f40 51 f41 52 f42 53 f43 54 f44 55 f45 56 f46 57 f47 58 f48 59;
}

/// Nanoseconds of an event that the recorder asks.
fn measure_asked(filter: &ClassFilter, class: &EventClass, values: &[(&str, u32)]) -> f64 {
    let asked = filter.asked(class, ProgramConstants::default());
    let fields: Vec<u8> = values.iter().flat_map(|(_, value)| value.to_le_bytes()).collect();
    let event = RecordedEvent { thread: &WriterThread::default(), contexts: 0, carried: &[], fields: &fields };
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..EVENTS / 10 {
                assert!(black_box(&asked).keeps(black_box(&event)));
            }
            begin.elapsed().as_nanos() as f64 / f64::from(EVENTS / 10)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Nanoseconds of one event.
fn measure(run: fn(u32, u32), last: u32) -> f64 {
    run(EVENTS / 10, last);
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            run(EVENTS, last);
            begin.elapsed().as_nanos() as f64 / f64::from(EVENTS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir_in("/dev/shm")?;
    if std::env::var_os("KYMO_FILTER_SPEED").is_none() {
        // Where memory lies is said before the program begins.
        let mut command = std::process::Command::new(std::env::current_exe()?);
        let status = command.env("KYMO_FILTER_SPEED", "1").env("XDG_RUNTIME_DIR", folder.path()).status()?;
        std::process::exit(status.code().unwrap_or(1));
    }
    let path = kymo_tracer::control_file().ok_or("it has no memory")?.to_str()?;
    let user = rustix::process::getuid().as_raw();
    let mut program = Program::open(Path::new(path), user)?;
    program.is_known_as(std::process::id());
    program.definitions()?;
    let mut compiler = FilterCompiler::default();
    let mut native = Placer::new(&program, user)?;
    let arena = Err(NoArena::Off);
    let mut interpreter = Placer::open(program.lane(), arena, None, user)?;
    println!("nanoseconds an event      off     on  native no    yes  interpreter no    yes  asked by the recorder");
    for carried in [0, contexts::CPU] {
        program.say(&RecordingSettings {
            mode: OverflowMode::OverwriteOldest,
            lane: 64,
            pool: 512,
            contexts: carried,
        })?;
        for (name, run, fields) in DEFINITIONS {
            let found = program.known().events.iter().enumerate().find_map(|(id, class)| {
                let class = class.as_ref()?;
                (class.name == *name).then(|| (id as u16, class.clone()))
            });
            let (id, class) = found.ok_or("it is not known")?;
            let tests: Vec<String> = fields.iter().map(|(field, value)| format!("{field} == {value}")).collect();
            let filter = ClassFilter::of_texts([tests.join(" && ").as_str()], &class, ProgramConstants::default());
            let filter = filter.map_err(|wrong| wrong.0)?;
            let mut line = format!("{name:>20}");
            let wanted = [(&filter, &*class)];
            let placed = native.place(program.lane(), &mut compiler, &wanted)?.remove(0);
            // The slots of one are those of the other.
            interpreter = Placer::open(program.lane(), arena, None, user)?;
            let interpreted = interpreter.place(program.lane(), &mut compiler, &wanted)?.remove(0);
            for (to, lasts) in [(0, &[7][..]), (1, &[7]), (placed.control, &[8, 7]), (interpreted.control, &[8, 7])] {
                program.switch(id, to)?;
                for last in lasts {
                    line += &format!(" {:6.2}", measure(*run, *last));
                }
            }
            line += &format!(" {:6.2}", measure_asked(&filter, &class, fields));
            let runs = [&placed, &interpreted].map(|placed| program.lane().runs(placed.control));
            println!("{line}  {runs:?} {}", if carried == 0 { "" } else { "with cpu_id" });
            program.switch(id, 0)?;
        }
    }
    drop(interpreter);
    Ok(())
}
