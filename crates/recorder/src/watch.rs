//! Events of the kernel that are counted there, and not recorded: a question in words, its meaning for each event, the counts.
//!
//! ```text
//! words ── WatchQuestion ── names of this kernel ──> WatchRequest ── helper ──> rows ── WatchTotals
//! ```
//!
//! The asking process has no rights and needs none: the kernel's description of its types may be read by all. The helper looks
//! names up again, and makes the programs ([`kymo_probe::watch`]).

pub(crate) mod events;
pub(crate) mod names;
mod options;
mod totals;
mod trace;
pub(crate) mod words;

use kymo_probe::helper::Helper;
pub use kymo_probe::helper::HelperProblem;
use kymo_probe::watch::{
    TracepointFields, WATCH_KEYS_MAX, WATCH_ROWS_MAX, WATCHED_EVENTS_MAX, WatchKind, WatchPath, WatchRequest,
    WatchStep, WatchableEvents, WatchedBegin, WatchedEvent,
};
pub use kymo_probe::watch::{WatchCost, WatchMeaning};

/// A trace of counts cannot be written.
pub use kymo_writer::WriteError as WatchTraceProblem;
use names::BoundCondition;
pub use totals::{HistogramBar, WatchGroup, WatchHistogram, WatchKey, WatchTotals};
pub use trace::WatchTrace;
pub use words::WatchQuestion;

use crate::tracepoints::chosen;
pub use crate::watch_options::{WatchColumns, WatchOptions};

/// Rows of a map, unless others are asked for.
const ROWS: u32 = 1 << 14;
/// Rows with a histogram: each bucket of a key has one.
const BUCKET_ROWS: u32 = 1 << 16;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchColumn {
    /// As the question has it.
    pub name: String,
    /// The meaning of its numbers.
    pub meaning: WatchMeaning,
    /// Names of its numbers.
    labels: Vec<(String, i64)>,
    is_text: bool,
    is_signed: bool,
    /// All 64 bits are a number that is never negative.
    is_wide: bool,
}

/// Why nothing is counted.
#[derive(Debug, thiserror::Error)]
pub enum WatchProblem {
    /// The question has no meaning here, in sentences.
    #[error("{0}")]
    Question(String),
    /// The helper's.
    #[error("{0}")]
    Helper(#[from] HelperProblem),
}

impl From<String> for WatchProblem {
    fn from(problem: String) -> Self {
        Self::Question(problem)
    }
}

/// The meaning of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedColumns {
    /// Columns of keys.
    pub keys: Vec<WatchColumn>,
    /// The column of sums.
    pub sum: Option<WatchColumn>,
    /// The column of the distribution.
    pub histogram: Option<WatchColumn>,
    /// Names of the events, as `SYSTEM:NAME`.
    pub events: Vec<String>,
    /// Something begins and ends.
    pub is_pair: bool,
    /// Sums that come before that of the distribution.
    histogram_sum: Option<usize>,
}

/// Events that are counted, as long as this is there.
#[derive(Debug)]
pub struct Watcher {
    helper: Helper,
    /// The meaning of the counts.
    pub columns: CountedColumns,
    /// Remarks for people.
    pub notes: Vec<String>,
}

impl Watcher {
    /// Begins, with the helper of this name.
    ///
    /// # Errors
    ///
    /// The question has no meaning for the events of this kernel, or the helper cannot count them.
    pub fn begin(helper: &str, question: &WatchQuestion, columns: &WatchColumns) -> Result<Self, WatchProblem> {
        let mut helper = Helper::connect(helper)?;
        let types = WatchableEvents::of_this_kernel()?;
        // Counting needs no tracefs; it knows subsystems.
        let known = helper.events().ok().filter(|known| known.tracefs_absent.is_none());
        let names = EventList::new(&types, known.map(|known| known.events));
        let mut plan = QuestionPlan::new(question, columns, &names)?;
        helper.watch(&plan.request(columns.rows))?;
        let (columns, notes) = plan.counted();
        Ok(Self { helper, columns, notes })
    }

    /// From now on, the kernel measures its programs; or it does no more. Measuring itself takes time at each event.
    ///
    /// # Errors
    ///
    /// The helper does not answer.
    pub fn measure(&mut self, is_on: bool) -> Result<(), HelperProblem> {
        self.helper.measure(is_on)
    }

    /// The counts since the beginning.
    ///
    /// # Errors
    ///
    /// The helper does not answer.
    pub fn totals(&mut self) -> Result<WatchTotals, HelperProblem> {
        let counts = self.helper.counts()?;
        Ok(WatchTotals::new(counts, &self.columns))
    }
}

