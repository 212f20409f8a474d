#!/usr/bin/env python3
"""Measures what a latency histogram of all system calls in the kernel costs, kymo's and bpftrace's, in the same run. Root runs it.

    watch.py --kymo KYMO [--rounds 7]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/watch-MACHINE-DATE.md. The load hands a byte to and fro between two processes on one CPU (kernel/load.c): four
system calls and two switches a round.

    slow-down     how much longer the load takes, beside which watchers have the other CPUs, than without a watcher
    added         nanoseconds of that for a system call: two programs, one at its begin and one at its end
    work          processor time of a watcher and of what it adds to the load, all in all: of kymo, its helper's too; of bpftrace without
                  its compiler (an empty program takes as long). `kymo record` records the same two events and makes a trace of them

bpftrace runs twice: with a histogram of all calls together, as bpftrace keeps it (by powers of two), and one for each call. kymo keeps the
number, sum and distribution (eight buckets for each power of two) of each call in both.
"""

import argparse
import datetime
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

import run
from kernel import BUILT, HERE, ROUNDS, children, load, seconds

CALLS = 4 * ROUNDS
BEGIN = "rawtracepoint:sys_enter { @begun[tid] = nsecs; }"
END = "rawtracepoint:sys_exit / @begun[tid] / { %s = hist(nsecs - @begun[tid]); delete(@begun[tid]); }"
NUMBER = "((struct pt_regs *)arg0)->orig_ax"
KINDS = {"all": ([], END % "@took"), "by call": (["--by", "name"], END % f"@took[{NUMBER}]")}


def timed(words, **options):
    before = children()
    done = subprocess.run(words, capture_output=True, text=True, check=True, **options)
    return {"seconds": seconds(done.stdout), "work": children() - before}


END_OF = {kind: program for kind, (_, program) in KINDS.items()}


def kymo(command, kind):
    words = [command, "watch", "syscalls", "--hist", "took", *KINDS[kind][0], "--json", "--", *load(1)]
    return timed(words)


def bpftrace(kind):
    return timed(["bpftrace", "-e", BEGIN + END_OF[kind], "-c", " ".join(load(1))])


def compiling(kind):
    """Processor time of bpftrace with the same program, and next to nothing to trace."""
    before = children()
    subprocess.run(["bpftrace", "-e", BEGIN + END_OF[kind], "-c", "/bin/true"], capture_output=True, check=True)
    return {"work": children() - before}


def record(command, folder):
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    events = "--kernel=raw_syscalls:sys_enter,raw_syscalls:sys_exit"
    return timed([command, "record", events, "--kernel-buffer=16MiB", "--kernel-texts=none", "--json", "--output", trace, "--", *load(1)])


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--rounds", type=int, default=7)
    words = words.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", BUILT / "load", HERE / "kernel/load.c"], check=True)
    busy = os.getloadavg()[0]
    found = {}
    with tempfile.TemporaryDirectory(dir=run.STORE) as folder:
        folder = pathlib.Path(folder)
        jobs = [("base", lambda: timed(load(1)))]
        for kind in KINDS:
            jobs += [(f"kymo, {kind}", lambda kind=kind: kymo(words.kymo, kind)), (f"bpftrace, {kind}", lambda kind=kind: bpftrace(kind))]
            jobs.append((f"bpftrace's compiler, {kind}", lambda kind=kind: compiling(kind)))
        jobs.append(("kymo record", lambda: record(words.kymo, folder)))
        for _ in range(words.rounds):
            for name, job in jobs:
                for key, value in job().items():
                    found.setdefault((name, key), []).append(value)
    write(found, busy)


def write(found, busy):
    median = {key: statistics.median(values) for key, values in found.items()}
    base, rows = median["base", "seconds"], []
    work = {name: value - median["base", "work"] for (name, key), value in median.items() if key == "work"}
    for kind in KINDS:
        ours, theirs = f"kymo, {kind}", f"bpftrace, {kind}"
        slow = {name: median[name, "seconds"] / base for name in (ours, theirs)}
        added = {name: (median[name, "seconds"] - base) * 1e9 / CALLS for name in (ours, theirs)}
        rows.append(f"| {kind}: slow-down of the load, of that under bpftrace | 1.00 | {slow[ours] / slow[theirs]:.2f} ({slow[ours]:.2f} and {slow[theirs]:.2f} times) |")
        rows.append(f"| added to a system call, ns | that of bpftrace: {added[theirs]:.0f} | {added[ours]:.0f} |")
        alone = work[theirs] - median[f"bpftrace's compiler, {kind}", "work"]
        rows.append(f"| processor time, s; of `kymo record` | 0.5 | {work[ours]:.2f}, {work[ours] / work['kymo record']:.2f} (bpftrace, without compiling: {alone:.2f}) |")
    machine = run.machine()
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = HERE / "results" / f"watch-{name}-{datetime.date.today()}.md"
    text = [f"# Watching the kernel: {machine}, {datetime.date.today()}, kernel {os.uname().release}, load {busy:.1f} before the first run", ""]
    text += ["| figure | required | measured |", "|---|---|---|", *rows, ""]
    text += ["| job | value | median | lowest | highest | runs |", "|---|---|---|---|---|---|"]
    for (job, key), values in found.items():
        text.append(f"| {job} | {key} | {median[job, key]:,.3f} | {min(values):,.3f} | {max(values):,.3f} | {len(values)} |")
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
