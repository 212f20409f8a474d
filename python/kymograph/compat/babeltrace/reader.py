"""Reads traces as Babeltrace 1's `TraceCollection` does, over the messages of Kymograph.

    TraceCollection ── add_trace(path) ──> TraceHandle ── events ──> EventDeclaration ── fields ──> FieldDeclaration
          └───── events ──> Event ── ["field"], field_with_scope(...) ──> Python's own values

Values come from the native messages of `bt2`; declarations from the text of the metadata; headers, which the native messages do
not have, from the files.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import os
import sys
import warnings

from kymograph._errors import Error as KymographError
from kymograph._errors import LossWarning, UnreadableWarning
from kymograph._native import bt2 as _native
from kymograph.compat.babeltrace import _described, _event, _tsdl
from kymograph.compat.babeltrace._declarations import (
    ArrayFieldDeclaration,
    EnumerationFieldDeclaration,
    EventDeclaration,
    FieldDeclaration,
    FloatFieldDeclaration,
    IntegerFieldDeclaration,
    SequenceFieldDeclaration,
    StringFieldDeclaration,
    StructureFieldDeclaration,
    VariantFieldDeclaration,
)
from kymograph.compat.babeltrace._event import Event
from kymograph.compat.babeltrace._packets import PacketFiles
from kymograph.compat.babeltrace._shapes import EventShape
from kymograph.compat.babeltrace.common import FieldError
from kymograph.compat.bt2 import _iterator, _message
from kymograph.compat.bt2._error import _Error

__all__ = [
    "ArrayFieldDeclaration",
    "EnumerationFieldDeclaration",
    "Event",
    "EventDeclaration",
    "FieldDeclaration",
    "FieldError",
    "FloatFieldDeclaration",
    "IntegerFieldDeclaration",
    "SequenceFieldDeclaration",
    "StringFieldDeclaration",
    "StructureFieldDeclaration",
    "TraceCollection",
    "TraceHandle",
    "VariantFieldDeclaration",
]


class TraceCollection:
    """Traces that are read together.

    >>> from kymograph.compat import babeltrace
    >>> traces = babeltrace.TraceCollection()
    >>> traces.add_trace("examples/traces/demo", "ctf").id
    0
    >>> next(traces.events)["name"]
    'config.toml'
    """

    def __init__(self, intersect_mode=False):
        self._intersect_mode = intersect_mode
        self._opened = {}
        self._next_id = 0

    def add_trace(self, path, format_str):
        """Add the trace in a folder, without the folders in it.

        Returns:
            Its handle; `None` if there is no trace that can be read. The reason is printed to the standard error then.
        """
        try:
            opened = _OpenedTrace(os.fspath(path), format_str)
        except (_Error, KymographError) as error:
            print(f"[error] Cannot open trace {path}: {error}", file=sys.stderr)
            return None
        id, self._next_id = self._next_id, self._next_id + 1
        self._opened[id] = opened
        return TraceHandle._of(self, id)

    def add_traces_recursive(self, path, format_str):
        """Add the traces in a folder and in all folders in it.

        Returns:
            Their handles by paths; `None` if there are traces and none can be read.
        """
        handles, has_failed = {}, False
        for folder, _, files in os.walk(path):
            if "metadata" in files:
                handle = self.add_trace(folder, format_str)
                if handle is None:
                    has_failed = True
                else:
                    handles[folder] = handle
        return None if has_failed and not handles else handles

    def remove_trace(self, trace_handle):
        """Remove a trace."""
        if not isinstance(trace_handle, TraceHandle):
            raise TypeError("in remove_trace, argument 2 must be a TraceHandle instance")
        self._opened.pop(trace_handle._id, None)

    @property
    def intersect_mode(self):
        """Whether only the times are read in which all streams of a trace have packets."""
        return self._intersect_mode

    @property
    def has_intersection(self):
        """1 if a trace has a time in which all its streams have packets; 0 otherwise."""
        return int(any(opened.has_intersection for opened in self._opened.values()))

    @property
    def events(self):
        """The events in the order of time."""
        yield from self._events(None, None)

    def events_timestamps(self, timestamp_begin, timestamp_end):
        """The events from one time to another, both included, in nanoseconds."""
        yield from self._events(timestamp_begin, timestamp_end)

    def _events(self, begin_ns, end_ns):
        if not self._opened or (self._intersect_mode and not self.has_intersection):
            return
        # Of streams whose times are unknown, nothing is left out.
        is_cut = self._intersect_mode and all(opened.has_times for opened in self._opened.values())
        yield from _Run(self).events(begin_ns, end_ns, is_cut)

    @property
    def timestamp_begin(self):
        """The time of the first event; `None` if there is none."""
        return next((event.timestamp for event in self._events(None, None)), None)

    @property
    def timestamp_end(self):
        """The time of the last event; `None` if there is none."""
        ends = [opened.end_ns for opened in self._opened.values()]
        back_ns = 10**6
        # The last events are looked for in longer and longer times before the end.
        while ends and None not in ends and back_ns < 10**12:
            last = _last(self._events(max(ends) - back_ns, None))
            if last is not None:
                return last
            back_ns *= 1000
        return _last(self._events(None, None))


def _last(events):
    last = None
    for last in events:
        pass
    return None if last is None else last.timestamp


class TraceHandle:
    """A trace of a collection."""

    def __init__(self):
        raise NotImplementedError("TraceHandle cannot be instantiated")

    @classmethod
    def _of(cls, collection, id):
        self = cls.__new__(cls)
        self._trace_collection, self._id = collection, id
        return self

    def __repr__(self):
        return f"Babeltrace TraceHandle: trace_id('{self._id}')"

    @property
    def _opened(self):
        return self._trace_collection._opened.get(self._id)

    @property
    def id(self):
        """The number of the trace in its collection."""
        return self._id

    @property
    def path(self):
        """The folder of the trace; `None` if it was removed."""
        return None if self._opened is None else self._opened.path

    @property
    def timestamp_begin(self):
        """When the first packet begins, in nanoseconds; 0 if packets do not tell it."""
        return (self._opened and self._opened.begin_ns) or 0

    @property
    def timestamp_end(self):
        """When the last packet ends, in nanoseconds; 0 if packets do not tell it."""
        return (self._opened and self._opened.end_ns) or 0

    @property
    def events(self):
        """The declarations of the trace's events."""
        if self._opened is None:
            return
        trace = self._opened.type
        for stream, event in trace.events:
            yield EventDeclaration._of(trace, stream, event)


