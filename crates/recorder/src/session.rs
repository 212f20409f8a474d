//! A session: the events that it selects, and the traces that it writes.

pub(crate) mod choosing;
mod firings;
pub(crate) mod flight;
pub(crate) mod flush;
mod kernel;
mod late;
pub(crate) mod matches;
mod outputs;
mod remember;
pub(crate) mod rules;
pub(crate) mod serve;
mod take;
pub(crate) mod triggers;
pub(crate) mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use kymo_lane::ClockSource;
use kymo_schema::definition::EventClass;
use serde::{Deserialize, Serialize};

use crate::clock::{TickSource, uptime_ns};
use crate::kernel::KernelRecording;
use crate::layout::PROGRAMS_FOLDER;
use crate::program::drain::{DrainProgress, lost_since};
use crate::program::objects::ExecutableObject;
use crate::program::run::LaneEnd;
use crate::program::{Drained, Past, Process, Program, ProgramFacts};
use crate::protocol::{Keep, LostEvents, SessionOptions, SessionStatus, SessionSummary};
use crate::rule::RuleOptions;
use crate::select::{RecordDecision, SelectionStep, SessionSelection};
use crate::session::choosing::Choosing;
use crate::session::firings::KeptFirings;
use crate::session::flight::FlightRecorder;
use crate::session::flush::FlushState;
use crate::session::late::LateStarts;
use crate::session::outputs::ComponentFolders;
pub(crate) use crate::session::outputs::folder_of;
use crate::session::rules::SessionRules;
use crate::session::serve::{POOL_BYTES, ProgramId};
use crate::session::triggers::SessionTriggers;
use crate::trace::journal::Journal;
use crate::trace::{Output, Tally};
use crate::tracepoints::KernelSummary;
use crate::trigger::TriggerOptions;
use crate::user_programs::{self, ObjectContents, ObjectOptions, SessionInstance, UserObject};
use crate::writing::WriterState;

/// Problem messages that are kept.
const PROBLEMS_MAX: usize = 20;
/// Programs with contents of maps that are kept.
pub(crate) const CONTENTS_MAX: usize = 64;

/// The clocks that may stamp events, watched since the recorder started.
#[derive(Debug)]
pub(crate) struct WatchedClocks {
    counter: TickSource,
    monotonic: TickSource,
}

impl WatchedClocks {
    pub(crate) fn new() -> Self {
        Self { counter: TickSource::begin(ClockSource::Counter), monotonic: TickSource::begin(ClockSource::Monotonic) }
    }

    /// Ticks of each source now.
    pub(crate) fn now(&self) -> [u64; 2] {
        [self.counter.now(), self.monotonic.now()]
    }

    pub(crate) fn of(&mut self, source: ClockSource) -> &mut TickSource {
        match source {
            ClockSource::Counter => &mut self.counter,
            ClockSource::Monotonic => &mut self.monotonic,
        }
    }
}

