//! The known facts before an analysis begins to read: which events it gets, and which lanes they
//! lie in.

use std::collections::HashSet;
use std::sync::Arc;

use kymo_analysis::bind::{Bindings, EventSelection, StreamClass};
use kymo_analysis::mapping::RoleMapping;
use kymo_analysis::{EventRole, LaneFacts};
use kymo_decode::filter::{Selected, StreamFilter};
use kymo_decode::{ClockConverter, FilterFacts, LowerError};
use kymo_format::Assumption;
use kymo_format::model::EventRecordClass;
use kymo_ir::ClassTest;
use kymo_scan::{DataStream, Slice, Trace};

use super::{Question, lanes};
use crate::answers::analysis_options::AnalysisOptions;
use crate::answers::losses::losses;
use crate::open::progress::Progress;
use crate::open::report::Report;
use crate::open::when::When;
use crate::open::{Session, trace_name};

/// Facts that are known before reading.
pub(crate) struct Prepared {
    /// Meanings of events.
    pub(crate) bindings: Arc<Bindings>,
    /// For each data stream its place in [`Bindings::streams`]; `None`: it has no events that are asked for.
    pub(crate) streams: Vec<Option<usize>>,
    /// For each data stream which of its events are read.
    pub(crate) filters: Vec<Option<Arc<StreamFilter>>>,
    /// Lanes: the recordings of CPUs.
    pub(crate) lanes: Vec<LaneFacts>,
    /// All that is read.
    pub(crate) whole: Slice,
    /// Every switch between threads is read, so that those that do not fit together are of several CPUs.
    pub(super) reads_all_switches: bool,
    /// A class of switches of which the user selects only some.
    pub(super) unread_switch: Option<String>,
}

impl Prepared {
    pub(super) fn new(
        session: &Session,
        question: &Question<'_>,
        mappings: &[RoleMapping],
        options: &AnalysisOptions,
    ) -> Self {
        let first_ns = session.first_ns().unwrap_or(0);
        let instant = |text: &str| text.parse::<When>().ok()?.nanos(first_ns, options.selection.zone);
        let streams = session.streams();
        // Data streams of one class and clock are alike.
        let mut kinds: Vec<(&Arc<Trace>, &DataStream)> = Vec::new();
        let mut kind_of = Vec::new();
        for &(trace, stream) in &streams {
            let is_same = |kind: &(&Arc<Trace>, &DataStream)| {
                Arc::ptr_eq(kind.0, trace) && (kind.1.class, kind.1.clock) == (stream.class, stream.clock)
            };
            let known = kinds.iter().position(is_same);
            kind_of.push(known.unwrap_or(kinds.len()));
            if known.is_none() {
                kinds.push((trace, stream));
            }
        }
        let names: Vec<String> = kinds.iter().map(|(trace, _)| trace_name(trace.folder.path())).collect();
        let facts = |kind: usize| facts(kinds[kind].1.clock, &names[kind], &instant);
        let is_named = |event: &EventRecordClass| options.selection.names(event);
        let selection = EventSelection { names: &is_named, filter: options.selection.filter.as_ref() };
        // Of streams that are selected as a whole, nothing that the selected events depend on is left out.
        let partly = |kind: usize| {
            let (trace, stream) = kinds[kind];
            let wishes = || StreamFilter::new(&trace.decoder, stream.class, selection.filter, &is_named, &facts(kind));
            let wishes = (question.reads_threads && !options.selection.is_all()).then(|| lowered(wishes()));
            wishes.filter(|wishes| !wishes.selects_whole_streams())
        };
        let partly: Vec<Option<StreamFilter>> = (0..kinds.len()).map(partly).collect();
        let mut classes = Vec::new();
        for (kind, &(trace, stream)) in kinds.iter().enumerate() {
            let decoder = &trace.decoder;
            let selection = partly[kind].is_some().then_some(selection);
            classes.push(StreamClass { decoder, stream_class: stream.class, facts: facts(kind), selection });
        }
        let bindings = Bindings::new(&classes, mappings, &question.needs, question.wanted);
        let bindings = lowered(bindings);
        let filter =
            |kind: usize| filter(kinds[kind], (&bindings, kind), options, partly[kind].is_some(), &facts(kind));
        let filters: Vec<Option<Arc<StreamFilter>>> = (0..kinds.len()).map(filter).collect();
        let unread_switch = partly.iter().enumerate().find_map(|(kind, wishes)| {
            let classes = wishes.as_ref()?.class_tests().iter().enumerate();
            let is_switch = |place: usize| bindings.has_role(kind, place, |role| role == EventRole::Switch);
            let place = classes.filter(|(_, test)| **test != ClassTest::Always).find(|(place, _)| is_switch(*place))?.0;
            kinds[kind].0.class.stream_classes[kinds[kind].1.class].event_classes[place].name.clone()
        });
        let is_bound = |kind: &usize| !bindings.classes_of(*kind).is_empty();
        let streams_bound: Vec<Option<usize>> = kind_of.iter().map(|kind| Some(*kind).filter(is_bound)).collect();
        let filters: Vec<Option<Arc<StreamFilter>>> = kind_of.iter().map(|kind| filters[*kind].clone()).collect();
        let whole = whole(&streams, &streams_bound, &filters, options);
        let lanes = lanes::lanes(&streams, &streams_bound, &bindings, &whole, session);
        let has_switches =
            bindings.classes.iter().any(|class| class.roles.iter().any(|bound| bound.role == EventRole::Switch));
        let reads_all_switches = has_switches && (question.reads_threads || options.selection.is_all());
        let bindings = Arc::new(bindings);
        Self { bindings, streams: streams_bound, filters, lanes, whole, reads_all_switches, unread_switch }
    }

