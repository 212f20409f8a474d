//! Traces as a few lines of text, for the cases of analyses, and cuts of them.
//!
//! ```text
//! lane cpu=0 span=0..1000                          lanes come first; `hole=200..300` and `lost=5` where events are lost
//! 10 0 thread_switch prev_tid=0 next_tid=5 next_comm=bash          time, lane, role, fields
//! 12 0 syscall_entry syscall=read fd=3 @tid=5                      fields of the context have an `@`
//! 12 0 thread_switch prev_tid=5 next_tid=0 +request=7              what was asked for by path has a `+`, in that order; `?`: absent
//! 13 0 'clock_read'                                                an event of a class that has no role
//! 14 0 end+begin name=phase                                        an event of two roles
//! ```

mod periods;

pub use periods::Sum;

use std::collections::VecDeque;
use std::sync::Arc;

use kymo_analysis::events::EventRows;
use kymo_analysis::roles::{CONTEXT, EventRole, FieldFacts, RoleFieldKind};
use kymo_analysis::{
    Analysis, BoundClass, BoundRole, FieldSlot, LaneFacts, MemorySpool, PartShape, Room, Setup, TracePart, Wishes,
    decode, encode,
};

/// A trace from text.
#[derive(Debug)]
pub struct Script {
    /// The lanes.
    pub lanes: Vec<LaneFacts>,
    /// A class for each event: its fields are the class' own.
    pub classes: Vec<BoundClass>,
    /// Time, lane and class of each event.
    pub events: Vec<(i64, usize, usize)>,
    /// So small that tables put rows aside.
    pub room: Room,
}

