//! The first reading of a dump: where the events of each core are, and which programs cores can run.
//!
//! ```text
//! file    # Start │ # Core 0 │ events │ # Core 1 │ events │ # Start │ # Core 0 │ events …
//!                              └──┬──┘                                └──┬──┘
//! core 0                       chunks, each a packet                   chunks
//! ```
//!
//! A chunk says how many bytes its packet has, so that it is made when it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kymo_source::{ByteSource, ImportProblems, SourceError};

use super::classes::{DumpArgument, DumpClasses, NO_SUBSYSTEM, RECEIVE, SEND};
use super::line::{CORES_MAX, DumpLine, DumpRecord, event_at, length_before};
use super::lines::{LineReader, WholeLines};
use crate::chunks::{ChunkFacts, ImportChunks};

/// Cycles by which a core's clock may step back between two dumps: interrupts come between reading the clock and
/// taking a place. A clock that steps back further was started anew.
const STEP_MAX: u64 = 1 << 20;

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct DumpIndex {
    /// Between two of them, the machine was started anew.
    pub(super) boots: Vec<Boot>,
    /// For each section of a core, the programs that it can run: by the last 32 bits of their DCB.
    pub(super) tables: Vec<HashMap<u32, DumpApplication>>,
    pub(super) problems: ImportProblems,
    /// Lines that are no part of a dump, and where the first one is.
    pub(super) other_lines: u64,
    pub(super) first_other_line: u64,
    /// The first section of a core that begins as an earlier one, and how many there are.
    pub(super) repeated: Option<RepeatedSection>,
    pub(super) repeated_count: u64,
    /// Events of subsystems without a name.
    pub(super) unnamed: u64,
    /// Whether it has lines that are written since 2013.
    pub(super) is_current: bool,
    pub(super) is_simulated: bool,
}

/// Events of a core that are in the file a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedSection {
    pub(super) core: u32,
    /// The line of its first event, and that of the first event of the earlier section.
    pub(super) line: u64,
    pub(super) first: u64,
}

/// The dumps between two starts of a machine.
#[derive(Debug, Default)]
pub(super) struct Boot {
    pub(super) dumps: Vec<DumpHead>,
    pub(super) cores: BTreeMap<u32, CoreIndex>,
    /// Whether messages are numbered: the last 16 bits of a record.
    pub(super) has_sequences: bool,
}

/// The first line of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DumpHead {
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) stop: u64,
}

/// The events of a core.
#[derive(Debug, Default)]
pub(super) struct CoreIndex {
    pub(super) chunks: ImportChunks<DumpFacts>,
    /// DCBs that it switches to, whether or not a table has them.
    pub(super) dcbs: BTreeSet<u32>,
    pub(super) offsets: BTreeSet<i64>,
    /// Whether its last section has as many events as fit into the core's memory, and how many before it do.
    pub(super) is_full: bool,
    pub(super) full_before: u64,
    /// Its events that could not be read, and how many of them packets tell.
    lost: u64,
    lost_told: u64,
    /// Later events may be missing: those behind its last one cannot be read.
    pub(super) is_cut: bool,
    running: RunningDispatcher,
    recent: RecentDcbs,
}

/// DCBs that are in [`CoreIndex::dcbs`] for sure: each switch would ask.
#[derive(Debug)]
struct RecentDcbs([u32; 64]);

impl Default for RecentDcbs {
    fn default() -> Self {
        Self([0; 64])
    }
}

/// A program that a core can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpApplication {
    pub(super) dcb: u64,
    pub(super) name: Vec<u8>,
}

/// The dispatcher that a core runs, since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunningDispatcher {
    pub(super) dcb: Option<u32>,
    since: u64,
}

/// Facts that reading events of a core needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DumpFacts {
    /// The dispatcher that the core runs before them.
    pub(super) running: Option<u32>,
    /// Added to times.
    pub(super) shift: i64,
    /// Of [`DumpIndex::tables`].
    pub(super) table: usize,
    /// Events of the core that could not be read so far.
    pub(super) lost: u64,
    /// The first event behind such ones has a packet of its own, so that it is known where they are missing.
    is_behind_lost: bool,
}

impl ChunkFacts for DumpFacts {
    fn go_on(&self, later: &Self) -> bool {
        let of = |facts: &Self| (facts.shift, facts.table, facts.lost, facts.is_behind_lost);
        of(self) == of(later)
    }
}

impl CoreIndex {
    fn runs(&mut self, dcb: u32) {
        // Kernels put them in blocks of 512 bytes.
        let recent = &mut self.recent.0[(dcb >> 9) as usize % 64];
        if *recent != dcb || dcb == 0 {
            *recent = dcb;
            self.dcbs.insert(dcb);
        }
    }
}

