#!/usr/bin/env python3
"""Measures what conditions cost that the kernel asks of its records. Root runs it.

    kernel_filter.py --kymo KYMO [--rounds 9]

A program makes system calls on one CPU while kymo records the begin of each, with a filter of 0, 1, 10 or 50 comparisons with
numbers of threads, in whose midst that of the program is, so that no comparison with the least and the greatest decides. Each round does each job once, in turn; the result is the median over the rounds, and goes to
bench/results/kernel-filter-MACHINE-DATE.md.

    kept       all of them are true, and have to be: how much longer a call takes than with a record of each and no filter
    let go     none is true, and one would do: how much longer than without a recorder; the kernel takes the record back
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

HERE = pathlib.Path(__file__).resolve().parent
BUILT = run.STORE / "kernel"
CALLS = 1_000_000
COUNTS = (1, 10, 50)
REQUIRED = {1: (5, 2, 28), 10: (20, 10, 75), 50: (60, 40, 289)}


def free_numbers():
    """The first of numbers that no thread has now, twice as many as comparisons."""
    most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    wide = 2 * max(COUNTS) + 2
    free = (first for first in range(most - 2 * wide, 1000, -wide) if not any(os.path.exists(f"/proc/{first + more}") for more in range(wide)))
    return next(free)


def comparisons(first, count, is_kept):
    """No two numbers follow each other: they would be one comparison."""
    each = [f"tid {'!=' if is_kept else '=='} {first + 2 * number}" for number in range(count)]
    return (" && " if is_kept else " || ").join(each)


def nanos(output):
    return float(re.search(r"^(\d+\.\d{3})$", output, re.M).group(1))


def alone():
    return nanos(subprocess.run([BUILT / "calls", str(CALLS)], capture_output=True, text=True, check=True).stdout)


def recorded(command, folder, filter_text, thread):
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    words = [command, "record", "--kernel=raw_syscalls:sys_enter", "--kernel-texts=none", "--kernel-buffer=64MiB", "--output", trace]
    words += ["--kernel-filter", filter_text] if filter_text else []
    done = subprocess.run([*words, "--", BUILT / "calls", str(CALLS), str(thread)], capture_output=True, text=True, check=True)
    return nanos(done.stdout)


def jobs(command, folder):
    first = free_numbers()
    yield "no recorder", alone
    yield "no filter", lambda: recorded(command, folder, None, first + 1)
    for count in COUNTS:
        for is_kept in (True, False):
            text, thread = comparisons(first, count, is_kept), first + count // 2 * 2 + 1
            yield f"{count}, {'kept' if is_kept else 'let go'}", lambda text=text, thread=thread: recorded(command, folder, text, thread)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--rounds", type=int, default=9)
    words = words.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", BUILT / "calls", HERE / "kernel/calls.c"], check=True)
    busy, found = os.getloadavg()[0], measured(words, jobs)
    write(found, busy)


def measured(words, jobs):
    """All rounds of jobs, by their names."""
    found = {}
    with tempfile.TemporaryDirectory(dir=run.STORE) as folder:
        for _ in range(words.rounds):
            for name, job in jobs(words.kymo, pathlib.Path(folder)):
                found.setdefault(name, []).append(job())
    return found


def store(text, found, kind, machine):
    """Adds the table of all jobs, and writes the result."""
    text += ["", "| job | ns of a call: median | lowest | highest | runs |", "|---|---|---|---|---|"]
    for name, values in found.items():
        text.append(f"| {name} | {statistics.median(values):.1f} | {min(values):.1f} | {max(values):.1f} | {len(values)} |")
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = HERE / "results" / f"{kind}-{name}-{datetime.date.today()}.md"
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


def write(found, busy):
    median = {name: statistics.median(values) for name, values in found.items()}
    machine = run.machine()
    text = [f"# Filters of the kernel: {machine}, {datetime.date.today()}, kernel {os.uname().release}, load {busy:.1f} before the first run", ""]
    text += ["| comparisons | required, ns | aim | LTTng's in user space | added to a call that is recorded, ns | a call that is let go, above none recorded |"]
    text += ["|---|---|---|---|---|---|"]
    for count in COUNTS:
        required, aim, peer = REQUIRED[count]
        kept, gone = median[f"{count}, kept"] - median["no filter"], median[f"{count}, let go"] - median["no recorder"]
        text.append(f"| {count} | {required} | {aim} | {peer} | {kept:.1f} | {gone:.1f} |")
    store(text, found, "kernel-filter", machine)


if __name__ == "__main__":
    main()