impl Script {
    /// Reads the text.
    ///
    /// # Panics
    ///
    /// A line is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let room = Room { spool: Arc::<MemorySpool>::default(), budget_bytes: 1024 };
        let mut script = Self { lanes: Vec::new(), classes: Vec::new(), events: Vec::new(), room };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("lane") {
                Some(rest) => script.lanes.push(lane(rest)),
                None => script.event(line),
            }
        }
        script.events.sort_by_key(|event| (event.0, event.1));
        script
    }

    /// The setup of an analysis.
    #[must_use]
    pub fn setup<'a>(&'a self, wishes: &'a Wishes) -> Setup<'a> {
        let (traces, stacks) = (&[], None);
        Setup { classes: &self.classes, lanes: &self.lanes, wishes, room: Some(&self.room), traces, stacks }
    }

    fn event(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("`{line}` lacks a word"));
        let (time, lane, role) = (number(word()), number(word()) as usize, word());
        assert!(lane < self.lanes.len(), "`{line}` is of a lane that there is not");
        let mut bound: Vec<BoundRole> = Vec::new();
        let mut name: Arc<str> = role.into();
        if let Some(plain) = role.strip_prefix('\'').and_then(|role| role.strip_suffix('\'')) {
            name = plain.into();
        } else {
            for role in role.split('+') {
                let role = EventRole::named(role).unwrap_or_else(|| panic!("`{role}` is no role"));
                bound.push(BoundRole { role, slots: vec![FieldSlot::Absent; role.facts().fields.len()] });
            }
        }
        let mut context: [FieldSlot; CONTEXT.len()] = Default::default();
        let mut extra = Vec::new();
        for field in words {
            let (name, value) = field.split_once('=').unwrap_or_else(|| panic!("`{field}` is no field"));
            if let Some(name) = name.strip_prefix('@') {
                let place = CONTEXT.iter().position(|facts| facts.name == name);
                let place = place.unwrap_or_else(|| panic!("`{name}` is not of the context"));
                context[place] = slot(value, is_text(&CONTEXT[place], value));
            } else if name.starts_with('+') {
                let is_text = value.parse::<i64>().is_err();
                extra.push(if value == "?" { FieldSlot::Absent } else { slot(value, is_text) });
            } else {
                let mut is_known = false;
                for BoundRole { role, slots } in &mut bound {
                    let Some(place) = role.field(name) else { continue };
                    slots[place] = slot(value, is_text(&role.facts().fields[place], value));
                    is_known = true;
                }
                assert!(is_known, "`{line}` has no role with `{name}`");
            }
        }
        self.events.push((time, lane, self.classes.len()));
        self.classes.push(BoundClass { name, roles: bound, is_selected: true, tid_path: None, context, extra });
    }

    /// The answer's state after reading everything as one part.
    pub fn state<A: Analysis>(&self, analysis: &A) -> A::State {
        self.part(analysis, false, |_| true)
    }

    /// The state after reading parts and merging them: cut at these times, merged in the order of
    /// `merges`. Each part goes through its encoded form.
    ///
    /// # Panics
    ///
    /// A state cannot be decoded.
    pub fn cut_state<A: Analysis>(
        &self,
        analysis: &A,
        cuts: &[i64],
        mut merges: impl FnMut(usize) -> usize,
    ) -> A::State {
        let mut parts: Vec<A::State> = match analysis.shape() {
            PartShape::Slice => self.parts(analysis, cuts, merges(2) == 1),
            PartShape::Lane => (0..self.lanes.len())
                .flat_map(|lane| spans(cuts).into_iter().map(move |span| (lane, span)))
                .map(|(lane, span)| self.part(analysis, false, |event| event.1 == lane && is_in(span, event.0)))
                .collect(),
        };
        parts = parts.into_iter().map(|state| self.sent(analysis, &state)).collect();
        if analysis.shape() == PartShape::Slice && merges(2) == 1 {
            analysis.anchor(&mut parts[0]);
        }
        // The remaining merges of the first part, and how much of them was done.
        let (mut later, mut done) = (VecDeque::new(), 0);
        while parts.len() > 1 {
            let at = merges(parts.len() - 1);
            let right = parts.remove(at + 1);
            if at > 0 || later.is_empty() && merges(2) == 1 {
                analysis.merge(&mut parts[at], right);
                continue;
            }
            later.extend(analysis.merge_later(&mut parts[0], right));
            for work in later.iter_mut().skip(done).take(merges(3)) {
                work.run();
                done += 1;
            }
            for work in later.drain(..merges(done + 1)) {
                work.end(&mut parts[0]);
                done -= 1;
            }
        }
        for (number, mut work) in later.into_iter().enumerate() {
            if number >= done {
                work.run();
            }
            work.end(&mut parts[0]);
        }
        parts.pop().expect("there is a part")
    }

    /// The summary of each part, cut at these times; whether the first one is known to be that.
    pub fn parts<A: Analysis>(&self, analysis: &A, cuts: &[i64], is_anchored: bool) -> Vec<A::State> {
        let is_first = |span: (i64, i64)| is_anchored && span.0 == i64::MIN;
        let part = |span| self.part(analysis, is_first(span), |event| is_in(span, event.0));
        spans(cuts).into_iter().map(part).collect()
    }

    /// A state in and out of its encoded form.
    ///
    /// # Panics
    ///
    /// It cannot be decoded.
    pub fn sent<A: Analysis>(&self, analysis: &A, state: &A::State) -> A::State {
        let wishes = Wishes::default();
        let setup = self.setup(&wishes);
        let bytes = encode(analysis, &setup, state).expect("a state can be encoded");
        decode(analysis, &setup, &bytes).expect("what was encoded can be decoded")
    }

    fn part<A: Analysis>(
        &self,
        analysis: &A,
        is_first: bool,
        wants: impl Fn(&(i64, usize, usize)) -> bool,
    ) -> A::State {
        let lanes = self.lanes.len();
        let mut part = if is_first { TracePart::first(analysis, lanes) } else { TracePart::new(analysis, lanes) };
        let mut rows = EventRows::default();
        rows.cells.resize_with(self.classes.len(), Default::default);
        let wanted: Vec<&(i64, usize, usize)> = self.events.iter().filter(|event| wants(event)).collect();
        for lane in 0..self.lanes.len() {
            (rows.times, rows.places) = (Vec::new(), Vec::new());
            for (time, _, class) in wanted.iter().filter(|event| event.1 == lane) {
                rows.times.push(*time);
                rows.places.push((*class as u32, 0));
            }
            (0..rows.times.len()).for_each(|row| part.step(lane, &rows.event(row, &self.classes, &[])));
            part.finish(lane);
        }
        while part.settle() {}
        part.end()
    }

    /// Some times of events, and those behind.
    pub fn random_cuts(&self, random: &mut Random) -> Vec<i64> {
        let mut cuts: Vec<i64> = Vec::new();
        for _ in 0..random.below(6) {
            let event = self.events[random.below(self.events.len())];
            cuts.push(event.0 + random.below(2) as i64);
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// Whether every way of cutting and merging that is tried gives the answer of reading everything as one part.
    ///
    /// # Panics
    ///
    /// It does not.
    pub fn check_cuts<A: Analysis>(&self, analysis: &A, tries: u64) {
        let whole = text(&finish(analysis, &self.state(analysis)));
        for seed in 1..=tries {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let cuts = self.random_cuts(&mut random);
            let state = self.cut_state(analysis, &cuts, |choices| random.below(choices));
            let found = text(&finish(analysis, &state));
            let only = |one: &str, other: &str| -> Vec<String> {
                one.lines().filter(|line| !other.lines().any(|known| known == *line)).map(str::to_owned).collect()
            };
            let (missing, new) = (only(&whole, &found), only(&found, &whole));
            assert!(whole == found, "cut at {cuts:?}: without {missing:#?}, but with {new:#?}");
        }
    }
}

/// From when to when parts are that are cut at these times.
fn spans(cuts: &[i64]) -> Vec<(i64, i64)> {
    let begins = [i64::MIN].into_iter().chain(cuts.iter().copied());
    begins.zip(cuts.iter().copied().chain([i64::MAX])).collect()
}

fn is_in((begin, end): (i64, i64), time: i64) -> bool {
    begin <= time && (time < end || end == i64::MAX)
}

fn finish<A: Analysis>(analysis: &A, state: &A::State) -> kymo_analysis::Answer {
    analysis.finish(state).expect("a spool in memory gives back what it was given")
}

/// Numbers that look random and are the same each time.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below this one; 0 below 0 and 1.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if end == 0 { 0 } else { (self.0 >> 33) as usize % end }
    }
}

