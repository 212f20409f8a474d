"""Oracle of `kymo sched`: how long threads wait for a CPU, how long they run, and what they do else. See docs/analyses.md, section 6.

    sched.py TRACE
"""

import sys
from collections import defaultdict

from events import Trace
from figures import Answer, percentiles, statistics
from syscalls import call_of, wanted
from threads import UNKNOWN, WAKES, Replay

STATES = ("running", "preempted", "waiting", "blocked", "new", "unknown")
IDLE = "idle"


class Wait:
    """A thread waits for a CPU since it was woken."""

    __slots__ = ("begin", "waker", "target", "has_wakeup")

    def __init__(self, begin, waker):
        self.begin, self.waker, self.target, self.has_wakeup = begin, waker, None, False

    def aim(self, event):
        """A wakeup knows better than a waking where the thread will run."""
        is_wakeup = event.name != "sched_waking"
        if is_wakeup or not self.has_wakeup:
            self.target = event.get("target_cpu")
        self.has_wakeup = self.has_wakeup or is_wakeup


class Life:
    """What a thread does now, and how long it did what."""

    __slots__ = ("state", "since", "times", "wait", "cause", "call", "is_switched")

    def __init__(self, state, since):
        self.state, self.since, self.times = state, since, dict.fromkeys(STATES, 0)
        self.wait = self.cause = self.call = None
        self.is_switched = False


class Scheduling:
    """The states of all threads, one event after the other."""

    def __init__(self, trace, replay):
        self.trace, self.replay = trace, replay
        self.begin, self.end = trace.whole_span()
        self.losses = trace.losses()
        self.lives = {}
        self.latencies, self.priorities, self.others = defaultdict(list), defaultdict(list), defaultdict(int)
        self.lost_of_priority, self.wrong_cpu = defaultdict(int), 0
        self.wakers, self.waker_totals = defaultdict(int), defaultdict(int)
        self.blocked, self.preemptions = defaultdict(list), defaultdict(int)
        # Of each run the call that it is in, and where its thread's latest switch to it was.
        self.run_calls, self.latest = {}, {}
        for run in sorted(replay.first_runs(), key=lambda run: run.begin):
            self.run_calls[run] = None
            if run.thread:
                self._enter(run.thread, "running", run.begin)
                self.latest[run.thread] = run

    def _life(self, thread, time=None):
        since = self.begin if thread[1] == 0 or time is None else time
        return self.lives.setdefault(thread, Life("unknown", since))

    def _enter(self, thread, state, time):
        life = self._life(thread, time)
        if life.state == "dead":
            return life
        if life.state == "blocked":
            self.blocked[thread, life.cause].append(time - life.since)
        life.times["unknown" if life.state == "lost" else life.state] += time - life.since
        life.state, life.since = state, time
        return life

    def step(self, event, happenings):
        for kind, *what in happenings:
            if kind == "ended":
                ended = what[0]
                if ended.odd and ended.thread:
                    self._lost(ended, event)
            elif kind == "away":
                self._away(what[0], what[1], ended, event)
            elif kind == "begun":
                self._begun(what[0], event)
            elif kind == "forked":
                self._forked(what[0], event)
            elif kind == "woken":
                self._woken(what[0], event)
        if event.name == "lttng_statedump_process_state" and event.get("tid"):
            self._life((event.get("tid"), self.replay.incarnations.get(event.get("tid"), 0)), event.time)
        kind, name = call_of(event)
        run = self.replay.running.get(event.cpu)
        if kind and run:
            self.run_calls[run] = name if kind == "entry" else None

    def _lost(self, run, event):
        life = self._life(run.thread)
        if life.state == "running" and self.latest.get(run.thread) is run:
            self._enter(run.thread, "lost", event.time)

    def _forked(self, thread, event):
        before = (thread[0], thread[1] - 1)
        if before in self.lives:
            self._over(before, event.time)
        self.lives.setdefault(thread, Life("new", event.time))

    def _over(self, thread, time):
        """Its tid is given away, or the trace ends."""
        life = self.lives[thread]
        if life.state == "waiting":
            self.others[thread, "never_ended" if self._is_whole(life.since, time) else "lost_inside"] += 1
        if life.state != "dead":
            self._enter(thread, life.state, time)
            life.state = "dead"

    def _away(self, thread, kind, run, event):
        thread = self.replay.current_of_away
        is_its = run.thread == thread
        life = self._life(thread, event.time)
        if kind == "dead" and life.state in ("new", "waiting") and not life.is_switched and thread in self.replay.forked:
            return
        self.preemptions[thread] += kind == "runnable"
        if life.state == "waiting":
            self.others[thread, "lost_inside"] += 1
            life.wait = None
        life.is_switched = True
        life.call = self.run_calls.get(run) if is_its else None
        state = {"runnable": "preempted", "dead": "dead", "blocked": "blocked"}[kind]
        self._enter(thread, state, event.time).cause = life.call

    def _woken(self, thread, event):
        life = self._life(thread, event.time)
        if life.state in ("unknown", "new", "blocked"):
            self._enter(thread, "waiting", event.time)
            run = self.replay.running.get(event.cpu)
            life.wait = Wait(event.time, (run.thread or IDLE) if run else None)
            self.wakers[life.wait.waker, thread] += 1
        if life.state == "waiting":
            life.wait.aim(event)

    def _begun(self, run, event):
        thread = run.thread
        if not thread:
            self.run_calls[run] = None
            return
        life = self._life(thread, event.time)
        if life.state == "waiting":
            self._ran(thread, life.wait, run, event)
            life.wait = None
        elif life.state == "blocked":
            self.others[thread, "unseen"] += 1
        life.is_switched = True
        self.run_calls[run] = life.call
        self.latest[thread] = run
        self._enter(thread, "running", event.time)

    def _ran(self, thread, wait, run, event):
        if not self._is_whole(wait.begin, event.time):
            self.others[thread, "lost_inside"] += 1
            self.lost_of_priority[run.priority] += 1
            return
        latency = event.time - wait.begin
        self.latencies[thread].append(latency)
        self.priorities[run.priority].append(latency)
        self.waker_totals[wait.waker, thread] += latency
        self.wrong_cpu += wait.target is not None and wait.target != run.cpu

    def _is_whole(self, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses)

    def finish(self):
        for thread in list(self.lives):
            self._over(thread, self.end)


