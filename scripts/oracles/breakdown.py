"""Oracle of `kymo breakdown`: operations from a begin event to the end event with the same key, and the steps between. See
docs/analyses.md, section 17.

    breakdown.py TRACE --begin NAME --end NAME --key FIELD...    FIELD=FIELD where it has another name in the event that ends
    breakdown.py DUMP --barrelfish                               capability operations of a dump, which it reads itself

Of dumps the names of events are those of Barrelfish's last revision, and a cycle is a nanosecond.
"""

import argparse
import fnmatch
import math
import re
from collections import defaultdict

from figures import Answer, nearest, percentiles, statistics

# How many of the longest operations are shown.
LONGEST = 10
# Names of events by their numbers; dumps of ours have no others of these subsystems.
SUBSYSTEMS = {
    1: ("kernel_capops", (
        "DELETE_ENTER DELETE_DONE TRY_DELETE CLEANUP_COPY CLEANUP_LAST CREATE_RAM CREATE_RAM_LMP UNMAP_CAPABILITY "
        "MDB_REMOVE HAS_COPIES RETYPE_ENTER RETYPE_IS_RETYPEABLE RETYPE_IS_RETYPEABLE_DONE RETYPE_RANGE_CHECK "
        "RETYPE_RANGE_CHECK_DONE RETYPE_CREATE_CAPS RETYPE_CREATE_CAPS_DONE RETYPE_MDB_INSERT "
        "RETYPE_MDB_INSERT_DONE RETYPE_DONE ZERO_OBJECTS ZERO_OBJECTS_DONE"
    ).split()),
    6: ("capops", (
        "START STOP DELETE_CALL_RX DELETE_DONE DELETE_DO_WORK DELETE_ENTER DELETE_FIND_CORE_CONT "
        "DELETE_FIND_NEW_OWNER DELETE_LAST DELETE_LOCK DELETE_MOVE_RESULT_CONT DELETE_QUEUE_FIN DELETE_QUEUE_RETRY "
        "DELETE_REMOTE_ENQ DELETE_REMOTE_RX DELETE_REMOTE_RESULT_RX USER_DELETE_CALL USER_DELETE_RESP "
        "USER_DELETE_RPC USER_DELETE_RPC_DONE MONITOR_DELETE_ENTER MONITOR_DELETE_REPLY USER_REVOKE_CALL "
        "USER_REVOKE_RESP USER_REVOKE_RPC USER_REVOKE_RPC_DONE MONITOR_REVOKE_ENTER MONITOR_REVOKE_REPLY"
    ).split()),
}
EARLY = 1_000_000


class Act:
    """What an event does to operations: it begins or ends one (`kind`), or is a step."""

    def __init__(self, kind, key, group=None, place=None):
        self.kind, self.key, self.group, self.place = kind, key, group, place


class Step:
    def __init__(self, time, cpu, name):
        self.time, self.cpu, self.name = time, cpu, name


class Operation:
    def __init__(self, act, begin, is_out_of_order):
        self.key, self.group, self.place = act.key, act.group, act.place
        self.begin, self.is_out_of_order, self.steps = begin, is_out_of_order, []

    def duration(self):
        return self.steps[-1].time - self.begin.time


