//! Which bucket a value falls into, and how many values each bucket holds.
//!
//! An octave is cut into 512 buckets of equal width; below 1024 that is a bucket per value:
//!
//! ```text
//! value  0 .. 511   512 .. 1023   1024 .. 2047   2048 .. 4095  ...  up to 2^64 - 1
//! width      1           1             2              4
//! bucket 0 .. 511   512 .. 1023   1024 .. 1535   1536 .. 2047  ...  up to 28671
//! ```
//!
//! At first a bucket number is kept per value, unsorted: two bytes and a push. When that would cost more than counters,
//! *pages* of 32 counters take over. A directory finds the page; it reaches from the first page with values to the
//! last, since durations of one kind lie in a few octaves. So memory never jumps, which budgets rely on.

use std::borrow::Cow;

/// An octave has 2^9 buckets: half a bucket's width is at most 2^-10 of any value in it, which is below 0.1 %.
const OCTAVE_BITS: u32 = 9;
/// How many buckets there are.
pub(super) const BUCKETS: u16 = (64 - OCTAVE_BITS as u16 + 1) << OCTAVE_BITS;
/// Lists up to this length are sorted to be read; longer ones are counted into pages.
const SORTED_MAX: usize = 256;
/// Counters on a page.
const PAGE: usize = 32;

/// The bucket of `value`.
#[inline]
pub(super) fn bucket_of(value: u64) -> u16 {
    let octave = 63 - (value | 1).leading_zeros();
    let shift = octave.saturating_sub(OCTAVE_BITS);
    (u64::from(shift << OCTAVE_BITS) + (value >> shift)) as u16
}

/// The first and the last value of a bucket below [`BUCKETS`].
pub(super) fn range_of(bucket: u16) -> (u64, u64) {
    let octaves = u32::from(bucket >> OCTAVE_BITS);
    let shift = octaves.saturating_sub(1);
    let low = (u64::from(bucket) - (u64::from(shift) << OCTAVE_BITS)) << shift;
    (low, low + ((1 << shift) - 1))
}

/// Values per bucket.
#[derive(Clone, Debug)]
pub(super) enum Buckets {
    /// The bucket of each value, in no order.
    Listed(Vec<u16>),
    Paged(CounterPages),
}

impl Default for Buckets {
    fn default() -> Self {
        Self::Listed(Vec::with_capacity(16))
    }
}

impl Buckets {
    #[inline]
    pub(super) fn add(&mut self, bucket: u16, count: u64) {
        match self {
            Self::Paged(pages) => pages.add(bucket, count),
            Self::Listed(list) if count == 1 && list.len() < list.capacity() => list.push(bucket),
            Self::Listed(_) => self.add_to_list(bucket, count),
        }
    }

    fn add_to_list(&mut self, bucket: u16, count: u64) {
        const REPEATED: u64 = 64;
        if count > REPEATED {
            self.paged().add(bucket, count);
            return;
        }
        for _ in 0..count {
            self.make_room();
            match self {
                Self::Listed(list) => list.push(bucket),
                Self::Paged(pages) => pages.add(bucket, 1),
            }
        }
    }

    /// Grows a full list, or makes it pages if those are no larger than the list would become.
    fn make_room(&mut self) {
        let Self::Listed(list) = self else { return };
        if list.len() < list.capacity() {
            return;
        }
        let more = (list.len() / 2).max(16);
        if pages_size_bytes(list) <= (list.len() + more) * size_of::<u16>() {
            self.paged();
        } else {
            list.reserve_exact(more);
        }
    }

    fn paged(&mut self) -> &mut CounterPages {
        if let Self::Listed(list) = self {
            *self = Self::Paged(CounterPages::of(list));
        }
        match self {
            Self::Paged(pages) => pages,
            Self::Listed(_) => unreachable!("the list became pages above"),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        match other {
            Self::Listed(list) => list.iter().for_each(|&bucket| self.add(bucket, 1)),
            Self::Paged(pages) => self.paged().merge(pages),
        }
    }

    /// Buckets that hold values, ascending, with their counts.
    pub(super) fn counted(&self) -> Counted<'_> {
        match self {
            Self::Listed(list) if list.len() <= SORTED_MAX => {
                let mut sorted = list.clone();
                sorted.sort_unstable();
                Counted::Listed { sorted, next: 0 }
            }
            Self::Listed(list) => Counted::Paged { pages: Cow::Owned(CounterPages::of(list)), next: 0 },
            Self::Paged(pages) => Counted::Paged { pages: Cow::Borrowed(pages), next: 0 },
        }
    }

    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Listed(list) => list.capacity() * size_of::<u16>(),
            Self::Paged(pages) => pages.weight(),
        }
    }
}

/// What counters for these buckets would take.
fn pages_size_bytes(list: &[u16]) -> usize {
    let mut present = [0u64; (BUCKETS as usize / PAGE).div_ceil(64)];
    let (mut first, mut last) = (usize::MAX, 0);
    for &bucket in list {
        let page = usize::from(bucket) / PAGE;
        present[page / 64] |= 1 << (page % 64);
        first = first.min(page);
        last = last.max(page);
    }
    let pages: u32 = present.iter().map(|word| word.count_ones()).sum();
    size_of::<CounterPages>()
        + pages as usize * PAGE * size_of::<u32>()
        + (last + 1 - first.min(last)) * size_of::<u16>()
}

