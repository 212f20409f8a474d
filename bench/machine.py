#!/usr/bin/env python3
"""Measures what a program of eBPF costs in user space: ours as machine code and in the evaluator, and rbpf's machine code.

    machine.py [--rounds 9]

The program asks two fields of an event and counts a third one in a hash table. `crates/jit/examples/machine_speed.rs` measures it for
4096 events of 256 processes, one way after the other, 101 times; each round runs it once. The result is the median over the rounds, and
goes to bench/results/machine-MACHINE-DATE.md.

    all, half, none   the filter keeps all events, every second one at random, or none
    rbpf.words        rbpf, whose helper functions reach a hash table with keys and values as types of Rust
    rbpf.bytes        the same with keys and values of any size, as maps have them
"""

import argparse
import datetime
import os
import re
import statistics
import subprocess

import filter as filters
import run

REQUIRED, AIM = 2, 4


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=9)
    words = words.parse_args()
    command = [*run.CORE, *filters.built_by_cargo("--package", "kymo-jit", "--example", "machine_speed")]
    busy, found = os.getloadavg()[0], {}
    for _ in range(words.rounds):
        for name, value in filters.figures("machine_speed", command):
            found.setdefault(name, []).append(value)
    write(found, busy)


def ratio(found, kind):
    """How many times as long rbpf takes: by medians, and by the lowest times of all rounds."""
    peer, ours = f"rbpf.words.{kind}", f"native.{kind}"
    medians = statistics.median(found[peer]) / statistics.median(found[ours])
    return medians, min(found[f"{peer}.lowest"]) / min(found[f"{ours}.lowest"])


def write(found, busy):
    machine = run.machine()
    text = [f"# Programs of eBPF: {machine}, {datetime.date.today()}, load {busy:.1f} before the first run", "",
            "Nanoseconds for each event. rbpf checks no access to memory, and ours does. What the names mean: "
            "[../machine.py](../machine.py).", "",
            "| events kept | rbpf, words | rbpf, bytes | ours, evaluator | ours, machine code "
            f"| rbpf, words, by ours (required {REQUIRED}, aim {AIM}) | the same of the lowest |", "|---|---|---|---|---|---|---|"]
    for kind in ("all", "half", "none"):
        names = ("rbpf.words", "rbpf.bytes", "evaluator", "native")
        cells = [f"{statistics.median(found[f'{name}.{kind}']):.1f}" for name in names]
        text.append("| " + " | ".join([kind, *cells, *(f"{value:.1f}" for value in ratio(found, kind))]) + " |")
    text += ["", "| figure | median | lowest | highest | runs |", "|---|---|---|---|---|"]
    for name, values in found.items():
        text.append(f"| {name} | {statistics.median(values):.1f} | {min(values):.1f} | {max(values):.1f} | {len(values)} |")
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = run.ROOT / "bench" / "results" / f"machine-{name}-{datetime.date.today()}.md"
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
