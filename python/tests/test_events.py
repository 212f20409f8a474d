"""Events as columns: what the command prints, whoever takes them."""

import json
import pathlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import kymograph
from conftest import DEMO, corpus

KYMO = str(pathlib.Path(sys.executable).parent / "kymo")


def printed(*words: str) -> list[dict[str, object]]:
    output = subprocess.run([KYMO, "print", "--format=json", *words], capture_output=True, check=True, timeout=120).stdout
    return [json.loads(line) for line in output.splitlines()]


def test_they_are_what_the_command_prints(trace: kymograph.Trace) -> None:
    lines = printed(DEMO)
    table = trace.events().to_pyarrow()
    assert table.num_rows == len(lines) == 2400
    assert table["time"].cast("int64").to_pylist() == [line["time"] for line in lines]
    assert table["cycles"].to_pylist() == [line["cycles"] for line in lines]
    assert table["name"].to_pylist() == [line["event"] for line in lines]
    for name in ["id", "worker", "ratio", "queue_depth", "result"]:
        assert table[name].to_pylist() == [line["payload"].get(name) for line in lines]  # type: ignore[attr-defined]


def test_whoever_takes_arrow_takes_them(trace: kymograph.Trace) -> None:
    events = trace.events("jobs:begin", columns=["time", "id", "worker"])
    wanted = [(line["time"], line["payload"]["id"], line["payload"]["worker"]) for line in printed("--event=jobs:begin", DEMO)]  # type: ignore[index]
    by_polars = polars.DataFrame(events)
    assert by_polars.with_columns(polars.col("time").to_physical()).rows() == wanted
    by_pandas = events.to_pandas()
    assert list(zip(by_pandas["time"].astype("int64"), by_pandas["id"], by_pandas["worker"], strict=True)) == wanted
    assert by_pandas["time"].dtype == pandas.DatetimeTZDtype("ns", "UTC")
    assert duckdb.sql("select epoch_ns(time), id, worker from events").fetchall() == wanted
    assert duckdb.sql("select worker, count(*) from events group by 1 order by 1").fetchall() == sorted(
        (worker, sum(row[2] == worker for row in wanted)) for worker in {row[2] for row in wanted}
    )
    reader = pyarrow.RecordBatchReader.from_stream(events)
    assert reader.schema == events.schema.to_pyarrow()
    assert sum(batch.num_rows for batch in reader) == 400
    assert [row for batch in events for row in batch.rows()] == wanted


def test_nothing_is_copied(trace: kymograph.Trace) -> None:
    (batch,) = trace.events("jobs:chunk", columns=["id", "sizes"])
    places = [[buffer and buffer.address for buffer in pyarrow.record_batch(batch).column(0).buffers()] for _ in range(2)]
    assert places[0] == places[1]
    answer = trace.count()["count"]
    places = [[buffer and buffer.address for buffer in pyarrow.record_batch(answer).column(1).buffers()] for _ in range(2)]
    assert places[0] == places[1]


def test_answers_are_taken_too(trace: kymograph.Trace) -> None:
    counts = trace.count()["count"]
    rows = counts.rows()
    assert polars.DataFrame(counts).rows() == rows
    assert list(counts.to_pandas().itertuples(index=False, name=None)) == rows
    assert duckdb.sql("select * from counts").fetchall() == rows
    assert pyarrow.table(counts).field("events").metadata[b"class"] == b"number"


def test_every_stream_begins_anew(trace: kymograph.Trace) -> None:
    events = trace.events("jobs:end")
    first = pyarrow.table(events)
    halfway = iter(events)
    next(halfway)
    assert pyarrow.table(events).equals(first)
    assert pyarrow.concat_tables([pyarrow.table(batch) for batch in events]).equals(first)


