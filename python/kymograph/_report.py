"""Reports: data that is missing from an answer."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass

from kymograph._errors import LossWarning, UnreadableWarning


@dataclass(frozen=True)
class Problem:
    """A problem: its place, and a sentence."""

    #: The file.
    place: str
    #: What is wrong.
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Report:
    """Losses, unreadable data, and assumptions.

    >>> trace.info().report
    Report(unreadable=(), assumptions=(), events_discarded=0, events_discarded_is_lower_bound=False, packets_lost=0, rules=())
    >>> trace.info().report.complete
    True
    """

    #: What could not be read: the answer lacks it.
    unreadable: tuple[Problem, ...] = ()
    #: What was assumed: the answer relies on it.
    assumptions: tuple[Problem, ...] = ()
    #: Events that tracers say they discarded.
    events_discarded: int = 0
    #: There may be more: a stream does not say how many it lost before its first packet.
    events_discarded_is_lower_bound: bool = False
    #: Packets that are missing by their sequence numbers.
    packets_lost: int = 0
    #: Rules of recorders that have kept only some of the events that the answer is about, each as a sentence.
    rules: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything was read."""
        return not self.unreadable

    @property
    def losses(self) -> str | None:
        """Losses of the tracers, as a sentence; ``None``: they report none."""
        parts = []
        if self.events_discarded == 0 and self.events_discarded_is_lower_bound:
            parts.append("an unknown number of events discarded")
        elif self.events_discarded:
            at_least = "at least " if self.events_discarded_is_lower_bound else ""
            parts.append(f"{at_least}{_counted(self.events_discarded, 'event')} discarded")
        if self.packets_lost:
            parts.append(f"{_counted(self.packets_lost, 'packet')} lost")
        return f"the tracer reports {' and '.join(parts)}" if parts else None

    def summary(self) -> str:
        """A summary in a few words."""
        parts = ["complete" if self.complete else f"{_counted(len(self.unreadable), 'place')} could not be read"]
        parts += [self.losses] if self.losses else []
        parts += self.rules
        parts += [_counted(len(self.assumptions), "assumption")] if self.assumptions else []
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        from kymograph._html import report_html

        return report_html(self)

    def __add__(self, other: Report) -> Report:
        """The report on two parts of an answer together."""
        return Report(
            unreadable=tuple(dict.fromkeys(self.unreadable + other.unreadable)),
            assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            events_discarded=self.events_discarded + other.events_discarded,
            events_discarded_is_lower_bound=self.events_discarded_is_lower_bound or other.events_discarded_is_lower_bound,
            packets_lost=self.packets_lost + other.packets_lost,
            rules=tuple(dict.fromkeys(self.rules + other.rules)),
        )

    @classmethod
    def _of(cls, text: str) -> Report:
        """Makes a report from the one of the native library."""
        said = json.loads(text)
        return cls(
            unreadable=tuple(Problem(**each) for each in said["unreadable"]),
            assumptions=tuple(Problem(**each) for each in said["assumptions"]),
            events_discarded=said["events_discarded"],
            events_discarded_is_lower_bound=said["events_discarded_is_lower_bound"],
            packets_lost=said["packets_lost"],
            rules=tuple(rule["message"] for rule in said.get("rules", ())),
        )

    def _warn(self, *, losses: bool = False, stacklevel: int = 3) -> Report:
        """Warns about unreadable data, at the line of the caller; and about losses, if the result has no report."""
        for problem in self.unreadable[:_WARNINGS_MAX]:
            warnings.warn(str(problem), UnreadableWarning, stacklevel=stacklevel)
        more = len(self.unreadable) - _WARNINGS_MAX
        if more > 0:
            warnings.warn(f"and {more} more places could not be read", UnreadableWarning, stacklevel=stacklevel)
        if losses and self.losses:
            warnings.warn(self.losses, LossWarning, stacklevel=stacklevel)
        return self


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


#: Places that are named before the rest is counted, as the command does.
_WARNINGS_MAX = 20
