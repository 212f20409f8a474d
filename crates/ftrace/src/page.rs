//! Pages of a ring buffer: the records in them, and when they were written.
//!
//! ```text
//! 0          8        16                                                       page size
//! timestamp  commit   ┌ type_len 5, time_delta 27 ┬ record ┐ ... ┌ lost events, if there is room for them
//!            └ bytes of records; bits 30 and 31: events were lost before this page, how many is behind the records
//! ```

/// Bits of `commit`: events were lost before the page; their number is behind the records.
const LOST: u64 = 1 << 31;
const LOST_STORED: u64 = 1 << 30;
/// Kinds of entries that are no records.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that an absolute stamp has.
const STAMP_BITS: u32 = 59;
const DELTA_BITS: u32 = 27;

/// Where parts of pages are, as the kernel's `header_page` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Bytes of `commit`: 4 or 8.
    pub commit_bytes: u32,
    /// Where records begin.
    pub data: u32,
}

impl Default for PageLayout {
    /// That of 64-bit kernels.
    fn default() -> Self {
        Self { commit_bytes: 8, data: 16 }
    }
}

/// A page is not as the kernel writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageProblem {
    /// There is no description of pages.
    #[error("`header_page` does not describe pages")]
    Layout,
    /// Fewer bytes than a page's head.
    #[error("a page of {bytes} bytes has no head")]
    Short {
        /// How many.
        bytes: usize,
    },
    /// It says that it has more records than fit.
    #[error("a page of {bytes} bytes says that it has {told} bytes of records")]
    Commit {
        /// Bytes of the page.
        bytes: usize,
        /// Bytes of records.
        told: u64,
    },
    /// A record goes beyond the others.
    #[error("the record at byte {at} of a page goes beyond its end")]
    Record {
        /// Where it begins, from the first record on.
        at: usize,
    },
}

/// Events that were lost before a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostBefore {
    /// None.
    #[default]
    None,
    /// So many.
    Known(u64),
    /// At least one.
    Some,
}

/// A page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Ticks when it begins.
    pub begin: u64,
    /// Events that were lost before it.
    pub lost: LostBefore,
    records: &'a [u8],
}

/// A record: an event's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRecord<'a> {
    /// Ticks of the event.
    pub ticks: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl PageLayout {
    /// Reads `header_page`.
    ///
    /// # Errors
    ///
    /// It does not tell where records begin.
    pub fn parse(text: &str) -> Result<Self, PageProblem> {
        let fields = text.lines().filter_map(|line| line.trim_start().strip_prefix("field:"));
        let fields: Vec<_> = fields.filter_map(|field| crate::format::FormatField::parse(field).ok()).collect();
        let of = |name: &str| fields.iter().find(|field| field.name == name);
        match (of("timestamp"), of("commit"), of("data")) {
            (Some(time), Some(commit), Some(data))
                if time.offset == 0
                    && commit.offset == 8
                    && matches!(commit.size, 4 | 8)
                    && data.offset >= 8 + commit.size =>
            {
                Ok(Self { commit_bytes: commit.size, data: data.offset })
            }
            _ => Err(PageProblem::Layout),
        }
    }
}

impl<'a> Page<'a> {
    /// Reads a page's head.
    ///
    /// # Errors
    ///
    /// It has none, or too many records.
    pub fn read(layout: PageLayout, page: &'a [u8]) -> Result<Self, PageProblem> {
        let bytes = page.len();
        let short = PageProblem::Short { bytes };
        let begin = number(page, 0).ok_or(short)?;
        let commit = match layout.commit_bytes {
            4 => number32(page, 8).map(u64::from).ok_or(short)?,
            _ => number(page, 8).ok_or(short)?,
        };
        let told = commit & (LOST_STORED - 1);
        let data = page.get(layout.data as usize..).ok_or(short)?;
        let records = usize::try_from(told).ok().and_then(|told| data.get(..told));
        let records = records.ok_or(PageProblem::Commit { bytes, told })?;
        let stored = if layout.commit_bytes == 4 {
            number32(data, records.len()).map(u64::from)
        } else {
            number(data, records.len())
        };
        let lost = match (commit & LOST != 0, commit & LOST_STORED != 0, stored) {
            (false, ..) => LostBefore::None,
            (true, true, Some(count)) => LostBefore::Known(count),
            (true, ..) => LostBefore::Some,
        };
        Ok(Self { begin, lost, records })
    }

    /// Bytes of records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// The records, in the order of time.
    #[must_use]
    pub fn records(&self) -> PageRecords<'a> {
        PageRecords { bytes: self.records, at: 0, ticks: self.begin }
    }
}

/// Records of a page. It ends at the first that goes beyond the others.
#[derive(Clone, Debug)]
pub struct PageRecords<'a> {
    bytes: &'a [u8],
    at: usize,
    ticks: u64,
}

impl<'a> Iterator for PageRecords<'a> {
    type Item = Result<PageRecord<'a>, PageProblem>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Each turn moves on by at least 4 bytes.
        while self.at < self.bytes.len() {
            let at = self.at;
            match self.step() {
                Some(Some(record)) => return Some(Ok(record)),
                Some(None) => {}
                None => {
                    self.at = self.bytes.len();
                    return Some(Err(PageProblem::Record { at }));
                }
            }
        }
        None
    }
}

