#!/usr/bin/env python3
"""Measures what recording the kernel costs, ours and trace-cmd's, on the same machine in the same run. Root runs it.

    kernel.py --kymo KYMO [--rounds 7]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/kernel-MACHINE-DATE.md. Both record the same five events (sched_switch, sched_waking, sched_wakeup, the begin and
the end of system calls) into buffers of the same size, and write to the same disk.

    slow-down     how much longer a load of switches and system calls takes on one CPU, beside which recorders have the others, and on
                  all CPUs, than without a recorder (kernel/load.c)
    work          processor time of the recorder for a million events: of kymo, from pages to CTF, as it says at the end; of trace-cmd, its
                  processes' while it records and those of `trace-cmd report`, whose text goes nowhere
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import tempfile

import run

HERE = pathlib.Path(__file__).resolve().parent
BUILT = run.STORE / "kernel"
EVENTS = ["sched_switch", "sched_waking", "sched_wakeup", "sys_enter", "sys_exit"]
RING_KIB = 16 << 10
ROUNDS = 100_000
INSTANCE = "kymo_bench"


def load(cpus):
    return [str(BUILT / "load"), str(ROUNDS), str(cpus)]


def seconds(output):
    return float(re.search(r"^(\d+\.\d{6})$", output, re.M).group(1))


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def base(cpus):
    """Seconds, and nothing else."""
    return {"seconds": seconds(subprocess.run(load(cpus), capture_output=True, text=True, check=True).stdout)}


def kymo(command, cpus, folder):
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    words = [command, "record", "--kernel=" + ",".join(EVENTS), "--kernel-texts=none", f"--kernel-buffer={RING_KIB}KiB", "--json", "--output", trace, "--"]
    output = subprocess.run([*words, *load(cpus)], capture_output=True, text=True, check=True).stdout
    summary = json.loads(output.splitlines()[-1])["kernel"]
    return {
        "seconds": seconds(output),
        "lost": summary["lost"],
        "events": summary["events"],
        "work": summary["cpu_ns"] / 1e9 / (summary["events"] / 1e6),
    }


def trace_cmd(cpus, folder):
    data = folder / "trace.dat"
    chosen = [word for event in EVENTS for word in ("-e", ("raw_syscalls:" if event.startswith("sys_") else "sched:") + event)]
    words = ["trace-cmd", "record", "-B", INSTANCE, "-b", str(RING_KIB), "-o", data, *chosen]
    before = children()
    alone = base(cpus)
    program = children() - before
    before = children()
    allowed = {**os.environ, "LD_PRELOAD": str(BUILT / "allow.so")}
    done = subprocess.run([*words, *load(cpus)], env=allowed, capture_output=True, text=True, check=True)
    events = 0
    with subprocess.Popen(["trace-cmd", "report", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as report:
        while block := report.stdout.read(1 << 20):
            events += block.count(b"\n")
    used = children() - before
    # With recording, the load itself takes longer, too.
    its = program * seconds(done.stdout) / alone["seconds"]
    stats = subprocess.run(["trace-cmd", "report", "--stat", "-i", data], capture_output=True, text=True, check=True).stdout
    lost = sum(int(number) for number in re.findall(r"^(?:overrun|dropped events): (\d+)$", stats, re.M))
    return {"seconds": seconds(done.stdout), "lost": lost, "events": events, "work": (used - its) / (events / 1e6)}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--rounds", type=int, default=7)
    words = words.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", BUILT / "load", HERE / "kernel/load.c"], check=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", BUILT / "allow.so", HERE / "kernel/allow.c"], check=True)
    busy = os.getloadavg()[0]
    cpus = len(os.sched_getaffinity(0))
    found = {}
    with tempfile.TemporaryDirectory(dir=run.STORE) as folder:
        folder = pathlib.Path(folder)
        for _ in range(words.rounds):
            for used in (1, cpus):
                for name, job in (("base", lambda: base(used)), ("kymo", lambda: kymo(words.kymo, used, folder)), ("trace-cmd", lambda: trace_cmd(used, folder))):
                    for key, value in job().items():
                        found.setdefault((used, name, key), []).append(value)
    write(found, cpus, busy)


def write(found, cpus, busy):
    median = {key: statistics.median(values) for key, values in found.items()}
    rows = []
    for used in (1, cpus):
        slow = {name: median[used, name, "seconds"] / median[used, "base", "seconds"] for name in ("kymo", "trace-cmd")}
        beside = slow["kymo"] / slow["trace-cmd"]
        rows.append(f"| slow-down of the load on {used} of {cpus} CPUs, of that under trace-cmd | within 1.05 | 1.00 | {beside:.2f} ({slow['kymo']:.2f} and {slow['trace-cmd']:.2f} times) |")
        for name in ("kymo", "trace-cmd"):
            events, lost = median[used, name, "events"], median[used, name, "lost"]
            rows.append(f"| events of {name} there, and lost | | | {events:,.0f}, {lost:,.0f} |")
        need = ("0.25", "0.1") if used == 1 else ("", "")
        rows.append(f"| recorder's processor time for a million events, pages to CTF, s | {need[0]} | {need[1]} | {median[used, 'kymo', 'work']:.3f} |")
        rows.append(f"| the same of trace-cmd record and report | | | {median[used, 'trace-cmd', 'work']:.2f} |")
    machine = run.machine()
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = HERE / "results" / f"kernel-{name}-{datetime.date.today()}.md"
    text = [f"# Recording the kernel: {machine}, {datetime.date.today()}, kernel {os.uname().release}, load {busy:.1f} before the first run", ""]
    text += ["| figure | required | aim | measured |", "|---|---|---|---|", *rows, ""]
    text += ["| CPUs | job | value | median | lowest | highest | runs |", "|---|---|---|---|---|---|---|"]
    for (used, name, key), values in found.items():
        text.append(f"| {used} | {name} | {key} | {median[used, name, key]:,.3f} | {min(values):,.3f} | {max(values):,.3f} | {len(values)} |")
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
