//! Acts that are done apart, in ranges, have the same results as one after the other.

use std::collections::BTreeSet;

use super::super::files::Files;
use super::super::log::{Log, ReadyActs, Renumbered, SettledActs};
use super::super::ops::Category;
use super::super::sums::IoSums;
use super::*;
use crate::Comm;
use crate::calls::{Bases, CallId, ThreadLife};
use crate::testing::Random;

const LAST_TID: usize = 6;

fn key(tid: usize) -> ThreadKey {
    ThreadKey { host: 0, tid: tid as i32 }
}

fn random_target(random: &mut Random, fd: i32) -> FileTarget {
    match random.below(5) {
        0 => FileTarget::None,
        1 | 2 => FileTarget::Fd(fd),
        _ => FileTarget::Looked { is_other: random.below(3) == 0 },
    }
}

/// An act that may follow any other.
fn random_act(random: &mut Random, place: EventPosition, key_of: ThreadKey) -> FileAct {
    let (fd, other_fd) = (random.below(4) as i32, random.below(4) as i32);
    let pid = |random: &mut Random| Some(1 + random.below(3) as i32).filter(|_| random.below(8) > 0);
    let (closes_on_exec, path) =
        (random.below(2) == 0, format!("/{}", random.below(5)).into_bytes().into_boxed_slice());
    match random.below(26) {
        0..4 => {
            let category = if random.below(2) == 0 { Category::Read } else { Category::Write };
            let (is_error, is_second) = (random.below(4) == 0, random.below(4) == 0);
            let used = FileUse { bytes: random.below(100) as u64, category, is_error, is_second };
            FileAct::Use(random_target(random, fd), used)
        }
        4 => {
            let path = Some(path).filter(|_| random.below(2) == 0);
            let (ns, call) = (random.below(1000) as u64, CallId::NONE);
            FileAct::Slow(
                random_target(random, fd),
                Box::new(SlowOperation { ns, begin: place, end: place, call, ret: None, path }),
            )
        }
        5..9 => FileAct::Look(Some(fd), Some(other_fd).filter(|_| random.below(3) == 0)),
        9..13 => {
            let (is_error, counts) = (random.below(4) == 0, random.below(4) > 0);
            FileAct::Open { path, fd: Some(fd).filter(|_| !is_error), is_error, closes_on_exec, counts }
        }
        13 => FileAct::Make { fd, is_socket: random.below(2) == 0, is_net: random.below(2) == 0, closes_on_exec },
        14 => FileAct::Derive { from: other_fd, fd, is_socket: random.below(3) == 0, closes_on_exec },
        15 | 16 => FileAct::Close(fd),
        17 => FileAct::Exec,
        18 => {
            let parent = Some(key(1 + random.below(LAST_TID))).filter(|_| random.below(4) > 0);
            FileAct::Fork(pid(random), pid(random), parent)
        }
        19 => FileAct::Known(1 + random.below(3) as i32),
        20 => FileAct::Said(1 + random.below(LAST_TID) as i32, 1 + random.below(3) as i32),
        21 => FileAct::Died,
        22 => FileAct::FileState { of: StatedOwner::Process(1 + random.below(3) as i32), fd, path },
        23 => FileAct::FileTable { table: random.below(3) as i64, pid: 1 + random.below(3) as i32 },
        24 => FileAct::FileState { of: StatedOwner::Table(random.below(4) as i64), fd, path },
        _ => {
            let who = ThreadLife { key: key_of, number: random.below(9) as u32, comm: Comm::default(), pid: None };
            let since = Some(EventPosition { time: place.time - random.below(60) as i64, ..place })
                .filter(|_| random.below(8) > 0);
            let sums = IoSums { reads: 1, read: place.time.cast_unsigned(), ..IoSums::default() };
            FileAct::Over(Box::new(EndedLife { who, since, sums, is_wanted: random.below(8) > 0 }))
        }
    }
}

/// Everything that can be seen of files.
fn seen(files: &Files, over: &EndedIoLives) -> BTreeSet<String> {
    let name = |file: FileKey| match file {
        FileKey::Named(name) => files.rows.names.text(name).map_or_else(String::new, std::borrow::Cow::into_owned),
        other => format!("{other:?}"),
    };
    let rows = files.rows.all().map(|(file, sums)| format!("{} {sums:?}", name(file)));
    let threads = over.threads.sorted().into_iter().map(|row| format!("{row:?}"));
    let slow = over
        .slow
        .sorted()
        .into_iter()
        .map(|(_, slow)| format!("{:?} {:?} {}", slow.who, slow.slow, slow.file.map_or_else(String::new, name)));
    let processes = over.processes.iter().map(|process| format!("{process:?}"));
    rows.chain(threads).chain(slow).chain(processes).collect()
}

