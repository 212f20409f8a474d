"""Answers of analyses: tables, and a report on missing data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kymograph._report import Report
from kymograph._tables import Batch

if TYPE_CHECKING:
    from kymograph import _native


class Table(Batch):
    """A table of an answer.

    Columns are those of ``kymo ... --csv``: a process is ``x`` (its name), ``x_pid`` and ``x_tid``; a time span is ``x_begin``
    and ``x_end``. If a number is uncertain in any row, ``x_low`` and ``x_high`` bound it; a null is no bound.
    Durations are in nanoseconds, sizes in bytes, ratios from 0 to 1. Unknown values are null.

    >>> table = trace.pairs(start="jobs:begin", stop="jobs:end", key="id")["total"]
    >>> table.schema.metadata["avg"]["title"], table.schema.metadata["avg"]["unit"]
    ('Average', 'ns')
    >>> table["avg"], table["p99_low"], table["p99_high"]
    ([485562], [3080192], [3084287])
    """

    def __init__(self, native: _native.AnswerTable) -> None:
        name, title, columns, span_ns, omitted = native
        super().__init__(columns)
        #: What it is; stays the same in later versions.
        self.name: str = name
        #: What it is, for people.
        self.title: str = title
        #: From when to when it is about, in nanoseconds.
        self.span_ns: tuple[int, int] | None = span_ns
        #: Rows that there are beyond these, which ``top`` left out.
        self.omitted: int = omitted

    def __repr__(self) -> str:
        return f"<kymograph.Table {self.name}: {self.num_rows:,} rows, {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        from kymograph._html_answers import table_html

        return table_html(self)


class Answer:
    """The answer of an analysis. As text, it shows its tables like the command, ten rows of each.

    >>> answer = trace.rates(period="10ms")
    >>> answer
    <kymograph.Answer rates: rates (4 rows), course (27 rows); complete>
    >>> answer["rates"].rows()[0]
    ('jobs:chunk', 1200, 183, 180, 192)
    >>> answer.report.complete
    True
    """

    def __init__(self, question: str, tables: list[_native.AnswerTable], report: Report, text: str) -> None:
        self._question = question
        #: The tables, in the order in which the command shows them.
        self.tables: tuple[Table, ...] = tuple(map(Table, tables))
        #: What was lost, could not be read, or had to be assumed.
        self.report: Report = report
        self._text = text

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tables, each once."""
        return tuple(dict.fromkeys(table.name for table in self.tables))

    def all(self, name: str) -> list[Table]:
        """All tables of a name. With periods, each period may have one."""
        return [table for table in self.tables if table.name == name]

    def __getitem__(self, name: str) -> Table:
        """The table of this name."""
        found = self.all(name)
        if len(found) == 1:
            return found[0]
        if found:
            raise KeyError(f"there are {len(found)} tables {name!r}: all() has them")
        raise KeyError(f"there is no table {name!r}; there are: {', '.join(self.names)}")

    def __contains__(self, name: object) -> bool:
        return any(table.name == name for table in self.tables)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        shown = ", ".join(f"{table.name} ({table.num_rows:,} rows)" for table in self.tables[:8])
        more = f", and {len(self.tables) - 8} more" if len(self.tables) > 8 else ""
        return f"<kymograph.Answer {self._question}: {shown}{more}; {self.report.summary()}>"

    def _repr_html_(self) -> str:
        from kymograph._html_answers import answer_html

        return answer_html(self._question, self)
