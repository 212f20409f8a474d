//! A few seconds of what `fuzz/` does for long: seeded bytes, and damaged copies of small files of ours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_promises::imports::ImportFolder;
use kymo_promises::index::IndexedFolder;
use kymo_promises::random::RandomNumbers;
use kymo_promises::{
    bytecode, fields, filtering, filters, kernel, machine, metadata, native, objects, packets, programs, sites, starts,
};

/// A slow machine does less, so that nobody waits.
const TIME_MAX: Duration = Duration::from_secs(3);

/// Runs a promise on inputs made from seeds, and says which seed broke it.
fn smoke(inputs: u64, mut hold: impl FnMut(&mut RandomNumbers)) {
    let begin = Instant::now();
    for seed in 0..inputs {
        if begin.elapsed() > TIME_MAX {
            println!("stopped after {seed} of {inputs} inputs: this machine is slow");
            return;
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hold(&mut RandomNumbers::new(seed))));
        assert!(result.is_ok(), "the promise is broken for seed {seed}");
    }
}

#[test]
fn packets() {
    smoke(800, |random| packets::hold(&starts::packet(random)));
}

#[test]
fn programs() {
    let (mut tried, mut records) = (0, 0);
    smoke(1500, |random| {
        tried += 1;
        records += programs::hold(random).unwrap_or(0);
    });
    println!("{tried} programs read {records} records");
    assert!(records > tried / 3, "{tried} programs read {records} records");
}

#[test]
fn machine() {
    let (mut tried, mut ended) = (0, 0);
    smoke(1500, |random| {
        let found = machine::hold(random);
        (tried, ended) = (tried + usize::from(found.is_some()), ended + found.unwrap_or(0));
    });
    println!("{tried} programs came to their end {ended} times");
    assert!(ended > tried / 4, "{tried} programs came to their end {ended} times: the test has become weak");
}

#[cfg(target_os = "linux")]
#[test]
fn images() {
    let (mut tried, mut ended, mut native) = (0, 0, 0);
    smoke(3000, |random| {
        if let Some(found) = kymo_promises::images::hold(random) {
            (tried, ended, native) = (tried + 1, ended + found.ended, native + usize::from(found.is_native));
        }
        kymo_promises::images::hold_damaged(random);
    });
    println!("{tried} programs came to their end {ended} times, {native} of them as machine code, too");
    let is_compiled = !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) || native > tried / 4;
    assert!(is_compiled, "{native} of {tried} programs were machine code: the test has become weak");
    assert!(ended > tried / 4, "{tried} programs came to their end {ended} times: the test has become weak");
}

#[test]
fn native() {
    let (mut compiled, mut kept) = (0, 0);
    smoke(1000, |random| {
        let found = native::hold(random);
        (compiled, kept) = (compiled + usize::from(found.is_some()), kept + found.unwrap_or(0));
    });
    println!("{compiled} filters kept {kept} events");
}

#[test]
fn filtering() {
    let (mut events, mut kept) = (0, 0);
    smoke(1500, |random| {
        let data = starts::packet(random);
        let (trace, packet, _) = packets::split(&data);
        let (tried, found) = filtering::hold(&Arc::new(trace), packet, random);
        (events, kept) = (events + tried, kept + found);
    });
    println!("{kept} of {events} events were kept");
    assert!(kept > events / 20 && kept < events * 19 / 20, "{kept} of {events} events were kept");
}

#[test]
fn fields() {
    let (mut compared, mut there) = (0, 0);
    smoke(1500, |random| {
        let data = starts::packet(random);
        let (trace, packet, _) = packets::split(&data);
        let (count, found) = fields::hold(&Arc::new(trace), packet, random);
        (compared, there) = (compared + count, there + found);
    });
    println!("{there} of {compared} values were there");
    assert!(there > compared / 4 && there < compared, "{there} of {compared} values were there");
}

#[test]
fn metadata() {
    let starts = starts::metadata();
    starts.iter().for_each(|start| metadata::hold(start));
    smoke(2000, |random| {
        let start = &starts[random.below(starts.len())];
        metadata::hold(&random.damaged(start));
    });
}

#[test]
fn index() {
    let indexed = IndexedFolder::new();
    let seeds = indexed.seeds();
    seeds.iter().for_each(|seed| indexed.hold(seed));
    smoke(3000, |random| {
        let seed = &seeds[random.below(seeds.len())];
        indexed.hold(&random.damaged(seed));
    });
}

#[test]
fn programs_with_places_for_probes() {
    let Some(seed) = sites::seed() else {
        eprintln!("NO C COMPILER HERE: damaged programs are not read");
        return;
    };
    let whole = sites::hold(&seed);
    assert!(whole >= 9, "{whole} arguments");
    let mut arguments = 0;
    smoke(3000, |random| {
        // Bytes that move make most of the tables meaningless; bytes that change only some entries.
        let mut changed = seed.clone();
        for _ in 0..=random.below(40) {
            let at = random.below(changed.len());
            changed[at] = random.bytes(1)[0];
        }
        arguments += sites::hold(&changed);
        sites::hold(&random.damaged(&seed));
    });
    println!("damaged programs have {arguments} arguments");
    assert!(arguments > 1000, "{arguments}");
}

