"""Messages. Those with events are native; here are the others."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph._native import bt2 as _native
from kymograph.compat.bt2 import _utils

_EventMessageConst = _native._EventMessageConst
_ClockSnapshotConst = _native._ClockSnapshotConst


class _UnknownClockSnapshot:
    pass


class _MessageConst(_utils._Object):
    __slots__ = ("_begin", "_count", "_end", "_subject")

    def __init__(self, subject, begin, end, count):
        self._subject, self._begin, self._end, self._count = subject, begin, end, count


def _check_clock(stream):
    if stream.cls.default_clock_class is None:
        raise ValueError("cannot get default clock snapshot: stream class has no default clock class")


class _PacketMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def packet(self):
        return self._subject

    @property
    def default_clock_snapshot(self):
        stream = self.packet.stream
        _check_clock(stream)
        if not getattr(stream.cls, self._trait) or self._begin is None:
            raise ValueError("cannot get default clock snapshot: packets of this stream class do not tell it")
        return self._begin


class _PacketBeginningMessageConst(_PacketMessageConst):
    __slots__ = ()
    _trait = "packets_have_beginning_default_clock_snapshot"


class _PacketEndMessageConst(_PacketMessageConst):
    __slots__ = ()
    _trait = "packets_have_end_default_clock_snapshot"


class _StreamMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def stream(self):
        return self._subject

    @property
    def default_clock_snapshot(self):
        _check_clock(self.stream)
        return _UnknownClockSnapshot() if self._begin is None else self._begin


class _StreamBeginningMessageConst(_StreamMessageConst):
    __slots__ = ()


class _StreamEndMessageConst(_StreamMessageConst):
    __slots__ = ()


class _MessageIteratorInactivityMessageConst(_MessageConst):
    """Never met: files are read, and they end."""

    __slots__ = ()


class _DiscardedMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def stream(self):
        return self._subject

    @property
    def count(self):
        return self._count

    def _check_has_default_clock_snapshots(self):
        if not getattr(self.stream.cls, self._trait):
            raise ValueError(
                "cannot get default clock snapshot: such a message has no clock snapshots for this stream class"
            )

    @property
    def beginning_default_clock_snapshot(self):
        self._check_has_default_clock_snapshots()
        return self._begin

    @property
    def end_default_clock_snapshot(self):
        self._check_has_default_clock_snapshots()
        return self._end


class _DiscardedEventsMessageConst(_DiscardedMessageConst):
    __slots__ = ()
    _trait = "discarded_events_have_default_clock_snapshots"


class _DiscardedPacketsMessageConst(_DiscardedMessageConst):
    __slots__ = ()
    _trait = "discarded_packets_have_default_clock_snapshots"


_KINDS = {
    "stream_beginning": _StreamBeginningMessageConst,
    "stream_end": _StreamEndMessageConst,
    "packet_beginning": _PacketBeginningMessageConst,
    "packet_end": _PacketEndMessageConst,
    "discarded_events": _DiscardedEventsMessageConst,
    "discarded_packets": _DiscardedPacketsMessageConst,
}
