"""Traces in notebooks: facts, and event density over time.

::

    k400  complete
    bytes over time, at most 8.3 MiB/s
    ▇█▆▅▆██▇▇▇▅▅▇█▇▇█▆▅▆██▆█▇
      |17:46:30   |17:46:45
    events   about 12,610,453, ...       11.7%  sched_switch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kymograph import _shown as shown
from kymograph._html import hinted, page, report_line, safe

if TYPE_CHECKING:
    from kymograph._info import Info, TraceInfo

#: The size of a plot.
_WIDTH, _HEIGHT = 600, 48
#: Traces and names of events that are named before the rest is counted.
_TRACES_SHOWN, _NAMES_SHOWN = 4, 6


def trace_html(info: Info) -> str:
    """The HTML of traces."""
    more = len(info.traces) - _TRACES_SHOWN
    names = ", ".join(trace.name for trace in info.traces[:_TRACES_SHOWN]) + (f", and {more:,} more" if more > 0 else "")
    paths = hinted(", ".join(trace.path for trace in info.traces[:_TRACES_SHOWN]))
    facts = "".join(
        f"<tr><td style='text-align:left'><small>{name}</small></td><td style='text-align:left;white-space:normal'>{safe(words)}</td></tr>"
        for name, words in _facts(info).items()
        if words
    )
    return page(
        f"<b{paths}>{safe(names)}</b>{report_line(info.report)}{_density(info)}"
        f"<div style='display:flex;flex-wrap:wrap;gap:0 2em;align-items:flex-start'>"
        f"<div class='box'><table class='k'>{facts}</table></div><div class='box'>{_busiest(info)}</div></div>"
    )


def _facts(info: Info) -> dict[str, str]:
    about = "" if info.events_is_exact else "about "
    begin, end = info.begin_ns, info.end_ns
    is_timed = begin is not None and end is not None
    rate = ""
    if is_timed and end > begin:  # type: ignore[operator]
        each = info.events * 1e9 / (end - begin)  # type: ignore[operator]
        rate = f", {about}{shown.number(each if each < 10 else round(each))} per second"
    return {
        "recorded": "; ".join(dict.fromkeys(filter(None, map(_recorded, info.traces[:_TRACES_SHOWN])))),
        "events": f"{about}{info.events:,}{rate}",
        "classes": f"{sum(trace.classes for trace in info.traces):,} declared",
        "streams": f"{info.streams:,} with {shown.counted(info.packets, 'packet')}, {shown.size(info.size_bytes)}",
        "span": shown.span(begin, end, info.unix) if is_timed else "unknown",  # type: ignore[arg-type]
    }


def _recorded(trace: TraceInfo) -> str:
    """``by lttng-modules 2.8 on wilbrod, Linux 4.4.3``"""
    known = trace.environment
    tracer = " ".join([known.get("tracer_name", ""), ".".join(known[part] for part in ("tracer_major", "tracer_minor") if part in known)])
    parts = [f"by {tracer.strip()}" if tracer.strip() else "", f"on {known['hostname']}" if "hostname" in known else ""]
    system = " ".join(known[part] for part in ("sysname", "kernel_release") if part in known)
    return " ".join(filter(None, parts)) + (f", {system}" if system and any(parts) else "")


def _busiest(info: Info) -> str:
    """The most frequent names of events."""
    some = [(shown.percent(share), shown.text(name)) for name, share in info.busiest[:_NAMES_SHOWN]]
    rows = "".join(
        f"<tr><td>{share}</td><td style='text-align:left'{hinted(name.exactly)}>{safe(name.value)}</td></tr>" for share, name in some
    )
    more = len(info.busiest) - len(some)
    if more > 0:
        rows += f"<tr><td></td><td style='text-align:left'><small>... and {shown.counted(more, 'more name')}</small></td></tr>"
    return f"<table class='k'{hinted('how often events of a name occur')}>{rows}</table>" if rows else ""


def _density(info: Info) -> str:
    """Bars in the text color, the value of the highest one, and times below."""
    density, begin, end = info.density_bits, info.begin_ns, info.end_ns
    highest = max(density, default=0)
    if highest == 0 or begin is None or end is None:
        return ""
    length = max(end - begin, 1) / len(density)
    bars = []
    for place, bits in enumerate(density):
        # What holds anything is visible.
        height = max(1.0, bits / highest * _HEIGHT) if bits else 0
        since = begin + int(place * length)
        when = shown.time_of_day(since, _digits(length)) if info.unix else shown.since_origin(since)
        said = hinted(f"from {when}: {shown.size(bits / 8)}, {_rate(bits, length)}")
        bars.append(f"<span style='flex:1;height:100%;display:flex;align-items:flex-end'{said}>{_bar(height)}</span>")
    # Borders, which are printed too, and which JupyterLab leaves in notebooks that are not trusted; there it takes out SVG.
    plot = (
        f"<div role='img' aria-label='how many bytes there are over the span'"
        f" style='display:flex;height:{_HEIGHT}px;border-bottom:1px solid'>{''.join(bars)}</div>"
    )
    peak = f"<small>bytes over time, at most {_rate(highest, length)}</small>"
    return f"<div style='max-width:{_WIDTH}px;margin:.4em 0'>{peak}{plot}{_axis(begin, end, info.unix)}</div>"


def _bar(height: float) -> str:
    """One bar, in the text color."""
    return f"<span style='width:90%;border-bottom:{height:.1f}px solid;opacity:.6'></span>" if height else ""


def _rate(bits: int, nanos: float) -> str:
    return f"{shown.size(bits / 8 * 1e9 / nanos)}/s"


def _axis(begin: int, end: int, is_unix: bool) -> str:
    """Round times below a plot; of several in one second, all but the first show only the fraction."""
    length = max(end - begin, 1)
    step = _step(length)
    marks, second = [], None
    for at in range(-(-begin // step) * step, end + 1, step):
        left = (at - begin) / length
        words = shown.time_of_day(at, _digits(step)) if is_unix else f"{at / 1e9:,.{_digits(step)}f} s"
        words, second = words[8:] if is_unix and words[:8] == second else words, words[:8]
        # Those near an edge stay inside, also of narrow plots.
        half = len(words) * 0.008
        shift = 0 if left < half else 100 if left > 1 - half else 50
        place = f"position:absolute;left:{left:.2%}"
        marks.append(
            f"<span style='{place};top:0;height:4px;border-left:1px solid'></span>"
            f"<small style='{place};top:3px;transform:translateX(-{shift}%)'>{words}</small>"
        )
    zone = "UTC" if is_unix else "since the clock's origin"
    return f"<div style='position:relative;height:1.7em;white-space:nowrap'{hinted(zone)}>{''.join(marks)}</div>"


_SECOND = 1_000_000_000
#: Lengths of time that people count in, in nanoseconds: 1, 2, 5, 10 and so on, seconds, minutes, hours, days.
_STEPS: list[int] = [step * 10**power for power in range(9) for step in (1, 2, 5)] + [
    unit * step * _SECOND
    for unit, steps in ((1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 4, 6, 12)), (86_400, (1, 2, 7)))
    for step in steps
]


def _step(length: int) -> int:
    """Distance between marks: a few marks, and no more than fit."""
    fitting = (step for step in _STEPS if length / step < 4)
    return next(fitting, -(-length // (3 * _STEPS[-1])) * _STEPS[-1])


def _digits(step_ns: float) -> int:
    """Number of digits of the second that distinguish steps."""
    return next((digits for digits in (0, 3, 6) if step_ns >= 10 ** (9 - digits)), 9)
