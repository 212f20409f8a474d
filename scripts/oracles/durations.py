"""What programs tell of themselves: their durations by thread and depth, their counters. See docs/viewer.md#durations.

    found = Durations(Programs(path))
    found.runs[tid, depth]      [(begin, end or infinity, name), ...] in the order of time

Shares no code with the project.
"""

import collections
import math

from events import Trace, integer_among

DEPTHS = 64
# Events by which something begins and ends: the field that is the key, and what it is called. Of LTTng's functions nothing is a key.
BEGINS = {"kymo:begin": ("key", "name"), "jobs:begin": ("id", "jobs"), "lttng_ust_cyg_profile:func_entry": (None, "addr")}
ENDS = {"kymo:end": ("key", "name"), "jobs:end": ("id", "jobs"), "lttng_ust_cyg_profile:func_exit": (None, "addr")}

COUNTERS = ("kymo:counter",)
# What scripts/oracles/jobs-own.toml says: who is how from now on.
WORKER_STATES = {"jobs:begin": "busy", "jobs:chunk": "writing", "jobs:end": None}


def wanted(name):
    """Which fields of an event matter here; all events do."""
    return (*(BEGINS.get(name) or ENDS.get(name) or ()), "name", "value", "vtid", "vpid", "kind", "queue_depth")


class Programs(Trace):
    """A trace of programs: which thread an event is of, its context or its packet says."""

    def __init__(self, path):
        self._packets = {}
        super().__init__(path, lambda name: [field for field in wanted(name) if field], name_of=str)

    def _packet_begin(self, message, stream):
        super()._packet_begin(message, stream)
        context = message.packet.context_field
        self._packets[stream.number] = [integer_among(context, (name,)) for name in ("vtid", "vpid")]

    def _event(self, message, numbers):
        super()._event(message, numbers)
        event = self.events[-1]
        tid, pid = self._packets.get(event.stream, (None, None))
        event.tid = event.get("vtid") if "vtid" in event.fields else tid
        event.pid = event.get("vpid") if "vpid" in event.fields else pid


def counters(trace):
    """What counters are since when, by process and name."""
    found = collections.defaultdict(list)
    for event in trace.events:
        if event.name in COUNTERS:
            found[event.pid, event.get("name")].append((event.time, event.get("value")))
    return found


def declared(trace):
    """What components are from when to when, by their tracks."""
    changes = collections.defaultdict(list)
    for event in trace.events:
        if event.name in WORKER_STATES:
            changes["own", f"worker {event.pid}, {event.tid}"].append((event.time, WORKER_STATES[event.name]))
        elif event.name == "jobs:submit":
            changes["own", "last kind"].append((event.time, str(event.get("kind"))))
    ends = {name: [time for time, _ in told[1:]] + [math.inf] for name, told in changes.items()}
    runs = {name: zip(told, ends[name]) for name, told in changes.items()}
    return {name: [(begin, end, state) for (begin, state), end in told if state is not None] for name, told in runs.items()}


def queue(trace):
    """How many jobs wait since when: as many as were when one was added, one less when one ends."""
    depth, found = 0, []
    for event in trace.events:
        if event.name in ("jobs:submit", "jobs:end"):
            depth = event.get("queue_depth") if event.name == "jobs:submit" else depth - 1
            found.append((event.time, depth))
    return found


class Durations:
    """All durations of a trace."""

    def __init__(self, trace):
        self.runs = collections.defaultdict(list)
        self._losses = trace.losses()
        self._open = collections.defaultdict(dict)
        self._owners = {}
        for event in trace.events:
            thread = event.tid
            if event.name in ENDS:
                self._end(thread, event.time, *self._key(event, *ENDS[event.name]))
            if event.name in BEGINS:
                self._begin(thread, event.time, *self._key(event, *BEGINS[event.name]))
        for thread, depths in self._open.items():
            for depth, (_, since, name) in depths.items():
                self.runs[thread, depth].append((since, math.inf, name))
        for runs in self.runs.values():
            runs.sort(key=lambda run: run[:2])

    @staticmethod
    def _key(event, key, name):
        """What ends with what, and what it is called: a field of the event, or a word."""
        name = event.get(name) if name in event.fields else name
        return (None if key is None else (event.pid, event.get(key))), name

    def _begin(self, thread, time, key, name):
        again = [depth for depth, (other, _, _) in self._open[thread].items() if key is not None and other == key]
        for depth in again:
            self._close(thread, depth, time)
        free = [depth for depth in range(DEPTHS) if depth not in self._open[thread]]
        if not free:
            self._over(thread, DEPTHS - 1, time)
        depth = min(free, default=DEPTHS - 1)
        self._open[thread][depth] = (key, time, name)
        if key is not None:
            self._owners[key] = (thread, depth)

    def _end(self, thread, time, key, name):
        own = [
            (since, depth)
            for depth, (other, since, called) in self._open[thread].items()
            if other == key and (key is not None or called == name)
        ]
        if own:
            self._close(thread, max(own)[1], time)
        elif key in self._owners:
            self._over(*self._owners[key], time)

    def _close(self, thread, depth, time):
        """With what ends, all ends that cannot be trusted to be there still."""
        key, since, _ = self._open[thread][depth]
        for other, (inner, begin, _) in list(self._open[thread].items()):
            is_later = (begin, other) > (since, depth)
            is_lost = any(loss.touches(begin, time) for loss in self._losses)
            if is_later and (is_lost or key is None and inner is None):
                self._over(thread, other, time)
        self._over(thread, depth, time)

    def _over(self, thread, depth, time):
        key, since, name = self._open[thread].pop(depth)
        self.runs[thread, depth].append((since, time, name))
        if self._owners.get(key) == (thread, depth):
            del self._owners[key]
