"""Columns: libraries that support Arrow take them directly; without such a library they give plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kymograph._report import Report

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from kymograph import _native

Taken = TypeVar("Taken")


class Columns:
    """Data with columns. pyarrow, polars, pandas and DuckDB take it without copying, by the Arrow C interface::

        pyarrow.table(columns)
        polars.DataFrame(columns)
        duckdb.sql("select * from columns")
    """

    #: What the rows are of.
    _title: str

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError

    def to_pyarrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table``. Needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame``. Needs polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A ``pandas.DataFrame``. Needs pandas and pyarrow; options are those of ``pyarrow.Table.to_pandas``."""
        # Whether it is there is known before all is read.
        import pandas  # noqa: F401

        frame: pandas.DataFrame = self.to_pyarrow().to_pandas(**options)
        return frame

    def _repr_html_(self) -> str:
        """HTML for notebooks: the first rows, which are read for it."""
        from kymograph._html import stream_html

        return stream_html(self._title, self)


class Schema:
    """Names and types of columns, in Arrow's words.

    >>> trace.count().tables[0].schema
    Schema(class: Utf8, events: Int64, events_per_second: Float64)
    """

    def __init__(self, native: _native.Schema) -> None:
        self._native = native
        #: The columns' names.
        self.names: tuple[str, ...] = tuple(native.names)
        #: Their types.
        self.types: tuple[str, ...] = tuple(native.types)

    @property
    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Metadata of each column: in answers ``class``, ``title`` and ``unit``."""
        return dict(zip(self.names, self._native.metadata, strict=True))

    def to_pyarrow(self) -> pyarrow.Schema:
        """A ``pyarrow.Schema``. Needs pyarrow."""
        import pyarrow

        return pyarrow.schema(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.names, self.types, strict=True)

    def _repr_html_(self) -> str:
        from kymograph._html import schema_html

        return schema_html(self)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}: {type_}' for name, type_ in self)})"


class Batch(Columns):
    """Rows as columns.

    >>> batch = next(iter(trace.events("jobs:begin", columns=["time", "worker"])))
    >>> len(batch), batch.schema
    (400, Schema(time: Timestamp(ns, "UTC"), worker: Int32))
    >>> batch["worker"][:3]
    [1, 2, 0]
    """

    def __init__(self, native: _native.Batch) -> None:
        self._native = native

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        return Schema(self._native.schema)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._native.num_rows

    def __len__(self) -> int:
        return self._native.num_rows

    def __getitem__(self, column: str) -> list[Any]:
        """One column as plain values; times are nanoseconds, structures are dictionaries."""
        try:
            return self._native.values(column)
        except KeyError:
            raise self._no_column(column) from None

    def _no_column(self, column: str) -> KeyError:
        return KeyError(f"there is no column {column!r}; there are: {', '.join(self.schema.names)}")

    def rows(self, begin: int | None = 0, end: int | None = None) -> list[tuple[Any, ...]]:
        """Rows as plain values, from one and up to another, as a list has them: ``rows(-5)`` are the last five."""
        begin, end, _ = slice(begin, end).indices(self.num_rows)
        return self._native.rows(begin, max(begin, end))

    def to_numpy(self, column: str) -> numpy.ndarray[Any, Any]:
        """One column as a NumPy array. Needs NumPy; if not all values are numbers, pyarrow too."""
        import numpy

        try:
            known = self._native.buffer(column)
        except KeyError:
            raise self._no_column(column) from None
        if known is None:
            array: numpy.ndarray[Any, Any] = self.to_pyarrow().column(column).to_numpy()
            return array
        return numpy.frombuffer(known[1], dtype=known[0])

    def _repr_html_(self) -> str:
        from kymograph._html import batch_html

        return batch_html(self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._native.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<kymograph.{type(self).__name__}: {self.num_rows:,} rows, {', '.join(self.schema.names)}>"


class Lazy(Columns):
    """Columns that are read on demand; each new iteration reads again."""

    _native: _native.Events | _native.Rows

    @property
    def schema(self) -> Schema:
        """Names and types of the columns; none for a statement that returns no rows."""
        return Schema(self._native.schema)

    @property
    def report(self) -> Report | None:
        """Report on data that is missing from the rows; ``None`` before they were read to the end.

        >>> events = trace.events("jobs:end")
        >>> events.report
        >>> rows = list(events)
        >>> events.report.complete
        True
        """
        said = self._native.report()
        return None if said is None else Report._of(said)

    def __iter__(self) -> Iterator[Batch]:
        """Iterates over batches, by default in time order; all threads of the trace read ahead."""
        stream = self._native.stream()
        try:
            for batch in stream:
                yield Batch(batch)
            Report._of(stream.report())._warn()
        finally:
            stream.close()

    def to_pyarrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table``. Needs pyarrow."""
        return self._taken(super().to_pyarrow)

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame``. Needs polars."""
        return self._taken(super().to_polars)

    def _taken(self, take: Callable[[], Taken]) -> Taken:
        """Calls a library that reads our stream. The library would report our errors in its own words: here they are our
        exceptions, Ctrl-C is `KeyboardInterrupt`, and unreadable data gives a warning."""
        try:
            taken = take()
        except Exception:
            self._native.raise_why()
            raise
        if (report := self.report) is not None:
            report._warn(stacklevel=4)
        return taken

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()
