//! The examples of docs/http.md run as they are.

use std::process::Command;

use crate::client::serve;

#[test]
fn examples_run() {
    let text = include_str!("../../../../docs/http.md");
    let examples: Vec<&str> =
        text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(examples.len() > 6, "{examples:?}");
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("PEER ABSENT: curl");
        return;
    }
    let (server, folder) = (serve(), tempfile::tempdir().unwrap());
    for example in examples {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", example]).current_dir(folder.path());
        shell.env("URL", format!("http://{}", server.address)).env("TOKEN", &server.token).env_remove("http_proxy");
        let output = shell.output().unwrap();
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && wrong.is_empty(), "{example}{said}{wrong}");
        let has_answered = !said.is_empty() || example.contains("--output");
        assert!(has_answered, "{example}");
    }
    let rows = std::fs::read(folder.path().join("rows.arrow")).unwrap();
    assert_eq!(&rows[..4], b"\xff\xff\xff\xff", "an Arrow IPC stream begins like this");
}
