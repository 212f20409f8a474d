"""Answers in notebooks: an index of their tables, the first few of them open.

::

    sched  2016-03-04 17:46:22.47 to 17:46:26.68 UTC (4.2111 s)     the question, and what it is about
    complete                                                        what stands between this and the whole truth
    v Wakeup to run, by thread  per-thread  1,513 rows              a table by its title, and by its name
      Thread           Intervals    Total                           a column as the command calls it
      thread               count    total                           and by its name
      rcu_preempt (7)        332  1.69 ms                           columns that belong together are one
      ... and 1,512 more rows
    > Wakeups between threads  wakers  24,406 rows                           folded
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kymograph import _shown as shown
from kymograph._html import ROWS_SHOWN, Column, grid, page, report_line, safe
from kymograph._shown import Words

if TYPE_CHECKING:
    from kymograph._answer import Answer, Table

#: A table of so many rows is shown as a whole: distributions and courses tell nothing by their beginning.
_ROWS_WHOLE = 25
#: Tables that are shown, and those that are open.
_TABLES_SHOWN, _TABLES_OPEN = 30, 4


def answer_html(question: str, answer: Answer) -> str:
    """All tables of an answer, those behind the first few folded."""
    spans = {table.span_ns for table in answer.tables}
    span = spans.pop() if len(spans) == 1 else None
    is_unix = next((known for known in map(_is_unix, answer.tables) if known is not None), None)
    tables, opened = [], 0
    for table in answer.tables[:_TABLES_SHOWN]:
        is_open = table.num_rows > 0 and opened < _TABLES_OPEN
        opened += is_open
        tables.append(_folded(table, is_open, "" if span else _about(table.span_ns, _is_unix(table))))
    more = len(answer.tables) - _TABLES_SHOWN
    rest = f"<p><small>... and {shown.counted(more, 'more table')}</small></p>" if more > 0 else ""
    return page(f"<b>{safe(question)}</b>{_about(span, is_unix)}{report_line(answer.report)}{''.join(tables)}{rest}")


def table_html(table: Table) -> str:
    """A table of an answer."""
    return page(_folded(table, True, _about(table.span_ns, _is_unix(table))))


def _folded(table: Table, is_open: bool, about: str) -> str:
    count = table.num_rows + table.omitted
    said = shown.counted(count, "row") if count else "nothing"
    head = f"<b>{safe(table.title)}</b> <code>{safe(table.name)}</code> <small>{said}</small>{about}"
    if not table.num_rows:
        return f"<div>{head}</div>"
    rows = table.rows(0, table.num_rows if table.num_rows <= _ROWS_WHOLE else ROWS_SHOWN)
    more = count - len(rows)
    inside = grid(_columns(table, rows), rows, f"... and {shown.counted(more, 'more row')}" if more else "")
    return f"<details{' open' if is_open else ''}><summary>{head}</summary>{inside}</details>"


def _columns(table: Table, rows: Sequence[tuple[Any, ...]]) -> list[Column]:
    """Displayed columns: a process is one column, and so is a number with its bounds."""
    names, types, known = table.schema.names, table.schema.types, table.schema.metadata
    columns, begin = [], 0
    while begin < len(names):
        about = known[names[begin]]
        end = begin + _parts(names[begin:], about.get("class", ""))
        times = [value for row in rows for value in row[begin:end]] if types[begin].startswith("Timestamp") else None
        columns.append(_column(names[begin:end], begin, about, times))
        begin = end
    if names[:3] == ("low", "high", "count"):
        most = max((row[2] for row in rows), default=0)
        columns.append(Column("", "", "", True, lambda row: Words(shown.bar(row[2], most))))
    return columns


#: What a value becomes that is more than one.
_TAILS = {"process": ("", "_pid", "_tid"), "irq": ("", "_number", "_hard"), "time-range": ("_begin", "_end"), "mixed": ("", "_class")}


def _parts(names: Sequence[str], kind: str) -> int:
    """Number of columns that belong together, from the first one on."""
    tails = _TAILS.get(kind, ("", "_low", "_high"))
    stem = names[0].removesuffix(tails[0])
    return len(tails) if tuple(names[: len(tails)]) == tuple(stem + tail for tail in tails) else 1


def _column(names: Sequence[str], begin: int, about: Mapping[str, str], times: list[int | None] | None) -> Column:
    kind, unit, title = about.get("class", ""), about.get("unit", ""), about.get("title", names[0])
    # What is counted says more.
    title = unit if title == "Count" and unit else title
    note, time = ("", _since_origin) if times is None else shown.times(times, "UTC")
    say, is_left = _said("bits" if unit == "bits" else kind, time)
    name = names[0].removesuffix("_begin") if kind == "time-range" else names[0]
    hint = ", ".join(names) + (f" in {unit}" if unit in ("ns", "B") and times is None else "")
    words = lambda row: say(row[begin : begin + len(names)])  # noqa: E731
    return Column(title[:1].upper() + title[1:], f"{name} {note}".strip(), hint, is_left, words)


def _since_origin(nanos: int) -> Words:
    return Words(shown.since_origin(nanos), f"{nanos} ns since the clock's origin")


_Say = Callable[[tuple[Any, ...]], Words]
#: How numbers with a unit are said, and in what they are counted.
_MEASURES: dict[str, tuple[Callable[..., str], str]] = {
    "duration": (shown.duration, " ns"),
    "size": (shown.size, " B"),
    "ratio": (shown.percent, ""),
    "bitrate": (shown.bitrate, " bit/s"),
    "bits": (lambda bits, more=0: shown.size(bits / 8, more), " bits"),
    "number": (shown.number, ""),
}


def _said(kind: str, time: Callable[[int], Words]) -> tuple[_Say, bool]:
    """The format of cells of a kind, and whether they are left-aligned."""
    if kind == "process":
        return lambda cell: shown.NOTHING if cell == (None, None, None) else Words(shown.process(*cell)), True
    if kind == "irq":
        return lambda cell: shown.NOTHING if cell[1] is None else Words(shown.interrupt(*cell)), True
    if kind == "time-range":
        return lambda cell: _range(time, *cell), True
    if kind == "timestamp":
        return lambda cell: shown.NOTHING if cell[0] is None else time(cell[0]), False
    if kind in _MEASURES:
        say, unit = _MEASURES[kind]
        return lambda cell: shown.measure(cell, say, unit), False
    if kind == "mixed":
        return lambda cell: shown.text(cell[0])._replace(exactly=cell[-1] or "") if cell[0] is not None else shown.NOTHING, True
    return _text, kind not in ("cpu", "fd")


def _text(cell: tuple[Any, ...]) -> Words:
    return Words("yes" if cell[0] else "no") if isinstance(cell[0], bool) else shown.text(cell[0])


def _range(time: Callable[[int], Words], begin: int | None, end: int | None) -> Words:
    first = Words("earlier") if begin is None else time(begin)
    last = Words("never ended") if end is None else time(end)
    length = f" ({shown.duration(end - begin)})" if begin is not None and end is not None else ""
    return Words(f"{first.value} to {last.value}", f"{first.exactly} to {last.exactly}{length}")


def _is_unix(table: Table) -> bool | None:
    """Whether times count from 1970, according to the time columns."""
    kinds = zip(table.schema.metadata.values(), table.schema.types, strict=True)
    times = [type_.startswith("Timestamp") for about, type_ in kinds if about.get("class") in ("timestamp", "time-range")]
    return all(times) if times else None


def _about(span: tuple[int, int] | None, is_unix: bool | None) -> str:
    return f" <small>{safe(shown.length(*span) if is_unix is None else shown.span(*span, is_unix))}</small>" if span else ""
