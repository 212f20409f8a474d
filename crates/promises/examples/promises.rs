//! Runs promises on seeded inputs for as long as one likes, or writes inputs for a fuzzer to begin with.
//!
//! ```text
//! promises packets 180 [SEED]     for 180 seconds; also metadata, index, imports, kernel, objects, machine, filters, programs,
//!                                 native, bytecode, written, filtering, fields; on Linux definitions, images, recording
//! promises seeds fuzz/corpus      a folder of inputs for each target
//! ```

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_promises::imports::ImportFolder;
use kymo_promises::index::IndexedFolder;
use kymo_promises::random::RandomNumbers;
use kymo_promises::{
    bytecode, fields, filtering, filters, kernel, machine, metadata, native, objects, packets, programs, starts,
    written,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["seeds", folder] => match seeds(Path::new(folder)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{folder}: {error}");
                ExitCode::FAILURE
            }
        },
        [
            target @ ("metadata" | "index" | "imports" | "kernel" | "objects" | "machine" | "filters" | "packets"
            | "programs" | "native" | "bytecode" | "written" | "filtering" | "fields" | "definitions"
            | "images" | "recording"),
            seconds,
            ref seed @ ..,
        ] => {
            let seed = seed.first().map_or(Ok(0), |seed| seed.parse());
            let (Ok(seconds), Ok(seed)) = (seconds.parse(), seed) else { return usage() };
            run(target, Duration::from_secs(seconds), seed);
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "promises metadata|index|imports|kernel|objects|filters|packets|programs|native|bytecode|written|filtering|fields|definitions|images|recording SECONDS [SEED]\n\
         promises seeds FOLDER"
    );
    ExitCode::from(2)
}

fn seeds(folder: &Path) -> std::io::Result<()> {
    let all = [
        ("metadata", starts::metadata()),
        ("index", IndexedFolder::new().seeds().to_vec()),
        ("imports", import_seeds()),
        ("kernel", kernel::seeds()),
        ("objects", objects::seeds()),
        ("filters", (0..200).map(|seed| filters::text(&mut RandomNumbers::new(seed)).into_bytes()).collect()),
        ("packets", starts::packets()),
        ("programs", starts::packets()),
        ("native", starts::packets()),
        ("bytecode", bytecode::seeds()),
    ];
    for (target, inputs) in all.into_iter().chain(linux::seeds()) {
        fs::create_dir_all(folder.join(target))?;
        for (number, input) in inputs.iter().enumerate() {
            fs::write(folder.join(target).join(format!("start{number}")), input)?;
        }
    }
    Ok(())
}

/// Files, and definitions and threads of a tree behind the byte that tells them from files.
fn import_seeds() -> Vec<Vec<u8>> {
    let behind = |byte: u8, seeds: Vec<Vec<u8>>| seeds.into_iter().map(move |seed| [&[byte][..], &seed].concat());
    let others = behind(0xDE, ImportFolder::definition_seeds()).chain(behind(0xDD, ImportFolder::thread_seeds()));
    ImportFolder::seeds().into_iter().chain(others).collect()
}

/// A file, definitions, or a thread of a tree.
fn hold_import(folder: &ImportFolder, data: &[u8]) {
    match data.split_first() {
        Some((0xDE, definitions)) => folder.hold_definitions(definitions),
        Some((0xDD, thread)) => folder.hold_thread(thread),
        _ => folder.hold(data),
    }
}

fn run(target: &str, time: Duration, mut seed: u64) {
    let (indexed, imported) = (IndexedFolder::new(), ImportFolder::new());
    let inputs = match target {
        "metadata" => starts::metadata(),
        "index" => indexed.seeds().to_vec(),
        "imports" => import_seeds(),
        "kernel" => kernel::seeds(),
        "objects" => objects::seeds(),
        _ => starts::packets(),
    };
    let stage = linux::stage();
    let (begin, first, mut values) = (Instant::now(), seed, 0);
    while begin.elapsed() < time {
        let mut random = RandomNumbers::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match target {
            "metadata" => metadata::hold(&random.damaged(&inputs[random.clone().below(inputs.len())])),
            "index" => indexed.hold(&random.damaged(&inputs[random.clone().below(inputs.len())])),
            "imports" => hold_import(&imported, &random.damaged(&inputs[random.clone().below(inputs.len())])),
            "kernel" => {
                values += kernel::hold(&random.damaged(&inputs[random.clone().below(inputs.len())])) as usize;
            }
            "objects" => {
                values += objects::hold(&random.damaged(&inputs[random.clone().below(inputs.len())]), None) as usize;
            }
            "filters" => {
                filters::hold(&filters::text(&mut random), &mut random);
                filters::hold_alike(&mut random);
            }
            "machine" => values += machine::hold(&mut random).unwrap_or(0),
            "programs" => drop(programs::hold(&mut random)),
            "filtering" => {
                let data = starts::packet(&mut random);
                let (trace, packet, _) = packets::split(&data);
                let _ = filtering::hold(&Arc::new(trace), packet, &mut random);
            }
            "fields" => {
                let data = starts::packet(&mut random);
                let (trace, packet, _) = packets::split(&data);
                values += fields::hold(&Arc::new(trace), packet, &mut random).1;
            }
            "native" => drop(native::hold(&mut random)),
            "bytecode" => drop(bytecode::hold(&mut random)),
            "definitions" | "recording" | "images" => linux::hold(target, &mut random, &stage),
            "written" => {
                let choices = (0..random.below(500)).map(|_| random.any() as u32).collect();
                written::hold(choices, &mut random);
            }
            _ => packets::hold(&starts::packet(&mut random)),
        }));
        assert!(result.is_ok(), "the promise {target} is broken for seed {seed}");
        seed += 1;
    }
    println!("{target}: {} inputs from seed {first} in {} s", seed - first, time.as_secs());
    if target == "fields" {
        println!("{values} values were there, and the same");
    }
}

/// Programs are recorded on Linux.
#[cfg(target_os = "linux")]
mod linux {
    use kymo_promises::random::RandomNumbers;
    use kymo_promises::recorded::RecordingStage;
    use kymo_promises::{definitions, images, recording};

    pub(super) fn stage() -> RecordingStage {
        RecordingStage::new()
    }

    pub(super) fn hold(target: &str, random: &mut RandomNumbers, stage: &RecordingStage) {
        match target {
            "definitions" => _ = definitions::hold(&definitions::text(random), stage),
            "images" => {
                images::hold(random);
                images::hold_damaged(random);
            }
            _ => _ = recording::hold(random, stage),
        }
    }

    pub(super) fn seeds() -> Vec<(&'static str, Vec<Vec<u8>>)> {
        let texts = (0..100).map(|seed| definitions::text(&mut RandomNumbers::new(seed))).collect();
        // Choices: two bytes each.
        let stories = (0..100).map(|seed| {
            let mut random = RandomNumbers::new(seed);
            (0..3000).map(|_| random.any() as u8).collect()
        });
        vec![("definitions", texts), ("recording", stories.collect())]
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use kymo_promises::random::RandomNumbers;

    pub(super) fn stage() {}

    pub(super) fn hold(target: &str, _: &mut RandomNumbers, (): &()) {
        panic!("nothing is recorded here: {target}");
    }

    pub(super) fn seeds() -> Vec<(&'static str, Vec<Vec<u8>>)> {
        Vec::new()
    }
}
