//! The programs that the recorder serves: which of their events are on, and how they record.
//!
//! ```text
//! Found ── open ──> Served: switched as the sessions want it, drained        while some session wants something of it
//!            └────> Seen:   what it is, for people; not held                 otherwise: others may record it
//! ```

mod programs;
pub(crate) mod rules;
mod triggers;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use kymo_lane::{ClockSource, FilterEngine, OverflowMode, RecorderSide, RecordingSettings};
use kymo_schema::definition::{ContextClass, Definition, EventClass};

use crate::filters::{ClassFilter, FilterCompiler, Placed, Placer, ProgramConstants};
use crate::program::drain::DrainProgress;
use crate::program::find::{ProgramFile, behind_ns, outer_pid};
use crate::program::groups::GroupControl;
use crate::program::objects::{self, Objects};
use crate::program::rest::Rest;
use crate::program::{Control, Program, ProgramIdentity, ProgramRefusal};
use crate::protocol::{ClassStatus, EventStatus, Keep, LanePool, ProgramStatus};
use crate::select::{ProgramCandidate, ProgramSurroundings};
use crate::session::watch::{TriggerName, TriggerWatch};
use crate::session::{RecordingSession, WatchedClocks};

/// Bytes that a program's lanes may have when no session sets a limit.
pub(crate) const POOL_BYTES: u64 = 16 << 20;

/// Reported of a program that defines too many events.
const FULL: &str = "more events than there is room for, 65,535 or 4 MiB of definitions, plugins that were loaded again counted again: \
                    those beyond are not recorded";
/// Unusable definitions of a program that the summary of a session names; `kymo status` names more.
const TOLD_MAX: usize = 10;
/// Unusable definitions that are reported one by one.
const UNUSABLE_MAX: usize = 100;

/// A program that at least one session wants events of. No other recorder records it meanwhile.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) program: Program,
    pub(crate) found: ProgramFile,
    pub(crate) who: ProgramId,
    /// The control value that each event was last switched to.
    switched: HashMap<u16, u8>,
    /// Where filters of its events are, and the placer that puts them there.
    placed: HashMap<u16, Placed>,
    placer: Option<Placer>,
    /// Images of users' programs that were put into it.
    object_images: HashMap<programs::ObjectTestPlace, programs::ObjectTest>,
    /// Contexts that events have to carry for their filters.
    filtered_contexts: u64,
    wants: Option<RecordingSettings>,
    /// Bytes of its lanes, after losses made them grow.
    grown_bytes: u64,
    /// Definitions that cannot be used, and how many more there are.
    unusable: Vec<String>,
    /// It defines more events than there is room for.
    is_full: bool,
    more_unusable: u64,
    /// Events that are not switched as the sessions want them yet.
    unsettled: Vec<u16>,
    /// Events that the program has not defined yet begin switched off.
    is_closed: bool,
    /// The number of this recorder's published selections that apply to events that it defines; 0:
    /// none.
    applies: u64,
    /// No process has its memory any more.
    pub(crate) is_dead: bool,
    /// Whether the recorder looks at it all the time.
    pub(crate) rest: Rest,
    /// Events that its lanes have lost since the recorder last looked.
    pub(crate) lost_lately: u64,
    /// Objects that it can execute; `None`: the recorder cannot see them.
    objects: Option<Objects>,
    /// Sessions that triggers control.
    pub(crate) groups: GroupControl,
    /// Ticks of its clock in a second; 0: unknown yet.
    pub(crate) frequency: u64,
    /// Events whose triggers the recorder watches, and why, by session and trigger.
    watched: HashMap<TriggerName, BTreeSet<String>>,
    /// Triggers that the recorder watches in recorded events.
    watch: TriggerWatch,
    /// Triggers that the program judges, and the ticks from which on it does.
    judged: HashMap<triggers::JudgedTrigger, u64>,
    /// The program judges since a short while.
    first: triggers::FirstJudgements,
    /// Rules that the program does not ask about some events, to be told.
    rule_problems: BTreeSet<rules::RuleProblem>,
    /// Events that rules cannot be about, to be told.
    rule_misfits: BTreeSet<rules::RuleProblem>,
}

