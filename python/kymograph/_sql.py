"""SQL queries: tables without an import step, and rows as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kymograph import _native
from kymograph._errors import NotInstalledError
from kymograph._tables import Lazy

if TYPE_CHECKING:
    from kymograph._words import Size

#: Letters of a query that its rows are named by.
_LETTERS_SHOWN = 60


class Database:
    """The traces as tables, with views and settings of its own; `Trace.database` makes it.

    Several threads may use it. A forked child needs a new one.

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
        """The result of a query; see `Trace.sql`."""
        return Rows(self._native.sql(query), query)

    @property
    def tables(self) -> dict[str, str]:
        """Tables and functions, each with its description. ``show tables`` also lists views.

        >>> trace.database().tables["streams"]
        'data streams'
        """
        return dict(self._native.tables())

    def explain(self, query: str) -> str:
        """The plan of a query: decoded columns, filters in the decoder, and packets that are skipped.

        >>> print(trace.database().explain("select time from \\"jobs:begin\\" where worker = 1"))
        TraceExec: table=jobs:begin, filter=worker == 1, columns=[time], packets=17 of 17 (0 skipped), ...
        """
        (batch,) = self.sql(f"explain {query}")
        lines: list[str] = batch["plan"]
        return "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        return f"<kymograph.Database: {len(self.tables)} tables and functions>"


class Rows(Lazy):
    """The result of a query, as columns; `Trace.sql` makes it. Reading starts when you take the first rows; each new iteration
    reads again. Names keep the meaning that they had when the query was made.

    >>> rows = trace.sql("select worker, count(*) as jobs from \\"jobs:begin\\" group by worker order by worker")
    >>> rows
    <kymograph.Rows 'select worker, count(*) as jobs from "jobs:begin" group...': worker, jobs>
    >>> [batch.rows() for batch in rows]
    [[(0, 161), (1, 147), (2, 92)]]
    """

    def __init__(self, native: _native.Rows, query: str) -> None:
        self._native: _native.Rows = native
        #: What was asked.
        self.query = self._title = query

    def __repr__(self) -> str:
        words = " ".join(self.query.split())
        shown = words if len(words) <= _LETTERS_SHOWN else f"{words[: _LETTERS_SHOWN - 5]}..."
        columns = ", ".join(self.schema.names)
        return f"<kymograph.Rows {shown!r}{': ' if columns else ''}{columns}>"
