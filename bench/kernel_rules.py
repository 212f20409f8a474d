#!/usr/bin/env python3
"""Measures what a quick system call costs under a rule of the kernel that keeps only slow ones. Root runs it.

    kernel_rules.py --kymo KYMO [--rounds 15]

A program makes system calls on one CPU: alone, under two programs of raw tracepoints that only read the clock (kernel/clock.bpf.c, attached
by kernel/attach.c, which needs libbpf), and under `kymo record --kernel-only` with a fixed limit, a limit for each call, and a running
percentile. Each round does each job once, in turn; the result is the median over the rounds, and goes to
bench/results/kernel-rules-MACHINE-DATE.md.
"""

import argparse
import datetime
import os
import shutil
import statistics
import subprocess

import run
from kernel_filter import BUILT, CALLS, HERE, alone, measured, nanos, store

RULES = {
    "a fixed limit": "syscalls over 1s",
    "a limit for each call": "syscalls over 1s per name",
    "a running percentile": "syscalls over p99.9",
}
REQUIRED, AIM = 200, 100


def clock():
    words = [BUILT / "attach", BUILT / "clock.o"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as programs:
        assert programs.stdout.readline() == "attached\n", "the programs cannot be attached"
        found = alone()
        programs.stdin.close()
    return found


def recorded(command, folder, rule):
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    words = [command, "record", "--kernel-only", rule, "--output", trace, "--", BUILT / "calls", str(CALLS)]
    return nanos(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def jobs(command, folder):
    yield "no program", alone
    yield "two that read the clock", clock
    for name, rule in RULES.items():
        yield name, lambda rule=rule: recorded(command, folder, rule)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--rounds", type=int, default=15)
    words = words.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    for build in (
        ["cc", "-O2", "-o", BUILT / "calls", HERE / "kernel/calls.c"],
        ["cc", "-O2", "-o", BUILT / "attach", HERE / "kernel/attach.c", "-lbpf"],
        ["clang", "--target=bpf", "-O2", "-g", include, "-c", HERE / "kernel/clock.bpf.c", "-o", BUILT / "clock.o"],
    ):
        subprocess.run(build, check=True)
    busy, found = os.getloadavg()[0], measured(words, jobs)
    write(found, busy)


def write(found, busy):
    base = found["two that read the clock"]
    machine = run.machine()
    text = [f"# Rules of the kernel: {machine}, {datetime.date.today()}, kernel {os.uname().release}, load {busy:.1f} before the first run", ""]
    text += ["| a quick call under | required, ns | aim | above the clock alone: of medians | of the lowest |", "|---|---|---|---|---|"]
    for name in RULES:
        more = statistics.median(found[name]) - statistics.median(base)
        text.append(f"| {name} | {REQUIRED} | {AIM} | {more:.1f} | {min(found[name]) - min(base):.1f} |")
    store(text, found, "kernel-rules", machine)


if __name__ == "__main__":
    main()
