#!/usr/bin/env python3
"""Measures filters and their peers on the same machine in the same run.

    filter.py --kymo KYMO [--rounds 9] [--only WORDS] [--pipeline]

Every round does each job once, in turn, so that a slow minute of the machine hits all of them alike; the result is the
median over the rounds. It goes to bench/results/filter-MACHINE-DATE.md: a table of what is required beside what was
measured, and below it every figure with its lowest and highest value.

    peers   LTTng-UST's interpreter in place (filter/lttng.py), the same predicates in C (filter/chain.c), rbpf
            (filter/rbpf), with --pipeline also babeltrace2 piped into grep, once, because it takes so long
    ours    one structure, by the examples of kymo-jit, kymo-bytecode and kymo-filter; what a filter adds to each event
            of a count over k400; print with a filter over k400

What is not installed or not yet in kymo is left out, and said.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
BUILT = run.STORE / "filter"
LENGTHS = (1, 10, 50)
# A thread that k400's processors switch to 4108 times.
THREAD = 4297
SWITCHES = ["--event", "sched_switch", "--filter", f"next_tid == {THREAD}"]
EXAMPLES = (("kymo-jit", "filter_speed"), ("kymo-bytecode", "interpreter_speed"), ("kymo-filter", "text_speed"))


def skipped(what, why):
    print(f"NOT MEASURED: {what}: {why}", flush=True)


# Jobs that time themselves: each prints `name<TAB>nanoseconds`.


def built_in_c():
    program = BUILT / "chain"
    BUILT.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["gcc", "-O2", HERE / "filter" / "chain.c", "-o", program], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(made.stderr.strip())
    return [str(program)]


def built_by_cargo(*words):
    """Builds one program in release mode; the command that runs it."""
    command = ["cargo", "build", "--release", "--message-format", "json", *words]
    made = subprocess.run(command, capture_output=True, text=True, cwd=run.ROOT)
    if made.returncode:
        raise RuntimeError((made.stderr.strip().splitlines() or ["cargo says nothing"])[-1])
    messages = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
    return [next(message["executable"] for message in reversed(messages) if message.get("executable"))]


def self_timed():
    """(name, command) of each, built."""
    yield "LTTng-UST", [sys.executable, str(HERE / "filter" / "lttng.py")]
    peer = ["--manifest-path", str(HERE / "filter" / "rbpf" / "Cargo.toml"), "--target-dir", str(BUILT / "target")]
    todo = [("hard-coded C", built_in_c, ()), ("rbpf", built_by_cargo, peer)]
    todo += [(example, built_by_cargo, ["--package", package, "--example", example]) for package, example in EXAMPLES]
    for name, build, words in todo:
        try:
            yield name, [*run.CORE, *build(*words)]
        except (OSError, RuntimeError) as problem:
            skipped(name, problem)


def figures(name, command):
    """What a job that times itself prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        skipped(name, done.stderr.strip() or f"ends with {done.returncode}")
    for line in done.stdout.splitlines():
        key, tab, value = line.partition("\t")
        if tab:
            yield key, float(value.split()[0])


# What a filter adds to each event of a count.

# The inputs that a series of predicates goes through, in turn. `cycles` is in every event's header, the others are in the
# payload of some classes. The first of them is neither negative nor so high that it has the bit which the last predicate looks at.
SERIES = {
    "cycles": ["cycles"],
    "switch": ["prev_tid", "next_tid", "prev_prio", "prev_state", "next_prio"],
    "tid": ["tid"],
}


def chain(inputs, length):
    """Predicates that are all true but for the last. It is far more selective than the others: a compiler may put it
    first, and packets whose cycles cannot be that are skipped. So this is what people write, not what predicates cost."""
    names = [inputs[index % len(inputs)] for index in range(length - 1)]
    return " && ".join([*(f"{name} != {1_000_000_003 + 7_777 * index}" for index, name in enumerate(names)),
                        f"{inputs[0]} == 999999937"])


