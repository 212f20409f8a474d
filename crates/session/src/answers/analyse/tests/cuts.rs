//! Any trace, cut anywhere, into 1 to 64 parts of any length, by 1 to 4 threads, with any question:
//! the answer is that of one part.
//!
//! ```text
//! packets     [      ][   ][            ][    ]
//! by bytes    ├───────┤├───────────────────────┤      where packets begin, as threads cut
//! by time     ├──┤├────────┤├┤├──────┤├────────┤      anywhere, also within packets and between events of one time
//! ```

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use kymo_analysis::declared::AnalysisDeclaration;
use kymo_analysis::{Answer, Cell, Wishes};
use tempfile::TempDir;

use super::{Random, corpus, difference, kinds, made, tiny_trace};
use crate::{
    AnalysisKind, AnalysisOptions, Definitions, OpenOptions, Order, PairsQuestion, PeriodsQuestion, Progress, Session,
};

/// Something of everything that can be declared.
const DECLARATION: &str = r#"
name = "own"

[[pairs]]
name = "served"
begin = "irq_handler_entry"
end = "irq_handler_exit"
key = "irq"

[[operations]]
name = "wait"
key = "tid"
begin = "sched_wakeup*"
step = { event = "sched_switch", key = "prev_tid" }
end = { event = "sched_switch", key = "next_tid" }
early = 30

[[states]]
name = "thread"
key = "tid"
set = [
    { event = "sched_wakeup", to = "woken" },
    { event = "sched_switch", key = "prev_tid", to = "off" },
    { event = "sched_switch", key = "next_tid", to = "on" },
]

[[counters]]
name = "events"
change = { event = "*", add = 1 }

[[counters]]
name = "open"
change = [{ event = "*_entry*", add = 1 }, { event = "*_exit*", add = -1 }, { event = "sched_switch", to = 3 }]
"#;

/// Threads that are woken, as messages to the CPU that runs them; some are received before they are sent.
const FLOWS: &str = r#"
name = "wakeups"

[[send]]
event = "sched_wakeup*"
key = "tid"

[[receive]]
event = "sched_switch"
key = "next_tid"
early = { value = 30 }
"#;

/// The file of a mapping, for all tests of this process.
fn flows() -> PathBuf {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("there is room for a mapping");
        std::fs::write(folder.path().join("flows.toml"), FLOWS).expect("there is room for a mapping");
        folder
    });
    FOLDER.path().join("flows.toml")
}

/// Every analysis, some with several questions, and their names.
fn questions() -> Vec<(&'static str, AnalysisKind)> {
    let pairs = |start: &str, stop: &str, key: &str, group: Option<&str>, is_nested| {
        let words = |word: &str| vec![word.to_owned()];
        let question = PairsQuestion::parse(&words(start), &words(stop), &words(key), group, is_nested);
        ("pairs", AnalysisKind::Pairs(question.expect("the question is right")))
    };
    let words = |word: &str| [word.to_owned()];
    let operations = AnalysisDeclaration::of_operations(
        &words("sched_wakeup*"),
        &[],
        &words("sched_switch"),
        &words("tid=next_tid"),
    );
    let operations = AnalysisKind::Own(operations.expect("the operations are right"));
    // No trace here has the events of a breakdown that names none.
    let named = |name: &str, kind: &AnalysisKind| if name == "breakdown" { operations.clone() } else { kind.clone() };
    let mut questions: Vec<_> = kinds().map(|(name, kind)| (name, named(name, kind))).collect();
    questions.push(pairs("work_begin", "work_end", "key", Some("name"), true));
    questions.push(pairs("irq_handler_entry", "irq_handler_exit", "irq", None, false));
    let of_turns = ["turn.next".to_owned(), "irq".to_owned()];
    let aggregate_by = Some("turn".to_owned());
    questions.push(("periods", AnalysisKind::Periods(PeriodsQuestion::default())));
    let sums = PeriodsQuestion {
        aggregate_by,
        group_by: of_turns.to_vec(),
        order: Order::Hierarchy,
        ..PeriodsQuestion::default()
    };
    questions.push(("periods", AnalysisKind::Periods(sums)));
    let declaration = AnalysisDeclaration::parse(DECLARATION).expect("the declaration is right");
    questions.push(("own", AnalysisKind::Own(declaration)));
    questions
}

