//! Programs that sanitizers look at: they find nothing, and everything is recorded as without them.

use std::path::PathBuf;

use crate::programs::{self, Folder, Recording};

/// A program that a sanitizer watches; `None`: the compiler has no such sanitizer, which was said.
fn build(folder: &Folder, compiler: &str, source: &str, sanitizer: &str) -> Option<PathBuf> {
    let standard = if compiler.contains("++") { "-std=c++17" } else { "-std=gnu11" };
    let empty = folder.path().join(if compiler.contains("++") { "empty.cpp" } else { "empty.c" });
    std::fs::write(&empty, "int main(void) { return 0; }\n").expect("it is ours");
    if !programs::has(compiler) || !folder.compile(compiler, &empty, &[sanitizer], "empty").1.status.success() {
        eprintln!("NOT TESTED: {compiler} has no {sanitizer}");
        return None;
    }
    folder.build_with(compiler, source, &[standard, "-O1", "-g", sanitizer, "-fno-sanitize-recover=all"])
}

fn run(compiler: &str, source: &str, sanitizer: &str, arguments: &[&str], check: impl Fn(&Recording)) {
    let folder = Folder::new();
    let Some(program) = build(&folder, compiler, source, sanitizer) else { return };
    let recordings = folder.run(folder.command(&program).args(arguments));
    assert_eq!(recordings.len(), 1);
    check(&recordings[0]);
}

const ADDRESSES: &str = "-fsanitize=address,undefined";
const MEMORY: &str = "-fsanitize=memory";
const THREADS: &str = "-fsanitize=thread";

#[test]
fn addresses_are_right() {
    for (compiler, source) in
        [("gcc", "fields.c"), ("clang-14", "fields.c"), ("gcc", "marks.c"), ("clang-14", "marks.c")]
    {
        run(compiler, source, ADDRESSES, &[], |recording| assert!(recording.found.len() > 10 && recording.lost() == 0));
    }
}

/// libkymo has no sanitizer; the memory that it writes still counts as written.
#[test]
fn memory_was_written() {
    for source in ["fields.c", "marks.c"] {
        run("clang-14", source, MEMORY, &[], |recording| assert!(recording.found.len() > 10 && recording.lost() == 0));
    }
}

#[test]
fn threads_do_not_race() {
    for compiler in ["g++", "clang++-14"] {
        run(compiler, "lives.cpp", THREADS, &["400"], |recording| {
            assert_eq!(recording.count("lives:counted") + recording.lost(), 400 * 6);
        });
    }
    // Memory goes from thread to thread.
    for compiler in ["gcc", "clang-14"] {
        run(compiler, "threads.c", THREADS, &[], |recording| {
            assert_eq!(recording.count("threads:shared") + recording.lost(), 400_000);
        });
    }
}

#[test]
fn handlers_are_clean() {
    for compiler in ["gcc", "clang-14"] {
        run(compiler, "storm.c", ADDRESSES, &["stay", "both", "500"], |recording| {
            assert!(recording.count("storm:handled") > 0);
        });
        run(compiler, "storm.c", ADDRESSES, &["jump", "stack", "500"], |recording| {
            assert!(recording.count("storm:handled") > 0);
        });
    }
}