impl RunningDispatcher {
    /// At a switch. Of two at the same time, the later one in the file counts.
    pub(super) fn switch(&mut self, time: u64, dcb: u32) {
        if time >= self.since {
            *self = Self { dcb: Some(dcb), since: time };
        }
    }
}

/// A time of an event, on the clock of the whole file.
#[inline]
pub(super) fn shifted(time: u64, shift: i64) -> u64 {
    time.saturating_add_signed(shift)
}

/// Reads a whole file.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn read(file: &ByteSource, classes: &DumpClasses) -> Result<DumpIndex, SourceError> {
    let mut reading = DumpReading::new(classes);
    let mut lines = LineReader::new(file, 0..u64::MAX);
    while let Some(WholeLines { bytes, at, skipped }) = lines.next()? {
        reading.skip(skipped);
        let mut place = 0;
        while place < bytes.len() {
            reading.line += 1;
            let rest = &bytes[place..];
            if let Some((event, length)) = event_at(rest) {
                reading.event(event, at + place as u64, length);
                place += length;
                continue;
            }
            let length = memchr::memchr(b'\n', rest);
            let line = &rest[..length.unwrap_or(rest.len())];
            reading.line(line, at + place as u64, length.is_some());
            place += line.len() + 1;
        }
    }
    Ok(reading.end(lines.end()))
}

/// The state of the first reading.
struct DumpReading<'c> {
    classes: &'c DumpClasses,
    index: DumpIndex,
    /// Those of the last boot.
    cores: Vec<(u32, CoreIndex)>,
    line: u64,
    /// The dump that lines are of; `None`: no line said so.
    dump: Option<DumpHead>,
    /// Whether the dump is one of the boot's.
    is_counted: bool,
    /// The cores of the dump. A simulator writes events of several cores in turn.
    sections: Vec<(u32, CoreSection)>,
    /// Where the last one that was asked for is among them.
    last: usize,
    /// For each core and digest of a section's first events, the line of the first one.
    begins: HashMap<(u32, u64), u64>,
    /// Events that could not be read, of cores without an event so far.
    lost_before: HashMap<u32, u64>,
    /// Bytes of the file, behind which a dump ends that a network announced, and the line where it begins.
    promised: Option<(u64, u64)>,
}

/// The events of a core in a dump.
#[derive(Clone, Copy, Debug, Default)]
struct CoreSection {
    offset: i64,
    /// Added to times: the offset, and how much later than the first one the dump began.
    shift: i64,
    table: usize,
    events: u64,
    applications: u64,
    /// Its place in [`DumpReading::cores`], from its first event on.
    place: usize,
    /// Whether a line `# Core` began it.
    has_head: bool,
    /// The line of its first event, and a digest of its first events.
    line: u64,
    digest: u64,
}

/// Sections of a core that begin with so many equal events are dumps of the same memory.
const EQUAL_EVENTS: u64 = 8;

impl CoreSection {
    /// One of its first events; digests are those of the multiplication of `FNV-1a`, by words.
    fn add_first(&mut self, event: DumpRecord, line: u64) {
        if self.events == 1 {
            self.line = line;
        }
        for word in [shifted(event.time, self.shift), event.raw] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        }
    }
}

impl<'c> DumpReading<'c> {
    fn new(classes: &'c DumpClasses) -> Self {
        Self {
            classes,
            index: DumpIndex::default(),
            cores: Vec::new(),
            line: 0,
            dump: None,
            is_counted: false,
            sections: Vec::new(),
            last: 0,
            begins: HashMap::new(),
            lost_before: HashMap::new(),
            promised: None,
        }
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        let line = self.line;
        self.index.problems.push(|| format!("line {line}: {}", what()));
    }

