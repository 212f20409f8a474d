#!/usr/bin/env python3
"""Loops over single events in Python: `kymograph`, `kymograph.compat.bt2`, and Babeltrace 2's own `bt2`.

    python_loop.py [TRACE] [--rounds N] [--python INTERPRETER] [--peer INTERPRETER]

Each round is a process of its own, so that nothing is warm but the files. INTERPRETER has the wheel, the peer's has `bt2`. What a
loop takes is measured from before the iterator is made to behind the last event, and divided by the number of events; the
median of all rounds is printed. The loops read the same field of every event, and add it up:

- native, field: one field (`cpu_id`) of every event; native, name: the event's name besides, and a field of its payload;
- compat and bt2: name, clock snapshot in nanoseconds, and a field of the payload by subscription, as text or number.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

SETUP = """
import json, sys, time
trace = sys.argv[1]
"""
# For each class, the first field of its payload: found once, beforehand.
NAMES = """
names = {}
for msg in bt2.TraceCollectionMessageIterator(trace):
    if type(msg) is bt2._EventMessageConst and msg.event.name not in names:
        names[msg.event.name] = next(iter(msg.event.payload_field or ()), 'cpu_id')
"""
COMPAT = NAMES + """
begin = time.perf_counter()
count = total = 0
for msg in bt2.TraceCollectionMessageIterator(trace):
    if type(msg) is bt2._EventMessageConst:
        event = msg.event
        name = event.name
        total += msg.default_clock_snapshot.ns_from_origin
        value = event[names[name]]
        count += 1
took = time.perf_counter() - begin
print(json.dumps([count, took, total]))
"""
NATIVE = """
import kymograph
opened = kymograph.open(trace)
{prepare}
begin = time.perf_counter()
count = total = 0
for event in opened:
    {body}
    count += 1
took = time.perf_counter() - begin
print(json.dumps([count, took, total]))
"""
LOOPS = {
    "native, field": NATIVE.format(prepare="", body="total += event['cpu_id']"),
    "native, name and field": NATIVE.format(
        prepare="names = {}\nfor event in opened:\n    names.setdefault(event.name, event.keys()[0])",
        body="value = event[names[event.name]]; total += event.time",
    ),
    "compat.bt2": "from kymograph.compat import bt2\n" + COMPAT,
    "bt2": "import bt2\n" + COMPAT,
}


def measured(interpreter, script, trace):
    """What a loop takes in a process of its own: nanoseconds per event."""
    command = [interpreter, "-c", SETUP + script, str(trace)]
    count, took, _ = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return took / count * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", default="/tmp/traces/k32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peer", default="/usr/bin/python3")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    sums = {}
    for loop, script in LOOPS.items():
        if arguments.only and arguments.only != loop:
            continue
        interpreter = arguments.peer if loop == "bt2" else arguments.python
        rounds = 1 if loop == "bt2" else arguments.rounds
        costs = []
        for _ in range(rounds):
            command = [interpreter, "-c", SETUP + script, str(pathlib.Path(arguments.trace))]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{loop}: not measured: {done.stderr.strip().splitlines()[-1]}")
                break
            count, took, total = json.loads(done.stdout)
            costs.append(took / count * 1e9)
            sums.setdefault(loop.split(",")[0] == "native" and loop or "times", set()).add((count, total))
        if costs:
            print(f"{loop}: {statistics.median(costs):.0f} ns per event (of {rounds}: {min(costs):.0f} to {max(costs):.0f}; "
                  f"{count} events)")
    for same in sums.values():
        assert len(same) == 1, f"the loops do not see the same: {sums}"


if __name__ == "__main__":
    main()
