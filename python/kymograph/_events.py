"""Events as columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kymograph._errors import ForkError
from kymograph._report import Report
from kymograph._tables import Batch, Columns, Schema

if TYPE_CHECKING:
    import polars
    import pyarrow

    from kymograph import _native


class Events(Columns):
    """Events that are asked for, as columns, in the order of time; `Trace.events` makes it. Nothing is read before somebody
    asks for rows, and whoever asks again reads again.

    >>> events = trace.events("jobs:chunk", columns=["time", "id"])
    >>> events
    <kymograph.Events 'jobs:chunk': time, id>
    >>> sum(len(batch) for batch in events)
    1200
    """

    def __init__(self, native: _native.Events, title: str) -> None:
        self._native = native
        self._title = title

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        return Schema(self._native.schema)

    @property
    def report(self) -> Report | None:
        """What stands between the rows and the whole truth; ``None`` before somebody read to the end.

        >>> events = trace.events("jobs:end")
        >>> events.report
        >>> rows = list(events)
        >>> events.report.complete
        True
        """
        said = self._native.report()
        return None if said is None else Report._of(said)

    def __iter__(self) -> Iterator[Batch]:
        """Batches in the order of time, read ahead by all threads of the trace."""
        stream = self._native.stream()
        try:
            for batch in stream:
                yield Batch(batch)
            Report._of(stream.report())._warn()
        finally:
            stream.close()

    def to_pyarrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table``. Needs pyarrow."""
        with self._interruptible():
            return super().to_pyarrow()

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame``. Needs polars."""
        with self._interruptible():
            return super().to_polars()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Who reads our stream says in his own words that it ended with an error; Ctrl-C is `KeyboardInterrupt`."""
        try:
            yield
        except Exception:
            self._native.raise_raised()
            raise

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<kymograph.Events {self._title}: {', '.join(self.schema.names)}>"