    fn line(&mut self, line: &[u8], at: u64, is_whole: bool) {
        match DumpLine::of(line) {
            DumpLine::Event(event) if !is_whole => {
                self.problem(|| "the file ends in this event, which may be cut and is left out".to_owned());
                self.lose(Some(event.core));
            }
            DumpLine::Event(event) => self.event(event, at, line.len() + 1),
            DumpLine::Start { start, duration, stop, before } => {
                self.start(DumpHead { start, duration, stop }, before, at);
            }
            DumpLine::MinTimestamp => self.index.is_current = true,
            DumpLine::Core(core) => {
                // Cores ascend in a dump, so that another dump begins without a line for it.
                if self.sections.iter().any(|(known, _)| *known == core) {
                    self.begin_dump(None);
                }
                self.section(core).has_head = true;
            }
            DumpLine::Offset { core, cycles } => {
                self.index.is_current = true;
                let section = self.section(core);
                (section.offset, section.shift) = (cycles, cycles);
            }
            DumpLine::DumpApplication { core, dcb, name } => {
                let section = self.section(core);
                section.applications += 1;
                let (table, application) = (section.table, DumpApplication { dcb, name: name.to_owned() });
                self.index.tables[table].insert(dcb as u32, application);
            }
            DumpLine::Simulated => self.index.is_simulated = true,
            DumpLine::Other if line.trim_ascii().is_empty() || line.starts_with(b"#") => {}
            DumpLine::Other => self.other(),
            DumpLine::Broken { expected } => {
                let found = String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().to_owned();
                self.problem(|| format!("expected {expected}, found `{found}`"));
                let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits > 0 {
                    let core = std::str::from_utf8(&line[..digits]).ok().and_then(|core| core.parse().ok());
                    self.lose(core.filter(|core| *core < CORES_MAX));
                }
            }
        }
    }

    /// An event cannot be read: of a core, or of the one that events are of here.
    fn lose(&mut self, core: Option<u32>) {
        let Some(core) = core.or_else(|| self.sections.get(self.last).map(|(core, _)| *core)) else { return };
        match self.cores.iter_mut().find(|(known, _)| *known == core) {
            Some((_, index)) => index.lost += 1,
            None => *self.lost_before.entry(core).or_default() += 1,
        }
    }

    /// Lines that are too long.
    fn skip(&mut self, count: u64) {
        for _ in 0..count {
            self.line += 1;
            self.other();
        }
    }

    /// A line that is no part of a dump.
    fn other(&mut self) {
        self.index.other_lines += 1;
        if self.index.other_lines == 1 {
            self.index.first_other_line = self.line;
        }
    }

    /// At a dump's first line.
    fn start(&mut self, head: DumpHead, before: &[u8], at: u64) {
        self.check_promise(at);
        self.promised = length_before(before).map(|length| {
            let begin = at + before.len() as u64;
            (begin.saturating_add(length), self.line)
        });
        self.begin_dump(Some(head));
    }

    /// Whether the dump before byte `end` is as long as a network announced.
    fn check_promise(&mut self, end: u64) {
        let Some((promised, line)) = self.promised.take().filter(|(promised, _)| *promised > end) else { return };
        let missing = promised - end;
        self.lose(None);
        self.problem(|| {
            format!("the dump that begins in line {line} ends here, {missing} bytes before the end that it announces")
        });
    }

    fn begin_dump(&mut self, head: Option<DumpHead>) {
        self.end_sections();
        self.dump = head;
        self.is_counted = false;
    }

    /// The section of a core in this dump.
    #[inline]
    fn section(&mut self, core: u32) -> &mut CoreSection {
        let number = self.section_number(core);
        &mut self.sections[number].1
    }

    #[inline]
    fn section_number(&mut self, core: u32) -> usize {
        if self.sections.get(self.last).is_none_or(|(known, _)| *known != core) {
            self.last = self.find_section(core);
        }
        self.last
    }

    #[cold]
    fn find_section(&mut self, core: u32) -> usize {
        let known = self.sections.iter().position(|(known, _)| *known == core);
        known.unwrap_or_else(|| {
            let table = self.index.tables.len();
            self.index.tables.push(HashMap::new());
            self.sections.push((core, CoreSection { table, ..CoreSection::default() }));
            self.sections.len() - 1
        })
    }

    fn end_sections(&mut self) {
        for (core, section) in std::mem::take(&mut self.sections) {
            self.compare(core, &section, (1..EQUAL_EVENTS).contains(&section.events));
            if section.events > 0 {
                let (_, core) = &mut self.cores[section.place];
                core.full_before += u64::from(core.is_full);
                core.is_full = section.has_head && is_full(&section, self.index.is_current);
            }
        }
    }

    /// Whether a core's section begins as an earlier one in the file, when its first events are known.
    fn compare(&mut self, core: u32, section: &CoreSection, is_known: bool) {
        if is_known {
            let first = *self.begins.entry((core, section.digest)).or_insert(section.line);
            if first != section.line {
                self.index.repeated.get_or_insert(RepeatedSection { core, line: section.line, first });
                self.index.repeated_count += 1;
            }
        }
    }

