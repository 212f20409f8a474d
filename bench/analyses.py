#!/usr/bin/env python3
"""Measures analyses and their peer on the same machine in the same run.

    analyses.py --kymo KYMO [--rounds 7] [--only WORDS] [--peer]

Every round does each job once, in turn, so that a slow minute of the machine hits all of them alike; the result is the
median over the rounds. It goes to bench/results/analyses-MACHINE-DATE.md.

    one core     nanoseconds of processor time per event of k400, process start included
    efficiency   wall time on one core / wall time on two cores / 2, of the same job in the same round, k400 and k1400
    k1400        wall time on two cores, and the memory that is resident beyond that of `kymo count`
    state        wall time of `kymo state` at an instant of k1400 with an empty cache, and at another one after that; MiB kept
    many cores   simulated: what N threads would do is done one after the other, in their order (simulate.py)
    peer         babeltrace2 only reading k400: its sink.utils.dummy, once, because it takes so long
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

import run
import simulate

HERE = pathlib.Path(__file__).resolve().parent
# What is required and what is hoped for, in nanoseconds per event of k400 on one core.
CORE = {"cpu": (15, 8), "io": (30, 18), "sched": (45, 30)}
EFFICIENCY = {"count": (0.93, 0.97), "cpu": (0.95, 0.97), "io": (0.97, 0.97)}
WALL_S = (0.5, 0.3)
EXTRA_MB = (128, 64)
STATE_MS = 20
# The engine's own count, not the command's.
COMMANDS = {"count": ["analyse", "count"]}
CORES = (1, 2, 4, 8, 16, 32)
REHEARSALS = 3
ANALYSES = ("count", "cpu", "syscalls", "io", "sched", "irq", "rates", "gaps")


def command(kymo, analysis, threads, trace):
    return [kymo, *COMMANDS.get(analysis, [analysis]), "--no-progress", "--threads", str(threads), trace]


def there(kymo, trace):
    """The analyses that this kymo has, and that have something to say of the trace."""
    for analysis in ANALYSES:
        words = command(kymo, analysis, 2, trace)
        if subprocess.run(words, capture_output=True).returncode == 0:
            yield analysis
        else:
            print(f"NOT MEASURED: {analysis}", flush=True)


def samples(kymo, analyses, k400, k1400, events):
    for analysis in analyses:
        one, alone = run.measure([*run.CORE, *command(kymo, analysis, 1, k400)])[:2]
        both = run.measure(command(kymo, analysis, 2, k400))[1]
        yield f"{analysis}.core", one * 1e9 / events
        yield f"{analysis}.efficiency", alone / both / 2
    if k1400:
        plain = run.measure([kymo, "count", "--threads", "2", k1400])[2]
        for analysis in analyses:
            alone = run.measure(command(kymo, analysis, 1, k1400))[1]
            _, wall, resident = run.measure(command(kymo, analysis, 2, k1400))
            yield f"{analysis}.efficiency.k1400", alone / wall / 2
            yield f"{analysis}.k1400", wall
            yield f"{analysis}.extra", resident - plain
        yield from states(kymo, k1400)


def states(kymo, trace):
    """An instant, asked with an empty cache; another one, asked of what that left; and how large it is."""
    told = subprocess.run([kymo, "info", "--json", trace], capture_output=True, text=True, check=True).stdout
    begin, end = (json.loads(told)[name] for name in ("begin_ns", "end_ns"))
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for name in ("first", "again"):
            at = random.randint(begin, end)
            words = [kymo, "state", "--no-progress", "--at", f"{at // 10**9}.{at % 10**9:09}", trace]
            yield f"state.{name}", run.measure(words)[1]
        yield "state.size", sum(path.stat().st_size for path in pathlib.Path(cache).rglob("*.runs")) / 2**20
        del os.environ["XDG_CACHE_HOME"]


def peer(trace, events):
    """Nanoseconds per event of babeltrace2 that only reads."""
    words = ["babeltrace2", trace, "--component=sink.utils.dummy"]
    start = time.monotonic()
    done = subprocess.run([*run.CORE, *words], capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    return (time.monotonic() - start) * 1e9 / events


def simulated(kymo, analysis, trace):
    """For each number of cores the parallel efficiency that one thread's times promise; medians."""
    alone = statistics.median(run.measure(command(kymo, analysis, 1, trace))[1] for _ in range(REHEARSALS))
    for cores in CORES:
        efficiencies = []
        for _ in range(REHEARSALS):
            # What is done before and after is done as the threads would do it, as far as there are cores here.
            threads = min(cores, os.cpu_count())
            words = [*command(kymo, analysis, threads, trace), "--rehearse", str(cores)]
            efficiencies.append(alone / sum(simulate.rehearse(words)) / cores)
        yield statistics.median(efficiencies)