/// A recording session: one selection of events, recorded together.
#[derive(Debug)]
pub(crate) struct RecordingSession {
    pub(crate) name: String,
    pub(crate) options: SessionOptions,
    /// The client that began the session, if the session ends when that client is gone.
    pub(crate) owner: Option<u64>,
    /// When the session began, in nanoseconds since the system booted.
    began_ns: i64,
    /// Ticks of each source when the session began.
    earliest: [u64; 2],
    /// Ticks of each source behind which the next snapshot begins.
    latest: [u64; 2],
    outputs: Vec<(ClockSource, Output)>,
    choosing: Choosing,
    /// Losses by source, while the trace of that source cannot be begun.
    unbegun: [LostEvents; 2],
    /// Programs that the session has events of, and how many there were before.
    programs: BTreeMap<u64, Process>,
    programs_before: u64,
    /// The programs of those that are gone.
    departed: BTreeSet<u64>,
    /// Programs that started without its selection.
    late: LateStarts,
    cut: u64,
    problems: Vec<String>,
    /// Number of snapshots taken.
    snapshots: u32,
    /// The snapshots of a session that drains.
    pub(crate) flush: FlushState,
    /// The folder that the session writes to: its own, or one inside it where the old trace could
    /// not be continued.
    trace: PathBuf,
    /// Where traces of components are in that folder, if it is a tree.
    components: ComponentFolders,
    /// How many recorders continued the session; this one is the last.
    recorders: u32,
    /// Where programs were when the session met them, or how far an earlier recorder had drained
    /// them.
    progress: HashMap<u64, DrainProgress>,
    /// Events that a flight recorder keeps of programs that other sessions drain.
    pub(crate) flight: FlightRecorder,
    /// Firings of its triggers that the next snapshot has.
    firings: KeptFirings,
    /// Contexts of programs that the session wants and that no program has had so far.
    contexts_missing: BTreeSet<String>,
    /// Events that start and stop it.
    pub(crate) triggers: SessionTriggers,
    /// Rules that limit its events.
    pub(crate) rules: SessionRules,
    /// eBPF objects of users that its programs run, and contents of their maps in programs that are gone.
    pub(crate) objects: Vec<UserObject>,
    contents: Vec<ObjectContents>,
    /// Programs with maps that are left out.
    more_contents: u64,
    /// Bytes of keys and values that are still told.
    pub(crate) told_left: usize,
    /// It records in programs that come.
    pub(crate) is_on: bool,
    /// Where the session reports that it writes.
    pub(crate) writing: WriterState,
    /// Since when no client has claimed the session, after its recorder was killed.
    unclaimed: Option<Instant>,
    /// Its events of the kernel, and their counts when they are in the trace.
    kernel: Option<KernelRecording>,
    kernel_summary: Option<KernelSummary>,
    /// Events in the traces when this recorder continued the session.
    resumed: Option<u64>,
    /// The file that lets a later recorder continue the session after this one was killed, and the
    /// file's content.
    kept: Option<(PathBuf, Vec<u8>)>,
}

/// State of a session in a file, from which a later recorder continues after this one was killed.
/// The traces themselves hold the rest.
#[derive(Debug, Serialize, Deserialize)]
struct SavedSession {
    boot: String,
    options: SessionOptions,
    earliest: [u64; 2],
    recorders: u32,
    #[serde(default)]
    so_far: SoFar,
}

/// Progress of a session, except what its traces tell.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SoFar {
    began_ns: i64,
    trace: Option<PathBuf>,
    components: ComponentFolders,
    programs: u64,
    /// The programs of those that were still running.
    present: BTreeMap<u64, Process>,
    late: u64,
    late_folders: Vec<PathBuf>,
    filtered: u64,
    cut: u64,
    /// Events that could not be written, and those that no packet counts yet, by output.
    unwritten: [u64; 2],
    untold: [u64; 2],
    problems: Vec<String>,
    snapshots: u32,
    flush: FlushState,
    progress: HashMap<u64, DrainProgress>,
    triggers: SessionTriggers,
    rules: SessionRules,
    /// Programs that have ended, and left maps of users' objects.
    maps_left: u64,
}

/// How long the client that waits for a session has to find the next recorder.
const CLAIM: Duration = Duration::from_secs(5);

impl RecordingSession {
    /// Begins a session with a trace in a folder that is made now.
    pub(crate) fn begin(
        options: SessionOptions,
        owner: Option<u64>,
        clocks: &mut WatchedClocks,
    ) -> std::io::Result<Self> {
        if options.components.is_some() {
            std::fs::create_dir_all(&options.output)?;
        } else if options.keep == Keep::Oldest || options.drains {
            make_folder(&options.output)?;
        }
        let earliest = clocks.now();
        Ok(Self::of(options, owner, earliest))
    }

