//! Connections, each with time limits: the server closes a connection that sends a request slowly
//! or does not take its response.
//!
//! ```text
//! accept ──> a connection, one of so many ──> head within 10 s ──> answer, a piece of which is taken within 30 s
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use crate::pool::Viewer;

/// How patient the server is, and with how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the head of a request, from when it could be sent.
    pub(crate) head: Duration,
    /// For any piece of an answer to be taken.
    pub(crate) piece: Duration,
    /// Connections at a time.
    pub(crate) connections: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self { head: Duration::from_secs(10), piece: Duration::from_secs(30), connections: 1024 }
    }
}

/// Maximum bytes of a request's head, and of the bytes that are read ahead.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Header lines of a request that are read; `guard` refuses fewer, and says so.
const HEADERS_MAX: usize = 128;

/// Serves clients that connect, for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, router: Router, patience: Patience) {
    let free = Arc::new(Semaphore::new(patience.connections));
    let number = AtomicU64::new(1);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // There are no more handles for files; some come back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&free).try_acquire_owned() else {
            tokio::spawn(turn_away(stream));
            continue;
        };
        let viewer = Viewer::Connection(number.fetch_add(1, Ordering::Relaxed));
        let router = router.clone();
        tokio::spawn(async move {
            // An error of one connection concerns no other connection.
            let _ = connection(stream, router, viewer, patience).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, router: Router, viewer: Viewer, patience: Patience) -> Result<(), hyper::Error> {
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Patient::new(stream, patience.piece));
    let service = OfViewer { inner: TowerToHyperService::new(router), viewer };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience.head);
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder.serve_connection(io, service).await
}

/// The response to a connection above the limit.
const TURNED_AWAY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
connection: close\r\ncontent-length: 85\r\n\r\n\
{\"error\":{\"code\":\"busy\",\"message\":\"too many connections: close some, or ask later\"}}\n";

/// Sends that response, and waits for a moment until the client has read it: the last bytes of a
/// closed connection would be lost.
async fn turn_away(stream: TcpStream) {
    let told = async {
        stream.writable().await?;
        stream.try_write(TURNED_AWAY)?;
        loop {
            stream.readable().await?;
            match stream.try_read(&mut [0; 4096]) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    };
    let _: Result<io::Result<()>, _> = tokio::time::timeout(Duration::from_secs(1), told).await;
}

/// The service, which knows the viewer of its connection.
struct OfViewer {
    inner: TowerToHyperService<Router>,
    viewer: Viewer,
}

impl Service<hyper::Request<Incoming>> for OfViewer {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = TowerToHyperServiceFuture<Router, hyper::Request<Incoming>>;

    fn call(&self, mut request: hyper::Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.viewer.clone());
        self.inner.call(request)
    }
}

/// A stream that fails when it could not be written to for so long.
struct Patient {
    stream: TcpStream,
    piece: Duration,
    /// When patience ends; counts while `waits`.
    end: Pin<Box<Sleep>>,
    waits: bool,
}

impl Patient {
    fn new(stream: TcpStream, piece: Duration) -> Self {
        Self { stream, piece, end: Box::pin(tokio::time::sleep(piece)), waits: false }
    }

    fn watched<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.waits = false;
            return poll;
        }
        if !std::mem::replace(&mut self.waits, true) {
            let end = Instant::now() + self.piece;
            self.end.as_mut().reset(end);
        }
        self.end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watched(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_turned_away_is_told_the_true_length() {
        let text = std::str::from_utf8(TURNED_AWAY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
    }

    /// Writing to a client that takes no more of a response ends when patience is over.
    #[test]
    fn writing_to_who_does_not_read_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let mut patient = Patient::new(listener.accept().await.unwrap().0, Duration::from_millis(20));
            let bytes = vec![0; 1 << 20];
            for _ in 0..1000 {
                let written = std::future::poll_fn(|context| Pin::new(&mut patient).poll_write(context, &bytes)).await;
                if let Err(error) = written {
                    drop(silent);
                    return Some(error.kind());
                }
            }
            None
        });
        assert_eq!(ended, Some(io::ErrorKind::TimedOut));
    }
}