impl<'a> PageRecords<'a> {
    /// The next entry; `Some(None)`: it is no record. `None`: it goes beyond the end.
    #[inline]
    fn step(&mut self) -> Option<Option<PageRecord<'a>>> {
        let head = number32(self.bytes, self.at)?;
        let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
        let length = match kind {
            TIME_EXTEND | TIME_STAMP => {
                let more = u64::from(number32(self.bytes, self.at + 4)?);
                self.at += 8;
                let time = (more << DELTA_BITS) + delta;
                self.ticks = if kind == TIME_EXTEND { self.ticks.wrapping_add(time) } else { self.stamped(time) };
                return Some(None);
            }
            PADDING if delta == 0 => {
                // Nothing is behind it.
                self.at = self.bytes.len();
                return Some(None);
            }
            PADDING => {
                // An event that was discarded while it was written.
                let length = number32(self.bytes, self.at + 4)? as usize;
                self.ticks = self.ticks.wrapping_add(delta);
                self.at = self.at.checked_add(4)?.checked_add(length.max(4))?;
                return Some(None);
            }
            0 => (number32(self.bytes, self.at + 4)? as usize).checked_sub(4)?,
            words => 4 * words as usize,
        };
        let begin = self.at + if kind == 0 { 8 } else { 4 };
        let end = begin.checked_add(length)?;
        let bytes = self.bytes.get(begin..end)?;
        self.ticks = self.ticks.wrapping_add(delta);
        self.at = begin + length.next_multiple_of(4);
        Some(Some(PageRecord { ticks: self.ticks, bytes }))
    }

    /// A stamp has the lower bits of a time, which does not step back.
    fn stamped(&self, stamp: u64) -> u64 {
        let upper = self.ticks >> STAMP_BITS << STAMP_BITS;
        let time = upper | (stamp & ((1 << STAMP_BITS) - 1));
        if time < self.ticks { time.wrapping_add(1 << STAMP_BITS) } else { time }
    }
}

#[inline]
fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[inline]
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these entries.
    fn page(begin: u64, flags: u64, entries: &[&[u8]], behind: &[u8]) -> Vec<u8> {
        let records = entries.concat();
        let mut page = begin.to_le_bytes().to_vec();
        page.extend((records.len() as u64 | flags).to_le_bytes());
        page.extend(records);
        page.extend(behind);
        page.resize(4096, 0);
        page
    }

    fn entry(kind: u32, delta: u32, rest: &[u8]) -> Vec<u8> {
        [&(kind | delta << 5).to_le_bytes(), rest].concat()
    }

    #[test]
    fn times_of_all_kinds_of_entries() {
        let long = [&(4 + 130_u32).to_le_bytes()[..], &[7; 132]].concat();
        let bytes = page(
            1 << STAMP_BITS | 1000,
            LOST | LOST_STORED,
            &[
                &entry(2, 5, &[1; 8]),
                &entry(TIME_EXTEND, 1, &3_u32.to_le_bytes()),
                &entry(1, 2, &[2; 4]),
                // Discarded: 8 bytes of it.
                &entry(PADDING, 4, &[8_u32.to_le_bytes(), [0; 4]].concat()),
                &entry(0, 10, &long),
                &entry(TIME_STAMP, 9, &(1_u32 << 31).to_le_bytes()),
                &entry(1, 0, &[3; 4]),
                &entry(TIME_STAMP, 1, &0_u32.to_le_bytes()),
                &entry(1, 0, &[4; 4]),
            ],
            &77_u64.to_le_bytes(),
        );
        let page = Page::read(PageLayout::default(), &bytes).expect("it is one");
        assert_eq!(page.lost, LostBefore::Known(77));
        let records: Vec<_> = page.records().map(|record| record.expect("they fit")).collect();
        let base = 1 << STAMP_BITS | 1000;
        let extended = base + 5 + 1 + (3 << 27);
        let times = [base + 5, extended + 2, extended + 16, 1 << STAMP_BITS | ((1 << 58) + 9), (2 << STAMP_BITS) + 1];
        assert_eq!(records.iter().map(|record| record.ticks).collect::<Vec<_>>(), times);
        assert_eq!(records.iter().map(|record| record.bytes.len()).collect::<Vec<_>>(), [8, 4, 130, 4, 4]);
    }

    #[test]
    fn damage_is_told_and_what_is_before_it_is_read() {
        let bytes = page(0, 0, &[&entry(1, 1, &[1; 4]), &entry(28, 1, &[0; 8])], &[]);
        let page = Page::read(PageLayout::default(), &bytes).expect("its head is one");
        let records: Vec<_> = page.records().collect();
        assert_eq!(records[1..], [Err(PageProblem::Record { at: 8 })]);
        assert!(records[0].is_ok());
        assert_eq!(Page::read(PageLayout::default(), &bytes[..12]).unwrap_err(), PageProblem::Short { bytes: 12 });
        let long = Page::read(PageLayout::default(), &bytes[..20]).unwrap_err();
        assert_eq!(long, PageProblem::Commit { bytes: 20, told: 20 });
    }

    #[test]
    fn pages_are_as_the_kernel_describes_them() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(PageLayout::parse(text), Ok(PageLayout::default()));
        assert_eq!(PageLayout::parse(""), Err(PageProblem::Layout));
    }
}
