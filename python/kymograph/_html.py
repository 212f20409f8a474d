"""HTML for notebooks, without any library; light or dark like the page.

::

    Events 'sched_switch'                          what it is
                time  next_comm          next_tid  numbers stand right, names left
      2016-03-04 UTC                               what holds for the whole column
     17:46:22.794569  lttng-consumerd        4297  what is cut or rounded is whole in the cell's title
    ... and more rows                              whatever is left out is said

Wide tables scroll inside their own box. All text from a trace goes through `safe` or `hinted`.
"""

from __future__ import annotations

import contextlib
import html
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kymograph import _shown as shown
from kymograph._errors import UnreadableWarning
from kymograph._shown import Words

if TYPE_CHECKING:
    from kymograph._report import Problem, Report
    from kymograph._tables import Batch, Schema

#: Rows that are shown.
ROWS_SHOWN = 10
#: Columns that are shown of one.
_COLUMNS_SHOWN = 30
#: Places that a report names, and characters of what it says of each.
_PLACES_SHOWN, _PLACE_MAX = 20, 500
#: Columns that a schema names.
_NAMES_SHOWN = 400

_STYLE = (
    "<style>"
    ".kymograph{line-height:1.4;font-variant-numeric:tabular-nums}"
    ".kymograph .box{overflow-x:auto;max-width:100%;margin:.3em 0 .6em}"
    ".kymograph table{border-collapse:collapse;margin:0;border:0;width:auto;table-layout:auto}"
    ".kymograph table.k :is(th,td){padding:.15em .6em;white-space:pre;text-align:right;vertical-align:top;border:0}"
    ".kymograph table.k .b{padding-left:0;opacity:.7}"
    ".kymograph table.k .n{opacity:.4}"
    ".kymograph table.k thead th{border-bottom:1px solid;font-weight:600;vertical-align:bottom}"
    ".kymograph small{font-size:85%;font-weight:400;opacity:.7}"
    ".kymograph.kymograph li code{white-space:pre-wrap}"
    ".kymograph p{margin:.2em 0}"
    ".kymograph summary{cursor:pointer}"
    "</style>"
)


#: Of names: not in the style above, which JupyterLab takes out of notebooks that are not trusted.
_LEFT = " style='text-align:left'"


def page(inside: str) -> str:
    """The HTML of one object."""
    return f"<div class='kymograph'>{_STYLE}{inside}</div>"


@dataclass(frozen=True)
class Column:
    """A displayed column, made of one or more data columns."""

    title: str
    #: How it is called, if that is not its title.
    name: str
    #: What else there is to know of it.
    hint: str
    is_left: bool
    #: What a row says in it, and exactly.
    words: Callable[[tuple[Any, ...]], Words]


def grid(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], rest: str = "") -> str:
    """A table, and a note on omitted rows. Bounds have their own column, so that numbers stay aligned."""
    cells = [[column.words(row) for column in columns] for row in rows]
    is_bounded = [any(row[place].bounds for row in cells) for place in range(len(columns))]

    def heading(column: Column, bounded: bool) -> str:
        name = f"<br><small>{safe(column.name)}</small>" if column.name else ""
        side, wide = _LEFT if column.is_left else "", " colspan='2'" if bounded else ""
        return f"<th{side}{wide}{hinted(column.hint)}>{safe(column.title)}{name}</th>"

    def cell(column: Column, words: Words, bounded: bool) -> str:
        of = " class='n'" if words == shown.NOTHING else "" if column.title else " class='b'"
        of += _LEFT if column.is_left else ""
        beside = f"<td class='b'{_LEFT}>{safe(words.bounds)}</td>" if bounded else ""
        return f"<td{of}{hinted(words.exactly)}>{safe(words.value)}</td>{beside}"

    head = "".join(map(heading, columns, is_bounded))
    body = "".join(f"<tr>{''.join(map(cell, columns, row, is_bounded))}</tr>" for row in cells)
    table = f"<table class='k'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='box'>{table}{f'<p><small>{safe(rest)}</small></p>' if rest else ''}</div>"


def safe(words: str) -> str:
    """Escaped text."""
    return html.escape(shown.escaped(words))


def hinted(words: str) -> str:
    """A tooltip."""
    return f" title='{safe(words)}'" if words else ""


# Rows of whatever columns: events, queries, batches.


class _Stream(Protocol):
    """An object that reads rows on demand, such as events."""

    @property
    def schema(self) -> Schema: ...
    @property
    def report(self) -> Report | None: ...
    def __iter__(self) -> Generator[Batch, None, None]: ...


