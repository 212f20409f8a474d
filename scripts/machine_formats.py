#!/usr/bin/env python3
"""Checks that `--format json` and `--format csv` are JSON and CSV on every trace of the corpus, and agree with the text.

    machine_formats.py KYMO

Every line of JSON is an object, as many as there are lines of text; CSV has the same number of cells in every row, and
its JSON cells say the same as the lines of JSON.
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys

COMMON = ("time", "cycles", "trace", "stream", "event")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def printed(kymo, trace, form):
    done = subprocess.run([kymo, "print", "--format", form, str(trace)], capture_output=True, timeout=120)
    return done.stdout


def problem(kymo, trace):
    text = printed(kymo, trace, "text")
    lines = printed(kymo, trace, "json").decode().splitlines()
    objects = [json.loads(line) for line in lines]
    if len(objects) != text.count(b"\n"):
        return f"{len(objects)} lines of JSON, {text.count(bytes([10]))} of text"
    rows = list(csv.reader(io.StringIO(printed(kymo, trace, "csv").decode(errors="surrogateescape"), newline="")))
    if rows and len(rows) - 1 != len(objects):
        return f"{len(rows) - 1} rows of CSV, {len(objects)} lines of JSON"
    for row, expected in zip(rows[1:], objects):
        if len(row) != len(rows[0]):
            return f"a row of {len(row)} cells below {len(rows[0])} names"
        if rows[0][-1] == "fields":
            fields = {key: value for key, value in expected.items() if key not in COMMON}
            if json.loads(row[-1]) != fields:
                return f"{row[-1]} in CSV, {fields} in JSON"
        clock = [str(expected.get("time", "")), str(expected.get("cycles", ""))]
        if row[:2] != clock and expected.get("time") is not None:
            return f"{row[:2]} in CSV, {expected} in JSON"
    return None


def main():
    kymo = str(pathlib.Path(sys.argv[1]).resolve())
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not corpus.is_dir():
        print("CORPUS ABSENT: the machine formats were not checked")
        return 0
    traces = sorted(path.parent for path in corpus.rglob("metadata") if path.is_file())
    failures = 0
    for trace in traces:
        try:
            found = problem(kymo, trace)
        except (ValueError, subprocess.TimeoutExpired) as error:
            found = str(error)
        if found:
            failures += 1
            print(f"{trace.relative_to(corpus)}: {found[:300]}")
    print(f"machine formats: {len(traces) - failures} of {len(traces)} traces are sound JSON and CSV")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
