"""The Python examples in docs/python.md, docs/sql.md, docs/bt2.md and docs/tour.md run and print the documented output."""

import builtins
import re

import duckdb
import pytest
import pandas

import kymograph
from conftest import ROOT, corpus, needs_sql

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: str) -> list[str]:
    return BLOCK.findall((ROOT / path).read_text())


def test_names_in_the_docs_are_there() -> None:
    text = (ROOT / "docs/python.md").read_text()
    for name in re.findall(r"`(\w+(?:Error|Warning))`", text):
        assert hasattr(kymograph, name) or hasattr(builtins, name), name
    for name in re.findall(r"`trace\.(\w+)\(", text):
        assert hasattr(kymograph.Trace, name), name


def test_what_runs_on_the_demo() -> None:
    opening, events, loop, _, answers, _, own, *_ = blocks("docs/python.md")
    names: dict[str, object] = {}
    exec(opening + events + "rows = len(events.to_pandas())\n" + loop + answers + own, names)
    assert names["rows"] == 335
    assert repr(names["answer"]).startswith("<kymograph.Answer pairs: total (1 rows), per-group (1 rows), ")


def test_what_reads_as_bt2(capsys: pytest.CaptureFixture[str]) -> None:
    (loop,) = blocks("docs/bt2.md")
    exec(loop, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 400 and lines[0] == "1795219372255263261 config.toml ['CUSTOM']"


def test_what_reads_as_babeltrace_1(capsys: pytest.CaptureFixture[str]) -> None:
    loop = blocks("docs/python.md")[3]
    exec(loop, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 400
    assert lines[0] == "1795219372255263261 config.toml CUSTOM {'id': 0, 'timestamp': 5425812897170}"


@needs_sql
def test_what_asks_sql() -> None:
    names: dict[str, object] = {"duckdb": duckdb}
    opening, _, _, _, _, sql, *_ = blocks("docs/python.md")
    exec(opening + sql + "jobs = rows.to_polars()['jobs'].to_list()", names)
    assert names["jobs"] == [161, 147, 92]
    (tour,) = blocks("docs/sql.md")
    exec(tour + "failed = trace.sql('select count(*) from failed').to_polars().item()", names)
    assert names["failed"] == 30


def test_the_tour() -> None:
    (tour,) = [block for block in blocks("docs/tour.md") if "kymograph" in block]
    kernel = kymograph.open(corpus("ctf/tracecompass/bug446190"))
    names: dict[str, object] = {"trace": kernel}
    exec(tour.replace('kymograph.open("my-kernel-trace")', "trace"), names)
    assert issubclass(names["Latest"], kymograph.Analysis)  # type: ignore[arg-type]
    assert isinstance(kernel.events("sched_switch", columns=["time"]).to_pandas(), pandas.DataFrame)
