"""Oracle of `kymo memory`: who took pages from the kernel and gave them back. See docs/analyses.md, section 12.

    memory.py TRACE
"""

import sys
from collections import defaultdict

from events import Trace, lost_count
from figures import Answer
from threads import WANTED, Replay

PAGES = {prefix + name: name == "page_alloc" for prefix in ("mm_", "kmem_mm_") for name in ("page_alloc", "page_free")}
IDLE = "idle"


def without_group(name):
    """As perf and LTTng call it."""
    return name.rsplit(":", 1)[-1]


class Usage:
    """How often pages were taken (0) and given back (1), and how many these were."""

    def __init__(self):
        self.counts, self.pages, self.is_sized = [0, 0], [0, 0], True

    def add(self, way, order):
        self.counts[way] += 1
        self.pages[way] += 1 if order is None else 1 << order
        self.is_sized &= order is not None

    def plus(self, other):
        for way in (0, 1):
            self.counts[way] += other.counts[way]
            self.pages[way] += other.pages[way]
        self.is_sized &= other.is_sized
        return self

    def __bool__(self):
        return any(self.counts)


def columns(usage, certain, others, lost):
    """Cells of a row of which so much is certain, and that may have so much of what is in doubt."""
    cells = {}
    for way, calls, pages in ((0, "allocations", "allocated"), (1, "frees", "freed")):
        low = certain.counts[way]
        cells[calls] = [usage.counts[way], low, None if lost is None else low + others.counts[way] + lost]
        low = certain.pages[way]
        is_bounded = lost == 0 and usage.is_sized and others.is_sized
        cells[pages] = [usage.pages[way], low, low + others.pages[way] if is_bounded else None]
    return {**cells, "relative": usage.pages[0] - usage.pages[1]}


def certainty(replay, uses, cpu):
    """For each use in a run of this CPU whether it is certain whose it is."""
    losses = replay.losses_of[cpu]
    is_whole = lambda begin, end: not any(loss.touches(begin, end) for loss in losses)
    for event, run in uses:
        if run.odd:
            yield False
        else:
            since_begin = not run.is_first and is_whole(run.begin, event.time)
            yield since_begin or (not run.is_last and is_whole(event.time, run.end))


def answer(path):
    name_of = lambda name: without_group(name) if without_group(name) in PAGES or ":" in name else name
    trace = Trace(path, {**WANTED, **{name: ("order",) for name in PAGES}}, name_of=name_of)
    replay = Replay(trace)
    of_cpu, in_runs = defaultdict(Usage), defaultdict(list)
    used, doubt, unknown = defaultdict(Usage), defaultdict(Usage), Usage()
    change = lowest = highest = 0
    for event, _ in replay:
        if event.name not in PAGES:
            continue
        way, order = int(not PAGES[event.name]), event.get("order")
        of_cpu[event.cpu].add(way, order)
        change += (1 if order is None else 1 << order) * (-1 if way else 1)
        lowest, highest = min(lowest, change), max(highest, change)
        run = replay.running.get(event.cpu)
        if event.tid is not None:
            used[replay._current(event.tid) or IDLE].add(way, order)
        elif run is None:
            unknown.add(way, order)
        else:
            in_runs[event.cpu].append((event, run))
    for cpu, uses in in_runs.items():
        for (event, run), is_certain in zip(uses, certainty(replay, uses, cpu)):
            for usage in (used,) if is_certain else (used, doubt):
                usage[run.thread or IDLE].add(int(not PAGES[event.name]), event.get("order"))
    return tables(trace, replay, (used, doubt, unknown), of_cpu, (lowest, highest)), trace


def certain_of(usage, doubt):
    certain = Usage()
    for way in (0, 1):
        certain.counts[way] = usage.counts[way] - doubt.counts[way]
        certain.pages[way] = usage.pages[way] - doubt.pages[way]
    return certain


def tables(trace, replay, usages, of_cpu, depth):
    used, doubt, unknown = usages
    result, nothing, lost = Answer(), Usage(), lost_count(trace.losses())
    all_used, others = Usage(), Usage().plus(unknown)
    for usage in of_cpu.values():
        all_used.plus(usage)
    for usage in doubt.values():
        others.plus(usage)
    whole = columns(all_used, all_used, nothing, lost)
    result.row("total", {**whole, "lowest": depth[0], "highest": depth[1]})
    processes = defaultdict(lambda: [0, Usage(), Usage()])
    for thread, usage in used.items():
        in_doubt = doubt.get(thread, nothing)
        is_idle = thread == IDLE
        cell = {"thread": [IDLE, 0, 0], "incarnation": 0} if is_idle else replay.cell(thread)
        result.row("per-thread", {**cell, **columns(usage, certain_of(usage, in_doubt), others, lost)})
        process = processes[IDLE if is_idle else replay.pids.get(thread)]
        process[0] += not is_idle
        process[1].plus(usage)
        process[2].plus(in_doubt)
    if unknown:
        result.row("per-thread", {**replay.cell(None), **columns(unknown, unknown, nothing, 0)})
        processes[None][1].plus(unknown)
    for pid, (count, usage, in_doubt) in processes.items():
        cell = [IDLE, 0] if pid == IDLE else replay.process_cell(pid)
        certain = usage if pid is None else certain_of(usage, in_doubt)
        bounds = (nothing, 0) if pid is None else (others, lost)
        result.row("per-process", {"process": cell, "threads": count, **columns(usage, certain, *bounds)})
    for cpu, usage in of_cpu.items():
        result.row("per-cpu", {"cpu": cpu, **columns(usage, usage, nothing, lost_count(trace.losses(cpu)))})
    return result


if __name__ == "__main__":
    found, source = answer(sys.argv[1])
    found.print(source.stale)
