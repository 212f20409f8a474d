//! The worker threads that ask the session for requests. Viewers take turns, so that a viewer with
//! many requests keeps no other waiting.
//!
//! ```text
//! viewer a   ▢ ▢ ▢ ▢ ─┐
//! viewer b   ▢ ───────┼── one of each in turn ──> threads
//! viewer c   ▢ ▢ ─────┘
//! ```
//!
//! A question without a waiting request is dropped from the queue, or canceled where it runs.
//! Questions that take much memory wait until there is enough: all questions that run at a time,
//! and their answers until clients took them, share a fixed amount.

use std::collections::{HashMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kymo_session::Progress;
use tokio::sync::oneshot;

use crate::refusal::RequestRefusal;

/// The parties that take turns: a page, or any client that keeps a connection.
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

type Task = Box<dyn FnOnce(HeldMemory) + Send>;

/// Viewers with questions, in the order of their turns.
#[derive(Default)]
struct Turns {
    turns: VecDeque<Viewer>,
    /// With the memory that each question takes.
    tasks: HashMap<Viewer, VecDeque<(u64, Task)>>,
    waiting: usize,
}

impl Turns {
    fn push(&mut self, viewer: &Viewer, bytes: u64, task: Task) -> Result<(), RequestRefusal> {
        let own = self.tasks.entry(viewer.clone()).or_default();
        if own.len() >= WAITING_MAX || self.waiting >= WAITING_ALL_MAX {
            return Err(RequestRefusal::busy("too many questions wait for their turn"));
        }
        if own.is_empty() {
            self.turns.push_back(viewer.clone());
        }
        own.push_back((bytes, task));
        self.waiting += 1;
        Ok(())
    }

    /// The next question of the viewer in turn, if it takes no more memory than this.
    fn pop(&mut self, free: u64) -> Option<(u64, Task)> {
        let own = self.tasks.get_mut(self.turns.front()?)?;
        let (bytes, task) = own.pop_front_if(|(bytes, _)| *bytes <= free)?;
        let viewer = self.turns.pop_front()?;
        self.waiting -= 1;
        if own.is_empty() {
            self.tasks.remove(&viewer);
        } else {
            self.turns.push_back(viewer);
        }
        Some((bytes, task))
    }
}

/// The questions that wait for a thread.
struct QuestionQueue {
    /// Questions that take next to no memory, and pieces of answers that already have theirs: they
    /// never wait for memory, so that answers come to their ends and give it back.
    light: Turns,
    /// Questions that wait for memory, too; none overtakes the viewer in turn.
    heavy: Turns,
    /// A light one was taken last.
    is_heavy_next: bool,
    /// Free memory.
    free: u64,
    is_over: bool,
}

impl QuestionQueue {
    fn new(memory: u64) -> Self {
        Self { light: Turns::default(), heavy: Turns::default(), is_heavy_next: false, free: memory, is_over: false }
    }

    fn push(&mut self, viewer: &Viewer, bytes: u64, task: Task) -> Result<(), RequestRefusal> {
        if self.is_over {
            return Err(RequestRefusal::busy("the server ends"));
        }
        let turns = if bytes == 0 { &mut self.light } else { &mut self.heavy };
        turns.push(viewer, bytes, task)
    }

    /// The next question, light and heavy ones in turns.
    fn pop(&mut self) -> Option<(u64, Task)> {
        let (free, heavy_first) = (self.free, self.is_heavy_next);
        let first = if heavy_first { self.heavy.pop(free) } else { self.light.pop(0) };
        let next = first.or_else(|| if heavy_first { self.light.pop(0) } else { self.heavy.pop(free) })?;
        self.is_heavy_next = next.0 == 0;
        self.free -= next.0;
        Some(next)
    }
}

struct PoolState {
    queue: Mutex<QuestionQueue>,
    changed: Condvar,
    /// All memory that questions and their answers may have.
    memory: u64,
}

impl PoolState {
    fn queue(&self) -> MutexGuard<'_, QuestionQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>) {
        loop {
            let mut queue = self.queue();
            let (bytes, task) = loop {
                match queue.pop() {
                    Some(task) => break task,
                    None if queue.is_over => return,
                    None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            let held = HeldMemory { shared: Arc::clone(self), bytes };
            // The request that waits for it learns that it is gone; the thread serves others.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| task(held)));
        }
    }

    fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.queue().free += bytes;
            self.changed.notify_all();
        }
    }
}