/// Counters, for those neighbourhoods of [`PAGE`] buckets that hold values.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterPages {
    /// The page that the directory begins with.
    first: u16,
    /// For each page: one more than its place in `counters`, or 0 if it holds no value.
    directory: Vec<u16>,
    /// The low 32 bits of each count, a page after the other.
    counters: Vec<u32>,
    /// The high 32 bits of those counts that need them, by bucket. Empty in all but the largest traces.
    carries: Vec<(u16, u32)>,
}

impl CounterPages {
    fn of(list: &[u16]) -> Self {
        let mut pages = Self::default();
        list.iter().for_each(|&bucket| pages.add(bucket, 1));
        pages
    }

    #[inline]
    fn add(&mut self, bucket: u16, count: u64) {
        if let Some(counter) = self.counter(bucket)
            && let Ok(count) = u32::try_from(count)
            && let Some(sum) = counter.checked_add(count)
        {
            *counter = sum;
            return;
        }
        self.add_slowly(bucket, count);
    }

    #[inline]
    fn counter(&mut self, bucket: u16) -> Option<&mut u32> {
        let page = (bucket / PAGE as u16).wrapping_sub(self.first);
        let place = usize::from(*self.directory.get(usize::from(page))?).checked_sub(1)?;
        self.counters.get_mut(place * PAGE + usize::from(bucket) % PAGE)
    }

    #[cold]
    fn add_slowly(&mut self, bucket: u16, count: u64) {
        self.open_page(bucket / PAGE as u16);
        let carried = self.carries.binary_search_by_key(&bucket, |&(carried, _)| carried);
        let high = carried.map_or(0, |position| self.carries[position].1);
        let counter = self.counter(bucket).expect("its page was opened above");
        let sum = (u64::from(high) << 32 | u64::from(*counter)).saturating_add(count);
        *counter = sum as u32;
        match (carried, (sum >> 32) as u32) {
            (Ok(position), high) => self.carries[position].1 = high,
            (Err(_), 0) => {}
            (Err(position), high) => self.carries.insert(position, (bucket, high)),
        }
    }

    /// Makes counters for a page, where there are none yet.
    fn open_page(&mut self, page: u16) -> usize {
        if self.directory.is_empty() {
            self.first = page;
        }
        if page < self.first {
            let missing = usize::from(self.first - page);
            self.directory.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = page;
        }
        let entry = usize::from(page - self.first);
        if entry >= self.directory.len() {
            self.directory.resize(entry + 1, 0);
        }
        if self.directory[entry] == 0 {
            // A quarter more instead of twice as much: counters are most of the memory of a large table.
            if self.counters.capacity() - self.counters.len() < PAGE {
                self.counters.reserve_exact(PAGE.max(self.counters.len() / 4 / PAGE * PAGE));
            }
            self.counters.resize(self.counters.len() + PAGE, 0);
            self.directory[entry] = (self.counters.len() / PAGE) as u16;
        }
        usize::from(self.directory[entry]) - 1
    }

    fn merge(&mut self, other: &Self) {
        for (page, &place) in (other.first..).zip(&other.directory) {
            let Some(place) = usize::from(place).checked_sub(1) else { continue };
            let added = &other.counters[place * PAGE..][..PAGE];
            let own = self.open_page(page);
            for (offset, &count) in (0u16..).zip(added) {
                let counter = &mut self.counters[own * PAGE + usize::from(offset)];
                match counter.checked_add(count) {
                    Some(sum) => *counter = sum,
                    None => self.add_slowly(page * PAGE as u16 + offset, u64::from(count)),
                }
            }
        }
        for &(bucket, high) in &other.carries {
            self.add_slowly(bucket, u64::from(high) << 32);
        }
    }

    /// The count at `offset` of a page; 0 where there is no such page.
    fn count(&self, page: u16, place: usize, offset: usize) -> u64 {
        let low = u64::from(self.counters[place * PAGE + offset]);
        if self.carries.is_empty() {
            return low;
        }
        let bucket = page * PAGE as u16 + offset as u16;
        let carried = self.carries.binary_search_by_key(&bucket, |&(carried, _)| carried);
        low | carried.map_or(0, |position| u64::from(self.carries[position].1) << 32)
    }

    fn weight(&self) -> usize {
        self.directory.capacity() * size_of::<u16>()
            + self.counters.capacity() * size_of::<u32>()
            + self.carries.capacity() * size_of::<(u16, u32)>()
    }
}

/// Walks over the buckets that hold values, ascending.
pub(super) enum Counted<'a> {
    Listed {
        sorted: Vec<u16>,
        next: usize,
    },
    /// `next` counts counters from the directory's first page on, absent pages included.
    Paged {
        pages: Cow<'a, CounterPages>,
        next: usize,
    },
}

impl Iterator for Counted<'_> {
    type Item = (u16, u64);

    fn next(&mut self) -> Option<(u16, u64)> {
        match self {
            Self::Listed { sorted, next } => {
                let bucket = *sorted.get(*next)?;
                let same = sorted[*next..].iter().take_while(|&&other| other == bucket).count();
                *next += same;
                Some((bucket, same as u64))
            }
            Self::Paged { pages, next } => loop {
                let entry = *next / PAGE;
                let Some(place) = usize::from(*pages.directory.get(entry)?).checked_sub(1) else {
                    *next = (entry + 1) * PAGE;
                    continue;
                };
                let (page, offset) = (pages.first + entry as u16, *next % PAGE);
                *next += 1;
                match pages.count(page, place, offset) {
                    0 => {}
                    count => return Some((page * PAGE as u16 + offset as u16, count)),
                }
            },
        }
    }
}
