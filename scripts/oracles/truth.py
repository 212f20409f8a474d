"""What is true of tracks over time: what ran where from when to when, who was in which state and call, what events there are; for
scripts/tiles.py, which compares it with what a server says.

Each trace is read whole over babeltrace2's library, and played through by the oracle of `kymo state` (state.py) or that of durations
and counters of programs (durations.py). Simple and slow on purpose.
"""

import bisect
import collections

WAITING = ("preempted", "waiting for a CPU", "new")
FOREVER = float("inf")


def of_truth(value):
    """A value of the oracle as the server names it."""
    return value[0] if isinstance(value, list) else value


class Runs:
    """The values of a track, each from when to when; nothing where there is none. Those of no length are not in it."""

    def __init__(self, history=None):
        self.runs, self.points = [], []
        if history is None:
            return
        if history.times and history.before[0] is not None:
            self._add(-FOREVER, history.times[0], of_truth(history.before[0]))
        for number, (begin, value) in enumerate(zip(history.times, history.values)):
            end = history.times[number + 1] if number + 1 < len(history.times) else FOREVER
            if value is not None:
                self._add(begin, end, of_truth(value))
        self._ends = [end for _, end, _ in self.runs]

    @classmethod
    def of(cls, runs):
        """Those of a list in the order of time; when those of no length are, `points` say."""
        found = cls()
        for begin, end, value in runs:
            found._add(begin, end, value)
        found.points = [begin for begin, end, _ in runs if begin == end]
        found._ends = [end for _, end, _ in found.runs]
        return found

    def _add(self, begin, end, value):
        if begin < end:
            self.runs.append((begin, end, value))

    def between(self, begin, end):
        """Those that have a part in a span, whose end is not in it."""
        found, place = [], bisect.bisect_right(self._ends, begin)
        while place < len(self.runs) and self.runs[place][0] < end:
            found.append(self.runs[place])
            place += 1
        return found

    def ends_at(self, time):
        """Whether it has a value until then, and none from then on."""
        place = bisect.bisect_left(self._ends, time)
        return place < len(self._ends) and self._ends[place] == time and self.at(time) is None

    def at(self, time):
        """The value at an instant, or None."""
        return next((value for _, _, value in self.between(time, time + 1)), None)


class Truth:
    """Everything that tiles may be asked for, by what tracks are called: ("cpu", 3, "thread"), ("events", 3)."""

    def __init__(self, path):
        # Where babeltrace2's library is absent, that was said before.
        from events import Trace
        from state import INTERRUPTS, Machine
        from syscalls import wanted
        from threads import WAKES

        def fields(name):
            if name in INTERRUPTS:
                return ("irq", "vec")
            if name == "sched_process_fork":
                return ("child_tid", "child_pid", "child_comm", "parent_tid", "parent_pid")
            return WAKES.get(name) or wanted(name) or ()

        trace = Trace(str(path), fields)
        machine = Machine(trace)
        self.states = {}
        self.cpus = trace.cpus()
        for cpu, tracks in machine.cpus.items():
            for name in ("thread", "irq", "softirq"):
                self.states["cpu", cpu, name] = Runs(tracks[name])
        for tid, tracks in machine.threads.items():
            self.states["thread", tid, "state"] = Runs(tracks["state"])
            self.states["thread", tid, "calls"] = Runs(tracks["call"])
        self.instants, self.arrows = collections.defaultdict(list), []
        # Arrows by what the events of their wakeups are called.
        self.woken = collections.defaultdict(list)
        for event in trace.events:
            # A stream without a CPU has a track of its own, whatever its events say.
            self.instants["events", trace.streams[event.stream].cpu].append((event.time, event.name))
            if event.tid is not None:
                self.instants["thread", event.tid, "events"].append((event.time, event.name))
            if event.name in WAKES and event.get("tid", "pid") is not None:
                self.arrows.append((event.time, (event.cpu, event.get("tid", "pid"))))
                self.woken[event.name].append(self.arrows[-1])
        self.instants["all",] = [(event.time, event.name) for event in trace.events]
        # Those without any are found to have none, and stay so.
        self.instants = dict(self.instants)
        self.durations = self._durations()
        threads = [runs for name, runs in self.states.items() if name[0] == "thread" and name[-1] == "state"]
        self.numbers = {
            ("threads", "running"): Numbers.of_crowd(threads, ("running",)),
            ("threads", "waiting"): Numbers.of_crowd(threads, WAITING),
        }
        self.events = len(trace.events)

    def runs_at(self, tid, time):
        """When a thread runs that is woken at a time: it waits for a CPU until then. None where it does something else, or nobody knows."""
        for begin, _, value in self.states["thread", tid, "state"].between(time, FOREVER):
            if value == "running":
                return max(begin, time)
            if value not in WAITING:
                return None
        return None

    def _durations(self):
        """When something ended whose begin is known, and in which bin its duration is: by what it was."""
        found = {("latency", kind): [] for kind in ("calls", "irqs", "softirqs", "waiting")}
        for name, runs in self.states.items():
            kind = {"irq": "irqs", "softirq": "softirqs", "calls": "calls", "state": "waiting"}.get(name[-1])
            # A thread that dies in a call does not come back from it.
            dies = self.states["thread", name[1], "state"].ends_at if kind == "calls" else lambda time: False
            for begin, end, value in runs.runs:
                if kind and begin != -FOREVER and end != FOREVER and (kind != "waiting" or value in WAITING) and not dies(end):
                    found["latency", kind].append((end, bin_of(end - begin)))
        return {name: sorted(ends) for name, ends in found.items()}


