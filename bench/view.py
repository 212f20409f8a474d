#!/usr/bin/env python3
"""Measures the viewer: how soon `kymo view` shows something, how long all of a trace takes, how quickly it follows a hand.

    view.py KYMO [--traces k400,k1400] [--rounds 3] [--moves 300] [--no-browser] [--trace NAME=FOLDER]

Server, per trace, each round with an empty cache: from the start of the process to the first tiles of all of the trace, and to the
whole pyramid; processor time, most memory, size of the pyramid. Then moves, as a hand makes them, 60 rows by 3,072
buckets each: pan by a quarter of the window, zoom in and out around a place, jump; how long until their tiles are there.
Then opened again with the pyramid that was kept.

Browser (Chromium, without a screen): from the start of `kymo view` to the first tiles that are drawn, from a key to the last pixel
that it changes, and from frame to frame while the timeline is dragged; see view.mjs. It needs `scripts/web.sh build` before kymo is built.

The page cache is hot: each trace is read once before. Results go to bench/results/view-MACHINE-DATE.md and .json.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts" / "oracles"))

import served  # noqa: E402

# The page asks for 2,048 to 4,096 buckets on a screen up to 2,048 pixels wide.
ROWS, BUCKETS = 60, 3072
# Which tracks are on top, as the page has them.
GROUPS = ("CPUs", "Threads", "Latencies", "Events")
SEED = 11
# The quality of buckets behind the end of a trace.
NOTHING = 3
BROWSER_SECONDS = 600


def rank(values, part):
    """The value that such a part of all does not exceed."""
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def warm(folder):
    """Reads everything, so that the page cache has it; how many bytes that are."""
    size = 0
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                while part := file.read(1 << 24):
                    size += len(part)
    return size


def rows_of(tracks):
    """The tracks that a screen of 60 rows shows first."""
    order = {group: number for number, group in enumerate(GROUPS)}
    shown = [track for track in tracks.values() if track["kind"] in ("states", "instants", "heat")]
    shown.sort(key=lambda track: (order.get(track["group"], len(order)), track["number"]))
    return [track["number"] for track in shown[:ROWS]]


class View:
    """A window that moves as hands move it."""

    def __init__(self, status, seed):
        self.length = status["end_ns"] - status["begin_ns"]
        self.random = random.Random(seed)
        self.top = max(0, (self.length // BUCKETS).bit_length())
        self.level, self.first = self.top, 0

    def limit(self):
        self.level = min(max(self.level, 4), self.top)
        last = (self.length >> self.level) - BUCKETS
        self.first = min(max(self.first, 0), max(last, 0))

    def move(self):
        what = self.random.random()
        if what < 0.5:
            self.first += self.random.choice((-1, 1)) * BUCKETS // 4
        elif what < 0.9:
            step = self.random.choice((-1, -1, -1, 1, 1))
            middle = (self.first + self.random.randrange(BUCKETS)) << self.level
            self.level += step
            self.limit()
            self.first = (middle >> self.level) - BUCKETS // 2
        else:
            self.level = self.random.randint(max(4, self.top - 16), self.top)
            self.first = self.random.randrange(max(1, self.length >> self.level))
        self.limit()


def ask(client, view, rows):
    """How many milliseconds a window takes, and whether all of it is exact."""
    began = time.monotonic()
    numbers = ",".join(map(str, rows))
    answer = client.get("tiles", level=view.level, first=view.first, count=BUCKETS, tracks=numbers)
    took = (time.monotonic() - began) * 1000
    qualities = {span.quality for span in served.Tiles(answer).spans}
    return took, len(answer), qualities <= {served.EXACT, NOTHING}


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def build(kymo, folder, cache):
    """One round with an empty cache."""
    environment = {"XDG_CACHE_HOME": cache}
    before, began = children_seconds(), time.monotonic()
    with served.Served(kymo, [folder], environment=environment) as server:
        status = server.json("timeline")
        tracks, _ = server.catalogue()
        view = View(status, SEED)
        rows = rows_of(tracks)
        numbers = ",".join(map(str, rows))
        tiles = served.Tiles(server.get("tiles", level=view.level, first=0, count=BUCKETS, tracks=numbers))
        first = time.monotonic() - began
        qualities = sorted({span.quality for span in tiles.spans})
        status = server.complete()
        whole = time.monotonic() - began
        resident, most = server.resident_bytes()
    return {
        "first_s": first,
        "first_quality": qualities,
        "pyramid_s": whole,
        "processor_s": children_seconds() - before,
        "resident_most_mb": most / 1e6,
        "resident_mb": resident / 1e6,
        "pyramid_bytes": sum(path.stat().st_size for path in pathlib.Path(cache).rglob("*.tiles")),
        "events": status["events"],
        "tracks": status["tracks"],
    }


def moves(kymo, folder, cache, count):
    """Moves in a trace whose pyramid is kept."""
    began = time.monotonic()
    with served.Served(kymo, [folder], environment={"XDG_CACHE_HOME": cache}) as server:
        status = server.complete()
        tracks, _ = server.catalogue()
        rows = rows_of(tracks)
        view = View(status, SEED)
        first, _, _ = ask(server, view, rows)
        again = time.monotonic() - began
        times, levels, sizes = [], {}, []
        for _ in range(count):
            view.move()
            took, size, is_exact = ask(server, view, rows)
            if not is_exact:
                raise served.Wrong(f"level {view.level}, from {view.first}: not exact although all was built")
            times.append(took)
            sizes.append(size)
            levels.setdefault(view.level, []).append(took)
        _, most = server.resident_bytes()
    return {
        "again_s": again,
        "p50_ms": rank(times, 0.5),
        "p95_ms": rank(times, 0.95),
        "max_ms": max(times),
        "answer_kb": statistics.median(sizes) / 1024,
        "resident_most_mb": most / 1e6,
        "levels": {level: (len(took), rank(took, 0.5), rank(took, 0.95)) for level, took in sorted(levels.items())},
    }


def browse(kymo, folder):
    """What a browser sees; None where there is none."""
    node = shutil.which("node")
    if node is None:
        print("NOT MEASURED: the browser: node is absent")
        return None
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        done = subprocess.run(
            [node, HERE / "view.mjs", kymo, folder], env=environment, capture_output=True, timeout=BROWSER_SECONDS, text=True
        )
    if done.returncode:
        print(f"NOT MEASURED: the browser: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(done.stdout)


def measure(kymo, folder, options):
    size = warm(folder)
    rounds = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            rounds.append(build(kymo, folder, cache))
            if number == options.rounds - 1:
                moved = moves(kymo, folder, cache, options.moves)
    middle = {key: statistics.median(one[key] for one in rounds) for key, value in rounds[0].items() if not isinstance(value, list)}
    return {
        "trace_bytes": size,
        "rounds": rounds,
        "median": middle,
        "moves": moved,
        "browser": None if options.no_browser else browse(kymo, folder),
    }


def table(results, load):
    lines = [
        f"# The viewer on {run.machine()}, {os.cpu_count()} cores, {datetime.date.today()}",
        "",
        f"Load before the first run: {load:.2f}. Medians over the rounds; moves are {ROWS} rows by {BUCKETS:,} buckets over HTTP, one after the other.",
        "",
        "| trace | events | MB | first tiles, s | pyramid, s | processor, s | most memory, MB | pyramid, % | again, s | a move, p50 / p95 / max, ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        middle, moved = result["median"], result["moves"]
        share = middle["pyramid_bytes"] / result["trace_bytes"]
        lines.append(
            f"| {name} | {middle['events']:,.0f} | {result['trace_bytes'] / 1e6:.0f} | {middle['first_s']:.3f} | {middle['pyramid_s']:.2f} |"
            f" {middle['processor_s']:.2f} | {max(middle['resident_most_mb'], moved['resident_most_mb']):.0f} | {share:.1%} | {moved['again_s']:.3f} |"
            f" {moved['p50_ms']:.1f} / {moved['p95_ms']:.1f} / {moved['max_ms']:.1f} |"
        )
    browsers = {name: result["browser"] for name, result in results.items() if result["browser"]}
    if browsers:
        lines += [
            "",
            "| trace | first pixels of tiles, s | a key to its last pixel, p50 / p95, ms | frame while dragging, p50 / p95, ms | at 60 Hz, p50 / p95, ms | drawn by |",
            "|---|---|---|---|---|---|",
        ]
    for name, seen in browsers.items():
        lines.append(
            f"| {name} | {seen['first_s']:.3f} | {rank(seen['keys_ms'], 0.5):.0f} / {rank(seen['keys_ms'], 0.95):.0f} |"
            f" {rank(seen['frames_ms'], 0.5):.1f} / {rank(seen['frames_ms'], 0.95):.1f} |"
            f" {rank(seen['screen_ms'], 0.5):.1f} / {rank(seen['screen_ms'], 0.95):.1f} | {seen['renderer']} |"
        )
    for name, result in results.items():
        lines += ["", f"Moves of {name} by level (`2^level` ns a bucket): number, p50, p95 in ms", ""]
        lines += [f"- {level}: {count}, {half:.1f}, {most:.1f}" for level, (count, half, most) in result["moves"]["levels"].items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kymo")
    parser.add_argument("--traces", default="k400")
    parser.add_argument("--trace", action="append", default=[], metavar="NAME=FOLDER", help="another trace")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--moves", type=int, default=300)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    folders = {name: run.trace_folder(name) for name in filter(None, options.traces.split(","))}
    folders |= dict((name, pathlib.Path(folder)) for name, folder in (one.split("=", 1) for one in options.trace))
    results = {name: measure(options.kymo, folder, options) for name, folder in folders.items() if folder}
    text = table(results, load)
    print(text)
    named = re.sub("[^a-z0-9]+", "-", run.machine().lower()).strip("-")
    options.results.mkdir(parents=True, exist_ok=True)
    place = options.results / f"view-{named}-{datetime.date.today()}"
    place.with_suffix(".md").write_text(text)
    place.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
