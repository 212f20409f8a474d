"""Mistakes are told in a sentence that says what was found, and what could stand there."""

import datetime

import pytest

import kymograph
from conftest import DEMO


class Jobs(kymograph.Analysis[int, int]):
    events, columns = "jobs:begin", ("worker",)

    def init(self) -> int:
        return 0

    def step(self, state: int, batch: kymograph.Batch) -> int:
        return state + len(batch["worker"])


class Mistyped(Jobs):
    def step(self, state: int, batch: kymograph.Batch) -> int:
        return state + len(batch["wroker"])


class OneName(Jobs):
    columns = "worker"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("kymograph.open(5)", TypeError, "not int"),
        ("kymograph.open([DEMO, None])", TypeError, "not NoneType"),
        ("kymograph.open(DEMO, threads=-1)", ValueError, "so many threads cannot read: -1"),
        ("kymograph.open(DEMO, clock_shift='1s')", TypeError, "nanoseconds or a timedelta, not '1s'"),
        ("kymograph.open(DEMO, trace_offsets={DEMO: '1s'})", TypeError, "nanoseconds or a timedelta, not '1s'"),
        ("trace.events(columns='time')", TypeError, r"columns are a list of names: \['time'\]"),
        ("trace.events(begin=1.5)", TypeError, "a time is text, nanoseconds, a datetime or a numpy.datetime64, not 1.5"),
        ("trace.events(begin=datetime.date(2026, 11, 21))", TypeError, "not datetime.date"),
        ("trace.rates(period=1.5)", TypeError, "a length of time is text, nanoseconds or a timedelta, not 1.5"),
        ("batch['wroker']", KeyError, "there is no column 'wroker'; there are: time, cycles, stream, .*worker"),
        ("batch.to_numpy('wroker')", KeyError, "there is no column 'wroker'"),
        ("trace.analyze('cpuu')", kymograph.QuestionError, "`cpuu` is no analysis; there are: cpu, "),
        ("trace.analyze('export')", kymograph.QuestionError, "`export` is no analysis"),
        ("trace.analyze('cpu', client=5)", TypeError, "not int"),
        ("trace.analyze('pairs', tpo=3)", TypeError, r"pairs\(\) got an unexpected keyword argument 'tpo'"),
        ("trace.run('cpu')", TypeError, "is a kymograph.Analysis, or a class that is one; this is 'cpu'"),
        ("trace.run(Mistyped)", KeyError, "there is no column 'wroker'; there are: worker"),
        ("trace.run(OneName)", TypeError, r"columns are a list of names: \['worker'\]"),
        ("Jobs().merge(1, 2)", NotImplementedError, r"Jobs has no merge\(\)"),
    ],
)
def test_what_is_said(trace: kymograph.Trace, what: str, error: type[Exception], message: str) -> None:
    names = {**globals(), "trace": trace, "batch": next(iter(trace.events("jobs:begin"))), "datetime": datetime, "DEMO": DEMO}
    with pytest.raises(error, match=message):
        eval(what, names)


def test_paths_are_of_any_kind() -> None:
    assert kymograph.open(DEMO.encode()).info().packets == 17  # type: ignore[arg-type]


def test_rows_are_cut_as_those_of_lists(trace: kymograph.Trace) -> None:
    batch = next(iter(trace.events("jobs:begin", columns=["id"])))
    rows = batch.rows()
    for begin, end in ((0, None), (-5, None), (5, 3), (-1_000, 2), (398, 1_000), (None, None)):
        assert batch.rows(begin, end) == rows[begin:end]
