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
import os
import sys
import uuid

from kymograph.compat.babeltrace._bits import BitWriter
from kymograph.compat.babeltrace._written_declarations import (
    ArrayFieldDeclaration,
    EnumerationFieldDeclaration,
    FieldDeclaration,
    FloatFieldDeclaration,
    FloatingPointFieldDeclaration,
    IntegerBase,
    IntegerFieldDeclaration,
    SequenceFieldDeclaration,
    StringFieldDeclaration,
    StructureFieldDeclaration,
    VariantFieldDeclaration,
)
from kymograph.compat.babeltrace._written_fields import (
    ArrayField,
    EnumerationField,
    Field,
    FloatFieldingPoint,
    FloatingPointField,
    IntegerField,
    SequenceField,
    StringField,
    StructureField,
    VariantField,
    create_field,
)
from kymograph.compat.babeltrace._written_text import LITTLE, is_identifier, is_name, quoted, unsigned, write_only

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


class Clock:
    """The time that events get when they are appended."""

    def __init__(self, name):
        if not is_name(name) or not is_identifier(name):
            raise ValueError("Invalid clock name.")
        self._name = name
        self._uuid = uuid.uuid4()
        self._description = None
        self._frequency, self._precision = 10**9, 1
        self._offset_seconds, self._offset = 0, 0
        self._absolute = False
        self._time_ns = 0

    @write_only
    def description(self, description):
        """A description for people."""
        self._description = str(description)

    @write_only
    def frequency(self, frequency):
        """Cycles per second."""
        self._frequency = unsigned(frequency)
        if not self._frequency:
            raise ValueError("Invalid frequency value.")

    @write_only
    def precision(self, precision):
        """The uncertainty in cycles."""
        self._precision = unsigned(precision)

    @write_only
    def offset_seconds(self, seconds):
        """Seconds from the epoch to the clock's zero."""
        self._offset_seconds = unsigned(seconds)

    @write_only
    def offset(self, cycles):
        """Further cycles from the epoch to the clock's zero."""
        self._offset = unsigned(cycles)

    @write_only
    def absolute(self, is_absolute):
        """Whether the clock is a global reference."""
        self._absolute = bool(is_absolute)

    @write_only
    def time(self, nanoseconds):
        """The current time in nanoseconds since the clock's zero."""
        self._time_ns = unsigned(nanoseconds)

    def _cycles(self):
        return self._time_ns * self._frequency // 10**9

    def _text(self):
        lines = [f"name = {self._name};", f'uuid = "{self._uuid}";']
        if self._description is not None:
            lines.append(f"description = {quoted(self._description)};")
        lines += [
            f"freq = {self._frequency};",
            f"precision = {self._precision};",
            f"offset_s = {self._offset_seconds};",
            f"offset = {self._offset};",
            f"absolute = {'TRUE' if self._absolute else 'FALSE'};",
        ]
        return "clock {\n" + "".join(f"\t{line}\n" for line in lines) + "};\n\n"


class EventClass:
    """A kind of events: its name and its fields."""

    def __init__(self, name):
        if not isinstance(name, str) and name is not None:
            raise TypeError("the name of an event class is text")
        if not is_name(name):
            raise ValueError("Event class creation failed.")
        self._name = name
        self._fields = StructureFieldDeclaration()
        self._id = None

    def add_field(self, field_type, field_name):
        """Add a field at the end of the payload."""
        self._fields._add(field_type, field_name, "Could not add field to event class.")

    def _text(self, is_little, stream_id):
        return (
            f"event {{\n\tid = {self._id};\n\tname = {quoted(self._name)};\n\tstream_id = {stream_id};\n"
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
        if name is not None and not is_name(name):
            raise ValueError("Stream class creation failed.")
        self._name = name
        self._clock, self._id = None, None
        self._events = []

    @write_only
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
        self._discarded += unsigned(event_count)

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
        if not is_name(name) or not is_identifier(name):
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
            entries = (f"\t{name} = {quoted(value)};\n" for name, value in self._environment.items())
            parts.append("env {\n" + "".join(entries) + "};\n\n")
        parts += [clock._text() for clock in self._clocks]
        parts += [stream_class._text(is_little) for stream_class in self._stream_classes]
        return "".join(parts)

    def flush_metadata(self):
        """Write the metadata."""
        with open(os.path.join(self._path, "metadata"), "w", encoding="ascii") as file:
            file.write(self.metadata)

    @write_only
    def byte_order(self, byte_order):
        """The byte order of the trace: a constant of `ByteOrder`. It is that of this machine unless it is set."""
        if byte_order not in LITTLE or self._frozen:
            raise ValueError("Could not set trace's byte order.")
        self._little = LITTLE[byte_order]


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
