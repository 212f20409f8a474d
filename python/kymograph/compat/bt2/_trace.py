"""Traces, streams, packets, and their classes."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc
import uuid

from kymograph.compat.bt2 import _utils
from kymograph.compat.bt2._error import _OverflowError
from kymograph.compat.bt2._field_class import _made
from kymograph.compat.bt2._value import _const


class EventClassLogLevel:
    EMERGENCY = 0
    ALERT = 1
    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6
    DEBUG_SYSTEM = 7
    DEBUG_PROGRAM = 8
    DEBUG_PROCESS = 9
    DEBUG_MODULE = 10
    DEBUG_UNIT = 11
    DEBUG_FUNCTION = 12
    DEBUG_LINE = 13
    DEBUG = 14


class ClockClassOffset:
    def __init__(self, seconds=0, cycles=0):
        _utils._check_int64(seconds)
        _utils._check_int64(cycles)
        self._seconds, self._cycles = seconds, cycles

    @property
    def seconds(self):
        return self._seconds

    @property
    def cycles(self):
        return self._cycles

    def __eq__(self, other):
        return isinstance(other, type(self)) and (self.seconds, self.cycles) == (other.seconds, other.cycles)

    __hash__ = None


class _Said(_utils._Object):
    """Made of what is said of it."""

    def __init__(self, said):
        self._said = said

    @property
    def user_attributes(self):
        return _const(self._said["attributes"] or {})


class _ClockClassConst(_Said):
    def __init__(self, said, is_unix):
        super().__init__(said)
        self._is_unix = is_unix

    @property
    def name(self):
        return self._said["name"]

    @property
    def description(self):
        return self._said["description"]

    @property
    def frequency(self):
        return self._said["frequency"]

    @property
    def precision(self):
        return self._said["precision"]

    @property
    def offset(self):
        return ClockClassOffset(self._said["offset_s"], self._said["offset_cycles"])

    @property
    def origin_is_unix_epoch(self):
        return self._is_unix

    @property
    def uuid(self):
        return _uuid(self._said)

    def cycles_to_ns_from_origin(self, cycles):
        _utils._check_uint64(cycles)
        frequency, offset = self.frequency, self.offset
        nanos = offset.seconds * 10**9 + offset.cycles * 10**9 // frequency + cycles * 10**9 // frequency
        if not -(2**63) <= nanos < 2**63:
            raise _too_large(cycles)
        return nanos


def _too_large(cycles):
    return _OverflowError(
        f"cannot get clock snapshot's nanoseconds from origin: {cycles} cycles are more nanoseconds than 64 bits hold"
    )


def _uuid(said):
    return None if said["uuid"] is None else uuid.UUID(said["uuid"])


class _EventClassConst(_Said):
    def __init__(self, said, stream_class):
        super().__init__(said)
        self._stream_class = stream_class
        self._specific_context = _made(said["specific_context"])
        self._payload = _made(said["payload"])

    @property
    def stream_class(self):
        return self._stream_class

    @property
    def name(self):
        return self._said["name"]

    @property
    def id(self):
        return self._said["id"]

    @property
    def log_level(self):
        level = self._said["log_level"]
        return level if level in range(15) else None

    @property
    def emf_uri(self):
        return self._said["emf_uri"]

    @property
    def specific_context_field_class(self):
        return self._specific_context

    @property
    def payload_field_class(self):
        return self._payload


class _ListenerHandle:
    """What a listener is removed by."""

    def __init__(self, of):
        self._of = of


class _Mortal:
    """An object that tells listeners when Python removes it."""

    def add_destruction_listener(self, listener):
        if not callable(listener):
            raise TypeError("'listener' parameter is not callable")
        handle = _ListenerHandle(self.addr)
        self.__dict__.setdefault("_listeners", {})[handle] = listener
        return handle

    def remove_destruction_listener(self, listener_handle):
        _utils._check_type(listener_handle, _ListenerHandle)
        if listener_handle._of != self.addr:
            raise ValueError(f"This listener handle does not match the {self._KIND} object.")
        if self.__dict__.get("_listeners", {}).pop(listener_handle, None) is None:
            raise ValueError(f"This listener handle was already removed: {self._KIND} object")

    def __del__(self):
        for listener in self.__dict__.pop("_listeners", {}).values():
            listener(self)


class _ById(_Said, collections.abc.Mapping):
    """A mapping from ids."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def __len__(self):
        return len(self._ids())

    def __iter__(self):
        return iter(self._ids())