/// Memory that a question or its answer has, until it is dropped.
pub(crate) struct HeldMemory {
    shared: Arc<PoolState>,
    bytes: u64,
}

impl HeldMemory {
    /// Gives back memory above this.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes as u64);
        self.bytes -= more;
        self.shared.give_back(more);
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.shared.give_back(self.bytes);
    }
}

/// Worker threads and the questions that wait for them.
pub(crate) struct WorkerPool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    /// So many threads, for questions that have so much memory together.
    ///
    /// # Errors
    ///
    /// The system has none.
    pub(crate) fn new(count: usize, memory: u64) -> std::io::Result<Self> {
        let shared = PoolState { queue: Mutex::new(QuestionQueue::new(memory)), changed: Condvar::new(), memory };
        let mut pool = Self { shared: Arc::new(shared), threads: Vec::new() };
        for number in 0..count {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().name(format!("kymo-asks-{number}"));
            pool.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    /// Asks a question that takes next to no memory when it is the viewer's turn. If the future is
    /// dropped, a waiting question is not asked, and a running one is canceled.
    pub(crate) async fn ask<T, F>(&self, viewer: &Viewer, question: F) -> Result<T, RequestRefusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        self.ask_more(viewer, Arc::default(), question).await
    }

    /// Asks for more of a question that already has a progress and memory.
    pub(crate) async fn ask_more<T, F>(
        &self,
        viewer: &Viewer,
        progress: Arc<Progress>,
        question: F,
    ) -> Result<T, RequestRefusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        self.queued(viewer, 0, progress, question).await.map(|(answer, _)| answer)
    }

    /// Asks a question that takes so much memory, as soon as that is free; a question that takes
    /// more than there is takes all of it. With the answer comes the memory, to be given back when
    /// the client took the answer.
    pub(crate) async fn ask_heavy<T, F>(
        &self,
        viewer: &Viewer,
        bytes: u64,
        progress: Arc<Progress>,
        question: F,
    ) -> Result<(T, HeldMemory), RequestRefusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        self.queued(viewer, bytes.clamp(1, self.shared.memory), progress, question).await
    }

    async fn queued<T, F>(
        &self,
        viewer: &Viewer,
        bytes: u64,
        progress: Arc<Progress>,
        question: F,
    ) -> Result<(T, HeldMemory), RequestRefusal>
    where
        T: Send + 'static,
        F: FnOnce(&Progress) -> T + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let waits = WaitingQuestion(Some(Arc::clone(&progress)));
        let task = move |held: HeldMemory| {
            if !tell.is_closed() {
                let answer = question(&progress);
                let _ = tell.send((answer, held));
            }
        };
        self.shared.queue().push(viewer, bytes, Box::new(task))?;
        self.shared.changed.notify_one();
        let answer = told.await;
        waits.are_over();
        answer.map_err(|_| {
            RequestRefusal::fault("the question was not answered: that is a mistake in kymo; please report it")
        })
    }
}

/// The waiting side of a question: cancels the question when dropped.
struct WaitingQuestion(Option<Arc<Progress>>);