def masked(inputs, length):
    """Predicates of one shape, all true but for the last: there is no reason to change their order, and no two of them
    make a range or a set. So every one of them is evaluated for every event, but for the few whose bits happen to be
    what one of them compares with. Masks fit into an instruction of any machine."""
    names = [inputs[index % len(inputs)] for index in range(length - 1)]
    return " && ".join([*(f"({name} & {(1 << 31) - 1 - (index << 20)}) != {(1 << 30) + index}"
                          for index, name in enumerate(names)),
                        f"({inputs[0]} & {1 << (51 if inputs == ['cycles'] else 30)}) != 0"])


def counts(kymo, trace):
    """(name, command) of each count with a filter."""
    for series, inputs in SERIES.items():
        for shape in (chain, masked):
            for length in LENGTHS:
                expression = shape(inputs, length)
                if found := kept(kymo, trace, expression):
                    raise RuntimeError(f"{found} events are kept by {expression}")
                words = ["count", "--threads", "1", "--filter", expression, trace]
                yield f"count.{series}.{shape.__name__}.{length}", [*run.CORE, kymo, *words]


def kept(kymo, trace, expression):
    said = subprocess.run([kymo, "count", "--json", "--filter", expression, trace], capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(f"{expression}: {said.stderr.strip()}")
    return json.loads(said.stdout)["events"]


def added(kymo, trace, jobs, events):
    """What each filter adds in one round, per event of the trace."""
    plain = [*run.CORE, kymo, "count", "--threads", "1", trace]
    # Whatever ran before has left its own in the caches. And each count is compared with the one just before it.
    run.measure(plain)
    for name, command in jobs:
        alone = run.measure(plain)[0]
        yield "count", alone * 1e9 / events
        yield name, (run.measure(command)[0] - alone) * 1e9 / events


# Print with a filter, and the pipeline that people use instead.


def without_difference(text):
    """Lines without the time since the previous line, which a filter changes and grep does not."""
    return [re.sub(r"\(\+.*?\) ", "", line) for line in text.splitlines()]


def pipeline(kymo, trace):
    """Seconds of babeltrace2 | grep, and whether kymo prints the same lines."""
    words = f"babeltrace2 {shlex.quote(trace)} | grep ' sched_switch: ' | grep ' next_tid = {THREAD}[, ]'"
    start = time.monotonic()
    theirs = subprocess.run(["sh", "-c", words], capture_output=True, text=True).stdout
    yield "print.pipeline", (time.monotonic() - start) * 1e9
    ours = subprocess.run([kymo, "print", *SWITCHES, trace], capture_output=True, text=True).stdout
    same = without_difference(ours) == without_difference(theirs)
    print(f"the pipeline and kymo print {'the same' if same else 'DIFFERENT'} lines: "
          f"{theirs.count(chr(10))} and {ours.count(chr(10))}", flush=True)


# The result.


def rounds(arguments, kymo, trace):
    """Every sample of every figure, by its name."""
    taken = {}
    timed = [job for job in self_timed() if arguments.only in job[0]]
    jobs, events = [], 0
    if kymo and trace and arguments.only in "count print":
        events = run.events_of(kymo, trace)
        try:
            jobs = list(counts(kymo, trace))
        except RuntimeError as problem:
            skipped("count with a filter", problem)
    for turn in range(arguments.rounds):
        samples = [sample for job in timed for sample in figures(*job)]
        if jobs:
            samples += added(kymo, trace, jobs, events)
            samples.append(("print.kymo", run.measure([kymo, "print", *SWITCHES, trace])[1] * 1e9))
        for name, value in samples:
            taken.setdefault(name, []).append(value)
        print(f"round {turn + 1} of {arguments.rounds} done", flush=True)
    return taken


def shown(value):
    """Nanoseconds as people say them."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(value) >= 10 * size or (size == 1e9 and abs(value) >= size):
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f}"


def table(medians):
    """What is required beside what was measured."""
    def get(name):
        return shown(medians[name]) if name in medians else "not measured"

    if "lttng.one.1" in medians and "lttng.one.50" in medians:
        # What is not the interpreter cancels out in the difference of 50 and 1 predicates.
        medians["lttng.one.50, without the hit"] = (medians["lttng.one.50"] - medians["lttng.one.1"]) * 50 / 49
    yield "| job | peers | required | measured |"
    yield "|---|---|---|---|"
    for length, required in zip(LENGTHS, (2, 5, 12)):
        yield (f"| count, filter false at the last of {length}: added per event | LTTng-UST {get(f'lttng.one.{length}')}, "
               f"hard-coded C {get(f'chain.{length}')} | {required} | {get(f'count.cycles.masked.{length}')} |")
    # An event that is dropped is not counted, which saves more than the first predicate costs: the others cost this.
    more = "{0}.50, beyond {0}.1"
    for name in ("lttng.one", "chain", "count.cycles.masked"):
        if f"{name}.1" in medians and f"{name}.50" in medians:
            medians[more.format(name)] = medians[f"{name}.50"] - medians[f"{name}.1"]
    yield (f"| the same: what 49 predicates more cost | LTTng-UST {get(more.format('lttng.one'))}, hard-coded C "
           f"{get(more.format('chain'))} | | {get(more.format('count.cycles.masked'))} |")
    theirs = {"native": ("hard-coded C {chain.50}, rbpf {rbpf.native.50}", 10.5),
              "interpreter": ("LTTng-UST {lttng.one.50, without the hit}, rbpf {rbpf.interpreter.50}", 60),
              "evaluator": ("", 500)}
    for form, (peers, required) in theirs.items():
        peers = re.sub(r"\{(.*?)\}", lambda name: get(name[1]), peers)
        yield f"| 50 true predicates on a structure: {form} | {peers} | {required} | {get(f'{form}.50')} |"
    yield (f"| text to native code, 50 predicates | rbpf, from instructions: {get('rbpf.compile.50')} | 400 us "
           f"| {get('text.native.50')} |")
    yield (f"| print sched_switch where next_tid == {THREAD} | babeltrace2 and grep: {get('print.pipeline')} | 200 ms "
           f"| {get('print.kymo')} |")


def write(taken, busy):
    title = f"{run.machine()}, {os.cpu_count()} cores, {datetime.date.today()}, load {busy:.1f} before the first run"
    medians = {name: statistics.median(values) for name, values in taken.items()}
    lines = [f"# Filters: {title}", "", "Nanoseconds where no unit stands. What the names mean: [../README.md](../README.md).",
             "", *table(medians), "", "| figure | median | lowest | highest | runs |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {shown(medians[name])} | {shown(min(values))} | {shown(max(values))} | {len(values)} |"
              for name, values in taken.items()]
    name = f"filter-{re.sub('[^a-z0-9]+', '-', run.machine().lower()).strip('-')}-{datetime.date.today()}"
    path = HERE / "results" / f"{name}.md"
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"written to {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", help="the program; without it only what needs none is measured")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="jobs whose name holds these words")
    parser.add_argument("--pipeline", action="store_true", help="also babeltrace2 piped into grep: half a minute")
    arguments = parser.parse_args()
    kymo = str(pathlib.Path(arguments.kymo).resolve()) if arguments.kymo else None
    trace = str(run.trace_folder("k400") or "")
    busy = os.getloadavg()[0]
    taken = rounds(arguments, kymo, trace)
    if arguments.pipeline and kymo and trace and shutil.which("babeltrace2"):
        for name, value in pipeline(kymo, trace):
            taken.setdefault(name, []).append(value)
    if not taken:
        sys.exit("nothing was measured")
    write(taken, busy)


if __name__ == "__main__":
    main()
