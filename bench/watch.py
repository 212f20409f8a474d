#!/usr/bin/env python3
"""Measures what a latency histogram of all system calls in the kernel costs, kymo's and bpftrace's, in the same run. Root runs it.

    watch.py --kymo KYMO [--rounds 7]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/watch-MACHINE-DATE.md. The load hands a byte to and fro between two processes on one CPU (kernel/load.c): four
system calls and two switches a round.

    a call        processor time that two programs add to a system call, one at its begin and one at its end: that of the load with them,
                  less that without, and less that of the watcher where there is next to nothing to watch
    all           processor time of a watcher and of all that it adds to the load: of kymo, its helper's too. `kymo record` records the same
                  two events and makes a trace of them; its recorder's time is as its summary says

Elapsed time is in the table of all values: it depends on other work of the machine.
bpftrace runs twice: with a histogram of all calls together, as bpftrace keeps it (by powers of two), and one for each call. kymo keeps the
number, sum and distribution (eight buckets for each power of two) of each call in both. bpftrace's programs are at perf's tracepoints,
as its manual shows them; 0.17 has none at raw ones on this kernel.
"""

import argparse
import datetime
import json
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
BEGIN = "tracepoint:raw_syscalls:sys_enter { @begun[tid] = nsecs; }"
END = "tracepoint:raw_syscalls:sys_exit / @begun[tid] / { %s = hist(nsecs - @begun[tid]); delete(@begun[tid]); }"
KINDS = {"all": ([], END % "@took"), "by call": (["--by", "name"], END % "@took[args->id]")}


NOTHING = [str(BUILT / "load"), "1", "1"]


def timed(words, beside=lambda told: 0):
    """Seconds of the load, and processor time of all; `beside`: that of processes that are not our children, from the output."""
    before = children()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {"seconds": seconds(done.stdout), "work": children() - before + beside(done.stdout) / 1e9}


def last(text):
    return json.loads(text.splitlines()[-1])


END_OF = {kind: program for kind, (_, program) in KINDS.items()}


def kymo(command, kind, job):
    words = [command, "watch", "syscalls", "--hist", "took", *KINDS[kind][0], "--json", "--", *job]
    return timed(words, lambda text: last(text)["cost"]["helper_ns"])


def bpftrace(kind, job):
    return timed(["bpftrace", "-e", BEGIN + END_OF[kind], "-c", " ".join(job)])


def record(command, folder):
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    events = "--kernel=raw_syscalls:sys_enter,raw_syscalls:sys_exit"
    words = [command, "record", events, "--kernel-buffer=16MiB", "--kernel-texts=none", "--json", "--output", trace, "--", *load(1)]
    return timed(words, lambda text: last(text)["kernel"]["cpu_ns"])


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
            for about, job in (("", load(1)), (", nothing", NOTHING)):
                jobs.append((f"kymo, {kind}{about}", lambda kind=kind, job=job: kymo(words.kymo, kind, job)))
                jobs.append((f"bpftrace, {kind}{about}", lambda kind=kind, job=job: bpftrace(kind, job)))
        jobs.append(("kymo record", lambda: record(words.kymo, folder)))
        for _ in range(words.rounds):
            for name, job in jobs:
                for key, value in job().items():
                    found.setdefault((name, key), []).append(value)
    write(found, busy)


def write(found, busy):
    median = {key: statistics.median(values) for key, values in found.items()}
    base, rows = median["base", "work"], []
    recording = median["kymo record", "work"] - base
    for kind in KINDS:
        a_call, whole = {}, {}
        for name in ("kymo", "bpftrace"):
            nothing = median[f"{name}, {kind}, nothing", "work"]
            whole[name] = median[f"{name}, {kind}", "work"] - base
            a_call[name] = (whole[name] - nothing) * 1e9 / CALLS
        rows.append(f"| {kind}: a call, ns | that of bpftrace: {a_call['bpftrace']:.0f} | {a_call['kymo']:.0f} |")
        rows.append(f"| {kind}: all, s | half of `kymo record`: {recording / 2:.3f} | {whole['kymo']:.3f} (bpftrace: {whole['bpftrace']:.3f}) |")
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
