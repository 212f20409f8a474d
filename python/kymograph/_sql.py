"""Queries in SQL: tables that are there without an import, and rows as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kymograph import _native
from kymograph._errors import NotInstalledError
from kymograph._html import rows_html
from kymograph._report import Report
from kymograph._tables import Batch, Columns, GivesArrow, Schema

if TYPE_CHECKING:
    from kymograph._words import Size

#: Rows that a notebook shows.
_ROWS_SHOWN = 10
#: Letters of a query that its rows are named by.
_LETTERS_SHOWN = 60


class Database:
    """The traces as tables, with views and settings of its own; `Trace.database` makes it.

    Several threads may ask it. In a child of its process a fork leaves nothing of it.

    >>> database = trace.database(memory="256MiB")
    >>> database.sql("create view long as select * from \\"jobs:end\\" where result < 0")
    <kymograph.Rows 'create view long as select * from "jobs:end" where resu...'>
    >>> database.sql("select count(*) as failed from long").to_polars()["failed"].to_list()
    [30]
    """

    def __init__(self, session: _native.Session, memory: Size, unordered: bool) -> None:
        if not hasattr(_native, "Database"):
            from kymograph._library import WITHOUT_SQL

            raise NotInstalledError(WITHOUT_SQL)
        from kymograph._words import words

        options = {"memory": memory, "unordered": unordered}
        self._native = _native.Database(session, words("database", options, options))

    def sql(self, query: str) -> Rows:
        """What a query gives; see `Trace.sql`."""
        return Rows(self._native.sql(query), query)

    @property
    def tables(self) -> dict[str, str]:
        """Tables and functions, and what they are. Views are not among them; ``show tables`` has those.

        >>> trace.database().tables["streams"]
        'data streams'
        """
        return dict(self._native.tables())

    def explain(self, query: str) -> str:
        """How a query is answered: what is decoded, asked by the decoder, and which packets are not read.

        >>> print(trace.database().explain("select time from \\"jobs:begin\\" where worker = 1"))
        TraceExec: table=jobs:begin, filter=worker == 1, columns=[time], packets=17 of 17 (0 skipped), ...
        """
        (batch,) = self.sql(f"explain {query}")
        lines: list[str] = batch["plan"]
        return "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        return f"<kymograph.Database: {len(self.tables)} tables and functions>"


class Rows(Columns):
    """What a query gives, as columns; `Trace.sql` makes it. Nothing is read before somebody asks for rows, and whoever asks again
    reads again: names mean what they meant when the query was asked.

    >>> rows = trace.sql("select worker, count(*) as jobs from \\"jobs:begin\\" group by worker order by worker")
    >>> rows
    <kymograph.Rows 'select worker, count(*) as jobs from "jobs:begin" group...': worker, jobs>
    >>> [batch.rows() for batch in rows]
    [[(0, 161), (1, 147), (2, 92)]]
    """

    def __init__(self, native: _native.Rows, query: str) -> None:
        self._native = native
        #: What was asked.
        self.query = query

    @property
    def schema(self) -> Schema:
        """Names and types of the columns. There are none if the query only changed something."""
        return Schema(self._native.schema)

    @property
    def report(self) -> Report | None:
        """What stands between the rows and the whole truth; ``None`` before somebody read to the end.

        >>> rows = trace.sql("select max(result) from \\"jobs:end\\"")
        >>> rows.report
        >>> rows.to_polars().rows()
        [(399,)]
        >>> rows.report.complete
        True
        """
        said = self._native.report()
        return None if said is None else Report._of(said)

    def __iter__(self) -> Iterator[Batch]:
        """Batches, in the order that the query says, else that of time if nothing changes it."""
        stream = self._native.stream()
        try:
            for batch in stream:
                yield Batch(batch)
            Report._of(stream.report())._warn()
        finally:
            stream.close()

    def _whole(self) -> GivesArrow:
        whole, report = self._native.collect()
        Report._of(report)._warn(stacklevel=5)
        return whole

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        words = " ".join(self.query.split())
        shown = words if len(words) <= _LETTERS_SHOWN else f"{words[: _LETTERS_SHOWN - 5]}..."
        columns = ", ".join(self.schema.names)
        return f"<kymograph.Rows {shown!r}{': ' if columns else ''}{columns}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        stream = self._native.stream()
        try:
            # One more, to know whether there are more.
            while len(rows) <= _ROWS_SHOWN and (batch := next(stream, None)) is not None:
                rows += batch.rows(0, _ROWS_SHOWN + 1 - len(rows))
        finally:
            stream.close()
        rest = "<p>... and more rows</p>" if len(rows) > _ROWS_SHOWN else ""
        return rows_html(self.query, self.schema.names, rows[:_ROWS_SHOWN]) + rest