/// A session with parts that are cut at random.
struct Cutter<'a> {
    session: Session,
    path: &'a Path,
    /// Begins and ends of packets, in nanoseconds.
    edges: Vec<i64>,
    bytes: u64,
}

impl<'a> Cutter<'a> {
    /// A trace, if it can be opened.
    fn open(path: &'a Path) -> Option<Self> {
        let options = OpenOptions { threads: 1, ..OpenOptions::default() };
        let session = Session::open(&[path.to_path_buf()], &options).ok()?;
        let (mut edges, mut bytes) = (Vec::new(), 0);
        for (_, stream) in session.streams() {
            for packet in stream.packets.range(0..stream.packets.len()) {
                bytes += packet.total_bits / 8;
                let times = [packet.begin_cycles, packet.end_cycles].into_iter().flatten();
                edges.extend(times.filter_map(|cycles| stream.clock?.nanos(cycles)));
            }
        }
        edges.sort_unstable();
        Some(Self { session, path, edges, bytes })
    }

    fn time(&self, random: &mut Random) -> i64 {
        let (Some(first), Some(last)) = (self.edges.first(), self.edges.last()) else { return 0 };
        match random.below(3) {
            0 => self.edges[random.below(self.edges.len())].saturating_add(random.below(2) as i64),
            _ => first.saturating_add_unsigned(random.below(last.abs_diff(*first).max(1) as usize) as u64),
        }
    }

    /// All questions.
    fn options(&self, kind: &AnalysisKind, random: &mut Random) -> AnalysisOptions {
        let span_ns = self.edges.first().zip(self.edges.last()).map_or(0, |(first, last)| last.abs_diff(*first));
        let mut sometimes = |one_in: usize| random.below(one_in) == 0;
        let mut wishes = Wishes { top: sometimes(4).then_some(3), ..Wishes::default() };
        // Few periods are read each by itself, many in runs.
        let count = if sometimes(2) { 7 } else { 99 };
        wishes.period_ns = sometimes(3).then_some(span_ns / count + 1);
        wishes.min_ns = sometimes(5).then_some(20);
        let is_between = sometimes(4);
        let is_of_periods = matches!(kind, AnalysisKind::Periods(_));
        let periods = (sometimes(6) || is_of_periods).then(|| {
            let definitions = [
                "turn : sched_switch if next_tid % 16 == 3",
                "served(turn) : irq_handler_entry : irq_handler_exit if irq == $begin.irq",
            ];
            let captures = ["served : irq=irq, name=name : ret=ret", "turn : : next=next_tid"].map(str::to_owned);
            Definitions::parse(&definitions.map(str::to_owned), &captures).expect("the definitions are right")
        });
        let is_of_flows = kind.looked_for().is_some_and(|roles| roles.contains("`send`"));
        let roles = is_of_flows.then(flows);
        let mut options = AnalysisOptions { wishes, periods, roles, ..AnalysisOptions::default() };
        if is_between {
            let (one, other) = (self.time(random), self.time(random));
            (options.begin_ns, options.end_ns) = (Some(one.min(other)), Some(one.max(other)));
        }
        options
    }

    /// Asks for everything as one part, and cut; `None`: there is no answer.
    fn check(&mut self, (name, kind): &(&str, AnalysisKind), seed: u64) -> Option<Result<(), String>> {
        let random = &mut Random(seed);
        let options = self.options(kind, random);
        (self.session.threads, self.session.slice_bytes, self.session.cuts_ns) = (1, None, Vec::new());
        let whole = self.session.ask(kind, &options, &Progress::default()).ok()?;
        let parts = 1 + random.below(64);
        let by_bytes = if random.below(2) == 0 { 1 } else { parts };
        let mut cuts: Vec<i64> = (by_bytes..parts).map(|_| self.time(random)).collect();
        cuts.sort_unstable();
        self.session.threads = 1 + random.below(4);
        self.session.slice_bytes = Some(self.bytes / by_bytes as u64 + 1);
        self.session.cuts_ns = cuts;
        let cut = self.session.ask(kind, &options, &Progress::default()).expect("it was answered before");
        if cut.answer == whole.answer || is_open(name, &cut.answer, &whole.answer) {
            return Some(Ok(()));
        }
        let Session { threads, slice_bytes, cuts_ns, .. } = &self.session;
        Some(Err(format!(
            "{}, {name}, seed {seed}: {parts} parts, {threads} threads, {slice_bytes:?} bytes, cut at {cuts_ns:?}, \
             {options:?}: {}",
            self.path.display(),
            difference(&whole.answer, &cut.answer)
        )))
    }
}