/// A program that no session wants events of.
#[derive(Debug)]
pub(crate) struct UnwantedProgram {
    pub(crate) found: ProgramFile,
    pub(crate) who: ProgramId,
    pub(crate) status: ProgramStatus,
    pub(crate) events: Vec<Arc<EventClass>>,
    /// Contexts that they may carry, by number.
    pub(crate) contexts: Vec<Option<Arc<ContextClass>>>,
    /// How far it was recorded, so that no event is recorded twice.
    pub(crate) progress: DrainProgress,
    /// It was gone when the recorder saw it: its events stay for a client that comes back for them.
    pub(crate) is_dead: bool,
}

/// An event, and its filter; `Err`: the control value without a filter.
type EventFilter = (u16, Arc<EventClass>, Result<ClassFilter, u8>);

/// Identity of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramId {
    pub(crate) identity: ProgramIdentity,
    pub(crate) pid: Option<u32>,
    pub(crate) tag: Option<String>,
    /// Of its executable; empty: unknown.
    pub(crate) build_id: String,
    pub(crate) surroundings: ProgramSurroundings,
}

impl ProgramId {
    pub(crate) fn candidate(&self) -> ProgramCandidate<'_> {
        let ProgramIdentity { pid: own_pid, name, path, user, .. } = &self.identity;
        let ProgramSurroundings { label, cgroup } = &self.surroundings;
        ProgramCandidate {
            pid: self.pid,
            own_pid: *own_pid,
            name,
            path,
            tag: self.tag.as_deref(),
            label,
            user: *user,
            cgroup,
        }
    }
}

impl Served {
    /// Opens a program that was found.
    pub(crate) fn open(found: ProgramFile) -> Result<Self, Box<(ProgramFile, ProgramRefusal)>> {
        let opened = Program::open(&found.way(), found.user).and_then(|mut program| {
            let new = program.definitions()?;
            Ok((program, new))
        });
        let (mut program, new) = match opened {
            Ok(opened) => opened,
            Err(refusal) => return Err(Box::new((found, refusal))),
        };
        let identity = program.identity().clone();
        let pid = outer_pid(identity.pid, identity.pid_namespace, identity.started);
        pid.into_iter().for_each(|pid| program.is_known_as(pid));
        let behind_ns = pid.filter(|_| identity.clock == ClockSource::Monotonic).and_then(behind_ns).unwrap_or(0);
        // Its timestamps could not be merged with those of other programs. The processor's counter
        // is the same in all time namespaces, so only the system's clock is checked.
        if behind_ns != 0 {
            return Err(Box::new((found, ProgramRefusal::Time { behind_ns })));
        }
        let build_id = pid.map(objects::build_id_of_process).unwrap_or_default();
        let surroundings = ProgramSurroundings::of_process(pid, &identity);
        let who = ProgramId { identity, pid, tag: found.tag.clone(), build_id, surroundings };
        let is_dead = program.is_dead();
        let (applies, _) = who.identity.selections();
        let mut served = Self {
            program,
            found,
            who,
            switched: HashMap::new(),
            placed: HashMap::new(),
            placer: None,
            object_images: HashMap::new(),
            filtered_contexts: 0,
            wants: None,
            grown_bytes: 0,
            unusable: Vec::new(),
            is_full: false,
            more_unusable: 0,
            unsettled: Vec::new(),
            is_closed: false,
            applies,
            is_dead,
            rest: Rest::new(),
            lost_lately: 0,
            objects: pid.map(Objects::of),
            groups: GroupControl::default(),
            frequency: 0,
            watched: HashMap::new(),
            watch: TriggerWatch::default(),
            judged: HashMap::new(),
            first: triggers::FirstJudgements::default(),
            rule_problems: BTreeSet::new(),
            rule_misfits: BTreeSet::new(),
        };
        served.note(new);
        served.note_full();
        Ok(served)
    }

    pub(crate) fn key(&self) -> u64 {
        self.who.identity.key
    }

    fn note(&mut self, new: Vec<crate::program::Defined>) {
        for defined in new {
            match defined.what {
                Ok(Definition::Event(_)) if !defined.is_context => self.unsettled.push(defined.id),
                // A new context changes all events: filters that name it can be evaluated from now
                // on.
                Ok(_) => self.unsettle(),
                Err(problem) => {
                    if !defined.is_context {
                        // No recorder could decode the event. If the program is gone, the next look
                        // reports that.
                        let _ = self.program.switch(defined.id, 0);
                    }
                    match self.unusable.len() < UNUSABLE_MAX {
                        true => self.unusable.push(match (defined.is_context, defined.name.as_str()) {
                            (true, _) => format!("context {}: {problem}", defined.id),
                            (false, "") => format!("event {}: {problem}", defined.id),
                            (false, name) => format!("event `{name}`: {problem}"),
                        }),
                        false => self.more_unusable += 1,
                    }
                }
            }
        }
    }

