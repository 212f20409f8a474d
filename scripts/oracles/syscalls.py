"""Oracle of `kymo syscalls`: which calls took how long and what came of them. See docs/analyses.md, section 4.

    syscalls.py TRACE
"""

import math
import sys
from collections import defaultdict

from events import Trace
from figures import Answer, percentiles, statistics
from threads import WANTED, Replay

ENTRIES = ("syscall_entry_", "sys_enter_")
EXITS = ("syscall_exit_", "sys_exit_")
CLASSES = ("began_before", "child_returns", "never_ended", "lost_inside")


def kind_of(name):
    """Whether events of a name are entries or exits of calls, and of which."""
    rest = name.removeprefix("compat_")
    if rest == "exit_syscall":
        return "exit", ""
    if rest in ("sys_exit", "sys_exit_group"):
        return "entry", rest.removeprefix("sys_")
    for kind, prefixes in (("entry", ENTRIES), ("exit", EXITS), ("entry", ("sys_",))):
        for prefix in prefixes:
            if rest.startswith(prefix):
                return kind, rest[len(prefix) :]
    return None, None


def call_of(event):
    """Whether an event is the entry or the exit of a call, and of which ("": it does not say)."""
    kind, name = kind_of(event.name)
    if name == "unknown":
        name = "" if kind == "exit" and event.get("id") < 0 else str(event.get("id"))
    return kind, name


def signed(value):
    """A return value, which some classes of events declare without sign."""
    return value - (1 << 64) if value is not None and value >= 1 << 63 else value


def errno_of(ret):
    return -ret if ret is not None and -4095 <= ret <= -1 else None


class Open:
    """A call that was entered."""

    __slots__ = ("name", "event", "switches")

    def __init__(self, name, event, switches):
        self.name, self.event, self.switches = name, event, switches


class Calls:
    """Pairs entries with exits. `ended(thread, kind, name, entry, exit)` is told of each call when it is settled; entry and exit
    are events or None."""

    def __init__(self, trace, replay, ended):
        self.replay, self.ended = replay, ended
        self.open, self.touched, self.switches = {}, set(), defaultdict(int)
        self.losses = trace.losses()
        self.losses_of = {cpu: trace.losses(cpu) for cpu in [*trace.cpus(), None]}

    def step(self, event, happenings):
        if event.name == "sched_switch":
            self.switches[event.cpu] += 1
        for kind, *what in happenings:
            if kind == "away" and what[1] == "dead":
                self._drop(what[0], event.time)
        kind, name = call_of(event)
        if kind:
            thread = self.replay.thread_of(event)
            key = thread or ("cpu", event.cpu)
            (self._entry if kind == "entry" else self._exit)(thread, key, name, event)
            self.touched.add(key)

    def _drop(self, key, time):
        call = self.open.pop(key, None)
        if call:
            kind = "never_ended" if self._is_whole(call.event.time, time) else "lost_inside"
            self.ended(key if key[0] != "cpu" else None, kind, call.name, call.event, None)

    def _is_whole(self, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses)

    def _entry(self, thread, key, name, event):
        before = self.open.get(key)
        if before:
            self.ended(thread, "lost_inside", before.name, before.event, None)
        self.open[key] = Open(name, event, self.switches[event.cpu])

    def _exit(self, thread, key, name, event):
        call = self.open.pop(key, None)
        if call is None:
            kind = "lost_inside"
            if key not in self.touched:
                is_whole = self._is_whole(-math.inf, event.time)
                kind = "child_returns" if thread in self.replay.forked else "began_before" if is_whole else kind
            self.ended(thread, kind, name, None, event)
        elif name not in ("", call.name):
            self.ended(thread, "lost_inside", call.name, call.event, None)
            self.ended(thread, "lost_inside", name, None, event)
        else:
            kind = "completed" if self._is_certain(call, event) else "lost_inside"
            self.ended(thread, kind, call.name, call.event, event)

    def _is_certain(self, call, event):
        begin, end, cpu = call.event.time, event.time, event.cpu
        if call.event.cpu == cpu and call.switches == self.switches[cpu]:
            if not any(loss.touches(begin, end) for loss in self.losses_of[cpu]):
                return True
        return self._is_whole(begin, end)

    def finish(self):
        for key in list(self.open):
            self._drop(key, math.inf)


def wanted(name):
    if name in WANTED:
        return WANTED[name]
    kind, _ = kind_of(name)
    return {"entry": ("id",), "exit": ("ret", "id"), None: None}[kind]


def answer(path):
    trace = Trace(path, wanted)
    replay = Replay(trace)
    latencies, errors, others = defaultdict(list), defaultdict(int), defaultdict(int)

    def ended(thread, kind, name, entry, exit):
        if kind == "completed":
            latencies[thread, name].append(exit.time - entry.time)
            errno = errno_of(signed(exit.get("ret")))
            if errno:
                errors[thread, name, errno] += 1
        else:
            others[thread, name, kind] += 1

    calls = Calls(trace, replay, ended)
    for event, happenings in replay:
        calls.step(event, happenings)
    calls.finish()
    return tables(replay, latencies, errors, others), trace


def tables(replay, latencies, errors, others):
    result = Answer()
    keys = set(latencies) | {key[:2] for key in others}
    for name in sorted({name for _, name in keys}):
        values = [value for (_, other), some in latencies.items() if other == name for value in some]
        failed = sum(count for (_, other, _), count in errors.items() if other == name)
        classes = {kind: sum(others[t, n, k] for t, n, k in list(others) if (n, k) == (name, kind)) for kind in CLASSES}
        figures = statistics(values)
        row = {"syscall": name or None, "count": figures.pop("count"), "errors": failed, **figures}
        result.row("per-syscall", {**row, **percentiles(values), **classes})
    for thread, name in sorted(keys, key=str):
        values = latencies.get((thread, name), [])
        failed = sum(count for key, count in errors.items() if key[:2] == (thread, name))
        classes = {kind: others.get((thread, name, kind), 0) for kind in CLASSES}
        figures = statistics(values)
        row = {**replay.cell(thread), "syscall": name or None, "count": figures.pop("count"), "errors": failed}
        result.row("per-thread", {**row, **figures, **classes})
    numbers = defaultdict(int)
    for (_, name, errno), count in errors.items():
        numbers[name, errno] += count
    for (name, errno), count in sorted(numbers.items()):
        result.row("errors", {"syscall": name or None, "errno": errno, "count": count})
    return result


if __name__ == "__main__":
    found, source = answer(sys.argv[1])
    found.print()
