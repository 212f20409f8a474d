"""Analyses on other processes and machines: parts of a question go out, encoded states come back.

::

    plan ──> parts ──read, anywhere──> what is known of each ──finish, while the others are read──> answer

`Trace.analyze` does this on a Dask cluster or on an executor of `concurrent.futures`. Other systems that run functions
elsewhere need two functions, `read` and `Plan.finish`:

>>> plan = kymograph.cluster.plan(kernel, "io", readers=8)  # doctest: +SKIP
>>> answer = plan.finish(pool.map(kymograph.cluster.read, plan.parts))  # doctest: +SKIP

Each reader opens the traces by itself, by their paths, and keeps them open; it refuses other traces than those that were shared
out. What is sent are states of analyses, never events.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import operator
import os
import pickle
import sys
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar

from kymograph import _own
from kymograph._answer import Answer
from kymograph._errors import ReadError, UnsliceableError
from kymograph._own import Analysis, Tree, merged, stepped
from kymograph._report import Report
from kymograph._tables import Batch
from kymograph._words import StrPath, words

if TYPE_CHECKING:
    from kymograph import _native
    from kymograph._trace import Trace

Result = TypeVar("Result")

__all__ = ["Known", "Part", "Plan", "merge", "plan", "read"]

#: Questions whose traces a process keeps open.
_OPEN_MAX = 8


@dataclass(frozen=True)
class Question:
    """A question and its traces: everything that a reader needs."""

    #: Where the traces are, and how they are opened.
    paths: tuple[str, ...]
    clock_shift_ns: int
    trace_offsets: tuple[tuple[str, int], ...]
    imported: tuple[str | None, int | None]
    cache: str | bool
    #: The words of a command, or those that say which events an analysis of somebody's own gets.
    line: tuple[str, ...]
    #: That analysis, pickled.
    own: bytes | None
    columns: tuple[str, ...] | None


@dataclass(frozen=True)
class Part:
    """A part of a question, as an argument for `read`; it can be pickled and takes a few hundred bytes."""

    question: Question = _field(repr=False)
    #: Its place in the order of time.
    number: int
    _share: bytes = _field(repr=False)


@dataclass(frozen=True)
class Known:
    """The result of one part, or of several consecutive parts, for `Plan.finish`; it can be pickled."""

    question: Question = _field(repr=False)
    #: The first part, and the one behind the last one.
    first: int
    end: int
    #: An encoded state of an analysis of the command, or a pickled one of somebody's own.
    _state: bytes = _field(repr=False)
    _report: Report = _field(repr=False)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # States may be large: whoever sends buffers as they are need not copy this one.
        state = pickle.PickleBuffer(self._state) if operator.index(protocol) >= 5 else self._state
        return _received, (self.question, self.first, self.end, state, self._report)


def _received(question: Question, first: int, end: int, state: Any, report: Report) -> Known:
    return Known(question, first, end, bytes(state), report)


def read(part: Part) -> Known:
    """Reads a part on this thread. A part depends on no other one, so you can repeat the call, or make it elsewhere.

    Raises:
        OpenError: There are no traces at the paths here.
        OtherTraceError: They differ from the traces of the plan.
        UnsliceableError: They cannot be read in parts.
    """
    _keep_memory()
    try:
        state, report = _reader(part.question).read(part._share)
    except ReadError as error:
        if isinstance(error, UnsliceableError):
            raise
        # They may have changed since they were opened.
        state, report = _reader(part.question, again=True).read(part._share)
    return Known(part.question, part.number, part.number + 1, state, report)


@functools.cache
def _keep_memory() -> None:
    """In a process that was started to work for another one: what a part took in memory stays for the next one. glibc would
    give it back to the kernel each time, and fetching it again page by page takes a quarter of the time that reading does.
    """
    if multiprocessing.parent_process() is None or sys.platform != "linux":
        return
    import ctypes

    trim_threshold, mmap_threshold = -1, -3
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(mmap_threshold, 1 << 30)
        library.mallopt(trim_threshold, (1 << 31) - 1)


def merge(*known: Known) -> Known:
    """Merges the results of consecutive parts, in order, before all parts are there.

    >>> plan = kymograph.cluster.plan(kernel, "cpu", readers=8)  # doctest: +SKIP
    >>> kymograph.cluster.merge(*map(kymograph.cluster.read, plan.parts[1:3]))  # doctest: +SKIP
    Known(first=1, end=3)
    """
    if not known:
        raise ValueError("there is nothing to merge")
    for left, right in zip(known, known[1:]):
        if left.question != right.question:
            raise ValueError("these are parts of several questions")
        if left.end != right.first:
            raise ValueError(f"part {left.end} is missing: what comes next begins with part {right.first}")
    if len(known) == 1:
        return known[0]
    state = _reader(known[0].question).merge([each._state for each in known])
    report = sum((each._report for each in known), Report())
    return Known(known[0].question, known[0].first, known[-1].end, state, report)


class Plan(Generic[Result]):
    """A question that is divided into parts; `plan` makes it."""

    def __init__(
        self, question: Question, shares: Sequence[bytes], finish: Callable[[Iterator[Known], int], Result]
    ) -> None:
        #: All parts, in the order of time. In whatever order they are read.
        self.parts: tuple[Part, ...] = tuple(Part(question, number, share) for number, share in enumerate(shares))
        self._finish = finish

    def finish(self, known: Iterable[Known]) -> Result:
        """The answer, from the results of all parts, in any order. Other threads merge them as they come.

        Raises:
            ValueError: Parts are missing, or there twice.
        """
        with contextlib.closing(self._checked(known)) as checked:
            return self._finish(checked, len(self.parts))

    def _checked(self, known: Iterable[Known]) -> Generator[Known]:
        """Checks that each part is there exactly once."""
        spans: list[tuple[int, int]] = []
        for each in known:
            place = bisect_left(spans, (each.first, each.end))
            before = spans[place - 1][1] if place else 0
            if before > each.first or place < len(spans) and spans[place][0] < each.end:
                raise ValueError(f"part {each.first if before > each.first else spans[place][0]} is there twice")
            spans.insert(place, (each.first, each.end))
            yield each
        end = 0
        for first, behind in [*spans, (len(self.parts), 0)]:
            if first != end:
                raise ValueError(f"part {end} is missing")
            end = behind

    def __repr__(self) -> str:
        return f"<kymograph.cluster.Plan: {len(self.parts)} parts>"


def plan(
    trace: Trace,
    what: str | type[Analysis[Any, Result]] | Analysis[Any, Result],
    *,
    readers: int,
    paths: StrPath | Sequence[StrPath] | None = None,
    **options: Any,
) -> Plan[Any]:
    """Divides a question into parts.

    Args:
        what: The name of an analysis of the command (``"cpu"``, ``"io"``, ...), or one of your own.
        readers: Number of readers at the same time: there are several parts for each of them.
        paths: Paths of the traces for the readers, if they differ from those of `trace`; ``file:`` URLs are paths.
        options: Options of the analysis; for your own analyses ``begin`` and ``end``.

    Raises:
        UnsliceableError: The traces cannot be read in parts.
    """
    where = trace.paths if paths is None else [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    own: bytes | None = None
    columns: tuple[str, ...] | None = None
    analysis = None if isinstance(what, str) else _own.made(what)
    session = trace._session
    options = _settled(session, options)
    if analysis is None:
        line = (str(what), *words(str(what), options, options))
        shares, _ = session.shares(line)
        split = shares.split(readers)
        finish: Callable[[Iterator[Known], int], Any] = _finisher(str(what), shares)
    else:
        own = _pickled(analysis)
        columns = None if analysis.columns is None else tuple(analysis.columns)
        chosen = {"event": analysis.events, "where": analysis.where, **options}
        line = tuple(words("events", chosen, chosen))
        events, _ = session.events(line, columns, False)
        finish = _own_finisher(analysis)
        split = events.shares(readers)
    at = tuple(os.path.abspath(path) for path in map(_path, where))
    offsets = _offsets_at(trace, at)
    question = Question(at, trace._clock_shift_ns, offsets, trace._import, trace._cache, line, own, columns)
    return Plan(question, split, finish)


def _path(path: StrPath) -> str:
    from kymograph._trace import local_path

    return local_path(path)


def _offsets_at(trace: Trace, at: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The offsets of single traces, by their paths for the readers."""
    opened = tuple(map(os.path.abspath, trace.paths))
    offsets = sorted((os.path.abspath(path), offset) for path, offset in trace._trace_offsets)
    if at == opened or not offsets:
        return tuple(offsets)
    if len(at) != len(opened):
        raise ValueError(f"there are offsets of single traces: {len(opened)} paths were opened, readers get {len(at)}")
    moved = {}
    # Those of folders come before those of what is below, which count more.
    for path, offset in offsets:
        for before, now in zip(opened, at):
            if os.path.commonpath([path, before]) == before:
                moved[os.path.normpath(os.path.join(now, os.path.relpath(path, before)))] = offset
            elif os.path.commonpath([path, before]) == path:
                moved[now] = offset
    return tuple(moved.items())


