"""Babeltrace 1's Python interface over Kymograph: a script that imports `babeltrace` changes one line.

    from kymograph.compat import babeltrace

It reads with `TraceCollection` and writes with `CTFWriter`. What there is, and what is different, is in docs/python.md.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph.compat.babeltrace import common, reader, writer
from kymograph.compat.babeltrace.common import (
    ByteOrder,
    ClockType,
    CTFScope,
    CTFStringEncoding,
    CTFTypeId,
    FieldError,
)
from kymograph.compat.babeltrace.reader import (
    ArrayFieldDeclaration,
    EnumerationFieldDeclaration,
    Event,
    EventDeclaration,
    FieldDeclaration,
    FloatFieldDeclaration,
    IntegerFieldDeclaration,
    SequenceFieldDeclaration,
    StringFieldDeclaration,
    StructureFieldDeclaration,
    TraceCollection,
    TraceHandle,
    VariantFieldDeclaration,
)
from kymograph.compat.babeltrace.writer import CTFWriter

# Of Babeltrace: what this interface is.
__version__ = "1.5.11"

__all__ = [
    "ArrayFieldDeclaration",
    "ByteOrder",
    "CTFScope",
    "CTFStringEncoding",
    "CTFTypeId",
    "CTFWriter",
    "ClockType",
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
    "common",
    "reader",
    "writer",
]

# Scripts also name the module within the package: `babeltrace.babeltrace.Event`.
from kymograph.compat.babeltrace import babeltrace  # noqa: E402
