//! Names of threads.

use super::*;

/// Without a kernel trace, threads have the names of their own events.
#[test]
fn threads_are_called_what_their_events_say() {
    let timeline = built(&demo(), None, None);
    let named: Vec<(String, Option<i64>)> = timeline
        .catalogue(0, 0)
        .tracks
        .into_iter()
        .filter(|track| track.tid == Some(29836))
        .map(|track| (track.name, track.process))
        .collect();
    assert_eq!(named[0], ("demo (29836): events".to_owned(), Some(29832)), "{named:?}");
}
