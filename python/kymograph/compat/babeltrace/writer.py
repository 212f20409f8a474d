"""Writes traces in CTF 1.8, as Babeltrace 1's `CTFWriter` does.

    Writer ── Clock                     metadata: text in the language of CTF 1.8 (TSDL)
       └───── Stream of a StreamClass   one file each: packets of events
                 └── Event of an EventClass ── fields of declarations

A declaration says how a field lies in a packet and writes itself as text; a field has a value and writes itself as bits. Like
Babeltrace's, most attributes can be set and not be read.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import itertools
import operator
import os
import re
import struct
import sys
import uuid

from kymograph.compat.babeltrace._bits import BitWriter
from kymograph.compat.babeltrace.common import ByteOrder, CTFStringEncoding

__all__ = [
    "ArrayField",
    "ArrayFieldDeclaration",
    "Clock",
    "EnumerationField",
    "EnumerationFieldDeclaration",
    "Event",
    "EventClass",
    "Field",
    "FieldDeclaration",
    "FloatFieldDeclaration",
    "FloatFieldingPoint",
    "FloatingPointField",
    "FloatingPointFieldDeclaration",
    "IntegerBase",
    "IntegerField",
    "IntegerFieldDeclaration",
    "SequenceField",
    "SequenceFieldDeclaration",
    "Stream",
    "StreamClass",
    "StringField",
    "StringFieldDeclaration",
    "StructureField",
    "StructureFieldDeclaration",
    "VariantField",
    "VariantFieldDeclaration",
    "Writer",
    "create_field",
]

_MAGIC = 0xC1FC1FC1
_KEYWORDS = frozenset(
    """align callsite const char clock double enum env event floating_point float integer int long short signed stream
    string struct trace typealias typedef unsigned variant void _Bool _Complex _Imaginary""".split()
)
_LITTLE = {
    ByteOrder.BYTE_ORDER_NATIVE: None,
    ByteOrder.BYTE_ORDER_LITTLE_ENDIAN: True,
    ByteOrder.BYTE_ORDER_BIG_ENDIAN: False,
    ByteOrder.BYTE_ORDER_NETWORK: False,
}
_ENCODINGS = {CTFStringEncoding.NONE: "none", CTFStringEncoding.UTF8: "UTF8", CTFStringEncoding.ASCII: "ASCII"}


def _is_name(name):
    """Whether each word begins as a name does and none is a keyword of the metadata."""
    words = name.split(" ") if isinstance(name, str) else []
    return any(words) and not any(word in _KEYWORDS for word in words)


def _is_identifier(name):
    """Whether metadata can have the name without quotes."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and name not in _KEYWORDS


def _unsigned(value):
    """A number of 64 bits."""
    value = operator.index(value)
    if not 0 <= value < 2**64:
        raise OverflowError(f"{value} does not fit in an unsigned integer of 64 bits")
    return value