def _settled(session: _native.Session, options: Mapping[str, Any]) -> dict[str, Any]:
    """Times of day become nanoseconds here: readers may be in another zone."""
    spans = {name: value for name, value in options.items() if name in ("begin", "end", "gmt")}
    begin, end = session.span(words("lines", spans, spans))
    settled = {name: value for name, value in options.items() if name not in ("begin", "end")}
    settled.update({name: value for name, value in (("begin", begin), ("end", end)) if value is not None})
    return settled


def _finisher(name: str, shares: _native.Shares) -> Callable[[Iterator[Known], int], Answer]:
    def finish(known: Iterator[Known], count: int) -> Answer:
        tables, report, text, _ = shares.finish((each._state for each in known), count)
        return Answer(name, tables, Report._of(report)._warn(), text)

    return finish


def _own_finisher(analysis: Analysis[Any, Result]) -> Callable[[Iterator[Known], int], Result]:
    def finish(arriving: Iterator[Known], count: int) -> Result:
        known = sorted(arriving, key=lambda each: each.first)
        tree: Tree[Any] = Tree(len(known), lambda left, right: merged(analysis, left, right))
        for place, each in enumerate(known):
            # States may change when they are merged, but whoever has them may finish again.
            tree.add(place, pickle.loads(each._state))
        sum((each._report for each in known), Report())._warn(losses=True)
        return analysis.finish(tree.top() if known else analysis.init())

    return finish


