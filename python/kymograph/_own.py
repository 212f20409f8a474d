"""Analyses of your own: init, step, merge, finish.

::

    chunk 0 ──step, step, ...──> state ─┐
    chunk 1 ──step, step, ...──> state ─┴─merge─┐
    chunk 2 ──step, step, ...──> state ─┐       ├─merge──> state ──finish──> result
    chunk 3 ──step, step, ...──> state ─┴─merge─┘

``step`` receives the batches of a chunk in time order; ``merge`` receives the states of neighboring chunks, the
earlier one first.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from kymograph._errors import CheckError, UnsliceableError
from kymograph._report import Report
from kymograph._tables import Batch
from kymograph._words import names

if TYPE_CHECKING:
    from kymograph import _native
    from kymograph._events import Events
    from kymograph._trace import Trace

State = TypeVar("State")
Result = TypeVar("Result")


class Analysis(Generic[State, Result]):
    """Base class of your own analyses. `Trace.run` runs one on all cores; `Trace.check` tests it.

    >>> class Busiest(kymograph.Analysis[dict[int, int], list[int]]):
    ...     "The workers with most jobs."
    ...     events = "jobs:begin"
    ...     columns = ("worker",)
    ...
    ...     def init(self):
    ...         return {}
    ...
    ...     def step(self, state, batch):
    ...         for worker in batch["worker"]:
    ...             state[worker] = state.get(worker, 0) + 1
    ...
    ...     def merge(self, left, right):
    ...         for worker, jobs in right.items():
    ...             left[worker] = left.get(worker, 0) + jobs
    ...
    ...     def finish(self, state):
    ...         return sorted(state, key=lambda worker: (-state[worker], worker))
    >>> trace.run(Busiest)[:2]
    [0, 1]
    >>> trace.check(Busiest)

    Several threads step at once, each a state of its own; so an analysis must not change itself. The interpreter's lock is
    held in your code alone: packets are read and decoded on all cores meanwhile.
    """

    #: Names of the events that it looks at; ``*`` is any text. ``None``: all.
    events: ClassVar[str | Sequence[str] | None] = None
    #: Looks only at events for which this expression is true.
    where: ClassVar[str | None] = None
    #: The columns that it needs. ``None``: all that there are.
    columns: ClassVar[Sequence[str] | None] = None

    def init(self) -> State:
        """The state before the first row."""
        raise NotImplementedError(f"{type(self).__name__} has no init()")

    def step(self, state: State, batch: Batch) -> State | None:
        """The state after the rows of a batch; ``None``: ``state`` itself, changed in place."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def merge(self, left: State, right: State) -> State | None:
        """The merged state of two neighbors, the earlier one first; ``None``: ``left``, changed in place."""
        raise NotImplementedError(f"{type(self).__name__} has no merge()")

    def finish(self, state: State) -> Result:
        """The result. It may be called several times, and must not change the state."""
        return state  # type: ignore[return-value]


def made(analysis: type[Analysis[State, Result]] | Analysis[State, Result]) -> Analysis[State, Result]:
    """The analysis itself; makes one if its class is given."""
    one = analysis() if isinstance(analysis, type) else analysis
    if not isinstance(one, Analysis):
        raise TypeError(f"an analysis of your own is a kymograph.Analysis, or a class that is one; this is {analysis!r}")
    names(one.columns)
    return one


def events_of(trace: Trace, analysis: Analysis[Any, Any], span: Mapping[str, Any]) -> Events:
    """The rows that an analysis reads."""
    return trace.events(analysis.events, where=analysis.where, columns=analysis.columns, **span)


def stepped(analysis: Analysis[State, Any], batches: Iterable[Batch]) -> State:
    """The state after these batches."""
    state = analysis.init()
    for batch in batches:
        changed = analysis.step(state, batch)
        state = state if changed is None else changed
    return state


def merged(analysis: Analysis[State, Any], left: State, right: State) -> State:
    """The merged state of two neighbors."""
    both = analysis.merge(left, right)
    return left if both is None else both


