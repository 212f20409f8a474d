"""Own analyses: the same result on any number of threads, and a check that finds those for which that is not so."""

import collections
import pathlib
import threading
from typing import Any

import pyarrow
import pytest

import kymograph
from conftest import DEMO, corpus
from made import made


class ByName(kymograph.Analysis[dict[str, int], dict[str, int]]):
    """It counts."""

    columns = ["name"]

    def init(self) -> dict[str, int]:
        return collections.Counter()

    def step(self, state: dict[str, int], batch: kymograph.Batch) -> None:
        state.update(batch["name"])  # type: ignore[arg-type]

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        return left + right  # type: ignore[operator,no-any-return]


class Order(kymograph.Analysis[list[int], list[int]]):
    """It is right only if rows and neighbours keep their order."""

    columns = ["cycles"]

    def init(self) -> list[int]:
        return []

    def step(self, state: list[int], batch: kymograph.Batch) -> list[int]:
        return state + batch["cycles"]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return left + right


class Gaps(kymograph.Analysis[tuple[Any, ...], int]):
    """The longest time without an event: what lies between two pieces is known by their edges."""

    columns = ["cycles"]

    def init(self) -> tuple[Any, ...]:
        return (None, None, 0)

    def step(self, state: tuple[Any, ...], batch: kymograph.Batch) -> tuple[Any, ...]:
        cycles = batch["cycles"]
        longest = max((after - before for before, after in zip(cycles, cycles[1:], strict=False)), default=0)
        return self.merge(state, (cycles[0], cycles[-1], longest))

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if left[0] is None or right[0] is None:
            return left if right[0] is None else right
        return (left[0], right[1], max(left[2], right[2], right[0] - left[1]))

    def finish(self, state: tuple[Any, ...]) -> int:
        return int(state[2])


class GapsInPieces(Gaps):
    """It forgets what lies between two pieces."""

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if left[0] is None or right[0] is None:
            return left if right[0] is None else right
        return (left[0], right[1], max(left[2], right[2]))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("part", ["", "ctf/babeltrace/succeed/lttng-tracefile-rotation/kernel"])
def test_any_number_of_threads(part: str, threads: int) -> None:
    trace = kymograph.open(corpus(part) if part else DEMO, threads=threads)
    count = trace.count()["count"]
    with_losses = trace.count().report.losses is not None
    context = pytest.warns(kymograph.LossWarning) if with_losses else _nothing()
    with context:
        assert trace.run(ByName) == dict(zip(count["class"], count["events"], strict=True))
    if not with_losses and sum(count["events"]) < 100_000:
        times = [value for batch in trace.events(columns=["cycles"]) for value in batch["cycles"]]
        assert trace.run(Order) == times
        assert trace.run(Gaps()) == max(after - before for before, after in zip(times, times[1:], strict=False))


class _nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def test_slices_are_more_than_one(tmp_path: pathlib.Path) -> None:
    """What is cut is cut: otherwise these tests say nothing."""
    trace = kymograph.open(made(tmp_path / "trace", packets=96), threads=2)
    seen: set[str] = set()

    class Threads(ByName):
        def init(self) -> dict[str, int]:
            seen.add(threading.current_thread().name)
            return super().init()

    assert trace.run(Threads) == {"tick": 96 * 4096 * 2}
    assert len(seen) == 2
    wanted = [cycles for batch in trace.events(columns=["cycles"], end=400_000) for cycles in batch["cycles"]]
    assert trace.run(Order, end=400_000) == wanted == sorted(wanted)
    trace.check(Gaps, rounds=1, end=100_000)


def test_a_span(trace: kymograph.Trace) -> None:
    begin = trace.info().begin_ns
    assert begin is not None
    end = begin + 20_000_000
    assert sum(trace.run(ByName, end=end).values()) == sum(map(len, trace.events(end=end))) < 2400


def test_those_that_are_right_pass(trace: kymograph.Trace) -> None:
    for analysis in [ByName, Order, Gaps]:
        trace.check(analysis, rounds=3)


def test_the_first_difference_is_shown(trace: kymograph.Trace) -> None:
    with pytest.raises(kymograph.CheckError) as caught:
        trace.check(GapsInPieces, cuts=2000, seed=3)
    again = pytest.raises(kymograph.CheckError)
    with again as second:
        trace.check(GapsInPieces, cuts=2000, seed=caught.value.seed)
    assert str(second.value) == str(caught.value)
    assert "in one piece and" in caught.value.difference
    assert len(caught.value.cuts) == 2000 and "seed=3" in str(caught.value)


def test_order_of_neighbours_is_checked(trace: kymograph.Trace) -> None:
    class Backwards(Order):
        def merge(self, left: list[int], right: list[int]) -> list[int]:
            return right + left

    with pytest.raises(kymograph.CheckError, match=r"result\[\d+\] is"):
        trace.check(Backwards)


def test_results_of_any_kind_are_compared(trace: kymograph.Trace) -> None:
    from kymograph._own import first_difference

    table = pyarrow.table({"x": [1, 2]})
    other = pyarrow.table({"x": [1, 3]})
    assert first_difference(table, pyarrow.table({"x": [1, 2]})) is None
    assert first_difference(table, other) == "result['x'][1] is 2 in one piece and 3 in several"
    assert first_difference({"a": [1.0]}, {"a": [1.0 + 1e-12]}, tolerance=1e-9) is None
    assert first_difference({"a": [1.0]}, {"a": [1.0 + 1e-12]}) is not None
    assert first_difference({"a": 1}, {}) == "result['a'] is 1 in one piece and missing in several"
    assert first_difference([1], [1, 2]) == "result has 1 items in one piece and 2 in several"
    assert first_difference(float("nan"), float("nan")) is None


def test_what_an_analysis_raises_is_raised(trace: kymograph.Trace) -> None:
    class Broken(ByName):
        def step(self, state: dict[str, int], batch: kymograph.Batch) -> None:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        trace.run(Broken)


def test_results_of_trees() -> None:
    """Neighbours are merged in order, whenever they come, and always in the same tree."""
    import itertools

    from kymograph._own import Tree

    for count in range(1, 7):
        shapes = set()
        for order in itertools.permutations(range(count)):
            tree: Tree[str] = Tree(count, lambda left, right: f"({left}{right})")
            for place in order:
                tree.add(place, str(place))
            shapes.add(tree.top())
        (shape,) = shapes
        assert [digit for digit in shape if digit.isdigit()] == [str(place) for place in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
def test_losses_are_told(threads: int) -> None:
    """A result has no report."""
    trace = kymograph.open(corpus("ctf/tracecompass/hello-lost"), threads=threads)
    counted = trace.count()
    with pytest.warns(kymograph.LossWarning) as caught:
        assert sum(trace.run(ByName).values()) == sum(counted["count"]["events"])
    assert [str(each.message) for each in caught] == [counted.report.losses]
