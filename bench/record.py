#!/usr/bin/env python3
"""Measures what recording costs, ours and LTTng-UST's, on the same machine in the same run.

    record.py --kymo KYMO --libkymo FOLDER [--rounds 5] [--only WORDS]

Every round does each job once, in turn; the result is the median over the rounds. It goes to
bench/results/record-MACHINE-DATE.md: a table of what is required beside what was measured, and below it every figure with
its lowest and highest value.

The program that has the events (record/hits.c, built for each tracer) is pinned to the first core and has real-time
priority there; recorders are on the others. It records in bursts, with pauses in which the recorder drains, so that
nothing is lost but where a job says so; both write to the same disk. Programs' memory is in /dev/shm.

    off             an event that no session wants
    one, three      an event of a u32; of two integers and a text of 16 characters
    no, yes         filters of 1, 10 and 50 predicates, false at the last, and true; each looks at other bits of the field, so that none can be
                    folded with another
    overwrite       one thread, and two, nobody draining
    pace            events per second to the disk without any loss, for some seconds, beside what a plain write of the same bytes takes
    drain           what the recorder works per million events
    first           the first event of a program, and of another thread
    tails           an event, an event that turns to another sub-buffer, and the first event of a thread: half, 99 %, 99.9 % and all of
                    them are as fast as that
    short           how many times as long a thousand programs with a hundred events each take, one after the other, while a session runs
    start           how much longer a program lives, from its start to its end, than one without a tracer; the loader's work included
    memory          resident memory of a program with one event, beyond that of one without a tracer; of each of 64 quiet threads; and of a
                    program at most, whose one thread has had 8 million events that nobody drained
    trigger         what an event of a u32 costs more than without a trigger: with one armed at another event; with one at this event that
                    compares its field with a value, asks a predicate of it, and neither is true, or that counts its events over all
                    threads; and the same of an event that is off. Those at this event are against an event without a trigger in the same run: the recorder works while both happen
    trigger run     those at this event, against a run without triggers: what the recorder does with the events is in it, where the
                    program and the recorder share a core
    rule            what the events of a rule cost that it lets go: a begin and an end, both not recorded, by their field of which there are
                    many values, by thread, and with the running 99th percentile; one event in many; and few in a time. `two events`: the
                    begin and the end, recorded
    context         an event of a u32 with each of the things that events can carry
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
    # Stacks are found by frames; what is measured has no calls in it.
    common = ["gcc", "-O2", "-fno-omit-frame-pointer", source]
    programs = {"plain": BUILT / "hits-plain"}
    subprocess.run([*common, "-DPLAIN", "-o", programs["plain"], "-lpthread"], check=True)
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

    def run(self, words, folder, *, event="kymo_record:*", expression=None, overwrite=False, native=True, contexts=(), pool=None):
        """What the program prints, how many events were lost, and what the recorder worked."""
        session = f"kymo-bench-{os.getpid()}"
        self.say("create", session, *(["--snapshot"] if overwrite else ["--output", folder]))
        try:
            size = ["--overwrite", "--subbuf-size=512k", "--num-subbuf=4"] if overwrite else ["--subbuf-size=16M", "--num-subbuf=8"]
            self.say("enable-channel", "--session", session, "--userspace", *size, "channel")
            wanted = ["--filter", expression] if expression else []
            self.say("enable-event", "--session", session, "--channel", "channel", "--userspace", event, *wanted)
            for context in contexts:
                self.say("add-context", "--session", session, "--userspace", "--type", context)
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
        # What the system calls it.
        self.recorder = pathlib.Path(kymo).name[:15]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, words, folder, *, event="kymo_record:*", expression=None, overwrite=False, native=True, contexts=None, pool="64MiB", triggers=(), rules=()):
        options = ["--output", folder, "--event", event, "--json", *(["--pool-size", pool] if pool else [])]
        options += ["--context", ",".join(contexts) or "none"] if contexts is not None else []
        options += ["--filter", expression] if expression else []
        options += ["--mode", "overwrite"] if overwrite else []
        options += [word for trigger in triggers for word in ("--trigger", trigger)]
        options += [word for rule in rules for word in ("--only", rule)]
        # Filters come to a program some milliseconds after it has begun.
        environment = {**os.environ, "KYMO_NATIVE": "on" if native else "off", "HITS_WAIT_MS": "200"}
        before = cpu_seconds(self.recorder)
        command = [str(self.kymo), "record", *map(str, options), "--", *pinned(self.program, *words)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        worked = cpu_seconds(self.recorder) - before
        lines = (done.stdout + done.stderr).splitlines()
        summary = json.loads(next(line for line in lines if line.startswith("{")))
        printed = next(line for line in lines if "\t" in line and not line.startswith("{"))
        shutil.rmtree(folder, ignore_errors=True)
        return printed, sum(summary["lost"].values()), worked


def per_event(said):
    """Nanoseconds and ticks."""
    return [float(word) for word in said.split()]


def jobs(tracers, folder):
    """(name, what measures it): each call is one sample, as figures by name."""
    place = folder / "trace"

    def cost(tracer, words, **options):
        def once():
            printed, lost, _ = tracer.run(words, place, **options)
            shutil.rmtree(place, ignore_errors=True)
            nanos, ticks = per_event(printed)
            return {"": nanos, " ticks": ticks, " lost": lost}
        return once

    for tracer in tracers:
        one, three = ["one", 1, *BURSTS], ["three", 1, *BURSTS]
        yield f"{tracer.name} off", cost(tracer, one, event="kymo_record:nothing")
        yield f"{tracer.name} one", cost(tracer, one)
        yield f"{tracer.name} three", cost(tracer, three)
        for answer in ("no", "yes"):
            for length in LENGTHS:
                expression = predicates(length, answer)
                yield f"{tracer.name} {answer} {length}", cost(tracer, one, expression=expression)
                if tracer.name == "kymo":
                    yield f"kymo interpreted {answer} {length}", cost(tracer, one, expression=expression, native=False)
        yield f"{tracer.name} overwrite 1", cost(tracer, ["one", 1, "20", "2000000", "0"], overwrite=True)


# Triggers that never fire: the values of events are below 2^16.
TRIGGERS = {
    "elsewhere": "stop on kymo_record:three when a == 1000000",
    "exact": "stop on kymo_record:one when value == 1000000",
    "predicate": "stop on kymo_record:one when value > 1000000 && value < 2000000",
    "count": "stop on kymo_record:one after 4000000000 repeat",
    "off": "stop on kymo_record:three when a == 1000000",
}
AT_ITS_EVENT = ("exact", "predicate", "count")


def triggers(tracers, folder):
    """Nanoseconds that an event costs more than in a session without a trigger, measured one after the other."""
    for tracer in (tracer for tracer in tracers if tracer.name == "kymo"):
        for name, trigger in TRIGGERS.items():
            event = "kymo_record:nothing" if name == "off" else "kymo_record:*"
            # The program learns of triggers some milliseconds after it has begun.
            def once(tracer=tracer, trigger=trigger, event=event):
                figures = []
                for some in ((), (trigger,)):
                    printed, _, _ = tracer.run(["one", 1, *BURSTS], folder / "trace", event=event, triggers=some)
                    figures.append(per_event(printed)[0])
                return {"": figures[1] - figures[0]}
            def turns(tracer=tracer, trigger=trigger):
                printed, _, _ = tracer.run(["turns", 1, "40", *BURSTS[1:]], folder / "trace", triggers=(trigger,))
                return {"": per_event(printed)[0]}
            if name in AT_ITS_EVENT:
                yield f"{tracer.name} trigger {name}", turns
                yield f"{tracer.name} trigger run {name}", once
            else:
                yield f"{tracer.name} trigger {name}", once


# Rules that keep no event, or few.
RULES = {
    "pair": ("pairs", "kymo_record:one over 1min since kymo_record:other by value"),
    "pair of a thread": ("pairs", "kymo_record:one over 1min since kymo_record:other"),
    "pair p99": ("pairs", "kymo_record:one over p99 since kymo_record:other by value"),
    "every": ("one", "kymo_record:one every 1000000"),
    "at most": ("one", "kymo_record:one at most 10 in 1s"),
}


def rules(tracers, folder):
    """Nanoseconds of events that a rule lets go."""
    for tracer in (tracer for tracer in tracers if tracer.name == "kymo"):
        for name, (words, rule) in RULES.items():
            def once(tracer=tracer, words=words, rule=rule):
                printed, _, _ = tracer.run([words, 1, *BURSTS], folder / "trace", event="kymo_record:one", rules=(rule,))
                return {"": per_event(printed)[0]}
            yield f"{tracer.name} rule {name}", once

        def recorded(tracer=tracer):
            printed, _, _ = tracer.run(["pairs", 1, *BURSTS], folder / "trace")
            return {"": per_event(printed)[0]}
        yield f"{tracer.name} rule two events", recorded


def overwriting_threads(tracers, folder):
    """Two threads are not pinned to one core."""
    global CORES
    kept = CORES
    for tracer in tracers:
        def once(tracer=tracer):
            global CORES
            try:
                CORES = [f"{kept[0]},{kept[-1]}", kept[-1]]
                printed, lost, _ = tracer.run(["one", 2, "20", "2000000", "0"], folder / "trace", overwrite=True)
            finally:
                CORES = kept
            shutil.rmtree(folder / "trace", ignore_errors=True)
            return {"": per_event(printed)[0]}
        yield f"{tracer.name} overwrite 2", once


def plain_write(folder):
    """What the disk takes of plain bytes, in MB per second, until all are there."""
    megabyte, count = bytes(1 << 20), 512
    os.sync()
    begin = time.monotonic()
    with open(folder / "plain", "wb") as file:
        for _ in range(count):
            file.write(megabyte)
        file.flush()
        os.fsync(file.fileno())
    taken = time.monotonic() - begin
    os.unlink(folder / "plain")
    return count * (1 << 20) / 1e6 / taken


def paces(tracers, folder):
    """The highest pace that loses nothing; and what the recorder works at it."""
    for tracer in tracers:
        def once(tracer=tracer):
            best = {"": 0.0, " drain": 0.0}
            for millions in PACES:
                # What was written before is on the disk: only what is written now has to get there.
                os.sync()
                printed, lost, worked = tracer.run(["pace", 1, millions * 1_000_000, PACE_SECONDS], folder / "trace")
                shutil.rmtree(folder / "trace", ignore_errors=True)
                events, seconds = (float(word) for word in printed.split())
                if lost or events / seconds < 0.97 * millions * 1e6:
                    break
                best = {"": events / seconds / 1e6, " drain": worked * 1e3 / (events / 1e6)}
            return {**best, " plain MB per second": plain_write(folder)}
        yield f"{tracer.name} pace", once


def firsts(tracers, folder):
    for tracer in tracers:
        def once(tracer=tracer):
            printed, _, _ = tracer.run(["first"], folder / "trace")
            shutil.rmtree(folder / "trace", ignore_errors=True)
            program, thread = (float(word) for word in printed.split())
            return {" program": program, " thread": thread}
        yield f"{tracer.name} first", once


# Events of 10 bytes in a sub-buffer of 32 KiB.
EVENTS_OF_SUB_BUFFER = 3276
TAILS = [f"{what} {part}" for what in ("event", "turn", "thread") for part in ("p50", "p99", "p99.9", "max")]


def tails(tracers, folder):
    for tracer in tracers:
        def once(tracer=tracer):
            each = EVENTS_OF_SUB_BUFFER if tracer.name == "kymo" else 0
            printed, lost, _ = tracer.run(["tails", 2_000_000, 3000, each], folder / "trace", contexts=[])
            shutil.rmtree(folder / "trace", ignore_errors=True)
            figures = dict(zip(TAILS, per_event(printed)))
            return {f" {name}": value for name, value in figures.items() if value} | {" lost": lost}
        yield f"{tracer.name} tails", once


SHORT = 1000


def shorts(tracers, folder):
    for tracer in tracers:
        def loop(tracer=tracer):
            words = f"i=0; while [ $i -lt {SHORT} ]; do {tracer.program} one 1 1 50 0; i=$((i+1)); done"
            environment = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
            begin = time.monotonic()
            subprocess.run(["sh", "-c", words], check=True, stdout=subprocess.DEVNULL, env=environment)
            return time.monotonic() - begin

        def once(tracer=tracer, loop=loop):
            alone = loop()
            place = folder / "short"
            if tracer.name == "kymo":
                options = ["--output", place, "--event", "kymo_record:*", "--name", "short"]
                subprocess.run([tracer.kymo, "record", "--detach", *options], check=True, stdout=subprocess.DEVNULL)
                recorded = loop()
                done = subprocess.run([tracer.kymo, "stop", "short", "--json"], check=True, capture_output=True, text=True)
                summary = json.loads(done.stdout)[0]
                kept = summary["events"]
            else:
                session = f"kymo-short-{os.getpid()}"
                tracer.say("create", session, "--output", place)
                tracer.say("enable-event", "--session", session, "--userspace", "kymo_record:*")
                tracer.say("start", session)
                recorded = loop()
                tracer.say("destroy", session)
                done = subprocess.run(["babeltrace2", place], capture_output=True, text=True)
                kept = done.stdout.count("\n")
            shutil.rmtree(place, ignore_errors=True)
            # The first burst is not measured, and recorded all the same.
            return {"": recorded / alone, " ms alone": alone * 1000 / SHORT, " kept of 100": kept / SHORT}
        yield f"{tracer.name} short", once


def starts(tracers, folder, plain):
    for tracer in tracers:
        def once(tracer=tracer):
            printed, _, _ = tracer.run(["start", 100, plain], folder / "trace")
            shutil.rmtree(folder / "trace", ignore_errors=True)
            longer, alone = (float(word) for word in printed.split())
            return {"": longer, " of a plain program": alone}
        yield f"{tracer.name} start", once


def memories(tracers, folder, plain):
    """Without a pool of a given size, which makes the recorder grow it when events are lost: nothing is drained."""
    for tracer in tracers:
        def once(tracer=tracer):
            words = ["memory", 64, 8_000_000]
            printed, _, _ = tracer.run(words, folder / "trace", overwrite=True, pool=None)
            shutil.rmtree(folder / "trace", ignore_errors=True)
            program, thread, most = (float(word) for word in printed.split())
            done = subprocess.run([plain, *map(str, words)], capture_output=True, text=True, check=True)
            return {" program": program - float(done.stdout.split()[0]), " thread": thread, " pool": most / 1024}
        yield f"{tracer.name} memory", once


# What events can carry, as Kymograph and as LTTng-UST call it.
CONTEXTS = [
    ("none", [], None), ("cpu_id", ["cpu_id"], []), ("pid", ["pid"], ["vpid"]), ("tid", ["tid"], ["vtid"]),
    ("procname", ["procname"], ["procname"]), ("ip", ["ip"], ["ip"]), ("stack", ["stack"], None), ("own", ["app.request"], None),
    ("namespaces", ["namespaces"], ["cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns", "time_ns", "user_ns", "uts_ns"]),
]


def contexts(tracers, folder):
    for tracer in tracers:
        for name, ours, theirs in CONTEXTS:
            carried = ours if tracer.name == "kymo" else theirs
            if carried is None:
                continue

            def once(tracer=tracer, carried=carried):
                printed, lost, _ = tracer.run(["one", 1, *BURSTS], folder / "trace", contexts=carried)
                shutil.rmtree(folder / "trace", ignore_errors=True)
                return {"": per_event(printed)[0], " lost": lost}
            yield f"{tracer.name} context {name}", once


def loops(folder, plain):
    """What the loop takes in which all others are measured."""
    def once():
        done = subprocess.run(pinned(plain, "one", 1, *BURSTS), capture_output=True, text=True, check=True)
        return {"": per_event(done.stdout)[0]}
    yield "kymo loop", once


REQUIRED = [
    # figure, required, aim, unit
    ("loop", None, None, "ns"),
    ("off", 0.5, 0.32, "ns"),
    ("one", 17.5, 12.5, "ns"),
    ("three", 25, 18, "ns"),
    ("no 1", 3.5, 2.5, "ns"), ("no 10", 7, 4, "ns"), ("no 50", 14, 10, "ns"),
    ("interpreted no 1", 6, 4, "ns"), ("interpreted no 10", 15, 10, "ns"), ("interpreted no 50", 50, 36, "ns"),
    ("yes 1", 20, 15, "ns"), ("yes 10", 24, 18, "ns"), ("yes 50", 31, 25, "ns"),
    ("overwrite 1", None, None, "ns"), ("overwrite 2", None, None, "ns"),
    ("pace", 20, 40, "M events/s"), ("pace drain", 25, 10, "ms per M events"),
    *((f"tails {name}", 6000 if name == "thread p50" else None, None, "ns") for name in TAILS),
    ("short", 1.3, 1.15, "times as long"), ("short kept of 100", 100, 100, "events"),
    ("start", 1000, 300, "us"), ("first program", 1000, 300, "us"), ("first thread", 200, 50, "us"),
    # One sub-buffer is 32 KiB; its page and its lane's entry come to it.
    ("memory thread", 40, 40, "KiB"), ("memory program", None, None, "KiB"), ("memory pool", 16, 16, "MiB"),
    ("trigger elsewhere", 0.3, 0, "ns more"), ("trigger off", 0.1, 0, "ns more"), ("trigger exact", 1, 0.5, "ns more"), ("trigger predicate", 3, 2, "ns more"), ("trigger count", 25, 20, "ns more"),
    ("rule pair of a thread", 35, 25, "ns"), ("rule every", 25, 20, "ns"),
    *((f"rule {name}", None, None, "ns") for name in ("pair", "pair p99", "at most", "two events")),
    *((f"context {name}", None, None, "ns") for name, _, _ in CONTEXTS),
]


def table(medians):
    yield "| figure | LTTng-UST | kymo | required | aim | |"
    yield "|---|---|---|---|---|---|"
    for figure, required, aim, unit in REQUIRED:
        theirs, ours = medians.get(f"lttng {figure}"), medians.get(f"kymo {figure}")
        if theirs is None and figure.startswith("interpreted"):
            theirs = medians.get(f"lttng {figure.removeprefix('interpreted ')}")
        text = [("" if value is None else f"{value:.2f}") for value in (theirs, ours)]
        yield f"| {figure} | {text[0]} | {text[1]} | {required or ''} | {aim or ''} | {unit} |"
    if "kymo overwrite 2" in medians:
        factor = medians["kymo overwrite 1"] / medians["kymo overwrite 2"]
        yield f"| two threads, of one | | {factor:.2f} | 1.9 | 1.97 | times as many events |"


def write(arguments, taken, busy):
    title = f"{run.machine()}, {os.cpu_count()} cores, {datetime.date.today()}, load {busy:.1f} before the first run"
    medians = {name: statistics.median(values) for name, values in taken.items()}
    lines = [f"# Recording: {title}", "", f"Medians of {arguments.rounds} rounds. What the names mean: [../record.py](../record.py).",
             "", *table(medians), "", "| every figure | median | lowest | highest |", "|---|---|---|---|"]
    lines += [f"| {name} | {medians[name]:.3f} | {min(values):.3f} | {max(values):.3f} |" for name, values in sorted(taken.items())]
    name = f"record-{re.sub('[^a-z0-9]+', '-', run.machine().lower()).strip('-')}-{datetime.date.today()}"
    path = HERE / "results" / f"{name}.md"
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"written to {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", required=True)
    parser.add_argument("--libkymo", required=True, help="the folder that has libkymo.so")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="jobs whose names have one of these words: tails,short")
    arguments = parser.parse_args()
    programs = build(arguments.libkymo)
    taken, busy = {}, os.getloadavg()[0]
    run.STORE.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=run.STORE)))
        # Programs' memory, in a folder that is nobody else's. On a disk their first page takes milliseconds, but no system has it there.
        os.environ["XDG_RUNTIME_DIR"] = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
        tracers = [Kymo(programs["kymo"], arguments.kymo)]
        if "lttng" in programs:
            tracers.append(Lttng(programs["lttng"]))
        tracers = [stack.enter_context(tracer) for tracer in tracers]
        plain = programs["plain"]
        todo = [*loops(folder, plain), *jobs(tracers, folder), *contexts(tracers, folder), *triggers(tracers, folder), *rules(tracers, folder), *overwriting_threads(tracers, folder),
                *paces(tracers, folder), *firsts(tracers, folder), *tails(tracers, folder), *shorts(tracers, folder), *starts(tracers, folder, plain), *memories(tracers, folder, plain)]
        todo = [job for job in todo if any(word in job[0] for word in arguments.only.split(","))]
        for number in range(arguments.rounds):
            for name, once in todo:
                try:
                    for figure, value in once().items():
                        taken.setdefault(name + figure, []).append(value)
                except (RuntimeError, subprocess.CalledProcessError, StopIteration) as problem:
                    print(f"NOT MEASURED: {name}: {problem} {getattr(problem, 'stderr', '')}", flush=True)
            print(f"round {number + 1} of {arguments.rounds}", flush=True)
    write(arguments, taken, busy)


if __name__ == "__main__":
    sys.exit(main())