class _OpenedTrace:
    """A trace that was opened: what it says of itself."""

    def __init__(self, path, format_str):
        if format_str != "ctf":
            raise _Error(f"the format {format_str} is not known")
        if not os.path.isfile(os.path.join(path, "metadata")):
            raise _Error("there is no metadata")
        self.path = path
        said = _iterator._described([path])
        number = next((n for n, trace in enumerate(said["traces"]) if _same(trace["path"], path)), None)
        if number is None:
            raise _Error("there is no trace in this folder")
        self._said = said["traces"][number]
        self.spans = [
            None if stream["begin_ns"] is None or stream["end_ns"] is None else (stream["begin_ns"], stream["end_ns"])
            for stream in said["streams"]
            if stream["trace"] == number
        ]
        self._type = None

    @property
    def type(self):
        """The types that its metadata declares."""
        if self._type is None:
            self._type = trace_type(self._said)
        return self._type

    @property
    def begin_ns(self):
        return min((span[0] for span in self.spans if span is not None), default=None)

    @property
    def end_ns(self):
        return max((span[1] for span in self.spans if span is not None), default=None)

    @property
    def has_times(self):
        """Whether all streams tell when they begin and end."""
        return bool(self.spans) and None not in self.spans

    @property
    def has_intersection(self):
        if not self.has_times:
            return True
        return max(span[0] for span in self.spans) <= min(span[1] for span in self.spans)


def trace_type(said):
    """The types of a trace: of its metadata's text, or of its native description."""
    try:
        return _tsdl.parsed(said["text"])
    except (_tsdl.UnknownMetadata, KeyError, ValueError):
        return _described.described(said)


def _same(path, other):
    return os.path.realpath(path) == os.path.realpath(other)