class _StreamClassConst(_ById):
    def __init__(self, said, trace_class, clock_class):
        super().__init__(said)
        self._trace_class, self._clock_class = trace_class, clock_class
        self._packet_context = _made(said["packet_context"])
        self._common_context = _made(said["common_context"])
        self._events = [None] * len(said["events"])

    def _event_class(self, index):
        """Few of the classes that a kernel has occur: they are made when they are met."""
        if self._events[index] is None:
            self._events[index] = _EventClassConst(self._said["events"][index], self)
        return self._events[index]

    def _ids(self):
        return [event["id"] for event in self._said["events"]]

    def __getitem__(self, key):
        _utils._check_int64(key)
        for index, event in enumerate(self._said["events"]):
            if event["id"] == key:
                return self._event_class(index)
        raise KeyError(key)

    @property
    def trace_class(self):
        return self._trace_class

    @property
    def name(self):
        return self._said["name"]

    @property
    def id(self):
        return self._said["id"]

    @property
    def assigns_automatic_event_class_id(self):
        return False

    @property
    def assigns_automatic_stream_id(self):
        return False

    @property
    def supports_packets(self):
        return True

    @property
    def packets_have_beginning_default_clock_snapshot(self):
        return self._said["packet_begin"]

    @property
    def packets_have_end_default_clock_snapshot(self):
        return self._said["packet_end"]

    @property
    def supports_discarded_events(self):
        return self._said["discarded_events"]

    @property
    def discarded_events_have_default_clock_snapshots(self):
        return self._said["discarded_events"] and self._said["losses_have_times"]

    @property
    def supports_discarded_packets(self):
        return self._said["discarded_packets"]

    @property
    def discarded_packets_have_default_clock_snapshots(self):
        return self._said["discarded_packets"] and self._said["losses_have_times"]

    @property
    def packet_context_field_class(self):
        return self._packet_context

    @property
    def event_common_context_field_class(self):
        return self._common_context

    @property
    def default_clock_class(self):
        return self._clock_class


class _TraceClassConst(_Mortal, _ById):
    _KIND = "trace class"

    def __init__(self, said, force_unix):
        super().__init__(said)
        clocks = [_ClockClassConst(clock, clock["unix"] or force_unix) for clock in said["clocks"]]
        self._stream_classes = [
            _StreamClassConst(each, self, None if each["clock"] is None else clocks[each["clock"]])
            for each in said["stream_classes"]
        ]

    def _ids(self):
        return [each.id for each in self._stream_classes]

    def __getitem__(self, key):
        _utils._check_uint64(key)
        for each in self._stream_classes:
            if each.id == key:
                return each
        raise KeyError(key)

    @property
    def assigns_automatic_stream_class_id(self):
        return False


class _TraceEnvironmentConst(collections.abc.Mapping):
    __hash__ = None

    def __init__(self, entries):
        self._entries = {name: _const(value) for name, value in entries}

    def __getitem__(self, key):
        _utils._check_str(key)
        return self._entries[key]

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        return iter(self._entries)


class _TraceConst(_Mortal, _ById):
    _KIND = "trace"

    def __init__(self, said, name, force_unix):
        super().__init__(said)
        self._class = _TraceClassConst(said, force_unix)
        self._name = name
        self._streams = []

    @property
    def user_attributes(self):
        return _const({})

    def _ids(self):
        return [stream.id for stream in self._streams]

    def __getitem__(self, id):
        _utils._check_uint64(id)
        for stream in self._streams:
            if stream.id == id:
                return stream
        raise KeyError(id)

    @property
    def cls(self):
        return self._class

    @property
    def name(self):
        """As it was given; or its host, and where it is below what was named."""
        if self._name is not None:
            return self._name
        return self._said["name"]

    @property
    def uuid(self):
        return _uuid(self._said)

    @property
    def environment(self):
        return _TraceEnvironmentConst(self._said["environment"])


class _StreamConst(_Said):
    def __init__(self, said, trace):
        super().__init__(said)
        self._trace = trace
        self._class = trace.cls._stream_classes[said["class"]]
        trace._streams.append(self)

    @property
    def user_attributes(self):
        return _const({})

    @property
    def cls(self):
        return self._class

    @property
    def name(self):
        return self._said["path"]

    @property
    def id(self):
        return self._said["id"]

    @property
    def trace(self):
        return self._trace


class _PacketConst(_utils._Object):
    __slots__ = ("_context", "_stream")

    def __init__(self, stream, context):
        self._stream, self._context = stream, context

    @property
    def stream(self):
        return self._stream

    @property
    def context_field(self):
        return self._context