    /// The packets that may have events between two times; the end is not in it.
    pub(crate) fn slice(&self, session: &Session, begin_ns: Option<i64>, end_ns: Option<i64>) -> Slice {
        let end_ns = end_ns.map(|end| end - 1);
        let span = AnalysisOptions { begin_ns, end_ns, ..AnalysisOptions::default() };
        whole(&session.streams(), &self.streams, &self.filters, &span)
    }

    /// The same of a span of time within; its end is not in it. Holes of lanes before it stay.
    pub(super) fn within(&self, session: &Session, (begin, end): (i64, i64), before: &[LaneFacts]) -> Self {
        let streams = session.streams();
        let span = AnalysisOptions { begin_ns: Some(begin), end_ns: Some(end - 1), ..AnalysisOptions::default() };
        let whole = whole(&streams, &self.streams, &self.filters, &span);
        let lanes = lanes::within(&self.lanes, before, session, &whole);
        let (bindings, bound, filters) = (Arc::clone(&self.bindings), self.streams.clone(), self.filters.clone());
        let (reads_all_switches, unread_switch) = (self.reads_all_switches, self.unread_switch.clone());
        Self { bindings, streams: bound, filters, lanes, whole, reads_all_switches, unread_switch }
    }

    /// Everything will be read.
    pub(super) fn expect(&self, session: &Session, progress: &Progress) {
        for ((_, stream), wanted) in session.streams().into_iter().zip(&self.whole.wanted) {
            progress.expect(stream.packets.packet_bytes(wanted.clone()));
        }
    }

    /// Losses that are known before anything is read.
    pub(super) fn losses(&self, session: &Session) -> Report {
        let mut report = session.opening_report().clone();
        for ((_, stream), wanted) in session.streams().into_iter().zip(&self.whole.wanted) {
            losses(stream, wanted.clone(), &mut report);
        }
        for lane in self.lanes.iter().filter(|lane| lane.names_no_cpu) {
            let note = |&stream: &usize| {
                self.relies_on_cpu(stream).then(|| session.note(stream, Assumption::CpuUnknown, cpu_note(lane)))
            };
            report.assumptions.extend(lane.streams.iter().filter_map(note));
        }
        report
    }