def _quoted(text):
    """A literal of the metadata; what is not ASCII is written as the bytes of UTF-8."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    shown = []
    for character in text:
        if character in escapes:
            shown.append(escapes[character])
        elif " " <= character <= "~":
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape")]
    return f'"{"".join(shown)}"'


def _write_only(set_):
    """An attribute that is set and not read."""

    def get(self):
        raise NotImplementedError("Getter not implemented.")

    return property(get, set_, doc=set_.__doc__)


class Clock:
    """The time that events get when they are appended."""

    def __init__(self, name):
        if not _is_name(name) or not _is_identifier(name):
            raise ValueError("Invalid clock name.")
        self._name = name
        self._uuid = uuid.uuid4()
        self._description = None
        self._frequency, self._precision = 10**9, 1
        self._offset_seconds, self._offset = 0, 0
        self._absolute = False
        self._time_ns = 0

    @_write_only
    def description(self, description):
        """A description for people."""
        self._description = str(description)

    @_write_only
    def frequency(self, frequency):
        """Cycles per second."""
        self._frequency = _unsigned(frequency)
        if not self._frequency:
            raise ValueError("Invalid frequency value.")

    @_write_only
    def precision(self, precision):
        """The uncertainty in cycles."""
        self._precision = _unsigned(precision)

    @_write_only
    def offset_seconds(self, seconds):
        """Seconds from the epoch to the clock's zero."""
        self._offset_seconds = _unsigned(seconds)

    @_write_only
    def offset(self, cycles):
        """Further cycles from the epoch to the clock's zero."""
        self._offset = _unsigned(cycles)

    @_write_only
    def absolute(self, is_absolute):
        """Whether the clock is a global reference."""
        self._absolute = bool(is_absolute)

    @_write_only
    def time(self, nanoseconds):
        """The current time in nanoseconds since the clock's zero."""
        self._time_ns = _unsigned(nanoseconds)

    def _cycles(self):
        return self._time_ns * self._frequency // 10**9

    def _text(self):
        lines = [f"name = {self._name};", f'uuid = "{self._uuid}";']
        if self._description is not None:
            lines.append(f"description = {_quoted(self._description)};")
        lines += [
            f"freq = {self._frequency};",
            f"precision = {self._precision};",
            f"offset_s = {self._offset_seconds};",
            f"offset = {self._offset};",
            f"absolute = {'TRUE' if self._absolute else 'FALSE'};",
        ]
        return "clock {\n" + "".join(f"\t{line}\n" for line in lines) + "};\n\n"


class IntegerBase:
    """The bases that integers are shown in."""

    INTEGER_BASE_UNKNOWN = -1
    INTEGER_BASE_BINARY = 2
    INTEGER_BASE_OCTAL = 8
    INTEGER_BASE_DECIMAL = 10
    INTEGER_BASE_HEXADECIMAL = 16


_BASES = {2: "binary", 8: "octal", 10: "decimal", 16: "hexadecimal"}


class FieldDeclaration:
    """Base class of all declarations. `None` as byte order is that of the trace."""

    IntegerBase = IntegerBase
    _is_little = None
    _align = 1

    def __init__(self):
        raise TypeError("a declaration is of one of the derived classes")

    @_write_only
    def alignment(self, alignment):
        """The alignment in bits: a power of two."""
        alignment = operator.index(alignment)
        if alignment < 0:
            raise OverflowError("an alignment is not negative")
        if alignment == 0 or alignment & (alignment - 1) or not self._may_align(alignment):
            raise ValueError("Invalid alignment value.")
        self._align = alignment

    @_write_only
    def byte_order(self, byte_order):
        """The byte order: a constant of `ByteOrder`."""
        if byte_order not in _LITTLE:
            raise ValueError("Could not set byte order value.")
        self._set_little(_LITTLE[byte_order])

    def _may_align(self, alignment):
        return True

    def _set_little(self, is_little):
        self._is_little = is_little

    def _alignment(self):
        """The alignment of a field in a packet."""
        return self._align

    def _little(self, is_little):
        return is_little if self._is_little is None else self._is_little

    def _problem(self):
        """Why no field can be of this declaration."""
        return None

    def _layout(self, is_little, indent):
        """The alignment and byte order as attributes."""
        return f"align = {self._align};", f"byte_order = {'le' if self._little(is_little) else 'be'};"


class IntegerFieldDeclaration(FieldDeclaration):
    """An integer of 1 to 64 bits."""

    def __init__(self, size):
        size = operator.index(size)
        if size < 0:
            raise OverflowError("a size is not negative")
        if not 1 <= size <= 64:
            raise ValueError("FieldDeclaration creation failed.")
        self._size = size
        self._signed, self._base, self._encoding = False, 10, CTFStringEncoding.NONE

    @_write_only
    def signed(self, signed):
        """Whether the integer has a sign."""
        self._signed = bool(operator.index(signed))

    @_write_only
    def base(self, base):
        """The base it is shown in: a constant of `IntegerBase`."""
        if base not in _BASES:
            raise ValueError("Could not set base value.")
        self._base = base

    @_write_only
    def encoding(self, encoding):
        """The encoding, if the integer is a character: a constant of `CTFStringEncoding`."""
        if encoding not in _ENCODINGS:
            raise ValueError("Could not set integer encoding.")
        self._encoding = encoding

    def _text(self, is_little, indent, map_=""):
        align, order = self._layout(is_little, indent)
        return (
            f"integer {{ size = {self._size}; {align} signed = {'true' if self._signed else 'false'};"
            f" encoding = {_ENCODINGS[self._encoding]}; base = {_BASES[self._base]}; {order}{map_} }}"
        )

    def _fits(self, value):
        if self._signed:
            return -(1 << self._size - 1) <= value < 1 << self._size - 1
        return value < 1 << self._size


