//! Does the work of several threads, each piece of work when its thread would begin it: see
//! [`crate::open::rehearsal`].
//!
//! ```text
//! rehearsal   ── job ──> thread 3          each is a thread, with memory of its own as threads have it;
//!             <── result and duration ──                     one works at a time
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::{PartJob, PartJobResult, PartScheduler, Worker, lock};
use crate::open::rehearsal::{Rehearsal, Took, WorkKind};

/// The job of a thread; `None`: it may leave.
type Told<'a> = Option<PartJob<'a>>;

/// The result, and its duration.
type Answer<'a> = (Option<PartJobResult<'a>>, Duration);

/// Does the work of all threads in the order in which they would begin it: each time the work of
/// the thread that would be free first. The duration determines when that one is free again.
pub(super) fn rehearse<'a>(
    desk: &Mutex<PartScheduler<'a>>,
    worker: impl Fn() -> Worker<'a> + Sync,
    rehearsal: &Rehearsal,
) {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let mut threads: Vec<RehearsalThread<'_>> = Vec::new();
        let mut free = BinaryHeap::new();
        for number in 0..rehearsal.threads {
            let (told, jobs) = channel();
            let (tell, done) = channel();
            let worker = &worker;
            scope.spawn(move || live(worker, &jobs, &tell, desk));
            threads.push(RehearsalThread { told, done });
            // Threads are started one after the other.
            free.push(Reverse((begun.elapsed(), number)));
        }
        let mut done: Vec<Option<PartJobResult<'_>>> = threads.iter().map(|_| None).collect();
        // Threads that wait for the results of others.
        let mut idle = Vec::new();
        while let Some(Reverse((now, number))) = free.pop() {
            if let Some(done) = done[number].take() {
                lock(desk).put(done);
                free.extend(idle.drain(..).map(|number| Reverse((now, number))));
            }
            let job = lock(desk).job();
            if job.is_none() && lock(desk).busy > 0 {
                idle.push(number);
                continue;
            }
            let work = WorkKind::of(job.as_ref());
            let (result, time) = threads[number].work(job);
            rehearsal.add(Took { work, thread: number, begin: now, time });
            if work != WorkKind::Leave {
                done[number] = result;
                free.push(Reverse((now + time, number)));
            }
        }
    });
    rehearsal.lasted(begun.elapsed());
}

impl WorkKind {
    fn of(job: Option<&PartJob<'_>>) -> Self {
        match job {
            Some(PartJob::Read(..)) => Self::Read,
            Some(PartJob::Merge(..) | PartJob::End(..) | PartJob::Given(_)) => Self::Merge,
            Some(PartJob::Later(..)) => Self::Later,
            None => Self::Leave,
        }
    }
}

/// A thread, as the rehearsal sees it.
struct RehearsalThread<'a> {
    told: Sender<Told<'a>>,
    done: Receiver<Answer<'a>>,
}

impl<'a> RehearsalThread<'a> {
    fn work(&self, job: Told<'a>) -> Answer<'a> {
        let told = self.told.send(job).ok().and_then(|()| self.done.recv().ok());
        told.expect("a thread lives until it is told to leave")
    }
}

/// A thread's life.
fn live<'a>(
    worker: impl Fn() -> Worker<'a>,
    jobs: &Receiver<Told<'a>>,
    tell: &Sender<Answer<'a>>,
    desk: &Mutex<PartScheduler<'a>>,
) {
    let mut own: Option<Worker<'_>> = None;
    for job in jobs {
        let begun = Instant::now();
        let done = match job {
            Some(job) => Some(own.get_or_insert_with(&worker).work(job)),
            None => own.take().and_then(|own| {
                own.leave(desk);
                None
            }),
        };
        if tell.send((done, begun.elapsed())).is_err() {
            return;
        }
    }
}
