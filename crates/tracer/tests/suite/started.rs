//! Programs that a recorder starts are on from the begin, and known by its session.

use std::sync::atomic::{AtomicU32, Ordering};

use kymo_lane::CONTEXTS_AT;
use kymo_tracer::{Event, control_file};

use crate::alone;

static EVENT: Event = Event::new(b"event test:started\n");

/// What this very program says of itself when it is started for a session, of which there are these marks in a folder.
fn started(session: &str, marks: Option<&[&str]>) -> (String, bool, u8) {
    // Tests of one process run side by side: each program has a folder of its own.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(format!("kymo-started-{process}-{number}"));
    let marked = folder.join("marked");
    std::fs::create_dir_all(&marked).expect("temporary files may be written");
    let marks_of = |mark: &&str| std::fs::write(marked.join(mark), []).expect("it may be written");
    marks.into_iter().flatten().for_each(marks_of);
    let mut command = alone::this();
    command.args(["--exact", "started::a_program_that_is_started", "--nocapture"]);
    let output = command
        .env("KYMO_SESSION", session)
        .env("KYMO_CONTEXTS", "5")
        .env("KYMO_SESSIONS", if marks.is_some() { marked } else { folder.join("not visible") })
        .env("XDG_RUNTIME_DIR", &folder)
        .output()
        .expect("it starts");
    let _ = std::fs::remove_dir_all(&folder);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.split_once("memory "));
    let (_, line) = line.unwrap_or_else(|| panic!("it says nothing of its memory: {text}{errors}"));
    let words: Vec<&str> = line.split(' ').collect();
    (words[0].to_owned(), words[1] == "true", words[2].parse().expect("a number"))
}

#[test]
fn a_program_that_is_started() {
    if std::env::var_os("KYMO_SESSION").is_some() {
        assert!(EVENT.register());
        let path = control_file().expect("it has begun").to_str().expect("it is text");
        let name = path.rsplit('/').next().expect("it has a name");
        let memory = std::fs::read(path).expect("it is there");
        println!("memory {} {} {}", &name[16..], EVENT.is_on(), memory[CONTEXTS_AT as usize]);
    }
}

#[test]
fn sessions_are_in_names_and_switch_everything_on() {
    assert_eq!(started("demo-1.x_y", None), ("-demo-1.x_y.ctl".to_owned(), true, 5));
    // What is no plain name, or a long one, is none.
    for session in ["", "../x", "a b", &"a".repeat(65)] {
        assert_eq!(started(session, None), (".ctl".to_owned(), false, 0), "{session:?}");
    }
}

#[test]
fn sessions_that_are_over_switch_nothing_on() {
    assert_eq!(started("demo", Some(&["demo.started"])), ("-demo.ctl".to_owned(), true, 5));
    assert_eq!(started("demo", Some(&["other.started"])), (".ctl".to_owned(), false, 0), "its mark is gone");
}