/// Random acts of threads that are of random processes; then every fd is used.
fn random_log(random: &mut Random) -> Vec<Logged> {
    let mut log = Vec::new();
    // A looked-up file is used when the call ends, by one or two acts at one place.
    let mut is_in_call = [false; LAST_TID + 1];
    let mut born = [None; LAST_TID + 1];
    for time in 0..30 + random.below(300) as i64 {
        let (place, tid) = (EventPosition { time, lane: 0, nth: 0 }, 1 + random.below(LAST_TID));
        let mut acts = vec![random_act(random, place, key(tid))];
        match &mut acts[0] {
            FileAct::Fork(..) => born[tid] = Some(place),
            FileAct::Over(whole) if random.below(2) == 0 => whole.since = born[tid],
            FileAct::Look(..) => is_in_call[tid] = true,
            FileAct::Use(FileTarget::Looked { .. }, used) if is_in_call[tid] => {
                is_in_call[tid] = false;
                let used = *used;
                acts.push(FileAct::Use(FileTarget::Looked { is_other: random.below(2) == 0 }, used));
            }
            FileAct::Slow(FileTarget::Looked { .. }, _) if is_in_call[tid] => is_in_call[tid] = false,
            FileAct::Use(FileTarget::Looked { .. }, _) | FileAct::Slow(FileTarget::Looked { .. }, _) => continue,
            _ => {}
        }
        log.extend(acts.into_iter().map(|act| Logged { place, key: key(tid), act }));
    }
    let used = FileUse { bytes: 1000, category: Category::Read, is_error: false, is_second: false };
    for (fd, tid) in (0..4).flat_map(|fd| (1..=LAST_TID).map(move |tid| (fd, tid))) {
        let place = EventPosition { time: 1000 + 10 * i64::from(fd) + tid as i64, lane: 0, nth: 0 };
        let who = ThreadLife { key: key(tid), number: 100 + fd as u32, comm: Comm::default(), pid: None };
        let whole = EndedLife { who, since: None, sums: IoSums { read: 1, ..IoSums::default() }, is_wanted: true };
        let acts = [
            FileAct::Look(Some(fd), None),
            FileAct::Use(FileTarget::Looked { is_other: false }, used),
            FileAct::Over(Box::new(whole)),
        ];
        log.extend(acts.map(|act| Logged { place, key: key(tid), act }));
    }
    log
}

#[test]
fn what_is_done_apart_is_what_is_done_in_order() {
    let (mut taken, mut memory) = (0, ApartBuffers::default());
    for seed in 0..20000 {
        let mut random = Random(seed);
        let tids = if seed % 5 == 0 { vec![1, 2] } else { Vec::new() };
        let wishes = Wishes { tids, top: [None, Some(3)][seed as usize % 2], ..Wishes::default() };
        let limits = OperationLimits::new(&wishes);
        let log = random_log(&mut random);
        let (mut files, mut over) = (Files::new(FileRows::default()), EndedIoLives::new(&wishes, 5));
        log.iter().for_each(|logged| files.replay(&limits, &mut over, logged.clone()));

        let (mut cut_files, mut cut_over, mut pids) =
            (Files::new(FileRows::default()), EndedIoLives::new(&wishes, 5), Pids::default());
        let mut rest = &log[..];
        while !rest.is_empty() {
            let range;
            let cut = rest[random.below(rest.len().min(120))].place;
            (range, rest) = rest.split_at(rest.partition_point(|logged| logged.place <= cut));
            let mut some = Log::default();
            range.iter().for_each(|logged| some.push(logged.place, logged.key, logged.act.clone()));
            let mut waiting = some.take(None, (SettledActs::default(), Renumbered::default()), &mut pids);
            let mut apart =
                Apart::new(&limits, &wishes, std::mem::take(&mut waiting.pids), memory, ThreadKnowledge::Whole);
            waiting.hand_over(|logged, from| apart.act(logged, from));
            let mut done = apart.end();
            taken += done.over.threads.count();
            cut_files.follow(&limits, &mut cut_over, &mut done);
            memory = done.memory();
        }
        let (found, expected) = (seen(&cut_files, &cut_over), seen(&files, &over));
        let more: Vec<_> = found.difference(&expected).collect();
        let missing: Vec<_> = expected.difference(&found).collect();
        let log: Vec<String> = log.iter().map(|logged| format!("{logged:?}")).collect();
        assert!(more.is_empty() && missing.is_empty(), "seed {seed}: {more:#?} instead of {missing:#?} of {log:#?}");
    }
    assert!(taken > 1000, "only {taken} lives are done with apart");
}