    /// Tells sessions that want the program which definitions of it cannot be used.
    pub(crate) fn tell_problems(&mut self, sessions: &mut [RecordingSession]) {
        self.note_full();
        let (name, pid) = (&self.who.identity.name, self.who.pid.unwrap_or(self.who.identity.pid));
        for problem in self.unusable().into_iter().take(TOLD_MAX) {
            for session in sessions.iter_mut().filter(|session| session.takes_program(&self.who)) {
                session.problem(format!("{name} (process {pid}): {problem}"));
            }
        }
    }

    fn note_full(&mut self) {
        if !self.is_full && self.program.is_full().unwrap_or(false) {
            self.is_full = true;
            self.unusable.push(FULL.to_owned());
        }
    }

    /// Reads new definitions, and switches the events that they define; returns whether there are
    /// any.
    pub(crate) fn learn(
        &mut self,
        sessions: &mut [RecordingSession],
        compiler: &mut FilterCompiler,
    ) -> io::Result<bool> {
        let is_new = self.note_new(sessions)?;
        if !self.unsettled.is_empty() {
            self.settle(sessions, compiler)?;
        }
        Ok(is_new)
    }

    /// Reads new definitions, and tells sessions of them; returns whether there are any.
    pub(crate) fn note_new(&mut self, sessions: &mut [RecordingSession]) -> io::Result<bool> {
        let new = self.program.definitions()?;
        let is_new = !new.is_empty();
        self.note(new);
        if is_new {
            self.tell_events(&self.unsettled, sessions);
            self.use_rules(sessions);
        }
        Ok(is_new)
    }

    /// All events have to be switched again.
    fn unsettle(&mut self) {
        self.unsettled = self.events().map(|(id, _)| id).collect();
        self.watched.clear();
        self.watch.clear();
        self.placed.clear();
        self.filtered_contexts = 0;
    }

    /// Its events, by id.
    pub(crate) fn events(&self) -> impl Iterator<Item = (u16, &Arc<EventClass>)> {
        let all = self.program.known().events.iter().enumerate();
        all.filter_map(|(id, class)| Some((id as u16, class.as_ref()?)))
    }

    /// Tells sessions the objects that the program can execute, as far as they are known or found
    /// now.
    pub(crate) fn tell_objects(&mut self, sessions: &mut [RecordingSession], clocks: &mut WatchedClocks) {
        let Some(objects) = &mut self.objects else { return };
        if !self.is_dead {
            objects.look();
        }
        let known = self.program.known();
        sessions.iter_mut().for_each(|session| session.learns_objects(known, objects.all(), clocks));
    }

    /// Selections are published under this number: events that the program defines from now on, for
    /// example those of a plugin, are on from the start as these say. 0: none are.
    pub(crate) fn applies(&mut self, number: u64) {
        if self.applies != number {
            self.applies = number;
            // If the program is gone, the next look reports that.
            let _ = self.program.lane().applies(self.who.identity.ours, number);
        }
    }

    /// Whether the selection of another recorder applies to the program.
    pub(crate) fn is_others(&self) -> bool {
        self.program.lane().is_applying(1 - self.who.identity.ours).unwrap_or(false)
    }

    /// Switches all of its events as the sessions want them, and tells the program how to record.
    pub(crate) fn switch(
        &mut self,
        sessions: &mut [RecordingSession],
        compiler: &mut FilterCompiler,
    ) -> io::Result<()> {
        self.unsettle();
        self.tell_events(&self.unsettled, sessions);
        self.use_rules(sessions);
        self.settle(sessions, compiler)
    }