def table_of_cores(kymo, analyses, trace, medians):
    """What many cores would be worth, beside what two are."""
    yield f"Parallel efficiency of N cores on {pathlib.Path(trace).name}, **simulated**: what they would do was done one after the other;"
    yield "what cores have in common, as memory, is not simulated. Two cores are measured too, on k400."
    yield ""
    yield "| analysis | " + " | ".join(map(str, CORES)) + " | 2, measured |"
    yield "|---" * (len(CORES) + 2) + "|"
    for analysis in analyses:
        measured = medians.get(f"{analysis}.efficiency")
        cells = [f"{efficiency:.2f}" for efficiency in simulated(kymo, analysis, trace)]
        yield f"| `{analysis}` | " + " | ".join([*cells, f"{measured:.2f}" if measured else "not measured"]) + " |"


def table(medians, reading):
    def get(name, digits=1):
        return f"{medians[name]:.{digits}f}" if name in medians else "not measured"

    def get_ms(name):
        return f"{medians[name] * 1000:.1f}" if name in medians else "not measured"

    yield "| job | required | aim | measured |"
    yield "|---|---|---|---|"
    for analysis, (required, aim) in CORE.items():
        yield f"| `{analysis}`, one core, ns per event | {required} | {aim} | {get(f'{analysis}.core')} |"
    for analysis, (required, aim) in EFFICIENCY.items():
        both = " / ".join(get(f"{analysis}.{name}", 2) for name in ("efficiency", "efficiency.k1400"))
        yield f"| parallel efficiency of `{analysis}`, 2 cores, k400 / k1400 | {required} | {aim} | {both} |"
    yield f"| `cpu` on k1400, two cores, wall s | {WALL_S[0]} | {WALL_S[1]} | {get('cpu.k1400', 2)} |"
    yield f"| `state` of an instant of k1400, what was found out before being kept, ms | {STATE_MS} | | {get_ms('state.again')} |"
    extra = [medians[name] for name in medians if name.endswith(".extra")]
    most = f"{max(extra):.0f}" if extra else "not measured"
    yield f"| extra resident memory, any of these on k1400, MiB | {EXTRA_MB[0]} | {EXTRA_MB[1]} | {most} |"
    if reading:
        yield f"| babeltrace2 only reading k400, one core, ns per event | | | {reading:.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="analyses whose name holds these words")
    parser.add_argument("--peer", action="store_true", help="also babeltrace2: some ten seconds")
    arguments = parser.parse_args()
    kymo = str(pathlib.Path(arguments.kymo).resolve())
    k400, k1400 = (str(run.trace_folder(name) or "") for name in ("k400", "k1400"))
    if not k400:
        raise SystemExit("k400 is absent: see README.md")
    busy = os.getloadavg()[0]
    events = run.events_of(kymo, k400)
    analyses = [analysis for analysis in there(kymo, k400) if arguments.only in analysis]
    reading = peer(k400, events) if arguments.peer else None
    taken = {}
    for turn in range(arguments.rounds):
        for name, value in samples(kymo, analyses, k400, k1400, events):
            taken.setdefault(name, []).append(value)
        print(f"round {turn + 1} of {arguments.rounds} done", flush=True)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    title = f"{run.machine()}, {os.cpu_count()} cores, {datetime.date.today()}, load {busy:.1f} before the first run"
    cores = table_of_cores(kymo, [name for name in analyses if name in EFFICIENCY], k1400 or k400, medians)
    lines = [f"# Analyses: {title}", "", *table(medians, reading), "", *cores, "",
             "| figure | median | lowest | highest | runs |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {medians[name]:.2f} | {min(values):.2f} | {max(values):.2f} | {len(values)} |"
              for name, values in taken.items()]
    machine = re.sub("[^a-z0-9]+", "-", run.machine().lower()).strip("-")
    path = HERE / "results" / f"analyses-{machine}-{datetime.date.today()}.md"
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
