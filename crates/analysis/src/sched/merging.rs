//! Adds the part that follows: this part's end resolves the facts that it could not know.
//!
//! ```text
//! left     ... CPU 0 runs 7, in read          thread: 7       call: read      7 is a life since 10
//! right    CPU 0 wakes 9, leaves 7 ...        thread: Before  call: Before    7 is open since 20
//! ```

use hashbrown::HashMap;

use super::doing::{CurrentCall, WakeSource};
use super::lane::{self, CpuHead, CpuTail, SchedCpuState};
use super::lives::{EarlierLives, LifeStage, Place, SchedLife, SchedLives};
use super::state::{CurrentThread, SchedState};
use super::{Sched, union};
use crate::threads::Slot;
use crate::threads::{ThreadId, ThreadKey};

/// For each place of the right part where the life is now.
type Moved = Vec<Place>;

impl Sched {
    pub(super) fn merge_states(&self, left: &mut SchedState, mut right: SchedState) {
        // Lives that were woken are not put together yet when their wakers end.
        left.is_merging = true;
        left.lives.places.iter_mut().for_each(|life| life.woken.clear());
        if left.is_later {
            self.begin_cpus(left, &right);
        }
        for run in left.running.iter().flatten().filter(|run| run.tid != 0) {
            left.lives.places[run.at as usize].row.is_referred = true;
        }
        // In this order: calls and identities of the right part refer to CPUs and lives as the left
        // part left them, and merging changes both.
        self.merge_calls(left, &mut right);
        let ids = continued(&left.lives, &right.lives);
        let known = MergeFacts { ids, before: before(left) };
        let who = |who| known.who(who);
        right.lives.places.iter_mut().for_each(|life| life.row.identify(who));
        self.merge_cpus(left, &right.lives, right.cpus);
        let moved = self.merge_lives(left, &mut right.lives);
        for (lane, running) in right.running.iter().enumerate() {
            for running in running {
                let at = moved.get(running.at as usize).copied().unwrap_or(0);
                left.set_running(lane, CurrentThread { at, ..*running });
            }
        }
        let SchedState { lives, settled, .. } = left;
        settled.merge(right.settled, |key| lives.ended(key).saturating_sub(right.lives.ended(key)), who);
        if left.lives.begin.is_none() {
            left.firsts.extend(right.firsts);
            left.begin(self);
        }
        left.tidy();
        left.span = union(left.span, right.span);
    }
}

/// The facts that the right part did not know.
struct MergeFacts {
    /// Lives that go on, by their ids in the right part.
    ids: HashMap<ThreadId, ThreadId>,
    /// The threads on CPUs when the right part began.
    before: HashMap<(u32, u32), WakeSource>,
}

impl MergeFacts {
    fn who(&self, who: WakeSource) -> WakeSource {
        match who {
            WakeSource::Before(lane, cpu) => self.before.get(&(lane, cpu)).copied().unwrap_or(who),
            WakeSource::Thread(id) => WakeSource::Thread(self.ids.get(&id).copied().unwrap_or(id)),
            WakeSource::Idle | WakeSource::Unknown => who,
        }
    }
}

/// The threads on CPUs at the end of the left part.
fn before(left: &SchedState) -> HashMap<(u32, u32), WakeSource> {
    let lanes = left.running.iter().enumerate();
    let cpus = lanes.flat_map(|(lane, running)| running.iter().map(move |run| (lane, run.cpu)));
    cpus.map(|(lane, cpu)| ((lane as u32, cpu), left.who(lane, cpu, left.running(lane, cpu)))).collect()
}

/// Which open lives of the right part go on with lives of the left one.
fn continued(left: &SchedLives, right: &SchedLives) -> HashMap<ThreadId, ThreadId> {
    let mut ids = HashMap::default();
    for thread in &right.threads {
        let Some(living) = left.now(thread.key) else { continue };
        let mut is_unborn = living.row.is_unborn();
        let mut next = right.first_of(thread);
        while let Some(at) = next {
            next = right.next_of(thread, at);
            let piece = &right.places[at as usize];
            ids.insert(piece.id, living.id);
            // A thread that has died instead of one that was not born yet was an older one.
            let is_older = is_unborn && piece.row.is_only_death();
            if piece.stage == LifeStage::Over && !is_older {
                break;
            }
            is_unborn &= is_older || !piece.row.is_switched();
        }
    }
    ids
}

impl Sched {
    /// In which calls threads were when the right part began. Calls that the left part does not
    /// know either are its own unknown ones from now on, so each is replaced once.
    fn merge_calls(&self, left: &SchedState, right: &mut SchedState) {
        let causes = self.causes(left, right);
        let cause =
            |unknown: CurrentCall| causes.iter().find(|cause| cause.0 == unknown).map_or(unknown, |cause| cause.1);
        let before = |key: ThreadKey| match left.lives.now(key) {
            Some(life) => life.row.call,
            None if left.lives.is_first(key) => CurrentCall::BeforeRow,
            None => CurrentCall::None,
        };
        let SchedState { running, lives, .. } = right;
        for running in running.iter_mut().flatten() {
            running.call = match running.call {
                CurrentCall::BeforeRow => before(lives.at(running.at).id.key),
                call => cause(call),
            };
        }
        for life in lives.places.iter_mut().filter(|life| life.is_open) {
            let before = before(life.id.key);
            life.row.resolve(|call| if call == CurrentCall::BeforeRow { before } else { cause(call) });
        }
    }