impl WaitingQuestion {
    /// The answer is there.
    fn are_over(mut self) {
        self.0 = None;
    }
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        if let Some(progress) = &self.0 {
            progress.cancel();
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        let dropped = (std::mem::take(&mut queue.light), std::mem::take(&mut queue.heavy));
        drop(queue);
        // Not under the lock: dropping the questions gives back their memory.
        drop(dropped);
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

    fn held(bytes: u64) -> HeldMemory {
        let shared = PoolState { queue: Mutex::new(QuestionQueue::new(0)), changed: Condvar::new(), memory: 0 };
        HeldMemory { shared: Arc::new(shared), bytes }
    }

    /// A question that needs more memory than there is waits, and only questions that need none
    /// overtake it.
    #[test]
    fn questions_wait_for_memory() {
        let mut queue = QuestionQueue::new(100);
        for (viewer, bytes) in [("a", 60), ("b", 50), ("c", 10), ("d", 0), ("e", 0)] {
            queue.push(&named(viewer), bytes, Box::new(|_| {})).unwrap();
        }
        let mut popped = || queue.pop().map(|(bytes, _)| bytes);
        assert_eq!([popped(), popped(), popped(), popped()], [Some(0), Some(60), Some(0), None]);
        queue.free += 60;
        let mut popped = || queue.pop().map(|(bytes, _)| bytes);
        assert_eq!([popped(), popped(), popped()], [Some(50), Some(10), None]);
    }

    /// All questions and answers together never have more memory than there is, and all of it comes
    /// back.
    #[test]
    fn memory_is_bounded_and_comes_back() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let pool = Arc::new(WorkerPool::new(4, 100).unwrap());
        let (now, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = |number: u64| {
            let (pool, now, most) = (Arc::clone(&pool), Arc::clone(&now), Arc::clone(&most));
            async move {
                let bytes = [10, 35, 70, 500][number as usize % 4];
                let (counted, now_too) = (bytes.min(100), Arc::clone(&now));
                let work = move |_: &Progress| {
                    let all = now_too.fetch_add(counted, Ordering::SeqCst) + counted;
                    most.fetch_max(all, Ordering::SeqCst);
                    assert!(number % 16 != 3, "on purpose");
                };
                let viewer = named(&(number % 7).to_string());
                let answered = pool.ask_heavy(&viewer, bytes, Arc::default(), work).await;
                tokio::task::yield_now().await;
                // A mistake gives its memory back when it is met, all others when they were taken.
                let is_kept = answered.as_ref().is_ok_and(|(_, held)| held.bytes == counted);
                assert_eq!(is_kept, number % 16 != 3);
                now.fetch_sub(counted, Ordering::SeqCst);
            }
        };
        // The questions that fail on purpose go one after the other, as they cannot say when their
        // memory is back.
        runtime.block_on(async {
            for number in (3..64).step_by(16) {
                ask(number).await;
            }
            let others = (0..64).filter(|number| number % 16 != 3).map(ask);
            futures::future::join_all(others).await;
        });
        let most = most.load(Ordering::SeqCst);
        assert!((70..=100).contains(&most), "{most}");
        assert_eq!(pool.shared.queue().free, 100);
    }

    #[test]
    fn viewers_take_turns() {
        let mut queue = QuestionQueue::new(100);
        let (said, heard) = mpsc::channel();
        for (viewer, what) in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")] {
            let said = said.clone();
            queue.push(&named(viewer), 0, Box::new(move |_| said.send(what).unwrap())).unwrap();
        }
        while let Some((_, task)) = queue.pop() {
            task(held(0));
        }
        drop(said);
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(queue.light.tasks.is_empty() && queue.light.waiting == 0);
    }

    #[test]
    fn nobody_fills_the_queue_alone() {
        let mut queue = QuestionQueue::new(100);
        let mut push = |viewer: Viewer| queue.push(&viewer, 0, Box::new(|_| {})).is_ok();
        assert_eq!((0..=WAITING_MAX).filter(|_| push(named("greedy"))).count(), WAITING_MAX);
        assert!(push(named("other")));
        let accepted = (0..).take_while(|number| push(Viewer::Connection(*number))).count();
        assert_eq!(accepted, WAITING_ALL_MAX - WAITING_MAX - 1);
    }

    /// The thread that met the mistake goes on with the next question.
    #[test]
    fn a_mistake_is_told_and_ends_no_thread() {
        let pool = WorkerPool::new(1, 100).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let refused = runtime.block_on(pool.ask(&named("a"), |_| -> u8 { panic!("on purpose") }));
        assert_eq!(refused.unwrap_err().status(), 500);
        assert_eq!(runtime.block_on(pool.ask(&named("a"), |_| 7)), Ok(7));
    }

    #[test]
    fn what_nobody_waits_for_is_cancelled() {
        let pool = WorkerPool::new(1, 100).unwrap();
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
