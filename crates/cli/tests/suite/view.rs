//! `kymo view` as it is run: it prints its address, answers who knows the token, and ends when it is told to.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn start(arguments: &[&str]) -> Child {
    start_in(arguments, &std::env::temp_dir().join("kymo-cli-tests"))
}

fn start_in(arguments: &[&str], cache: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env("XDG_CACHE_HOME", cache);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What `kymo view` says of where it is, and what it answers there.
fn asked(viewer: &mut Child) -> (String, String) {
    let (address, token) = address(viewer);
    let answer = ask(&address, &token, "GET /api/v1/info");
    (address, answer)
}

/// Where it is, and what has to be known to ask there.
fn address(viewer: &mut Child) -> (String, String) {
    let mut line = String::new();
    BufReader::new(viewer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let (address, token) = line.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    (address.to_owned(), token.to_owned())
}

fn ask(address: &str, token: &str, what: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("{what} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(target_os = "linux")]
fn interrupt(viewer: &Child) {
    let process = rustix::process::Pid::from_child(viewer);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
}

#[cfg(not(target_os = "linux"))]
fn interrupt(viewer: &Child) {
    Command::new("kill").args(["-INT", &viewer.id().to_string()]).status().unwrap();
}

#[test]
fn it_serves_until_it_is_interrupted() {
    for arguments in
        [["view", "--no-browser", "examples/traces/demo"], ["examples/traces/demo", "--no-browser", "--view"]]
    {
        let mut viewer = start(&arguments);
        let (address, answer) = asked(&mut viewer);
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"name\":\"demo\""), "{answer}");
        interrupt(&viewer);
        let output = viewer.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said, "Open the address above in a browser; Ctrl-C ends it.\n");
    }
}

/// Without a trace the page asks which; what was named another time is among that, and the sample is a trace.
#[test]
fn without_a_trace_there_is_a_choice() {
    let cache = tempfile::tempdir().unwrap();
    let mut named = start_in(&["view", "--no-browser", "examples/traces/demo"], cache.path());
    asked(&mut named);
    interrupt(&named);
    assert!(named.wait().unwrap().success());

    let mut viewer = start_in(&["view", "--no-browser"], cache.path());
    let (address, token) = address(&mut viewer);
    assert!(ask(&address, &token, "GET /api/v1/info").starts_with("HTTP/1.1 409 "));
    let told = ask(&address, &token, "GET /api/v1/start");
    assert!(
        told.contains("\"state\":\"choosing\"") && told.contains("examples/traces/demo\"],\"there\":true"),
        "{told}"
    );
    assert_eq!(told.contains("kymo view --record -- ./app"), cfg!(target_os = "linux"), "{told}");
    let opened = ask(&address, &token, "POST /api/v1/start/sample");
    assert!(opened.starts_with("HTTP/1.1 200 OK") && opened.contains("\"state\":\"open\""), "{opened}");
    assert!(ask(&address, &token, "GET /api/v1/info").contains("server:request_begin"));
    interrupt(&viewer);
    let output = viewer.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let offset = start(&["view", "--no-browser", "--trace-offset", "a=1ms"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&offset.stderr);
    assert!(offset.status.code() == Some(2) && said.contains("--trace-offset is of a trace that is named"), "{said}");
}

/// The same URL leads to the traces after a restart; a token that others can read is not used.
#[cfg(unix)]
#[test]
fn a_token_in_a_file_stays_for_later_runs() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let arguments = ["view", "--no-browser", "--token-file", file.to_str().unwrap(), "examples/traces/demo"];
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut viewer = start(&arguments);
        let (address, token) = address(&mut viewer);
        assert!(ask(&address, &token, "GET /api/v1/info").starts_with("HTTP/1.1 200 OK"));
        interrupt(&viewer);
        assert!(viewer.wait().unwrap().success());
        tokens.push(token);
    }
    assert_eq!(tokens[0], tokens[1]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = start(&arguments).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&open.stderr);
    assert!(open.status.code() == Some(2) && said.contains("is open to other users (mode 644): chmod 600 "), "{said}");
    assert!(open.stdout.is_empty());
}

#[test]
fn what_cannot_be_listened_on_is_told() {
    let mut first = start(&["view", "--no-browser", "examples/traces/demo"]);
    let (address, _) = asked(&mut first);
    let port = address.rsplit(':').next().unwrap();
    let second = start(&["view", "--port", port, "--no-browser", "examples/traces/demo"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.starts_with(&format!("error: cannot listen on {address}: ")), "{said}");
    interrupt(&first);
    assert!(first.wait().unwrap().success());
    let both =
        start(&["view", "--port", "1", "--listen", "127.0.0.1:2", "examples/traces/demo"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&both.stderr);
    assert!(said.starts_with("error: --listen says port 2, --port 1"), "{said}");
}

#[test]
fn memory_is_a_size_that_is_enough() {
    for size in ["1MiB", "0", "much"] {
        let refused =
            start(&["view", "--no-browser", "--memory", size, "examples/traces/demo"]).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("a size of 16MiB or more is expected, such as `512MiB`"), "{said}");
    }
    let mut viewer = start(&["view", "--no-browser", "--memory", "16MiB", "examples/traces/demo"]);
    assert!(asked(&mut viewer).1.starts_with("HTTP/1.1 200 OK"));
    interrupt(&viewer);
    assert!(viewer.wait().unwrap().success());
}
