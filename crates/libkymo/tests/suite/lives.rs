//! Programs begin, make children, load plugins, start threads, end and are killed: every event is there or counted.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::programs::{self, Counts, Folder, Recording, Value};

#[test]
fn children_record_to_memory_of_their_own() {
    const EVENTS: u64 = 1000;
    let folder = Folder::new();
    let Some(program) = folder.build_with("cc", "forks.c", &["-std=gnu11", "-O2", "-DWITHOUT_HANDLERS"]) else {
        return;
    };
    let recordings = folder.run(&mut folder.command(&program));
    let mut of_kind: HashMap<u64, Vec<u64>> = HashMap::new();
    for recording in &recordings {
        assert_eq!(recording.lost(), 0);
        recording.check_times();
        let mut pids = HashSet::new();
        for found in recording.of_name("forks:live") {
            let [pid, kind, number] = [0, 1, 2].map(|value: usize| found.values[value].number());
            of_kind.entry(kind).or_default().push(number);
            if kind != 6 {
                pids.insert(pid);
            }
        }
        assert!(pids.len() <= 1 && pids.iter().all(|pid| *pid == u64::from(recording.pid)), "{pids:?}");
    }
    let once: Vec<u64> = (0..EVENTS).collect();
    for kind in 0..10 {
        let expected = if kind == 0 { once.repeat(2) } else { once.clone() };
        assert_eq!(of_kind.remove(&kind), Some(expected), "kind {kind}");
    }
    assert!(of_kind.is_empty());
}

/// Threads record while `exit` runs destructors, which unregister events: they still write their own event.
#[test]
fn threads_record_while_the_program_ends() {
    let folder = Folder::new();
    let Some(program) = folder.build("exits.c") else { return };
    for _ in 0..20 {
        let place = Folder::new();
        let recordings = place.run(&mut place.command(&program));
        for recording in &recordings {
            assert!(recording.count("test:spin") > 0);
            recording.check_times();
        }
    }
}

#[test]
fn plugins_come_and_go() {
    const TIMES: u64 = 1000;
    let folder = Folder::new();
    let Some(plugin) = folder.build_with("cc", "plugin.c", &["-std=gnu11", "-O2", "-fPIC", "-shared"]) else { return };
    let Some(program) = folder.build("plugins.c") else { return };
    let mut child = folder.command(&program).arg(&plugin).spawn().expect("it starts");
    let mut recordings: Vec<Recording> = Vec::new();
    let mut switched = 0_u64;
    while child.try_wait().expect("it can be asked").is_none() {
        folder.take(&mut recordings);
        for recording in &mut recordings {
            // What may have gone is switched all the same; what is there goes on.
            recording.switch("plugin:called", (switched % 2) as u8);
            recording.switch("plugin:unloaded", 1);
            switched += 1;
        }
    }
    assert!(child.wait().expect("it ends").success());
    folder.take(&mut recordings);
    let recording = &recordings[0];
    let definitions = |name: &str| recording.definitions.iter().filter(|text| text.contains(name)).count() as u64;
    assert_eq!((definitions("plugin:called\n"), definitions("host:went_on\n")), (TIMES, 1));
    let count = |name: &str| recording.count(name);
    assert_eq!(
        (count("plugin:loaded"), count("plugin:unloaded")),
        (TIMES, TIMES),
        "before and behind other constructors"
    );
    let called: Vec<u64> = recording.of_name("plugin:called").map(|found| found.values[0].number()).collect();
    assert!(called.is_sorted() && !called.is_empty() && called.len() as u64 <= TIMES, "{} calls", called.len());
    let on: Vec<u64> = recording.of_name("host:went_on").map(|found| found.values[0].number()).collect();
    assert_eq!((on.len() as u64, recording.lost()), (Counts::of(&folder).ended(1), 0));
    println!("switched {switched} times, {} of {TIMES} calls recorded", called.len());
}