    /// The same, only for events that are not switched as wanted yet, so that one more definition
    /// costs only the work for that one.
    fn settle(&mut self, sessions: &[RecordingSession], compiler: &mut FilterCompiler) -> io::Result<()> {
        let wanting: Vec<&RecordingSession> =
            sessions.iter().filter(|session| session.takes_program(&self.who)).collect();
        // A program that was started for a session begins with all events on. Without that session,
        // undefined events must not stay on.
        if !wanting.iter().any(|session| session.has_started(&self.who)) {
            self.close()?;
        }
        let key = self.key();
        let (grouped, others): (Vec<&RecordingSession>, Vec<&RecordingSession>) =
            wanting.iter().partition(|session| session.triggers.group(key).is_some());
        let filters = self.filters(&others);
        let of_groups: Vec<_> = grouped.iter().map(|session| self.filters(&[session])).collect();
        let triggers = self.trigger_filters(&wanting);
        let rules = self.event_rules(&grouped, compiler);
        let carried =
            filters.iter().chain(of_groups.iter().flatten()).filter_map(|(_, _, filter)| filter.as_ref().ok());
        let carried = carried.chain(triggers.values().flatten().map(|trigger| &trigger.filter));
        self.filtered_contexts |= carried.fold(0, |all, filter| all | filter.carried());
        // The program first learns how to record, then which events, so that it records no event in
        // another way than is wanted.
        if let Some(wants) = self.wanted(&wanting)
            && self.wants != Some(wants)
        {
            self.program.say(&wants)?;
            self.wants = Some(wants);
        }
        let switched = self.place(&filters, compiler)?;
        if grouped.is_empty() && !self.groups.is_used() {
            self.watch_events(&triggers, |_| false);
            for (id, to) in switched {
                // A filter of another session could drop what the recorder watches.
                let to = if triggers.contains_key(&id) { 1 } else { to };
                if self.switched.get(&id) != Some(&to) {
                    self.program.switch(id, to)?;
                    self.switched.insert(id, to);
                }
            }
        } else {
            self.settle_groups(&grouped, (switched, &filters), &of_groups, (&triggers, &rules), compiler)?;
        }
        self.unsettled.clear();
        let events = &self.program.known().events;
        let settled = events.iter().position(Option::is_none).unwrap_or(events.len());
        // If the program is gone, the next look reports that.
        let _ = self.program.lane().set_settled(settled as u64);
        Ok(())
    }

    /// For each event that is not switched yet, the filter that accepts the events that at least
    /// one session wants; `Err`: the control value without a filter.
    fn filters(&self, sessions: &[&RecordingSession]) -> Vec<EventFilter> {
        let facts = ProgramConstants { pid: Some(self.who.identity.pid), contexts: &self.program.known().contexts };
        let filter = |class: &EventClass| {
            let wanting: Vec<Vec<String>> =
                sessions.iter().filter_map(|session| session.filters(&self.who, class)).collect();
            match (wanting.is_empty(), wanting.iter().any(Vec::is_empty)) {
                // One session that wants every event of the class decides: a filter could only drop
                // some of them.
                (true, _) => Err(0),
                (_, true) => Err(1),
                // A filter that cannot be evaluated on this event class keeps none of its events.
                _ => ClassFilter::of_texts(wanting.iter().flatten().map(String::as_str), class, facts).map_err(|_| 0),
            }
        };
        let event = |id: &u16| Some((*id, self.program.known().events.get(usize::from(*id))?.as_ref()?));
        let unsettled = self.unsettled.iter().filter_map(event);
        unsettled.map(|(id, class)| (id, Arc::clone(class), filter(class))).collect()
    }

    /// Puts filters into the program; returns the control values for its events.
    fn place(&mut self, filters: &[EventFilter], compiler: &mut FilterCompiler) -> io::Result<Vec<(u16, u8)>> {
        let asked: Vec<(u16, (&ClassFilter, &EventClass))> =
            filters.iter().filter_map(|(id, class, filter)| Some((*id, (filter.as_ref().ok()?, &**class)))).collect();
        if !asked.is_empty() && !self.is_dead {
            let mut placer = match self.placer.take() {
                Some(placer) => placer,
                None => Placer::new(&self.program, self.found.user)?,
            };
            let wanted: Vec<_> = asked.iter().map(|(_, wanted)| *wanted).collect();
            let placed = placer.place(self.program.lane(), compiler, &wanted);
            // Before the error below returns: the placer knows which slots are in use.
            self.placer = Some(placer);
            self.placed.extend(asked.iter().map(|(id, _)| *id).zip(placed?));
        }
        let control = |id: &u16| self.placed.get(id).map_or(0, |placed| placed.control);
        let all = filters.iter().map(|(id, _, filter)| (*id, filter.as_ref().map_or_else(|to| *to, |_| control(id))));
        Ok(all.collect())
    }

