"""Who runs where: runs, incarnations, names and processes of threads, as section 1 of docs/analyses.md says.

    replay = Replay(trace)
    for event, happenings in replay:        what the event changed: ("ended", run), ("away", thread, state), ...
        thread = replay.thread_of(event)    who was running before it
"""

import re

UNKNOWN = "?"

SWITCH = ("prev_tid", "prev_pid", "prev_state", "prev_comm", "next_tid", "next_pid", "next_comm", "next_prio")
WANTED = {
    "sched_switch": SWITCH,
    "sched_process_fork": ("child_tid", "child_pid", "child_comm", "parent_tid", "parent_pid"),
    "sched_process_exit": ("tid", "pid"),
    "lttng_statedump_process_state": ("tid", "pid", "name", "file_table_address"),
}
WAKES = {name: ("tid", "pid", "comm", "target_cpu", "success") for name in ("sched_wakeup", "sched_wakeup_new", "sched_waking")}


class Run:
    """A CPU runs a thread; `thread` is None for idleness."""

    __slots__ = ("cpu", "tid", "thread", "begin", "end", "is_first", "is_last", "odd", "priority")

    def __init__(self, cpu, tid, thread, begin, is_first=False, priority=None):
        self.cpu, self.tid, self.thread, self.begin = cpu, tid, thread, begin
        self.end, self.is_first, self.is_last, self.odd, self.priority = None, is_first, False, False, priority


def state_kind(state, is_dead_marked, has_exited):
    """What `prev_state` says: runnable, dead or blocked."""
    if state is None:
        return "blocked"
    if state & 0xFF == 0:
        return "runnable"
    marks = 0xF0 if has_exited else 0x70 if is_dead_marked else 0x30
    return "dead" if state & 0x0F == 0 and state & marks else "blocked"


def is_older(environment):
    """Whether a trace says that its kernel is older than 4.14."""
    release = re.match(r"(\d+)\.(\d+)", str(environment.get("kernel_release", environment.get("release", ""))))
    return bool(release) and (int(release[1]), int(release[2])) < (4, 14)


