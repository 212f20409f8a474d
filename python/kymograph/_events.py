"""Events as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kymograph._tables import Lazy

if TYPE_CHECKING:
    from kymograph import _native


class Events(Lazy):
    """Events that are asked for, as columns, in the order of time; `Trace.events` makes it. Nothing is read before somebody
    asks for rows, and whoever asks again reads again.

    >>> events = trace.events("jobs:chunk", columns=["time", "id"])
    >>> events
    <kymograph.Events 'jobs:chunk': time, id>
    >>> sum(len(batch) for batch in events)
    1200
    """

    def __init__(self, native: _native.Events, title: str) -> None:
        self._native: _native.Events = native
        self._title = title

    def __repr__(self) -> str:
        return f"<kymograph.Events {self._title}: {', '.join(self.schema.names)}>"