class EnumerationFieldDeclaration(FieldDeclaration):
    """Labels for ranges of an integer."""

    def __init__(self, integer_type):
        if not isinstance(integer_type, IntegerFieldDeclaration):
            raise TypeError("Invalid integer container.")
        self._container = integer_type
        self._mappings = []

    def add_mapping(self, name, range_start, range_end):
        """Give the numbers of a range, both ends included, a label."""
        name, start, end = str(name), operator.index(range_start), operator.index(range_end)
        is_taken = any(name == label or (start <= upper and lower <= end) for label, lower, upper in self._mappings)
        if not name or end < start or is_taken:
            raise ValueError("Could not add mapping to enumeration type.")
        self._mappings.append((name, start, end))

    def _set_little(self, is_little):
        self._container._set_little(is_little)

    def _may_align(self, alignment):
        self._container._align = alignment
        return True

    def _alignment(self):
        return self._container._alignment()

    def _problem(self):
        return None if self._mappings else "an enumeration has labels"

    def _label(self, value):
        return next((label for label, lower, upper in self._mappings if lower <= value <= upper), None)

    def _text(self, is_little, indent):
        ranges = (
            f"{_quoted(label)} = {lower}" + (f" ... {upper}" if upper != lower else "")
            for label, lower, upper in self._mappings
        )
        return f"enum : {self._container._text(is_little, indent)} {{ {', '.join(ranges)} }}"


class FloatFieldDeclaration(FieldDeclaration):
    """A number in the formats of IEEE 754, of 32 bits unless its digits are set."""

    FLT_EXP_DIG = 8
    DBL_EXP_DIG = 11
    FLT_MANT_DIG = 24
    DBL_MANT_DIG = 53

    def __init__(self):
        self._exponent, self._mantissa = self.FLT_EXP_DIG, self.FLT_MANT_DIG

    @_write_only
    def exponent_digits(self, digits):
        """The bits of the exponent: `FLT_EXP_DIG` or `DBL_EXP_DIG`."""
        if digits not in (self.FLT_EXP_DIG, self.DBL_EXP_DIG):
            raise ValueError("Could not set exponent digit count.")
        self._exponent = digits

    @_write_only
    def mantissa_digits(self, digits):
        """The bits of the mantissa: `FLT_MANT_DIG` or `DBL_MANT_DIG`."""
        if digits not in (self.FLT_MANT_DIG, self.DBL_MANT_DIG):
            raise ValueError("Could not set mantissa digit count.")
        self._mantissa = digits

    def _problem(self):
        return None if self._exponent + self._mantissa in (32, 64) else "a floating-point number has 32 or 64 bits"

    def _text(self, is_little, indent):
        align, order = self._layout(is_little, indent)
        return f"floating_point {{ exp_dig = {self._exponent}; mant_dig = {self._mantissa}; {order} {align} }}"


FloatingPointFieldDeclaration = FloatFieldDeclaration


