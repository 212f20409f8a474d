#!/usr/bin/env python3
"""Compares kymo with what Babeltrace 2.1, yactfr and actf read from the traces of the corpus.

    conformance.py KYMO

The corpus is looked for in $KYMO_CORPUS, else in ../shared/corpus beside the repository. Every deviation is
listed in tests/conformance/deviations.tsv with its reason; one that is not listed fails, and so does a listed
one that no longer occurs. A reason that begins with `open:` admits that kymo is wrong there.
"""

import csv
import hashlib
import os
import pathlib
import subprocess
import sys

import actf

ROOT = pathlib.Path(__file__).resolve().parent.parent
EMPTY = ("", "-", "0")
TIMEOUT_S = 20


def run(kymo, corpus, *arguments):
    """Exit status (None: it hung), standard output, standard error."""
    environment = dict(os.environ, TZ="UTC", LC_ALL="C")
    try:
        done = subprocess.run([kymo, *arguments], cwd=corpus, env=environment, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, b"", b""
    return done.returncode, done.stdout, done.stderr


def expected_events(row):
    """How many events the reference reads; None if every reference refuses the trace."""
    if row["exit_21"] == "0":
        return int(row["events_21"])
    if row["exit_yactfr"] == "0":
        return int(row["events_yactfr"])
    return None


def checks(kymo, corpus, row):
    """Names of the checks that fail for a trace, with what happened."""
    trace = row["trace"]
    status, out, err = run(kymo, corpus, "print", trace)
    if status is None or status < 0:
        yield "robust", "it hangs" if status is None else f"it dies of signal {-status}"
        return
    events = expected_events(row)
    if events is None:
        if status != 1:
            yield "refused", f"exit status {status}, although no reference reads it"
        elif not err:
            yield "refused", "no error message"
    elif status != 0:
        yield "read", f"exit status {status}: {err.decode(errors='replace').strip()[:200]}"
    elif out.count(b"\n") != events:
        yield "events", f"{out.count(bytes([10]))} events instead of {events}"
    if row["exit_21"] == "0" and row["events_21"] not in EMPTY:
        if hashlib.sha256(out).hexdigest() != row["sha256_default_21"]:
            yield "text", "differs from babeltrace2"
        _, out, _ = run(kymo, corpus, "print", "--clock-seconds", "--no-delta", trace)
        if hashlib.sha256(out).hexdigest() != row["sha256_clockseconds_nodelta_21"]:
            yield "text-seconds", "differs from babeltrace2"
        _, out, _ = run(kymo, corpus, "print", "--format", "details", "--no-trace-name", "--no-stream-name", trace)
        if hashlib.sha256(out).hexdigest() != row["sha256_details_21"]:
            yield "details", "differs from babeltrace2's sink.text.details"


def actf_checks(kymo, folder):
    """As `checks`, for a CTF 2 case of actf; one whose name ends in `_nok` is wrong somewhere."""
    status, out, err = run(kymo, folder, "print", "--names", "all", "--clock-cycles", "--no-delta", ".")
    if status is None or status < 0:
        yield "robust", "it hangs" if status is None else f"it dies of signal {-status}"
        return
    wrong = folder.name.endswith("_nok")
    if status != wrong or (wrong and not err):
        yield "refused" if wrong else "read", f"exit status {status}: {err.decode(errors='replace').strip()[:200]}"
    references = (folder / "refs" / "out.ref").read_text().splitlines()
    try:
        difference = actf.difference(references, out.decode(errors="replace").splitlines())
    except (ValueError, AttributeError) as problem:
        difference = f"its text cannot be compared: {problem}"
    if difference:
        yield "fields", difference


def cases(kymo, corpus):
    """Name and failed checks of every trace."""
    with open(corpus / "ctf" / "expected.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield row["trace"], list(checks(kymo, corpus / "ctf", row))
    for references in sorted((corpus / "ctf2-actf").glob("*/refs/out.ref")):
        folder = references.parent.parent
        yield f"ctf2-actf/{folder.name}", list(actf_checks(kymo, folder))


def main():
    kymo = str(pathlib.Path(sys.argv[1]).resolve())
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not (corpus / "ctf" / "expected.tsv").exists():
        print(f"CORPUS ABSENT: {corpus} is not there; the conformance suite was not run")
        return 0
    with open(ROOT / "tests" / "conformance" / "deviations.tsv", newline="") as file:
        known = {(row["trace"], row["check"]): row["reason"] for row in csv.DictReader(file, delimiter="\t")}
    found, passed, total = {}, 0, 0
    for trace, failures in cases(kymo, corpus):
        total += 1
        passed += not failures
        found.update({(trace, check): what for check, what in failures})
    for key in sorted(found.keys() - known.keys()):
        print(f"NOT LISTED  {key[0]}  {key[1]}: {found[key]}")
    for key in sorted(known.keys() - found.keys()):
        print(f"NO LONGER   {key[0]}  {key[1]}: remove it from tests/conformance/deviations.tsv")
    for (trace, check), reason in sorted(known.items()):
        print(f"DEVIATES    {trace}  {check}: {reason}")
    defects = sum(reason.startswith("open:") for reason in known.values())
    print(f"conformance: {passed} of {total} traces as the references, "
          f"{len(known)} deviations listed, {defects} of them open")
    return 1 if found.keys() != known.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
