"""Answers say what the command says: the same numbers, the same words, the same errors."""

import io
import json
import math
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import kymograph
from conftest import DEMO, corpus

KYMO = str(pathlib.Path(sys.executable).parent / "kymo")
KERNEL = "ctf/tracecompass/bug446190"
PAIRS = {"start": "jobs:begin", "stop": "jobs:end", "key": "id"}
PAIRS_WORDS = ["--start=jobs:begin", "--stop=jobs:end", "--key=id"]
JOB = "job : jobs:submit : jobs:end if id == $begin.id"

#: A method, its options, and the same as words of the command.
ON_DEMO: list[tuple[str, dict[str, Any], list[str]]] = [
    ("rates", {"period": "10ms"}, ["--period=10ms"]),
    ("rates", {"period": 10_000_000, "by": "cpu", "cpu": [0]}, ["--period=10ms", "--by=cpu", "--cpu=0"]),
    ("gaps", {"min": 1_000_000, "top": "all"}, ["--min=1ms", "--top=all"]),
    ("gaps", {"top": 3}, ["--top=3"]),
    ("pairs", PAIRS, PAIRS_WORDS),
    ("pairs", {**PAIRS, "group": "worker", "top": 3}, [*PAIRS_WORDS, "--group=worker", "--top=3"]),
    ("pairs", {**PAIRS, "where": "id < 100", "bins": 4}, [*PAIRS_WORDS, "--filter=id < 100", "--bins=4"]),
    ("periods", {"period": JOB}, [f"--period={JOB}"]),
    (
        "periods",
        {"period": [JOB], "period_captures": "job : kind=kind", "group_by": ["job.kind"], "order_by": "time"},
        [f"--period={JOB}", "--period-captures=job : kind=kind", "--group-by=job.kind", "--order-by=time"],
    ),
    ("pairs", {**PAIRS, "period": "20ms"}, [*PAIRS_WORDS, "--period=20ms"]),
]

ON_KERNEL: list[tuple[str, dict[str, Any], list[str]]] = [
    ("cpu", {}, []),
    ("cpu", {"by": ["process", "cpu"], "top": 5}, ["--by=process,cpu", "--top=5"]),
    ("syscalls", {"min": "10us"}, ["--min=10us"]),
    ("io", {"by": "file", "min_size": 1}, ["--by=file", "--min-size=1"]),
    ("sched", {"procname": ["*sh*", "kworker*"]}, ["--procname=*sh*,kworker*"]),
    ("irq", {}, []),
    ("rates", {"by": "cpu"}, ["--by=cpu"]),
    ("gaps", {}, []),
]


