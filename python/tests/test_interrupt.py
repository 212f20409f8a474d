"""Ctrl-C ends whatever takes long: soon, with all threads that it began, and the trace can be asked again."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from made import made

HANG_S = 120
#: Names of files that are the same one: a trace that takes a while to read, and little space.
FILES = 256
PACKETS, EVENTS = 64, 4096
#: What one question reads if nothing stops it.
SIZE = FILES * PACKETS * (44 + EVENTS * 20)

OWN = """
name = "made"
[[states]]
name = "key"
key = "key"
set = [{ event = "tick", to = "there" }]
"""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("long")
    trace = pathlib.Path(made(folder / "trace", packets=PACKETS, events=EVENTS, streams=1))
    for number in range(1, FILES):
        os.link(trace / "stream_0", trace / f"stream_{number}")
    (folder / "own.toml").write_text(OWN)
    return folder


PROGRAM = """
    import json, os, signal, sys, tempfile, threading, time
    import kymograph, pandas, polars, pyarrow
    from kymograph import cluster
    from kymograph.compat import bt2

    path, own, question, again = sys.argv[1:]
    trace = kymograph.open(path, threads=2, cache=False)
    folder = tempfile.mkdtemp()
    never = "number == 4294967295"

    def read():
        "How many bytes this process has read."
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    def threads():
        "Threads of ours: the names are theirs, or of those that began them."
        names = []
        for thread in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{thread}/comm") as file:
                    names.append(file.read().strip())
            except OSError:
                pass
        # Those of SQL wait for the next query.
        return sum(name.startswith("kymo") and name != "kymo-sql" for name in names)

    class Keys(kymograph.Analysis):
        columns = ["key"]
        def init(self): return 0
        def step(self, state, batch): return state + len(batch)
        def merge(self, left, right): return left + right

    class Never(Keys):
        where = never

    def interrupt():
        while read() < begun + (1 << 24):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    begun = read()
    said = {"before": threads(), "interrupted": False}
    threading.Thread(target=interrupt).start()
    try:
        eval(question)
    except KeyboardInterrupt:
        said["interrupted"] = True
    while threads() > said["before"]:
        time.sleep(0.001)
    said["read"] = read() - begun
    said["left"] = [name for _, _, names in os.walk(folder) for name in names]
    said["again"] = eval(again)
    print(json.dumps(said))
"""

ALL = FILES * PACKETS * EVENTS
#: Few events are asked for again; in packets that are in no time that is asked for, nothing is read.
SOME = 'where="number < 10", end=100'
TEN = 10 * FILES

QUESTIONS = {
    "count": ("trace.count()", 'sum(trace.count(where="number < 10")["count"]["events"])', TEN),
    "count of nothing": ("trace.count(where=never)", 'sum(trace.count(where="number < 10")["count"]["events"])', TEN),
    "sizes": ("trace.count(sizes=True)", 'sum(trace.count(where="number < 10")["count"]["events"])', TEN),
    "info": ("trace.info(exact=True)", "trace.info(exact=True).events", ALL),
    "rates": ("trace.rates()", f'sum(trace.rates({SOME})["rates"]["count"])', TEN),
    "rates of nothing": ("trace.rates(where=never)", f'sum(trace.rates({SOME})["rates"]["count"])', TEN),
    "gaps": ("trace.gaps(period='1ms')", f'sum(trace.rates({SOME})["rates"]["count"])', TEN),
    "periods": (
        "trace.periods(period='p : tick if key == 1 : tick if key == 2')",
        "trace.periods(period='p : tick if key == 1 : tick if key == 2', end=25).report.complete",
        True,
    ),
    "state": ("trace.state_at(10, own=own)", f'sum(trace.rates({SOME})["rates"]["count"])', TEN),
    "verify": ("trace.verify()", f'sum(trace.rates({SOME})["rates"]["count"])', TEN),
    "export": (
        "trace.export(folder)",
        f"[(table.path.name, table.rows) for table in trace.export(folder, {SOME})]",
        [["tick.parquet", TEN]],
    ),
    "batches": ("list(trace.events(columns=['time']))", f"sum(map(len, trace.events({SOME})))", TEN),
    "no batches": ("list(trace.events(where=never))", f"sum(map(len, trace.events({SOME})))", TEN),
    "pyarrow": ("trace.events(columns=['time']).to_pyarrow()", f"trace.events({SOME}).to_pyarrow().num_rows", TEN),
    "polars": ("trace.events(where=never).to_polars()", f"trace.events({SOME}).to_polars().height", TEN),
    "pandas": ("trace.events(where=never).to_pandas()", f"len(trace.events({SOME}).to_pandas())", TEN),
    "messages": ("list(trace.messages(where=never))", f"sum(1 for _ in trace.messages({SOME}))", TEN),
    "print": ("trace.print(where=never)", f"sum(1 for _ in trace.lines({SOME}))", TEN),
    "lines": ("list(trace.lines(where=never))", f"sum(1 for _ in trace.lines({SOME}))", TEN),
    "run": ("trace.run(Keys)", "trace.run(Keys, end=25)", 3 * FILES),
    "run on nothing": ("trace.run(Never)", "trace.run(Keys, end=25)", 3 * FILES),
    "part": (
        "[cluster.read(part) for part in cluster.plan(trace, 'rates', readers=2).parts]",
        "[[len(cluster.plan(trace, 'rates', readers=2).parts) > 3]]",
        [[True]],
    ),
    "part of one's own": (
        "[cluster.read(part) for part in cluster.plan(trace, Never, readers=2).parts]",
        "trace.run(Keys, end=25)",
        3 * FILES,
    ),
    "bt2": (
        "[message for message in bt2.TraceCollectionMessageIterator(path) if type(message) is int]",
        f"sum(map(len, trace.events({SOME})))",
        TEN,
    ),
}

if os.environ.get("KYMO_WITH_SQL"):
    QUESTIONS["SQL that asks an analysis"] = (
        "trace.sql('select * from rates()')",
        "trace.sql('select count(*) as streams from streams').to_polars()['streams'][0]",
        FILES,
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_ctrl_c(long: pathlib.Path, name: str) -> None:
    question, again, expected = QUESTIONS[name]
    words = [str(long / "trace"), str(long / "own.toml"), question, again]
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), done
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["interrupted"] and said["read"] < SIZE, (said, SIZE)
    assert (said["left"], said["again"]) == ([], expected), said
