//! Messages on their way, by key: first in, first out.
//!
//! ```text
//! send 7 ──┐ send 7 ──┐                       the queue of key 7
//!          └ receive 7└ receive 7             each receive takes the oldest
//!
//! receive 9 ──┐ (at most `early_ns`)          clocks disagree: the receive seems to be first
//!       send 9┘
//! ```
//!
//! A receive without a send waits for one only if its role says how far clocks may disagree. Such a
//! message was received before it was sent: an error of the clocks, and told as that.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Maximum number of messages in transit with one key, and of receives that wait for their sends.
pub const QUEUE_MAX: usize = 32;

/// The fate of a send or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate<S, R> {
    /// It arrived.
    Arrived(S, R),
    /// It was received before it was sent, as clocks say.
    Early(R, S),
    /// Nothing was sent that this receives.
    Unsent(R),
    /// Too many are on their way with this key: the oldest is not waited for.
    GivenUp(S),
}

/// When something is sent or received.
pub trait Posted {
    /// In nanoseconds.
    fn time(&self) -> i64;
}

/// A receive that came before its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyReceive<R> {
    /// The receive.
    pub receive: R,
    /// It waits for a send until then.
    pub until: i64,
}

/// The messages on their way with one key. Where receives wait, no message is on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageQueue<S, R> {
    /// The oldest first.
    pub sent: VecDeque<S>,
    /// The same.
    pub early: VecDeque<EarlyReceive<R>>,
}

impl<S, R> Default for MessageQueue<S, R> {
    fn default() -> Self {
        Self { sent: VecDeque::new(), early: VecDeque::new() }
    }
}

impl<S: Posted, R: Posted + Copy> MessageQueue<S, R> {
    /// Nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.early.is_empty()
    }

    /// How many sends and receives wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sent.len() + self.early.len()
    }

    /// A message is sent.
    pub fn send(&mut self, send: S, mut tell: impl FnMut(MessageFate<S, R>)) {
        while let Some(early) = self.early.pop_front_if(|early| early.until < send.time()) {
            tell(MessageFate::Unsent(early.receive));
        }
        if let Some(early) = self.early.pop_front() {
            return tell(MessageFate::Early(early.receive, send));
        }
        if self.sent.len() == QUEUE_MAX {
            self.sent.pop_front().into_iter().for_each(|oldest| tell(MessageFate::GivenUp(oldest)));
        }
        self.sent.push_back(send);
    }

    /// Up to `count` messages are received. If none is on its way, the receive waits for one, for at
    /// most `early_ns`.
    pub fn receive(&mut self, receive: R, count: u32, early_ns: u32, mut tell: impl FnMut(MessageFate<S, R>)) {
        let taken = self.sent.len().min(count as usize);
        self.sent.drain(..taken).for_each(|sent| tell(MessageFate::Arrived(sent, receive)));
        if taken > 0 {
            return;
        }
        if early_ns == 0 {
            return tell(MessageFate::Unsent(receive));
        }
        if self.early.len() == QUEUE_MAX {
            self.early.pop_front().into_iter().for_each(|oldest| tell(MessageFate::Unsent(oldest.receive)));
        }
        self.early.push_back(EarlyReceive { receive, until: receive.time().saturating_add(early_ns.into()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Posted for i64 {
        fn time(&self) -> i64 {
            *self
        }
    }

    fn told(posts: &[(i64, u32)], early_ns: u32) -> (String, usize) {
        let (mut queue, mut told) = (MessageQueue::default(), Vec::new());
        for &(time, count) in posts {
            let tell = |fate| told.push(format!("{fate:?}"));
            match count {
                0 => queue.send(time, tell),
                count => queue.receive(time, count, early_ns, tell),
            }
        }
        (told.join(" "), queue.len())
    }

    #[test]
    fn the_oldest_is_received_first() {
        let (told, open) = told(&[(1, 0), (2, 0), (3, 0), (4, 1), (5, 9), (6, 1)], 0);
        assert_eq!(told, "Arrived(1, 4) Arrived(2, 5) Arrived(3, 5) Unsent(6)");
        assert_eq!(open, 0);
    }

    #[test]
    fn receives_wait_as_long_as_clocks_may_disagree() {
        let posts = [(1, 1), (5, 1), (11, 0), (12, 0), (13, 1), (20, 1), (31, 0)];
        let (said, open) = told(&posts, 6);
        assert_eq!(said, "Unsent(1) Early(5, 11) Arrived(12, 13) Unsent(20)");
        assert_eq!(open, 1, "the last one is on its way");
        assert_eq!(told(&[(5, 1), (5, 0)], 1).0, "Early(5, 5)");
    }

    #[test]
    fn too_many_are_given_up() {
        let sent: Vec<(i64, u32)> = (0..=QUEUE_MAX as i64).map(|time| (time, 0)).collect();
        assert_eq!(told(&sent, 0), ("GivenUp(0)".to_owned(), QUEUE_MAX));
        let received: Vec<(i64, u32)> = (0..=QUEUE_MAX as i64).map(|time| (time, 1)).collect();
        assert_eq!(told(&received, u32::MAX), ("Unsent(0)".to_owned(), QUEUE_MAX));
    }
}