/// Where the program itself has no events, the library comes with a plugin, and stays: threads that recorded end later.
#[test]
fn plugins_may_be_all_that_has_events() {
    let folder = Folder::new();
    let plugin = ["-std=gnu11", "-O2", "-fPIC", "-shared"];
    let Some(shared) = folder.build_with("cc", "plugin.c", &plugin) else { return };
    let shared = folder.rename(&shared, "shared.so");
    // A copy of the tracer that nobody else sees.
    let archive = programs::library().join("libkymo.a");
    let archive = archive.to_str().expect("it is text");
    let own = [&plugin[..], &["-DKYMO_STATIC", "-Wl,--exclude-libs,ALL", "-Wl,-z,nodelete", archive]].concat();
    let Some(with_own) = folder.build_with("cc", "plugin.c", &own) else { return };
    let with_own = folder.rename(&with_own, "own.so");
    let Some(program) = folder.build_with("cc", "host.c", &["-std=gnu11", "-O2", "-DKYMO_OFF", "-ldl"]) else { return };
    let recordings = folder.run(folder.command(&program).args([&shared, &with_own]));
    assert_eq!(recordings.len(), 2, "each copy of the tracer has memory of its own");
    assert_eq!(recordings[0].pid, recordings[1].pid);
    for recording in &recordings {
        assert_eq!((recording.count("plugin:called"), recording.lost()), (3, 0));
    }
}

/// A header with an event is included by a program and by parts of a static library.
#[test]
fn headers_with_events_are_included_by_several_files() {
    let folder = Folder::new();
    let flags = ["-std=gnu11", "-O2", "-c"];
    let Some(one) = folder.build_with("cc", "part.c", &[&flags[..], &["-DPART=part_one"]].concat()) else { return };
    let one = folder.rename(&one, "one.o");
    let two = folder.build_with("cc", "part.c", &[&flags[..], &["-DPART=part_two"]].concat()).expect("one was");
    let two = folder.rename(&two, "two.o");
    let archive = folder.path().join("libparts.a");
    let ar = std::process::Command::new("ar").arg("rcs").arg(&archive).args([one, two]).status();
    assert!(ar.expect("it starts").success());
    let link = format!("-L{}", folder.path().display());
    let flags =
        ["-std=gnu11", "-O2", "-Wl,--no-as-needed", &link, "-Wl,--whole-archive", "-lparts", "-Wl,--no-whole-archive"];
    let program = folder.build_with("cc", "parts.c", &flags).expect("one was");
    let recordings = folder.run(&mut folder.command(&program));
    let seen: Vec<_> = recordings[0].of_name("parts:seen").map(|found| found.values[0].clone()).collect();
    assert_eq!(seen, ["main", "part_one", "part_two"].map(|text| Value::Text(text.to_owned())));
    let definitions: Vec<&String> =
        recordings[0].definitions.iter().filter(|text| text.contains("parts:seen")).collect();
    assert!(
        definitions.len() == 3 && definitions.iter().all(|text| *text == definitions[0]),
        "the same text: one event"
    );
}

#[test]
fn filters_see_the_arguments() {
    for (compiler, language) in [("gcc", "c"), ("clang-14", "c")] {
        for how in ["-O0", "-O2"] {
            let folder = Folder::new();
            let flags = ["-std=gnu11", "-x", language, how];
            let Some(program) = folder.build_with(compiler, "filters.c", &flags) else { continue };
            let recordings = folder.run(&mut folder.command(&program));
            let kept: Vec<u64> = recordings[0].of_name("filters:seen").map(|found| found.values[0].number()).collect();
            assert_eq!((kept, recordings[0].lost()), (vec![1, 3, 5, 7, 9], 0));
        }
    }
}

#[test]
fn events_neither_allocate_nor_are_cancelled() {
    let folder = Folder::new();
    let Some(program) = folder.build("inside.c") else { return };
    // With return addresses, events look for their stack.
    let with_stacks = folder.command(&program).env("KYMO_CONTEXTS", kymo_lane::contexts::STACK.to_string()).status();
    assert!(with_stacks.expect("it starts").success());
    std::fs::remove_dir_all(folder.path().join("kymo")).expect("it is ours");
    let recordings = folder.run(&mut folder.command(&program));
    let recording = &recordings[0];
    assert_eq!((recording.count("inside:first"), recording.lost()), (2, 0));
    let mut names: Vec<String> = recording
        .of_name("inside:named")
        .map(|found| String::from_utf8_lossy(&found.thread.name).trim_end_matches('\0').to_owned())
        .collect();
    names.dedup();
    assert_eq!(names, ["inside", "worker"], "from the second sub-buffer on");
}

#[test]
fn events_call_little_of_the_system() {
    let folder = Folder::new();
    let Some(program) = folder.build("sandbox.c") else { return };
    let recordings = folder.run(&mut folder.command(&program));
    assert_eq!((recordings[0].count("sandbox:live"), recordings[0].lost()), (10_000, 0));
}

