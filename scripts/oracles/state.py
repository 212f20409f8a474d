"""Oracle of `kymo state`: what CPUs and threads do at instants. See docs/analyses.md, section 11.

    state.py TRACE COUNT SEED

Prints an object for each of COUNT instants, chosen by SEED between the first and the last event.
"""

import bisect
import json
import random
import sys
from collections import defaultdict

from events import Trace
from syscalls import call_of, wanted
from threads import WAKES, is_older, state_kind

CAN_RUN = ("running", "preempted", "waiting for a CPU", "new")
INTERRUPTS = {
    "irq_handler_entry": ("irq", "irq"),
    "irq_handler_exit": ("irq", None),
    "softirq_entry": ("softirq", "vec"),
    "softirq_exit": ("softirq", None),
    "irq_softirq_entry": ("softirq", "vec"),
    "irq_softirq_exit": ("softirq", None),
}


class History:
    """When something changed, what it was then, and what it was before."""

    def __init__(self):
        self.times, self.values, self.before = [], [], []

    def set(self, time, value, before=None, joins=False):
        if joins and self.values and self.values[-1] == value:
            return
        self.times.append(time)
        self.values.append(value)
        self.before.append(before)

    @property
    def now(self):
        return self.values[-1] if self.values else None

    def at(self, time):
        """The value at an instant, since when (None: unknown), and until when (None: never ended)."""
        place = bisect.bisect_right(self.times, time)
        end = self.times[place] if place < len(self.times) else None
        if place == 0:
            return (self.before[0] if self.before else None), None, end
        return self.values[place - 1], self.times[place - 1], end


class Machine:
    """Everything that happens, one event after the other."""

    def __init__(self, trace):
        self.trace, self.is_older = trace, is_older(trace.environment)
        self.cpus = defaultdict(lambda: defaultdict(History))
        self.threads = defaultdict(lambda: defaultdict(History))
        # Calls belong to the thread that the end of a run tells of.
        self.owners = self._owners()
        for place, event in enumerate(trace.events):
            self._step(event, self.owners[place])

    def _owners(self):
        owners, following = [None] * len(self.trace.events), {}
        last = {}
        for event in self.trace.events:
            if event.name == "sched_switch":
                last[event.cpu] = event.get("next_tid", "next_pid")
        for place in range(len(owners) - 1, -1, -1):
            event = self.trace.events[place]
            owners[place] = following.get(event.cpu, last.get(event.cpu))
            if event.name == "sched_switch":
                following[event.cpu] = event.get("prev_tid", "prev_pid")
        return owners

    def _name(self, tid, time, name):
        if name:
            self.threads[tid]["name"].set(time, name, joins=True)

    def _process(self, tid, time, pid):
        if pid is not None:
            self.threads[tid]["process"].set(time, pid, joins=True)

    def _step(self, event, owner):
        name, time = event.name, event.time
        kind, call = call_of(event)
        if name == "sched_switch":
            self._switch(event)
        elif name in WAKES and event.get("tid", "pid"):
            woken = event.get("tid", "pid")
            state = self.threads[woken]["state"]
            if (state.now or [None])[0] not in CAN_RUN:
                state.set(time, ["waiting for a CPU", None])
            self._name(woken, time, event.get("comm"))
        elif name == "sched_process_fork":
            self._fork(event)
        elif name == "lttng_statedump_process_state" and event.get("tid"):
            self._name(event.get("tid"), time, event.get("name"))
            self._process(event.get("tid"), time, event.get("pid"))
        elif name in INTERRUPTS:
            track, field = INTERRUPTS[name]
            number = event.get("irq", "vec")
            self.cpus[event.cpu][track].set(time, number if field else None, None if field else number)
        elif kind and owner:
            calls = self.threads[owner]["call"]
            calls.set(time, call if kind == "entry" else None, None if kind == "entry" else call or None)

    def _switch(self, event):
        time, cpu = event.time, event.cpu
        prev, following = event.get("prev_tid", "prev_pid"), event.get("next_tid", "next_pid")
        self.cpus[cpu]["thread"].set(time, following, prev)
        if prev:
            self._name(prev, time, event.get("prev_comm"))
            self._away(prev, event)
            if event.tid == prev:
                self._process(prev, time, event.pid)
        if following:
            self._name(following, time, event.get("next_comm"))
            self.threads[following]["state"].set(time, ["running", cpu])

    def _away(self, tid, event):
        state = event.get("prev_state")
        sort = state_kind(state, self.is_older, False)
        if sort == "dead":
            for track in ("state", "call", "name", "process"):
                self.threads[tid][track].set(event.time, None, ["running", event.cpu] if track == "state" else None)
            return
        what = "preempted"
        if sort == "blocked":
            what = "off the CPU"
            for bits, word in ((0xC, "stopped"), (2, "uninterruptible"), (1, "blocked")):
                what = word if state is not None and state & bits else what
        self.threads[tid]["state"].set(event.time, [what, None], ["running", event.cpu])

    def _fork(self, event):
        # Without a field for the thread, the one for the process is the thread's.
        has_processes = "child_tid" in event.fields
        if has_processes and event.get("parent_tid") and event.get("parent_pid") is not None:
            self._process(event.get("parent_tid"), event.time, event.get("parent_pid"))
        child = event.get("child_tid", "child_pid")
        for track in ("call", "name", "process"):
            self.threads[child][track].set(event.time, None)
        self.threads[child]["state"].set(event.time, ["new", None])
        self._name(child, event.time, event.get("child_comm"))
        self._process(child, event.time, event.get("child_pid") if has_processes else None)

    def moment(self, time):
        cpus = {}
        for cpu, tracks in self.cpus.items():
            tid, since, until = tracks["thread"].at(time)
            served = [tracks[track].at(time)[0] for track in ("irq", "softirq")]
            cpus[cpu] = [tid, since, until, *served]
        threads = {}
        for tid, tracks in self.threads.items():
            state, since, until = tracks["state"].at(time)
            if state:
                names = [tracks[track].at(time)[0] for track in ("name", "process", "call")]
                threads[tid] = [*state, since, until, *names]
        return {"at": time, "cpus": cpus, "threads": threads}


def main(path, count, seed):
    def fields(name):
        if name in INTERRUPTS:
            return ("irq", "vec")
        if name == "sched_process_fork":
            return ("child_tid", "child_pid", "child_comm", "parent_tid", "parent_pid")
        return WAKES.get(name) or wanted(name)

    machine = Machine(Trace(path, fields))
    times = [event.time for event in machine.trace.events]
    numbers = random.Random(int(seed))
    for _ in range(int(count)):
        print(json.dumps(machine.moment(numbers.randint(times[0], times[-1]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
