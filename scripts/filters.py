#!/usr/bin/env python3
"""Checks `--filter` on every trace of the corpus: what it keeps is what an evaluator of its own keeps of all events.

    filters.py KYMO [--each N]

Expressions are made of fields and values that events have (the same ones every time). Python reads them out of lines of
JSON, with SQL's logic of three values; `kymo` asks them in the scan, by machine code and on two threads.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Traces with more events than this are left to other tests.
EVENTS_MAX = 30_000
SCOPES = {"payload": ("payload",), "ctx": ("context", "common_context", "packet_context")}
# JSON does not tell blobs from text, bit maps from enumerations, nor options of a variant from each other.
NOT_IN_JSON = ("which has no single value", "has no label", "is text and `$payload.bm` is a number")
OPERATORS = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
}


class Untyped(Exception):
    """The class of the event has something else at that place."""


def leaves(value, path):
    """Names of the fields below a value that have one value."""
    if isinstance(value, dict) and set(value) == {"value", "labels"}:
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            quoted = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"
            if "`" not in name and name:
                yield from leaves(member, path + [(name, "." + quoted)])
    elif isinstance(value, list):
        for index, element in enumerate(value[:3]):
            yield from leaves(element, path + [(index, f"[{index}]")])
    elif isinstance(value, (int, str)) and not isinstance(value, bool):
        yield path, value


def at(event, word, path):
    """The value at a path; None: it is missing."""
    for scope in SCOPES[word]:
        value = event.get(scope)
        if not isinstance(value, dict) or path[0][0] not in value:
            continue
        for step, _ in path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                value = value[step] if step < len(value) else None
            elif value is not None:
                raise Untyped
        return value
    return None


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("*", "\\*").replace("\n", "\\n") + '"'


class Comparison:
    """One field with one value."""

    def __init__(self, chance, word, path, value):
        self.word, self.path = word, path
        self.operator = chance.choice(list(OPERATORS))
        self.labels = isinstance(value, dict)
        if self.labels and value["labels"] and chance.random() < 0.5:
            self.operator, self.value = chance.choice(("==", "!=")), value["labels"][0]
        else:
            self.value = value["value"] if self.labels else value
            if isinstance(self.value, int):
                self.value += chance.choice((0, 0, 1, -1))
            elif chance.random() < 0.5:
                self.value = self.value[: chance.randrange(len(self.value) + 1)]

    def text(self):
        value = literal(self.value) if isinstance(self.value, str) else str(self.value)
        return f"${self.word}{''.join(step for _, step in self.path)} {self.operator} {value}"

    def says(self, event):
        value = at(event, self.word, self.path)
        if value is None:
            return None
        is_labelled = isinstance(value, dict) and set(value) == {"value", "labels"}
        if is_labelled and isinstance(self.value, str):
            return (self.value in value["labels"]) == (self.operator == "==")
        value = value["value"] if is_labelled else value
        value = int(value) if isinstance(value, bool) else value
        if type(value) is not type(self.value) and not (isinstance(value, float) and isinstance(self.value, int)):
            raise Untyped
        if isinstance(value, str):
            return OPERATORS[self.operator](value.encode(), self.value.encode())
        return OPERATORS[self.operator](value, self.value)


class Combination:
    """Comparisons, all or any of them, perhaps turned around."""

    def __init__(self, chance, events):
        self.parts = []
        for _ in range(chance.randrange(1, 4)):
            event = chance.choice(events)
            word = chance.choice(list(SCOPES))
            found = [leaf for scope in SCOPES[word] for leaf in leaves(event.get(scope), [])]
            found = [(path, value) for path, value in found if path and at(event, word, path) == value]
            if found:
                self.parts.append(Comparison(chance, word, *chance.choice(found)))
        self.joint = chance.choice(("&&", "||"))
        self.is_turned = chance.random() < 0.2

    def text(self):
        text = f" {self.joint} ".join(part.text() for part in self.parts)
        return f"!({text})" if self.is_turned else text

    def keeps(self, event):
        try:
            said = [part.says(event) for part in self.parts]
        except Untyped:
            return False
        decisive = self.joint == "||"
        whole = decisive if decisive in said else None if None in said else not decisive
        return whole is (not self.is_turned)


def lines(kymo, trace, *arguments, environment=None):
    command = [kymo, "print", "--format", "json", *arguments, str(trace)]
    done = subprocess.run(command, capture_output=True, timeout=120, env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout.decode(errors="surrogateescape").splitlines(), done.stderr.decode(errors="replace")


def problem(kymo, trace, number, events, kept_of):
    chance = random.Random(f"{trace.name} {number}")
    combination = Combination(chance, [event for _, event in events])
    if not combination.parts:
        return None
    text = combination.text()
    expected = [line for line, event in events if combination.keeps(event)]
    for environment in ({"KYMO_JIT": "always", "KYMO_THREADS": "1"}, {"KYMO_THREADS": "2"}):
        status, found, told = lines(kymo, trace, "--filter", text, environment=environment)
        if any(reason in told for reason in NOT_IN_JSON):
            return None
        if status == 2 and "no class of events" not in told and "cannot be compared" not in told:
            return f"{text}: {told[:200]}"
        if status != 2 and found != expected:
            return f"{text}: {len(found)} events, expected {len(expected)} {environment}"
        if status == 2 and expected:
            return f"{text}: refused, expected {len(expected)}: {told[:200]}"
    kept_of[0] += len(expected)
    kept_of[1] += len(events)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kymo", type=pathlib.Path)
    parser.add_argument("--each", type=int, default=1, help="expressions for each trace")
    arguments = parser.parse_args()
    kymo = str(arguments.kymo.resolve())
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    traces = sorted(path.parent for path in corpus.rglob("metadata") if path.is_file()) if corpus.is_dir() else []
    if not traces:
        print("CORPUS ABSENT: filters were only tried on the trace that is shipped")
        traces = [ROOT / "examples" / "traces" / "demo"]
    failures, tried, kept_of = 0, 0, [0, 0]
    for trace in traces:
        _, all_lines, _ = lines(kymo, trace, "--limit", str(EVENTS_MAX + 1))
        if not all_lines or len(all_lines) > EVENTS_MAX:
            continue
        events = [(line, json.loads(line)) for line in all_lines]
        for number in range(arguments.each):
            tried += 1
            found = problem(kymo, trace, number, events, kept_of)
            if found:
                failures += 1
                print(f"{trace}: {found[:400]}")
    print(f"filters: {tried - failures} of {tried} keep the same events ({kept_of[0]} of {kept_of[1]})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