class _Members:
    """Named declarations, in their order."""

    def __init__(self):
        self._members = {}
        self._frozen = False

    def _add(self, field_type, field_name, message):
        if not isinstance(field_type, FieldDeclaration):
            raise TypeError("Invalid field_type. Type must be a FieldDeclaration-derived class.")
        name = str(field_name)
        if self._frozen or not _is_name(name) or not _is_identifier(name) or name in self._members:
            raise ValueError(message)
        self._members[name] = field_type

    def _members_text(self, is_little, indent):
        tabs = "\t" * (indent + 1)
        lines = []
        for name, declaration in self._members.items():
            lengths = ""
            while isinstance(declaration, (ArrayFieldDeclaration, SequenceFieldDeclaration)):
                lengths += f"[{declaration._length}]"
                declaration = declaration._element
            lines.append(f"{tabs}{declaration._text(is_little, indent + 1)} {name}{lengths};\n")
        return "{\n" + "".join(lines) + "\t" * indent + "}"

    def _freeze(self):
        self._frozen = True

    def _problem(self):
        return next(filter(None, (declaration._problem() for declaration in self._members.values())), None)


class StructureFieldDeclaration(_Members, FieldDeclaration):
    """Named fields one after another."""

    def add_field(self, field_type, field_name):
        """Add a field at the end."""
        self._add(field_type, field_name, "Could not add field to structure.")

    def _alignment(self):
        return max([self._align, *(declaration._alignment() for declaration in self._members.values())])

    def _text(self, is_little, indent):
        return f"struct {self._members_text(is_little, indent)} align({self._alignment()})"


class VariantFieldDeclaration(_Members, FieldDeclaration):
    """One of several fields, which an enumeration with their names as labels selects."""

    def __init__(self, enum_tag, tag_name):
        if not isinstance(enum_tag, EnumerationFieldDeclaration):
            raise TypeError("Invalid tag type; must be of type EnumerationFieldDeclaration.")
        super().__init__()
        self._tag, self._tag_name = enum_tag, str(tag_name)
        if not _is_name(self._tag_name):
            raise ValueError("FieldDeclaration creation failed.")

    def add_field(self, field_type, field_name):
        """Add the field that a label of the enumeration selects."""
        labels = [label for label, _, _ in self._tag._mappings]
        if str(field_name) not in labels:
            raise ValueError("Could not add field to variant.")
        self._add(field_type, field_name, "Could not add field to variant.")

    def _may_align(self, alignment):
        return False

    def _problem(self):
        missing = [label for label, _, _ in self._tag._mappings if label not in self._members]
        if not self._members or missing:
            return "a variant has a field for each label of its enumeration"
        return super()._problem()

    def _text(self, is_little, indent):
        return f"variant <{self._tag_name}> {self._members_text(is_little, indent)}"


class ArrayFieldDeclaration(FieldDeclaration):
    """A number of fields of one declaration."""

    def __init__(self, element_type, length):
        length = operator.index(length)
        if length < 0:
            raise OverflowError("a length is not negative")
        if length == 0:
            raise ValueError("FieldDeclaration creation failed.")
        self._element, self._length = element_type, length

    def _alignment(self):
        return self._element._alignment()

    def _may_align(self, alignment):
        return False

    def _problem(self):
        return self._element._problem()


class SequenceFieldDeclaration(FieldDeclaration):
    """As many fields of one declaration as an integer before tells."""

    def __init__(self, element_type, length_field_name):
        self._element, self._length = element_type, str(length_field_name)
        if not _is_name(self._length):
            raise ValueError("FieldDeclaration creation failed.")

    def _alignment(self):
        return self._element._alignment()

    def _may_align(self, alignment):
        return False

    def _problem(self):
        return self._element._problem()


class StringFieldDeclaration(FieldDeclaration):
    """Text that ends with a zero byte."""

    _align = 8

    def __init__(self):
        self._encoding = CTFStringEncoding.UTF8

    @_write_only
    def encoding(self, encoding):
        """The encoding: `CTFStringEncoding.UTF8` or `CTFStringEncoding.ASCII`."""
        if encoding not in (CTFStringEncoding.UTF8, CTFStringEncoding.ASCII):
            raise ValueError("Could not set string encoding.")
        self._encoding = encoding

    def _may_align(self, alignment):
        return alignment == 8

    def _text(self, is_little, indent):
        return f"string {{ encoding = {_ENCODINGS[self._encoding]}; }}"