class TruthOfPrograms:
    """The same of a trace of programs, whose CPUs and threads do nothing that anybody knows of but to record events."""

    def __init__(self, path):
        from durations import Durations, Programs, counters, declared, queue

        trace = Programs(str(path))
        self.numbers = {("counter", *name): Numbers(changes) for name, changes in counters(trace).items()}
        if changes := queue(trace):
            self.numbers["own", "queue"] = Numbers(changes)
        runs = Durations(trace).runs
        self.states = {("thread", tid, "slices", depth): Runs.of(found) for (tid, depth), found in runs.items()}
        self.states |= {name: Runs.of(found) for name, found in declared(trace).items()}
        self.cpus, self.arrows, self.events = trace.cpus(), [], len(trace.events)
        self.instants, self.durations, self.woken = collections.defaultdict(list), {}, {}
        for event in trace.events:
            self.instants["events", trace.streams[event.stream].cpu].append((event.time, event.name))
            self.instants["thread", event.tid, "events"].append((event.time, event.name))
        self.instants = dict(self.instants)
        self.instants["all",] = [(event.time, event.name) for event in trace.events]


def bin_of(duration):
    """Bins are an eighth of an octave wide, and a nanosecond at least."""
    octave = duration.bit_length() - 1
    return duration if octave < 3 else (octave - 2) * 8 + (duration >> (octave - 3)) % 8


class Numbers:
    """What a counter is since when; `before` the first of these times, None where nobody knows."""

    def __init__(self, changes, before=None):
        self.changes, self.before = changes, before
        self._times = [time for time, _ in changes]

    def at(self, time):
        place = bisect.bisect_right(self._times, time)
        return self.changes[place - 1][1] if place else self.before

    def bucket(self, begin, end):
        """How often it changes, and the least, the most, the last and the average of what it is, for the former two also before; None
        where it does not change."""
        first, behind = bisect.bisect_left(self._times, begin), bisect.bisect_left(self._times, end)
        inside = self.changes[first:behind]
        if not inside:
            return None
        held = self.at(begin - 1)
        steps = [(begin, held)] if held is not None and inside[0][0] > begin else []
        steps += inside
        values = [value for _, value in inside] + [held] * (held is not None)
        lasting = sum((until - since) * value for (since, value), (until, _) in zip(steps, [*steps[1:], (end, None)]))
        return len(inside), min(values), max(values), inside[-1][1], lasting / (end - steps[0][0])

    @classmethod
    def of_crowd(cls, states, wanted):
        """How many of these threads are in one of the wanted states."""
        steps, before = collections.Counter(), 0
        for begin, end, value in (run for runs in states for run in runs.runs if run[2] in wanted):
            if begin == -FOREVER:
                before += 1
            else:
                steps[begin] += 1
            if end != FOREVER:
                steps[end] -= 1
        now, changes = before, []
        for time in sorted(time for time, step in steps.items() if step):
            now += steps[time]
            changes.append((time, now))
        return cls(changes, before)


class Bucket:
    """What really happened in one bucket: how long each value lasted, what began, what it was at its end."""

    def __init__(self, runs, begin, end):
        self.times, self.begins = collections.Counter(), 0
        for since, until, value in runs.between(begin - 1, end + 1):
            lasted = min(until, end) - max(since, begin)
            if lasted > 0:
                self.times[value] += lasted
            self.begins += begin <= since < end
        self.begins += bisect.bisect_left(runs.points, end) - bisect.bisect_left(runs.points, begin)
        self.last = runs.at(end - 1)