    /// In which calls threads were when they left CPUs for the first time.
    fn causes(&self, left: &SchedState, right: &SchedState) -> Vec<(CurrentCall, CurrentCall)> {
        let known = |(lane, cpu): (usize, &SchedCpuState)| {
            let head = cpu.head.filter(|head| head.prev != 0)?;
            let key = self.key(lane, head.prev);
            let call = match left.running(lane, cpu.cpu) {
                Some(run) if run.tid == head.prev && left.lives.places[run.at as usize].stage == LifeStage::Living => {
                    cpu.seen.or(run.call)
                }
                // It may have run since before that.
                None if left.lives.is_first(key) => return None,
                _ => CurrentCall::None,
            };
            Some((CurrentCall::BeforeCpu(lane as u32, cpu.cpu), call))
        };
        let cpus = right.cpus.iter().enumerate();
        cpus.flat_map(|(lane, cpus)| cpus.iter().map(move |cpu| (lane, cpu))).filter_map(known).collect()
    }

    /// The switches of CPUs, and the runs that go on.
    fn merge_cpus(&self, left: &mut SchedState, right: &SchedLives, cpus: Vec<Vec<SchedCpuState>>) {
        for (lane, cpus) in cpus.into_iter().enumerate() {
            for cpu in cpus {
                let tail = left.append_cpu(lane, cpu);
                match (tail, cpu.head) {
                    (Some(tail), Some(head)) => self.merge_run(left, right, (lane, cpu.cpu), (tail, head)),
                    (_, Some(_)) => {}
                    (_, None) => {
                        // All that was seen of calls is of the run that goes on.
                        if let Some(running) = left.running_mut(lane, cpu.cpu) {
                            running.call = cpu.seen.or(running.call);
                        }
                    }
                }
            }
        }
    }

    /// A run went on to the first switch of the right part.
    fn merge_run(&self, left: &mut SchedState, right: &SchedLives, (lane, cpu): (usize, u32), run: (CpuTail, CpuHead)) {
        let (tail, head) = run;
        let Some(run) = left.running(lane, cpu).filter(|run| run.tid != 0) else { return };
        // Between the two parts a switch is missing.
        let is_odd = run.tid != head.prev;
        let life = left.lives.at(run.at);
        let row = &mut life.row;
        if tail.is_renamed(head.prev, head.comm) {
            row.name_it(head.comm, head.time);
        }
        if is_odd && is_before(right, life.id.key, head.time) {
            row.lose(cpu, head.time);
        }
        if self.wants_cpu(cpu) {
            let is_cut = is_odd || tail.is_assumed || lane::is_doubtful(&self.lanes[lane], tail.time, head.time);
            row.ran(tail.time.abs_diff(head.time), is_cut);
        }
        life.running_on -= 1;
        left.stopped(self, run.at);
    }

    /// Lives that go on, and new ones.
    fn merge_lives(&self, left: &mut SchedState, right: &mut SchedLives) -> Moved {
        let mut moved = vec![0; right.places.len()];
        let threads = std::mem::take(&mut right.threads);
        for thread in &threads {
            let slot = left.lives.slot(thread.key);
            let mut open = right.first_of(thread);
            while let Some(at) = open {
                open = right.next_of(thread, at);
                moved[at as usize] = self.append(left, slot, std::mem::take(right.at(at)));
            }
            if let EarlierLives::Made(time) = thread.opening {
                left.give_away(self, slot, time);
            }
            if let Some(at) = thread.living.filter(|&at| right.at(at).stage == LifeStage::Living) {
                moved[at as usize] = left.lives.insert_living(slot, std::mem::take(right.at(at)));
            }
        }
        for (at, life) in right.places.iter_mut().enumerate().filter(|(_, life)| life.stage == LifeStage::Over) {
            let life = std::mem::take(life);
            moved[at] = {
                let slot = left.lives.slot(life.id.key);
                left.lives.insert(slot, life)
            };
        }
        for thread in &threads {
            let slot = left.lives.slot(thread.key);
            left.lives.threads[slot as usize].ended += thread.ended;
        }
        right.threads = threads;
        moved
    }

    /// Adds an open life: it goes on with the one that is living, or is another one.
    fn append(&self, left: &mut SchedState, slot: Slot, piece: SchedLife) -> Place {
        let thread = left.lives.threads[slot as usize];
        let at = if thread.living.is_none() && thread.opening == EarlierLives::Open {
            left.lives.insert_living(slot, piece)
        } else {
            let at = left.lives.living(piece.id.key, piece.id.since);
            let life = left.lives.at(at);
            life.running_on += piece.running_on;
            if let Some(waited) = life.row.join(piece.row) {
                left.settled.count(self, life.id, &mut life.row, waited);
            }
            at
        };
        if left.lives.at(at).row.is_dead() {
            left.end(self, at);
        }
        at
    }
}

/// Whether an instant is before all events that say a thread's state.
pub(super) fn is_before(right: &SchedLives, key: ThreadKey, time: i64) -> bool {
    let Some(thread) = right.thread(key) else { return true };
    let first = right.first_of(thread).and_then(|at| right.places[at as usize].row.first_switch());
    let made = if let EarlierLives::Made(made) = thread.opening { Some(made) } else { None };
    first.is_none_or(|first| time <= first) && made.is_none_or(|made| time <= made)
}

impl SchedState {
    /// Adds the switches of a CPU; its last switch before that.
    fn append_cpu(&mut self, lane: usize, cpu: SchedCpuState) -> Option<CpuTail> {
        let Some(known) = self.cpus[lane].iter_mut().find(|known| known.cpu == cpu.cpu) else {
            self.cpus[lane].push(cpu);
            return None;
        };
        // The left part has not seen the CPU switch, so the first switch is the right part's.
        if known.head.is_none() {
            (known.head, known.seen) = (cpu.head, cpu.seen.after(known.seen));
        }
        let before = known.tail;
        known.tail = cpu.tail.or(before);
        before
    }
}
