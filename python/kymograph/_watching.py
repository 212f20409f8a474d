"""Counting events of the kernel from Python: the command ``kymo watch``, whose rows are dictionaries and Arrow tables."""

from __future__ import annotations

import collections
import contextlib
import html
import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kymograph._errors import QuestionError, RecordError
from kymograph._recording import command_error, option_words, program_words, this_command
from kymograph._tables import Columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    import polars
    import pyarrow

    from kymograph._recording import Word

#: The command counts while this runs: it says when counting has begun, and ends with its standard input.
_BEGUN = "begun"
_WHILE_READ = ("sh", "-c", f"echo {_BEGUN}; read line")
#: Rows in a notebook.
_ROWS_SHOWN = 20
#: How long its last words may take behind its end.
_LAST_WORDS_S = 1


def watch(
    question: str,
    command: Word | Sequence[Word] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    sum: str | None = None,  # noqa: A002  (as the option is called)
    hist: str | None = None,
    every: str | float | None = None,
    duration: str | float | None = None,
    **options: Word | bool | Sequence[Word] | None,
) -> Watch:
    """Counts events of the kernel, without recording them: returns when it counts.

    Args:
        question: The events, and what is asked of them: ``"syscalls"``, ``"sched_switch since sched_waking by next_tid=tid"``.
        command: A program that is counted from its start to its end, and then `watch` returns; the events of the whole system
            count, as without one.
        by: A field, or several, that tell rows apart.
        sum: A field to add up.
        hist: A field of which the distribution is counted; ``took`` is the time since the begin.
        every: Iterating gives the counts of each such time.
        duration: Counting ends after this time.
        options: The others of ``kymo watch``, with ``_`` for ``-``.

    Raises:
        QuestionError: The question or an option has an error, or rights are missing.
        RecordError: Counting broke off.

    >>> with kymograph.watch("syscalls", by="name", hist="took") as watch:  # doctest: +SKIP
    ...     work()
    >>> watch.counts["read"].events, watch.counts["read"].histogram["p99"]  # doctest: +SKIP
    (1981, 10879)
    >>> for counts in kymograph.watch("sched_switch", by="next_comm", every="1s", duration="5s"):  # doctest: +SKIP
    ...     print(counts.to_polars().head(3))
    """
    words = option_words({"by": by, "sum": sum, "hist": hist, "every": every, "duration": duration, **options})
    watching = Watch(question, words)
    if command is not None:
        with watching:
            watching.status = subprocess.run(program_words(command)).returncode
    return watching


class Watch:
    """Counting, until it is stopped. Iterating gives `Counts` of each ``every``; the end of a ``with`` block stops it."""

    #: The exit status of the command; ``None``: there was none.
    status: int | None = None

    def __init__(self, question: str, words: list[str]) -> None:
        self.question = question
        command = [*this_command(), "watch", "--json", *words, question, "--", *_WHILE_READ]
        # Ctrl-C is for this process alone, which then stops the other one.
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self._ends_itself = any(word.startswith("--duration=") for word in words)
        self._final: Counts | None = None
        self._told = bytearray()
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Both streams are read at any time: the command would wait for a reader, and count no times meanwhile.
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_lines, self._read_errors)]
        for reader in self._readers:
            reader.start()
        # A time may be over before the other command has said that it runs.
        early = []
        while (line := self._lines.get()) != _BEGUN:
            if not line:
                raise self._broken()
            early.append(line)
        self._early = early
        # Counts of times that came while the end was waited for.
        self._kept: collections.deque[Counts] = collections.deque()

    def __iter__(self) -> Iterator[Counts]:
        while self._kept:
            yield self._kept.popleft()
        while (counts := self._next()) is not None:
            yield counts

    @property
    def counts(self) -> Counts:
        """All counts since the beginning: waits for the end, which a ``duration`` or `stop` brings.

        Raises:
            QuestionError: Nothing brings it: there is no ``duration``, and it was not stopped.
        """
        if self._final is None and not self._ends_itself:
            raise QuestionError("it counts until it is stopped: `stop()` gives the counts, and so does iterating with `every`")
        while (counts := self._next()) is not None:
            self._kept.append(counts)
        assert self._final is not None
        return self._final

    def stop(self) -> Counts:
        """Stops it, and gives all counts."""
        self._ends_itself = True
        if self._child.stdin is not None and not self._child.stdin.closed:
            # The other end may be gone.
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        return self.counts

    def _next(self) -> Counts | None:
        """The counts of the next time; ``None``: it is over."""
        if self._final is not None:
            return None
        line = self._early.pop(0) if self._early else self._lines.get()
        if not line:
            raise self._broken()
        counts = Counts(json.loads(line))
        if not counts.is_final:
            return counts
        self._final = counts
        self._end()
        return None

    def _read_lines(self) -> None:
        """Takes lines of the output, and an empty one at its end."""
        assert self._child.stdout is not None
        with self._child.stdout as stream:
            for line in stream:
                self._lines.put(line.rstrip("\n"))
        self._lines.put("")

    def _read_errors(self) -> None:
        assert self._child.stderr is not None
        with self._child.stderr as stream:
            for line in stream:
                self._told += line.encode()

    def _end(self) -> int:
        if self._child.stdin is not None and not self._child.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        status = self._child.wait()
        for reader in self._readers:
            reader.join(timeout=_LAST_WORDS_S)
        return status

    def _broken(self) -> QuestionError | RecordError:
        return command_error(self._end(), self._told.decode(errors="replace"))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None) -> None:
        try:
            self.stop()
        except RecordError:
            # The exception that ended the block says more.
            if error is None:
                raise

    def __del__(self) -> None:
        child = getattr(self, "_child", None)
        if child is not None and child.poll() is None:
            child.kill()
            self._end()

    def __repr__(self) -> str:
        state = "counting" if self._final is None else f"{self._final.events:,} events"
        return f"<kymograph.Watch {self.question!r}: {state}>"


