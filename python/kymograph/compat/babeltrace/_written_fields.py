"""Fields that are written: each has a value of a declaration, and writes itself as bits."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import operator
import struct

from kymograph.compat.babeltrace._written_declarations import (
    ArrayFieldDeclaration,
    EnumerationFieldDeclaration,
    FieldDeclaration,
    FloatFieldDeclaration,
    IntegerFieldDeclaration,
    Members,
    SequenceFieldDeclaration,
    StringFieldDeclaration,
    StructureFieldDeclaration,
    VariantFieldDeclaration,
)
from kymograph.compat.babeltrace._written_text import unsigned, write_only


class Field:
    """Base class of all fields: a value of a declaration."""

    _declaration_class = ()

    def __init__(self, field_type):
        if not isinstance(field_type, FieldDeclaration):
            raise TypeError("Invalid field_type argument.")
        if not isinstance(field_type, self._declaration_class) or field_type._problem() is not None:
            raise ValueError("Field creation failed.")
        if isinstance(field_type, Members):
            field_type._freeze()
        self._type = field_type
        self._value = None

    def _is_set(self):
        return self._value is not None

    def _children(self):
        """Fields within the field."""
        return ()

    def _unset(self):
        """The first field without a value; `None` if all have one."""
        for child in self._children():
            unset = child._unset()
            if unset is not None:
                return unset
        return None if self._is_set() else self

    def _write(self, bits, is_little):
        bits.align(self._type._alignment())
        for child in self._children():
            child._write(bits, is_little)


class IntegerField(Field):
    """A number."""

    _declaration_class = IntegerFieldDeclaration

    @write_only
    def value(self, value):
        """The number, which has to fit in the declared bits."""
        value = operator.index(value)
        limit = 2**63 if self._type._signed else 2**64
        if not (-limit if self._type._signed else 0) <= value < limit:
            raise OverflowError(f"{value} does not fit in an integer of 64 bits")
        if not self._type._fits(value):
            raise ValueError("Could not set integer field value.")
        self._value = value

    def _write(self, bits, is_little):
        bits.align(self._type._alignment())
        bits.integer(self._value, self._type._size, self._type._little(is_little))


class EnumerationField(Field):
    """A number with a label; `container` is the number."""

    _declaration_class = EnumerationFieldDeclaration

    def __init__(self, field_type):
        super().__init__(field_type)
        self._container = IntegerField(field_type._container)

    @property
    def container(self):
        """The integer field that holds the number."""
        return self._container

    def _is_set(self):
        return True

    def _children(self):
        return (self._container,)


class FloatFieldingPoint(Field):
    """A floating-point number. Babeltrace's name is this one."""

    _declaration_class = FloatFieldDeclaration

    @write_only
    def value(self, value):
        """The number."""
        self._value = float(value)

    def _write(self, bits, is_little):
        bits.align(self._type._alignment())
        size = self._type._exponent + self._type._mantissa
        try:
            packed = struct.pack(">f" if size == 32 else ">d", self._value)
        except OverflowError:
            # As a conversion in C does.
            packed = struct.pack(">f", float("inf") if self._value > 0 else float("-inf"))
        bits.integer(int.from_bytes(packed, "big"), size, self._type._little(is_little))


FloatingPointField = FloatFieldingPoint


class StructureField(Field):
    """Named fields."""

    _declaration_class = StructureFieldDeclaration

    def __init__(self, field_type):
        super().__init__(field_type)
        self._fields = {}

    def field(self, field_name):
        """The field of that name."""
        name = str(field_name)
        if name not in self._type._members:
            raise ValueError("Invalid field_name provided.")
        if name not in self._fields:
            self._fields[name] = create_field(self._type._members[name])
        return self._fields[name]

    def _replace(self, name, field):
        self._fields[name] = field

    def _is_set(self):
        return True

    def _children(self):
        return [self.field(name) for name in self._type._members]


class VariantField(Field):
    """The field that a tag selects."""

    _declaration_class = VariantFieldDeclaration

    def __init__(self, field_type):
        super().__init__(field_type)
        self._tag, self._selected, self._fields = None, None, {}

    def field(self, tag):
        """The field that the value of an enumeration selects."""
        number = tag._container._value if isinstance(tag, EnumerationField) else None
        label = None if number is None else self._type._tag._label(number)
        if label is None:
            raise ValueError("Invalid tag provided.")
        if label not in self._fields:
            self._fields[label] = create_field(self._type._members[label])
        self._tag, self._selected = number, self._fields[label]
        return self._selected

    def _is_set(self):
        return self._selected is not None

    def _children(self):
        return () if self._selected is None else (self._selected,)

    def _write(self, bits, is_little):
        self._selected._write(bits, is_little)


class ArrayField(Field):
    """Elements by index."""

    _declaration_class = ArrayFieldDeclaration

    def __init__(self, field_type):
        super().__init__(field_type)
        self._elements = {}

    def field(self, index):
        """The element at an index."""
        index = unsigned(index)
        if index >= self._type._length:
            raise IndexError("Invalid index provided.")
        if index not in self._elements:
            self._elements[index] = create_field(self._type._element)
        return self._elements[index]

    def _is_set(self):
        return True

    def _children(self):
        return [self.field(index) for index in range(self._type._length)]


class SequenceField(Field):
    """Elements by index, after `length` was set."""

    _declaration_class = SequenceFieldDeclaration

    def __init__(self, field_type):
        super().__init__(field_type)
        self._length, self._elements = None, {}

    @write_only
    def length(self, length_field):
        """The integer field that holds the length."""
        if not isinstance(length_field, IntegerField):
            raise TypeError("Invalid length field.")
        if length_field._type._signed or length_field._value is None:
            raise ValueError("Could not set sequence length.")
        self._length, self._elements = length_field._value, {}

    def field(self, index):
        """The element at an index."""
        index = unsigned(index)
        if self._length is None or index >= self._length:
            raise ValueError("Could not get sequence element at index.")
        if index not in self._elements:
            self._elements[index] = create_field(self._type._element)
        return self._elements[index]

    def _is_set(self):
        return self._length is not None

    def _children(self):
        return [self.field(index) for index in range(self._length or 0)]


class StringField(Field):
    """Text."""

    _declaration_class = StringFieldDeclaration

    @write_only
    def value(self, value):
        """The text; it ends at its first zero character."""
        self._value = str(value).split("\0")[0]

    def _write(self, bits, is_little):
        bits.data(self._value.encode("utf-8", "surrogateescape") + b"\0")


_FIELDS = {
    of._declaration_class: of
    for of in (
        IntegerField,
        EnumerationField,
        FloatFieldingPoint,
        StructureField,
        VariantField,
        ArrayField,
        SequenceField,
        StringField,
    )
}


def create_field(*arguments):
    """A field of a declaration. Babeltrace's function takes the declaration as its second argument; both are understood."""
    if len(arguments) not in (1, 2):
        raise TypeError("create_field() takes a declaration")
    field_type = arguments[-1]
    for declaration_class, field_class in _FIELDS.items():
        if isinstance(field_type, declaration_class):
            return field_class(field_type)
    raise TypeError("Invalid field_type. Type must be a FieldDeclaration-derived class.")
