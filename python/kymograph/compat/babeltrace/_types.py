"""Types of fields as a CTF 1.8 trace declares them: what the parser of metadata makes, and what values are read by.

Babeltrace 1 shows how fields lie in packets (sizes, byte orders, arrays of characters); the native description of a trace
does not tell that, so these types come from the metadata's text.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph.compat.babeltrace.common import CTFTypeId


class _Type:
    """A type; `align` is in bits."""

    align = 1

    @property
    def is_character(self):
        """Whether an array of these is text."""
        return False


class IntegerType(_Type):
    """An integer. `clock` names the clock whose value it is."""

    id = CTFTypeId.INTEGER

    def __init__(self, size, align=None, signed=False, base=0, encoding=0, is_little=True, clock=None):
        self.size, self.signed, self.base, self.encoding = size, signed, base, encoding
        self.is_little, self.clock = is_little, clock
        self.align = (8 if size % 8 == 0 else 1) if align is None else align

    @property
    def is_character(self):
        return self.size == 8 and self.encoding != 0


class FloatType(_Type):
    """A number in the formats of IEEE 754."""

    id = CTFTypeId.FLOAT

    def __init__(self, exponent, mantissa, align=None, is_little=True):
        self.exponent, self.mantissa, self.is_little = exponent, mantissa, is_little
        self.size = exponent + mantissa
        self.align = (8 if self.size % 8 == 0 else 1) if align is None else align


class EnumerationType(_Type):
    """Labels for ranges of an integer; `mappings` are (label, lower, upper)."""

    id = CTFTypeId.ENUM

    def __init__(self, container, mappings):
        self.container, self.mappings, self.align = container, mappings, container.align
        self._labels = {}

    def label(self, value):
        """The first label of a value; `None` if it has none."""
        if value not in self._labels:
            labels = (label for label, lower, upper in self.mappings if lower <= value <= upper)
            self._labels[value] = next(labels, None)
        return self._labels[value]


class StringType(_Type):
    """Text that ends with a zero byte."""

    id = CTFTypeId.STRING
    align = 8

    def __init__(self, encoding=1):
        self.encoding = encoding


class StructureType(_Type):
    """Members as (declared name, type)."""

    id = CTFTypeId.STRUCT

    def __init__(self, members, align=1):
        self.members = members
        self.align = max([align, *(type_.align for _, type_ in members)])


class VariantType(_Type):
    """One of several options, which the enumeration at `tag` selects."""

    id = CTFTypeId.VARIANT

    def __init__(self, options, tag=None):
        self.options, self.tag = options, tag
        # Readers find an option by the name that is shown.
        self.by_shown_name = {shown(name): type_ for name, type_ in options}


class ArrayType(_Type):
    """A number of elements that the metadata tells."""

    id = CTFTypeId.ARRAY

    def __init__(self, element, length):
        self.element, self.length, self.align = element, length, element.align


class SequenceType(_Type):
    """A number of elements that the integer at `length` tells."""

    id = CTFTypeId.SEQUENCE

    def __init__(self, element, length):
        self.element, self.length, self.align = element, length, element.align


class OtherType(_Type):
    """A type that CTF 1.8 does not have."""

    id = CTFTypeId.UNKNOWN


class EventType:
    """An event record class."""

    def __init__(self, name, id, context, fields):
        self.name, self.id, self.context, self.fields = name, id, context, fields


class StreamType:
    """A data stream class with its events by id."""

    def __init__(self, id, packet_context=None, event_header=None, event_context=None):
        self.id, self.packet_context = id, packet_context
        self.event_header, self.event_context = event_header, event_context
        self.events = {}


class TraceType:
    """A trace class: its data stream classes by id, and its event record classes in the order of the metadata."""

    def __init__(self, packet_header=None):
        self.packet_header = packet_header
        self.streams = {}
        self.events = []

    def add(self, stream, event):
        """An event record class of a data stream class."""
        stream.events[event.id] = event
        self.events.append((stream, event))


def shown(name):
    """A name as it is shown: without the underscore that keeps it apart from keywords."""
    return name[1:] if name.startswith("_") else name
