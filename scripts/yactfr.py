#!/usr/bin/env python3
"""Compares what kymo decodes with what yactfr decoded from its own test traces, value by value.

    yactfr.py KYMO

A reference (`NAME.expect` beside the trace NAME) has one line for each thing that yactfr came by:

    bit where it begins, kind, name, value            what becomes of it here
     88     DSI:T35                                   of which data stream the packet is
    232     ER {                                      an event record ...
    248       DCV:19712                               ... at this clock value ...
    248       ERI:T29:#coronin                        ... with this name
    248       SC:3 {                                  the common context
    248           FLUI:ctx1:602918315                 ("ctx1", "602918315")
    280           NTS:ctx2 {                          a text: its bytes follow
    280             RD:12:hello hello$00              ("ctx2", "hello hello")
    ...
     32 Expected packet total length (61976) is ...   a fault: only in traces called fail-...

Compared are: the number of event records, and for each its name, clock value, and the leaves of the packet context
and of the four scopes of the event record, in order, with name, value and labels; that the exit status says whether
something is wrong; and that the fault is in the same event record. Every trace is read by machine code and by the
evaluator. Headers are not in kymo's text.

After a fault kymo goes on with the next packet and yactfr does not: what comes after the packet with the fault is
not compared. A deviation needs a line with its reason in tests/conformance/yactfr.tsv.
"""

import csv
import os
import pathlib
import re
import subprocess
import sys

import actf

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT_S = 20
SCOPES = {"1": "packet", "3": "common", "4": "specific", "5": "payload"}
# Fields of the packet context that kymo's text leaves out, as the text of Babeltrace does, because they have a meaning.
MEANINGS = {"packet_size", "content_size", "timestamp_begin", "timestamp_end", "events_discarded", "packet_seq_num"}
NUMBERS = {"FLUI", "FLSI", "FLB", "FLBA", "FLBM", "FLFPN", "VLUI", "VLSI"}
TEXTS = {"NTS", "SLS", "DLS"}
BLOBS = {"SLB", "DLB"}
CHOICES = {"VU", "VS", "OB", "OU", "OS"}
LINE = re.compile(r" *(\d+) +(.*)")
ENCODING = re.compile(r'"encoding": *"([^"]+)"')


class Event:
    """One event record of the reference."""

    def __init__(self, stream, packet, at, leaves, cycles):
        self.stream, self.packet, self.at, self.name, self.cycles = stream, packet, at, "", cycles
        self.scopes = {"packet": leaves, "common": [], "specific": [], "payload": []}