def command(words: list[str]) -> tuple[str, str]:
    done = subprocess.run(
        [KYMO, *words], capture_output=True, text=True, timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    return done.stdout, done.stderr


def expected(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of ``--json`` with the columns that ours have."""
    kinds = [(column["name"], column["class"]) for column in table["columns"]]
    bounded = {
        name for at, (name, _) in enumerate(kinds) if any(isinstance(row[at], dict) and "low" in row[at] for row in table["rows"])
    }
    return [
        {key: cell for (name, kind), value in zip(kinds, row, strict=True) for key, cell in parts(name, kind, value, name in bounded)}
        for row in table["rows"]
    ]


def parts(name: str, kind: str, value: Any, bounded: bool) -> list[tuple[str, Any]]:
    value = None if value == {"unknown": True} else value
    if kind == "process":
        known = value or {"name": None, "pid": None, "tid": None}
        return [(name, known["name"]), (f"{name}_pid", known["pid"]), (f"{name}_tid", known["tid"])]
    if kind == "time-range":
        known = value or {"begin": None, "end": None}
        return [(f"{name}_begin", known["begin"]), (f"{name}_end", known["end"])]
    if kind == "irq":
        known = value or {"name": None, "number": None, "hard": None}
        return [(name, known["name"]), (f"{name}_number", known["number"]), (f"{name}_hard", known["hard"])]
    if kind == "mixed":
        text = None if value is None or value["value"] is None else value["value"]
        return [(name, None if text is None else str(text)), (f"{name}_class", value and value["class"])]
    if not bounded:
        return [(name, value)]
    known = value if isinstance(value, dict) else {"value": value, "low": value, "high": value}
    return [(name, known["value"]), (f"{name}_low", known["low"]), (f"{name}_high", known["high"])]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-15)
    return bool(ours == theirs)


def compare(path: str, method: str, options: dict[str, Any], words: list[str]) -> None:
    answer: kymograph.Answer = getattr(kymograph.open(path), method)(**options)
    said = json.loads(command([method, "--json", *words, path])[0])
    assert [table.name for table in answer] == [table["class"] for table in said["tables"]]
    for ours, theirs in zip(answer, said["tables"], strict=True):
        rows = [dict(zip(ours.schema.names, row, strict=True)) for row in ours.rows()]
        wanted = expected(theirs)
        assert len(rows) == len(wanted), ours.name
        for row, want in zip(rows, wanted, strict=True):
            assert list(row) == list(want)
            assert all(same(row[key], want[key]) for key in want), (ours.name, row, want)
        assert ours.omitted == theirs["omitted"]
        span = theirs["span"]
        assert ours.span_ns == (span and (span["begin"], span["end"]))
    report = answer.report
    assert report.events_discarded == said["events_discarded"]
    assert report.packets_lost == said["packets_lost"]
    assert report.complete == said["complete"]
    # Where people ask for few rows, they see those; of gaps, the command shows so many of all together.
    if all(table.num_rows <= 10 for table in answer) and "top" in options and method != "gaps":
        assert str(answer) == command([method, *words, path])[0]


@pytest.mark.parametrize(("method", "options", "words"), ON_DEMO)
def test_on_the_demo(method: str, options: dict[str, Any], words: list[str]) -> None:
    compare(DEMO, method, options, words)


@pytest.mark.parametrize(("method", "options", "words"), ON_KERNEL)
def test_on_a_kernel_trace(method: str, options: dict[str, Any], words: list[str]) -> None:
    compare(corpus(KERNEL), method, options, words)


def test_bounds_where_events_were_lost() -> None:
    answer = kymograph.open(corpus("ctf/tracecompass/hello-lost")).gaps()
    assert answer.report.losses is not None and answer.report.losses in repr(answer)
    with pytest.warns(kymograph.LossWarning, match="the tracer reports"):
        kymograph.open(corpus("ctf/tracecompass/hello-lost")).print(io.StringIO(), format="none")


def test_states_of_an_instant() -> None:
    path = corpus(KERNEL)
    trace = kymograph.open(path)
    begin, end = trace.info().begin_ns, trace.info().end_ns
    assert begin is not None and end is not None
    at = (begin + end) // 2
    ours = trace.state_at(at, top=3)
    theirs = json.loads(command(["state", f"--at={at // 10**9}.{at % 10**9:09}", "--top=3", "--json", path])[0])
    assert [table.num_rows for table in ours] == [len(table["rows"]) for table in theirs["tables"]]
    with pytest.raises(kymograph.QuestionError, match="the trace is from"):
        trace.state_at(0)
    with pytest.raises(kymograph.UnanswerableError, match="thread_switch"):
        kymograph.open(DEMO).state_at(0)


def test_the_cache_is_where_it_was_asked_for(tmp_path: pathlib.Path) -> None:
    path = corpus(KERNEL)
    begin = kymograph.open(path).info().begin_ns
    assert begin is not None
    kymograph.open(path, cache=tmp_path / "mine").state_at(begin)
    assert list((tmp_path / "mine").rglob("*.runs"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path / "default")
    kymograph.open(path, cache=False).state_at(begin)
    assert not (tmp_path / "default").exists()
    kymograph.open(path).state_at(begin)
    assert list((tmp_path / "default" / "kymograph").rglob("*.runs"))


def test_own_analyses_of_files(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text('name = "jobs"\n[[pairs]]\nname = "job"\nbegin = "jobs:begin"\nend = "jobs:end"\nkey = "id"\n')
    trace = kymograph.open(DEMO)
    said = json.loads(command(["analyse", str(file), "--json", DEMO])[0])
    answer = trace.analyse(file)
    assert [table.name for table in answer] == [table["class"] for table in said["tables"]]
    assert [table.num_rows for table in answer] == [len(table["rows"]) for table in said["tables"]]


def test_counts() -> None:
    said = json.loads(command(["count", "--json", "--by=class,stream", "--sizes", DEMO])[0])
    table = kymograph.open(DEMO).count(by=["class", "stream"], sizes=True)["count"]
    names = table.schema.names
    assert [dict(zip(names, row, strict=True)) for row in table.rows()] == said["groups"]
    assert str(kymograph.open(DEMO).count()) == command(["count", DEMO])[0]


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("cpu", {}, ["cpu"]),
        ("rates", {"where": "queue_dept > 3"}, ["rates", "--filter=queue_dept > 3"]),
        ("rates", {"where": "queue_depth >"}, ["rates", "--filter=queue_depth >"]),
        ("gaps", {"by": "colour"}, ["gaps", "--by=colour"]),
        ("gaps", {"min": "2ms", "max": "1ms"}, ["gaps", "--min=2ms", "--max=1ms"]),
        ("gaps", {"begin": 2, "end": 1}, ["gaps", "--begin=0.000000002", "--end=0.000000001"]),
        ("gaps", {"min_size": 5}, ["gaps", "--min-size=5"]),
        ("gaps", {"top": "many"}, ["gaps", "--top=many"]),
        ("rates", {"period": "job : "}, ["rates", "--period=job : "]),
        ("rates", {"begin": "soon"}, ["rates", "--begin=soon"]),
        ("pairs", {"start": "jobs:begin"}, ["pairs", "--start=jobs:begin"]),
        ("analyse", {"analysis": "nowhere.toml"}, ["analyse", "nowhere.toml"]),
        ("rates", {"roles": "nowhere.toml"}, ["rates", "--roles=nowhere.toml"]),
        ("state_at", {"at": "99999-01-01 00:00"}, ["state", "--at=99999-01-01 00:00"]),
    ],
)
def test_errors_are_the_commands(method: str, options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(kymograph.Error) as caught:
        getattr(kymograph.open(DEMO), method)(**options)
    said = command([*words, DEMO])[1]
    assert said.startswith(f"error: {caught.value}"), said
    rest = said.removeprefix(f"error: {caught.value}").strip()
    assert rest == "" or rest.startswith(("Usage:", "For more information")), rest


def test_options_that_there_are_not(trace: kymograph.Trace) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        trace.cpu(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="negative"):
        trace.gaps(min=-1)
    assert issubclass(kymograph.QuestionError, ValueError)


def test_what_means_nothing_is_a_warning(trace: kymograph.Trace) -> None:
    with pytest.warns(kymograph.QuestionWarning, match="no event record class is called `nothing`") as caught:
        trace.count(event=["nothing", "jobs:*"])
    assert caught[0].filename == __file__


def test_tables_are_found_by_name(trace: kymograph.Trace) -> None:
    answer = trace.pairs(**PAIRS)  # type: ignore[arg-type]
    assert answer.all("total") == [answer["total"]] == [answer.tables[0]]
    with pytest.raises(KeyError, match="there are: "):
        answer["nothing"]
    assert "total" in answer and "nothing" not in answer


def test_several_tables_of_a_name(trace: kymograph.Trace) -> None:
    answer = trace.periods(period=JOB, period_captures="job : kind=kind", group_by="job.kind")
    assert len(answer.all("distribution")) > 1
    with pytest.raises(KeyError, match="all"):
        answer["distribution"]


def test_what_one_reader_answers_needs_no_cluster() -> None:
    kernel = kymograph.open(corpus(KERNEL))
    with ThreadPoolExecutor(2) as pool:
        assert str(kernel.analyze("count", client=pool)) == str(kernel.count())
        assert str(kernel.analyze("cpu", client=pool, period="5s", by="cpu")) == str(kernel.cpu(period="5s", by="cpu"))
        begin = kernel.info().begin_ns
        assert begin is not None
        assert str(kernel.analyze("state", client=pool, at=begin + 10**9)) == str(kernel.state_at(begin + 10**9))
        opened = {"period": ["run : sched_switch if next_tid != 0 : sched_switch if prev_tid == $begin.next_tid"]}
        assert str(kernel.analyze("periods", client=pool, **opened)) == str(kernel.periods(**opened))  # type: ignore[arg-type]


def test_notebooks_show_them(trace: kymograph.Trace) -> None:
    html = trace.pairs(**PAIRS)._repr_html_()  # type: ignore[arg-type]
    assert "<table" in html and "complete" in html
    shown = trace._repr_html_()
    assert shown.count("px solid;opacity") == len([bits for bits in trace.info().density_bits if bits])
    assert "role='img'" in shown and "2,400" in shown


def test_findings_of_files() -> None:
    assert kymograph.open(DEMO).verify() == []
    said = json.loads(command(["check", "--json", "nowhere"])[0])["findings"]
    ours = [vars(finding) for finding in kymograph.findings("nowhere")]
    assert ours == said