/// Parts of random acts are done alone, without acts of some threads before a place, and now and
/// then with an act that contradicts the trace: either it is found, or the results are those of
/// acts in order.
#[test]
fn what_is_done_alone_is_done_again() {
    let (mut odd, mut same) = (0, 0);
    for seed in 0..6000 {
        let mut random = Random(seed);
        let wishes = Wishes { top: [None, Some(3)][seed as usize % 2], ..Wishes::default() };
        let limits = OperationLimits::new(&wishes);
        let log = random_log(&mut random);
        let (mut files, mut over) = (Files::new(FileRows::default()), EndedIoLives::new(&wishes, 5));
        log.iter().for_each(|logged| files.replay(&limits, &mut over, logged.clone()));

        let (mut cut_files, mut cut_over, mut pids) =
            (Files::new(FileRows::default()), EndedIoLives::new(&wishes, 5), Pids::default());
        let (mut rest, mut is_odd) = (&log[..], false);
        while !rest.is_empty() {
            let range;
            let cut = rest[random.below(rest.len().min(120))].place;
            (range, rest) = rest.split_at(rest.partition_point(|logged| logged.place <= cut));
            let since = range[random.below(range.len().min(20))].place;
            let heads: Vec<bool> = (0..=LAST_TID).map(|_| random.below(3) == 0).collect();
            let is_wild = random.below(8) == 0;
            let (mut first, mut part) = (Log::default(), Log::default());
            let mut hidden = None;
            for Logged { place, key, act } in range.iter().cloned() {
                // Lives that end, and threads that are made, are seen by every part.
                let is_seen = matches!(
                    act,
                    FileAct::Died
                        | FileAct::Fork(..)
                        | FileAct::Known(_)
                        | FileAct::FileState { .. }
                        | FileAct::FileTable { .. }
                );
                let is_head = place < since && heads[key.tid as usize] && !is_seen;
                // Acts at one place come from one place.
                let is_next = hidden.is_none_or(|(at, _)| at != place);
                let is_hidden =
                    if is_next { is_wild && random.below(30) == 0 } else { hidden.is_some_and(|(_, is)| is) };
                hidden = Some((place, is_hidden));
                match is_head || is_hidden {
                    true => first.push(place, key, act),
                    false => part.put_aside(place, key, act),
                }
            }
            let (rows, more) = alone(&limits, &wishes, since, &mut part);
            cut_over.add(more, &Bases::default());
            let names = Some(cut_files.rows.add(&rows));
            let numbers = Renumbered { bases: Bases::default(), names };
            let mut waiting = first.take(None, (part.take_settled(), numbers), &mut pids);
            let pids = std::mem::take(&mut waiting.pids);
            let mut apart = Apart::new(&limits, &wishes, pids, ApartBuffers::default(), ThreadKnowledge::Again(since));
            waiting.hand_over(|logged, from| apart.act(logged, from));
            let mut done = apart.end();
            is_odd |= done.is_odd;
            cut_files.follow(&limits, &mut cut_over, &mut done);
        }
        if is_odd {
            odd += 1;
            continue;
        }
        same += 1;
        let (found, expected) = (seen(&cut_files, &cut_over), seen(&files, &over));
        let more: Vec<_> = found.difference(&expected).collect();
        let missing: Vec<_> = expected.difference(&found).collect();
        let log: Vec<String> = log.iter().map(|logged| format!("{logged:?}")).collect();
        assert!(more.is_empty() && missing.is_empty(), "seed {seed}: {more:#?} instead of {missing:#?} of {log:#?}");
    }
    assert!(odd > 500 && same > 500, "{odd} contradict themselves, {same} do not");
}

/// Does the settled acts of a part alone; returns the known files, and lives that are over.
fn alone(limits: &OperationLimits, wishes: &Wishes, since: EventPosition, part: &mut Log) -> (FileRows, EndedIoLives) {
    let mut waiting = ReadyActs::alone(part.take_settled());
    let mut apart = Apart::new(limits, wishes, Pids::default(), ApartBuffers::default(), ThreadKnowledge::Alone(since));
    let mut last = EventPosition { time: i64::MIN, lane: 0, nth: 0 };
    waiting.hand_over(|logged, from| {
        last = logged.place;
        apart.act(logged, from);
    });
    let mut done = apart.end();
    let (rows, over) = (std::mem::take(&mut done.rows), done.take_over());
    part.done((since, last), done.acts(since), Vec::new());
    (rows, over)
}
