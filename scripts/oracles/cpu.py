"""Oracle of `kymo cpu`: who ran how long, on one core, one event after the other. See docs/analyses.md, section 3.

    cpu.py TRACE
"""

import sys
from collections import defaultdict

from events import Trace, lost_count
from figures import Answer, common, length, union
from threads import WANTED, Replay


def holes_of(trace, replay, spans):
    """For each CPU the spans in which something may be missing, and whether something uncounted is."""
    holes, uncounted = {}, set()
    for cpu, (begin, end) in spans.items():
        losses = trace.losses(cpu)
        whole = [(max(loss.begin, begin), min(loss.end, end)) for loss in losses]
        for run in replay.runs:
            if run.cpu != cpu:
                continue
            is_touched = any(loss.touches(run.begin, run.end) for loss in losses)
            if run.odd or (is_touched and (run.is_first or run.is_last)):
                whole.append((run.begin, run.end))
            if run.odd and not is_touched:
                uncounted.add(cpu)
        if cpu not in replay.running:
            whole.append((begin, end))
        holes[cpu] = union(span for span in whole if span[0] <= span[1])
    return holes, uncounted


def answer(path):
    trace = Trace(path, WANTED)
    replay = Replay(trace)
    switches, preemptions = defaultdict(int), defaultdict(int)
    for event, happenings in replay:
        switches[event.cpu] += event.name == "sched_switch"
        for kind, *what in happenings:
            if kind == "away" and what[1] == "runnable":
                preemptions[what[0]] += 1
    spans = replay.spans
    holes, uncounted = holes_of(trace, replay, spans)
    lost = None if uncounted else lost_count(trace.losses())
    result = Answer()
    for cpu, (begin, end) in sorted(spans.items()):
        row_of_cpu(result, trace, replay, cpu, (begin, end), holes[cpu], cpu in uncounted, switches[cpu])
    threads(result, replay, holes, preemptions, lost)
    return result, trace


def row_of_cpu(result, trace, replay, cpu, span, holes, is_uncounted, switches):
    whole = span[1] - span[0]
    is_known = cpu in replay.running
    busy_runs = [run for run in replay.runs if run.cpu == cpu and run.thread]
    busy = sum(run.end - run.begin for run in busy_runs)
    doubtful, busy_in = length(holes), sum(common(holes, run.begin, run.end) for run in busy_runs)
    idle = whole - busy if is_known else 0
    own = None if is_uncounted else lost_count(trace.losses(cpu))
    high = None if own is None else switches + own
    bounds = [busy - busy_in, busy + doubtful - busy_in] if is_known else [0, whole]
    idle_bounds = [idle - (doubtful - busy_in), idle + busy_in] if is_known else [0, whole]
    result.row(
        "per-cpu",
        {
            "cpu": cpu,
            "begin": span[0],
            "end": span[1],
            "busy": [busy, *bounds],
            "idle": [idle, *idle_bounds],
            "unknown": 0 if is_known else whole,
            "switches": [switches, switches, high],
        },
    )


def threads(result, replay, holes, preemptions, lost):
    runs = defaultdict(list)
    for run in replay.runs:
        if run.thread:
            runs[run.thread].append(run)
    everywhere = length(union(span for spans in holes.values() for span in spans))
    summed = sum(length(spans) for spans in holes.values())
    processes = defaultdict(lambda: [0, 0, 0, 0])
    for thread in sorted(runs):
        mine = sorted(runs[thread], key=lambda run: run.begin)
        time = sum(run.end - run.begin for run in mine)
        inside = sum(common(holes[run.cpu], run.begin, run.end) for run in mine)
        moves = sum(1 for left, right in zip(mine, mine[1:]) if left.cpu != right.cpu)
        plus = lambda value, factor: [value, value, None if lost is None else value + factor * lost]
        result.row(
            "per-thread",
            {
                **replay.cell(thread),
                "run_time": [time, time - inside, time - inside + everywhere],
                "runs": plus(len(mine), 1),
                "migrations": plus(moves, 2),
                "preemptions": plus(preemptions[thread], 1),
            },
        )
        process = processes[replay.pids.get(thread)]
        for place, value in enumerate((1, time, time - inside, len(mine))):
            process[place] += value
    for pid, (count, time, low, number) in processes.items():
        result.row(
            "per-process",
            {
                "process": replay.process_cell(pid),
                "threads": count,
                "run_time": [time, low, low + summed],
                "runs": [number, number, None if lost is None else number + lost],
            },
        )


if __name__ == "__main__":
    found, source = answer(sys.argv[1])
    found.print(source.stale)