def _pickled(value: object) -> bytes:
    """As bytes; classes that other processes cannot import go with what they are made of, where cloudpickle is there."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    pickled: bytes = cloudpickle.dumps(value)
    return pickled


class _Reader:
    """Open traces, for a question of the command."""

    def __init__(self, question: Question) -> None:
        self._asked, _ = _trace(question)._session.shares(list(question.line))

    def read(self, share: bytes) -> tuple[Any, Report]:
        return self._asked.read(share), Report()

    def merge(self, states: list[Any]) -> Any:
        return self._asked.merge(states)


class _OwnReader:
    """Open traces, for an analysis of the user's own."""

    def __init__(self, question: Question) -> None:
        assert question.own is not None
        self._analysis: Analysis[Any, Any] = pickle.loads(question.own)
        columns = None if question.columns is None else list(question.columns)
        self._events, _ = _trace(question)._session.events(list(question.line), columns, False)

    def read(self, share: bytes) -> tuple[Any, Report]:
        stream = self._events.share(share)
        state = stepped(self._analysis, map(Batch, stream))
        return _pickled(state), Report._of(stream.report())

    def merge(self, states: list[Any]) -> Any:
        tree: Tree[Any] = Tree(len(states), lambda left, right: merged(self._analysis, left, right))
        for place, state in enumerate(states):
            tree.add(place, pickle.loads(state))
        return _pickled(tree.top())


def _trace(question: Question) -> Trace:
    from kymograph._trace import Trace

    # Who shares questions out has a reader for each core.
    shift_ns, offsets = question.clock_shift_ns, dict(question.trace_offsets)
    definitions, frequency = question.imported
    return Trace(
        question.paths,
        threads=1,
        clock_shift=shift_ns,
        trace_offsets=offsets,
        definitions=definitions,
        clock_frequency=frequency,
        cache=question.cache,
    )


_lock = threading.Lock()
_open: OrderedDict[tuple[int, Question], _Reader | _OwnReader] = OrderedDict()


def _reader(question: Question, again: bool = False) -> _Reader | _OwnReader:
    """The reader of this process for parts of a question."""
    key = (os.getpid(), question)
    with _lock:
        known = None if again else _open.get(key)
        if known is not None:
            _open.move_to_end(key)
            return known
    made = _Reader(question) if question.own is None else _OwnReader(question)
    with _lock:
        _open[key] = made
        while len(_open) > _OPEN_MAX:
            _open.popitem(last=False)
    return made


def _forget_lock() -> None:
    """Another thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def analyze(
    trace: Trace,
    what: str | type[Analysis[Any, Any]] | Analysis[Any, Any],
    client: Any,
    readers: int | None,
    progress: Callable[[int, int], object] | None,
    retries: int,
    patience: float,
    paths: StrPath | Sequence[StrPath] | None,
    options: Mapping[str, Any],
) -> Any:
    """See `Trace.analyze`."""
    if isinstance(client, Executor):
        count = readers or getattr(client, "_max_workers", None) or os.cpu_count() or 1
        on: Callable[[Plan[Any]], Generator[Known]] = lambda shared: _on_executor(shared, client, progress, retries)
    else:
        if not hasattr(client, "nthreads"):
            raise TypeError(f"client is a Dask client or an executor of concurrent.futures, not {type(client).__name__}")
        from kymograph._dask import on_dask, threads_of

        count = readers or threads_of(client)
        on = lambda shared: on_dask(shared, client, progress, retries, patience)  # noqa: E731
    try:
        shared = plan(trace, what, readers=max(count, 2), paths=paths, **options)
        with contextlib.closing(on(shared)) as known:
            return shared.finish(known)
    except UnsliceableError:
        # One reader has to do, and that may as well be this one.
        return trace.analyze(what, **options)


def _on_executor(
    shared: Plan[Any], executor: Executor, progress: Callable[[int, int], object] | None, retries: int
) -> Generator[Known]:
    """Results of the processes of an executor, as they come."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    def submit(part: Part) -> Future[Known]:
        return executor.submit(read, part)

    waiting = {submit(part): (part, 0) for part in shared.parts}
    count = 0
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                part, tries = waiting.pop(future)
                error = future.exception()
                if isinstance(error, OSError) and tries < retries:
                    waiting[submit(part)] = (part, tries + 1)
                    continue
                known = future.result()
                count += 1
                if progress:
                    progress(count, len(shared.parts))
                yield known
    finally:
        for future in waiting:
            future.cancel()
