"""Events as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kymograph._tables import Lazy

if TYPE_CHECKING:
    from kymograph import _native


class Events(Lazy):
    """Events as columns, in time order; `Trace.events` makes it. Reading starts when you take the first
    rows; each new iteration reads again.

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