    pub(crate) fn of(options: SessionOptions, owner: Option<u64>, earliest: [u64; 2]) -> Self {
        let contexts_missing = options.own_contexts.iter().cloned().collect();
        let triggers = SessionTriggers::new(&options.triggers, earliest.map(|ticks| ticks.saturating_sub(1)));
        let (selection, watched) = (options.selection.clone(), triggers.rules());
        let mut rules = SessionRules::new(options.rules.clone());
        rules.ask_for_triggers(options.triggers.iter().filter_map(TriggerOptions::as_rule).collect());
        let choosing = Choosing { selection, watched, rules: options.rules.clone(), ..Choosing::default() };
        let is_of_kernel = options.kernel.is_some();
        let objects = user_programs::read_all(&options.objects);
        Self {
            trace: if is_of_kernel { options.output.join(PROGRAMS_FOLDER) } else { options.output.clone() },
            components: ComponentFolders::default(),
            name: options.name.clone(),
            options,
            owner,
            began_ns: uptime_ns(),
            earliest,
            latest: [u64::MAX; 2],
            outputs: Vec::new(),
            choosing,
            unbegun: [LostEvents::default(); 2],
            programs: BTreeMap::new(),
            programs_before: 0,
            departed: BTreeSet::new(),
            late: LateStarts::default(),
            cut: 0,
            problems: Vec::new(),
            snapshots: 0,
            flush: FlushState::begin(earliest),
            recorders: 0,
            progress: HashMap::new(),
            flight: FlightRecorder::default(),
            firings: KeptFirings::default(),
            contexts_missing,
            triggers,
            rules,
            objects,
            contents: Vec::new(),
            more_contents: 0,
            told_left: user_programs::TOLD_BYTES_MAX,
            is_on: true,
            writing: WriterState::default(),
            unclaimed: None,
            kernel: None,
            kernel_summary: None,
            resumed: None,
            kept: None,
        }
    }

    /// Continues a session whose recorder was killed; `None`: the file describes no session that
    /// can be continued.
    pub(crate) fn resume(file: &Path, clocks: &mut WatchedClocks) -> Option<Self> {
        let kept: SavedSession = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        // Ticks of another boot cannot be compared.
        if kept.boot != boot() {
            return None;
        }
        let mut session = Self::of(kept.options, None, kept.earliest);
        session.recorders = kept.recorders + 1;
        session.unclaimed = (!session.options.is_detached).then(Instant::now);
        session.kept = Some((file.to_owned(), Vec::new()));
        // The file does not say which contexts programs had.
        session.contexts_missing.clear();
        let SoFar {
            began_ns,
            trace,
            components,
            programs,
            present,
            late,
            late_folders,
            filtered,
            cut,
            unwritten,
            untold,
            problems,
            snapshots,
            flush,
            progress,
            triggers,
            rules,
            maps_left,
        } = kept.so_far;
        if began_ns > 0 {
            session.began_ns = began_ns;
        }
        (session.programs_before, session.programs) = (programs.saturating_sub(processes(&present)), present);
        session.late = LateStarts::resumed(late, late_folders);
        (session.cut, session.choosing.filtered) = (cut, filtered);
        (session.problems, session.snapshots, session.progress) = (problems, snapshots, progress);
        (session.triggers, session.rules) = (triggers, rules);
        session.choosing.rules = session.rules.all().to_vec();
        session.choosing.removed_rules = session.rules.removed_options();
        if maps_left > 0 {
            session.more_contents = maps_left;
            session.problem(format!(
                "maps of users' programs are lost, as the recorder was killed: of {maps_left} recorded programs that had ended"
            ));
        }
        session.flush = flush;
        session.choosing.watched = session.triggers.rules();
        session.trace = trace.unwrap_or(session.trace);
        session.components = components;
        if session.options.keep == Keep::Oldest {
            session.go_on(clocks, unwritten, untold);
        }
        if let Err(why) = session.begin_kernel(clocks) {
            session.problem(format!("the recorder was killed, and the kernel's events end there: {why}"));
        }
        session.resumed = Some(session.outputs.iter().map(|(_, output)| output.tally().events).sum());
        Some(session)
    }

