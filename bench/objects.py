#!/usr/bin/env python3
"""Measures what users' eBPF programs cost at events of a recorded program: as machine code, and in the interpreter.

    objects.py --kymo KYMO --library FOLDER [--rounds 7]

objects/app.c records an event a million times, in runs, under `kymo record --bpf` with each program of objects/programs.c, which keeps no
event. FOLDER has libkymo.so. Each round does each job once, in turn; a job's figure is the median of its runs, and the result is the median
over the rounds. It goes to bench/results/objects-MACHINE-DATE.md.
"""

import argparse
import datetime
import os
import re
import statistics
import subprocess
from pathlib import Path

import run

HERE = Path(__file__).resolve().parent
BUILT = run.STORE / "objects"
PROGRAMS = {
    "FILTER": "compares two fields",
    "ARRAY": "adds a field in an array of each CPU",
    "HASH": "adds up two numbers of each of 64 keys, in a hash table",
    "TEXT": "reads a text of 9 bytes, byte by byte",
}


def measured(command, library, program, is_native):
    environment = os.environ | {"LD_LIBRARY_PATH": str(BUILT), "KYMO_NATIVE": "on" if is_native else "off"}
    words = [command, "record", "--bpf", BUILT / f"{program}.o", "--output", BUILT / "trace", "--", BUILT / "app"]
    subprocess.run(["rm", "-rf", BUILT / "trace"], check=True)
    told = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    return float(re.search(r"^[0-9.]+ ([0-9.]+)$", told, re.MULTILINE)[1])


def build(library):
    BUILT.mkdir(parents=True, exist_ok=True)
    named = BUILT / "libkymo.so.0"
    named.unlink(missing_ok=True)
    named.symlink_to(Path(library).resolve() / "libkymo.so")
    include = HERE.parent / "include"
    compiled = ["cc", "-std=gnu11", "-O2", "-I", include, HERE / "objects/app.c", "-o", BUILT / "app", named]
    subprocess.run(compiled, check=True)
    for program in PROGRAMS:
        words = ["clang", "--target=bpf", "-O2", "-g", f"-D{program}", "-c", HERE / "objects/programs.c"]
        subprocess.run([*words, "-o", BUILT / f"{program}.o"], check=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kymo", required=True)
    words.add_argument("--library", required=True)
    words.add_argument("--rounds", type=int, default=7)
    words = words.parse_args()
    build(words.library)
    busy, found = os.getloadavg()[0], {}
    for _ in range(words.rounds):
        for program in PROGRAMS:
            for is_native in (True, False):
                value = measured(words.kymo, words.library, program, is_native)
                found.setdefault((program, is_native), []).append(value)
    machine = run.machine()
    text = [f"# Users' programs at events: {machine}, {datetime.date.today()}, load {busy:.1f} before the first run", ""]
    text += ["| a program that keeps no event, and | machine code, ns for each event | interpreter |", "|---|---|---|"]
    for program, words_of in PROGRAMS.items():
        native, interpreted = (statistics.median(found[program, way]) for way in (True, False))
        text.append(f"| {words_of} | {native:.1f} | {interpreted:.1f} |")
    name = re.sub("[^a-z0-9]+", "-", machine.lower()).strip("-")
    path = HERE / "results" / f"objects-{name}-{datetime.date.today()}.md"
    path.write_text("\n".join(text) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
