#!/usr/bin/env python3
"""Measures the Python package, SQL and clusters against what is required of them, on the same machine in the same run.

    python.py --python INTERPRETER [--kymo KYMO] [--rounds 5] [--peer]

INTERPRETER is that of an environment with the release wheel, pyarrow and distributed; KYMO a release build with SQL. Every round does each
job once, in a process of its own, in turn; the result is the median over the rounds. It goes to
bench/results/python-MACHINE-DATE.md.

    arrow      name, time and one field (the CPU) of every event of k32 as a pyarrow.Table, without import and open
    loops      python_loop.py on k32
    open       import kymograph, and open k400
    sql        the whole command, process start included, k400
    cluster    four local worker processes, of Dask and of concurrent.futures, against the process itself, k1400; bytes of all
               states that are sent
    peer       the same columns from `bt2` of Babeltrace 2, once, because it takes so long
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import python_loop
import run

HERE = pathlib.Path(__file__).resolve().parent
ARROW = """
import json, sys, time
import kymograph, pyarrow
pyarrow.table({"x": [1]})
trace = kymograph.open(sys.argv[1])
pyarrow.table(trace.events("sched_switch", columns=["time"], end=0))
begin = time.perf_counter()
table = pyarrow.table(trace.events(columns=["name", "time", "cpu_id"]))
print(json.dumps([1e3 * (time.perf_counter() - begin), table.num_rows]))
"""
OPEN = """
import json, sys, time
begin = time.perf_counter()
import kymograph
trace = kymograph.open(sys.argv[1])
print(json.dumps([1e3 * (time.perf_counter() - begin), 0]))
"""
PEER = """
import json, sys, time, bt2
begin = time.perf_counter()
names, times, cpus = [], [], []
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._EventMessageConst:
        event = message.event
        names.append(event.name)
        times.append(message.default_clock_snapshot.ns_from_origin)
        cpus.append(int(event.packet.context_field["cpu_id"]))
print(json.dumps([1e3 * (time.perf_counter() - begin), len(names)]))
"""
# A script, as processes are started anew.
CLUSTER = """
import json, pickle, statistics, sys, time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
@contextmanager
def four(kind):
    if kind == "processes":
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            yield pool
        return
    from distributed import Client, LocalCluster
    local = LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60, memory_limit=0)
    with local, Client(local) as client:
        yield client
def main():
    import kymograph
    from kymograph import cluster
    trace, name = kymograph.open(sys.argv[1]), sys.argv[2]
    with four(sys.argv[4]) as client:
        def timed(**options):
            begin = time.perf_counter()
            trace.analyze(name, **options)
            return time.perf_counter() - begin
        timed(client=client)
        rounds = [(timed(), timed(client=client)) for _ in range(int(sys.argv[3]))]
        plan = cluster.plan(trace, name, readers=4)
        sent = sum(len(pickle.dumps(known)) for known in map(cluster.read, plan.parts))
    here, there = (statistics.median(each) for each in zip(*rounds))
    ratio = statistics.median(there / here for here, there in rounds)
    print(json.dumps([here, there, ratio, sent, len(plan.parts)]))
if __name__ == "__main__":
    main()
"""
SWITCHES = "select next_comm, count(*) from sched_switch group by 1"
OF_THREAD = "select * from sched_switch where next_tid = {tid}"
CLUSTERED = ("io", "cpu", "sched")


def script(interpreter, text, *arguments, folder):
    """What a script prints, in a process of its own."""
    path = folder / "script.py"
    path.write_text(text)
    done = subprocess.run([interpreter, str(path), *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def wall_ms(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return 1e3 * (time.perf_counter() - begin)


def sql_jobs(kymo, trace):
    """The two queries; the thread is one that some thousand switches go to: printing far more rows takes longer than finding them."""
    most = f"{SWITCHES.replace('next_comm', 'next_tid')} order by 2 desc limit 1 offset 2"
    command = [kymo, "sql", "--json", str(trace), most]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    tid = json.loads(lines[0])["next_tid"]
    return {"group by": SWITCHES, f"next_tid = {tid}": OF_THREAD.format(tid=tid)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--kymo")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--peer-python", default="/usr/bin/python3")
    arguments = parser.parse_args()
    folder = pathlib.Path(os.environ.get("KYMO_BENCH", pathlib.Path.home() / ".cache/kymograph/bench"))
    k32, k400, k1400 = (folder / name for name in ("k32", "k400", "k1400"))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        jobs = {
            "arrow": lambda: script(arguments.python, ARROW, k32, folder=scratch)[0],
            "open": lambda: script(arguments.python, OPEN, k400, folder=scratch)[0],
        }
        if arguments.kymo:
            for name, query in sql_jobs(arguments.kymo, k400).items():
                command = [arguments.kymo, "sql", str(k400), query]
                jobs[name] = lambda command=command: wall_ms(command)
        for name, loop in python_loop.LOOPS.items():
            if name != "bt2":
                jobs[name] = lambda loop=loop: python_loop.measured(arguments.python, loop, k32)
        found = {name: [] for name in jobs}
        for number in range(arguments.rounds + 1):
            for name, job in jobs.items():
                value = job()
                # The first round only warms the page cache.
                if number:
                    found[name].append(value)
        lines = ["| job | median | least |", "|---|---|---|"]
        for name, values in found.items():
            unit = "ns per event" if name in python_loop.LOOPS else "ms"
            lines.append(f"| {name} | {statistics.median(values):.1f} {unit} | {min(values):.1f} |")
        lines += ["", "| cluster | four workers | in process | there | ratio | sent | parts |", "|---|---|---|---|---|---|---|"]
        for name, kind in ((name, kind) for name in CLUSTERED for kind in ("processes", "Dask")):
            here, there, ratio, sent, parts = script(
                arguments.python, CLUSTER, k1400, name, arguments.rounds, kind, folder=scratch
            )
            lines.append(f"| {name} | {kind} | {here:.2f} s | {there:.2f} s | {ratio:.2f} | {sent / 1e6:.0f} MB | {parts} |")
        if arguments.peer:
            took, rows = script(arguments.peer_python, PEER, k32, folder=scratch)
            lines += ["", f"Peer: `bt2` takes {took / 1e3:.1f} s for the columns of {rows:,} events of k32, and in a loop "]
            loop = python_loop.measured(arguments.peer_python, python_loop.LOOPS["bt2"], k32)
            lines[-1] += f"that reads name, time and a field {loop:,.0f} ns per event."
    date = datetime.date.today().isoformat()
    machine = re.sub("[^a-z0-9]+", "-", run.machine().lower()).strip("-")
    path = HERE / "results" / f"python-{machine}-{date}.md"
    head = f"# Python, SQL and clusters, {run.machine()}, {os.cpu_count()} cores, {date}\n\nMedians of {arguments.rounds}; load {load:.1f} before the first run.\n\n"
    path.write_text(head + "\n".join(lines) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