/// What to count beside a recording, for the helper, and the meaning of the counts; with remarks for people. `known` are the events of the
/// kernel, if tracefs tells them.
pub(crate) fn asked(options: &WatchOptions, known: Option<&[String]>) -> Result<AskedCounts, String> {
    let types = WatchableEvents::of_this_kernel()?;
    let list = EventList::new(&types, known.map(<[String]>::to_vec));
    let question = WatchQuestion::parse(&options.question)?;
    let mut plan = QuestionPlan::new(&question, &options.columns, &list)?;
    let request = plan.request(options.columns.rows);
    let (columns, notes) = plan.counted();
    Ok((request, columns, notes))
}

/// A request, the meaning of its counts, and remarks.
pub(crate) type AskedCounts = (WatchRequest, CountedColumns, Vec<String>);

/// Events that can be counted.
pub(crate) struct EventList<'t> {
    types: &'t WatchableEvents,
    /// As `SYSTEM:NAME`; of subsystems that are not known, as `kernel:NAME`.
    events: Vec<String>,
    has_systems: bool,
}

impl<'t> EventList<'t> {
    pub(crate) fn new(types: &'t WatchableEvents, known: Option<Vec<String>>) -> Self {
        let has_systems = known.is_some();
        let all = || types.names().iter().map(|name| format!("kernel:{name}")).collect();
        Self { types, events: known.unwrap_or_else(all), has_systems }
    }

    /// Names that patterns choose, of events that the kernel describes; and how many it does not.
    pub(crate) fn chosen(&self, patterns: &[String]) -> Result<(Vec<String>, usize), String> {
        let of_all = |pattern: &String| match pattern.split_once(':') {
            Some((begin, name)) if !self.has_systems => {
                let marks: String = begin.chars().take_while(|letter| matches!(letter, '!' | '?')).collect();
                format!("{marks}{name}")
            }
            _ => pattern.clone(),
        };
        let patterns: Vec<String> = patterns.iter().map(of_all).collect();
        let all = chosen(&patterns, &self.events)?;
        let count = all.len();
        let known: Vec<String> = all.into_iter().filter(|event| self.fields(event, false).is_some()).collect();
        match known.len() {
            0 => Err(format!("the kernel does not describe the arguments of `{}`", patterns.join(","))),
            found => Ok((known, count - found)),
        }
    }

    /// The whole name of an event, with its subsystem.
    pub(crate) fn whole(&self, event: &str) -> String {
        let its = self.events.iter().find(|known| bare(known) == bare(event) && !known.starts_with("syscalls:"));
        its.map_or_else(|| event.to_owned(), String::clone)
    }

    pub(crate) fn fields(&self, event: &str, is_end: bool) -> Option<TracepointFields<'t>> {
        self.types.event(bare(event), is_end)
    }
}

/// The name without its subsystem.
pub(crate) fn bare(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}

/// The meaning of a question.
struct QuestionPlan {
    watched: Vec<WatchedEvent>,
    begins: Vec<WatchedBegin>,
    /// Of each field that begin and end have in common: whether it is a text, and where that is known from.
    shared: Vec<(bool, String)>,
    keys: Vec<WatchColumn>,
    sum: Option<WatchColumn>,
    histogram: Option<WatchColumn>,
    events: Vec<String>,
    notes: Vec<String>,
    histogram_sum: Option<usize>,
    is_pair: bool,
}

/// Paths of a question that are the same for all of its events.
struct ColumnPaths {
    keys: Vec<WatchPath>,
    sum: Option<WatchPath>,
    histogram: Option<WatchPath>,
}

impl ColumnPaths {
    fn of(columns: &WatchColumns, several: bool) -> Result<Self, String> {
        if columns.by.len() > WATCH_KEYS_MAX {
            return Err(format!("a row has at most {WATCH_KEYS_MAX} keys, and `--by` names {}", columns.by.len()));
        }
        let mut keys = columns.by.iter().map(|text| words::path(text)).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() && several {
            keys.push(words::path("event")?);
        }
        let path = |text: &Option<String>| text.as_deref().map(words::path).transpose();
        Ok(Self { keys, sum: path(&columns.sum)?, histogram: path(&columns.histogram)? })
    }

    /// Sums of the request, and which of them is that of the distribution.
    fn sums(&self) -> (Vec<WatchPath>, Option<usize>) {
        let mut sums: Vec<WatchPath> = self.sum.iter().cloned().collect();
        let of_histogram = self.histogram.as_ref().map(|path| {
            sums.iter().position(|sum| sum == path).unwrap_or_else(|| {
                sums.push(path.clone());
                sums.len() - 1
            })
        });
        (sums, of_histogram)
    }
}