class Operations:
    """What is open under which key, and what is decided."""

    def __init__(self, losses, early):
        self.losses, self.early = losses, early
        self.open, self.last_loose = defaultdict(list), {}
        self.complete, self.others = [], defaultdict(int)
        self.unmatched = {"began_before": 0, "lost_inside": 0, "loose_steps": 0, "without_field": 0, "given_up": 0}

    def event(self, step, acts):
        """An event with what it does: ends, then begins, then it is a step; a step of an operation only once."""
        is_step = False
        for act in acts:
            if act.kind == "end":
                self._end(act, step, not is_step)
            elif act.kind == "begin":
                self._begin(act, step, not is_step)
            elif not is_step:
                self._step(act.key, step)
            is_step = True

    def _take(self, act):
        operations = self.open[act.key]
        for place, operation in enumerate(operations):
            if (operation.group, operation.place) == (act.group, act.place):
                return operations.pop(place)
        return None

    def _begin(self, act, step, is_step):
        replaced = self._take(act)
        if replaced:
            self._without_end(replaced)
        if is_step:
            self._add(act.key, step)
        loose = self.last_loose.get(act.key)
        is_out_of_order = loose is not None and 0 < step.time - loose <= self.early
        self.open[act.key].append(Operation(act, step, is_out_of_order))

    def _end(self, act, step, is_step):
        ended = self._take(act)
        if ended is None:
            self.unmatched["began_before" if self._is_whole(-math.inf, step.time) else "lost_inside"] += 1
        else:
            ended.steps.append(step)
            if not self._is_whole(ended.begin.time, step.time):
                self.others[ended.group, "lost_inside"] += 1
            elif ended.is_out_of_order:
                self.others[ended.group, "out_of_order"] += 1
            else:
                self.complete.append(ended)
        if is_step:
            self._add(act.key, step)

    def _step(self, key, step):
        if self.open[key]:
            self._add(key, step)
        else:
            self.unmatched["loose_steps"] += 1
            self.last_loose[key] = step.time

    def _add(self, key, step):
        for operation in self.open[key]:
            operation.steps.append(step)

    def _without_end(self, operation):
        kind = "never_ended" if self._is_whole(operation.begin.time, math.inf) else "lost_inside"
        self.others[operation.group, kind] += 1

    def _is_whole(self, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses)

    def answer(self, name_of_key):
        for operations in self.open.values():
            for operation in operations:
                self._without_end(operation)
        result, by_group, steps = Answer(), defaultdict(list), defaultdict(list)
        for operation in self.complete:
            by_group[operation.group].append(operation.duration())
            before = operation.begin
            for step in operation.steps:
                steps[operation.group, step.name].append((step.time - before.time, step.time - operation.begin.time))
                before = step
        for group in sorted(set(by_group) | {group for group, _ in self.others}, key=str):
            durations = by_group.get(group, [])
            counts = {kind: self.others[group, kind] for kind in ("never_ended", "lost_inside", "out_of_order")}
            result.row("operations", {"operation": group or "operation", **statistics(durations), **percentiles(durations), **counts})
        for (group, name), pairs in sorted(steps.items(), key=str):
            result.row("steps", self._step_row(group, name, pairs, sum(by_group[group])))
        self._longest(result, name_of_key)
        if any(self.unmatched.values()):
            result.row("unmatched", self.unmatched)
        return result

    @staticmethod
    def _step_row(group, name, pairs, whole):
        latencies, offsets = ([pair[place] for pair in pairs] for place in (0, 1))
        least = percentiles(latencies)
        return {
            "operation": group or "operation", "step": name, "count": len(pairs), "total": sum(latencies),
            "share": sum(latencies) / whole if whole else None, "min": min(latencies),
            "avg": nearest(sum(latencies), len(latencies)), "p50": least["p50"], "p99": least["p99"], "max": max(latencies),
            "offset_min": min(offsets), "offset_avg": nearest(sum(offsets), len(offsets)), "offset_max": max(offsets),
        }

    def _longest(self, result, name_of_key):
        """Of equal ones those that begin first."""
        rank = lambda operation: (-operation.duration(), operation.begin.time, operation.begin.name, operation.begin.cpu or 0, operation.key)
        shown = sorted(self.complete, key=rank)[:LONGEST]
        for operation in shown:
            result.row("longest-operations", {
                "begin": operation.begin.time, "operation": operation.group or "operation", "key": name_of_key(operation.key),
                "duration": operation.duration(), "cpu": operation.begin.cpu, "steps": len(operation.steps),
            })
        for operation in shown:
            before = operation.begin
            for step in [operation.begin, *operation.steps]:
                result.row("breakdown", {
                    "operation": operation.group or "operation", "key": name_of_key(operation.key), "step": step.name,
                    "cpu": step.cpu, "time": step.time, "offset": step.time - operation.begin.time,
                    "latency": step.time - before.time,
                })
                before = step


