"""Scripts that were written for Babeltrace 1's `babeltrace`: reading, writing, and a comparison with the real module.

The expectations are what Babeltrace 1.5.11 gave for the same script; where it is installed, it is asked again."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import DEMO
from kymograph.compat import babeltrace
from kymograph.compat.babeltrace import (
    ByteOrder,
    CTFScope,
    CTFStringEncoding,
    CTFTypeId,
    CTFWriter,
    FieldError,
    TraceCollection,
)

#: Tells everything that a trace shows, as lines of JSON.
DUMP = """
import json, sys
traces = babeltrace.TraceCollection()
handles = traces.add_traces_recursive(sys.argv[1], "ctf")
def declared(field):
    told = [type(field).__name__, repr(field)]
    told += [getattr(field, name) for name in ("signedness", "base", "byte_order", "length", "encoding") if hasattr(field, name)]
    return told + ([declared(field.element_declaration)] if hasattr(field, "element_declaration") else [])
for handle in handles.values():
    for event in handle.events:
        print(json.dumps([event.name, [declared(field) for field in event.fields]]))
for event in traces.events:
    scopes = []
    for scope in range(6):
        for name in event.field_list_with_scope(scope):
            try:
                scopes.append([scope, name, event.field_with_scope(name, scope)])
            except babeltrace.FieldError as error:
                scopes.append([scope, name, str(error)])
    print(json.dumps([event.name, event.cycles, event.timestamp, len(event), sorted(event.keys()), scopes]))
