//! The known facts before an analysis begins to read: which events it gets, and which lanes they
//! lie in.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use kymo_analysis::bind::{Bindings, EventSelection, StreamClass};
use kymo_analysis::mapping::RoleMapping;
use kymo_analysis::resolve::StackResolver;
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
use crate::open::report::{Report, ReportProblem};
use crate::open::thinned::ThinnedEvents;
use crate::open::when::When;
use crate::open::{Session, trace_name};
use crate::stacks::SessionStacks;

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
    /// For each class that is bound the trace that it is of.
    pub(super) traces: Arc<[u32]>,
    /// Finds the functions of call stacks, where the answer has such.
    pub(super) stacks: OnceLock<StackFunctions>,
    /// Rules that have kept only some of the events that the question is about.
    pub(super) thinned: Vec<ThinnedEvents>,
}

/// Finds the functions of call stacks: for the analysis, and for the report about it.
#[derive(Clone)]
pub(super) struct StackFunctions {
    pub(super) resolver: Arc<dyn StackResolver>,
    pub(super) stacks: Arc<SessionStacks>,
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
        let reads_unselected = question.reads_threads && !options.selection.is_all();
        let mut classes = Vec::new();
        for (kind, &(trace, stream)) in kinds.iter().enumerate() {
            let decoder = &trace.decoder;
            let selection = reads_unselected.then_some(selection);
            classes.push(StreamClass { decoder, stream_class: stream.class, facts: facts(kind), selection });
        }
        let bindings = Bindings::new(&classes, mappings, &question.needs, question.wanted);
        let bindings = lowered(bindings);
        let SelectedEvents { filters, unread_switch } = selected(&kinds, &bindings, options, reads_unselected, &facts);
        let is_bound = |kind: &usize| !bindings.classes_of(*kind).is_empty();
        let streams_bound: Vec<Option<usize>> = kind_of.iter().map(|kind| Some(*kind).filter(is_bound)).collect();
        let filters: Vec<Option<Arc<StreamFilter>>> = kind_of.iter().map(|kind| filters[*kind].clone()).collect();
        let whole = whole(&streams, &streams_bound, &filters, options);
        let lanes = lanes::lanes(&streams, &streams_bound, &bindings, &whole, session);
        let has_switches =
            bindings.classes.iter().any(|class| class.roles.iter().any(|bound| bound.role == EventRole::Switch));
        let reads_all_switches = has_switches && (question.reads_threads || options.selection.is_all());
        let place = |trace: &Arc<Trace>| session.traces.iter().position(|known| Arc::ptr_eq(known, trace));
        let traces = kinds.iter().enumerate().flat_map(|(kind, (trace, _))| {
            let trace = place(trace).unwrap_or_default() as u32;
            bindings.classes_of(kind).iter().map(move |_| trace)
        });
        let (traces, bindings, stacks) = (traces.collect(), Arc::new(bindings), OnceLock::new());
        let (streams, thinned) = (streams_bound, Vec::new());
        Self { bindings, streams, filters, lanes, whole, reads_all_switches, unread_switch, traces, stacks, thinned }
    }

    /// Reads the stacks of the traces, if the answer has some.
    pub(super) fn read_stacks(&self, session: &Session, progress: &Progress) {
        if self.has(EventRole::CallStack) {
            let stacks = session.stacks(progress);
            let functions = StackFunctions { resolver: Arc::clone(&stacks) as Arc<dyn StackResolver>, stacks };
            // Those of a job that was canceled are not whole.
            if !progress.is_cancelled() {
                self.stacks.get_or_init(|| functions);
            }
        }
    }

    /// Why functions of stacks have no names, as far as that was found out.
    pub(super) fn stack_problems(&self) -> Vec<ReportProblem> {
        self.stacks.get().map(|stacks| stacks.stacks.take_problems()).unwrap_or_default()
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
        let (streams, traces, stacks) = (bound, Arc::clone(&self.traces), self.stacks.clone());
        let thinned = self.thinned.clone();
        Self { bindings, streams, filters, lanes, whole, reads_all_switches, unread_switch, traces, stacks, thinned }
    }

    /// Everything will be read.
    pub(super) fn expect(&self, session: &Session, progress: &Progress) {
        for ((_, stream), wanted) in session.streams().into_iter().zip(&self.whole.wanted) {
            progress.expect(stream.packets.packet_bytes(wanted.clone()));
        }
    }

    /// Losses that are known before anything is read.
    pub(super) fn losses(&self, session: &Session) -> Report {
        let mut report = Report { thinned: self.thinned.clone(), ..session.opening_report().clone() };
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

type StreamKind<'s> = (&'s Arc<Trace>, &'s DataStream);

fn event_classes<'s>((trace, stream): StreamKind<'s>) -> &'s [EventRecordClass] {
    &trace.class.stream_classes[stream.class].event_classes
}

