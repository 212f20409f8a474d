#!/usr/bin/env python3
"""Damages copies of real traces and proves that kymo neither crashes, hangs nor eats memory on them.

    mutants.py KYMO [--count N] [--seed S] [--keep FOLDER] [--only NAME]

Each mutant is a copy of a small trace with one kind of damage, chosen by a seeded generator, so that a number
names a mutant for ever:

    truncate   a file ends early          half       the tail of a file is zero, as after a power cut
    flip       1 to 8 bits are flipped    splice     bytes of one place stand at another
    grow       bytes follow the end       number     a 1, 2, 4 or 8 byte field becomes an extreme
    live       a stream shrinks or grows while kymo reads it

Every mutant is read with the compiler and with the evaluator. Exit status 0 and 1 are fine (2 would say that
the command line was wrong), a signal, a panic, more than TIMEOUT_S seconds or more than MEMORY_BYTES are not. What fails
is named with its seed; `--keep` leaves the trace there.

The traces are those of the corpus ($KYMO_CORPUS, else ../shared/corpus), or the demo alone where that is absent.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT_S = 20
# Address space, not resident memory: code, thread stacks and the allocator's reserves are in it.
MEMORY_BYTES = 1 << 30
PANICKED = 101
TRACES = [
    "babeltrace/succeed/2packets",
    "babeltrace/succeed/meta-variant-no-underscore",
    "babeltrace/succeed/sequence",
    "babeltrace/succeed/smalltrace",
    "babeltrace/succeed/lttng-tracefile-rotation",
    "babeltrace/succeed/trace-with-index",
    "babeltrace/intersection/3eventsintersect",
    "babeltrace/packet-seq-num/2-lost-before-last",
    "tracecompass/CTF2-vl-ints",
    "tracecompass/CTF2-7.0-smalltrace",
    "tracecompass/perf-taskset2",
    "tracecompass/context-switches/context-switches-ust",
]
EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def bases():
    """The traces to damage: folders whose parent or self has a metadata file."""
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus")) / "ctf"
    demo = ROOT / "examples" / "traces" / "demo"
    if not corpus.exists():
        print(f"CORPUS ABSENT: {corpus} is not there; only copies of the demo trace are damaged")
        return [demo]
    return [demo] + [corpus / name for name in TRACES if (corpus / name).exists()]


def truncate(data, chance):
    return data[: chance.randrange(len(data))]


def half(data, chance):
    kept = chance.randrange(len(data))
    return data[:kept] + bytes(len(data) - kept)


def flip(data, chance):
    data = bytearray(data)
    # The front of a file holds the headers, where damage goes furthest.
    reach = len(data) if chance.random() < 0.5 else min(len(data), 256)
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(reach)] ^= 1 << chance.randrange(8)
    return bytes(data)


def grow(data, chance):
    extra = chance.randint(1, 8192)
    return data + (chance.randbytes(extra) if chance.random() < 0.5 else bytes(extra))


def splice(data, chance):
    size = chance.randint(1, min(4096, len(data)))
    source, target = (chance.randrange(len(data) - size + 1) for _ in range(2))
    return data[:target] + data[source : source + size] + data[target + size :]


def number(data, chance):
    size = chance.choice([1, 2, 4, 8])
    value = (chance.choice(EXTREMES) & ((1 << (8 * size)) - 1)).to_bytes(size, chance.choice(["little", "big"]))
    at = chance.randrange(min(len(data), chance.choice([128, 4096, 1 << 30])))
    return (data[:at] + value + data[at + size :])[: max(len(data), 1)]


KINDS = [truncate, half, flip, flip, grow, splice, number, number]


def files_of(folder):
    """Files worth damaging, in an order that does not depend on the file system."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 0)


def copy(base, folder):
    """A copy that may be changed, whatever the modes of the original."""
    shutil.copytree(base, folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def mutate(folder, chance):
    """Damages one file of the copy; returns what was done and to which file."""
    path = chance.choice(files_of(folder))
    kind = chance.choice(KINDS)
    path.write_bytes(kind(path.read_bytes(), chance))
    return f"{kind.__name__} of {path.relative_to(folder)}"


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def verdict(kymo, folder, words, environment, cache):
    """What is wrong with a run; None if nothing is."""
    environment = dict(os.environ, TZ="UTC", LC_ALL="C", XDG_CACHE_HOME=cache, **environment)
    command = [kymo, *words, str(folder)]
    try:
        done = subprocess.run(command, env=environment, preexec_fn=limit, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"{' '.join(words)} takes more than {TIMEOUT_S} s"
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        return f"{' '.join(words)} dies of signal {-done.returncode}: {said[-300:]}"
    if done.returncode == PANICKED or "panicked at" in said:
        return f"{' '.join(words)} panics: {said[-300:]}"
    if done.returncode not in (0, 1):
        return f"{' '.join(words)} exits with {done.returncode}: {said[-300:]}"
    # What is wrong is the very answer of `check`, on standard output.
    if done.returncode == 1 and not said and words[0] != "check":
        return f"{' '.join(words)} exits with 1 and does not say why"
    return None


def stir(folder, chance, done):
    """Makes streams of a trace shrink and grow until told to stop."""
    streams = [path for path in files_of(folder) if path.name != "metadata"]
    while streams and not done.is_set():
        path = chance.choice(streams)
        whole = path.stat().st_size
        try:
            os.truncate(path, chance.randrange(whole + 1) if chance.random() < 0.6 else whole + chance.randint(1, 65536))
        except OSError:
            return
        done.wait(0.0005)


def commands(kymo):
    """The runs that every mutant gets: those that this kymo knows."""
    said = subprocess.run([kymo, "--help"], capture_output=True, text=True).stdout
    yield ["print", "--format", "none"], {"KYMO_JIT": "always"}
    yield ["print"], {"KYMO_JIT": "off"}
    for name in ("info", "check"):
        if f"\n  {name} " in said:
            yield [name], {}


def one(kymo, runs, base, seed, keep):
    """Problems of the mutant that a seed names."""
    chance = random.Random(f"{base.name}/{seed}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch, base.name)
        copy(base, folder)
        live = chance.random() < 0.1
        done = threading.Event()
        if live:
            what = "live"
            stirring = threading.Thread(target=stir, args=(folder, chance, done))
            stirring.start()
        else:
            what = mutate(folder, chance)
        problems = [verdict(kymo, folder, words, environment, scratch) for words, environment in runs]
        if live:
            done.set()
            stirring.join()
        problems = [f"{base.name} seed {seed} ({what}): {problem}" for problem in problems if problem]
        if problems and keep:
            shutil.copytree(folder, pathlib.Path(keep, f"{base.name}-{seed}"), dirs_exist_ok=True)
        return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kymo")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--keep", help="a folder for the mutants that fail")
    parser.add_argument("--only", default="", help="traces whose name holds this")
    arguments = parser.parse_args()
    kymo = str(pathlib.Path(arguments.kymo).resolve())
    traces = [base for base in bases() if arguments.only in base.name]
    runs = list(commands(kymo))
    start = time.monotonic()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(one, kymo, runs, traces[seed % len(traces)], seed, arguments.keep) for seed in seeds]
        failed = 0
        for job in jobs:
            problems = job.result()
            failed += bool(problems)
            for problem in problems:
                print(problem, flush=True)
    took = time.monotonic() - start
    print(f"mutants: {arguments.count - failed} of {arguments.count} leave kymo sound, {len(traces)} traces, "
          f"{len(runs)} runs each, {took:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