class Field:
    """Base class of all fields: a value of a declaration."""

    _declaration_class = ()

    def __init__(self, field_type):
        if not isinstance(field_type, FieldDeclaration):
            raise TypeError("Invalid field_type argument.")
        if not isinstance(field_type, self._declaration_class) or field_type._problem() is not None:
            raise ValueError("Field creation failed.")
        if isinstance(field_type, _Members):
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

    @_write_only
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

    @_write_only
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
        index = _unsigned(index)
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

    @_write_only
    def length(self, length_field):
        """The integer field that holds the length."""
        if not isinstance(length_field, IntegerField):
            raise TypeError("Invalid length field.")
        if length_field._type._signed or length_field._value is None:
            raise ValueError("Could not set sequence length.")
        self._length, self._elements = length_field._value, {}

    def field(self, index):
        """The element at an index."""
        index = _unsigned(index)
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

    @_write_only
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


class EventClass:
    """A kind of events: its name and its fields."""

    def __init__(self, name):
        if not isinstance(name, str) and name is not None:
            raise TypeError("the name of an event class is text")
        if not _is_name(name):
            raise ValueError("Event class creation failed.")
        self._name = name
        self._fields = StructureFieldDeclaration()
        self._id = None

    def add_field(self, field_type, field_name):
        """Add a field at the end of the payload."""
        self._fields._add(field_type, field_name, "Could not add field to event class.")

    def _text(self, is_little, stream_id):
        return (
            f"event {{\n\tid = {self._id};\n\tname = {_quoted(self._name)};\n\tstream_id = {stream_id};\n"
            f"\tfields := {self._fields._text(is_little, 1)};\n}};\n\n"
        )


class Event:
    """An event of a class, to be filled and appended to a stream."""

    def __init__(self, event_class):
        if not isinstance(event_class, EventClass):
            raise TypeError("Invalid event_class argument.")
        if event_class._id is None or event_class._fields._problem() is not None:
            raise ValueError("Event creation failed.")
        self._class = event_class
        self._fields = StructureField(event_class._fields)

    def set_payload(self, field_name, value_field):
        """Set a field of the payload to a field that was made before."""
        if not isinstance(value_field, Field):
            raise TypeError("Invalid value type.")
        name = str(field_name)
        if self._class._fields._members.get(name) is not value_field._type:
            raise ValueError("Could not set event field payload.")
        self._fields._replace(name, value_field)

    def payload(self, field_name):
        """The field of that name in the payload."""
        try:
            return self._fields.field(field_name)
        except ValueError:
            raise ValueError("Could not get event payload.") from None


def _integer(size):
    declaration = IntegerFieldDeclaration(size)
    declaration.alignment = 8
    return declaration


_EVENT_HEADER = (("id", 32), ("timestamp", 64))
_PACKET_CONTEXT = ("timestamp_begin", "timestamp_end", "content_size", "packet_size", "events_discarded")


class StreamClass:
    """A kind of streams: a clock, and the events that may be appended."""

    def __init__(self, name=None):
        if not isinstance(name, str) and name is not None:
            raise TypeError("the name of a stream class is text")
        if name is not None and not _is_name(name):
            raise ValueError("Stream class creation failed.")
        self._name = name
        self._clock, self._id = None, None
        self._events = []

    @_write_only
    def clock(self, clock):
        """The clock whose time events get."""
        if not isinstance(clock, Clock):
            raise TypeError("Invalid clock type.")
        if self._id is not None:
            raise ValueError("Could not set stream class clock.")
        self._clock = clock

    def add_event_class(self, event_class):
        """Add a class of events, also after a stream was created."""
        if not isinstance(event_class, EventClass):
            raise TypeError("Invalid event_class type.")
        if event_class._id is not None or event_class._fields._problem() is not None:
            raise ValueError("Could not add event class.")
        event_class._id = len(self._events)
        event_class._fields._freeze()
        self._events.append(event_class)

    def _text(self, is_little):
        map_ = "" if self._clock is None else f" map = clock.{self._clock._name}.value;"
        of_event = (
            _integer(size)._text(is_little, 2, map_ if name == "timestamp" else "") + f" {name};"
            for name, size in _EVENT_HEADER
        )
        is_time = ("timestamp_begin", "timestamp_end")
        of_packet = (
            _integer(64)._text(is_little, 2, map_ if name in is_time else "") + f" {name};" for name in _PACKET_CONTEXT
        )
        return (
            f"stream {{\n\tid = {self._id};\n"
            + "\tevent.header := struct {\n"
            + "".join(f"\t\t{line}\n" for line in of_event)
            + "\t} align(8);\n\n\tpacket.context := struct {\n"
            + "".join(f"\t\t{line}\n" for line in of_packet)
            + "\t} align(8);\n};\n\n"
            + "".join(event._text(is_little, self._id) for event in self._events)
        )


