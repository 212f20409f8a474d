//! A server whose requests are spans of `tracing`, and whose cache has events of its own.
//!
//! ```console
//! $ cargo build --release -p example-server
//! $ kymo record -- target/release/example-server 1000
//! $ kymo pairs TRACE                                        how long spans took
//! ```

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tracing::{debug, info, info_span, warn};
use tracing_subscriber::prelude::*;

const WORKERS: u64 = 3;
const PAGES: [&str; 4] = ["/", "/users", "/orders", "/missing"];

kymo_tracer::labels! {
    /// What a look into the cache finds.
    enum Outcome: u8 { Missing = 0, Found = 1 }
}

kymo_tracer::event! {
    /// The cache is asked for a page: that happens so often that it is not an event of `tracing`.
    fn cache_look(page: &str, entries: u32, outcome: Outcome) = "server:cache_look", level 14;
}

struct Request {
    id: u64,
    page: &'static str,
}

type Cache = Mutex<HashMap<&'static str, usize>>;

fn render(page: &str) -> usize {
    kymo_tracer::scope!("render");
    (0..2000).fold(page.len(), |size, step| (size * 31 + step) % 1000) + 1
}

/// How many bytes the answer has; `None`: there is no such page.
fn answer(request: &Request, cache: &Cache) -> Option<usize> {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let found = cache.get(request.page).copied();
    let outcome = if found.is_some() { Outcome::Found } else { Outcome::Missing };
    cache_look(request.page, cache.len() as u32, outcome);
    if request.page == "/missing" {
        warn!(name: "not_found", page = request.page, "nobody has written this page");
        return None;
    }
    let bytes = found.unwrap_or_else(|| render(request.page));
    cache.insert(request.page, bytes);
    kymo_tracer::counter!("cache", cache.len() as i64);
    Some(bytes)
}

fn work(number: u64, requests: &Mutex<Receiver<Request>>, cache: &Cache) {
    loop {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        kymo_tracer::receive!(request.id);
        let span = info_span!("request", id = request.id, page = request.page, status = tracing::field::Empty);
        let _entered = span.enter();
        let bytes = answer(&request, cache);
        span.record("status", if bytes.is_some() { 200 } else { 404 });
        debug!(name: "answered", worker = number, bytes, "request {} is answered", request.id);
    }
}

fn serve(count: u64, requests: &Sender<Request>) {
    for id in 1..=count {
        let page = PAGES[(id % PAGES.len() as u64) as usize];
        kymo_tracer::send!(id);
        if requests.send(Request { id, page }).is_err() {
            return;
        }
    }
}

fn main() {
    tracing_subscriber::registry().with(kymo_tracing::layer()).init();
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100);
    info!(name: "start", workers = WORKERS, requests = count);
    let (sender, receiver) = channel();
    let (receiver, cache) = (Arc::new(Mutex::new(receiver)), Arc::new(Cache::default()));
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (receiver, cache) = (Arc::clone(&receiver), Arc::clone(&cache));
            thread::spawn(move || work(number, &receiver, &cache))
        })
        .collect();
    serve(count, &sender);
    drop(sender);
    let panics = workers.into_iter().filter_map(|worker| worker.join().err()).count();
    info!(name: "end", panics);
}
