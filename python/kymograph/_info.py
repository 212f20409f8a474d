"""Overview of traces."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kymograph._report import Report


@dataclass(frozen=True)
class Clock:
    """A clock of a trace."""

    name: str
    frequency_hz: int
    #: Its times count from 1970.
    unix: bool


@dataclass(frozen=True)
class CpuCounter:
    """The counter of a CPU, against that of the first one."""

    cpu: int
    #: How far it is behind the first one, in nanoseconds; ``None``: the CPU did not answer.
    offset_ns: int | None
    #: The true offset differs by at most so many nanoseconds.
    error_ns: int = 0
    #: The same in ticks.
    offset_ticks: int = 0
    error_ticks: int = 0
    #: Ticks that question and answer were on their way.
    trip_ticks: int = 0


@dataclass(frozen=True)
class Counters:
    """How far the counters of the CPUs that stamped a trace are apart."""

    #: All of them may be the same.
    agree: bool
    #: An upper bound of the difference between any two of them; ``None``: fewer than two are known.
    apart_ns: int | None
    frequency_hz: int
    cpus: tuple[CpuCounter, ...]

    @classmethod
    def _of(cls, known: dict[str, Any]) -> Counters:
        return cls(**{**known, "cpus": tuple(CpuCounter(**each) for each in known["cpus"])})


@dataclass(frozen=True)
class TraceInfo:
    """The description of one trace in its metadata."""

    name: str
    #: The folder whose metadata describes it.
    path: str
    #: Other folders with parts of it, such as chunks of a rotated session.
    other_paths: tuple[str, ...]
    #: Who recorded it, where: as the tracer says.
    environment: dict[str, str]
    #: Classes of events that are declared.
    classes: int
    clocks: tuple[Clock, ...]
    #: The counters of CPUs, if the recorder has compared them.
    counters: Counters | None
    #: How far its clocks are taken to be ahead of what it says of them: ``clock_shift`` and ``trace_offsets``.
    clock_shift_ns: int
    streams: int
    size_bytes: int
    #: Times count from 1970.
    unix: bool
    begin_ns: int | None
    end_ns: int | None


@dataclass(frozen=True)
class Info:
    """Overview of traces; as text, the output of ``kymo info``.

    >>> info = trace.info()
    >>> info.events, info.events_is_exact, info.streams
    (2400, True, 2)
    >>> info.traces[0].environment["tracer_name"]
    'lttng-ust'
    """

    traces: tuple[TraceInfo, ...]
    streams: int
    packets: int
    size_bytes: int
    #: Events; an estimate from a few packets, unless ``events_is_exact``.
    events: int
    events_is_exact: bool
    #: From the first event or loss to the last one, in nanoseconds since 1970 or, unless ``unix``, the clock's own origin.
    #: Packets, of which the traces' own times are, may begin long before and end long after.
    begin_ns: int | None
    end_ns: int | None
    unix: bool
    #: Bits of content in equal stretches of the span.
    density_bits: tuple[int, ...]
    #: The most frequent classes and their share of all events, from 0 to 1.
    busiest: tuple[tuple[str, float], ...]
    report: Report
    _text: str = field(repr=False)

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        from kymograph._html_traces import trace_html

        return trace_html(self)

    @classmethod
    def _of(cls, text: str, said: str, report: str) -> Info:
        known: dict[str, Any] = json.loads(said)
        traces = tuple(
            TraceInfo(
                **{
                    **each,
                    "other_paths": tuple(each["other_paths"]),
                    "clocks": tuple(Clock(**clock) for clock in each["clocks"]),
                    "counters": each["counters"] and Counters._of(each["counters"]),
                }
            )
            for each in known["traces"]
        )
        same = ("streams", "packets", "size_bytes", "begin_ns", "end_ns", "unix")
        return cls(
            traces=traces,
            events=known["events"]["value"],
            events_is_exact=known["events"]["exact"],
            density_bits=tuple(known["density_bits"]),
            busiest=tuple((each["name"], each["share"]) for each in known["busiest"]),
            report=Report._of(report),
            _text=text,
            **{name: known[name] for name in same},
        )
