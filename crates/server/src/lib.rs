//! The HTTP API and the pages that `kymo view` serves. It only encodes the answers of `session`.
//!
//! It must never know the internals of `session` and `recorder`, nor read a trace.
//!
//! ```text
//! connection ──> guard ──> pages                          what was built from web/
//! so many,       who may    api ──> pool ──> session      viewers take turns
//! so patient     ask         │  └─> jobs ──> session      what takes long: so many at a time, behind viewers
//!                            ├──> start ──> stage         which traces these are, where nobody has said
//!                            └──> recording ──> recorder  who records them meanwhile
//! ```

mod analyses;
mod api;
mod begin;
mod body;
mod changes;
mod connection;
mod current;
mod filter;
mod growing;
mod guard;
mod held;
mod host;
mod jobs;
mod news;
mod notes;
mod options;
mod pages;
mod pool;
mod query;
mod readers;
mod recording;
mod refusal;
mod rows;
mod selection;
mod shared;
mod shown;
mod stage;
mod start;
mod tags;
mod tiles;
mod timeline;
mod token;
mod told;
mod uploads;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future;
use kymo_session::OwnTracks;
use tokio::runtime;

pub use begin::{Begin, Growing, RecordHint, SampleTrace, TraceChoice};
use connection::Patience;
use guard::Guard;
use host::Host;
use pool::WorkerPool;
use recording::ShownRecorder;
use shared::Means;
pub use token::Token;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 is any that is free.
    pub listen: SocketAddr,
    /// A mapping from events to roles that goes before those that are built in, for all analyses.
    pub roles: Option<PathBuf>,
    /// Own analyses, whose states and counters are tracks of the timeline.
    pub own: Vec<OwnTracks>,
    /// Memory for requests and responses of all viewers, results of jobs, and recently viewed
    /// parts.
    pub memory_bytes: u64,
    /// The file of notes on the traces; it need not be there yet. Without one there are no notes.
    pub notes: Option<PathBuf>,
    /// The token that requests must have; `None`: a new one.
    pub token: Option<Token>,
    patience: Patience,
}

/// The default memory.
pub const MEMORY_BYTES: u64 = 192 << 20;

/// On any free port, for this machine only.
impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            roles: None,
            own: Vec::new(),
            memory_bytes: MEMORY_BYTES,
            notes: None,
            token: None,
            patience: Patience::default(),
        }
    }
}

impl ServerOptions {
    /// The same with other patience: for the head of a request, for a piece of an answer to be taken; and for so many connections.
    #[must_use]
    pub fn patient(self, head: Duration, piece: Duration, connections: usize) -> Self {
        Self { patience: Patience { head, piece, connections }, ..self }
    }
}

/// Why nothing can be served.
#[derive(Debug)]
pub enum ServeFailure {
    /// The server cannot listen there.
    Listen(SocketAddr, io::Error),
    /// The system has no random numbers for a token.
    Random(getrandom::Error),
    /// The system has no threads.
    Threads(io::Error),
}

impl std::fmt::Display for ServeFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Random(error) => {
                write!(f, "the system gives no random numbers, without which there is no token: {error}")
            }
            Self::Threads(error) => write!(f, "the system gives no threads: {error}"),
        }
    }
}

impl std::error::Error for ServeFailure {}

/// A server that listens already, so that requests from now on get their responses as soon as it
/// runs.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    token: Token,
    /// A number that differs from that of any other server.
    salt: u64,
    begin: Begin,
    options: ServerOptions,
}

impl Server {
    /// Listens, with traces that are open or a choice of some.
    ///
    /// # Errors
    ///
    /// The server cannot listen there.
    pub fn bind(begin: impl Into<Begin>, options: ServerOptions) -> Result<Self, ServeFailure> {
        let refused = |error| ServeFailure::Listen(options.listen, error);
        let listener = std::net::TcpListener::bind(options.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let token = options.token.clone().map_or_else(Token::random, Ok).map_err(ServeFailure::Random)?;
        let salt = getrandom::u64().map_err(ServeFailure::Random)?;
        Ok(Self { listener, address, token, salt, begin: begin.into(), options })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that a request must have.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.text()
    }

    /// The address of its page on this machine, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}/?token={}", self.token.text())
    }

    /// Serves until `stop` is true, which is seen within a twentieth of a second. Requests in
    /// progress are canceled then.
    ///
    /// # Errors
    ///
    /// The system has no threads.
    pub fn run(self, stop: &AtomicBool) -> Result<(), ServeFailure> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(ServeFailure::Threads)?;
        let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        // Half of it is for requests, a quarter for the results of jobs, a part for nodes; the rest
        // is for building timelines.
        let memory = self.options.memory_bytes;
        let pool = Arc::new(WorkerPool::new(threads, (memory / 2).max(1)).map_err(ServeFailure::Threads)?);
        let ServerOptions { roles, own, notes, patience, .. } = self.options;
        let recording = ShownRecorder::of(self.begin.paths());
        let means = Means { pool, roles, own, notes, recording, memory, salt: self.salt };
        let guard = Guard::new(self.token, self.address);
        let host = Arc::new(Host::new(guard, self.begin, means).map_err(ServeFailure::Threads)?);
        let listened = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let served = connection::serve(listener, api::router(&host), patience);
            let changes = changes::watch(Arc::clone(&host));
            future::select(Box::pin(future::join(served, changes)), Box::pin(raised(stop))).await;
            Ok(())
        });
        host.stage.end();
        // Requests without a response end here; so their work is canceled.
        drop(runtime);
        listened.map_err(|error| ServeFailure::Listen(self.address, error))
    }
}

/// Ends when `stop` is set. A flag is all that signal handlers can set everywhere.
async fn raised(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
