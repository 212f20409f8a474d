//! Policies that are about the same programs and threads.

use kymo_recorder::select::{ProgramCandidate, RecordDecision};

use super::file::{Policy, PolicyFile};
use super::{config, read};

/// Policies, and whose events each thread's are.
const POLICIES: &str = r#"
    [[policy]]
    name = "rest"

    [[policy]]
    name = "init"
    label_prefix = "init -> "

    [[policy]]
    name = "runtime"
    label_prefix = "init -> runtime -> "

    [[policy]]
    name = "routers"
    label_prefix = "init -> "
    label_suffix = "router"

    [[policy]]
    name = "ping"
    label = "init -> ping"

    [[policy]]
    name = "ping-ep"
    label = "init -> ping"
    thread = "ep"

    [[policy]]
    name = "ping-ep-too"
    label = "init -> ping"
    thread = "ep"

    [[policy]]
    name = "eps"
    thread = "ep*"

    [[policy]]
    name = "server"
    process = "server"

    [[policy]]
    name = "servers"
    process = "s*"

    [[policy]]
    name = "number"
    process = "77"

    [[policy]]
    name = "quiet"
    label_glob = "*secret*"
    record = false
"#;

/// The policies that record a thread.
fn winners(file: &PolicyFile, label: &str, name: &str, pid: u32, thread: &str) -> Vec<String> {
    let program = ProgramCandidate { pid: Some(pid), own_pid: pid, name, label, ..ProgramCandidate::default() };
    let is_true = |filter: &str| {
        // Conditions on threads, as they are made: `NAME == "PATTERN"` and `!(...)`, with `&&`.
        filter.split(" && ").all(|part| {
            let wanted = part.split('"').nth(1).expect("each compares with a text");
            kymo_schema::glob::matches(wanted, thread) != part.starts_with('!')
        })
    };
    let takes = |policy: &Policy| match file.selection(policy).chosen(&program, "a:b", 6) {
        RecordDecision::No => false,
        RecordDecision::Yes => true,
        RecordDecision::When(filters) => filters.iter().any(|filter| is_true(filter)),
    };
    file.recorded().filter(takes).map(|policy| policy.name.clone()).collect()
}

#[test]
fn the_most_specific_policy_wins() {
    let file = read::policies(POLICIES).expect("they are right");
    for (label, name, pid, thread, winner) in [
        ("other", "other", 1, "main", "rest"),
        ("other", "other", 1, "ep", "eps"),
        ("init -> timer", "timer", 1, "main", "init"),
        ("init -> timer", "timer", 1, "ep", "init"),
        ("init -> runtime -> fs", "fs", 1, "main", "runtime"),
        ("init -> runtime -> nic_router", "nic_router", 1, "ep", "runtime"),
        ("init -> nic_router", "nic_router", 1, "ep", "routers"),
        ("init -> ping", "ping", 1, "main", "ping"),
        ("init -> ping", "ping", 1, "ep", "ping-ep"),
        ("init -> ping -> ep", "ping", 1, "ep", "init"),
        ("server", "server", 1, "ep", "server"),
        ("sshd", "sshd", 1, "ep", "servers"),
        ("init -> ping", "ping", 77, "ep", "number"),
        ("a secret of all", "server", 1, "ep", ""),
    ] {
        let winners = winners(&file, label, name, pid, thread);
        assert_eq!(winners.join(" "), winner, "{label}, {name}, {thread}");
    }
}

/// Files that lack a part, or have one twice, are read or told, at places inside of them.
#[test]
fn damaged_files_are_told() {
    let page = include_str!("../../../../../docs/policies.md");
    let toml = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is an example");
    let xml = "<config enable=\"yes\" default_buffer=\"64K\">\n <vfs> <fs/> </vfs>\n <policy label=\"init -> p\u{ef}ng\" policy=\"ctf0\"> \
               <ctf/> <!-- a --> </policy>\n <default-policy policy=\"null\"/>\n</config>\n";
    let check = |text: &str| {
        let problems = if config::is_config(text) { config::policies(text).err() } else { read::policies(text).err() };
        for problem in problems.into_iter().flatten() {
            let line = text.lines().nth(problem.line - 1).unwrap_or_default();
            assert!(problem.column <= line.chars().count() + 1, "{problem:?}\n{text}");
        }
    };
    for text in [toml, xml] {
        for (at, letter) in text.char_indices() {
            let end = at + letter.len_utf8();
            check(&text[..at]);
            check(&format!("{}{}", &text[..at], &text[end..]));
            check(&format!("{}{}", &text[..end], &text[at..]));
        }
    }
}
