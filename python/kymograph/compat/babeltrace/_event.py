"""Events."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc
import datetime

from kymograph.compat.babeltrace._decode import plain
from kymograph.compat.babeltrace.common import _NO_TIME, _SCOPES, CTFScope, CTFTypeId, FieldError

_NATIVE_SCOPES = {
    CTFScope.EVENT_FIELDS: "payload_field",
    CTFScope.EVENT_CONTEXT: "specific_context_field",
    CTFScope.STREAM_EVENT_CONTEXT: "common_context_field",
}


class Event(collections.abc.Mapping):
    """An event of a trace: a mapping from the names of its fields, in all scopes, to their values.

    A name that several scopes have is that of the payload first, then of the event's context, of the stream's event context,
    of the event's header, of the packet's context, and of the packet's header. An event may be kept.
    """

    __slots__ = ("_index", "_message", "_native", "_run")

    def __init__(self):
        raise NotImplementedError("Event cannot be instantiated")

    @property
    def name(self):
        """The name of the event's class."""
        return self._native.name

    @property
    def cycles(self):
        """The time in cycles of the clock; 2**64 - 1 without a clock."""
        try:
            return self._message.default_clock_snapshot.value
        except ValueError:
            return _NO_TIME

    @property
    def timestamp(self):
        """The time in nanoseconds since the clock's origin; 2**64 - 1 without a clock."""
        try:
            return self._message.default_clock_snapshot.ns_from_origin & _NO_TIME
        except (ValueError, OverflowError):
            return _NO_TIME

    @property
    def datetime(self):
        """The time in the local zone, to the microsecond."""
        return datetime.datetime.fromtimestamp(self.timestamp / 1e9)

    @property
    def handle(self):
        """The handle of the event's trace."""
        return self._run.handle(self._native.stream)

    @property
    def trace_collection(self):
        """The collection that the event was read from."""
        return self._run.collection

    def field_with_scope(self, field_name, scope):
        """A field's value in a scope; `None` if the scope does not have the field."""
        field = self._shape.find(field_name, _checked(scope))
        return None if field is None else self._value(field)

    def field_list_with_scope(self, scope):
        """The names of the fields of a scope."""
        return [field.shown for field in self._shape.scopes[_checked(scope)]]

    def __getitem__(self, field_name):
        field = self._shape.find(field_name)
        if field is None:
            raise KeyError(field_name)
        return self._value(field)

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        """The number of fields in all scopes; a name counts in each."""
        return sum(map(len, self._shape.scopes.values()))

    def __contains__(self, field_name):
        return self._shape.find(field_name) is not None

    def keys(self):
        """The names of all fields, each once."""
        return list(dict.fromkeys(field.shown for scope in _SCOPES for field in self._shape.scopes[scope]))

    def get(self, field_name, default=None):
        """A field's value; the default if there is no such field."""
        field = self._shape.find(field_name)
        return default if field is None else self._value(field)

    def items(self):
        """The names of all fields with their values."""
        for name in self.keys():
            yield name, self[name]

    @property
    def _shape(self):
        return self._run.shape(self._native)

    def _value(self, field):
        if field.key is None:
            return self._value_of_packet(field)
        if field.is_first:
            return field.read(self._native[field.key])
        if field.scope == CTFScope.STREAM_PACKET_CONTEXT:
            return field.read(self._native.packet.context_field[field.key])
        return field.read(getattr(self._native, _NATIVE_SCOPES[field.scope])[field.key])

    def _value_of_packet(self, field):
        """A field that native messages do not have: it is read from the file."""
        found = self._run.packet_events(self._native.stream, self._native.id, self.cycles, self._index)
        raws = [event.scopes[field.scope][field.declared] for event in found]
        if len(raws) > 1 and any(raw is not raws[0] and not _same(field, raw, raws[0]) for raw in raws):
            raws = [event.scopes[field.scope][field.declared] for event in found if self._is(event)]
        if not raws or any(not _same(field, raw, raws[0]) for raw in raws):
            type_name = CTFTypeId.type_name(field.type.id)
            raise FieldError(f"Error occurred while accessing field {field.shown} of type {type_name}")
        return plain(field.type, raws[0], field.shown)

    def _is(self, packet_event):
        """Whether this is the event of a packet: all fields that both know are the same."""
        for scope in (CTFScope.EVENT_FIELDS, CTFScope.EVENT_CONTEXT, CTFScope.STREAM_EVENT_CONTEXT):
            for field in self._shape.scopes[scope]:
                try:
                    if self._value(field) != plain(field.type, packet_event.scopes[scope][field.declared], field.shown):
                        return False
                except FieldError:
                    continue
        return True


def _same(field, raw, other):
    try:
        return plain(field.type, raw, field.shown) == plain(field.type, other, field.shown)
    except FieldError:
        return raw == other


def _checked(scope):
    if scope not in _SCOPES:
        raise ValueError("Invalid scope provided")
    return scope


def _made(run, message, index):
    event = Event.__new__(Event)
    event._run, event._message, event._native, event._index = run, message, message.event, index
    return event