def stream_html(title: str, stream: Any) -> str:
    """The first rows; reading ends with them."""
    some: _Stream = stream
    rows: list[tuple[Any, ...]] = []
    with warnings.catch_warnings(), contextlib.closing(iter(some)) as batches:
        # It stands in the report.
        warnings.simplefilter("ignore", UnreadableWarning)
        # One more, to know whether there are more.
        while len(rows) <= ROWS_SHOWN and (batch := next(batches, None)) is not None:
            rows += batch.rows(0, min(len(batch), ROWS_SHOWN + 1 - len(rows)))
    is_cut = len(rows) > ROWS_SHOWN
    head = f"<b>{safe(type(stream).__name__)}</b> <code>{safe(shown.text(title).value)}</code>"
    said = "" if is_cut or some.report is None else report_line(some.report)
    return page(head + said + _rows(some.schema, rows[:ROWS_SHOWN], "... and more rows" if is_cut else ""))


def batch_html(batch: Batch) -> str:
    """The first rows, and the number of rows after them."""
    rows = batch.rows(0, min(len(batch), ROWS_SHOWN))
    more = len(batch) - len(rows)
    return page(_rows(batch.schema, rows, f"... and {shown.counted(more, 'more row')}" if more else ""))


def _rows(schema: Schema, rows: Sequence[tuple[Any, ...]], rest: str) -> str:
    """Unformatted rows under the names of their columns."""
    if not schema.names:
        return "<p><small>no columns</small></p>"
    places = [_Plain(place, name, type_, rows) for place, (name, type_) in enumerate(schema)]
    if len(places) > _COLUMNS_SHOWN:
        # Of events of many names each has few of all fields.
        some = [place for place in places if place.values] or places
        places = some[:_COLUMNS_SHOWN]
        why = "" if len(some) > len(places) else ", which have nothing in these rows"
        rest += f"{'; ' if rest else ''}... and {shown.counted(len(schema.names) - len(places), 'more column')}{why}"
    return grid([place.column() for place in places], rows, rest or ("" if rows else "no rows"))


class _Plain:
    """A column of unformatted values."""

    def __init__(self, place: int, name: str, type_: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.place, self.name, self.type = place, name, type_
        self.values = [row[place] for row in rows if row[place] is not None]

    def column(self) -> Column:
        is_left = not self.type.startswith(("Int", "UInt", "Float", "Decimal", "Timestamp", "Duration"))
        note, say = self._said()
        words = lambda row: shown.NOTHING if row[self.place] is None else say(row[self.place])  # noqa: E731
        return Column(self.name, note, self.type, is_left, words)

    def _said(self) -> tuple[str, Callable[[Any], Words]]:
        if self.type.startswith("Timestamp(ns"):
            return shown.times(self.values, "UTC" if "UTC" in self.type else "")
        if self.type == "Duration(ns)":
            return "", lambda nanos: Words(shown.duration(nanos), f"{nanos:,} ns")
        if self.type.startswith("Float"):
            return "", lambda value: Words(f"{value:.6g}", repr(value))
        return "", shown.text


# Reports.


def report_html(report: Report) -> str:
    """The report of an answer."""
    return page(report_line(report))


def report_line(report: Report) -> str:
    """The report inside another element: the places that it names are folded."""
    words = safe(report.summary())
    if report.complete and not report.losses and not report.rules:
        words = f"<small>{words}</small>"
    else:
        words = f"<b>⚠ {words}</b>"
    problems = [*report.unreadable, *report.assumptions]
    if not problems:
        return f"<div>{words}</div>"
    items = "".join(f"<li><code>{_lines(problem)}</code></li>" for problem in problems[:_PLACES_SHOWN])
    more = len(problems) - _PLACES_SHOWN
    rest = f"<li>... and {more:,} more</li>" if more > 0 else ""
    return f"<details><summary>{words}</summary><ul>{items}{rest}</ul></details>"


def _lines(problem: Problem) -> str:
    """Lines of a message. Marks below a place in a text stay aligned with it."""
    said = problem.message if problem.message.startswith(problem.place) else str(problem)
    return "<br>".join(map(safe, said[:_PLACE_MAX].split("\n")))


# Schemas.


def schema_html(schema: Schema) -> str:
    """A table with one row for each column."""
    known = schema.metadata
    rows = [(name, type_, known[name].get("title"), known[name].get("unit")) for name, type_ in schema]
    titles = ("column", "type", "title", "unit") if any(row[2] for row in rows) else ("column", "type")
    columns = [_Plain(place, title, "Utf8", rows).column() for place, title in enumerate(titles)]
    more = len(rows) - _NAMES_SHOWN
    return page(grid(columns, rows[:_NAMES_SHOWN], f"... and {shown.counted(more, 'more column')}" if more > 0 else ""))