impl QuestionPlan {
    fn new(question: &WatchQuestion, columns: &WatchColumns, list: &EventList<'_>) -> Result<Self, String> {
        let (events, undescribed) = list.chosen(&question.events)?;
        let begins = question.since.as_ref().map(|since| list.chosen(&since.events)).transpose()?;
        let begins = begins.map_or(Vec::new(), |(begins, _)| begins);
        let events: Vec<String> = events.into_iter().filter(|event| !begins.contains(event)).collect();
        if events.is_empty() {
            return Err("all of these events begin: others end them".to_owned());
        }
        if events.len() + begins.len() > WATCHED_EVENTS_MAX {
            let count = events.len() + begins.len();
            return Err(format!(
                "these are {count} events, and at most {WATCHED_EVENTS_MAX} are counted at a time\nhelp: `!NAME` leaves some out"
            ));
        }
        let paths = ColumnPaths::of(columns, events.len() > 1)?;
        let mut plan = Self::empty(&paths, question.since.is_some());
        if undescribed > 0 {
            plan.notes
                .push(format!("the kernel does not describe the arguments of {undescribed} more of these events"));
        }
        plan.begin(question, &begins, list)?;
        let mut never = Vec::new();
        for event in events {
            if let Some(why) = plan.end(question, &paths, (&event, list))? {
                never.push((event, why));
            }
        }
        if plan.watched.is_empty() {
            let whys: Vec<String> = never.into_iter().map(|(_, why)| why).filter(|why| !why.is_empty()).collect();
            let why = whys.first().cloned().unwrap_or_else(|| "the condition is true of no event\n".to_owned());
            return Err(why.trim_end().to_owned());
        }
        plan.notes.extend(never.iter().map(|(event, _)| format!("the condition is never true of {event}")));
        Ok(plan)
    }

    fn empty(paths: &ColumnPaths, is_pair: bool) -> Self {
        let (_, histogram_sum) = paths.sums();
        let (watched, begins, keys) = (Vec::new(), Vec::new(), Vec::new());
        let (events, notes) = (Vec::new(), Vec::new());
        let shared = Vec::new();
        Self { watched, begins, shared, keys, sum: None, histogram: None, events, notes, histogram_sum, is_pair }
    }

    /// The meaning of the counts, and remarks for people.
    fn counted(self) -> (CountedColumns, Vec<String>) {
        let Self { keys, sum, histogram, events, notes, histogram_sum, is_pair, .. } = self;
        (CountedColumns { keys, sum, histogram, events, is_pair, histogram_sum }, notes)
    }

    fn request(&mut self, rows: Option<u32>) -> WatchRequest {
        let usual = if self.histogram.is_some() { BUCKET_ROWS } else { ROWS };
        WatchRequest {
            events: std::mem::take(&mut self.watched),
            begins: std::mem::take(&mut self.begins),
            rows: rows.unwrap_or(usual).clamp(1, WATCH_ROWS_MAX),
            may_be_fewer: rows.is_none(),
        }
    }

    /// Events that begin something.
    fn begin(&mut self, question: &WatchQuestion, begins: &[String], list: &EventList<'_>) -> Result<(), String> {
        let Some(since) = &question.since else { return Ok(()) };
        for event in begins {
            let Some(fields) = list.fields(event, false) else { continue };
            let keys: Vec<WatchPath> = since.keys.iter().map(|(_, begin)| begin.clone()).collect();
            for (number, key) in keys.iter().enumerate() {
                self.share(number, key, (event, &fields))?;
            }
            self.begins.push(WatchedBegin { name: bare(event).to_owned(), keys });
        }
        Ok(())
    }