    /// Writes the state that a later recorder needs after this one was killed.
    pub(crate) fn keep(&mut self, folder: &Path) {
        self.kept = Some((kept_file(folder, &self.name), Vec::new()));
        self.outputs.iter_mut().for_each(|(_, output)| output.is_kept(self.kept.as_ref().map(|kept| kept.0.clone())));
        self.keep_again();
    }

    /// Writes the state again if it has changed.
    pub(crate) fn keep_again(&mut self) {
        if self.kept.is_none() {
            return;
        }
        // The next recorder takes the firings that this state knows for told.
        self.outputs.iter_mut().for_each(|(_, output)| output.put_firings());
        let (mut unwritten, mut untold) = (self.unbegun.map(|lost| lost.events()), [0; 2]);
        for (source, output) in &self.outputs {
            unwritten[*source as usize] += output.tally().unwritten;
            untold[*source as usize] += output.untold();
        }
        let so_far = SoFar {
            began_ns: self.began_ns,
            trace: Some(self.trace.clone()),
            components: self.components.clone(),
            programs: self.all_programs(),
            present: self.present(),
            late: self.late.count(),
            late_folders: self.late.folders.clone(),
            filtered: self.choosing.filtered,
            cut: self.cut,
            unwritten,
            untold,
            problems: self.problems.clone(),
            snapshots: self.snapshots,
            flush: self.flush.clone(),
            progress: self.progress.clone(),
            triggers: self.triggers.clone(),
            rules: self.rules.clone(),
            maps_left: self.contents.len() as u64 + self.more_contents,
        };
        let (options, earliest, recorders) = (self.options.clone(), self.earliest, self.recorders);
        let kept = SavedSession { boot: boot(), options, earliest, recorders, so_far };
        let (Ok(text), Some((file, before))) = (serde_json::to_vec(&kept), &mut self.kept) else { return };
        // The beat comes ten times a second, and mostly nothing has changed.
        if text != *before {
            // Renaming is atomic: a later recorder finds the old state or the new one, never a
            // part.
            let new = file.with_extension("new");
            // Without the file, no recorder continues the session.
            let _ = std::fs::write(&new, &text).and_then(|()| std::fs::rename(&new, file));
            *before = text;
        }
    }

    /// Programs that the session has events of and that are still running.
    fn present(&self) -> BTreeMap<u64, Process> {
        let its = self.programs.iter().filter(|(key, _)| !self.departed.contains(key));
        its.map(|(key, process)| (*key, process.clone())).collect()
    }

    /// Whether it has met a program that it records.
    pub(crate) fn has_programs(&self) -> bool {
        !self.programs.is_empty()
    }

    fn all_programs(&self) -> u64 {
        self.programs_before + processes(&self.programs)
    }

    /// Whether the events that a program recorded before the recorder met it belong to this
    /// session: the session started the program, or an earlier recorder had it, or the program
    /// began later, as the child of a recorded program.
    pub(crate) fn takes_past(&self, who: &ProgramId, program: &Program, past: &Past) -> bool {
        let is_started = |step: &SelectionStep| step.rule.tag.is_some() && step.rule.tag == who.tag;
        let is_ours = self.recorders > 0 || self.choosing.selection.steps().iter().any(is_started);
        let earliest = self.earliest[who.identity.clock as usize];
        self.takes_program(who) && (is_ours || program.is_since(past, earliest).unwrap_or(false))
    }