class _Maker(_iterator._Maker):
    """Makes the objects of native messages, and keeps the streams and the report."""

    def __init__(self, run):
        super().__init__(None, False)
        self._run = run

    def streams(self, said):
        self._run.streams = super().streams(said)
        return self._run.streams

    def end(self, unreadable):
        self._run.unreadable = unreadable
        return StopIteration()


class _Run:
    """One reading of a collection's traces, and the facts that its events share."""

    def __init__(self, collection):
        self.collection = collection
        self.streams, self.unreadable = [], []
        self._shapes, self._types, self._files, self._handles = {}, {}, {}, {}
        self._folders = {os.path.realpath(opened.path): id for id, opened in collection._opened.items()}

    def events(self, begin_ns, end_ns, intersection):
        """Reads the events."""
        session = _iterator._session([opened.path for opened in self.collection._opened.values()], {})
        self._said = _native.describe(session)
        messages = _native.MessageIterator()
        try:
            messages._begin(session, _Maker(self), begin_ns, end_ns, intersection)
        except KymographError as error:
            raise _Error(str(error)) from error
        yield from self._with_indexes(messages) if self._needs_indexes() else self._plain(messages)
        for place, problem in self.unreadable:
            warnings.warn(f"{place}: {problem}", UnreadableWarning, stacklevel=4)

    def _needs_indexes(self):
        """Whether streams have no clock, so that only their order finds the headers of events."""
        return any(stream.cls.default_clock_class is None for stream in self.streams)

    def _left_out(self):
        """Streams in folders within those that were added."""
        return {stream for stream in self.streams if self._folder(stream) not in self._folders}

    def _plain(self, messages):
        left_out, make, of_event = self._left_out(), _event._made, _native._EventMessageConst
        for message in messages:
            if type(message) is of_event:
                if not left_out or message.event.stream not in left_out:
                    yield make(self, message, None)
            elif type(message) is _message._DiscardedEventsMessageConst:
                self._warn_of_loss(message)

    def _with_indexes(self, messages):
        left_out, counts = self._left_out(), dict.fromkeys(self.streams, 0)
        for message in messages:
            if type(message) is _native._EventMessageConst:
                stream = message.event.stream
                index, counts[stream] = counts[stream], counts[stream] + 1
                if stream not in left_out:
                    yield _event._made(self, message, index)

    def _warn_of_loss(self, message):
        count = "an unknown number of" if message.count is None else message.count
        warnings.warn(f"{message.stream.name}: the tracer lost {count} events", LossWarning, stacklevel=5)

    def _folder(self, stream):
        return os.path.realpath(os.path.dirname(stream.name))

    def handle(self, stream):
        """The handle of a stream's trace."""
        id = self._folders.get(self._folder(stream))
        return None if id is None else TraceHandle._of(self.collection, id)

    def _trace(self, stream):
        """The number and the types of a stream's trace."""
        path = stream.trace._said["path"]
        number = next(number for number, said in enumerate(self._said["traces"]) if said["path"] == path)
        if number not in self._types:
            self._types[number] = trace_type(self._said["traces"][number])
        return number, self._types[number]

    def shape(self, native):
        """The shape of an event's class."""
        of = native.cls
        shape = self._shapes.get(of)
        if shape is None:
            shape = self._shapes[of] = self._new_shape(of, native.stream)
        return shape

    def _new_shape(self, of, stream):
        number, trace = self._trace(stream)
        found = trace.streams.get(of.stream_class.id)
        event = found.events.get(of.id) if found is not None else None
        if event is None:
            trace = _described.described(self._said["traces"][number])
            found = trace.streams[of.stream_class.id]
            event = found.events[of.id]
        return EventShape(trace, found, event, of)

    def packet_events(self, stream, id, cycles, index):
        """The events that the files have at the place of this event: more than one if they are alike."""
        number, trace = self._trace(stream)
        if number not in self._files:
            folders = [folder for folder in self._folders if os.path.isdir(folder)]
            mine = [folder for folder in folders if folder == os.path.realpath(self._said["traces"][number]["path"])]
            self._files[number] = PacketFiles(mine, trace)
        key = (stream.cls.id, stream.id) if stream._said["has_id"] else None
        if index is not None:
            return self._files[number].at_index(stream.name, key, index)
        return self._files[number].at_time(stream.name, key, cycles, id)
