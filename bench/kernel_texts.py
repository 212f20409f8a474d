#!/usr/bin/env python3
"""Measures what texts of system calls cost the calls, ours and bpftrace's, on the same machine in the same run. Root runs it.

    kernel_texts.py --kymo KYMO [--rounds 7]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/kernel-texts-MACHINE-DATE.md. A loop makes calls on one CPU
(kernel/calls.c) and tells the processor time of one, in the fastest of 200 parts of the loop:

    none         nothing is recorded
    pages        kymo record --kernel=syscalls --kernel-texts none
    texts        kymo record --kernel=syscalls
    bpftrace     tracepoint:syscalls:sys_enter_openat { @ = str(args->filename) } and the same of newfstatat, printing no text (it says each
                 second that it is there); no other event is recorded
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
CALLS = ["getppid", "openat", "stat"]
COUNT = 200_000
SCRIPT = 'interval:s:1 { printf("up\\n"); } tracepoint:syscalls:sys_enter_openat { @ = str(args->filename) } tracepoint:syscalls:sys_enter_newfstatat { @ = str(args->filename) }'


def load(call):
    return [str(BUILT / "calls"), call, str(COUNT)]


def nanoseconds(output):
    return float(re.search(r"^(\d+\.\d) ns$", output, re.M).group(1))


def none(call, _folder):
    return nanoseconds(subprocess.run(load(call), capture_output=True, text=True, check=True).stdout)


def kymo(command, texts):
    def job(call, folder):
        trace = folder / "trace"
        shutil.rmtree(trace, ignore_errors=True)
        words = [command, "record", "--kernel=syscalls", f"--kernel-texts={texts}", "--kernel-buffer=64MiB", "--output", trace, "--"]
        return nanoseconds(subprocess.run([*words, *load(call)], capture_output=True, text=True, check=True).stdout)

    return job


def bpftrace(call, folder):
    with subprocess.Popen(["bpftrace", "-B", "line", "-e", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as peer:
        # Then all of it is attached.
        while (line := peer.stdout.readline()).strip() != "up":
            if not line or "stdin:" in line:
                raise RuntimeError(f"bpftrace does not begin: {line}")
        found = none(call, folder)
        peer.kill()
    return found


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--rounds", type=int, default=7)
    words = words.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", BUILT / "calls", HERE / "kernel/calls.c"], check=True)
    busy = os.getloadavg()[0]
    jobs = {"none": none, "pages": kymo(words.kymo, "none"), "texts": kymo(words.kymo, "read"), "bpftrace": bpftrace}
    found = {}
    with tempfile.TemporaryDirectory(dir=run.STORE) as folder:
        folder = pathlib.Path(folder)
        for _ in range(words.rounds):
            for call in CALLS:
                for name, job in jobs.items():
                    found.setdefault((call, name), []).append(job(call, folder))
    write(found, list(jobs), busy)


def write(found, jobs, busy):
    median = {key: statistics.median(values) for key, values in found.items()}
    machine = run.machine()
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = HERE / "results" / f"kernel-texts-{name}-{datetime.date.today()}.md"
    text = [f"# Texts of system calls: {machine}, {datetime.date.today()}, kernel {os.uname().release}, load {busy:.1f} before the first run", ""]
    text += ["| a call | nanoseconds alone | more with pages | more with pages and texts | texts alone | more with bpftrace |", "|---|---|---|---|---|---|"]
    for call in CALLS:
        alone, pages, texts, peer = (median[call, job] for job in jobs)
        text.append(f"| `{call}` | {alone:.0f} | {pages - alone:.0f} | {texts - alone:.0f} | {texts - pages:.0f} | {peer - alone:.0f} |")
    text += ["", "| call | job | median, ns | lowest | highest | runs |", "|---|---|---|---|---|---|"]
    for (call, job), values in found.items():
        text.append(f"| {call} | {job} | {median[call, job]:.1f} | {min(values):.1f} | {max(values):.1f} | {len(values)} |")
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
