//! The threads that ask the session for whoever waits. Viewers take turns, so that one that asks a lot keeps nobody waiting.
//!
//! ```text
//! viewer a   ▢ ▢ ▢ ▢ ─┐
//! viewer b   ▢ ───────┼── one of each in turn ──> threads
//! viewer c   ▢ ▢ ─────┘
//! ```
//!
//! A question of which nobody waits for the answer any more is not asked, or cancelled where it is.

use std::collections::{HashMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kymo_session::Progress;
use tokio::sync::oneshot;

use crate::refusal::Refusal;

/// Who takes turns with whom: a page, or whatever keeps a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Viewer {
    /// By the name that it gives itself.
    Named(String),
    /// By its connection.
    Connection(u64),
}

/// Questions of one viewer that wait at most.
const WAITING_MAX: usize = 256;
/// Questions of all.
const WAITING_ALL_MAX: usize = 4096;

type Task = Box<dyn FnOnce() + Send>;

/// What waits for a thread.
#[derive(Default)]
struct Queue {
    /// Viewers with questions, in the order of their turns.
    turns: VecDeque<Viewer>,
    tasks: HashMap<Viewer, VecDeque<Task>>,
    waiting: usize,
    is_over: bool,
}

impl Queue {
    fn push(&mut self, viewer: &Viewer, task: Task) -> Result<(), Refusal> {
        let own = self.tasks.entry(viewer.clone()).or_default();
        if self.is_over || own.len() >= WAITING_MAX || self.waiting >= WAITING_ALL_MAX {
            if own.is_empty() {
                self.tasks.remove(viewer);
            }
            return Err(Refusal::busy("too many questions wait for their turn"));
        }
        if own.is_empty() {
            self.turns.push_back(viewer.clone());
        }
        own.push_back(task);
        self.waiting += 1;
        Ok(())
    }

    /// The next task of the viewer whose turn it is.
    fn pop(&mut self) -> Option<Task> {
        let viewer = self.turns.pop_front()?;
        let own = self.tasks.get_mut(&viewer)?;
        let task = own.pop_front()?;
        self.waiting -= 1;
        if own.is_empty() {
            self.tasks.remove(&viewer);
        } else {
            self.turns.push_back(viewer);
        }
        Some(task)
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        loop {
            let mut queue = self.queue();
            let task = loop {
                match queue.pop() {
                    Some(task) => break task,
                    None if queue.is_over => return,
                    None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            // Whoever waits for it learns that it is gone; the thread serves others.
            let _ = panic::catch_unwind(AssertUnwindSafe(task));
        }
    }
}

/// Threads and what waits for them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// So many threads.
    ///
    /// # Errors
    ///
    /// The system has none.
    pub(crate) fn new(count: usize) -> std::io::Result<Self> {
        let mut pool = Self { shared: Arc::default(), threads: Vec::new() };
        for number in 0..count {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().name(format!("kymo-asks-{number}"));
            pool.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    /// Asks when it is the viewer's turn. Nobody asks, and what asks is cancelled, when the future is dropped.
    pub(crate) async fn ask<T, F>(&self, viewer: &Viewer, question: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        self.ask_more(viewer, Arc::default(), question).await
    }

    /// Asks for more of what has a progress already.
    pub(crate) async fn ask_more<T, F>(
        &self,
        viewer: &Viewer,
        progress: Arc<Progress>,
        question: F,
    ) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let waits = Waits(Some(Arc::clone(&progress)));
        let task = move || {
            if !tell.is_closed() {
                let answer = question(&progress);
                let _ = tell.send(answer);
            }
        };
        self.shared.queue().push(viewer, Box::new(task))?;
        self.shared.changed.notify_one();
        let answer = told.await;
        waits.are_over();
        answer.map_err(|_| Refusal::fault("the question was not answered: that is a mistake in kymo; please report it"))
    }
}

/// Whoever waits for an answer: cancels the question when gone.
struct Waits(Option<Arc<Progress>>);

impl Waits {
    /// The answer is there.
    fn are_over(mut self) {
        self.0 = None;
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(progress) = &self.0 {
            progress.cancel();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        (queue.turns, queue.tasks, queue.waiting) = Default::default();
        drop(queue);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn named(name: &str) -> Viewer {
        Viewer::Named(name.to_owned())
    }

    #[test]
    fn viewers_take_turns() {
        let mut queue = Queue::default();
        let (said, heard) = mpsc::channel();
        for (viewer, what) in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")] {
            let said = said.clone();
            queue.push(&named(viewer), Box::new(move || said.send(what).unwrap())).unwrap();
        }
        while let Some(task) = queue.pop() {
            task();
        }
        drop(said);
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(queue.tasks.is_empty() && queue.waiting == 0);
    }

    #[test]
    fn nobody_fills_the_queue_alone() {
        let mut queue = Queue::default();
        let mut push = |viewer: Viewer| queue.push(&viewer, Box::new(|| {})).is_ok();
        assert_eq!((0..=WAITING_MAX).filter(|_| push(named("greedy"))).count(), WAITING_MAX);
        assert!(push(named("other")));
        let accepted = (0..).take_while(|number| push(Viewer::Connection(*number))).count();
        assert_eq!(accepted, WAITING_ALL_MAX - WAITING_MAX - 1);
    }

    /// The thread that met the mistake goes on with the next question.
    #[test]
    fn a_mistake_is_told_and_ends_no_thread() {
        let pool = Pool::new(1).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let refused = runtime.block_on(pool.ask(&named("a"), |_| -> u8 { panic!("on purpose") }));
        assert_eq!(refused.unwrap_err().status(), 500);
        assert_eq!(runtime.block_on(pool.ask(&named("a"), |_| 7)), Ok(7));
    }

    #[test]
    fn what_nobody_waits_for_is_cancelled() {
        let pool = Pool::new(1).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ((begun, has_begun), (ended, has_ended)) = (mpsc::channel(), mpsc::channel());
        runtime.block_on(async {
            let (a, b) = (named("a"), named("b"));
            let asked = pool.ask(&a, move |progress| {
                begun.send(()).unwrap();
                while !progress.is_cancelled() {
                    std::thread::yield_now();
                }
                ended.send(()).unwrap();
            });
            let never = pool.ask(&b, |_| panic!("nobody waits for it"));
            let mut both = Box::pin(futures::future::join(asked, never));
            let looked = futures::future::poll_fn(|context| {
                let _ = both.as_mut().poll(context);
                std::task::Poll::Ready(has_begun.recv())
            });
            looked.await.unwrap();
        });
        has_ended.recv().unwrap();
    }
}
