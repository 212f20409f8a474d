"""Open traces, and questions to them."""

from __future__ import annotations

import io
import os
import sys

from kymograph import _native
from kymograph._analyses import NAMES, Analyses

# Everything else is imported when it is needed: who opens a trace waits for nothing that answers questions.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta
    from typing import Any, Literal, TypeVar, Unpack

    from kymograph._answer import Answer
    from kymograph._events import Events
    from kymograph._info import Info
    from kymograph._native import Event
    from kymograph._own import Analysis
    from kymograph._sql import Database, Rows
    from kymograph._values import ExportedTable, Finding, SupportsWrite
    from kymograph._words import Offsets, Options, PrintOptions, Size, StateOptions, StrPath, Time

    State = TypeVar("State")
    Result = TypeVar("Result")


def open(  # noqa: A001  (people write kymograph.open)
    path: StrPath | Sequence[StrPath],
    *,
    threads: int = 0,
    clock_shift: int | timedelta = 0,
    trace_offsets: Offsets | None = None,
    definitions: StrPath | None = None,
    clock_frequency: int | None = None,
    cache: StrPath | bool = True,
) -> Trace:
    """Opens one or more traces, to be read as one.

    Args:
        path: A folder with a ``metadata`` file, a folder above such, a single stream file, or an archive of them, as a path
            or a ``file:`` URL; or several of these.
        threads: Number of reading threads; 0: ``KYMO_THREADS``, or one for each core.
        clock_shift: Offset that is added to every clock, in nanoseconds or as a ``timedelta``.
        trace_offsets: Further offsets for the clocks of single traces, by the path of a trace, or of a folder or archive that
            contains traces; the closest path counts.
        definitions: Names of events, for traces with numbers alone (dumps of Barrelfish): a ``.pleco`` file, or the JSON made
            of it; without, a file beside the trace, otherwise built-in names.
        clock_frequency: Cycles per second, for traces that do not say it; without, 1 cycle is 1 ns.
        cache: Folder for results that later calls reuse; ``True``: the command's (`cache_folder`), ``False``: none.

    Raises:
        OpenError: There is no trace, or none that can be understood. Of several, those that can be read are read.

    >>> kymograph.open("examples/traces/demo", threads=1, cache=False).info().packets
    17
    """
    return Trace(
        path,
        threads=threads,
        clock_shift=clock_shift,
        trace_offsets=trace_offsets,
        definitions=definitions,
        clock_frequency=clock_frequency,
        cache=cache,
    )


