#!/usr/bin/env python3
"""Compares builds of two states: read jobs and costs of events, interleaved in one run.

    compare.py [--runs 9] NAME=KYMO[,EVENT_SPEED]...

KYMO is a `kymo`; EVENT_SPEED is bench/tracer/event_speed.c, built with the headers and the library of that state. Each turn runs every
job once with every build, so that all of them meet the same moods of the machine; the first turn only warms the page cache. A row has
each build's median, and how far its runs are apart (the middle half of them).
"""

import argparse
import re
import statistics
import subprocess

import run

JOBS = {
    "count, one core": ["count", "--threads", "1"],
    "all fields in time order, one core": ["print", "--format", "none", "--threads", "1"],
    "text, one core": ["print", "--threads", "1"],
    "cpu, one core": ["cpu", "--threads", "1"],
    "syscalls, one core": ["syscalls", "--threads", "1"],
}


def spread(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return high - low


def read_jobs(builds, runs):
    """Nanoseconds of processor time per event, by job and build."""
    folder = run.trace_folder("k400")
    if folder is None:
        return {}
    events = run.events_of(next(iter(builds.values()))[0], folder)
    taken = {}
    for turn in range(runs + 1):
        for job, words in JOBS.items():
            # Each second turn the other way around: a build has no fixed place.
            for name, (kymo, *_) in list(builds.items())[:: 1 - 2 * (turn % 2)]:
                used, _, _ = run.measure([*run.CORE, kymo, *words, str(folder)])
                if turn:
                    taken.setdefault(job, {}).setdefault(name, []).append(used * 1e9 / events)
    return taken


def event_costs(builds, runs):
    """Nanoseconds of an event, by kind and build; of builds with a program for it."""
    taken = {}
    for turn in range(runs):
        for name, (_, *program) in builds.items():
            if program:
                said = subprocess.run([*run.CORE, program[0]], capture_output=True, text=True, check=True).stdout
                for kind, cost in re.findall(r"^(\w+) +(\d+\.\d+) ns", said, re.MULTILINE):
                    taken.setdefault(kind.strip(), {}).setdefault(name, []).append(float(cost))
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("builds", nargs="+", metavar="NAME=KYMO[,EVENT_SPEED]")
    arguments = parser.parse_args()
    builds = {name: paths.split(",") for name, paths in (build.split("=", 1) for build in arguments.builds)}
    print(f"{run.machine()}, {arguments.runs} runs each\n")
    print(f"| ns per event | {' | '.join(builds)} |\n|---{'|---' * len(builds)}|")
    for job, taken in {**read_jobs(builds, arguments.runs), **event_costs(builds, arguments.runs)}.items():
        cells = [f"{statistics.median(taken[name]):.2f} (± {spread(taken[name]) / 2:.2f})" if name in taken else "" for name in builds]
        print(f"| {job} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
