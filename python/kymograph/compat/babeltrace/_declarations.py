"""Declarations of events and fields. A trace makes them; scripts do not."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph.compat.babeltrace._types import shown
from kymograph.compat.babeltrace.common import _SCOPES, ByteOrder, CTFScope, CTFTypeId


class _Made:
    """An object that a trace makes."""

    def __init__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be instantiated")


class EventDeclaration(_Made):
    """A kind of events: its name and the fields that its events have."""

    @classmethod
    def _of(cls, trace, stream, event):
        self = cls.__new__(cls)
        self._name = event.name
        self._scopes = {
            CTFScope.EVENT_FIELDS: event.fields,
            CTFScope.EVENT_CONTEXT: event.context,
            CTFScope.STREAM_EVENT_CONTEXT: stream.event_context,
            CTFScope.STREAM_EVENT_HEADER: stream.event_header,
            CTFScope.STREAM_PACKET_CONTEXT: stream.packet_context,
            CTFScope.TRACE_PACKET_HEADER: trace.packet_header,
        }
        return self

    @property
    def name(self):
        """The name of the events."""
        return self._name

    @property
    def fields(self):
        """The declarations of all fields, scope by scope, in the order in which names are looked up."""
        for scope in _SCOPES:
            yield from self.fields_scope(scope)

    def fields_scope(self, scope):
        """The declarations of the fields of a scope."""
        structure = self._scopes.get(scope)
        for name, type_ in structure.members if structure is not None else ():
            yield _declaration(type_, shown(name), scope)


class FieldDeclaration(_Made):
    """A field: its name, its type and its scope."""

    def __repr__(self):
        return f"({CTFScope.scope_name(self.scope)}) {CTFTypeId.type_name(self.type)} {self.name}"

    @property
    def name(self):
        """The name of the field; empty for the elements of arrays and sequences."""
        return self._name

    @property
    def type(self):
        """The type: a constant of `CTFTypeId`."""
        return self._type.id

    @property
    def scope(self):
        """The scope: a constant of `CTFScope`."""
        return self._scope


class IntegerFieldDeclaration(FieldDeclaration):
    """An integer."""

    @property
    def signedness(self):
        """1 if the integer has a sign; 0 otherwise."""
        return int(self._type.signed)

    @property
    def base(self):
        """The base that the integer is shown in; 0 if none is declared."""
        return self._type.base

    @property
    def byte_order(self):
        """The byte order: a constant of `ByteOrder`."""
        return {True: ByteOrder.BYTE_ORDER_LITTLE_ENDIAN, False: ByteOrder.BYTE_ORDER_BIG_ENDIAN}.get(
            self._type.is_little, ByteOrder.BYTE_ORDER_UNKNOWN
        )

    @property
    def length(self):
        """The size in bits."""
        return self._type.size

    @property
    def encoding(self):
        """The encoding, if the integer is a character: a constant of `CTFStringEncoding`."""
        return self._type.encoding


class EnumerationFieldDeclaration(FieldDeclaration):
    """An enumeration."""


class ArrayFieldDeclaration(FieldDeclaration):
    """An array."""

    @property
    def length(self):
        """The number of elements."""
        return self._type.length

    @property
    def element_declaration(self):
        """The declaration of the elements."""
        return _declaration(self._type.element, "", self.scope)


class SequenceFieldDeclaration(FieldDeclaration):
    """A sequence: an array whose length is a field."""

    @property
    def element_declaration(self):
        """The declaration of the elements."""
        return _declaration(self._type.element, "", self.scope)


class FloatFieldDeclaration(FieldDeclaration):
    """A floating-point number."""


class StructureFieldDeclaration(FieldDeclaration):
    """A structure."""


class StringFieldDeclaration(FieldDeclaration):
    """A text."""


class VariantFieldDeclaration(FieldDeclaration):
    """A variant."""


_CLASSES = {
    CTFTypeId.INTEGER: IntegerFieldDeclaration,
    CTFTypeId.FLOAT: FloatFieldDeclaration,
    CTFTypeId.ENUM: EnumerationFieldDeclaration,
    CTFTypeId.STRING: StringFieldDeclaration,
    CTFTypeId.STRUCT: StructureFieldDeclaration,
    CTFTypeId.VARIANT: VariantFieldDeclaration,
    CTFTypeId.ARRAY: ArrayFieldDeclaration,
    CTFTypeId.SEQUENCE: SequenceFieldDeclaration,
}


def _declaration(type_, name, scope):
    of = _CLASSES.get(type_.id, FieldDeclaration)
    self = of.__new__(of)
    self._type, self._name, self._scope = type_, name, scope
    return self
