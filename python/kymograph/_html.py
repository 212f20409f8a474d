"""Traces in notebooks: facts, and how dense events are over time, as a plot without any library."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from kymograph._info import Info

_WIDTH, _HEIGHT = 600, 48


def trace_html(info: Info) -> str:
    """What a notebook shows of a trace; light or dark as the notebook is."""
    rows = [
        ("events", f"{'' if info.events_is_exact else 'about '}{info.events:,}"),
        ("streams", f"{info.streams:,} with {info.packets:,} packets, {info.size_bytes:,} bytes"),
        ("span", _span(info)),
        ("report", info.report.summary()),
    ]
    names = ", ".join(trace.name for trace in info.traces[:4]) + (", ..." if len(info.traces) > 4 else "")
    facts = "".join(
        f"<tr><td style='text-align:left;opacity:.7'>{name}</td><td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in rows
    )
    busiest = "".join(
        f"<tr><td style='text-align:right'>{share:.1%}</td><td style='text-align:left'>{html.escape(name)}</td></tr>"
        for name, share in info.busiest[:5]
    )
    return (
        f"<div><b>{html.escape(names)}</b>{density_svg(info.density_bits)}"
        f"<div style='display:flex;gap:2em;align-items:flex-start'><table>{facts}</table><table>{busiest}</table></div></div>"
    )


def density_svg(density: tuple[int, ...]) -> str:
    """Bars for stretches of time, in the colour of text; what holds anything is visible."""
    highest = max(density, default=0)
    if highest == 0:
        return ""
    width = _WIDTH / len(density)
    bars = []
    for place, bits in enumerate(density):
        if bits:
            height = max(1.0, bits / highest * _HEIGHT)
            bars.append(
                f"<rect x='{place * width:.2f}' y='{_HEIGHT - height:.2f}' width='{width * 0.9:.2f}' height='{height:.2f}'/>"
            )
    label = "how many bytes there are over the span"
    return (
        f"<svg role='img' aria-label='{label}' viewBox='0 0 {_WIDTH} {_HEIGHT}' width='100%' height='{_HEIGHT}'"
        f" preserveAspectRatio='none' style='display:block;max-width:{_WIDTH}px;margin:.5em 0;color:inherit'"
        f" fill='currentColor' fill-opacity='.6'><title>{label}</title>{''.join(bars)}</svg>"
    )


def rows_html(title: str, names: Sequence[str], rows: Iterable[tuple[object, ...]]) -> str:
    """What a notebook shows of rows."""

    def cell(value: object) -> str:
        if value is None:
            return "<td></td>"
        if isinstance(value, float):
            return f"<td style='text-align:right'>{value:,.4g}</td>"
        if isinstance(value, int) and not isinstance(value, bool):
            return f"<td style='text-align:right'>{value:,}</td>"
        return f"<td style='text-align:left'>{html.escape(str(value))}</td>"

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><caption>{html.escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _span(info: Info) -> str:
    if info.begin_ns is None or info.end_ns is None:
        return "unknown"
    length = f"{(info.end_ns - info.begin_ns) / 1e9:,.6g} s"
    if not info.unix:
        return f"{length} from {info.begin_ns:,} ns"
    begin = datetime.fromtimestamp(info.begin_ns // 1_000_000_000, UTC)
    return f"{length} from {begin:%Y-%m-%dT%H:%M:%S}.{info.begin_ns % 1_000_000_000:09}Z"
