#!/usr/bin/env python3
"""Measures what recording costs, ours and LTTng-UST's, on the same machine in the same run.

    record.py --kymo KYMO --libkymo FOLDER [--rounds 5] [--only WORDS]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/record-MACHINE-DATE.md: a table of what is required beside what was measured, and below it every figure with
its lowest and highest value.

The program that has the events (record/hits.c, built for each tracer) is pinned to the first core and has real-time
priority there; recorders are on the others. It records in bursts, with pauses in which the recorder drains, so that
nothing is lost but where a job says so; both write to the same disk.

    off             an event that no session wants
    one, three      an event of a u32; of two integers and a text of 16 characters
    no, yes         filters of 1, 10 and 50 predicates, false at the last, and true; each looks at other bits of the field, so that none can be
                    folded with another
    overwrite       one thread, and two, nobody draining
    pace            events per second to the disk without any loss, for some seconds
    drain           what the recorder works per million events
    first           the first event of a program, and of another thread
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
BUILT = run.STORE / "record"
LENGTHS = (1, 10, 50)
CORES = sorted(os.sched_getaffinity(0))
BURSTS = ["20", "200000", "60"]
PACES = (5, 10, 15, 20, 25, 30, 40, 50, 60)
PACE_SECONDS = 3


def pinned(*words):
    return ["taskset", "--cpu-list", str(CORES[0]), "chrt", "--fifo", "10", *map(str, words)]


def predicates(length, last):
    """`length` of them, all true but for the last one, which is as it is said: values are below 65536."""
    first = [f"(value & {(1 << 31) - 1 - (index << 16)}) != {(1 << 30) + index}" for index in range(length - 1)]
    return " && ".join([*first, f"(value & {1 << 30}) {'!=' if last == 'no' else '=='} 0"])


def build(libkymo):
    BUILT.mkdir(parents=True, exist_ok=True)
    source = HERE / "record" / "hits.c"
    common = ["gcc", "-O2", source]
    programs = {}
    ours = [*common, "-I", run.ROOT / "include", "-o", BUILT / "hits-kymo", f"-L{libkymo}", "-lkymo", "-lpthread",
            f"-Wl,-rpath,{BUILT}"]
    shutil.copy(pathlib.Path(libkymo) / "libkymo.so", BUILT / "libkymo.so.0")
    subprocess.run(ours, check=True)
    programs["kymo"] = BUILT / "hits-kymo"
    theirs = [*common, "-DLTTNG", "-I", HERE / "record", "-o", BUILT / "hits-lttng", "-llttng-ust", "-ldl", "-lpthread"]
    if shutil.which("lttng") and not subprocess.run(theirs, capture_output=True).returncode:
        programs["lttng"] = BUILT / "hits-lttng"
    else:
        print("NOT MEASURED: LTTng-UST is not installed (lttng-tools, liblttng-ust-dev)", flush=True)
    return programs


def cpu_seconds(name):
    """What all processes of that name have worked."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")
            if words[0].partition("(")[2] == name:
                ticks += sum(map(int, words[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Lttng:
    """Sessions of LTTng-UST, with large buffers."""

    name = "lttng"
    recorder = "lttng-consumerd"

    def __init__(self, program):
        self.program = program
        self.daemon = None

    def __enter__(self):
        command = ["taskset", "--cpu-list", ",".join(map(str, CORES[1:] or CORES)), "lttng-sessiond", "--no-kernel"]
        self.daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if not subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True).returncode:
                return self
            time.sleep(0.05)
        raise RuntimeError("the session daemon does not answer")

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait()

    @staticmethod
    def say(*words):
        done = subprocess.run(["lttng", "--no-sessiond", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"lttng {words[0]}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def run(self, words, folder, *, event="kymo_record:*", expression=None, overwrite=False, native=True):
        """What the program prints, how many events were lost, and what the recorder worked."""
        session = f"kymo-bench-{os.getpid()}"
        self.say("create", session, *(["--snapshot"] if overwrite else ["--output", folder]))
        try:
            size = ["--overwrite", "--subbuf-size=512k", "--num-subbuf=4"] if overwrite else ["--subbuf-size=16M", "--num-subbuf=8"]
            self.say("enable-channel", "--session", session, "--userspace", *size, "channel")
            wanted = ["--filter", expression] if expression else []
            self.say("enable-event", "--session", session, "--channel", "channel", "--userspace", event, *wanted)
            self.say("start", session)
            before = cpu_seconds(self.recorder)
            environment = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
            done = subprocess.run(pinned(self.program, *words), capture_output=True, text=True, check=True, env=environment)
            if not overwrite:
                self.say("stop", session)
            worked = cpu_seconds(self.recorder) - before
            lost = sum(map(int, re.findall(r"Discarded events: (\d+)", self.say("list", session))))
        finally:
            self.say("destroy", session)
        return done.stdout, lost, worked


class Kymo:
    """Sessions of ours."""

    name = "kymo"

    def __init__(self, program, kymo):
        self.program = program
        self.kymo = kymo

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, words, folder, *, event="kymo_record:*", expression=None, overwrite=False, native=True):
        options = ["--output", folder, "--event", event, "--json", "--pool-size", "64MiB"]
        options += ["--filter", expression] if expression else []
        options += ["--mode", "overwrite"] if overwrite else []
        environment = {**os.environ, "KYMO_NATIVE": "on" if native else "off", "HITS_WAIT_MS": "100"}
        said = tempfile.TemporaryFile("w+")
        with said:
            command = [self.kymo, "record", *map(str, options), "--", "sh", "-c", '"$@" >&3', "sh", *pinned(self.program, *words)]
            told = subprocess.run(["sh", "-c", 'exec 3>&1; "$@" 3>&3', "sh", *map(str, command)], text=True, capture_output=True, env=environment)
        raise NotImplementedError(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", required=True)
    parser.add_argument("--libkymo", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    programs = build(arguments.libkymo)
    with tempfile.TemporaryDirectory() as folder, Lttng(programs["lttng"]) as lttng:
        for words in (["one", 1, *BURSTS], ["three", 1, *BURSTS]):
            print(lttng.run(words, pathlib.Path(folder) / "t"))
        print(lttng.run(["one", 1, *BURSTS], pathlib.Path(folder) / "t", expression=predicates(10, "no")))


if __name__ == "__main__":
    sys.exit(main())