    fn wanted(&self, sessions: &[&RecordingSession]) -> Option<RecordingSettings> {
        let options = || sessions.iter().map(|session| &session.options);
        options().next()?;
        // A lane overwrites only if all sessions agree: a session that keeps the oldest events must
        // not lose them to a flight recorder.
        let is_flight = options().all(|options| options.keep == Keep::Newest);
        let mode = if is_flight { OverflowMode::OverwriteOldest } else { OverflowMode::DiscardNewest };
        let each = u64::from(self.program.lane().layout().sub_buffer_bytes);
        let subs = |bytes: u64| u32::try_from(bytes.div_ceil(each)).unwrap_or(u32::MAX).max(1);
        // The largest wish counts, because the program has one pool for all sessions.
        let pool = options().map(|options| options.pool_bytes.unwrap_or(POOL_BYTES)).max().unwrap_or(POOL_BYTES);
        let pool = subs(pool.max(self.grown_bytes)).min(self.program.lane().layout().sub_buffers);
        let lane = options().map(|options| options.lane_bytes.map_or(u32::MAX, subs)).max().unwrap_or(u32::MAX);
        let contexts = options().fold(0, |all, options| all | options.contexts) | self.own_contexts(sessions);
        let contexts = contexts | self.filtered_contexts;
        Some(RecordingSettings { mode, lane: lane.min(pool), pool, contexts })
    }

    /// Contexts that the program defines and that a session has asked for by name.
    fn own_contexts(&self, sessions: &[&RecordingSession]) -> u64 {
        let is_asked = |name: &String| sessions.iter().any(|session| session.options.own_contexts.contains(name));
        let known = self.program.known().contexts.iter().enumerate();
        let asked = known.filter(|(_, context)| context.as_ref().is_some_and(|context| is_asked(&context.field.name)));
        asked.fold(0, |all, (id, _)| all | kymo_lane::contexts::FIRST_OWN << id)
    }

    /// Gives its lanes more memory if events were lost and no session has set a limit.
    pub(crate) fn grow(&mut self, sessions: &[RecordingSession], compiler: &mut FilterCompiler) -> io::Result<()> {
        let has_lost = std::mem::take(&mut self.lost_lately) > 0;
        let is_fixed =
            |session: &RecordingSession| session.takes_program(&self.who) && session.options.pool_bytes.is_some();
        let Some(wants) = self.wants.filter(|_| has_lost && !sessions.iter().any(is_fixed)) else { return Ok(()) };
        let each = u64::from(self.program.lane().layout().sub_buffer_bytes);
        // Doubling finds the size in a few steps, and `wanted` stops it at the end of the layout.
        self.grown_bytes = 2 * each * u64::from(wants.pool);
        self.settle(sessions, compiler)
    }