#[test]
fn bpf_objects() {
    let seeds = objects::seeds();
    let Some(seed) = seeds.last() else {
        eprintln!("NO CLANG FOR EBPF HERE: damaged objects are not read");
        return;
    };
    assert!(seeds.iter().all(|seed| objects::hold(seed, None) == 6), "two programs, each for three targets");
    let (mut tried, mut ended) = (0, 0);
    smoke(4000, |random| {
        tried += 1;
        let seed = if random.below(2) == 0 { &seeds[0] } else { seed };
        // Bytes that move make most of the tables meaningless; bytes that change only some entries.
        let mut changed = seed.clone();
        for _ in 0..=random.below(30) {
            let at = random.below(changed.len());
            changed[at] = random.bytes(1)[0];
        }
        ended += objects::hold(&changed, None);
        objects::hold(&random.damaged(seed), None);
    });
    println!("programs of {tried} damaged objects came to their end {ended} times");
    assert!(ended > tried, "{tried} objects, {ended} ends: the test has become weak");
}

#[test]
fn kernel_pages() {
    let seeds = kernel::seeds();
    let whole: u64 = seeds.iter().map(|seed| kernel::hold(seed)).sum();
    assert!(whole >= 16, "{whole} events");
    let mut events = 0;
    smoke(20_000, |random| {
        let seed = &seeds[random.below(seeds.len())];
        events += kernel::hold(&random.damaged(seed));
    });
    println!("{events} events were written");
    assert!(events > 0);
}

#[test]
fn imports() {
    let folder = ImportFolder::new();
    let seeds = ImportFolder::seeds();
    seeds.iter().for_each(|seed| folder.hold(seed));
    smoke(1500, |random| {
        let seed = &seeds[random.below(seeds.len())];
        folder.hold(&random.damaged(seed));
    });
}

#[test]
fn imported_threads() {
    let folder = ImportFolder::new();
    let seeds = ImportFolder::thread_seeds();
    seeds.iter().for_each(|seed| folder.hold_thread(seed));
    smoke(1000, |random| {
        let seed = &seeds[random.below(seeds.len())];
        folder.hold_thread(&random.damaged(seed));
    });
}

#[test]
fn imported_definitions() {
    let folder = ImportFolder::new();
    let seeds = ImportFolder::definition_seeds();
    seeds.iter().for_each(|seed| folder.hold_definitions(seed));
    smoke(1500, |random| {
        let seed = &seeds[random.below(seeds.len())];
        folder.hold_definitions(&random.damaged(seed));
    });
}

#[test]
fn filters() {
    let (mut tried, mut bound, mut kept) = (0, 0, 0);
    smoke(4000, |random| {
        let outcome = filters::hold(&filters::text(random), random);
        tried += 1;
        bound += outcome.bound;
        kept += outcome.kept;
    });
    println!("{tried} texts were bound {bound} times and kept {kept} events");
    assert!(bound > tried / 2 && kept > tried / 2, "{tried} texts were bound {bound} times and kept {kept} events");
}

#[test]
fn filters_that_say_the_same() {
    let (mut bound, mut kept) = (0, 0);
    smoke(4000, |random| {
        let outcome = filters::hold_alike(random).unwrap_or_default();
        bound += outcome.bound;
        kept += outcome.kept;
    });
    println!("{bound} were bound, {kept} events kept");
    assert!(bound > 200 && kept > bound / 8, "{bound} were bound, {kept} events kept");
}

/// Test threads have stacks of 2 MiB, as most threads that are started have.
#[test]
fn filters_of_any_size() {
    for count in [63, 64, 65, 127, 128, 255, 256, 257, 1000, 10_000, 70_000] {
        for text in filters::extremes(count) {
            filters::hold(&text, &mut RandomNumbers::new(count as u64));
        }
    }
}

#[test]
fn bytecode() {
    let (mut tried, mut accepted) = (0, 0);
    smoke(6000, |random| {
        tried += 1;
        accepted += usize::from(bytecode::hold(random));
    });
    println!("{accepted} of {tried} programs were accepted");
    assert!(accepted > tried / 5, "{accepted} of {tried} programs were accepted");
}

#[cfg(target_os = "linux")]
mod recorders {
    use kymo_promises::random::RandomNumbers;
    use kymo_promises::recorded::RecordingStage;
    use kymo_promises::{definitions, recording};

    use super::smoke;

    #[test]
    fn definitions() {
        let (stage, mut tried, mut named) = (RecordingStage::new(), 0, 0);
        smoke(1500, |random| {
            tried += 1;
            named += usize::from(definitions::hold(&definitions::text(random), &stage));
        });
        println!("{named} of {tried} definitions were named");
        assert!(named > tried / 4, "{named} of {tried} definitions were named");
    }

    #[test]
    fn recording() {
        let (stage, mut tried, mut refused, mut events, mut damaged) = (RecordingStage::new(), 0, 0, 0, 0);
        // A sub-buffer with the largest number that there is.
        recording::hold(&mut RandomNumbers::new(1_002_232), &stage);
        smoke(1500, |random| {
            let outcome = recording::hold(random, &stage);
            tried += 1;
            refused += usize::from(outcome.is_refused);
            events += outcome.events;
            damaged += usize::from(outcome.unreadable > 0);
        });
        println!("{tried} programs, {refused} refused, {damaged} with bytes that are no events, {events} events");
        assert!(events > 10 * tried && damaged > 0 && refused < tried as usize / 2, "too little was tried");
    }
}
