"""What stands between an answer and the whole truth."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass

from kymograph._errors import UnreadableWarning


@dataclass(frozen=True)
class Problem:
    """A place and a sentence."""

    #: The file.
    place: str
    #: What is wrong.
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Report:
    """What was lost, could not be read, or had to be assumed.

    >>> trace.info().report
    Report(unreadable=(), assumptions=(), events_discarded=0, events_discarded_is_lower_bound=False, packets_lost=0)
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

    @property
    def complete(self) -> bool:
        """Whether everything was read."""
        return not self.unreadable

    @classmethod
    def _of(cls, text: str) -> Report:
        """From what the native part says."""
        said = json.loads(text)
        return cls(
            unreadable=tuple(Problem(**each) for each in said["unreadable"]),
            assumptions=tuple(Problem(**each) for each in said["assumptions"]),
            events_discarded=said["events_discarded"],
            events_discarded_is_lower_bound=said["events_discarded_is_lower_bound"],
            packets_lost=said["packets_lost"],
        )

    def _warn(self) -> Report:
        """Warns of what could not be read, on behalf of the line that asked."""
        for problem in self.unreadable[:_WARNINGS_MAX]:
            warnings.warn(str(problem), UnreadableWarning, stacklevel=3)
        more = len(self.unreadable) - _WARNINGS_MAX
        if more > 0:
            warnings.warn(f"and {more} more places could not be read", UnreadableWarning, stacklevel=3)
        return self


#: Places that are named before the rest is counted, as the command does.
_WARNINGS_MAX = 20