/// Whether answers only differ in known faults: where a loss hides the running thread, `syscalls`
/// and `io` may know a thread by another of its names.
fn is_open(name: &str, cut: &Answer, whole: &Answer) -> bool {
    let without_names = |answer: &Answer| {
        let mut answer = answer.clone();
        for cell in answer.tables.iter_mut().flat_map(|table| table.rows.iter_mut().flatten()) {
            if let Cell::Process { name, .. } = cell {
                *name = None;
            }
        }
        answer
    };
    matches!(name, "syscalls" | "io") && without_names(cut) == without_names(whole)
}

/// Number of answers to each question, and the differences.
struct Tally {
    answered: Vec<u64>,
    wrong: Vec<(usize, String)>,
}

impl Tally {
    fn new(questions: usize) -> Self {
        Self { answered: vec![0; questions], wrong: Vec::new() }
    }

    fn add(&mut self, question: usize, checked: Option<Result<(), String>>) {
        self.answered[question] += u64::from(checked.is_some());
        self.wrong.extend(checked.and_then(Result::err).map(|wrong| (question, wrong)));
    }

    /// Whether all was right: one thing that was wrong for each question.
    fn assert(mut self, least: u64) {
        let all = self.wrong.len();
        self.wrong.sort_by_key(|wrong| wrong.0);
        self.wrong.dedup_by_key(|wrong| wrong.0);
        let shown: Vec<&str> = self.wrong.iter().map(|wrong| wrong.1.as_str()).collect();
        assert!(shown.is_empty(), "{all} answers depend on cuts, such as:\n{}", shown.join("\n\n"));
        assert!(self.answered.iter().all(|&answered| answered >= least), "{:?}", self.answered);
    }
}

/// Asks every question of traces that are made, cut in three ways.
fn check_made(questions: &[(&str, AnalysisKind)], make: impl Fn(&mut Random) -> Vec<tiny_trace::Packet>) {
    let mut tally = Tally::new(questions.len());
    for number in 0..40 {
        let folder = tempfile::tempdir().expect("there is room for a tiny trace");
        tiny_trace::write(folder.path(), &make(&mut Random(number)));
        let mut cutter = Cutter::open(folder.path()).expect("the trace can be opened");
        for (place, question) in questions.iter().enumerate() {
            for attempt in 0..3 {
                tally.add(place, cutter.check(question, number * 1000 + place as u64 * 10 + attempt));
            }
        }
    }
    tally.assert(80);
}

#[test]
fn made_schedules_with_losses_say_the_same_wherever_they_are_cut() {
    check_made(&questions(), made::schedule);
}

/// Tables of threads are omitted: in a trace full of contradictions, running threads are a matter
/// of taste.
#[test]
fn nonsense_says_the_same_wherever_it_is_cut() {
    let mut questions = questions();
    questions.retain(|(name, _)| !matches!(*name, "cpu" | "syscalls" | "io" | "sched"));
    check_made(&questions, made::nonsense);
}

/// Every question that not every trace can answer, and some of the others for each trace.
#[test]
fn the_corpus_says_the_same_wherever_it_is_cut() {
    let (traces, questions) = (corpus(), questions());
    let mut tally = Tally::new(questions.len());
    for (number, trace) in traces.iter().enumerate() {
        let Some(mut cutter) = Cutter::open(trace) else { continue };
        for (place, question) in questions.iter().enumerate() {
            let is_for_all = matches!(question.0, "count" | "rates" | "gaps" | "own");
            let seed = (number * 1000 + place) as u64;
            if !is_for_all || (number + place).is_multiple_of(4) {
                tally.add(place, cutter.check(question, seed));
            }
        }
    }
    // No trace of the corpus has `work_begin`, nor call stacks.
    tally.answered.retain(|&answered| answered > 0);
    let answered = tally.answered.len();
    tally.assert(1);
    assert!(traces.is_empty() || answered >= questions.len() - 2, "{answered} questions have answers");
}
