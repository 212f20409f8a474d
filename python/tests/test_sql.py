"""SQL: what the command answers and what DuckDB answers, whoever takes the rows; views, memory, threads, forks, the end."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import kymograph
from conftest import DEMO, corpus, needs_sql
from made import made

pytestmark = needs_sql

KYMO = str(pathlib.Path(sys.executable).parent / "kymo")
KERNEL = "ctf/tracecompass/many-threads"
#: Only hangs take so long.
HANG_S = 120
ROWS = 96 * 4096 * 2
#: It would take hours.
ENDLESS = "select sum(a.number * b.key) from tick as a cross join tick as b"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("made") / "trace")


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([KYMO, "sql", *words], capture_output=True, text=True, timeout=HANG_S)


def run(program: str, *words: str) -> str:
    """What a program of its own prints; it must end well and say nothing else."""
    line = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def plain(rows: kymograph.Rows) -> list[tuple[object, ...]]:
    return [row for batch in rows for row in batch.rows()]


DEMO_QUERIES = [
    "select name, count(*) as n from events group by name order by n desc, name",
    'select id, name, queue_depth from "jobs:submit" where queue_depth > 3 order by id limit 20',
    'select worker, count(*) as n, min(id) as first, max(id) as last from "jobs:begin" group by worker order by worker',
    'select id, max(ratio) as most, avg(ratio) as mean from "jobs:chunk" group by id order by id',
    'select e.id, e.result from "jobs:end" as e join "jobs:begin" as b on e.id = b.id where e.result < 0 order by e.id',
    "select kind, kind_label, count(*) as n from \"jobs:submit\" group by kind, kind_label order by kind",
    'select id, row_number() over (order by cycles) as place from "jobs:end" order by id limit 50',
    'select CAST(time AS BIGINT) as t, cycles from "jobs:end" order by time limit 7',
]
KERNEL_QUERIES = [
    "select next_comm, count(*) as n from sched_switch group by next_comm order by n desc, next_comm",
    "select cpu_id, count(*) as n from sched_switch where prev_state = 0 group by cpu_id order by cpu_id",
    "select prev_comm, next_comm, prev_tid from sched_switch where next_tid = 0 order by cycles, cpu_id limit 100",
    "select count(*) as n from sched_switch where next_comm like '%a%' and next_prio <= 20",
    "select prev_tid, max(cycles) - min(cycles) as span from sched_switch group by prev_tid having count(*) > 2 order by prev_tid",
    "select a.tid, count(*) as n from sched_wakeup as a join sched_switch as b on a.tid = b.next_tid group by a.tid order by a.tid",
]


def test_they_are_what_the_command_answers(trace: kymograph.Trace) -> None:
    functions = ["select * from pairs('start=jobs:begin', 'stop=jobs:end', 'key=id')", "select stream, packets from streams"]
    for query in [*DEMO_QUERIES, *functions]:
        rows = trace.sql(query)
        names = rows.schema.names
        said = [json.loads(line) for line in command(DEMO, query, "--json").stdout.splitlines()]
        assert [dict(zip(names, row, strict=True)) for row in plain(rows)] == said and said, query
        head, *lines = command(DEMO, query, "--csv").stdout.splitlines()
        assert (head.split(","), len(lines)) == (list(names), len(said)), query


@pytest.mark.parametrize("which", ["demo", "kernel"])
def test_they_are_what_duckdb_answers(which: str, tmp_path: pathlib.Path) -> None:
    path, queries = (DEMO, DEMO_QUERIES) if which == "demo" else (corpus(KERNEL), KERNEL_QUERIES)
    trace = kymograph.open(path)
    base = duckdb.connect()
    names = {re.sub(r"[^\w.-]", "_", str(name)): str(name) for (name,) in plain(trace.sql("select distinct name from events"))}
    parts = []
    for file in [table.path for table in trace.export(tmp_path / "tables")]:
        table = pyarrow.parquet.read_table(file)
        # DuckDB has times of microseconds.
        table = table.set_column(table.schema.get_field_index("time"), "time", table["time"].cast("int64"))
        base.register(names[file.stem], table)
        parts.append(table.select(["time"]).append_column("name", pyarrow.array([names[file.stem]] * len(table))))
    base.register("events", pyarrow.concat_tables(parts))
    for query in queries:
        expected = base.execute(query).fetchall()
        ours = plain(trace.sql(query))
        assert len(ours) == len(expected) > 0, query
        for one, other in zip(ours, expected, strict=True):
            assert one == pytest.approx(other, rel=1e-12) if any(isinstance(it, float) for it in one) else one == other, query


def test_whoever_takes_arrow_takes_them(trace: kymograph.Trace) -> None:
    rows = trace.sql('select time, id, worker from "jobs:begin" where worker <> 1 order by id')
    wanted = plain(rows)
    assert len(wanted) == sum(worker != 1 for batch in trace.events("jobs:begin") for worker in batch["worker"]) > 0
    for by_polars in (polars.DataFrame(rows), rows.to_polars()):
        assert by_polars.with_columns(polars.col("time").to_physical()).rows() == wanted
    by_pandas = rows.to_pandas()
    assert by_pandas["time"].dtype == pandas.DatetimeTZDtype("ns", "UTC")
    assert list(zip(by_pandas["time"].astype("int64"), by_pandas["id"], by_pandas["worker"], strict=True)) == wanted
    base = duckdb.connect()
    assert base.execute("select epoch_ns(time), id, worker from rows order by id").fetchall() == wanted
    assert base.execute("select count(*) from rows as a join rows as b on a.id = b.id").fetchall() == [(len(wanted),)]
    for reader in (pyarrow.RecordBatchReader.from_stream(rows), rows.to_pyarrow().to_reader()):
        assert reader.schema.equals(rows.schema.to_pyarrow())
        assert [value for batch in reader for value in batch["id"].to_pylist()] == [row[1] for row in wanted]
    empty = trace.sql('select id from "jobs:end" where id < 0')
    assert (plain(empty), empty.to_polars().shape, empty.to_pyarrow().num_rows) == ([], (0, 1), 0)


def test_every_reader_begins_anew(trace: kymograph.Trace) -> None:
    rows = trace.sql('select id from "jobs:end" order by id')
    half = iter(rows)
    first = next(half)
    assert plain(rows) == plain(rows) == [(row,) for row in range(400)]
    assert [*first.rows(), *(row for batch in half for row in batch.rows())] == plain(rows)


@pytest.mark.parametrize(
    "query",
    [
        "select nothing from streams",
        "selct 1",
        "select 1 +",
        "",
        "select * from nowhere",
        "select\n  id,\n  wörker\nfrom \"jobs:begin\"",
        "insert into streams select * from streams",
        "copy streams to 'file.csv'",
        "select * from cpu('mni=1')",
        "create view streams as select 1",
        "select count(*) from events group by 7",
    ],
)
def test_what_is_wrong_is_said_as_by_the_command(trace: kymograph.Trace, query: str) -> None:
    with pytest.raises(kymograph.QuestionError) as caught:
        list(trace.sql(query))
    assert isinstance(caught.value, ValueError)
    if query:
        done = command(DEMO, f" {query}" if " " not in query else query)
        assert (done.returncode, done.stderr) == (2, f"error: {caught.value}\n")


def test_what_these_traces_cannot_answer(trace: kymograph.Trace) -> None:
    with pytest.raises(kymograph.UnanswerableError, match="no event of these traces has the role"):
        trace.sql("select * from cpu()")
    with pytest.raises(kymograph.QuestionError, match="zero"):
        list(trace.sql("select id / (id - id) from \"jobs:end\""))
    with pytest.raises(kymograph.QuestionError, match="invalid value 'much'"):
        trace.database(memory="much")


def test_memory_is_limited(large: str) -> None:
    trace = kymograph.open(large, threads=2)
    query = "select number, key, cycles, time from tick order by key desc, number, cycles"
    wanted = trace.sql(query).to_pyarrow()
    assert wanted.num_rows == ROWS
    # Of 18 MiB of rows, many are put aside: sorting needs more than they have.
    small = trace.database(memory="20MiB")
    analysed = "\n".join(plain(small.sql(f"explain analyze {query}"))[0])  # type: ignore[arg-type]
    spilled = [int(count) for count in re.findall(r"spill_count=(\d+)", analysed)]
    assert max(spilled) > 0, analysed
    assert small.sql(query).to_pyarrow().equals(wanted)
    assert trace.database(memory=64 << 20).sql(query).to_pyarrow().equals(wanted)
    for ask in (list, lambda rows: rows.to_polars()):
        with pytest.raises(kymograph.MemoryLimitError, match="memory") as caught:
            ask(trace.database(memory="100KiB").sql(query))
        assert isinstance(caught.value, MemoryError)


def test_views_and_settings_stay(trace: kymograph.Trace) -> None:
    made_view = trace.sql('create view failed as select id from "jobs:end" where result < 0')
    assert (made_view.schema.names, list(made_view), made_view.to_pyarrow().num_rows) == ((), [], 0)
    (failed,) = plain(trace.sql("select count(*) from failed"))[0]
    assert failed == 30
    before = trace.sql("select id from failed order by id")
    # Of several statements the last one answers.
    changed = trace.sql("create or replace view failed as select id from \"jobs:end\" where id < 3; select * from failed order by id;")
    assert plain(changed) == [(0,), (1,), (2,)]
    assert len(plain(before)) == 30, "names mean what they meant when it was asked"
    assert "failed" in {row[2] for row in plain(trace.sql("show tables"))}
    assert [row[0] for row in plain(trace.sql("describe failed"))] == ["id"]
    trace.sql("set datafusion.execution.batch_size = 100")
    assert plain(trace.sql("show datafusion.execution.batch_size"))[0][1] == "100"
    # A database has its own.
    own = trace.database()
    with pytest.raises(kymograph.QuestionError, match="failed"):
        own.sql("select * from failed")
    assert plain(own.sql("show datafusion.execution.batch_size"))[0][1] == "8192"
    assert {"streams", "jobs:end", "cpu()"} <= set(own.tables)
    with pytest.raises(kymograph.QuestionError, match="failed"):
        kymograph.open(DEMO).sql("select * from failed")


def test_packets_that_are_not_read_are_told(trace: kymograph.Trace) -> None:
    plan = trace.database().explain("select time from \"jobs:begin\" where time < '2026-11-21 00:02:52.26' and worker = 1")
    assert re.search(r"filter=.*worker == 1", plan) and re.search(r"packets=\d+ of 17 \([1-9]\d* skipped\)", plan), plan


def test_clocks_that_step_back() -> None:
    trace = kymograph.open(corpus("ctf/tracecompass/flipping-endianness"))
    names = [name for (name,) in plain(trace.sql("select distinct name from events order by 1"))]
    for name in names:
        ordered = plain(trace.database(unordered=True).sql(f'select time from "{name}" order by time'))
        assert ordered == sorted(ordered) and ordered


def test_threads_ask_at_once(large: str) -> None:
    trace = kymograph.open(large, threads=2)
    queries = [f"select key, count(*) as n from tick where number % {each} = 0 group by key order by key" for each in range(1, 9)]
    wanted = [plain(kymograph.open(large, threads=1).sql(query)) for query in queries]
    shared = trace.sql("select count(*) from tick")

    def ask(number: int) -> tuple[object, object]:
        return plain(trace.sql(queries[number % 8])), plain(shared)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(32))) == [(wanted[number % 8], [(ROWS,)]) for number in range(32)]
    # All of them have asked the same database.
    assert len(trace._databases) == 1


def test_who_stops_reading_stops_those_who_read(large: str) -> None:
    trace = kymograph.open(large, threads=2)
    begun = trace.sql("select a.number from tick as a cross join tick as b")
    stream = iter(begun)
    assert len(next(stream)) > 0
    del stream
    capsule = pyarrow.RecordBatchReader.from_stream(begun)
    capsule.read_next_batch()
    del capsule
    assert begun.report is None
    for _ in range(20):
        used = time.process_time()
        time.sleep(0.25)
        if time.process_time() - used < 0.1:
            break
    else:
        pytest.fail("somebody goes on")


@pytest.mark.parametrize("how", ["list(rows)", "rows.to_pyarrow()", "rows.to_polars()", "rows.to_pandas()", "rows._repr_html_()"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c(large: str, how: str, threads: int) -> None:
    program = f"""
        import os, signal, sys, threading, kymograph, pandas, polars, pyarrow
        trace = kymograph.open(sys.argv[1], threads={threads})
        rows = trace.sql({ENDLESS!r})
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            {how}
        except KeyboardInterrupt:
            # The database is there as before.
            print(trace.sql("select count(*) from tick").to_pyarrow()[0][0])
    """
    assert run(program, large) == f"{ROWS}\n"


def test_forks(large: str) -> None:
    program = """
        import os, sys, kymograph, pyarrow
        trace = kymograph.open(sys.argv[1], threads=2)
        database = trace.database()
        trace.sql("create view small as select * from tick where number < 10")
        rows = trace.sql("select number from tick")
        half = iter(rows)
        first = len(next(half))
        capsule = pyarrow.RecordBatchReader.from_stream(rows)
        capsule.read_next_batch()
        child = os.fork()
        if child == 0:
            for stale in (lambda: next(half), lambda: list(rows), rows.to_pyarrow, lambda: database.sql("select 1")):
                try:
                    stale()
                except kymograph.ForkError as error:
                    print(error)
            try:
                capsule.read_next_batch()
            except Exception as error:
                print(type(error).__name__, "another process" in str(error))
            print(trace.sql("select count(*) from tick").to_pyarrow()[0][0])
            try:
                trace.sql("select * from small")
            except kymograph.QuestionError as error:
                print("small" in str(error), flush=True)
            del half, capsule, rows, database
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), first + sum(map(len, half)), trace.sql("select count(*) from small").to_pyarrow()[0][0])
    """
    said = "it was begun by another process: a child of it must begin anew"
    told = run(program, large).splitlines()
    assert told[:4] == [said] * 4
    assert told[4].endswith("True")
    assert told[5:] == [f"{ROWS}", "True", f"7 {ROWS} 20"]


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("what", ["batches", "planning", "endless"])
def test_the_interpreter_ends_meanwhile(large: str, pause: float, what: str) -> None:
    program = f"""
        import sys, threading, time, kymograph
        trace = kymograph.open(sys.argv[1], threads=2)

        def batches():
            while True: list(trace.sql("select * from tick order by key"))

        def planning():
            while True: trace.sql("select * from rates()")

        def endless():
            list(trace.sql({ENDLESS!r}))

        half = iter(trace.sql("select * from tick"))
        next(half)
        for _ in range(2):
            threading.Thread(target=globals()[sys.argv[3]], daemon=True).start()
        time.sleep(float(sys.argv[2]))
    """
    assert run(program, large, str(pause), what) == ""


def test_what_could_not_be_read_is_told(large: str, tmp_path: pathlib.Path) -> None:
    path = made(tmp_path / "trace")
    os.truncate(f"{path}/stream_0", os.path.getsize(f"{path}/stream_0") // 2 - 5)
    trace = kymograph.open(path)
    rows = trace.sql("select count(*) from tick")
    for ask in (plain, lambda rows: rows.to_polars().rows()):
        with pytest.warns(kymograph.UnreadableWarning, match="stream_0"):
            ((count,),) = ask(rows)
        assert isinstance(count, int) and ROWS // 2 < count < ROWS
    assert rows.report is not None and not rows.report.complete
    lost = kymograph.open(corpus("ctf/tracecompass/hello-lost"))
    events = lost.sql("select * from events")
    plain(events)
    assert events.report is not None and events.report.losses == lost.count().report.losses is not None


def test_what_a_notebook_shows(trace: kymograph.Trace) -> None:
    html = trace.sql('select id, name from "jobs:submit" order by id')._repr_html_()
    assert html.count("<tr>") == 11 and "more rows" in html and "config.toml" in html
    few = trace.sql("select stream from streams")._repr_html_()
    assert few.count("<tr>") == 3 and "more" not in few
    # A loop without an end would hang here if all rows were read.
    big = "select a.id from \"jobs:chunk\" a cross join \"jobs:chunk\" b cross join (select * from \"jobs:chunk\" limit 100) c"
    assert "more rows" in trace.sql(big)._repr_html_()


def test_one_library_is_loaded() -> None:
    program = """
        import sys, kymograph, kymograph_sql
        from kymograph import _native
        import kymograph._native
        print(_native.__file__ == kymograph_sql._native.__file__ == kymograph._native.__file__)
        with open("/proc/self/maps") as maps:
            files = {line.split()[-1] for line in maps if "_native" in line}
        print(len(files), isinstance(next(iter(kymograph.open(sys.argv[1]))), kymograph.Event))
    """
    assert run(program, DEMO) == "True\n1 True\n"


def test_ctrl_c_in_the_shell(large: str) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execv(KYMO, [KYMO, "sql", large])
    said = b""

    def until(words: bytes) -> None:
        nonlocal said
        while words not in said:
            assert select.select([terminal], [], [], HANG_S)[0], said
            said += os.read(terminal, 4096)
        said = said.partition(words)[2]

    until(b"kymo> ")
    os.write(terminal, f"select 1 as begun; {ENDLESS};\n".encode())
    until(b"(1 row")
    os.write(terminal, b"\x03")
    until(b"cancelled")
    until(b"kymo> ")
    os.write(terminal, b"select count(*) + 1 as one_more from tick;\n")
    until(str(ROWS + 1).encode())
    until(b"kymo> ")
    os.write(terminal, b"\\q\n")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


def test_ctrl_c_ends_a_query_of_its_own(large: str) -> None:
    words = [KYMO, "sql", large, f"select 1 as begun; {ENDLESS}"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=HANG_S)
    assert (child.returncode, errors) == (-signal.SIGINT, b"")