    #[inline]
    fn event(&mut self, event: DumpRecord, at: u64, length: usize) {
        let number = self.section_number(event.core);
        if self.sections[number].1.events == 0 {
            let section = self.sections[number].1;
            let (shift, place) = self.first_event(event, &section);
            (self.sections[number].1.shift, self.sections[number].1.place) = (shift, place);
        }
        let section = &mut self.sections[number].1;
        section.events += 1;
        if section.events <= EQUAL_EVENTS {
            section.add_first(event, self.line);
            let section = *section;
            self.compare(event.core, &section, section.events == EQUAL_EVENTS);
        }
        let section = &self.sections[number].1;
        let (shift, table) = (section.shift, section.table);
        let (_, core) = &mut self.cores[section.place];
        let time = shifted(event.time, shift);
        let class = self.classes.of(event.raw);
        if (class == SEND || class == RECEIVE) && event.raw & 0xFFF != 0 {
            self.index.boots.last_mut().expect("the first event begins one").has_sequences = true;
        }
        self.index.unnamed += u64::from(class == NO_SUBSYSTEM);
        let (place, bytes) = (at..at + length as u64, u64::from(self.classes.sizes[class as usize]));
        let is_behind_lost = core.lost != core.lost_told && !core.chunks.list.is_empty();
        core.lost_told = core.lost;
        let facts = DumpFacts { running: core.running.dcb, shift, table, lost: core.lost, is_behind_lost };
        core.chunks.add(time, place, bytes, facts);
        match self.classes.argument(class) {
            DumpArgument::Switch => {
                core.running.switch(time, event.raw as u32);
                core.runs(event.raw as u32);
            }
            DumpArgument::RunDispatcher => core.runs(event.raw as u32),
            _ => {}
        }
    }

    /// At the first event of a core in a dump; returns the shift of its times, and the place of the core.
    #[cold]
    fn first_event(&mut self, event: DumpRecord, section: &CoreSection) -> (i64, usize) {
        let steps_back = |(_, core): &(u32, CoreIndex)| {
            let time = shifted(event.time, section.offset);
            core.chunks.latest.saturating_sub(time) > STEP_MAX
        };
        let begun_anew = section.has_head
            && !self.is_counted
            && self.index.is_current
            && self.cores.iter().find(|(known, _)| *known == event.core).is_some_and(steps_back);
        if begun_anew || self.index.boots.is_empty() || self.legacy_boot() {
            self.end_boot();
            self.index.boots.push(Boot::default());
        }
        let boot = self.index.boots.last_mut().expect("there is one");
        if !std::mem::replace(&mut self.is_counted, true) {
            boot.dumps.extend(self.dump);
        }
        let known = self.cores.iter().position(|(known, _)| *known == event.core);
        let place = known.unwrap_or_else(|| {
            let lost = self.lost_before.remove(&event.core).unwrap_or(0);
            self.cores.push((event.core, CoreIndex { lost, ..CoreIndex::default() }));
            self.cores.len() - 1
        });
        self.cores[place].1.offsets.insert(section.offset);
        // Before 2013, times count from the start of their dump.
        let later = match (boot.dumps.first(), self.dump) {
            (Some(first), Some(this)) if !self.index.is_current => this.start.wrapping_sub(first.start) as i64,
            _ => 0,
        };
        (section.offset.wrapping_add(later), place)
    }

    /// Gives the last boot its cores.
    fn end_boot(&mut self) {
        if let Some(boot) = self.index.boots.last_mut() {
            self.cores.iter_mut().for_each(|(_, core)| core.is_cut = core.lost != core.lost_told);
            boot.cores = std::mem::take(&mut self.cores).into_iter().collect();
        }
    }

    /// Whether a dump with times from its start on began before the last one did.
    fn legacy_boot(&self) -> bool {
        let last = self.index.boots.last().and_then(|boot| boot.dumps.last());
        let is_before = last.zip(self.dump).is_some_and(|(last, this)| this.start < last.start);
        !self.index.is_current && !self.is_counted && is_before
    }

    fn end(mut self, file_bytes: u64) -> DumpIndex {
        self.end_sections();
        self.end_boot();
        self.line += 1;
        self.check_promise(file_bytes);
        // A dump without an event is one all the same.
        if let (Some(head), false) = (self.dump, self.is_counted) {
            if self.index.boots.is_empty() {
                self.index.boots.push(Boot::default());
            }
            self.index.boots.last_mut().expect("there is one").dumps.push(head);
        }
        self.index
    }
}

/// Whether a core's memory had no room for more: its sizes changed over the years. Before 2013 its records of programs
/// were in it too.
fn is_full(section: &CoreSection, is_current: bool) -> bool {
    const SIZES: [u64; 4] = [3000, 8000, 20_000, 30_000];
    match is_current {
        true => SIZES.iter().any(|size| section.events == size - 2),
        false => SIZES.iter().any(|size| (size - 2..=*size).contains(&(section.events + section.applications))),
    }
}