/// The events that are read.
struct SelectedEvents {
    /// For each kind of data streams; `None`: all.
    filters: Vec<Option<Arc<StreamFilter>>>,
    /// See [`Prepared::unread_switch`].
    unread_switch: Option<String>,
}

/// The events that are read of each kind of data streams; `reads_unselected`: also events that tell of threads, if the user
/// selects others alone.
fn selected<'a>(
    kinds: &[StreamKind<'_>],
    bindings: &Bindings,
    options: &AnalysisOptions,
    reads_unselected: bool,
    facts: &dyn Fn(usize) -> FilterFacts<'a>,
) -> SelectedEvents {
    let telling = |kind: usize| bindings.event_classes_with(kind, EventRole::tells_of_threads);
    let telling: Vec<BTreeSet<usize>> = (0..kinds.len()).filter(|_| reads_unselected).map(telling).collect();
    // The selected events of classes that tell of threads.
    let wished = |(kind, telling): (usize, &BTreeSet<usize>)| {
        let is_wanted =
            |place: usize, event: &EventRecordClass| telling.contains(&place) && options.selection.names(event);
        stream_filter(
            kinds[kind],
            options,
            &|place, event| is_wanted(place, event).then_some(Selected::Asked),
            &facts(kind),
        )
    };
    let wished: Vec<StreamFilter> = telling.iter().enumerate().map(wished).collect();
    let asks_streams = |(telling, wished): (&BTreeSet<usize>, &StreamFilter)| {
        telling.iter().all(|place| wished.asks_stream_alone(*place))
    };
    // Of streams that are selected as a whole, nothing that the selected events depend on is left out.
    let is_partly =
        reads_unselected && !(options.selection.is_of_streams() && telling.iter().zip(&wished).all(asks_streams));
    let filter = |kind: usize| {
        let telling = telling.get(kind).filter(|_| is_partly);
        filter(kinds[kind], (bindings, kind), options, telling, &facts(kind))
    };
    let filters: Vec<Option<Arc<StreamFilter>>> = (0..kinds.len()).map(filter).collect();
    let unread_switch = wished.iter().enumerate().filter(|_| is_partly).find_map(|(kind, wished)| {
        let switches = bindings.event_classes_with(kind, |role| role == EventRole::Switch);
        let place = switches.into_iter().find(|place| wished.class_tests()[*place] != ClassTest::Always)?;
        event_classes(kinds[kind])[place].name.clone()
    });
    SelectedEvents { filters, unread_switch }
}

/// Finds selected events of the classes that are wanted, by their places.
fn stream_filter(
    (trace, stream): StreamKind<'_>,
    options: &AnalysisOptions,
    wants: &dyn Fn(usize, &EventRecordClass) -> Option<Selected>,
    facts: &FilterFacts<'_>,
) -> StreamFilter {
    let expression = options.selection.filter.as_ref();
    lowered(StreamFilter::keeping(&trace.decoder, stream.class, expression, wants, facts))
}

/// Finds bound and selected events, and all of the classes in `telling`; `None`: all events.
fn filter(
    kind: StreamKind<'_>,
    (bindings, number): (&Bindings, usize),
    options: &AnalysisOptions,
    telling: Option<&BTreeSet<usize>>,
    facts: &FilterFacts<'_>,
) -> Option<Arc<StreamFilter>> {
    let binding = &bindings.streams[number];
    let selection = &options.selection;
    if selection.is_all() && (0..event_classes(kind).len()).all(|place| binding.is_bound(place)) {
        return None;
    }
    let wants = |place: usize, event: &EventRecordClass| match telling.is_some_and(|telling| telling.contains(&place)) {
        true => Some(Selected::All),
        false => (selection.names(event) && binding.is_bound(place)).then_some(Selected::Asked),
    };
    Some(Arc::new(stream_filter(kind, options, &wants, facts)))
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