    /// An event that is counted; or why its condition is never true.
    fn end(
        &mut self,
        question: &WatchQuestion,
        paths: &ColumnPaths,
        (event, list): (&str, &EventList<'_>),
    ) -> Result<Option<String>, String> {
        let Some(fields) = list.fields(event, question.since.is_some()) else { return Ok(None) };
        let condition = question.condition.as_ref().map(|filter| names::bind(filter, event, &fields)).transpose()?;
        let mut condition = condition.unwrap_or(BoundCondition::Always);
        if let Some(nanos) = question.over {
            condition = names::over(condition, nanos)?;
        }
        let condition = match condition {
            BoundCondition::Never(why) => return Ok(Some(why)),
            BoundCondition::Always => None,
            BoundCondition::Depends(condition) => Some(condition),
        };
        let column = |path: &WatchPath| column(path, event, &fields);
        let keys = paths.keys.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let integer = |path: &Option<WatchPath>| path.as_ref().map(|path| integer(path, event, &fields)).transpose();
        let (sum, histogram) = (integer(&paths.sum)?, integer(&paths.histogram)?);
        let since =
            question.since.as_ref().map(|since| since.keys.iter().map(|(end, _)| end.clone()).collect::<Vec<_>>());
        for (number, key) in since.iter().flatten().enumerate() {
            self.share(number, key, (event, &fields))?;
        }
        let name = bare(event).to_owned();
        let (sums, _) = paths.sums();
        let (keys_of, histogram_of) = (paths.keys.clone(), paths.histogram.clone());
        let system = event.split_once(':').map_or("", |(system, _)| system).to_owned();
        self.watched.push(WatchedEvent {
            name,
            system,
            condition,
            keys: keys_of,
            sums,
            histogram: histogram_of,
            since,
        });
        self.events.push(event.to_owned());
        if self.watched.len() == 1 {
            (self.keys, self.sum, self.histogram) = (told_apart(keys, &paths.keys), sum, histogram);
            return Ok(None);
        }
        let known = self.keys.iter_mut().chain(&mut self.sum).chain(&mut self.histogram);
        let first = &self.events[0];
        for (known, column) in known.zip(keys.into_iter().chain(sum).chain(histogram)) {
            known.join(&column).map_err(|why| {
                format!("`{}` of {event} {why} of {first}: one column has no room for both", known.name)
            })?;
        }
        Ok(None)
    }

    /// A field that begin and end have in common is of one kind at all events.
    fn share(&mut self, number: usize, key: &WatchPath, of: (&str, &TracepointFields<'_>)) -> Result<(), String> {
        let (event, fields) = of;
        let is_text = matches!(names::field(key, event, fields)?.kind, WatchKind::Text { .. });
        let written = format!("`{key}` of {event}");
        match self.shared.get(number) {
            Some((known, other)) if *known != is_text => {
                let word = |is_text| if is_text { "a text" } else { "a number" };
                Err(format!("{other} is {}, and {written} {}: they are never the same", word(*known), word(is_text)))
            }
            Some(_) => Ok(()),
            None => {
                self.shared.push((is_text, written));
                Ok(())
            }
        }
    }
}

impl WatchColumn {
    /// Its values are texts, or have names.
    fn is_told_in_words(&self) -> bool {
        self.is_text || self.meaning == WatchMeaning::Event || !self.labels.is_empty()
    }

    /// The same column for another event; or what its values are not.
    fn join(&mut self, other: &Self) -> Result<(), &'static str> {
        if self.is_text != other.is_text || self.labels != other.labels {
            return Err("has other values than that");
        }
        if (self.is_wide && other.is_signed) || (self.is_signed && other.is_wide) {
            return Err("has another sign than that");
        }
        (self.is_signed, self.is_wide) = (self.is_signed || other.is_signed, self.is_wide || other.is_wide);
        if self.meaning != other.meaning {
            self.meaning = WatchMeaning::Plain;
        }
        Ok(())
    }
}

/// Columns of the same name, as `tid` and `$ctx.tid`, have their whole names.
fn told_apart(mut columns: Vec<WatchColumn>, paths: &[WatchPath]) -> Vec<WatchColumn> {
    for (number, path) in paths.iter().enumerate().filter(|(_, path)| path.is_global) {
        let is_same = |(other, column): (usize, &WatchColumn)| other != number && column.name == columns[number].name;
        if columns.iter().enumerate().any(is_same) {
            columns[number].name = path.to_string();
        }
    }
    columns
}

fn column(path: &WatchPath, event: &str, fields: &TracepointFields<'_>) -> Result<WatchColumn, String> {
    let field = names::field(path, event, fields)?;
    let is_signed = matches!(field.kind, WatchKind::Integer { is_signed: true, .. });
    let name = match &path.steps[..] {
        [WatchStep::Name(word), WatchStep::Name(name)] if path.is_global && word == "ctx" => name.clone(),
        _ => path.to_string(),
    };
    let is_wide = field.kind == WatchKind::Integer { bits: 64, is_signed: false };
    let is_text = matches!(field.kind, WatchKind::Text { .. });
    let labels = names::labels(&field.meaning);
    Ok(WatchColumn { name, labels, meaning: field.meaning, is_text, is_signed, is_wide })
}

fn integer(path: &WatchPath, event: &str, fields: &TracepointFields<'_>) -> Result<WatchColumn, String> {
    match names::field(path, event, fields)?.kind {
        WatchKind::Integer { .. } => column(path, event, fields),
        WatchKind::Text { .. } => Err(format!("`{path}` of {event} is a text: numbers alone are added up")),
    }
}