    /// Whether a stream has events that mean something only together with others of their CPU.
    fn relies_on_cpu(&self, stream: usize) -> bool {
        use EventRole::{IrqEntry, IrqExit, SoftirqEntry, SoftirqExit, Switch};
        let is_of_cpu = |role: EventRole| matches!(role, Switch | IrqEntry | IrqExit | SoftirqEntry | SoftirqExit);
        let of_stream = self.streams[stream].map(|kind| self.bindings.classes_of(kind));
        of_stream.unwrap_or_default().iter().any(|class| class.roles.iter().any(|bound| is_of_cpu(bound.role)))
    }
}

fn facts<'a>(
    clock: Option<ClockConverter>,
    trace_name: &'a str,
    instant: &'a dyn Fn(&str) -> Option<i64>,
) -> FilterFacts<'a> {
    FilterFacts { clock, trace_name, suggests: false, instant }
}

/// What an analysis does where nothing names CPUs.
fn cpu_note(lane: &LaneFacts) -> &'static str {
    match lane.mixes_cpus {
        false => "neither packets nor events say on which CPU they were: the stream is taken for one CPU's",
        true => {
            "neither packets nor events say on which CPU they were, and switches between threads are of several CPUs: \
             values are between the bounds, and may be anywhere there"
        }
    }
}

/// The result of lowering classes of a trace.
fn lowered<T>(result: Result<T, LowerError>) -> T {
    result.expect("every class was lowered when the decoder was made")
}

/// Finds bound and selected events, and, of streams that are selected in part, those that tell of threads; `None`: all
/// events.
fn filter(
    (trace, stream): (&Arc<Trace>, &DataStream),
    (bindings, kind): (&Bindings, usize),
    options: &AnalysisOptions,
    is_partly: bool,
    facts: &FilterFacts<'_>,
) -> Option<Arc<StreamFilter>> {
    let events = &trace.class.stream_classes[stream.class].event_classes;
    let binding = &bindings.streams[kind];
    let bound: HashSet<u64> =
        events.iter().enumerate().filter(|(place, _)| binding.is_bound(*place)).map(|(_, event)| event.id).collect();
    let is_bound = |event: &EventRecordClass| bound.contains(&event.id);
    if options.selection.is_all() && events.iter().all(is_bound) {
        return None;
    }
    let tells = |place: &usize| bindings.has_role(kind, *place, EventRole::tells_of_threads);
    let telling: HashSet<u64> = match is_partly {
        true => (0..events.len()).filter(tells).map(|place| events[place].id).collect(),
        false => HashSet::new(),
    };
    let wants = |event: &EventRecordClass| match telling.contains(&event.id) {
        true => Some(Selected::All),
        false => (options.selection.names(event) && is_bound(event)).then_some(Selected::Asked),
    };
    let expression = options.selection.filter.as_ref();
    Some(Arc::new(lowered(StreamFilter::keeping(&trace.decoder, stream.class, expression, &wants, facts))))
}

/// All packets that may have events that are asked for.
fn whole(
    streams: &[(&Arc<Trace>, &DataStream)],
    bound: &[Option<usize>],
    filters: &[Option<Arc<StreamFilter>>],
    options: &AnalysisOptions,
) -> Slice {
    let wanted = |(number, (_, stream)): (usize, &(&Arc<Trace>, &DataStream))| match bound[number] {
        Some(_) => stream.packets_for(options.begin_ns, options.end_ns, filters[number].as_deref()),
        None => 0..0,
    };
    Slice {
        begin: options.begin_ns.unwrap_or(i64::MIN),
        end: options.end_ns.and_then(|end| end.checked_add(1)),
        wanted: streams.iter().enumerate().map(wanted).collect(),
        bytes: 0,
    }
}
