//! A server on a free port of this machine, with the trace that is shipped, and a client that says exactly what a test wants said.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_server::{Begin, Growing, Server, ServerOptions, TraceChoice};
use kymo_session::{OpenOptions, Session};
use serde_json::Value;

/// Longer than anything takes that is not broken.
pub const LONG: Duration = Duration::from_secs(60);

/// A server that ends with the test.
pub struct Running {
    pub address: SocketAddr,
    pub token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Where its notes are.
    pub folder: tempfile::TempDir,
}

pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

pub fn session() -> Arc<Session> {
    Arc::new(Session::open(&[demo()], &OpenOptions::default()).unwrap())
}

pub fn serve() -> Running {
    serve_with(ServerOptions::default())
}

pub fn serve_with(mut options: ServerOptions) -> Running {
    let folder = tempfile::tempdir().unwrap();
    options.notes = Some(folder.path().join("demo.kymo-notes"));
    serve_from(session().into(), options, folder)
}

/// A server that has no traces yet.
pub fn serve_choice(choice: TraceChoice) -> Running {
    serve_from(choice.into(), ServerOptions::default(), tempfile::tempdir().unwrap())
}

/// A server of traces that may grow.
pub fn serve_growing(growing: Growing, options: ServerOptions) -> Running {
    serve_from(growing.into(), options, tempfile::tempdir().unwrap())
}

fn serve_from(begin: Begin, options: ServerOptions, folder: tempfile::TempDir) -> Running {
    let server = Server::bind(begin, options).unwrap();
    let (address, token) = (server.address(), server.token().to_owned());
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || server.run(&flag).unwrap());
    Running { address, token, stop, thread: Some(thread), folder }
}

impl Running {
    /// Ends it, which waits for everything that it does.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// What is answered to these bytes.
    pub fn say(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        Answer::read(&mut BufReader::new(stream))
    }

    /// What is answered to a request with the token and these headers.
    pub fn ask(&self, method: &str, target: &str, headers: &[&str], body: &str) -> Answer {
        let mut lines = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for line in headers {
            lines += &format!("{line}\r\n");
        }
        self.say(&format!(
            "{lines}authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        ))
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "")
    }

    pub fn post(&self, target: &str, body: &Value) -> Answer {
        self.ask("POST", target, &["content-type: application/json"], &body.to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a server said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn read(stream: &mut impl BufRead) -> Self {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?} has a status")).parse().unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let body = body(stream, &headers, status);
        Self { status, headers, body }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Status and body in a line, as refusals are compared.
    pub fn line(&self) -> String {
        format!("{} {}", self.status, self.text().trim_end())
    }
}

fn body(stream: &mut impl BufRead, headers: &BTreeMap<String, String>, status: u16) -> Vec<u8> {
    let mut body = Vec::new();
    if status == 204 || status == 304 {
        return body;
    }
    if let Some(length) = headers.get("content-length") {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).unwrap();
    } else if headers.contains_key("transfer-encoding") {
        while let Some(chunk) = chunk(stream) {
            body.extend(chunk);
        }
    }
    body
}

/// The next chunk; nothing at the end.
pub fn chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
    let mut bytes = vec![0; size + 2];
    stream.read_exact(&mut bytes).unwrap();
    bytes.truncate(size);
    (size > 0).then_some(bytes)
}
