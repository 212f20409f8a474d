"""Values as text for notebooks: with units and few digits; the exact value is in a tooltip.

::

    12_345_678 ns in [11_900_000, 14_000_000]    "12.3 ms" "[11.9, 14.0]"   exactly "12,345,678 ns, at least ..."
    1457113582470818709 ns                       "17:46:22.470818709"       exactly "2016-03-04 17:46:22.470818709 UTC; ..."
    None                                         "–"

The command formats values in the same way; times are in UTC here, as in the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple


class Words(NamedTuple):
    """The text of a cell."""

    value: str
    #: The same exactly, or as a whole.
    exactly: str = ""
    #: Between what it is, if that is not certain.
    bounds: str = ""


#: What is unknown, or not there.
NOTHING = Words("–", "null")

#: Units, the smallest first: what each is of the smallest one, and from where on the next one is better.
_DURATIONS = (("ns", 1, 999.5), ("µs", 1e3, 999.5e3), ("ms", 1e6, 999.5e6), ("s", 1e9, 120e9), ("min", 60e9, 7200e9))
_HOURS = (("h", 3600e9, 48 * 3600e9), ("days", 86_400e9, math.inf))
_SIZES = (("B", 1, 1023.5), ("KiB", 1024.0, 1023.95 * 1024), ("MiB", 2.0**20, 1023.95 * 2**20), ("GiB", 2.0**30, 1023.95 * 2**30))
_TIBIBYTES = ("TiB", 2.0**40, math.inf)
_RATES = (("bit/s", 1, 999.5), ("kbit/s", 1e3, 999.5e3), ("Mbit/s", 1e6, 999.5e6), ("Gbit/s", 1e9, math.inf))

#: Characters of a text that are shown, and those that its title has.
_TEXT_MAX, _TITLE_MAX = 96, 1024

def duration(nanos: float, more: int = 0) -> str:
    """``12.3 ms``; ``more``: the number of further digits."""
    return _scaled(nanos, _DURATIONS + _HOURS, more)


def size(count: float, more: int = 0) -> str:
    """``4.0 KiB``"""
    unit, scale, _ = next((each for each in _SIZES if abs(count) < each[2]), _TIBIBYTES)
    return f"{count:,.0f} B" if scale == 1 else f"{count / scale:.{1 + more}f} {unit}"


def bitrate(rate: float, more: int = 0) -> str:
    """``9.60 Mbit/s``"""
    return _scaled(rate, _RATES, more)


def percent(ratio: float, more: int = 0) -> str:
    """``21.5%``; small parts have more digits."""
    part = abs(ratio * 100)
    digits = 4 if 0 < part < 0.001 else 3 if 0 < part < 0.05 else 1
    return f"{ratio * 100:.{digits + more}f}%"


def number(value: float, more: int = 0) -> str:
    """``1,234,567`` or ``0.125``"""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, int) or value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1e-3 <= abs(value) < 1e15:
        return f"{value:.{3 + more}e}"
    return f"{value:,.{(1 if abs(value) >= 1000 else 3) + more}f}"


def _scaled(value: float, units: Iterable[tuple[str, float, float]], more: int, least: int = 0) -> str:
    """With three significant digits, and at least `least` decimals."""
    unit, scale, _ = next(each for each in units if abs(value) < each[2] or each[2] == math.inf)
    scaled = value / scale
    if scale == 1 and value == int(value):
        return f"{int(value)} {unit}"
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    return f"{scaled:.{max(digits + more, least)}f} {unit}"


def measure(cell: tuple[Any, ...], say: Callable[..., str], unit: str) -> Words:
    """A number as formatted by `say`, perhaps with a lower and an upper bound: ``12.3 ms``, ``[11.9, 14.0]``."""
    value, *bounds = cell
    if value is None or value != value:
        return NOTHING
    if not isinstance(value, (int, float)):
        return text(value)
    exactly = f"{value:,}{unit}" if isinstance(value, int) else repr(value)
    low, high = bounds or (value, value)
    if low == value == high:
        words = say(value)
        return Words(words, "" if words == exactly else exactly)
    low = 0 if low is None else low
    # Bounds that look alike get more digits.
    for more in range(9):
        first, last = say(low, more), "∞" if high is None else say(high, more)
        if first != last:
            break
    words = say(value, more)
    own = words.rpartition(" ")[2]
    # What has the same unit need not say it.
    first, last = (each.removesuffix(f" {own}").removesuffix("%") for each in (first, last))
    above = "" if high is None else f", at most {high:,}{unit}"
    return Words(words, f"{exactly}, at least {low:,}{unit}{above}", f"[{first}, {last}]")


def day(nanos: int) -> str | None:
    """``2016-03-04``, in UTC; ``None`` for dates outside of the calendar."""
    try:
        return f"{datetime.fromtimestamp(nanos // 1_000_000_000, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return None


def time_of_day(nanos: int, digits: int = 9) -> str:
    """``17:46:22.470818709``, in UTC"""
    seconds = nanos // 1_000_000_000 % 86_400
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{nanos % 1_000_000_000:09}"[: 9 + digits] if digits else clock


def instant(nanos: int, is_unix: bool = True) -> str:
    """``2016-03-04 17:46:22.470818709``, in UTC, or ``1.000000000 s`` since the clock's origin"""
    date = day(nanos) if is_unix else None
    return f"{date} {time_of_day(nanos)}" if date else since_origin(nanos)


