#!/usr/bin/env python3
"""Measures kymo and its installed peers on k400 and writes bench/results/DATE.md.

    run.py KYMO        the trace is named by $KYMO_K400
"""

import datetime
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
EVENTS = 12_513_488
RUNS = 7
PEER_RUNS = 3


def measure(command):
    """(user and system seconds, wall seconds) of one run; its output is thrown away."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    kymo, trace = sys.argv[1], os.environ.get("KYMO_K400")
    if not trace or not pathlib.Path(trace, "metadata").exists():
        sys.exit("name the folder of k400 in KYMO_K400; bench/README.md says how to make it")
    core = ["taskset", "--cpu-list", "0"]
    jobs = [
        ("count by class, one core", RUNS, core + [kymo, "count", "--threads", "1", trace]),
        ("time order, nothing printed, one core", RUNS, core + [kymo, "print", "--format", "none", "--threads", "1", trace]),
        ("text, one core", RUNS, core + [kymo, "print", "--threads", "1", trace]),
        ("count by class, two cores", RUNS, [kymo, "count", "--threads", "2", trace]),
        ("time order, nothing printed, two cores", RUNS, [kymo, "print", "--format", "none", "--threads", "2", trace]),
        ("text, two cores", RUNS, [kymo, "print", "--threads", "2", trace]),
        ("info, first screen", RUNS, [kymo, "info", trace]),
    ]
    if shutil.which("babeltrace2"):
        jobs += [
            ("babeltrace2 dummy", PEER_RUNS, core + ["babeltrace2", "--output-format", "dummy", trace]),
            ("babeltrace2 text", PEER_RUNS, core + ["babeltrace2", trace]),
        ]
    if shutil.which("babeltrace"):
        jobs += [("babeltrace 1.5 dummy", PEER_RUNS, core + ["babeltrace", "-o", "dummy", trace])]
    lines = ["| job | user+sys s | wall s | ns per event (user+sys) | ns per event (wall) |", "|---|---|---|---|---|"]
    for name, runs, command in jobs:
        samples = [measure(command) for _ in range(runs)]
        used = statistics.median(sample[0] for sample in samples)
        wall = statistics.median(sample[1] for sample in samples)
        row = f"| {name} | {used:.3f} | {wall:.3f} | {used * 1e9 / EVENTS:.1f} | {wall * 1e9 / EVENTS:.1f} |"
        print(row, flush=True)
        lines.append(row)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    path = results / f"{datetime.date.today()}.md"
    path.write_text("\n".join([f"# {datetime.date.today()}", "", *lines, ""]))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