class Tree(Generic[State]):
    """Merges states of neighbors as a tree, as soon as both are there. In any order of arrival, the
    tree has the same shape: it only merges neighbors.

    ::

        0 ─┐
        1 ─┴─┐        level 1, place 0
        2 ─┐ ├─ ...   level 2, place 0
        3 ─┴─┘        level 1, place 1
    """

    def __init__(self, count: int, merge: Callable[[State, State], State]) -> None:
        self._merge = merge
        self._widths = [count]
        while self._widths[-1] > 1:
            self._widths.append((self._widths[-1] + 1) // 2)
        self._waiting: dict[tuple[int, int], State] = {}

    def add(self, place: int, state: State) -> None:
        """Adds the state of one part."""
        level = 0
        while level + 1 < len(self._widths):
            beside = place ^ 1
            if beside < self._widths[level]:
                if (level, beside) not in self._waiting:
                    break
                other = self._waiting.pop((level, beside))
                state = self._merge(state, other) if place < beside else self._merge(other, state)
            level, place = level + 1, place // 2
        self._waiting[level, place] = state

    def top(self) -> State:
        """The merged state of all parts."""
        (state,) = self._waiting.values()
        return state


def run(trace: Trace, analysis: Analysis[State, Result], threads: int, span: Mapping[str, Any]) -> tuple[Result, Report]:
    """Runs an analysis on several threads; returns its result and a report on missing data."""
    threads = threads or os.cpu_count() or 1
    events = events_of(trace, analysis, span)
    try:
        state, report = _in_chunks(events, analysis, threads)
    except UnsliceableError:
        # Now it is known that one chunk has to do.
        state, report = _in_chunks(events, analysis, threads)
    return analysis.finish(state), report


def _in_chunks(events: Events, analysis: Analysis[State, Any], threads: int) -> tuple[State, Report]:
    count = events._native.cut(threads)
    if count == 0:
        return analysis.init(), Report()
    tree: Tree[State] = Tree(count, lambda left, right: merged(analysis, left, right))
    reports = [Report()] * count

    reading: set[_native.Stream] = set()
    is_over = False

    def chunk(number: int) -> tuple[int, State]:
        stream = events._native.chunk(number)
        reading.add(stream)
        if is_over:
            stream.close()
        state = stepped(analysis, map(Batch, stream))
        reports[number] = Report._of(stream.report())
        reading.discard(stream)
        return number, state

    if count == 1 or threads == 1:
        for number in range(count):
            tree.add(*chunk(number))
        return tree.top(), sum(reports, Report())
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    numbers = iter(range(count))
    with ThreadPoolExecutor(threads, "kymograph") as pool:
        # Few are begun ahead, so that states of neighbours meet soon and few have to wait.
        running: set[Future[tuple[int, State]]] = set()
        try:
            while True:
                running |= {pool.submit(chunk, number) for _, number in zip(range(threads - len(running)), numbers)}
                if not running:
                    return tree.top(), sum(reports, Report())
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    tree.add(*each.result())
        except BaseException:
            # Nobody waits for what the others read, but the pool waits for them.
            is_over = True
            for stream in list(reading):
                stream.close()
            raise


def check(
    trace: Trace, analysis: Analysis[Any, Any], cuts: int, rounds: int, seed: int | None, tolerance: float, span: Mapping[str, Any]
) -> None:
    """Raises `CheckError` if pieces give another result than the whole."""
    seed = random.randrange(1 << 32) if seed is None else seed
    events = events_of(trace, analysis, span)
    rows = 0

    def counted() -> Iterator[Batch]:
        nonlocal rows
        for batch in events:
            rows += len(batch)
            yield batch

    whole = analysis.finish(stepped(analysis, counted()))
    chunked, _ = run(trace, analysis, 4, span)
    _compare(whole, chunked, tolerance, (), seed)
    chance = random.Random(seed)
    for _ in range(rounds):
        # Some pieces may be empty, as parts of a trace may be.
        ends = sorted(chance.randint(0, rows) for _ in range(cuts))
        states = [stepped(analysis, piece) for piece in _pieces(events, ends)]
        while len(states) > 1:
            # In whatever order neighbours are merged.
            left = chance.randrange(len(states) - 1)
            states[left : left + 2] = [merged(analysis, states[left], states[left + 1])]
        _compare(whole, analysis.finish(states[0]), tolerance, tuple(ends), seed)


def _pieces(events: Events, ends: Sequence[int]) -> Iterator[Iterator[Batch]]:
    """The rows up to each end, and those after the last end. Use up each piece before you take the next."""
    batches = iter(events)
    rest: list[Batch] = []
    begin = 0

    def piece(count: float) -> Iterator[Batch]:
        while count > 0:
            batch = rest.pop() if rest else next(batches, None)
            if batch is None:
                return
            if len(batch) > count:
                rest.append(Batch(batch._native.slice(int(count), len(batch))))
                batch = Batch(batch._native.slice(0, int(count)))
            count -= len(batch)
            yield batch

    for end in ends:
        yield piece(end - begin)
        begin = end
    yield piece(math.inf)


def _compare(whole: object, pieces: object, tolerance: float, cuts: tuple[int, ...], seed: int) -> None:
    difference = first_difference(whole, pieces, tolerance)
    if difference:
        raise CheckError(difference, cuts, seed)


def first_difference(whole: Any, pieces: Any, tolerance: float = 0.0, where: str = "result") -> str | None:
    """Description of the first difference between two results."""
    said = f"{where} is {_short(whole)} in one piece and {_short(pieces)} in several"
    if hasattr(whole, "__arrow_c_stream__") and hasattr(pieces, "__arrow_c_stream__"):
        return first_difference(_plain(whole), _plain(pieces), tolerance, where)
    if type(whole).__module__.split(".")[0] == "numpy" and hasattr(whole, "tolist") and hasattr(pieces, "tolist"):
        return first_difference(whole.tolist(), pieces.tolist(), tolerance, where)
    if isinstance(whole, Mapping) and isinstance(pieces, Mapping):
        for key in whole:
            if key not in pieces:
                return f"{where}[{key!r}] is {_short(whole[key])} in one piece and missing in several"
        for key in pieces:
            if key not in whole:
                return f"{where}[{key!r}] is missing in one piece and {_short(pieces[key])} in several"
        return _first(first_difference(whole[key], pieces[key], tolerance, f"{where}[{key!r}]") for key in whole)
    if isinstance(whole, (list, tuple)) and isinstance(pieces, (list, tuple)):
        both = zip(whole, pieces, strict=False)
        inside = _first(first_difference(*each, tolerance, f"{where}[{index}]") for index, each in enumerate(both))
        if inside is None and len(whole) != len(pieces):
            return f"{where} has {len(whole)} items in one piece and {len(pieces)} in several"
        return inside
    if isinstance(whole, float) and isinstance(pieces, float):
        is_same = math.isclose(whole, pieces, rel_tol=tolerance, abs_tol=0.0) or (math.isnan(whole) and math.isnan(pieces))
        return None if is_same else said
    if "__eq__" not in _methods(whole) and type(whole) is type(pieces) and hasattr(whole, "__dict__"):
        return first_difference(vars(whole), vars(pieces), tolerance, where)
    return None if bool(whole == pieces) else said


def _methods(value: object) -> set[str]:
    """Methods that its class and base classes define, without those of `object`."""
    return {name for each in type(value).__mro__[:-1] for name in vars(each)}


def _first(differences: Iterable[str | None]) -> str | None:
    return next((each for each in differences if each), None)


def _plain(columns: Any) -> dict[str, list[Any]]:
    import pyarrow

    plain: dict[str, list[Any]] = pyarrow.table(columns).to_pydict()
    return plain


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
