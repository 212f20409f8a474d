"""Types out of the native description of a trace, for metadata that is not in the language of CTF 1.8.

They lack what the description does not tell: headers, byte orders, alignments, and which texts are arrays.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph.compat.babeltrace._types import (
    ArrayType,
    EnumerationType,
    EventType,
    FloatType,
    IntegerType,
    OtherType,
    SequenceType,
    StreamType,
    StringType,
    StructureType,
    TraceType,
    VariantType,
)


def described(said):
    """The trace class that the native layer describes."""
    made = TraceType()
    for of_stream in said["stream_classes"]:
        context, common = _type(of_stream["packet_context"]), _type(of_stream["common_context"])
        stream = StreamType(of_stream["id"], context, None, common)
        made.streams[stream.id] = stream
        for event in of_stream["events"]:
            specific, payload = _type(event["specific_context"]), _type(event["payload"])
            made.add(stream, EventType(event["name"], event["id"], specific, payload))
    return made


def _integer(said):
    integer = IntegerType(said["range"], 1, said["kind"].startswith("signed"), said["base"], 0, None)
    if "mappings" not in said:
        return integer
    mappings = [(label, lower, upper) for label, ranges in said["mappings"] for lower, upper in ranges]
    return EnumerationType(integer, mappings)


def _type(said):
    if said is None:
        return None
    kind = said["kind"]
    if kind.endswith(("integer", "enumeration")):
        return _integer(said)
    made = {
        "single_real": lambda: FloatType(8, 24, 1, None),
        "double_real": lambda: FloatType(11, 53, 1, None),
        "string": StringType,
        "structure": lambda: StructureType([(name, _type(member)) for name, member in said["members"]]),
        "static_array": lambda: ArrayType(_type(said["element"]), said["length"]),
        "dynamic_array": lambda: SequenceType(_type(said["element"]), None),
        "variant": lambda: VariantType([(name or "", _type(option)) for name, option, _ in said["options"]]),
    }
    return made.get(kind, OtherType)()