class Reference:
    """What yactfr read: event records, the last one perhaps broken by `fault`."""

    def __init__(self, text, encoding):
        self.encoding, self.events, self.fault, self.packets, self.stream = encoding, [], None, 0, ""
        self.around, self.scope, self.context, self.cycles, self.inside = [], None, [], None, False
        for line in text.splitlines():
            match = LINE.fullmatch(line)
            if match:
                self.line(int(match[1]), match[2])

    def line(self, at, said):
        if re.match(r"[A-Z][a-z]", said):
            self.fault = (at, said)
        elif said == "}":
            kind, name, self.scope = self.around.pop()
            if kind in TEXTS | BLOBS and not self.filled and self.scope is not None:
                self.scope.append((name or self.nearest(), "0x" if kind in BLOBS else "", ()))
            self.inside = self.inside and kind != "ER"
        elif said.endswith(" {"):
            self.open(at, *said[:-2].split(":"))
        else:
            self.leaf(*said.split(":", 1) if ":" in said else (said, ""))

    def open(self, at, kind, *rest):
        # Variants and optionals end with their selector, blobs with their media type: they have a name before it or none.
        if kind in CHOICES | BLOBS:
            rest = rest[:-1]
        name = rest[0] if rest else ""
        self.around.append((kind, name, self.scope))
        self.filled = False
        if kind == "P":
            self.packets, self.context, self.cycles = self.packets + 1, [], None
        elif kind == "ER":
            self.events.append(Event(self.stream, self.packets - 1, at, self.context, self.cycles))
            self.inside = True
        elif kind == "SC":
            scope = SCOPES.get(name)
            self.scope = self.context if scope == "packet" else self.events[-1].scopes[scope] if scope else None

    def nearest(self):
        """The name of the nearest field around."""
        return next((name for kind, name, _ in reversed(self.around) if name and kind != "SC"), "")

    def leaf(self, kind, rest):
        if kind == "DCV":
            self.cycles = int(rest)
            if self.inside:
                self.events[-1].cycles = self.cycles
        elif kind == "DSI":
            self.stream = rest
        elif kind == "ERI":
            self.events[-1].name = rest.split("#", 1)[1] if "#" in rest else ""
        elif self.scope is None:
            return
        elif kind == "RD":
            self.filled = True
            self.scope.append((self.nearest(), self.raw(rest.split(":", 1)[1]), ()))
        elif kind in NUMBERS:
            labels = ()
            if kind == "FLBM":
                rest, flags = rest.rsplit(":", 1)
                labels = tuple(sorted(flags.split(","))) if flags else ()
            name, value = rest.rsplit(":", 1) if ":" in rest else (self.nearest(), rest)
            self.scope.append((name, value, labels))

    def raw(self, data):
        """A text in its encoding up to its end, or a blob."""
        kind = self.around[-1][0]
        if kind in BLOBS:
            return "0x" + data
        code = re.sub(r"\$([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), data).encode("latin-1")
        return code.decode(self.encoding, "replace").split("\0", 1)[0]


def unescaped(text):
    return re.sub(r"\\(['\"?\\])", r"\1", text)


def same(reference, found, strict):
    """Whether two leaves are equal; labels of enumerations are not in the reference, flags of bit maps are."""
    (name, value, labels), (other_name, other_value, other_labels) = reference, found
    if other_name not in (name, name.removeprefix("_")) or (strict and labels and labels != other_labels):
        return False
    if value == unescaped(other_value):
        return True
    return actf.same_leaf((other_name, value, ()), (other_name, other_value, ()))


def of_kymo(line):
    """Name, clock value and leaves by scope of a line of text."""
    clock = re.match(r"timestamp = (\d+)", line)
    head = re.search(r"(?:^|, )name = (.*?)(?:, (?:(?:stream|event)\.[\w.]+ = \{.*)|, |)$", line)
    start = re.search(r"(?:stream\.packet\.context|stream\.event\.context|event\.context|event\.fields) = \{", line)
    scopes = actf.scopes(actf.Reader(line[start.start() :], " = "), "") if start else {}
    return head[1] if head else "", int(clock[1]) if clock else None, scopes


def difference_of_event(event, line):
    name, cycles, scopes = of_kymo(line)
    if name != event.name and (name, event.name) != ("<unknown>", ""):
        return f"is called {name!r} instead of {event.name!r}"
    if cycles is not None and cycles != event.cycles:
        return f"is at cycle {cycles} instead of {event.cycles}"
    for scope, references in event.scopes.items():
        # An optional without content has no value in the reference.
        found = [leaf for leaf in scopes.get(scope, []) if leaf[1] != "<none>"]
        if scope == "packet":
            shown = {leaf[0] for leaf in found}
            references = [leaf for leaf in references if leaf[0] in shown or leaf[0] not in MEANINGS]
        if len(references) != len(found):
            return f"{scope} has {len(found)} values instead of {len(references)}"
        for reference, leaf in zip(references, found):
            if not same(reference, leaf, True):
                return f"{scope}: {leaf} instead of {reference}"
    return None


def differences(kymo, folder, environment):
    """Names of the checks that fail, with what happened."""
    encoding = ENCODING.search((folder / "metadata").read_text(errors="replace"))
    text = folder.with_name(folder.name + ".expect").read_text(errors="surrogateescape")
    reference = Reference(text, encoding[1] if encoding else "utf-8")
    command = [kymo, "print", "--names", "all", "--clock-cycles", "--no-delta", str(folder)]
    try:
        done = subprocess.run(command, env=dict(os.environ, TZ="UTC", **environment), capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        yield "robust", "it hangs"
        return
    said = done.stderr.decode(errors="replace")
    events = reference.events
    if reference.fault:
        yield from faults(reference, done.returncode, said)
        # The record with the fault, if the fault is in one, has no line.
        events = events[:-1] if reference.inside else events
    elif done.returncode:
        yield "read", f"exit status {done.returncode}: {said[:200]}"
    lines = done.stdout.decode(errors="replace").splitlines()
    if len(lines) != len(events) and not (reference.fault and len(lines) > len(events)):
        yield "events", f"{len(lines)} instead of {len(events)}"
    problems = [difference_of_order(order, lines) for order in orders(events)]
    if all(problems):
        yield "values", "; ".join(problems)


def orders(events):
    """Kymo prints in the order of time, and stream by stream without a clock; yactfr reads in the order of the bytes."""
    yield events
    yield sorted(events, key=lambda event: -1 if event.cycles is None else event.cycles)
    yield sorted(events, key=lambda event: event.stream)


def difference_of_order(events, lines):
    """What differs first; None if nothing does."""
    for number, (event, line) in enumerate(zip(events, lines)):
        try:
            problem = difference_of_event(event, line)
        except (ValueError, AttributeError) as error:
            problem = f"its text cannot be compared: {error}"
        if problem:
            return f"event {number}: {problem}"
    return None


def faults(reference, status, said):
    """A fault must be told, and be in the event record or the packet where the reference has it."""
    if status != 1:
        yield "refused", f"exit status {status}, although {reference.fault[1]}"
        return
    if reference.inside:
        broken = reference.events[-1]
        place = re.search(r"packet (\d+) at byte \d+: the event record at bit (\d+)", said)
        # Yactfr counts from behind the padding before the record.
        if not place or int(place[1]) != broken.packet or not 0 <= broken.at - int(place[2]) < 8:
            yield "place", f"the fault is in the event record at bit {broken.at} of packet {broken.packet}: {said[:200]}"


def main():
    kymo = str(pathlib.Path(sys.argv[1]).resolve())
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus")) / "ctf" / "yactfr" / "iter-data"
    if not corpus.exists():
        print(f"CORPUS ABSENT: {corpus} is not there; values were not compared with those of yactfr")
        return 0
    with open(ROOT / "tests" / "conformance" / "yactfr.tsv", newline="") as file:
        known = {(row["trace"], row["check"]): row["reason"] for row in csv.DictReader(file, delimiter="\t")}
    found, passed, total = {}, 0, 0
    for reference in sorted(corpus.glob("*/*.expect")):
        folder = reference.with_suffix("")
        trace = str(folder.relative_to(corpus))
        failures = {}
        for mode in ("always", "off"):
            failures.update(differences(kymo, folder, {"KYMO_JIT": mode}))
        total += 1
        passed += not failures
        found.update({(trace, check): what for check, what in failures.items()})
    for key in sorted(found.keys() - known.keys()):
        print(f"NOT LISTED  {key[0]}  {key[1]}: {found[key]}")
    for key in sorted(known.keys() - found.keys()):
        print(f"NO LONGER   {key[0]}  {key[1]}: remove it from tests/conformance/yactfr.tsv")
    for key in sorted(known.keys() & found.keys()):
        print(f"deviation   {key[0]}  {key[1]}: {known[key]}")
    print(f"yactfr: the values of {passed} of {total} traces are those of the reference, {len(known)} deviations listed")
    return 1 if found.keys() != known.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