    /// Tags of programs that were started for the session.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        self.choosing.selection.steps().iter().filter_map(|step| step.rule.tag.as_deref())
    }

    /// Whether a program was started for the session.
    pub(crate) fn has_started(&self, who: &ProgramId) -> bool {
        self.tags().any(|tag| who.tag.as_deref() == Some(tag))
    }

    /// How far the session has drained a program, if another recorder has begun the session; that
    /// recorder may not have met the program.
    pub(crate) fn progress(&self, key: u64) -> Option<DrainProgress> {
        (self.recorders > 0).then(|| self.progress.get(&key).cloned().unwrap_or_default())
    }

    /// Its selection is published, also in these folders, which are new.
    pub(crate) fn is_published(&mut self, new: &[PathBuf]) {
        self.late.is_published(&self.choosing.selection, new);
    }

    /// A client claims the session.
    pub(crate) fn claim(&mut self, who: u64) {
        self.owner = Some(who);
        self.unclaimed = None;
    }

    /// Whether the session may want events of a program.
    pub(crate) fn takes_program(&self, who: &ProgramId) -> bool {
        self.choosing.selection.takes_program(&who.candidate())
    }

    /// Filters that the session asks of an event class; an empty list: it takes all events. `None`:
    /// it does not want the class.
    pub(crate) fn filters(&self, who: &ProgramId, class: &EventClass) -> Option<Vec<String>> {
        match self.choosing.chosen(&who.candidate(), &class.full_name(), class.level) {
            RecordDecision::No => None,
            RecordDecision::Yes => Some(Vec::new()),
            RecordDecision::When(filters) => Some(filters),
        }
    }

    /// The current selection.
    pub(crate) fn selection(&self) -> &SessionSelection {
        &self.choosing.selection
    }

    /// Replaces the selection.
    pub(crate) fn select(&mut self, selection: SessionSelection) {
        self.choosing.selection = selection.clone();
        self.options.selection = selection;
        self.choosing.watched = self.triggers.rules();
        self.choosing.rules = self.rules.all().to_vec();
        self.choosing.removed_rules = self.rules.removed_options();
        self.choose_again();
    }

    /// Filters and choices were made for other events or rules.
    fn choose_again(&mut self) {
        self.choosing.choose_again();
        self.outputs.iter_mut().for_each(|(_, output)| output.choose_again());
    }

    /// These of its rules are about events of a program, as far as they are known, and the others are not. Returns whether
    /// that is new.
    pub(crate) fn uses_rules(&mut self, program: u64, is_used: impl Fn(&RuleOptions) -> bool) -> bool {
        let idle = self.rules.all().iter().filter(|rule| rule.asks.begins().is_some() && !is_used(rule));
        let idle: BTreeSet<(u64, String)> = idle.map(|rule| (program, rule.name.clone())).collect();
        let is_same = |of: &&(u64, String)| of.0 == program;
        let is_new = !self.choosing.idle.iter().filter(is_same).eq(idle.iter());
        if is_new {
            self.choosing.idle.retain(|(of, _)| *of != program);
            self.choosing.idle.extend(idle);
            self.choose_again();
        }
        is_new
    }

    /// The recorder serves a program, which other sessions have drained so far.
    pub(crate) fn meets(
        &mut self,
        who: &ProgramId,
        known: &ProgramFacts,
        others: DrainProgress,
        clocks: &mut WatchedClocks,
    ) {
        let is_new = self.choosing.known.insert(who.identity.key, who.clone()).is_none();
        if !self.takes_program(who) {
            return;
        }
        let is_first = self.programs.insert(who.identity.key, who.identity.process()).is_none();
        self.triggers.meets(who.identity.key, who.identity.clock);
        if is_first && !self.has_started(who) {
            self.late.meets(&who.identity, self.began_ns, self.earliest[who.identity.clock as usize]);
        }
        if !is_first && !is_new {
            return;
        }
        // Events that other sessions took before belong to them.
        if others != DrainProgress::default() {
            self.progress.entry(who.identity.key).or_insert(others);
            self.keep_again();
        }
        if self.options.keep == Keep::Oldest {
            self.with_output(known.identity.place(), clocks, |output, _| output.program(known));
        }
    }

    /// The session is about to meet a program, which may be named where its trace begins.
    pub(crate) fn hears_of(&mut self, who: &ProgramId) {
        if self.takes_program(who) {
            self.choosing.known.insert(who.identity.key, who.clone());
        }
    }

    /// Objects that a program that the session has met can execute.
    pub(crate) fn learns_objects(
        &mut self,
        known: &ProgramFacts,
        objects: &[ExecutableObject],
        clocks: &mut WatchedClocks,
    ) {
        if self.options.keep == Keep::Oldest && self.programs.contains_key(&known.identity.key) && !objects.is_empty() {
            self.with_output(known.identity.place(), clocks, |output, _| output.objects(known, objects));
        }
    }

    /// Whether the session wants events of a program.
    pub(crate) fn has_met(&self, program: &ProgramFacts) -> bool {
        self.choosing.known.get(&program.identity.key).is_some_and(|who| self.takes_program(who))
    }

    /// A program has ended; its events may be wanted.
    pub(crate) fn has_ended(&mut self, key: u64) {
        self.departed.insert(key);
    }

    /// A program is gone.
    pub(crate) fn parts(&mut self, key: u64) {
        self.choosing.known.remove(&key);
        self.departed.insert(key);
        // Events of a program that a flight recorder keeps are cut by the windows of that program.
        let forgotten = self.flight.leave(key);
        self.progress.remove(&key);
        self.outputs.iter_mut().for_each(|(_, output)| output.forget(key));
        self.choosing.filters.retain(|(program, _), _| *program != key);
        self.rules.has_asked(self.choosing.remembers.counts());
        self.choosing.remembers.parts(key);
        forgotten.into_iter().for_each(|key| {
            self.triggers.parts(key);
            self.rules.parts(key);
            self.choosing.idle.retain(|(program, _)| *program != key);
        });
    }

    /// Triggers have changed.
    pub(crate) fn trigger(&mut self, act: impl FnOnce(&mut SessionTriggers)) {
        act(&mut self.triggers);
        self.options.triggers = self.triggers.all().iter().map(|trigger| trigger.options.clone()).collect();
        self.rules.ask_for_triggers(self.options.triggers.iter().filter_map(TriggerOptions::as_rule).collect());
        let selection = self.choosing.selection.clone();
        self.select(selection);
        self.keep_again();
    }

    /// Bytes of a program's pool; of a flight recorder, those that it keeps of a program.
    pub(crate) fn pool_bytes(&self) -> u64 {
        self.options.pool_bytes.unwrap_or(POOL_BYTES)
    }

    pub(crate) fn end_lane(&mut self, program: &ProgramFacts, end: &LaneEnd, clocks: &mut WatchedClocks) {
        if self.options.keep == Keep::Newest {
            return;
        }
        if !self.with_output(program.identity.place(), clocks, |output, _| output.end(program, end)) {
            self.unbegun[program.identity.clock as usize].full += end.discarded;
        }
    }

    /// A program has lost events that no lane could count, and cut texts.
    pub(crate) fn lost(&mut self, program: &ProgramFacts, drained: &Drained, clocks: &mut WatchedClocks) {
        // The program counts for its whole life. The difference to the last count is this session's
        // part.
        let told = &mut self.progress.entry(program.identity.key).or_default().cut;
        let cut = lost_since(*told, drained.cut_ever);
        (self.cut, *told) = (self.cut + cut, drained.cut_ever.max(*told));
        if drained.discarded > 0 && self.options.keep == Keep::Oldest {
            let Drained { discarded, discarded_ever, .. } = *drained;
            let lose = |output: &mut Output, _: &mut Choosing| output.lost(program, discarded, discarded_ever);
            if !self.with_output(program.identity.place(), clocks, lose) {
                self.unbegun[program.identity.clock as usize].no_lane += discarded;
            }
        }
    }

    /// Called about ten times a second.
    pub(crate) fn beat(&mut self, drained: Option<SystemTime>, clocks: &mut WatchedClocks) {
        let _writes = self.writing.begin(&self.trace);
        for (source, output) in &mut self.outputs {
            output.drained = drained.or(output.drained);
            output.beat(clocks.of(*source));
        }
        let errors: Vec<String> =
            self.outputs.iter().filter_map(|(_, output)| Some(output.error()?.to_string())).collect();
        errors.into_iter().for_each(|error| self.problem(error));
        std::mem::take(&mut self.choosing.problems).into_iter().for_each(|problem| self.problem(problem));
        self.look_after_kernel(clocks, drained);
        self.keep_again();
    }

    /// Whether the session's time is over.
    pub(crate) fn is_over(&self) -> bool {
        let limit = self.options.duration_ms.map(Duration::from_millis);
        limit.is_some_and(|limit| self.took() >= limit) || self.unclaimed.is_some_and(|since| since.elapsed() >= CLAIM)
    }

    fn took(&self) -> Duration {
        Duration::from_nanos(uptime_ns().saturating_sub(self.began_ns).try_into().unwrap_or(0))
    }

    pub(crate) fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Ends the session's traces; no event comes after that.
    pub(crate) fn finish(mut self, clocks: &mut WatchedClocks) -> SessionSummary {
        self.outputs.iter_mut().for_each(|(_, output)| output.look_after_files());
        self.write_firings(clocks);
        self.beat(None, clocks);
        let unknown = std::mem::take(&mut self.contexts_missing).into_iter();
        let has_events = self.outputs.iter().any(|(_, output)| output.tally().events > 0);
        for name in unknown.filter(|_| has_events) {
            self.problem(format!("no program that was recorded has a context `{name}`: no event carries it"));
        }
        let is_tree = self.options.components.is_some();
        if self.outputs.is_empty() && self.options.keep == Keep::Oldest && !is_tree && self.options.kernel.is_none() {
            // A session without events also leaves a trace.
            let earliest = self.earliest[ClockSource::Counter as usize];
            match Output::create(&self.trace, self.program_options(), clocks.of(ClockSource::Counter), earliest) {
                Ok(mut output) => {
                    output.lost_before(&std::mem::take(&mut self.unbegun[ClockSource::Counter as usize]));
                    self.outputs.push((ClockSource::Counter, output));
                }
                Err(error) => self.problem(error.to_string()),
            }
        }
        let _writes = self.writing.begin(&self.trace);
        self.outputs.iter_mut().for_each(|(source, output)| output.end_clock(clocks.of(*source)));
        self.end_kernel(clocks);
        let triggers = self.summary().triggers;
        let (mut tallies, mut folders) = (Vec::new(), Vec::new());
        for (source, output) in std::mem::take(&mut self.outputs) {
            // `finish` consumes the output, so the tally is kept in case that it fails.
            let so_far = output.tally().clone();
            folders.push(output.path().to_owned());
            tallies.push(output.finish(clocks.of(source)).unwrap_or_else(|error| {
                self.problem(error.to_string());
                so_far
            }));
            // A component whose threads recorded nothing has no trace.
            if let (Some(folder), Some(tally)) = (folders.last().filter(|_| is_tree), tallies.last())
                && tally.events + tally.discarded + tally.unreadable == 0
            {
                let _ = std::fs::remove_dir_all(folder);
            }
        }
        // If this recorder is killed before this point, a later recorder ends the session.
        if let Some((file, _)) = self.kept.take() {
            let _ = std::fs::remove_file(file);
        }
        folders.iter().for_each(|folder| Journal::delete(folder));
        SessionSummary { has_ended: true, triggers, ..self.summed(tallies.iter()) }
    }

    /// Events and losses that the session has recorded so far.
    pub(crate) fn summary(&self) -> SessionSummary {
        self.summed(self.outputs.iter().map(|(_, output)| output.tally()))
    }

    fn summed<'t>(&self, tallies: impl Iterator<Item = &'t Tally>) -> SessionSummary {
        let mut summary = SessionSummary {
            session: self.name.clone(),
            output: self.options.output.clone(),
            programs: self.all_programs(),
            resumed: self.resumed,
            has_gap: self.late.has_gap(),
            late_programs: self.late.count(),
            late_folders: self.late.folders.clone(),
            filtered: self.choosing.filtered,
            cut: self.cut,
            milliseconds: self.took().as_millis() as u64,
            running: processes(&self.present()),
            snapshots: (self.options.keep == Keep::Newest).then_some(self.snapshots),
            rules: self.rules.statuses(),
            removed_rules: self.rules.removed().to_vec(),
            triggers: self.triggers.statuses(|clock, ticks| self.nanos(clock, ticks)),
            problems: self.problems.clone(),
            objects: self.contents.clone(),
            object_files: if self.contents.is_empty() { Vec::new() } else { self.options.objects.clone() },
            more_objects: self.more_contents,
            ..SessionSummary::default()
        };
        self.flush.add_to(&mut summary);
        summary.kernel = self.kernel.as_ref().map(KernelRecording::summary).or_else(|| self.kernel_summary.clone());
        if let Some(KernelSummary { events, bytes, rules, .. }) = &summary.kernel {
            summary.rules.extend(rules.iter().cloned());
            summary.events += events;
            summary.bytes += bytes;
        }
        for tally in tallies {
            summary.events += tally.events;
            summary.own_events += tally.own;
            summary.bytes += tally.bytes;
            summary.lost.unwritten += tally.unwritten;
            summary.lost.no_lane += tally.no_lane;
            summary.lost.undefined += tally.undefined;
            let others = tally.unwritten + tally.no_lane + tally.undefined;
            summary.lost.full += tally.discarded.saturating_sub(others);
            summary.damaged_bytes += tally.unreadable;
            summary.stepped += tally.stepped;
            summary.overwritten += tally.missing;
        }
        for LostEvents { full, no_lane, unwritten, undefined } in &self.unbegun {
            summary.lost.undefined += undefined;
            summary.lost.full += full;
            summary.lost.no_lane += no_lane;
            summary.lost.unwritten += unwritten;
        }
        summary
    }

    /// Its name, and when it began: no other session has both.
    pub(crate) fn instance(&self) -> SessionInstance {
        (self.name.clone(), self.began_ns)
    }

    /// A program has had these contents in the maps of objects.
    pub(crate) fn has_contents(&mut self, found: Vec<ObjectContents>) {
        for contents in found {
            if self.contents.len() < CONTENTS_MAX {
                self.contents.push(contents);
            } else {
                self.more_contents += 1;
            }
        }
    }

    pub(crate) fn status(&self) -> SessionStatus {
        let mut summary = self.summary();
        let triggers = std::mem::take(&mut summary.triggers);
        // They can be long, and there are more when the session ends.
        (summary.objects, summary.object_files) = (Vec::new(), Vec::new());
        // Nor do statuses have the bytes of objects.
        let named = |object: &ObjectOptions| ObjectOptions { bytes: String::new(), ..object.clone() };
        let objects = self.options.objects.iter().map(named).collect();
        let options = SessionOptions { objects, ..self.options.clone() };
        SessionStatus { summary, options, is_on: self.is_on, triggers }
    }
}

/// One process may hold several copies of the tracer, so distinct processes are counted.
fn processes(programs: &BTreeMap<u64, Process>) -> u64 {
    programs.values().collect::<BTreeSet<_>>().len() as u64
}

/// The file of a session that is to continue after its recorder was killed.
pub(crate) fn kept_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.session"))
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Makes a folder, which must be empty.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let is_there = |what| Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, what));
    match std::fs::create_dir_all(path) {
        Err(_) if path.is_file() => is_there("that is a file, and a trace is a folder"),
        Err(error) => Err(error),
        Ok(()) => match std::fs::read_dir(path)?.next() {
            None => Ok(()),
            Some(_) => is_there("there is something in it already, and a trace has a folder of its own"),
        },
    }
}
