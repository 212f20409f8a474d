#!/usr/bin/env python3
"""Measures kymo and its installed peers on the same traces in the same session.

    run.py KYMO [--traces k400,u400,a400,b400] [--runs 7] [--only WORDS]

For each trace every round runs each job once, kymo and peers in turn, so that a slow minute of the machine hits all
of them alike. The result is the median over the rounds, in nanoseconds per event, and goes to
bench/results/MACHINE-DATE.md and .json.

Traces are made from the corpus by scale_trace.py once and kept in $KYMO_BENCH (~/.cache/kymograph/bench);
$KYMO_K400 may name a k400 that lies elsewhere. What is not installed or not yet in kymo is left out, and said.
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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
CORPUS = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
TOOLS = CORPUS.parent / "tools"
STORE = pathlib.Path(os.environ.get("KYMO_BENCH", pathlib.Path.home() / ".cache" / "kymograph" / "bench"))
# name: trace of the corpus, arguments of scale_trace.py
TRACES = {
    "k400": ("tracecompass/many-threads", ["-s", "400M"]),
    "k32": ("tracecompass/many-threads", ["-r", "4"]),
    "u400": ("tracecompass/hello-lost", ["-s", "400M"]),
    "a400": ("tracecompass/bug446190", ["-s", "400M"]),
    "b400": ("tracecompass/flipping-endianness", ["-s", "400M"]),
}
# Too large for most jobs; analyses.py and view.py take them.
LARGE = {
    "k1400": ("tracecompass/many-threads", ["-s", "1400M"]),
    "k10000": ("tracecompass/many-threads", ["-s", "10000M"]),
}
CORE = ["taskset", "--cpu-list", "0"]
# The same job in two processes at once, a core each: what the machine's second core is worth.
PAIR = "two processes at once: "
PEER_RUNS_MAX = 3


def trace_folder(name):
    """The folder of a trace, made when needed; None where it cannot be made."""
    if name == "k400" and os.environ.get("KYMO_K400"):
        return pathlib.Path(os.environ["KYMO_K400"])
    folder, (source, size) = STORE / name, (TRACES | LARGE)[name]
    if not (folder / "metadata").exists():
        tool, base = TOOLS / "scale_trace.py", CORPUS / "ctf" / source
        if not tool.exists() or not base.exists():
            print(f"NOT MEASURED: {name}: {tool} or {base} is absent")
            return None
        STORE.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([sys.executable, tool, base, folder, *size], stdout=subprocess.DEVNULL)
        if made.returncode:
            print(f"NOT MEASURED: {name}: {tool.name} ends with {made.returncode}")
            shutil.rmtree(folder, ignore_errors=True)
            return None
    return folder


def floors(name, folder):
    """Jobs of the reader that knows the trace at compile time: the bound of what is possible."""
    tool = TOOLS / "floor_reader.py"
    if not tool.exists() or not shutil.which("gcc"):
        return
    source = STORE / f"{name}-floor.c"
    STORE.mkdir(parents=True, exist_ok=True)
    if subprocess.run([sys.executable, tool, folder, source], capture_output=True).returncode:
        return
    for label, flags, words in (("count", [], []), ("all fields, time order", ["-DFULL"], ["merge"])):
        program = STORE / f"{name}-floor{''.join(flags)}"
        if subprocess.run(["gcc", "-O3", *flags, source, "-o", program], capture_output=True).returncode == 0:
            yield f"generated C: {label}", [*CORE, str(program), str(folder), *words]


def jobs(kymo, name, folder):
    """(name, command, is it kymo's) of every job that can run here."""
    trace = str(folder)
    said = subprocess.run([kymo, "print", "--help"], capture_output=True, text=True).stdout
    known = subprocess.run([kymo, "--help"], capture_output=True, text=True).stdout
    for threads, cores, pin in ((1, "one core", CORE), (2, "two cores", [])):
        many = ["--threads", str(threads)]
        yield f"count by class, {cores}", [*pin, kymo, "count", *many, trace], True
        yield f"all fields, time order, {cores}", [*pin, kymo, "print", "--format", "none", *many, trace], True
        yield f"text, {cores}", [*pin, kymo, "print", *many, trace], True
    for label, words in (("count", ["count"]), ("all fields", ["print", "--format", "none"]), ("text", ["print"])):
        pair = " & ".join(shlex.join(["taskset", "--cpu-list", str(core), kymo, *words, "--threads", "1", trace])
                          for core in (0, 1))
        yield f"{PAIR}{label}", ["sh", "-c", f"{pair} & wait"], True
    yield "info, first screen", [kymo, "info", trace], True
    yield "info, first screen, no index", ["env", "XDG_CACHE_HOME=/dev/null", kymo, "info", trace], True
    if "--limit" in said:
        yield "first event", [*CORE, kymo, "print", "--limit", "1", trace], True
    if "--begin" in said and (last := last_second(kymo, trace)):
        yield "first line of the last second", [*CORE, kymo, "print", "--begin", last, "--limit", "1", trace], True
    if "\n  export " in known and name.startswith("k"):
        tables = ["--format", "arrow", "--output", str(STORE / "tables")]
        yield "one class to Arrow", [*CORE, kymo, "export", "--event", "sched_switch", *tables, trace], True
    for label, command in floors(name, folder):
        yield label, command, False
    if shutil.which("babeltrace2"):
        yield "babeltrace2: all fields, time order", [*CORE, "babeltrace2", "--output-format", "dummy", trace], False
        yield "babeltrace2: text", [*CORE, "babeltrace2", trace], False
    if shutil.which("babeltrace"):
        yield "babeltrace 1.5: all fields, time order", [*CORE, "babeltrace", "-o", "dummy", trace], False
        yield "babeltrace 1.5: text", [*CORE, "babeltrace", trace], False


def last_second(kymo, trace):
    """When the last second of a trace begins, in seconds since the origin."""
    said = subprocess.run([kymo, "info", "--json", trace], capture_output=True, text=True).stdout
    end = re.search(r'"end(?:_ns)?": ?(\d+)', said)
    return f"{int(end[1]) // 10**9 - 1}" if end else None


def events_of(kymo, folder):
    said = subprocess.run([kymo, "count", "--json", str(folder)], capture_output=True, text=True)
    return json.loads(said.stdout)["events"]


def measure(command):
    """Processor seconds, wall seconds and the largest resident size of one run; its output is thrown away."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ends with {process.returncode}")
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


def measured(kymo, name, runs, only):
    """A row for each job on a trace; None for the trace where it is absent."""
    folder = trace_folder(name)
    if folder is None:
        return []
    events = events_of(kymo, folder)
    todo = [job for job in jobs(kymo, name, folder) if only in job[0]]
    samples = {job: [] for job, _, _ in todo}
    for turn in range(runs + 1):
        for job, command, ours in todo:
            if not ours and turn > PEER_RUNS_MAX:
                continue
            try:
                sample = measure(command)
            except RuntimeError as problem:
                print(f"NOT MEASURED: {problem}")
                continue
            # The first turn only warms the page cache.
            if turn:
                samples[job].append(sample)
    rows = []
    for job, taken in samples.items():
        if taken:
            used, wall, memory = (statistics.median(column) for column in zip(*taken))
            rows.append({"trace": name, "events": events, "job": job, "runs": len(taken), "cpu_s": used, "wall_s": wall,
                         "cpu_ns_per_event": used * 1e9 / events, "wall_ns_per_event": wall * 1e9 / events,
                         "resident_mib": memory})
            print(as_row(rows[-1]), flush=True)
    return rows


def second_core(rows):
    """How much faster each job is on two cores, and how much faster two processes at once are than one after the other."""
    wall = {(row["trace"], row["job"]): row["wall_s"] for row in rows}
    for (trace, job), one in wall.items():
        two = wall.get((trace, job.replace(", one core", ", two cores")))
        label = next((label for label in ("count", "all fields", "text") if job.startswith(label)), None)
        pair = wall.get((trace, f"{PAIR}{label}"))
        if job.endswith(", one core") and two and pair:
            yield (f"{trace}, {job.removesuffix(', one core')}: {one / two:.2f} times as fast on two cores; "
                   f"the machine did {2 * one / pair:.2f} times as much with two independent processes.")


def as_row(row):
    return (f"| {row['trace']} | {row['job']} | {row['cpu_ns_per_event']:.1f} | {row['wall_ns_per_event']:.1f} "
            f"| {row['wall_s'] * 1e3:.1f} | {row['resident_mib']:.0f} | {row['runs']} |")


def machine():
    """What the machine is called in the result: its processor."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kymo")
    parser.add_argument("--traces", default="k400")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="jobs whose name holds these words")
    arguments = parser.parse_args()
    kymo = str(pathlib.Path(arguments.kymo).resolve())
    busy = os.getloadavg()[0]
    rows = []
    for name in arguments.traces.split(","):
        rows += measured(kymo, name, arguments.runs, arguments.only)
        if rows:
            write(rows, busy)
    if not rows:
        sys.exit("nothing was measured")


def write(rows, busy):
    """The result so far: a trace that takes too long loses nothing of those before."""
    title = f"{machine()}, {os.cpu_count()} cores, {datetime.date.today()}, load {busy:.1f} before the first run"
    head = ["| trace | job | ns per event (user + system) | ns per event (wall) | wall ms | resident MiB | runs |",
            "|---|---|---|---|---|---|---|"]
    lines = [f"# {title}", "", *head, *map(as_row, rows), "", *(f"- {line}" for line in second_core(rows)), ""]
    path = HERE / "results" / f"{re.sub('[^a-z0-9]+', '-', machine().lower()).strip('-')}-{datetime.date.today()}"
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".md").write_text("\n".join(lines))
    path.with_suffix(".json").write_text(json.dumps({"machine": title, "rows": rows}, indent=1) + "\n")
    print(f"written to {path}.md")


if __name__ == "__main__":
    main()