/// A script in which threads do anything on one to three CPUs, mostly in a wrong order: it contradicts itself.
#[must_use]
pub fn nonsense(random: &mut Random) -> String {
    let lanes = 1 + random.below(3);
    let mut script = String::new();
    for lane in 0..lanes {
        script += &format!("lane cpu={lane} span=0..3000");
        for hole in 0..random.below(3) {
            let begin = 900 * hole + random.below(800);
            script += &format!(" hole={begin}..{}", begin + 1 + random.below(90));
        }
        script += " lost=?\n";
    }
    let mut time = 0;
    for _ in 0..20 + random.below(80) {
        time += random.below(4) * random.below(30);
        let (lane, tid, other) = (random.below(lanes), random.below(5), random.below(5));
        let (name, pid) = (["a", "b", "c"][random.below(3)], random.below(4));
        let event = match random.below(16) {
            0 => {
                format!("thread_fork child_tid={tid} child_pid={pid} child_comm={name} parent_tid={other} parent_pid=1")
            }
            1 => format!("thread_state known_tid={tid} known_pid={pid} known_comm={name}"),
            2 => format!("thread_rename changed_tid={tid} new_comm={name}"),
            3 => format!("thread_wakeup woken_tid={tid} woken_comm={name} target_cpu={other}"),
            4 => format!("thread_waking woken_tid={tid}"),
            5 => format!("thread_exit exited_tid={tid}"),
            6 => format!("syscall_entry syscall={name} fd={pid}"),
            7 => format!("syscall_exit syscall={name} ret={pid}"),
            8 => format!("page_alloc order={pid}"),
            9 => format!("page_free order={pid} @tid={tid}"),
            _ => {
                let state = [0, 1, 2, 0x10, 0x20, 0x40][random.below(6)];
                format!(
                    "thread_switch prev_tid={tid} prev_state={state} prev_comm={name} next_tid={other} next_comm={name}"
                )
            }
        };
        script += &format!("{time} {lane} {event}\n");
    }
    script
}

fn number(word: &str) -> i64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