def answer(path):
    trace = Trace(path, lambda name: None if name == "sched_process_exit" else WAKES.get(name) or wanted(name))
    replay = Replay(trace)
    found = Scheduling(trace, replay)
    for event, happenings in replay:
        found.step(event, happenings)
    found.finish()
    result = Answer()
    wakeups(result, found, replay)
    runs(result, found, replay, trace)
    for thread, life in sorted(found.lives.items()):
        whole = sum(life.times.values())
        if whole == life.times["unknown"]:
            continue
        times = {state: [time, 0, whole] if found.losses else time for state, time in life.times.items()}
        result.row("states", {**replay.cell(thread), **times})
    for (thread, cause), times in sorted(found.blocked.items(), key=str):
        whole = sum(found.lives[thread].times.values())
        row = {**replay.cell(thread), "syscall": cause or None}
        row["count"] = [len(times), 0, None] if found.losses else len(times)
        row["total"] = [sum(times), 0, whole] if found.losses else sum(times)
        result.row("blocked", row)
    return result


def wakeups(result, found, replay):
    others = found.others
    kinds = ("never_ended", "lost_inside", "unseen")
    for thread in sorted(set(found.latencies) | {thread for thread, _ in others}):
        values = found.latencies.get(thread, [])
        counts = {kind: others.get((thread, kind), 0) for kind in kinds}
        result.row("per-thread", {**replay.cell(thread), **statistics(values), **percentiles(values), **counts})
    for priority in sorted(set(found.priorities) | set(found.lost_of_priority), key=str):
        values = found.priorities.get(priority, [])
        lost = found.lost_of_priority.get(priority, 0)
        result.row("per-priority", {"priority": priority, **statistics(values), **percentiles(values), "lost_inside": lost})
    values = [value for some in found.latencies.values() for value in some]
    counts = {kind: sum(count for (_, other), count in others.items() if other == kind) for kind in kinds}
    result.row("total", {**statistics(values), **percentiles(values), **counts, "wrong_cpu": found.wrong_cpu})
    for (waker, thread), count in sorted(found.wakers.items(), key=str):
        woken = replay.cell(thread)
        row = {"waker": UNKNOWN, "waker_incarnation": None}
        if waker == IDLE:
            row["waker"] = [None, None, 0]
        elif waker:
            row = {"waker": replay.cell(waker)["thread"], "waker_incarnation": waker[1]}
        row.update(woken)
        result.row("wakers", {**row, "count": count, "total": found.waker_totals.get((waker, thread), 0)})


def runs(result, found, replay, trace):
    mine, cut = defaultdict(list), defaultdict(int)
    for run in replay.runs:
        if run.thread:
            mine[run.thread].append(run)
    for thread in sorted(set(mine) | set(found.preemptions)):
        lengths = []
        ordered = sorted(mine[thread], key=lambda run: run.begin)
        for run in ordered:
            losses = trace.losses(run.cpu)
            if run.is_first or run.is_last or run.odd or any(loss.touches(run.begin, run.end) for loss in losses):
                cut[thread] += 1
            else:
                lengths.append(run.end - run.begin)
        moves = sum(1 for left, right in zip(ordered, ordered[1:]) if left.cpu != right.cpu)
        counts = {"cut": cut[thread], "preemptions": found.preemptions[thread], "migrations": moves}
        result.row("runs", {**replay.cell(thread), **statistics(lengths), **counts})


if __name__ == "__main__":
    answer(sys.argv[1]).print()
