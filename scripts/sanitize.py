#!/usr/bin/env python3
"""Runs kymo under valgrind, or a kymo built with AddressSanitizer, over everything that may lead it astray.

    sanitize.py KYMO [--tool valgrind|none] [--part I/N] [--copies N]

Traces: those of the corpus that no reader reads to the end, actf's `_nok` cases, and some that are read, so that
machine code runs too; beside them damaged copies as `mutants.py` makes them. Each is printed (text with the evaluator
and with machine code), read into columns with machine code, counted, described and checked. What the tool finds, and a
run that dies of it, is a finding; an exit status of kymo's own is not. `--tool none` is for a kymo that watches itself.
"""

import argparse
import concurrent.futures
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import random
import tempfile

import mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOUND = 99
TIMEOUT_S = 300
# Larger traces only repeat themselves, 30 times as slow as without valgrind.
BYTES_MAX = 1 << 20
RUNS = [
    (["print"], "always"),
    (["print"], "off"),
    (["print", "--format", "none"], "always"),
    (["count"], "always"),
    (["info"], "off"),
    (["check"], "always"),
]
VALGRIND = ["valgrind", "--quiet", f"--error-exitcode={FOUND}", "--smc-check=all-non-file", "--exit-on-first-error=no",
            f"--suppressions={ROOT / 'scripts' / 'valgrind.supp'}"]


def traces(corpus):
    """Folders, each with whether it is one that is expected to be bad."""
    with open(corpus / "ctf" / "expected.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield corpus / "ctf" / row["trace"], row["exit_21"] != "0"
    for folder in sorted((corpus / "ctf2-actf").iterdir()):
        yield folder, folder.name.endswith("_nok")


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def chosen(corpus):
    """Every bad trace, and every eighth of the good ones."""
    good = 0
    for folder, bad in traces(corpus):
        if not folder.exists() or bytes_of(folder) > BYTES_MAX:
            continue
        good += not bad
        if bad or good % 8 == 1:
            yield folder


def finding(kymo, tool, folder, words, jit, cache):
    """What the tool found in a run; None if nothing."""
    environment = dict(os.environ, TZ="UTC", LC_ALL="C", KYMO_JIT=jit, XDG_CACHE_HOME=cache)
    environment["ASAN_OPTIONS"] = f"exitcode={FOUND}:detect_leaks=0"
    command = [*(VALGRIND if tool == "valgrind" else []), kymo, *words, "--threads", "2", str(folder)]
    if words[0] == "check":
        command = [part for part in command if part not in ("--threads", "2")]
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"takes more than {TIMEOUT_S} s"
    said = done.stderr.decode(errors="replace")
    if done.returncode in (0, 1) and "ERROR: AddressSanitizer" not in said:
        return None
    return f"exit status {done.returncode}: {said[-3000:]}"


def one(kymo, tool, folder, shown):
    problems = []
    with tempfile.TemporaryDirectory() as cache:
        for words, jit in RUNS:
            found = finding(kymo, tool, folder, words, jit, cache)
            if found:
                problems.append(f"{shown}: KYMO_JIT={jit} {' '.join(words)}: {found}")
    return problems


def damaged(kymo, tool, base, seed):
    chance = random.Random(f"{base.name}/{seed}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch, base.name)
        mutants.copy(base, folder)
        what = mutants.mutate(folder, chance)
        return one(kymo, tool, folder, f"{base.name} seed {seed} ({what})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kymo")
    parser.add_argument("--tool", choices=["valgrind", "none"], default="valgrind")
    parser.add_argument("--part", default="0/1", help="which part of how many (default 0/1)")
    parser.add_argument("--copies", type=int, default=50, help="damaged copies beside the traces (default 50)")
    arguments = parser.parse_args()
    kymo = str(pathlib.Path(arguments.kymo).resolve())
    if arguments.tool == "valgrind" and not shutil.which("valgrind"):
        print("VALGRIND ABSENT: nothing was run; install valgrind")
        return 0
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not corpus.exists():
        print(f"CORPUS ABSENT: {corpus} is not there; only copies of the demo trace are read")
    part, parts = (int(number) for number in arguments.part.split("/"))
    folders = [folder for folder in chosen(corpus)] if corpus.exists() else []
    folders = [folder for index, folder in enumerate(folders) if index % parts == part]
    bases = [base for base in mutants.bases() if bytes_of(base) <= BYTES_MAX]
    seeds = [seed for seed in range(arguments.copies) if seed % parts == part]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(one, kymo, arguments.tool, folder, str(folder)) for folder in folders]
        jobs += [pool.submit(damaged, kymo, arguments.tool, bases[seed % len(bases)], seed) for seed in seeds]
        problems = [problem for job in jobs for problem in job.result() if not print(problem, flush=True)]
    print(f"sanitize: {len(folders)} traces and {len(seeds)} damaged copies, {len(RUNS)} runs each, {arguments.tool}: "
          f"{len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