class Trace(Analyses):
    """One or more open traces; `kymograph.open` makes it.

    Several threads may use it at the same time. You can pickle it (the other process opens the traces itself), and use it
    after a fork.
    """

    def __init__(
        self,
        path: StrPath | Sequence[StrPath],
        *,
        threads: int = 0,
        clock_shift: int | timedelta = 0,
        trace_offsets: Offsets | None = None,
        definitions: StrPath | None = None,
        clock_frequency: int | None = None,
        cache: StrPath | bool = True,
    ) -> None:
        given: Any = path
        is_one = isinstance(given, (str, bytes, os.PathLike)) or not hasattr(given, "__iter__")
        several = [given] if is_one else list(given)
        self._paths = [local_path(each) for each in several]
        if not self._paths:
            raise ValueError("there is no path of a trace")
        if threads < 0:
            raise ValueError(f"so many threads cannot read: {threads}")
        self._threads = threads
        self._clock_shift_ns = _shift_ns(clock_shift)
        offsets = {} if trace_offsets is None else trace_offsets
        self._trace_offsets = tuple((local_path(path), _shift_ns(offset)) for path, offset in offsets.items())
        self._import = import_options(definitions, clock_frequency)
        self._cache = cache if isinstance(cache, bool) else os.fspath(cache)
        self._opened = self._open()
        #: Of each process its own: one that was begun by a parent cannot be asked.
        self._databases: dict[int, Database] = {}

    def _open(self) -> tuple[int, _native.Session]:
        cache = _native.cache_folder() if self._cache is True else self._cache or None
        threads = self._threads or int(os.environ.get("KYMO_THREADS") or 0)
        session = _native.Session(self._paths, threads, self._clock_shift_ns, self._trace_offsets, self._import, cache)
        return os.getpid(), session

    @property
    def _session(self) -> _native.Session:
        """The open session of this process. A session of the parent process is not used."""
        process, session = self._opened
        if process != os.getpid():
            self._opened = process, session = self._open()
        return session

    def __reduce__(self) -> tuple[Any, ...]:
        opened = (self._paths, self._threads, self._clock_shift_ns, self._cache, self._trace_offsets, self._import)
        return _opened_again, opened

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that were opened.

        >>> trace.paths
        ('examples/traces/demo',)
        """
        return tuple(self._paths)

    def info(self, *, exact: bool = False) -> Info:
        """Overview of the traces: from their metadata, the packet index, and a sample of packets.

        Args:
            exact: Counts every event instead of estimating.

        >>> print(trace.info())  # doctest: +ELLIPSIS
        demo  (examples/traces/demo)
          recorded  by lttng-ust 2.13 on vm
        ...
        """
        from kymograph._info import Info

        info = Info._of(*self._session.info(exact))
        info.report._warn()
        return info

    def events(
        self,
        event: str | Sequence[str] | None = None,
        *,
        where: str | None = None,
        begin: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        gmt: bool = False,
        keep_bytes: bool = False,
    ) -> Events:
        """Events as columns, in time order; reading starts when you take the first rows.

        Args:
            event: Names of events; ``*`` is any text, ``?`` any character. ``None``: all.
            where: Only events for which this expression is true, in the language of ``kymo filter``.
            begin: Only events at or after this time: text as for the command, a ``datetime``, a ``numpy.datetime64``, or
                nanoseconds since the clock's origin.
            end: Only events that are not after this.
            columns: Only these columns, in this order. ``None``: ``time``, ``cycles``, ``stream``, ``name`` if there may be
                several, and all fields.
            gmt: Takes times without a zone in UTC instead of the local zone.
            keep_bytes: Gives every text ``x`` a column ``x_bytes`` with the bytes of those that are not valid.

        Raises:
            QuestionError: There are no such events or columns, or the expression is wrong.

        >>> events = trace.events("jobs:end", where="result < 0", columns=["time", "id", "result"])
        >>> events.schema
        Schema(time: Timestamp(ns, "UTC"), id: UInt32, result: Int64)
        >>> [batch.rows() for batch in events][0][:2]
        [(1795219372256911781, 13, -13), (1795219372259533309, 26, -26)]
        """
        from kymograph._events import Events
        from kymograph._words import names, words

        line = words("events", {"event": event, "where": where, "begin": begin, "end": end, "gmt": gmt}, _EVENTS)
        native, warned = self._session.events(line, names(columns), keep_bytes)
        _warn(warned)
        return Events(native, "all" if event is None else repr(event))

    def messages(
        self,
        event: str | Sequence[str] | None = None,
        *,
        where: str | None = None,
        begin: Time | None = None,
        end: Time | None = None,
        gmt: bool = False,
    ) -> Iterator[Event]:
        """Single events in time order, for loops. For the values of many events, columns are faster (`events`).

        Threads read ahead while the iterator exists. An event keeps its whole batch in memory. Warnings about unreadable
        data and losses come at the end.

        Args:
            event: Names of events; ``*`` is any text, ``?`` any character. ``None``: all.
            where: Only events for which this expression is true, in the language of ``kymo filter``.
            begin: Only events that are not before this; see `events`.
            end: Only events that are not after this.
            gmt: Takes times without a zone in UTC instead of the local zone.

        Raises:
            QuestionError: The expression is wrong. Of a name that no event has is warned (`QuestionWarning`).

        >>> for event in trace.messages("jobs:end", where="result < 0"):
        ...     print(event.time, event["id"], event["result"])
        ...     break
        1795219372256911781 13 -13
        """
        from kymograph._words import words

        line = words("events", {"event": event, "where": where, "begin": begin, "end": end, "gmt": gmt}, _EVENTS)
        loop, warned = _native.messages(self._session, line, _warn_at_end)
        _warn(warned)
        return loop

    def __iter__(self) -> Iterator[Event]:
        """All events: ``for event in trace: ...``.

        >>> event = next(iter(trace))
        >>> event.name, event["name"], event.labels("kind")
        ('jobs:submit', 'config.toml', ['CUSTOM'])
        """
        return self.messages()

    def _ask(self, command: str, options: Mapping[str, Any], known: Iterable[str] | None = None, *files: str) -> Answer:
        from kymograph._answer import Answer
        from kymograph._report import Report
        from kymograph._words import words

        line = [command, *words(command, options, _options() if known is None else known), *files]
        tables, report, text, warned = self._session.ask(line)
        _warn(warned)
        return Answer(command, tables, Report._of(report)._warn(stacklevel=4), text)

    def count(
        self,
        *,
        by: str | Sequence[str] = "class",
        event: str | Sequence[str] | None = None,
        where: str | None = None,
        sizes: bool = False,
    ) -> Answer:
        """Number of events by ``class``, ``stream`` or ``trace``; with ``sizes``, also their sizes.

        >>> trace.count()["count"].rows()[:2]
        [('jobs:chunk', 1200, 17999.63...), ('jobs:begin', 400, 5999.87...)]
        >>> trace.count(by="trace", event="jobs:b*")["count"]["events"]
        [400]
        """
        options = {"by": by, "event": event, "where": where, "sizes": sizes}
        return self._ask("count", options, options)

    def pairs(
        self,
        *,
        start: str | Sequence[str] | None = None,
        stop: str | Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        group: str | None = None,
        nested: bool = False,
        **options: Unpack[Options],
    ) -> Answer:
        """Latency between a start event and its matching end event: ``kymo pairs``.

        Args:
            start: Events that begin a pair: ``NAME`` or ``NAME if EXPR``. Without ``start`` and ``stop``, events with the
                roles ``begin`` and ``end``.
            stop: Events that end a pair.
            key: The field that both events share: ``FIELD``, or ``FIELD=FIELD`` if the end event has another name for it.
            group: A field of the begin event; pairs are grouped by it.
            nested: Pairs of one key may be open at the same time, and the last one to begin ends first.

        >>> trace.pairs(start="jobs:begin", stop="jobs:end", key="id")["total"]["count"]
        [400]
        """
        own = {"start": start, "stop": stop, "key": key, "group": group, "nested": nested}
        return self._ask("pairs", own | dict(options), {*own, *_options()})

    def breakdown(
        self,
        *,
        start: str | Sequence[str] | None = None,
        stop: str | Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        step: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Steps of operations: how long each takes, from a start event to its stop event: ``kymo breakdown``.

        Args:
            start: Events that begin an operation: ``NAME`` or ``NAME if EXPR``. Without ``start``, capability operations of
                Barrelfish.
            stop: Events that end an operation.
            key: The field that all events of an operation share: ``FIELD``, or ``FIELD=FIELD`` if the end event has another
                name for it.
            step: Only these events are steps; otherwise every event with the key.

        >>> trace.breakdown(start="jobs:begin", stop="jobs:end", key="id")["steps"]["step"]
        ['jobs:chunk', 'jobs:end']
        """
        own = {"start": start, "stop": stop, "key": key, "step": step}
        return self._ask("breakdown", own | dict(options), {*own, *_options()})

    def periods(
        self,
        *,
        aggregate_by: str | None = None,
        select: str | Sequence[str] | None = None,
        group_by: str | Sequence[str] | None = None,
        order_by: Literal["duration", "time", "hierarchy"] | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Durations of periods between events, and of the parts that they consist of: ``kymo periods``.

        >>> answer = trace.periods(period="job : jobs:submit : jobs:end if id == $begin.id")
        >>> answer["statistics"]["count"]
        [400]
        """
        own = {"aggregate_by": aggregate_by, "select": select, "group_by": group_by, "order_by": order_by}
        return self._ask("periods", own | dict(options), {*own, *_options()})

    def analyse(self, analysis: StrPath, **options: Unpack[Options]) -> Answer:
        """An analysis that a file declares, or a ready-made one by its name: ``kymo analyse``.

        >>> trace.analyse("rates", period="10ms").names
        ('rates', 'course')
        """
        name = os.fspath(analysis)
        return self._ask("analyse", options, _options(), f"./{name}" if name.startswith("-") else name)

    def state_at(self, at: Time, **options: Unpack[StateOptions]) -> Answer:
        """States of CPUs and threads at an instant: running and waiting threads, with begin and end of each state.

        The first call reads the whole trace and keeps the states in the cache, for every instant.

        >>> kernel.state_at("17:46:23.5", top=5)  # doctest: +SKIP
        """
        from kymograph._words import StateOptions

        return self._ask("state", {"at": at, **options}, {"at", *StateOptions.__annotations__})

    def sql(self, query: str) -> Rows:
        """The result of an SQL query, as columns; docs/sql.md describes the tables and functions. No import is necessary.

        Reading starts when you take the first rows, except that analyses such as ``cpu()`` run at once. Of several
        statements, separated by semicolons, the rows of the last one are returned; the others may make views and
        settings. These stay for this trace, in this process; `database` makes separate ones.

        Raises:
            QuestionError: The query is wrong.
            UnanswerableError: The trace lacks the data that the query needs.
            MemoryLimitError: Reading needs more memory than a query may have (1 GiB, see `database`).
            NotInstalledError: SQL is not installed: ``pip install 'kymograph[sql]'``.

        >>> trace.sql("select name, count(*) as events from events group by name order by events desc limit 1").to_polars()["name"][0]
        'jobs:chunk'
        >>> trace.sql("select nothing from streams")
        Traceback (most recent call last):
          ...
        kymograph.QuestionError: No field named nothing.
        Valid fields are streams.stream, ...
            select nothing from streams
                   ^^^^^^^
        """
        process = os.getpid()
        if process not in self._databases:
            # Of several threads, one is first.
            self._databases.setdefault(process, self.database())
        return self._databases[process].sql(query)

    def database(self, *, memory: Size = "1GiB", unordered: bool = False) -> Database:
        """The trace as tables, with views and settings of its own.

        Args:
            memory: Limit for sorting, grouping and joining; beyond it, they write to temporary files.
            unordered: Does not rely on time order: for clocks that step back.

        >>> trace.database(memory="64MiB").sql("select count(*) from streams").to_polars().item()
        2
        """
        from kymograph._sql import Database

        return Database(self._session, memory, unordered)

    def print(self, file: SupportsWrite | None = None, **options: Unpack[PrintOptions]) -> None:
        """Prints events as text, in the order of time: ``kymo print``.

        Args:
            file: Output file; ``None``: ``sys.stdout``. A binary file gets the bytes that the command writes; a text file gets
                escapes for bytes that are not valid text.

        >>> trace.print(limit=1, clock_gmt=True)
        [00:02:52.255263261] (+?.?????????) vm jobs:submit: { cpu_id = 1 }, ...
        """
        file = sys.stdout if file is None else file
        from kymograph._report import Report
        from kymograph._words import PrintOptions, words

        pieces, warned = self._session.pieces(words("print", options, PrintOptions.__annotations__))
        _warn(warned)
        write = _writer(file)
        while True:
            piece, report = pieces.next()
            if piece is None:
                break
            write(piece)
        if report is not None:
            Report._of(report)._warn(losses=True)

    def lines(self, **options: Unpack[PrintOptions]) -> Iterator[str]:
        """The output of `print`, line by line, on demand.

        >>> for line in trace.lines(format="json", event="jobs:end", limit=1):
        ...     print(json.loads(line)["payload"]["result"])
        2
        """
        from kymograph._words import PrintOptions, words

        pieces, warned = self._session.pieces(words("lines", options, PrintOptions.__annotations__))
        _warn(warned)
        return _lines(pieces)

    def export(
        self,
        output: StrPath,
        *,
        format: Literal["parquet", "arrow"] = "parquet",
        event: str | Sequence[str] | None = None,
        where: str | None = None,
        begin: Time | None = None,
        end: Time | None = None,
        keep_bytes: bool = False,
    ) -> list[ExportedTable]:
        """Writes a table for each class of events to a folder: ``kymo export``.

        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [(table.path.name, table.rows) for table in trace.export(folder)][:1]
        [('jobs_chunk.parquet', 1200)]
        """
        options = {"format": format, "event": event, "where": where, "begin": begin, "end": end, "keep_bytes": keep_bytes}
        from kymograph._report import Report
        from kymograph._values import ExportedTable
        from kymograph._words import words

        tables, report, warned = self._session.export(os.fspath(output), words("export", options, options))
        _warn(warned)
        Report._of(report)._warn(losses=True)
        return [ExportedTable.of(path, rows, replaced) for path, rows, replaced in tables]

    def run(
        self,
        analysis: type[Analysis[State, Result]] | Analysis[State, Result],
        *,
        begin: Time | None = None,
        end: Time | None = None,
    ) -> Result:
        """The result of your own analysis, on all cores; see `Analysis`.

        The trace is cut into time slices. One thread reads each slice and calls ``step`` with its rows in time order. Then
        the states of neighbors are merged as a tree, the earlier one first. The number of slices depends only on the trace
        and on the number of threads.

        >>> class Chunks(kymograph.Analysis):
        ...     events, columns = "jobs:chunk", ["time"]
        ...     def init(self): return 0
        ...     def step(self, state, batch): return state + len(batch)
        ...     def merge(self, left, right): return left + right
        >>> trace.run(Chunks)
        1200
        """
        from kymograph import _own

        result, report = _own.run(self, _own.made(analysis), self._threads, {"begin": begin, "end": end})
        report._warn(losses=True)
        return result

    def analyze(
        self,
        what: str | type[Analysis[State, Result]] | Analysis[State, Result],
        *,
        client: Any = None,
        readers: int | None = None,
        progress: Callable[[int, int], object] | None = None,
        retries: int = 3,
        patience: float = 30.0,
        paths: StrPath | Sequence[StrPath] | None = None,
        **options: Any,
    ) -> Any:
        """An analysis by name, or your own, here or on a cluster.

        Workers open the traces by themselves, and refuse other ones; places to read go out, states of the analysis come back.
        A worker that is killed or stalls costs time, not the answer. If traces cannot be read in parts, this process reads
        them, and so it does for ``period``, ``"periods"``, ``"count"`` and ``"state"``.

        Args:
            what: ``"cpu"``, ``"io"`` and so on, or an `Analysis`.
            client: A ``dask.distributed.Client``, or an executor of `concurrent.futures`. ``None``: all cores of this machine.
            readers: Number of readers at the same time; by default the number of the client's threads.
            progress: Called with the number of finished parts, and the number of all parts.
            retries: Number of times that a part is read again after a worker died or stalled.
            patience: Seconds after which another worker also reads an overdue part (Dask).
            paths: Paths of the traces for the workers, if they differ from those here.
            options: Those of the analysis.

        >>> trace.analyze("pairs", start="jobs:begin", stop="jobs:end", key="id")
        <kymograph.Answer pairs: ...; complete>
        """
        if not isinstance(what, str):
            is_here = client is None
        elif what not in _ANALYSES:
            from kymograph._errors import QuestionError

            raise QuestionError(f"`{what}` is no analysis; there are: {', '.join(_ANALYSES)}")
        else:
            is_here = client is None or what in _BY_ONE_READER or options.get("period") is not None
        if not is_here:
            from kymograph import cluster

            return cluster.analyze(self, what, client, readers, progress, retries, patience, paths, options)
        if isinstance(what, str):
            return getattr(self, "state_at" if what == "state" else what)(**options)
        return self.run(what, **options)

    def check(
        self,
        analysis: type[Analysis[Any, Any]] | Analysis[Any, Any],
        *,
        cuts: int = 8,
        rounds: int = 5,
        seed: int | None = None,
        tolerance: float = 0.0,
        begin: Time | None = None,
        end: Time | None = None,
    ) -> None:
        """Tests whether your own analysis gives the same result for pieces as for the whole trace.

        It runs once in one piece, as `run` does, and ``rounds`` times in pieces that are cut at random rows; neighbors are
        merged in random order.

        Args:
            cuts: Number of cuts in each round.
            rounds: Number of rounds.
            seed: The same seed makes the same cuts.
            tolerance: Allowed relative difference of floating-point numbers, whose sums depend on the order.

        Raises:
            CheckError: The results differ; the text names the first difference.

        >>> class Last(kymograph.Analysis):
        ...     "It takes the wrong one of two."
        ...     events, columns = "jobs:begin", ["id"]
        ...     def init(self): return None
        ...     def step(self, state, batch): return batch["id"][-1]
        ...     def merge(self, left, right): return left
        >>> trace.check(Last, seed=1)
        Traceback (most recent call last):
          ...
        kymograph.CheckError: result is 399 in one piece and ...
        """
        from kymograph import _own

        _own.check(self, _own.made(analysis), cuts, rounds, seed, tolerance, {"begin": begin, "end": end})

    def verify(self) -> list[Finding]:
        """All problems of the traces' files, with place and remedy: ``kymo check``.

        >>> trace.verify()
        []
        """
        from kymograph._values import findings

        definitions, frequency = self._import
        return findings(*self._paths, definitions=definitions, clock_frequency=frequency)

    def __repr__(self) -> str:
        return f"<kymograph.Trace {', '.join(map(repr, self._paths))}: {self._session.summary()}>"

    def _repr_html_(self) -> str:
        from kymograph._html_traces import trace_html
        from kymograph._info import Info

        # What could not be read stands in it: nobody need be warned besides.
        return trace_html(Info._of(*self._session.info(False)))


def local_path(path: StrPath) -> str:
    """A path, or the path of a ``file:`` URL."""
    text = os.fsdecode(path)
    scheme, colon, _ = text.partition("://")
    if not colon or not scheme.isalpha():
        return text
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    from kymograph._errors import OpenError

    parts = urlsplit(text)
    if parts.scheme != "file":
        raise OpenError(f"{text}: traces are opened from files; {scheme}: is none")
    if parts.netloc not in ("", "localhost"):
        raise OpenError(f"{text}: traces are opened from files of this machine")
    return url2pathname(parts.path)


def _shift_ns(length: int | timedelta) -> int:
    if isinstance(length, int):
        return length
    from kymograph._words import timedelta_ns

    if not hasattr(length, "microseconds"):
        raise TypeError(f"a clock is shifted by nanoseconds or a timedelta, not {length!r}")
    return timedelta_ns(length)


def _warn_at_end(report: str) -> None:
    from kymograph._report import Report

    Report._of(report)._warn(losses=True)


def import_options(definitions: StrPath | None, clock_frequency: int | None) -> tuple[str | None, int | None]:
    """Options for files in other formats."""
    if clock_frequency is not None and clock_frequency < 1:
        raise ValueError(f"a clock has at least one cycle per second, not {clock_frequency}")
    return None if definitions is None else local_path(definitions), clock_frequency


def _opened_again(
    paths: list[str],
    threads: int,
    clock_shift_ns: int,
    cache: str | bool,
    trace_offsets: tuple[tuple[str, int], ...],
    imported: tuple[str | None, int | None],
) -> Trace:
    definitions, frequency = imported
    return Trace(
        paths,
        threads=threads,
        clock_shift=clock_shift_ns,
        trace_offsets=dict(trace_offsets),
        definitions=definitions,
        clock_frequency=frequency,
        cache=cache,
    )


def _warn(lines: str) -> None:
    """Warns about parts of a question that match nothing, at the line of the caller's caller."""
    if not lines.strip():
        return
    import warnings

    from kymograph._errors import QuestionWarning

    for line in lines.strip().split("\nwarning: "):
        warnings.warn(line.removeprefix("warning: "), QuestionWarning, stacklevel=4)


def _writer(file: SupportsWrite) -> Callable[[bytes], object]:
    """A function that writes pieces of output to a file."""
    is_text = isinstance(file, io.TextIOBase) or (hasattr(file, "encoding") and not isinstance(file, io.RawIOBase))
    if not is_text:
        return file.write
    import codecs

    decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
    return lambda piece: file.write(decode(piece))


def _lines(pieces: _native.Pieces) -> Iterator[str]:
    from kymograph._report import Report

    rest = b""
    while True:
        piece, report = pieces.next()
        if piece is None:
            if rest:
                yield rest.decode("utf-8", "backslashreplace")
            if report is not None:
                Report._of(report)._warn(losses=True)
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "backslashreplace")


def _options() -> Iterable[str]:
    from kymograph._words import Options

    return Options.__annotations__


#: What `Trace.analyze` may be asked by name.
_ANALYSES = (*NAMES, "state")
#: What is not shared out.
_BY_ONE_READER = frozenset({"periods", "count", "state"})
_EVENTS = frozenset({"event", "where", "begin", "end", "gmt"})
