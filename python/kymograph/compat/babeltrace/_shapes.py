"""What the fields of an event class are, and how each becomes one of Python's own values.

An `EventShape` is made once for each event class that a loop meets; an event looks its fields up there.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph._native import bt2 as _native
from kymograph.compat.babeltrace._decode import characters, labelled
from kymograph.compat.babeltrace._types import (
    ArrayType,
    EnumerationType,
    FloatType,
    IntegerType,
    SequenceType,
    StringType,
    StructureType,
    VariantType,
    shown,
)
from kymograph.compat.babeltrace.common import _SCOPES, CTFScope
from kymograph.compat.bt2 import _field, _field_class

#: In which order the native event finds a name.
_NATIVE_ORDER = (
    CTFScope.EVENT_FIELDS,
    CTFScope.EVENT_CONTEXT,
    CTFScope.STREAM_EVENT_CONTEXT,
    CTFScope.STREAM_PACKET_CONTEXT,
)


class FieldShape:
    """A field of a scope. `key` is its native name; `None` if native events do not have the field."""

    __slots__ = ("declared", "is_first", "key", "read", "scope", "shown", "type")

    def __init__(self, scope, declared, type_, key, read):
        self.scope, self.declared, self.shown, self.type = scope, declared, shown(declared), type_
        self.key, self.read = key, read
        # Whether the native event finds this field by its name alone.
        self.is_first = False


class EventShape:
    """The fields of an event class by scope, and by name."""

    def __init__(self, trace, stream, event, native):
        of_stream = native.stream_class
        types = {
            CTFScope.TRACE_PACKET_HEADER: (trace.packet_header, None),
            CTFScope.STREAM_PACKET_CONTEXT: (stream.packet_context, of_stream.packet_context_field_class),
            CTFScope.STREAM_EVENT_HEADER: (stream.event_header, None),
            CTFScope.STREAM_EVENT_CONTEXT: (stream.event_context, of_stream.event_common_context_field_class),
            CTFScope.EVENT_CONTEXT: (event.context, native.specific_context_field_class),
            CTFScope.EVENT_FIELDS: (event.fields, native.payload_field_class),
        }
        self.scopes = {scope: _fields(scope, *types[scope]) for scope in _SCOPES}
        seen = set()
        for scope in _NATIVE_ORDER:
            for field in self.scopes[scope]:
                if field.key is not None:
                    field.is_first = field.key not in seen
                    seen.add(field.key)
        self._found = {}

    def find(self, name, scope=None):
        """The field of that name in a scope, or in the first scope that has one; `None` if there is none."""
        key = (name, scope)
        if key not in self._found:
            scopes = _SCOPES if scope is None else (scope,)
            self._found[key] = next(filter(None, (self._find(name, each) for each in scopes)), None)
        return self._found[key]

    def _find(self, name, scope):
        if not isinstance(name, str):
            return None
        by_name = {field.declared: field for field in self.scopes[scope]}
        return by_name.get(name) or by_name.get("_" + name)


def _fields(scope, type_, native):
    """The fields of a scope; those that readers of packets use for themselves are not in the native class."""
    if type_ is None:
        return []
    native_of = {}
    if native is not None:
        native_of = {part.name: part.field_class for part in native._parts}
    fields = []
    for declared, member in type_.members:
        key = next((name for name in (shown(declared), declared) if name in native_of), None)
        read = None if key is None else reader(member, native_of[key], shown(declared))
        fields.append(FieldShape(scope, declared, member, key, read))
    return fields


def reader(type_, native, name):
    """A function from a native field to Python's own value."""
    if isinstance(type_, IntegerType):
        return int
    if isinstance(type_, FloatType):
        return float
    if isinstance(type_, EnumerationType):
        return lambda field: labelled(type_, field, name)
    if isinstance(type_, StringType):
        return str
    if isinstance(type_, (ArrayType, SequenceType)):
        return _array_reader(type_, native)
    if isinstance(type_, StructureType):
        return _structure_reader(type_, native)
    if isinstance(type_, VariantType):
        return _variant_reader(type_, native)
    return _other


def _array_reader(type_, native):
    if isinstance(native, _field_class._StringFieldClassConst):
        return str
    if type_.element.is_character:
        return characters
    read = reader(type_.element, native.element_field_class, "")
    return lambda field: [read(element) for element in field]


def _structure_reader(type_, native):
    members = [
        (shown(declared), part.name, reader(member, part.field_class, shown(declared)))
        for (declared, member), part in zip(type_.members, native._parts)
    ]
    return lambda field: {name: read(field[key]) for name, key, read in members}


def _variant_reader(type_, native):
    readers = []
    for (declared, option), part in zip(type_.options, native._parts):
        readers.append(reader(option, part.field_class, shown(declared)))
    return lambda field: readers[field.selected_option_index](field.selected_option)


def _other(field):
    """A value of a type that CTF 1.8 does not have."""
    if isinstance(field, _native._BoolFieldConst):
        return bool(field)
    if isinstance(field, _field._BitArrayFieldConst):
        return field.value_as_integer
    if isinstance(field, _field._BlobFieldConst):
        return bytes(field)
    if isinstance(field, _field._OptionFieldConst):
        return _other(field.field) if field.has_field else None
    if isinstance(field, _native._IntegerFieldConst):
        return int(field)
    if isinstance(field, _native._RealFieldConst):
        return float(field)
    if isinstance(field, _native._StringFieldConst):
        return str(field)
    if isinstance(field, _native._StructureFieldConst):
        return {key: _other(field[key]) for key in field}
    if isinstance(field, _field._VariantFieldConst):
        return _other(field.selected_option)
    return [_other(element) for element in field]
