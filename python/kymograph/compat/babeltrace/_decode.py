"""Reads values of types out of the bits of packets: of headers, which the native messages do not have.

    bytes ── Decoder.read(type) ──> raw value ── plain(type, raw) ──> value as Babeltrace 1 shows it

A raw value keeps what paths to lengths and tags need: integers as numbers, structures as dictionaries by declared names.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import struct

from kymograph.compat.babeltrace._types import (
    ArrayType,
    EnumerationType,
    FloatType,
    IntegerType,
    SequenceType,
    StringType,
    StructureType,
    shown,
)
from kymograph.compat.babeltrace.common import CTFTypeId, FieldError

#: The scopes that paths begin with.
_ROOTS = (
    "trace.packet.header",
    "stream.packet.context",
    "stream.event.header",
    "stream.event.context",
    "event.context",
    "event.fields",
)


class EndOfPacket(Exception):
    """Raised when a field would be behind the end of its packet."""


class Selected:
    """A variant's value: the declared name of the option and the option's raw value."""

    __slots__ = ("name", "raw", "type")

    def __init__(self, name, type_, raw):
        self.name, self.type, self.raw = name, type_, raw


class Enumerated(int):
    """An enumeration's number, with its type: variants ask for its label."""


class Decoder:
    """A place in a packet. `end` is in bits; `roots` are the scopes that were read before."""

    def __init__(self, data, begin, end):
        self.data, self.at, self.end = data, begin, end
        self.begin = begin
        self.roots = {}
        self.clocks = []
        self._frames = []

    def scope(self, root, type_):
        """Reads a whole scope; nothing if there is none."""
        self._frames = []
        if type_ is None:
            self.roots.pop(root, None)
            return {}
        raw = {}
        self.roots[root] = raw
        self._structure(type_, raw)
        return raw

    def align(self, bits):
        self.at += -(self.at - self.begin) % bits

    def read(self, type_):
        if isinstance(type_, IntegerType):
            return self._integer(type_)
        if isinstance(type_, EnumerationType):
            value = Enumerated(self._integer(type_.container))
            value.type = type_
            return value
        if isinstance(type_, StringType):
            return self._string()
        if isinstance(type_, FloatType):
            return self._float(type_)
        if isinstance(type_, StructureType):
            raw = {}
            self._structure(type_, raw)
            return raw
        if isinstance(type_, (ArrayType, SequenceType)):
            length = type_.length if isinstance(type_, ArrayType) else self._looked_up(type_.length)
            self.align(type_.align)
            return [self.read(type_.element) for _ in range(length)]
        return self._variant(type_)

    def _bits(self, size, is_little):
        begin, self.at = self.at, self.at + size
        if self.at > self.end:
            raise EndOfPacket
        first, last = begin // 8, (self.at + 7) // 8
        bits = int.from_bytes(self.data[first:last], "little" if is_little else "big")
        shift = begin % 8 if is_little else last * 8 - self.at
        return bits >> shift & (1 << size) - 1

    def _integer(self, type_):
        self.align(type_.align)
        value = self._bits(type_.size, type_.is_little)
        if type_.clock is not None:
            self.clocks.append((value, type_.size))
        if type_.signed and value >> type_.size - 1:
            value -= 1 << type_.size
        return value

    def _float(self, type_):
        self.align(type_.align)
        bits = self._bits(type_.size, type_.is_little)
        form = {32: ">f", 64: ">d"}[type_.size]
        return struct.unpack(form, bits.to_bytes(type_.size // 8, "big"))[0]

    def _string(self):
        self.align(8)
        end = self.data.find(b"\0", self.at // 8, self.end // 8)
        if end < 0:
            raise EndOfPacket
        text, self.at = self.data[self.at // 8 : end], 8 * (end + 1)
        return text

    def _structure(self, type_, raw):
        self.align(type_.align)
        self._frames.append(raw)
        for name, member in type_.members:
            raw[name] = self.read(member)
        self._frames.pop()

    def _variant(self, type_):
        tag = self._looked_up(type_.tag)
        label = tag.type.label(tag)
        for name, option in type_.options:
            if label is not None and shown(name) == shown(label):
                return Selected(name, option, self.read(option))
        raise EndOfPacket

    def _looked_up(self, path):
        """The value at a path: from a scope, or from the innermost structure that has its first name."""
        names = path.split(".")
        for root in _ROOTS:
            if path.startswith(root + ".") and root in self.roots:
                return _followed(self.roots[root], names[len(root.split(".")) :])
        for frame in reversed(self._frames):
            if names[0] in frame:
                return _followed(frame, names)
        for frame in reversed(list(self.roots.values())):
            if names[0] in frame:
                return _followed(frame, names)
        raise EndOfPacket


def _followed(raw, names):
    for name in names:
        raw = raw.raw if isinstance(raw, Selected) else raw
        raw = raw[name]
    return raw


def plain(type_, raw, name):
    """A raw value as Babeltrace 1 shows it. The name is told if a number has no label."""
    if isinstance(type_, EnumerationType):
        return labelled(type_, raw, name)
    if isinstance(type_, StringType):
        return raw.decode("utf-8", "surrogateescape")
    if isinstance(type_, StructureType):
        return {shown(each): plain(member, raw[each], shown(each)) for each, member in type_.members}
    if isinstance(type_, (ArrayType, SequenceType)):
        if type_.element.is_character:
            return characters(raw)
        return [plain(type_.element, each, "") for each in raw]
    if isinstance(raw, Selected):
        return plain(raw.type, raw.raw, shown(raw.name))
    return raw


def characters(numbers):
    """The text of an array of characters: up to the first zero."""
    return bytes(int(each) & 255 for each in numbers).split(b"\0")[0].decode("utf-8", "surrogateescape")


def labelled(type_, number, name):
    """The label of an enumeration's number."""
    label = type_.label(int(number))
    if label is None:
        type_name = CTFTypeId.type_name(type_.id)
        raise FieldError(f"Error occurred while accessing field {name} of type {type_name}")
    return label