class Stream:
    """A file of packets. `Writer.create_stream` makes it."""

    def __init__(self, stream_class):
        if not isinstance(stream_class, StreamClass):
            raise TypeError("Invalid stream_class type.")
        raise ValueError("Stream creation failed.")

    @classmethod
    def _of(cls, writer, stream_class, path):
        self = cls.__new__(cls)
        self._writer, self._class, self._path = writer, stream_class, path
        self._packet, self._begin, self._end = None, 0, 0
        self._discarded = 0
        self._mode = "wb"
        return self

    def append_discarded_events(self, event_count):
        """Count events that are missing in this packet."""
        self._discarded += _unsigned(event_count)

    def append_event(self, event):
        """Append an event to the current packet, at the time that the clock has now. All its fields need values."""
        clock = self._class._clock
        if event._class not in self._class._events or clock is None or event._fields._unset() is not None:
            raise ValueError("Could not append event to stream.")
        is_little, cycles = self._writer._is_little, clock._cycles()
        if self._packet is None:
            self._packet, self._begin = self._new_packet(is_little), cycles
        self._end = cycles
        self._packet.align(8)
        self._packet.integer(event._class._id, 32, is_little)
        self._packet.integer(cycles, 64, is_little)
        event._fields._write(self._packet, is_little)

    def _new_packet(self, is_little):
        """A packet's header, and room for its context."""
        bits = BitWriter()
        for value, size in self._writer._packet_header(self._class._id):
            bits.integer(value, size, is_little)
        self._context_at = len(bits)
        for _ in _PACKET_CONTEXT:
            bits.integer(0, 64, is_little)
        return bits

    def flush(self):
        """Write the current packet, if it has events; the next event begins another one."""
        if self._packet is None:
            return
        bits, is_little = self._packet, self._writer._is_little
        content_size = len(bits)
        bits.align(64)
        context = (self._begin, self._end, content_size, len(bits), self._discarded)
        for number, value in enumerate(context):
            bits.overwrite(self._context_at + 64 * number, value, 64, is_little)
        with open(self._path, self._mode) as file:
            file.write(bytes(bits))
        self._mode, self._packet = "ab", None