def since_origin(nanos: int) -> str:
    """``-0.000000001 s``: exact, which a number with a point is not"""
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    return f"{sign}{rest // 1_000_000_000:,}.{rest % 1_000_000_000:09} s"


def bar(value: float, most: float, width: int = 20) -> str:
    """``██████▌``: the length is the share of the maximum; any value above zero is visible."""
    eighths = 0 if value <= 0 or most <= 0 else max(1, round(value / most * width * 8))
    return "█" * (eighths // 8) + "▏▎▍▌▋▊▉"[eighths % 8 - 1 : eighths % 8]


def days(nanos: Iterable[int | None]) -> set[str | None]:
    """The days of some instants."""
    return {day(each) for each in nanos if each is not None}


def times(nanos: Iterable[int | None], zone: str) -> tuple[str, Callable[[int], Words]]:
    """The heading of a column of instants, and their format: the heading has the day if all share it."""
    known = days(nanos)
    one = next(iter(known)) if len(known) == 1 else None
    say = time_of_day if one else instant
    return f"{one or ''} {zone if known else ''}".strip(), lambda each: Words(say(each), f"{instant(each)} {zone}; {each} ns")


def text(value: object) -> Words:
    """Any value on one line; only the beginning of a long one."""
    if value is None:
        return NOTHING
    if value == "":
        return Words('""', "an empty text")
    if isinstance(value, bytes):
        value = value[:_TITLE_MAX].hex(" ")
    whole = escaped(str(value)[: _TITLE_MAX + 1])
    if len(whole) <= _TEXT_MAX:
        return Words(whole)
    return Words(f"{whole[: _TEXT_MAX - 1]}…", f"{whole[:_TITLE_MAX]}…" if len(whole) > _TITLE_MAX else whole)


def escaped(words: str) -> str:
    """Escapes line breaks, invisible characters, and characters that reverse text."""
    if words.isprintable():
        return words
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)


def process(name: str | None, pid: int | None, tid: int | None) -> str:
    """``bash (123)``; of a thread that is not the first one ``java (124 of 123)``; thread 0 is an idle CPU."""
    if name is None and tid == 0:
        return "idle"
    known = "unknown" if name is None else text(name).value
    if pid is not None and tid is not None and pid != tid:
        return f"{known} ({tid} of {pid})"
    one = tid if tid is not None else pid
    return known if one is None else f"{known} ({one})"


def interrupt(name: str | None, number: int | None, is_hard: bool | None) -> str:
    """``irq 19 ahci``, ``softirq 1 timer``"""
    kind = "irq" if is_hard else "softirq"
    return f"{kind} {number}" + (f" {text(name).value}" if name is not None else "")


def counted(count: int, what: str) -> str:
    """``1 row``, ``2,400 rows``"""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def length(begin: int, end: int) -> str:
    """The length of a span: ``66.668 ms``."""
    return _scaled(end - begin, _DURATIONS + _HOURS, 0, 3)


def span(begin: int, end: int, is_unix: bool) -> str:
    """Begin, end and length of a span."""
    if begin == end:
        return f"{instant(begin)} UTC" if is_unix else since_origin(begin)
    long = length(begin, end)
    if not is_unix:
        return f"{since_origin(begin)} to {since_origin(end)} ({long})"
    is_one_day = day(begin) == day(end) is not None
    last = time_of_day(end) if is_one_day else instant(end)
    return f"{instant(begin)} to {last} UTC ({long})"