fn is_text(field: &FieldFacts, value: &str) -> bool {
    match field.kind {
        RoleFieldKind::Integer | RoleFieldKind::Number => false,
        RoleFieldKind::Text => true,
        RoleFieldKind::Either => value.parse::<i64>().is_err(),
    }
}

fn slot(value: &str, is_text: bool) -> FieldSlot {
    if is_text { FieldSlot::Text(value.as_bytes().into()) } else { FieldSlot::Integer(number(value)) }
}

fn lane(words: &str) -> LaneFacts {
    let mut lane = LaneFacts { lost: Some(0), ..LaneFacts::default() };
    let span = |value: &str| {
        let (begin, end) = value.split_once("..").unwrap_or_else(|| panic!("`{value}` is no span"));
        (number(begin), number(end))
    };
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("host", host)) => lane.host = number(host) as u16,
            Some(("cpu", cpu)) => lane.cpu = Some(number(cpu) as u32),
            Some(("span", value)) => lane.span_ns = Some(span(value)),
            Some(("hole", value)) => lane.holes.add(span(value).0, span(value).1),
            Some(("streams", places)) => lane.streams = places.split(',').map(|place| number(place) as usize).collect(),
            Some(("apart", nanos)) => lane.apart_ns = number(nanos) as u32,
            Some(("lost", "?")) => lane.lost = None,
            Some(("lost", count)) => lane.lost = Some(number(count) as u64),
            Some(("kernel", version)) => {
                let (major, minor) = version.split_once('.').unwrap_or_else(|| panic!("`{version}` is no version"));
                lane.kernel = Some((number(major) as u32, number(minor) as u32));
            }
            _ => panic!("`{word}` says nothing of a lane"),
        }
    }
    lane
}

/// An answer as text: a line for each row.
#[must_use]
pub fn text(answer: &kymo_analysis::Answer) -> String {
    let mut lines = String::new();
    for table in &answer.tables {
        lines += &format!("{}\n", table.class);
        for row in &table.rows {
            let cells = table.columns.iter().zip(row).filter(|(_, cell)| **cell != kymo_analysis::Cell::Empty);
            let cells: Vec<String> =
                cells.map(|(column, cell)| format!("{}={}", column.name, cell_text(cell))).collect();
            lines += &format!("  {}\n", cells.join(" "));
        }
        if table.omitted > 0 {
            lines += &format!("  and {} more\n", table.omitted);
        }
    }
    lines
}

fn cell_text(cell: &kymo_analysis::Cell) -> String {
    use kymo_analysis::Cell::*;
    fn bounded<T: Copy + PartialEq + ToString>(number: kymo_analysis::Bounded<T>) -> String {
        let [value, low, high] = [number.value, number.low, number.high].map(|number| number.to_string());
        if number.is_exact() {
            value
        } else {
            format!("{value}[{low},{}]", high.replace("18446744073709551615", "none"))
        }
    }
    let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    match cell {
        Empty => String::new(),
        Unknown => "?".to_owned(),
        Flag(is) => is.to_string(),
        Count(number) | Duration(number) | Size(number) => bounded(*number),
        Integer(number) | Based(number, _) | Timestamp(number) | Fd(number) => number.to_string(),
        Number(number) => format!("{number:.3}"),
        Ratio(ratio) | Bitrate(ratio) => {
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(|number| format!("{number:.3}"));
            if ratio.is_exact() { value } else { format!("{value}[{low},{high}]") }
        }
        Text(text) | Syscall(text) | Path(text) | Disk(text) | NetworkInterface(text) => format!("`{text}`"),
        TimeRange(begin, end) => {
            format!("{}..{}", or(begin.map(|at| at.to_string())), or(end.map(|at| at.to_string())))
        }
        Process { name, pid, tid } => {
            let number = |number: &Option<i64>| or(number.map(|number| number.to_string()));
            let tid = tid.map_or(String::new(), |tid| format!(" tid {tid}"));
            format!("`{} pid {}{tid}`", or(name.clone()), number(pid))
        }
        Irq { is_hard, number, name } => {
            format!("`{} {number} {}`", if *is_hard { "irq" } else { "softirq" }, or(name.clone()))
        }
        Cpu(cpu) => cpu.to_string(),
    }
}
