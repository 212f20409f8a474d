#!/usr/bin/env python3
"""Measures what LTTng-UST's filter interpreter costs a traced program, in place.

    lttng.py [--check]

Prints `name<TAB>nanoseconds per hit`, one line for each scenario; every scenario is a session of its own and one process
(hits.c) that is pinned to a core, away from the daemons. A session daemon is started when none runs, and stopped again.

    lttng.disabled      the library is loaded and registered, no session wants the event
    lttng.one.N         an event of one integer; a chain of N predicates on it, false at the last
    lttng.fifty.N       an event of fifty integers; N predicates, each on a field of its own, false at the last

With --check nothing is measured: it proves that the filters are looked at, by recording. A chain whose last predicate is
true must record every hit, the ones that are measured none: LTTng says nothing of a filter that it cannot link.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ.get("KYMO_BENCH", pathlib.Path.home() / ".cache" / "kymograph" / "bench")) / "filter"
LENGTHS = (1, 10, 50)
# Larger than any value that hits.c gives to a field.
IMPOSSIBLE = 2_000_000_000
CORES = sorted(os.sched_getaffinity(0))
CHECKED_HITS = 1000
BURSTS = 17


def chain(event, length, last):
    """`length` predicates, all true but for the last one, which compares with IMPOSSIBLE as `last` says."""
    names = ["a" if event == "one" else f"f{index:02}" for index in range(length)]
    first = [f"{name} != {1_000_000_003 + 7 * index}" for index, name in enumerate(names[:-1])]
    return " && ".join([*first, f"{names[-1]} {last} {IMPOSSIBLE}"])


def build():
    """The measured program, compiled when it is older than its sources."""
    program, sources = BUILT / "hits", [HERE / "hits.c", HERE / "provider.h", HERE / "bursts.h"]
    if not program.exists() or program.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        BUILT.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-I", HERE, sources[0], "-o", program, "-llttng-ust", "-ldl"], check=True)
    return program


def lttng(*words):
    """Runs one command of the lttng client; what it says is shown only when it goes wrong."""
    done = subprocess.run(["lttng", "--no-sessiond", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"lttng {words[0]} ends with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def daemon_answers():
    return subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True).returncode == 0


@contextlib.contextmanager
def session_daemon():
    """A session daemon that answers: the one that runs, else one of ours, on the last core."""
    if daemon_answers():
        yield
        return
    command = ["taskset", "--cpu-list", str(CORES[-1]), "lttng-sessiond", "--no-kernel"]
    daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if daemon_answers():
                break
            time.sleep(0.05)
        else:
            raise RuntimeError("the session daemon does not answer")
        yield
    finally:
        daemon.terminate()
        daemon.wait()


@contextlib.contextmanager
def session(event, expression, output):
    """A session that wants the event where the expression is true."""
    name = f"kymo-bench-{os.getpid()}"
    lttng("create", name, "--output", str(output))
    try:
        lttng("enable-event", "--session", name, "--userspace", f"kymo_bench:{event}", "--filter", expression)
        lttng("start", name)
        yield
    finally:
        lttng("destroy", name)


def hit(program, event, count=200_000):
    """Nanoseconds per hit in one process, which waits until the daemon has told it what is enabled."""
    pinned = ["taskset", "--cpu-list", str(CORES[0]), str(program), event, str(count)]
    said = subprocess.run(pinned, capture_output=True, text=True, check=True,
                          env={**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "-1"})
    return float(said.stdout)


def measure(program, folder):
    print(f"lttng.disabled\t{hit(program, 'one')}", flush=True)
    for event in ("one", "fifty"):
        for length in LENGTHS:
            with session(event, chain(event, length, "=="), folder / f"{event}{length}"):
                print(f"lttng.{event}.{length}\t{hit(program, event)}", flush=True)


def recorded(folder):
    """How many events a trace has; one without a stream has none."""
    if not any(path.stat().st_size for path in folder.rglob("*_[0-9]*") if path.is_file()):
        return 0
    said = subprocess.run(["babeltrace2", str(folder), "--component", "sink.utils.counter", "--params", "step=+0"],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"([\d,]+) Event messages", said.stdout)[1].replace(",", ""))


def check(program, folder):
    wrong = 0
    for event in ("one", "fifty"):
        for length in LENGTHS:
            for last, expected in (("!=", CHECKED_HITS * BURSTS), ("==", 0)):
                output = folder / f"{event}{length}{expected}"
                with session(event, chain(event, length, last), output):
                    hit(program, event, CHECKED_HITS)
                found = recorded(output)
                print(f"{event}, {length} predicates, last {last}: {found} events recorded, {expected} expected")
                wrong += found != expected
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="prove by recording that the filters are looked at")
    arguments = parser.parse_args()
    absent = [tool for tool in ("lttng", "lttng-sessiond", "gcc", "taskset") if not shutil.which(tool)]
    if absent:
        sys.exit(f"NOT MEASURED: LTTng-UST: {', '.join(absent)} not installed")
    try:
        program = build()
        with tempfile.TemporaryDirectory() as folder, session_daemon():
            if arguments.check:
                return check(program, pathlib.Path(folder))
            measure(program, pathlib.Path(folder))
    except (RuntimeError, subprocess.CalledProcessError) as problem:
        sys.exit(f"NOT MEASURED: LTTng-UST: {problem}")


if __name__ == "__main__":
    sys.exit(main())
