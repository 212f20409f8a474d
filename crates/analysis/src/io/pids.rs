//! Which process each thread is of, at some place in the order of time.
//!
//! Pages are shared: a copy costs little, and so do changes afterwards.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::threads::ThreadKey;
use crate::threads::slots::{PAGE, place};

/// Processes by thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Pids {
    /// Those of the first machine's threads, by number.
    pages: Vec<Option<Arc<Page>>>,
    /// All others.
    others: Arc<HashMap<ThreadKey, i32>>,
}

type Page = [Option<i32>; PAGE];

impl Pids {
    #[inline]
    pub(super) fn get(&self, key: ThreadKey) -> Option<i32> {
        match place(key) {
            Some((page, at)) => self.pages.get(page)?.as_ref()?[at],
            None => self.others.get(&key).copied(),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, key: ThreadKey, pid: Option<i32>) {
        // First compared: a write would copy a page that others share.
        if self.get(key) == pid {
            return;
        }
        let Some((page, at)) = place(key) else {
            let others = Arc::make_mut(&mut self.others);
            match pid {
                Some(pid) => others.insert(key, pid),
                None => others.remove(&key),
            };
            return;
        };
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        Arc::make_mut(self.pages[page].get_or_insert_with(|| Arc::new([None; PAGE])))[at] = pid;
    }
}
