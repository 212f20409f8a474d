"""Oracle of `kymo threads`: whose events they are. See docs/analyses.md, section 14.

    whose.py TRACE
"""

import sys
from collections import defaultdict

import events
from events import Trace, lost_count
from figures import Answer
from threads import WANTED, Replay

IDLE = "idle"
TELLING = {**WANTED, "task_rename": ("tid", "newcomm")}


class Told(Replay):
    """A replay that knows who ran before each event, and who each thread was then."""

    before = None

    def _step(self, event):
        run = self.running.get(event.cpu)
        of = self._current(event.tid) or IDLE if event.tid is not None else None
        self.before = (run, of)
        if of not in (None, IDLE):
            self.seen.add(of)
            self.says(event, of)
        if event.name == "task_rename":
            renamed = self._current(event.get("tid"))
            self.seen.add(renamed)
            self.names[renamed] = event.get("newcomm")
        return super()._step(event)

    def says(self, event, thread):
        """What contexts say of the thread that makes the event."""
        if event.pid is not None:
            self.pids[thread] = event.pid
        if event.comm:
            self.names[thread] = event.comm


class Sums:
    """Events of somebody, and those of them that are in doubt."""

    def __init__(self):
        self.all = self.doubt = 0

    def add(self, other):
        self.all += other.all
        self.doubt += other.doubt

    def cell(self, others, lost):
        low = self.all - self.doubt
        return [self.all, low, None if lost is None else low + others + lost]


def certainty(replay, uses, cpu):
    """For each event in a run of this CPU whether it is certain whose it is."""
    losses = replay.losses_of[cpu]
    is_whole = lambda begin, end: not any(loss.touches(begin, end) for loss in losses)
    for event, run in uses:
        if run.odd:
            yield False
        else:
            since_begin = not run.is_first and is_whole(run.begin, event.time)
            yield since_begin or (not run.is_last and is_whole(event.time, run.end))


def counted(trace):
    """Events by thread, by process where no thread is known, and those of nobody."""
    told = {trace.name_of(name) for stream in trace.streams for name in stream.names}
    tells = bool(told & (TELLING.keys() - {"sched_process_exit"}))
    replay = Told(trace)
    of_thread, of_process, names = defaultdict(Sums), defaultdict(int), {}
    in_runs, unknown = defaultdict(list), 0
    for event, _ in replay:
        run, said = replay.before
        if said is not None:
            of_thread[said].all += 1
        elif not tells and event.pid is not None:
            of_process[event.pid] += 1
            names[event.pid] = event.comm or names.get(event.pid)
        elif run is None:
            unknown += 1
        else:
            in_runs[event.cpu].append((event, run))
    for cpu, uses in in_runs.items():
        for (event, run), is_certain in zip(uses, certainty(replay, uses, cpu)):
            sums = of_thread[run.thread or IDLE]
            sums.all += 1
            sums.doubt += not is_certain
    return replay, of_thread, of_process, names, unknown


def answer(path):
    events.TID_CONTEXTS, events.PID_CONTEXTS = ("tid", "vtid", "perf_tid"), ("pid", "vpid", "perf_pid")
    trace = Trace(path, lambda name: TELLING.get(events.plain_name(name), ()), is_wanted=lambda name: True)
    replay, of_thread, of_process, names, unknown = counted(trace)
    result, lost = Answer(), lost_count(trace.losses())
    doubt = unknown + sum(sums.doubt for sums in of_thread.values())
    loose = sum(of_process.values())
    processes = defaultdict(lambda: [0, Sums()])
    for thread, sums in of_thread.items():
        cell = {"thread": [IDLE, 0, 0], "incarnation": 0} if thread == IDLE else replay.cell(thread)
        result.row("per-thread", {**cell, "count": sums.cell(doubt + loose, lost)})
        pid = replay.pids.get(thread)
        owner = IDLE if thread == IDLE else ("thread", replay.name(thread)) if pid is None else pid
        processes[owner][0] += thread != IDLE
        processes[owner][1].add(sums)
    if unknown + loose:
        result.row("per-thread", {"thread": "?", "incarnation": None, "count": unknown + loose})
    for pid, count in of_process.items():
        sums = Sums()
        sums.all = count
        processes[pid][1].add(sums)
    tables(result, replay, processes, names, (doubt, unknown, lost))
    for cpu in {event.cpu for event in trace.events}:
        count = sum(event.cpu == cpu for event in trace.events)
        lost_there = lost_count(trace.losses(cpu)) if cpu is not None else lost_count([loss for stream in trace.streams if stream.cpu is None for loss in stream.losses])
        result.row("per-cpu", {"cpu": cpu, "count": [count, count, None if lost_there is None else count + lost_there]})
    total = len(trace.events)
    idle = of_thread[IDLE].cell(doubt + loose, lost) if IDLE in of_thread else Sums().cell(doubt + loose, lost)
    known = sum(loss.count or 0 for loss in trace.losses())
    whole = [total, total, None if lost is None else total + lost]
    result.row("total", {"count": whole, "idle": idle, "unknown": unknown + loose, "lost": [known if lost is not None else 0, known if lost is not None else 0, lost]})
    return result, trace


def application_of(replay, names, owner):
    """What a process is called: as its first thread, else as the lowest of its threads that is called anything."""
    if owner == IDLE:
        return IDLE
    if isinstance(owner, tuple):
        return owner[1]
    leader = replay.process_cell(owner)[0]
    if leader:
        return leader
    members = [thread for thread, pid in replay.pids.items() if pid == owner and replay.names.get(thread)]
    if members:
        lowest = min(thread[0] for thread in members)
        return replay.names[max(thread for thread in members if thread[0] == lowest)]
    return names.get(owner)


def kind_of(name):
    """What stands before the first slash, as in `kworker/0:1`."""
    return (name.split("/")[0] or name) if name else name


def tables(result, replay, processes, names, doubts):
    doubt, unknown, lost = doubts
    loose_threads = loose = 0
    applications = defaultdict(lambda: [0, 0, Sums()])
    for owner, (threads, sums) in processes.items():
        if isinstance(owner, tuple):
            loose_threads, loose = loose_threads + threads, loose + sums.all
        else:
            cell = [IDLE, 0] if owner == IDLE else replay.process_cell(owner)
            result.row("per-process", {"process": cell, "threads": threads, "count": sums.cell(doubt, lost)})
        application = applications[kind_of(application_of(replay, names, owner))]
        application[0] += isinstance(owner, int)
        application[1] += threads
        application[2].add(sums)
    if unknown + loose:
        result.row("per-process", {"process": "?", "threads": loose_threads, "count": unknown + loose})
    nobody = applications.pop(None, [0, 0, Sums()])
    for name, (count, threads, sums) in applications.items():
        result.row("per-application", {"application": name, "processes": count, "threads": threads, "count": sums.cell(doubt, lost)})
    if unknown + nobody[2].all:
        result.row("per-application", {"application": "?", "processes": nobody[0], "threads": nobody[1], "count": unknown + nobody[2].all})


if __name__ == "__main__":
    found, source = answer(sys.argv[1])
    found.print(source.stale)