@dataclass(frozen=True)
class CountRow:
    """The counts of one row."""

    #: Values of the fields that tell rows apart, by their names.
    keys: dict[str, Any]
    events: int
    #: The sum of the field of ``sum``.
    sum: int | None
    #: The distribution of the field of ``hist``: ``count``, ``sum``, ``p50``, ``p90``, ``p99``, ``p999``, ``most``, and ``buckets``, each
    #: from, to (which is not in it), and how many.
    histogram: dict[str, Any] | None


class Counts(Columns, Mapping[Any, CountRow]):
    """Counts of a time: rows by the value of their field, or by a tuple of values if several tell them apart; ``()`` is the only row otherwise.

    Libraries that take Arrow take the rows as a table.
    """

    _title = "counts"

    def __init__(self, told: dict[str, Any]) -> None:
        #: All that the command has told.
        self.told = told
        #: Whether these are all counts since the beginning.
        self.is_final: bool = told["is_final"]
        #: Whether they are all counts of the time: counting did not break off.
        self.is_complete: bool = told["is_complete"]
        #: Its length, in nanoseconds.
        self.time_ns: int = told["time_ns"]
        #: All events of the time, also of rows that ``top`` left out.
        self.events: int = told["events"]
        #: The distribution of all of them.
        self.histogram: dict[str, Any] | None = told["histogram"]
        #: Events that could not be counted: ``map_full`` and ``interrupted``.
        self.lost: dict[str, int] = told["lost"]
        self._rows: dict[Any, CountRow] = {}
        for row in told["rows"]:
            values = tuple(row["keys"].values())
            key = values[0] if len(values) == 1 else values
            self._rows[key] = CountRow(row["keys"], row["events"], row.get("sum"), row.get("histogram"))

    def __getitem__(self, key: Any) -> CountRow:
        return self._rows[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def to_pyarrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table``: the fields that tell rows apart, ``events``, ``sum``, and of a distribution ``count`` to ``most`` and ``buckets``."""
        import pyarrow

        rows = [
            {
                **row.keys,
                "events": row.events,
                **({} if row.sum is None else {"sum": row.sum}),
                **({} if row.histogram is None else {f"hist_{name}": value for name, value in row.histogram.items()}),
            }
            for row in self._rows.values()
        ]
        names = dict.fromkeys(["events"] if not rows else (name for row in rows for name in row))
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame``. Needs polars and pyarrow."""
        import polars

        # It would take the dictionary for one of columns.
        frame = polars.from_arrow(self.to_pyarrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_pyarrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        table = self.to_pyarrow()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
        rows = [[html.escape(str(value)) for value in row.values()] for row in table.slice(0, _ROWS_SHOWN).to_pylist()]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>... and {len(self) - _ROWS_SHOWN:,} more</p>" if len(self) > _ROWS_SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"<kymograph.Counts: {self.events:,} events in {self.time_ns / 1e9:.3f} s, {len(self):,} rows>"