def test_times_in_any_form(trace: kymograph.Trace) -> None:
    lines = printed(DEMO)
    begin, end = lines[500]["time"], lines[600]["time"]
    assert isinstance(begin, int) and isinstance(end, int)
    wanted = sum(begin <= line["time"] <= end for line in lines)  # type: ignore[operator]

    def rows(**span: object) -> int:
        return sum(map(len, trace.events(columns=["time"], **span)))  # type: ignore[arg-type]

    assert rows(begin=begin, end=end) == wanted > 100
    assert rows(begin=numpy.datetime64(begin, "ns"), end=numpy.int64(end)) == wanted
    assert rows(begin=pandas.Timestamp(begin, tz="UTC"), end=pandas.Timestamp(end, tz="Europe/Berlin")) == wanted
    assert rows(begin=f"{begin // 10**9}.{begin % 10**9:09}", end=f"{end // 10**9}.{end % 10**9:09}") == wanted
    moment = datetime.fromtimestamp(begin // 10**9, UTC).replace(microsecond=begin // 1000 % 10**6)
    floor = sum(line["time"] >= begin // 1000 * 1000 for line in lines)  # type: ignore[operator]
    assert rows(begin=moment) == rows(begin=moment.astimezone(timezone(timedelta(hours=5)))) == floor
    assert rows(begin=moment.astimezone().replace(tzinfo=None)) == floor
    assert rows(begin=f"{moment:%Y-%m-%d %H:%M:%S.%f}", gmt=True) == floor
    with pytest.raises(TypeError, match="a time is text, nanoseconds, "):
        rows(begin=1.5)


def test_questions_that_are_wrong(trace: kymograph.Trace) -> None:
    for options in [{"columns": ["worke"]}, {"where": "worke == 1"}, {"begin": 2, "end": 1}]:
        with pytest.raises(kymograph.QuestionError):
            trace.events("jobs:begin", **options)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        next(iter(trace.events("jobs:begin")))["nothing"]


def test_plain_values_are_pyarrows() -> None:
    """Of every type that there is: numbers, enumerations, texts, lists, structures, optional ones, bytes."""
    for path in [
        DEMO,
        corpus("ctf/babeltrace/succeed/sequence"),
        corpus("ctf/babeltrace/succeed/array-align-elem"),
        corpus("ctf/babeltrace/succeed/meta-variant-no-underscore"),
        corpus("ctf/tracecompass/CTF2-7.0-smalltrace"),
        corpus("ctf/barectf/basic"),
    ]:
        for trace in [kymograph.open(each) for each in traces_below(path)]:
            for batch in trace.events(keep_bytes=True):
                theirs = pyarrow.record_batch(batch)
                for number, name in enumerate(batch.schema.names):
                    column = theirs.column(number)
                    if name == "time" and pyarrow.types.is_timestamp(column.type):
                        column = column.cast("int64")
                    assert batch[name] == column.to_pylist(), (path, name)


def traces_below(path: str) -> list[str]:
    return [str(file.parent) for file in sorted(pathlib.Path(path).rglob("metadata"))]


def test_numbers_for_numpy(trace: kymograph.Trace) -> None:
    (batch,) = trace.events("jobs:chunk")
    for name in ["time", "cycles", "ratio", "procname"]:
        ours = batch.to_numpy(name)
        assert (ours == pyarrow.table(batch).column(name).to_numpy()).all()
    # A part of a batch has its own rows.
    part = kymograph.Batch(batch._native.slice(10, 5))
    assert part.to_numpy("id").tolist() == batch["id"][10:15] == part["id"]


def test_tables_of_files_are_the_same(trace: kymograph.Trace, tmp_path: pathlib.Path) -> None:
    exported = trace.export(tmp_path / "tables", event="jobs:*", format="parquet")
    assert sorted((table.path.name, table.rows) for table in exported) == [
        ("jobs_begin.parquet", 400),
        ("jobs_chunk.parquet", 1200),
        ("jobs_end.parquet", 400),
        ("jobs_submit.parquet", 400),
    ]
    for table in exported:
        name = table.path.stem.replace("_", ":", 1)
        assert pyarrow.parquet.read_table(table.path).to_pylist() == pyarrow.table(trace.events(name)).to_pylist()


def test_the_report_comes_with_the_last_row() -> None:
    trace = kymograph.open(corpus("ctf/tracecompass/hello-lost"))
    events = trace.events()
    assert events.report is None
    polars.DataFrame(events)
    report = events.report
    assert report is not None and report.losses == trace.count().report.losses is not None