"""


def opened(path):  # type: ignore[no-untyped-def]
    traces = TraceCollection()
    assert traces.add_trace(str(path), "ctf") is not None
    return traces


def first(path=DEMO):  # type: ignore[no-untyped-def]
    return next(opened(path).events)


# Reading.


def test_an_event_is_a_mapping_over_all_scopes() -> None:
    event = first()
    assert (event.name, event.cycles, event.timestamp) == ("jobs:submit", 5425812897170, 1795219372255263261)
    assert dict(event) == {
        "id": 0, "kind": "CUSTOM", "name": "config.toml", "queue_depth": 1, "vpid": 29832, "vtid": 29832,
        "procname": "demo", "v": {"id": 0, "timestamp": 5425812897170}, "timestamp_begin": 5425810944232,
        "timestamp_end": 5425819599242, "content_size": 65312, "packet_size": 65536, "packet_seq_num": 0,
        "events_discarded": 0, "cpu_id": 1, "magic": 0xC1FC1FC1,
        "uuid": [37, 92, 123, 15, 99, 236, 69, 132, 178, 96, 115, 177, 14, 165, 110, 43], "stream_id": 0,
        "stream_instance_id": 1,
    }
    # `id` is in two scopes, and counts twice.
    assert len(event) == 20 and len(event.keys()) == 19
    assert event.field_with_scope("id", CTFScope.STREAM_EVENT_HEADER) == "extended"
    assert event.field_with_scope("id", CTFScope.EVENT_FIELDS) == event["id"] == 0
    assert event.field_with_scope("nosuch", CTFScope.EVENT_FIELDS) is None
    assert event.field_list_with_scope(CTFScope.EVENT_FIELDS) == ["id", "kind", "name", "queue_depth"]
    assert "cpu_id" in event and "nosuch" not in event and event.get("nosuch", 7) == 7
    with pytest.raises(KeyError):
        event["nosuch"]
    with pytest.raises(ValueError, match="Invalid scope provided"):
        event.field_with_scope("id", 17)


def test_headers_are_those_of_each_event() -> None:
    headers = [event.field_with_scope("id", CTFScope.STREAM_EVENT_HEADER) for event, _ in zip(opened(DEMO).events, range(3))]
    assert headers == ["extended", "compact", "compact"]
    stamps = [event["v"]["timestamp"] for event, _ in zip(opened(DEMO).events, range(3))]
    assert stamps == [5425812897170, 1269217225, 1269217615]


def test_events_may_be_kept() -> None:
    kept = list(opened(DEMO).events)
    assert len(kept) == 2400
    assert [event["id"] for event in kept] == [event["id"] for event in opened(DEMO).events]
    assert kept[1]["v"] == {"timestamp": 1269217225}


def test_handles_and_collections() -> None:
    traces = TraceCollection()
    handles = traces.add_traces_recursive("examples/traces", "ctf")
    handle = handles[DEMO]
    assert handle.path == DEMO and repr(handle) == f"Babeltrace TraceHandle: trace_id('{handle.id}')"
    assert (handle.timestamp_begin, handle.timestamp_end) == (1795219372253260578, 1795219372324470096)
    only = opened(DEMO)
    assert (only.timestamp_begin, only.timestamp_end) == (1795219372255263261, 1795219372321931298)
    event = next(only.events)
    assert event.handle.path == DEMO and event.trace_collection is only
    assert event.datetime.timestamp() == pytest.approx(1795219372.255263)
    only.remove_trace(event.handle)
    assert list(only.events) == []
    with pytest.raises(TypeError):
        only.remove_trace(5)
    for of in (babeltrace.Event, babeltrace.TraceHandle, babeltrace.EventDeclaration, babeltrace.FieldDeclaration):
        with pytest.raises(NotImplementedError):
            of()


def test_times() -> None:
    times = [event.timestamp for event in opened(DEMO).events]
    begin, end = times[600], times[1200]
    cut = [event.timestamp for event in opened(DEMO).events_timestamps(begin, end)]
    assert cut == [each for each in times if begin <= each <= end]
    both = TraceCollection(intersect_mode=True)
    both.add_trace(DEMO, "ctf")
    assert both.has_intersection == 1 and both.intersect_mode and len(list(both.events)) == 2400


def test_what_is_no_trace_is_none(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = TraceCollection()
    assert traces.add_trace(str(tmp_path), "ctf") is None and "no metadata" in capsys.readouterr().err
    assert traces.add_trace(DEMO, "nosuch") is None
    assert traces.add_traces_recursive(str(tmp_path), "ctf") == {}
    (tmp_path / "metadata").write_text("/* CTF 1.8 */ nonsense")
    assert traces.add_traces_recursive(str(tmp_path), "ctf") is None
    assert list(traces.events) == []


def test_declarations() -> None:
    traces = TraceCollection()
    handle = traces.add_trace(DEMO, "ctf")
    chunk = {event.name: event for event in handle.events}["jobs:chunk"]
    fields = {(field.scope, field.name): field for field in chunk.fields}
    assert [repr(field) for field in chunk.fields_scope(CTFScope.EVENT_FIELDS)] == [
        "(EVENT_FIELDS) INTEGER id", "(EVENT_FIELDS) INTEGER _sizes_length", "(EVENT_FIELDS) SEQUENCE sizes",
        "(EVENT_FIELDS) INTEGER checksum", "(EVENT_FIELDS) FLOAT ratio",
    ]
    checksum = fields[CTFScope.EVENT_FIELDS, "checksum"]
    assert (checksum.signedness, checksum.base, checksum.byte_order, checksum.length, checksum.encoding) == (0, 16, 1, 64, 0)
    procname = fields[CTFScope.STREAM_EVENT_CONTEXT, "procname"]
    assert procname.type == CTFTypeId.ARRAY and procname.length == 17
    assert procname.element_declaration.encoding == CTFStringEncoding.UTF8
    assert fields[CTFScope.EVENT_FIELDS, "sizes"].element_declaration.length == 16
    assert fields[CTFScope.STREAM_EVENT_HEADER, "v"].type == CTFTypeId.VARIANT
    assert fields[CTFScope.TRACE_PACKET_HEADER, "uuid"].type == CTFTypeId.ARRAY


def test_names_that_scripts_use() -> None:
    assert babeltrace.babeltrace.Event is babeltrace.reader.Event is babeltrace.Event
    assert babeltrace.common.CTFScope.scope_name(5) == "EVENT_FIELDS" and CTFScope.scope_name(9) == "UNKNOWN_SCOPE"
    assert CTFTypeId.type_name(8) == "ARRAY" and CTFTypeId.type_name(99) == "UNKNOWN_TYPE"
    assert babeltrace.writer.Writer is CTFWriter.Writer and babeltrace.__version__ == "1.5.11"
    for name in babeltrace.__all__:
        assert hasattr(babeltrace, name), name


def test_events_as_dictionaries() -> None:
    """As `tracetools_read` makes them: it skips the fields that it ignores, and reads no header then."""
    ignored = set("""content_size events_discarded packet_size packet_seq_num stream_id stream_instance_id timestamp_end
        timestamp_begin magic uuid v""".split())
    events = opened(DEMO).events
    made = [{"_name": each.name, **{key: each[key] for key in each.keys() if key not in ignored}} for each in events]
    assert made[2] == {
        "_name": "jobs:submit", "id": 2, "kind": "RENDER", "name": 'scene "A"', "queue_depth": 3, "vpid": 29832,
        "vtid": 29832, "procname": "demo", "cpu_id": 1,
    }


def test_unreadable_and_lost_events_are_told(tmp_path: pathlib.Path) -> None:
    import kymograph

    shutil.copytree(DEMO, tmp_path / "trace")
    shutil.rmtree(tmp_path / "trace" / "index")
    file = tmp_path / "trace" / "jobs_0"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])
    with pytest.warns(kymograph.UnreadableWarning, match="jobs_0"):
        assert 1000 < len(list(opened(tmp_path / "trace").events)) < 2400
    path = write(babeltrace, tmp_path / "lost", lost=4)
    with pytest.warns(kymograph.LossWarning, match="lost 4 events"):
        list(opened(path).events)


# Writing.


def write(module, path, *, lost=0, byte_order=1, align=8, text="text"):  # type: ignore[no-untyped-def]
    """A trace with every type of field, in two packets."""
    of = module.CTFWriter
    clock = of.Clock("the_clock")
    clock.description, clock.offset_seconds, clock.offset = "A clock", 5, 17
    writer = of.Writer(str(path))
    writer.byte_order = byte_order
    writer.add_clock(clock)
    writer.add_environment_field("host", "a name")
    stream_class = of.StreamClass("numbers")
    stream_class.clock = clock

    def integer(size, signed=False, base=10):  # type: ignore[no-untyped-def]
        declaration = of.IntegerFieldDeclaration(size)
        declaration.signed, declaration.base, declaration.alignment = signed, base, align
        return declaration

    character = of.IntegerFieldDeclaration(8)
    character.encoding, character.alignment = module.CTFStringEncoding.UTF8, 8
    double = of.FloatFieldDeclaration()
    double.exponent_digits, double.mantissa_digits, double.alignment = 11, 53, align
    small = integer(5)
    tag = of.EnumerationFieldDeclaration(integer(8))
    tag.add_mapping("number", 0, 3)
    tag.add_mapping("word", 4, 4)
    variant = of.VariantFieldDeclaration(tag, "tag")
    variant.add_field(integer(32, True), "number")
    variant.add_field(of.StringFieldDeclaration(), "word")
    pair = of.StructureFieldDeclaration()
    pair.add_field(small, "_left")
    pair.add_field(of.StringFieldDeclaration(), "right")
    event_class = of.EventClass("all:types")
    for name, declaration in (
        ("length", small), ("negative", integer(17, True)), ("hex", integer(64, base=16)), ("real", double),
        ("single", of.FloatFieldDeclaration()), ("text", of.StringFieldDeclaration()), ("pair", pair),
        ("name", of.ArrayFieldDeclaration(character, 6)), ("pairs", of.ArrayFieldDeclaration(pair, 2)),
        ("numbers", of.SequenceFieldDeclaration(small, "length")), ("tag", tag), ("choice", variant),
    ):
        event_class.add_field(declaration, name)
    stream_class.add_event_class(event_class)
    stream = writer.create_stream(stream_class)
    for number in range(5):
        clock.time = 1000 + number
        event = of.Event(event_class)
        for name, value in (("length", 2), ("negative", -number), ("hex", 2**64 - 1), ("real", 0.1), ("single", 1.5), ("text", text)):
            event.payload(name).value = value
        for field in (event.payload("pair"), event.payload("pairs").field(0), event.payload("pairs").field(1)):
            field.field("_left").value, field.field("right").value = number, "r"
        for index in range(6):
            event.payload("name").field(index).value = b"name\0\0"[index]
        event.payload("numbers").length = event.payload("length")
        for index in range(2):
            event.payload("numbers").field(index).value = 30 + index
        chosen = of.EnumerationField(tag)
        chosen.container.value = number
        event.set_payload("tag", chosen)
        event.payload("choice").field(chosen).value = -7 if number < 4 else "seven"
        stream.append_event(event)
        if number == 2:
            stream.flush()
            stream.append_discarded_events(lost)
    writer.flush_metadata()
    stream.flush()
    return path


def payload(number, text="text"):  # type: ignore[no-untyped-def]
    pair = {"left": number, "right": "r"}
    return {
        "length": 2, "negative": -number, "hex": 2**64 - 1, "real": 0.1, "single": 1.5, "text": text, "pair": pair,
        "name": "name", "pairs": [pair, pair], "numbers": [30, 31], "tag": "number" if number < 4 else "word",
        "choice": -7 if number < 4 else "seven",
    }


@pytest.mark.parametrize("byte_order", [ByteOrder.BYTE_ORDER_LITTLE_ENDIAN, ByteOrder.BYTE_ORDER_BIG_ENDIAN])
@pytest.mark.parametrize("align", [1, 8, 32])
def test_what_is_written_is_read(tmp_path: pathlib.Path, byte_order: int, align: int) -> None:
    path = write(babeltrace, tmp_path / "trace", byte_order=byte_order, align=align, text="käse")
    events = list(opened(path).events)
    assert [event.timestamp for event in events] == [5 * 10**9 + 17 + 1000 + number for number in range(5)]
    for number, event in enumerate(events):
        names = event.field_list_with_scope(CTFScope.EVENT_FIELDS)
        assert {name: event[name] for name in names} == payload(number, "käse")
        # Of the headers, which are read from the file.
        assert event["timestamp"] == event.cycles == 1000 + number and event["magic"] == 0xC1FC1FC1
        assert event["timestamp_begin"] == (1000 if number < 3 else 1003)
        assert event["packet_size"] >= event["content_size"] > 0


def test_metadata(tmp_path: pathlib.Path) -> None:
    writer = CTFWriter.Writer(str(tmp_path / "trace"))
    writer.add_environment_field("host", 'a "name" \\ é\n')
    clock = CTFWriter.Clock("c")
    clock.frequency = 1000
    writer.add_clock(clock)
    assert 'host = "a \\"name\\" \\\\ \\303\\251\\n";' in writer.metadata and "freq = 1000;" in writer.metadata
    writer.flush_metadata()
    assert (tmp_path / "trace" / "metadata").read_text() == writer.metadata


def test_what_cannot_be_written_is_refused(tmp_path: pathlib.Path) -> None:
    for name in ("int", "two event", "", None):
        with pytest.raises(ValueError, match="Event class creation failed"):
            CTFWriter.EventClass(name)
    for size in (0, 65):
        with pytest.raises(ValueError):
            CTFWriter.IntegerFieldDeclaration(size)
    five = CTFWriter.IntegerFieldDeclaration(5)
    field = CTFWriter.IntegerField(five)
    with pytest.raises(ValueError):
        field.value = 32
    with pytest.raises(OverflowError):
        field.value = -1
    with pytest.raises(NotImplementedError):
        field.value
    labels = CTFWriter.EnumerationFieldDeclaration(five)
    labels.add_mapping("a", 0, 3)
    for mapping in (("b", 3, 4), ("a", 9, 9), ("c", 5, 4)):
        with pytest.raises(ValueError):
            labels.add_mapping(*mapping)
    with pytest.raises(IndexError):
        CTFWriter.ArrayField(CTFWriter.ArrayFieldDeclaration(five, 2)).field(2)
    clock = CTFWriter.Clock("clock_a")
    stream_class = CTFWriter.StreamClass("s")
    stream_class.clock = clock
    event_class = CTFWriter.EventClass("e")
    event_class.add_field(five, "five")
    with pytest.raises(ValueError, match="Event creation failed"):
        CTFWriter.Event(event_class)
    stream_class.add_event_class(event_class)
    writer = CTFWriter.Writer(str(tmp_path / "trace"))
    with pytest.raises(ValueError, match="Stream creation failed"):
        writer.create_stream(stream_class)
    writer.add_clock(clock)
    stream = writer.create_stream(stream_class)
    # A field has no value yet.
    with pytest.raises(ValueError, match="Could not append event"):
        stream.append_event(CTFWriter.Event(event_class))
    with pytest.raises(ValueError):
        writer.byte_order = ByteOrder.BYTE_ORDER_BIG_ENDIAN


def test_numbers_without_a_label_are_errors(tmp_path: pathlib.Path) -> None:
    clock, writer = CTFWriter.Clock("c"), CTFWriter.Writer(str(tmp_path / "trace"))
    writer.add_clock(clock)
    stream_class, event_class = CTFWriter.StreamClass("s"), CTFWriter.EventClass("e")
    stream_class.clock = clock
    declaration = CTFWriter.EnumerationFieldDeclaration(CTFWriter.IntegerFieldDeclaration(8))
    declaration.add_mapping("one", 1, 1)
    event_class.add_field(declaration, "which")
    stream_class.add_event_class(event_class)
    stream = writer.create_stream(stream_class)
    event = CTFWriter.Event(event_class)
    event.payload("which").container.value = 7
    stream.append_event(event)
    stream.flush()
    writer.flush_metadata()
    with pytest.raises(FieldError, match="Error occurred while accessing field which of type ENUM"):
        first(tmp_path / "trace")["which"]


# With the real module.


def real(script: str, *arguments: str) -> str:
    """What a script prints with the real module; without it, the test says so."""
    python = "/usr/bin/python3"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if subprocess.run([python, "-c", "import babeltrace"], env=environment, capture_output=True).returncode != 0:
        pytest.skip("PEER ABSENT: Python has no module babeltrace (Debian: python3-babeltrace); nothing was compared with it")
    done = subprocess.run([python, "-c", "import babeltrace\n" + script, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(path: str) -> str:
    script = "import warnings; warnings.simplefilter('ignore')\nfrom kymograph.compat import babeltrace\n" + DUMP
    return subprocess.run([sys.executable, "-c", script, path], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("byte_order", [ByteOrder.BYTE_ORDER_LITTLE_ENDIAN, ByteOrder.BYTE_ORDER_BIG_ENDIAN])
def test_both_read_alike(tmp_path: pathlib.Path, byte_order: int) -> None:
    written = str(write(babeltrace, tmp_path / "trace", byte_order=byte_order, align=1, lost=2))
    for path in (DEMO, written):
        theirs = real(DUMP, path)
        assert len(theirs.splitlines()) > 5 and ours(path) == theirs


def test_both_write_alike(tmp_path: pathlib.Path) -> None:
    """The real module writes a trace with the same function; both traces are read alike."""
    import inspect

    real(inspect.getsource(write) + "\nimport sys\nwrite(babeltrace, sys.argv[1])", str(tmp_path / "theirs"))
    write(babeltrace, tmp_path / "ours")
    shown = []
    for name in ("theirs", "ours"):
        shown.append([(event.timestamp, [(name, event[name]) for name in payload(0)]) for event in opened(tmp_path / name).events])
    assert shown[0] == shown[1] and len(shown[0]) == 5
    without = [
        [line for line in (tmp_path / name / "metadata").read_text().splitlines() if "uuid = " not in line]
        for name in ("theirs", "ours")
    ]
    # Babeltrace does not tell the clock of a packet's times.
    assert [line.replace(" map = clock.the_clock.value;", "") for line in without[1]] == [
        line.replace(" map = clock.the_clock.value;", "") for line in without[0]
    ]
