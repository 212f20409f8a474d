"""Options as words of the command line, so that one parser defines their meaning for both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypedDict


class _Datetime64(Protocol):
    """`numpy.datetime64`, which need not be installed."""

    def astype(self, dtype: Any, /) -> Any: ...


#: A point in time: as the command takes it (``"17:46:22.5"``, ``"2016-03-04 17:46"``, seconds ``"1457113582.5"``; in the local
#: zone), nanoseconds since the clock's origin, a ``datetime`` (without a zone: local), or a ``numpy.datetime64`` (UTC).
Time: TypeAlias = str | SupportsIndex | datetime | _Datetime64
#: A length of time: as the command takes it (``"1.5ms"``), nanoseconds, or a ``timedelta``.
Duration: TypeAlias = str | SupportsIndex | timedelta
#: A size: as the command takes it (``"4KiB"``), or bytes.
Size: TypeAlias = str | int
#: A file.
StrPath: TypeAlias = str | os.PathLike[str]
#: How far clocks of single traces are ahead, in nanoseconds or as a ``timedelta``, by path.
Offsets: TypeAlias = Mapping[StrPath, int | timedelta] | Mapping[str, int | timedelta] | Mapping[str, int]


class Options(TypedDict, total=False):
    """Options of all analyses; ``kymo cpu --help`` describes each."""

    #: Looks only at events for which this expression is true.
    where: str
    #: Begins with the first event that is not before.
    begin: Time
    #: Ends with the last event that is not after.
    end: Time
    #: What to tell apart, in the words of the analysis.
    by: str | Sequence[str]
    #: Rows of each table at most. All, if nothing is said.
    top: int | Literal["all"]
    #: Only what lasts at least so long.
    min: Duration
    #: Only what lasts at most so long.
    max: Duration
    #: Only what has at least so many bytes.
    min_size: Size
    #: Only what has at most so many bytes.
    max_size: Size
    #: Only on these CPUs: numbers, or ``"0,2-3"``.
    cpu: int | str | Sequence[int | str]
    #: Only of these threads.
    tid: int | Sequence[int]
    #: Only of threads with such a name; ``*`` is any text.
    procname: str | Sequence[str]
    #: Only system calls, pairs of groups, or messages with such a name.
    name: str | Sequence[str]
    #: Only these interrupts, by number.
    irq: int | Sequence[int]
    #: Only these softirqs, by number.
    softirq: int | Sequence[int]
    #: Results apart for each span of this length, or from event to event: ``"NAME : BEGIN [: END]"``, or several of these.
    period: Duration | Sequence[str]
    #: What is told of such periods.
    period_captures: str | Sequence[str]
    #: Into how many bins distributions are divided.
    bins: int
    #: Gives all distributions of one kind the same bins.
    freq_uniform: bool
    #: Puts distributions of one kind into one table.
    freq_series: bool
    #: A mapping from events to roles that goes before those that are built in.
    roles: StrPath
    #: Takes times in UTC instead of the local zone.
    gmt: bool


class StateOptions(TypedDict, total=False):
    """Options of `Trace.state_at`."""

    #: Threads that are shown at most.
    top: int | Literal["all"]
    #: Only these CPUs.
    cpu: int | str | Sequence[int | str]
    #: Only these threads.
    tid: int | Sequence[int]
    #: Only threads with such a name.
    procname: str | Sequence[str]
    #: Shows states too that an own analysis declares: ``[[states]]`` of this file.
    own: StrPath
    #: A mapping from events to roles.
    roles: StrPath
    #: Takes times in UTC.
    gmt: bool


class PrintOptions(TypedDict, total=False):
    """Options of `Trace.print`; ``kymo print --help`` describes each."""

    format: Literal["text", "details", "json", "csv", "none"]
    event: str | Sequence[str]
    where: str
    begin: Time
    end: Time
    limit: int
    stream_intersection: bool
    clock_force_correlate: bool
    color: Literal["always", "never"]
    print_enum_flags: bool
    no_trace_name: bool
    no_stream_name: bool
    clock_cycles: bool
    clock_date: bool
    clock_gmt: bool
    clock_seconds: bool
    no_delta: bool
    names: str | Sequence[str]
    fields: str | Sequence[str]


_TIMES = {"begin", "end", "at"}
_DURATIONS = {"min", "max", "period"}
_FILES = {"roles", "own"}
#: Options that are said once for each value; all others have their values behind commas.
_REPEATED = {"event", "period", "period_captures", "start", "stop"}
_RENAMED = {"where": "filter", "gmt": "clock-gmt"}


def words(method: str, options: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The command-line words for these options; ``None`` gives no word."""
    known = frozenset(known)
    line: list[str] = []
    for name, value in options.items():
        if name not in known:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        if value is None or value is False:
            continue
        option = "--" + _RENAMED.get(name, name).replace("_", "-")
        if value is True:
            line.append(option)
        elif name in _REPEATED and not isinstance(value, str) and isinstance(value, Iterable):
            line.extend(f"{option}={_word(name, each)}" for each in value)
        else:
            line.append(f"{option}={_word(name, value)}")
    return line


def names(columns: Sequence[str] | None) -> list[str] | None:
    """Names of columns. A single name may be given as a string, which would otherwise iterate over its letters."""
    if isinstance(columns, str):
        raise TypeError(f"columns are a list of names: [{columns!r}]")
    return None if columns is None else list(columns)


def _word(name: str, value: Any) -> str:
    if name in _TIMES:
        return time(value)
    if name in _DURATIONS:
        return duration(value)
    if name in _FILES:
        return str(os.fspath(value))
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(str(each) for each in value)


def duration(length: Duration) -> str:
    """A duration in the syntax of the command."""
    if isinstance(length, str):
        return length
    if not isinstance(length, (timedelta, SupportsIndex)):
        raise TypeError(f"a length of time is text, nanoseconds or a timedelta, not {length!r}")
    nanos = timedelta_ns(length) if isinstance(length, timedelta) else length.__index__()
    if nanos < 0:
        raise ValueError(f"a length of time cannot be negative: {length!r}")
    return f"{nanos}ns"


def time(when: Time) -> str:
    """A time in the syntax of the command."""
    if isinstance(when, str):
        return when
    nanos = time_ns(when)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    return f"{sign}{nanos // 1_000_000_000}.{nanos % 1_000_000_000:09}"


def time_ns(when: Time) -> int:
    """A time in nanoseconds, exactly."""
    if isinstance(when, datetime):
        # pandas' has nanoseconds besides.
        nanos = getattr(when, "nanosecond", 0)
        plain: datetime = when.to_pydatetime(warn=False) if hasattr(when, "to_pydatetime") else when
        aware = plain if plain.tzinfo else plain.astimezone()
        return timedelta_ns(aware - datetime(1970, 1, 1, tzinfo=UTC)) + int(nanos)
    if isinstance(when, SupportsIndex):
        return when.__index__()
    if isinstance(when, str) or not hasattr(when, "astype"):
        raise TypeError(f"a time is text, nanoseconds, a datetime or a numpy.datetime64, not {when!r}")
    return int(when.astype("datetime64[ns]").astype("int64"))


def timedelta_ns(length: timedelta) -> int:
    """A duration in nanoseconds, exactly."""
    nanos = getattr(length, "nanoseconds", 0)
    return (length.days * 86_400 + length.seconds) * 1_000_000_000 + length.microseconds * 1_000 + int(nanos)