class Replay:
    """Goes through the events of a trace in order and knows at each who runs."""

    def __init__(self, trace):
        self.trace = trace
        self.is_dead_marked = is_older(trace.environment)
        self.incarnations, self.seen, self.exited = {}, set(), set()
        self.names, self.pids, self.forked = {}, {}, set()
        self.runs, self.running = [], {}
        self.latest_run = {}
        # Which incarnation the `prev_tid` of the last switch was of, before that maybe ended it.
        self.current_of_away = None
        self.spans = {}
        first = {}
        for event in trace.events:
            if event.name == "sched_switch":
                first.setdefault(event.cpu, event)
        for cpu in trace.cpus() or ([None] if first else []):
            span = trace.span(cpu)
            if span:
                self.spans[cpu] = span
        self.losses_of = {cpu: trace.losses(cpu) for cpu in [*trace.cpus(), None]}
        self.next_switches = self._next_switches()
        for cpu, event in sorted(first.items(), key=lambda item: (item[0] is None, item[0] or 0)):
            tid = event.get("prev_tid", "prev_pid")
            run = Run(cpu, tid, self._current(tid), self.spans[cpu][0], is_first=True)
            self._begin(run)

    def _current(self, tid):
        return (tid, self.incarnations.get(tid, 0)) if tid else None

    def _begin(self, run):
        self.running[run.cpu] = run
        if run.thread:
            self.seen.add(run.thread)
            self.latest_run[run.thread] = run

    def _next_switches(self):
        """For each event the next switch of its CPU."""
        following, found = {}, {}
        for event in reversed(self.trace.events):
            found[event] = following.get(event.cpu)
            if event.name == "sched_switch":
                following[event.cpu] = event
        return found

    def thread_of(self, event):
        """Who the event is of: a thread, or None where that is unknown."""
        run = self.running.get(event.cpu)
        if event.tid is not None:
            return run.thread if run and run.tid == event.tid else self._current(event.tid)
        if run is None:
            return None
        losses = self.losses_of[event.cpu]
        if not losses:
            return run.thread
        is_whole = lambda begin, end: not any(loss.touches(begin, end) for loss in losses)
        if not run.is_first and is_whole(run.begin, event.time):
            return run.thread
        switch = self.next_switches[event]
        if switch and is_whole(event.time, switch.time):
            tid = switch.get("prev_tid", "prev_pid")
            return run.thread if tid == run.tid else self._current(tid)
        return None if is_whole(event.time, event.time) else run.thread

    def first_runs(self):
        return list(self.running.values())

    def __iter__(self):
        for event in self.trace.events:
            yield event, self._step(event)
        for cpu, run in self.running.items():
            run.end, run.is_last = self.spans[cpu][1], True
            self.runs.append(run)

    def _step(self, event):
        handler = {
            "sched_switch": self._switch,
            "sched_process_fork": self._fork,
            "sched_process_exit": self._exit,
            "lttng_statedump_process_state": self._known,
            "sched_wakeup": self._woken,
            "sched_wakeup_new": self._woken,
            "sched_waking": self._woken,
        }.get(event.name)
        return handler(event) if handler else []

    def _switch(self, event):
        run = self.running[event.cpu]
        tid = event.get("prev_tid", "prev_pid")
        run.end, run.odd = event.time, tid != run.tid
        self.runs.append(run)
        happenings = [("ended", run)]
        thread = self._current(tid) if run.odd else run.thread
        if thread:
            self.seen.add(thread)
            self._name(thread, event.get("prev_comm"))
            if event.tid == tid and event.pid is not None:
                self.pids[thread] = event.pid
            kind = state_kind(event.get("prev_state"), self.is_dead_marked, thread in self.exited)
            happenings.append(("away", thread, kind))
            self.current_of_away = self._current(tid)
            if kind == "dead" and self.incarnations.get(tid, 0) == thread[1]:
                self.incarnations[tid] = thread[1] + 1
        tid = event.get("next_tid", "next_pid")
        begun = Run(event.cpu, tid, self._current(tid), event.time, priority=event.get("next_prio"))
        self._begin(begun)
        if begun.thread:
            self._name(begun.thread, event.get("next_comm"))
        happenings.append(("begun", begun))
        return happenings

    def _name(self, thread, comm):
        if comm is not None:
            self.names[thread] = comm

    def _fork(self, event):
        tid = event.get("child_tid", "child_pid")
        if self._current(tid) in self.seen:
            self.incarnations[tid] = self.incarnations.get(tid, 0) + 1
        child = self._current(tid)
        self.seen.add(child)
        self.forked.add(child)
        if event.get("child_comm") is not None:
            self.names[child] = event.get("child_comm")
        parent = None
        if "child_tid" in event.fields:
            self.pids[child] = event.get("child_pid")
            parent = self._thread_named(event, event.get("parent_tid"))
            if parent and event.get("parent_pid") is not None:
                self.pids[parent] = event.get("parent_pid")
        return [("forked", child, parent)]

    def _thread_named(self, event, tid):
        run = self.running.get(event.cpu)
        return run.thread if run and run.tid == tid else self._current(tid)

    def _exit(self, event):
        thread = self._thread_named(event, event.get("tid", "pid"))
        if thread:
            self.exited.add(thread)
        return []

    def _known(self, event):
        thread = self._current(event.get("tid"))
        if thread:
            self.seen.add(thread)
            self.pids[thread] = event.get("pid")
            self.names[thread] = event.get("name")
        return []

    def _woken(self, event):
        if event.get("success") == 0:
            return []
        thread = self._current(event.get("tid", "pid"))
        if thread:
            self.seen.add(thread)
            self.names[thread] = event.get("comm")
        return [("woken", thread)] if thread else []

    def name(self, thread):
        return self.names.get(thread)

    def cell(self, thread):
        """A thread for people: name, pid, tid; and its incarnation."""
        if thread is None:
            return {"thread": UNKNOWN, "incarnation": None}
        return {"thread": [self.name(thread), self.pids.get(thread), thread[0]], "incarnation": thread[1]}

    def process_cell(self, pid):
        """A process for people: the name of its first thread, and its pid."""
        if pid is None:
            return UNKNOWN
        leaders = [thread for thread in self.names if thread[0] == pid]
        return [self.name(max(leaders, key=lambda thread: thread[1])) if leaders else None, pid]