class Writer:
    """A trace in a folder, which is made if it is not there."""

    def __init__(self, path):
        self._path = os.fspath(path)
        try:
            os.makedirs(self._path, mode=0o750, exist_ok=True)
        except OSError as error:
            raise ValueError("Writer creation failed.") from error
        self._uuid = uuid.uuid4()
        self._little, self._frozen = None, False
        self._environment, self._clocks, self._stream_classes, self._streams = {}, [], [], []

    def __del__(self):
        # As Babeltrace does, so that scripts need not ask for it.
        if hasattr(self, "_streams") and os.path.isdir(self._path):
            self.flush_metadata()

    @property
    def _is_little(self):
        return sys.byteorder == "little" if self._little is None else self._little

    def _packet_header(self, stream_id):
        return [(_MAGIC, 32), *((byte, 8) for byte in self._uuid.bytes), (stream_id, 32)]

    def create_stream(self, stream_class):
        """A stream of a class."""
        if not isinstance(stream_class, StreamClass):
            raise TypeError("Invalid stream_class type.")
        if stream_class._clock is not None and stream_class._clock not in self._clocks:
            raise ValueError("Stream creation failed.")
        if stream_class not in self._stream_classes:
            stream_class._id = len(self._stream_classes)
            self._stream_classes.append(stream_class)
        self._frozen = True
        self._streams.append(Stream._of(self, stream_class, self._stream_path(stream_class._name)))
        return self._streams[-1]

    def _stream_path(self, name):
        """A file that no other stream has."""
        stem = os.path.join(self._path, "stream" if name is None else name.replace("/", "_"))
        taken = {stream._path for stream in self._streams}
        return next(path for path in (f"{stem}_{number}" for number in itertools.count()) if path not in taken)

    def add_environment_field(self, name, value):
        """Describe where the trace comes from: a name and a text."""
        name = str(name)
        if not _is_name(name) or not _is_identifier(name):
            raise ValueError("Could not add environment field to trace.")
        self._environment[name] = str(value)

    def add_clock(self, clock):
        """Add a clock, which classes of streams use."""
        if clock in self._clocks or any(clock._name == other._name for other in self._clocks):
            raise ValueError("Could not add clock to Writer.")
        self._clocks.append(clock)

    @property
    def metadata(self):
        """The text of the metadata."""
        is_little = self._is_little
        header = [_integer(32)._text(is_little, 2) + " magic;", _integer(8)._text(is_little, 2) + " uuid[16];"]
        header.append(_integer(32)._text(is_little, 2) + " stream_id;")
        parts = [
            "/* CTF 1.8 */\n\n",
            f'trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = "{self._uuid}";\n',
            f"\tbyte_order = {'le' if is_little else 'be'};\n\tpacket.header := struct {{\n",
            *(f"\t\t{line}\n" for line in header),
            "\t} align(8);\n};\n\n",
        ]
        if self._environment:
            entries = (f"\t{name} = {_quoted(value)};\n" for name, value in self._environment.items())
            parts.append("env {\n" + "".join(entries) + "};\n\n")
        parts += [clock._text() for clock in self._clocks]
        parts += [stream_class._text(is_little) for stream_class in self._stream_classes]
        return "".join(parts)

    def flush_metadata(self):
        """Write the metadata."""
        with open(os.path.join(self._path, "metadata"), "w", encoding="ascii") as file:
            file.write(self.metadata)

    @_write_only
    def byte_order(self, byte_order):
        """The byte order of the trace: a constant of `ByteOrder`. It is that of this machine unless it is set."""
        if byte_order not in _LITTLE or self._frozen:
            raise ValueError("Could not set trace's byte order.")
        self._little = _LITTLE[byte_order]


class CTFWriter:
    """The classes of this module, as Babeltrace 1 groups them."""

    Clock = Clock
    FieldDeclaration = FieldDeclaration
    IntegerFieldDeclaration = IntegerFieldDeclaration
    EnumerationFieldDeclaration = EnumerationFieldDeclaration
    FloatFieldDeclaration = FloatFieldDeclaration
    FloatingPointFieldDeclaration = FloatFieldDeclaration
    StructureFieldDeclaration = StructureFieldDeclaration
    VariantFieldDeclaration = VariantFieldDeclaration
    ArrayFieldDeclaration = ArrayFieldDeclaration
    SequenceFieldDeclaration = SequenceFieldDeclaration
    StringFieldDeclaration = StringFieldDeclaration
    create_field = staticmethod(create_field)
    Field = Field
    IntegerField = IntegerField
    EnumerationField = EnumerationField
    FloatFieldingPoint = FloatFieldingPoint
    FloatingPointField = FloatFieldingPoint
    StructureField = StructureField
    VariantField = VariantField
    ArrayField = ArrayField
    SequenceField = SequenceField
    StringField = StringField
    EventClass = EventClass
    Event = Event
    StreamClass = StreamClass
    Stream = Stream
    Writer = Writer