    /// Switches all events off, also those that the program has not defined yet.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        self.applies(0);
        // The control bytes change without `settle`, so the memory of them is void.
        self.switched.clear();
        self.program.switch_off(|_| true)
    }

    /// Switches off the events that the program has not defined yet, if it has begun with all
    /// events on.
    fn close(&mut self) -> io::Result<()> {
        if self.who.tag.is_some() && !self.is_closed {
            let events = &self.program.known().events;
            self.program.switch_off(|id| !matches!(events.get(usize::from(id)), Some(Some(_))))?;
            self.is_closed = true;
        }
        Ok(())
    }

    /// Describes the program, without holding it.
    pub(crate) fn seen(self) -> UnwantedProgram {
        let status = self.status(&[]);
        let events = self.events().map(|(_, class)| Arc::clone(class)).collect();
        let contexts = self.program.known().contexts.clone();
        let (progress, is_dead) = (self.program.progress(), self.is_dead);
        UnwantedProgram { found: self.found, who: self.who, status, events, contexts, progress, is_dead }
    }

    /// Whether the program may still hold events that a session wants. Events that it recorded
    /// while all were off do not count, and neither do those that a recorder has taken.
    pub(crate) fn has_events(&mut self) -> bool {
        self.program.is_on().unwrap_or(false) && self.program.has_new().unwrap_or(false)
    }

    /// Status of the program, for people.
    pub(crate) fn status(&self, sessions: &[RecordingSession]) -> ProgramStatus {
        let ProgramIdentity { pid: own_pid, user, clock, name, path, .. } = self.who.identity.clone();
        let lane = self.program.lane();
        let lanes = lane.lanes_ready().unwrap_or(0);
        let held = (0..lanes).filter(|number| matches!(lane.holder(*number), Ok(Some(_)))).count();
        let losses = (0..lanes).filter_map(|number| lane.losses(number).ok());
        let lost = losses.map(|losses| losses.discarded).sum::<u64>() + lane.discarded().unwrap_or(0);
        let event = |(id, class): (u16, &Arc<EventClass>)| self.event_status(id, class, sessions);
        ProgramStatus {
            pid: self.who.pid,
            own_pid,
            name,
            path,
            user,
            clock: format!("{clock:?}").to_lowercase(),
            file: self.found.path.clone(),
            is_contained: self.found.is_contained,
            is_attached: !sessions.is_empty(),
            is_dead: self.is_dead,
            is_resting: self.rest.is_resting(),
            looks: self.rest.looks(),
            pool: self.pool(),
            lanes: held as u32,
            lost,
            events: self.events().map(event).collect(),
            unusable: self.unusable(),
            copies: 1,
        }
    }

    fn unusable(&self) -> Vec<String> {
        let (mut all, unread) = (self.unusable.clone(), self.program.unread());
        if self.more_unusable > 0 {
            all.push(format!("and {} definitions more", self.more_unusable));
        }
        if unread > 0 {
            all.push(format!("{unread} definitions have ids that others had before them"));
        }
        if self.program.has_too_many() {
            all.push("there are more definitions than are read".to_owned());
        }
        all
    }

    fn event_status(&self, id: u16, class: &EventClass, sessions: &[RecordingSession]) -> EventStatus {
        let wanting = sessions.iter().filter_map(|session| Some((session, session.filters(&self.who, class)?)));
        let sessions: std::collections::BTreeMap<String, Vec<String>> =
            wanting.map(|(session, filters)| (session.name.clone(), filters)).collect();
        let (runs, why) = self.runs(id).unzip();
        let why = why.filter(|why| !why.is_empty());
        EventStatus {
            name: class.full_name(),
            level: class.level,
            is_on: self.switched.get(&id).is_some_and(|to| *to != 0),
            runs,
            why,
            sessions,
        }
    }

    /// Adds the status of an event class for a session to that of other classes with this name, if
    /// any.
    pub(crate) fn add_class(
        &self,
        id: u16,
        class: &EventClass,
        session: &RecordingSession,
        all: &mut ClassStatus,
        is_first: bool,
    ) {
        let new = |known: &mut Vec<String>, text: String| {
            if !text.is_empty() && !known.contains(&text) {
                known.push(text);
            }
        };
        all.level = if is_first { class.level } else { all.level.min(class.level) };
        let Some(filters) = session.filters(&self.who, class) else { return };
        all.is_on = true;
        if !filters.is_empty()
            && let Some((place, why)) = self.runs(id)
        {
            new(&mut all.runs, place);
            new(&mut all.why, why);
        }
        filters.into_iter().for_each(|filter| new(&mut all.filters, filter));
    }

    /// Where the filter of an event runs, and why there; `None`: the event has no filter.
    fn runs(&self, id: u16) -> Option<(String, String)> {
        let placed = self.placed.get(&id)?;
        let is_refused =
            placed.control > 1 && matches!(self.program.lane().runs(placed.control), Ok(FilterEngine::Not));
        let place = if is_refused { "recorder" } else { placed.place_name() };
        let mut why: Vec<String> = placed.why.iter().map(ToString::to_string).collect();
        if is_refused {
            why.push("the program could not run it".to_owned());
        }
        Some((place.to_owned(), why.join("; ")))
    }

    fn pool(&self) -> LanePool {
        let lane = self.program.lane();
        let each = u64::from(lane.layout().sub_buffer_bytes);
        let ready = lane.ready().unwrap_or(0);
        let (mut room, mut used) = (vec![0; RecorderSide::<Control>::look_bytes(ready)], 0);
        let _ = lane.look_all(ready, &mut room, |_| used += 1);
        let limit = self.wants.map_or(POOL_BYTES, |wants| each * u64::from(wants.pool));
        LanePool { used_bytes: used * each, ready_bytes: u64::from(ready) * each, limit_bytes: limit }
    }
}