/// A child that returns from a handler into an event of its parent's.
#[test]
fn handlers_fork_and_return_into_events() {
    let folder = Folder::new();
    let Some(program) = folder.build("returns.c") else { return };
    let output = folder.command(&program).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}");
    let mut recordings = Vec::new();
    folder.take(&mut recordings);
    let mut of_children = 0;
    for recording in &recordings {
        let own = |found: &&programs::Found| found.values[0].number() == 1;
        let numbers: Vec<u64> = recording.found.iter().filter(own).map(|found| found.values[1].number()).collect();
        if !numbers.is_empty() {
            let mut numbers = numbers;
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1, 2, 3], "{:?}", recording.path);
            assert!(recording.found.iter().all(|found| found.values[0].number() == 1 || found.values[1].number() > 0));
            of_children += 1;
        }
    }
    assert_eq!(of_children, 1500);
}

/// What a program that is set-group-id knows is not its user's business, to whom its memory would belong.
#[test]
fn programs_of_another_group_are_not_traced() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let folder = Folder::new();
    let archive = programs::library().join("libkymo.a");
    let archive = archive.to_str().expect("it is text");
    let Some(built) = folder.build_with("cc", "memory.c", &["-std=gnu11", "-O2", "-DKYMO_STATIC", archive]) else {
        return;
    };
    // Where programs may be given privileges.
    let program = std::env::temp_dir().join(format!("kymo-privileged-{}", std::process::id()));
    std::fs::copy(built, &program).expect("there is room");
    let run = |mode: u32| {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let output = std::process::Command::new(&program).uid(NOBODY).gid(NOBODY).output();
        String::from_utf8(output.expect("it starts").stdout).expect("it is text")
    };
    if chown(&program, Some(0), Some(0)).is_err() {
        eprintln!("NOT TESTED: only root can start programs as others");
    } else if run(0o755) != "plain, memory\n" || run(0o2755).starts_with("plain") {
        eprintln!("NOT TESTED: there are no privileges to be had in {}", program.display());
    } else {
        assert_eq!(run(0o2755), "privileged, no memory\n");
    }
    std::fs::remove_file(&program).expect("it is ours");
}

/// Runs a program with something done before it begins; what it says.
fn started(folder: &Folder, program: &std::path::Path, before: impl Fn() + Send + Sync + 'static) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = folder.command(program);
    #[allow(unsafe_code, reason = "something is done between fork and exec")]
    // Safety: what is done there are system calls alone.
    unsafe {
        command.pre_exec(move || {
            before();
            Ok(())
        })
    };
    command
}