class NamedEvents:
    """Which events begin and end operations, as the caller names them; all others with the fields of a key are steps."""

    def __init__(self, begin, end, keys):
        self.begin, self.end = begin, end
        pairs = [key.partition("=") for key in keys]
        self.begin_key = [start for start, _, _ in pairs]
        self.end_key = [stop or start for start, _, stop in pairs]
        self.has_group = all("*" in name for name in (*begin, *end))

    def fields(self):
        return {*self.begin_key, *self.end_key}

    def acts(self, event):
        """What an event does, and whether it lacks a field of its begin or end."""
        found, is_lacking = [], False
        for kind, names, fields in (("end", self.end, self.end_key), ("begin", self.begin, self.begin_key)):
            pattern = next((name for name in names if fnmatch.fnmatchcase(event.name, name)), None)
            if pattern is None:
                continue
            key = self._key(event, fields)
            is_lacking |= key is None
            if key is not None:
                found.append(Act(kind, key, self._group(pattern, event.name)))
        if not found and not is_lacking:
            key = self._key(event, self.begin_key) or self._key(event, self.end_key)
            found += [Act("step", key)] if key else []
        return found, is_lacking

    @staticmethod
    def _key(event, fields):
        key = tuple(event.get(field) for field in fields)
        return None if None in key else key

    def _group(self, pattern, name):
        if not self.has_group:
            return None
        before, after = map(re.escape, pattern.split("*", 1))
        after = after.replace(r"\*", ".*")
        return re.fullmatch(f"{before}(.*){after}", name).group(1)


def acts_of_barrelfish(subsystem, name, key, core):
    """The same of an event of a dump, as section 17 says in words."""
    place = (core,)
    if subsystem == "kernel_capops":
        ends = {"DELETE_ENTER": ("begin", "kernel DELETE"), "RETYPE_ENTER": ("begin", "kernel RETYPE"),
                "DELETE_DONE": ("end", "kernel DELETE"), "RETYPE_DONE": ("end", "kernel RETYPE")}
        kind, group = ends.get(name, ("step", None))
        return [Act(kind, key, group, place)]
    for kind, endings in (("begin", ("_CALL", "_ENTER")), ("end", ("_RESP", "_REPLY"))):
        for ending in endings:
            if name.endswith(ending):
                return [Act(kind, key, name.removesuffix(ending), place)]
    if name == "DELETE_DONE":
        return [Act("end", key, "DELETE", place)]
    return [] if name in ("START", "STOP") else [Act("step", key)]


def of_dump(path):
    """Operations of a dump: lines of a core, a time and 64 bits, which are a subsystem, an event and a number."""
    operations, events = Operations([], EARLY), []
    with open(path) as lines:
        for line in lines:
            found = re.fullmatch(r"(\d+) (\d+) ([0-9a-f]{1,16})\n?", line)
            if found:
                core, time, raw = int(found[1]), int(found[2]), int(found[3], 16)
                events.append((time, core, raw >> 48, raw >> 32 & 0xFFFF, raw & 0xFFFFFFFF))
    # Those of one time and core keep their order.
    for time, core, subsystem, event, number in sorted(events, key=lambda event: event[:2]):
        if subsystem in SUBSYSTEMS:
            words, names = SUBSYSTEMS[subsystem]
            step = Step(time, core, f"{words}:{names[event]}")
            operations.event(step, acts_of_barrelfish(words, names[event], (number,), core))
    return operations


def of_trace(path, named):
    """Operations of a trace, read over babeltrace2's library."""
    from events import Trace

    fields = named.fields()
    trace = Trace(path, lambda name: fields, name_of=str)
    operations = Operations(trace.losses(), 0)
    for event in trace.events:
        acts, is_lacking = named.acts(event)
        operations.unmatched["without_field"] += is_lacking
        operations.event(Step(event.time, event.cpu, event.name), acts)
    return operations


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--barrelfish", action="store_true")
    parser.add_argument("--begin", action="append", default=[])
    parser.add_argument("--end", action="append", default=[])
    parser.add_argument("--key", action="append", default=[])
    arguments = parser.parse_args()
    if arguments.barrelfish:
        operations = of_dump(arguments.trace)
    else:
        operations = of_trace(arguments.trace, NamedEvents(arguments.begin, arguments.end, arguments.key))
    operations.answer(lambda key: key[0] if len(key) == 1 else ", ".join(map(str, key))).print()


if __name__ == "__main__":
    main()