#[test]
fn files_may_be_small() {
    let folder = Folder::new();
    let Some(program) = folder.build("memory.c") else { return };
    let run = |bytes: u64| {
        #[allow(unsafe_code, reason = "a system call")]
        let limit = move || {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            // Safety: it is there.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        };
        let output = started(&folder, &program, limit).output().expect("it starts");
        assert!(output.status.success(), "{bytes} bytes: {}", output.status);
        String::from_utf8(output.stdout).expect("it is text")
    };
    assert_eq!(run(1 << 30), "plain, memory\n");
    for bytes in [100 << 20, 7 << 20] {
        assert_eq!(run(bytes), "plain, memory\n", "{bytes} bytes");
    }
    for bytes in [5 << 20, 100 << 10, 0] {
        assert_eq!(run(bytes), "plain, no memory\n", "{bytes} bytes");
    }
    let mut recordings = Vec::new();
    folder.take(&mut recordings);
    let found: Vec<_> = recordings.iter().map(|recording| (recording.count("memory:live"), recording.lost())).collect();
    assert_eq!(found, [(1, 0); 3]);
}

#[test]
fn standard_files_may_be_closed() {
    let folder = Folder::new();
    let Some(program) = folder.build("memory.c") else { return };
    #[allow(unsafe_code, reason = "a system call")]
    // Safety: nobody uses them before the program begins.
    let close = || (0..3).for_each(|number| _ = unsafe { libc::close(number) });
    let recordings = folder.run(started(&folder, &program, close).arg("closed"));
    assert_eq!((recordings[0].count("memory:live"), recordings[0].lost()), (1, 0));
}

#[test]
fn what_happens_before_main_and_behind_it_is_recorded() {
    const THREADS: u64 = 4000;
    for compiler in ["g++", "clang++-14"] {
        let folder = Folder::new();
        let Some(program) = folder.build_with(compiler, "lives.cpp", &["-std=c++17", "-O2"]) else { continue };
        let recordings = folder.run(&mut folder.command(&program));
        let recording = &recordings[0];
        let texts = recording.of_name("lives:happened").map(|found| match &found.values[0] {
            Value::Text(text) => text.as_str(),
            other => panic!("{other:?}"),
        });
        let expected = [
            "constructor of C",
            "constructor of C++",
            "main",
            "end of main",
            "atexit",
            "destructor of C++",
            "destructor of C",
        ];
        let texts: Vec<&str> = texts.collect();
        // Where there is no room any more, these are lost too, in the end.
        assert!(texts == expected || recording.lost() > 0 && expected.starts_with(&texts), "{texts:?}");
        let mut of_thread: HashMap<u64, Vec<u64>> = HashMap::new();
        for found in recording.of_name("lives:counted") {
            of_thread.entry(found.values[0].number()).or_default().push(found.values[1].number());
        }
        // Each of them leaves sub-buffers behind for whoever drains, who may be late.
        let found: usize = of_thread.values().map(Vec::len).sum();
        println!("{found} events of {} threads, {} lost", of_thread.len(), recording.lost());
        assert_eq!(found as u64 + recording.lost(), THREADS * 6);
        assert!(of_thread.len() as u64 > THREADS / 10);
        for (thread, mut numbers) in of_thread {
            // A thread that goes on after its memory was given back takes another lane, which is looked at in another order.
            numbers.sort_unstable();
            assert!(
                numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|number| *number < 6),
                "{thread}: {numbers:?}"
            );
            assert!(numbers == [0, 1, 2, 3, 4, 5] || recording.lost() > 0, "{thread}: {numbers:?}");
        }
        let lanes: HashSet<u16> = recording.found.iter().map(|found| found.lane).collect();
        assert!(lanes.len() <= 64, "lanes are used again: {}", lanes.len());
        recording.check_times();
    }
}

#[test]
fn of_what_was_killed_one_event_of_each_thread_is_unknown_at_most() {
    const THREADS: usize = 4;
    const TIMES: u64 = 40;
    let folder = Folder::new();
    let Some(program) = folder.build("kill.c") else { return };
    let (mut unknown, mut all) = (0, 0);
    for time in 0..TIMES {
        let _ = std::fs::remove_dir_all(folder.path().join("kymo"));
        let _ = std::fs::remove_file(folder.path().join("counts"));
        let mut child = folder.command(&program).spawn().expect("it starts");
        let begin = Instant::now();
        let mut recordings = Vec::new();
        // Some have hardly begun, some run long; some are drained meanwhile.
        let until = Duration::from_micros(500 + time * time * 60);
        while begin.elapsed() < until {
            if time % 2 == 0 {
                folder.take(&mut recordings);
            }
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        folder.take(&mut recordings);
        let Some(recording) = recordings.first() else { continue };
        recording.check_times();
        let mut numbers: [Vec<u64>; THREADS] = Default::default();
        for found in &recording.found {
            let thread = found.values[0].number() as usize;
            if let Some(Value::Elements(bytes)) = found.values.get(2) {
                assert_eq!(bytes.len() as u64, found.values[1].number() * 7 % 8000);
            }
            numbers[thread].push(found.values[1].number());
        }
        assert!(numbers.iter().all(|numbers| numbers.is_sorted_by(|a, b| a < b)));
        if numbers.iter().all(Vec::is_empty) && recording.lost() == 0 {
            continue;
        }
        let counts = Counts::of(&folder);
        let sum = |count: fn(&Counts, usize) -> u64| (0..THREADS).map(|thread| count(&counts, thread)).sum::<u64>();
        let (begun, ended) = (sum(Counts::begun), sum(Counts::ended));
        let known = recording.found.len() as u64 + recording.lost();
        assert!(begun <= ended + THREADS as u64);
        assert!(ended <= known && known <= begun, "{ended} ended, {begun} begun, {known} known");
        unknown += begun - known;
        all += begun;
    }
    println!("{unknown} of {all} events unknown, in {TIMES} programs of {THREADS} threads");
    assert!(all > 100_000, "only {all} events");
}
