"""Scripts that were written for `bt2`: those of its documentation, and what a comparison with it does not reach.

`scripts/oracles/bt2_compat.py` compares everything else with Babeltrace's own."""

import collections
import datetime
import gc
import pathlib
import shutil

import pytest

from conftest import DEMO
from kymograph.compat import bt2


def events(*arguments, **names):  # type: ignore[no-untyped-def]
    for msg in bt2.TraceCollectionMessageIterator(*arguments, **names):
        if type(msg) is bt2._EventMessageConst:
            yield msg


def test_names_of_events() -> None:
    counts = collections.Counter(msg.event.name for msg in events(DEMO))
    assert sum(counts.values()) == 2400
    assert set(counts) == {"jobs:submit", "jobs:begin", "jobs:chunk", "jobs:end"}


def test_a_component_that_is_named() -> None:
    ctf_plugin = bt2.find_plugin("ctf")
    fs_cc = ctf_plugin.source_component_classes["fs"]
    explicit = [msg.event["id"] for msg in events(bt2.ComponentSpec(fs_cc, {"inputs": [DEMO]}))]
    named = bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "fs", {"inputs": [DEMO]})
    assert explicit == [msg.event["id"] for msg in events(named)] == [msg.event["id"] for msg in events([DEMO])]


def test_a_trace_that_is_named_twice_is_read_once() -> None:
    specs = [bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "fs", DEMO) for _ in range(2)]
    assert len(list(events(specs))) == len(list(events(specs[:1])))


def test_times_of_events() -> None:
    last = None
    for msg in events(DEMO):
        ns_from_origin = msg.default_clock_snapshot.ns_from_origin
        assert last is None or ns_from_origin >= last
        last = ns_from_origin
    when = datetime.datetime.fromtimestamp(last / 1e9, datetime.timezone.utc)
    assert when.year == 2026


def test_fields_by_name() -> None:
    times = collections.Counter()
    for msg in events(DEMO):
        event = msg.event
        # Of the packet's context.
        assert event["cpu_id"] in (0, 1)
        if event.name == "jobs:submit":
            times[str(event["name"])] += event["queue_depth"]
            assert "kind" in event.payload_field and "nosuch" not in event.payload_field
    assert set(times) >= {"config.toml", "frame.raw"}


def test_classes() -> None:
    for msg in bt2.TraceCollectionMessageIterator(DEMO):
        if type(msg) is bt2._StreamBeginningMessageConst:
            break
    described = {
        event_class.name: {member.name: type(member.field_class).__name__
                           for member in event_class.payload_field_class.values()}
        for event_class in msg.stream.cls.values()
    }
    assert described["jobs:submit"] == {
        "id": "_UnsignedIntegerFieldClassConst",
        "kind": "_SignedEnumerationFieldClassConst",
        "name": "_StringFieldClassConst",
        "queue_depth": "_UnsignedIntegerFieldClassConst",
    }


def test_a_query() -> None:
    comp_cls = bt2.find_plugin("ctf").source_component_classes["fs"]
    result = bt2.QueryExecutor(comp_cls, "babeltrace.support-info", {"type": "directory", "input": DEMO}).query()
    assert result["weight"] == 0.75 and len(str(result["group"])) == 36
    metadata = bt2.QueryExecutor(comp_cls, "metadata-info", {"path": DEMO}).query()
    assert "jobs:submit" in str(metadata["text"])
    with pytest.raises(bt2.UnknownObject):
        bt2.QueryExecutor(comp_cls, "nosuch").query()


def test_times_of_a_query_follow_offsets() -> None:
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]

    def ranges(**params):  # type: ignore[no-untyped-def]
        infos = bt2.QueryExecutor(fs, "babeltrace.trace-infos", {"inputs": [DEMO], **params}).query()
        return [(int(info["range-ns"]["begin"]), int(info["range-ns"]["end"])) for info in infos[0]["stream-infos"]]

    plain = ranges()
    assert plain[0] == (1795219372253260578, 1795219372324459991)
    shifted = ranges(**{"clock-class-offset-s": 1, "clock-class-offset-ns": 7})
    assert shifted == [(begin + 10**9 + 7, end + 10**9 + 7) for begin, end in plain]


def test_a_text_is_no_list_of_paths() -> None:
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    for inputs in (DEMO, [5], {"a": DEMO}):
        with pytest.raises(bt2._Error, match="list of paths"):
            bt2.TraceCollectionMessageIterator(bt2.ComponentSpec(fs, {"inputs": inputs}))
        with pytest.raises(bt2._Error, match="list of paths"):
            bt2.QueryExecutor(fs, "babeltrace.trace-infos", {"inputs": inputs}).query()
    with pytest.raises(bt2._Error, match="missing mandatory"):
        bt2.QueryExecutor(fs, "babeltrace.trace-infos", {}).query()
    with pytest.raises(bt2._Error, match="missing mandatory"):
        bt2.QueryExecutor(fs, "metadata-info", {"inputs": [DEMO]}).query()
    # One text instead of parameters is one input.
    assert next(events(bt2.ComponentSpec(fs, DEMO))).event.name == "jobs:submit"


WRONG_PARAMETERS: list[dict[str, object]] = [
    {"clock-class-offset-s": "2"},
    {"clock-class-offset-s": None},
    {"clock-class-offset-ns": 1.5},
    {"clock-class-offset-ns": True},
    {"force-clock-class-origin-unix-epoch": 1},
    {"trace-name": 5},
    {"nosuch": 1},
]


@pytest.mark.parametrize("wrong", WRONG_PARAMETERS, ids=str)
def test_parameters_are_checked(wrong: dict[str, object]) -> None:
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    params = {"inputs": [DEMO], **wrong}
    with pytest.raises(bt2._Error, match=next(iter(wrong))):
        bt2.TraceCollectionMessageIterator(bt2.ComponentSpec(fs, params))
    with pytest.raises(bt2._Error, match=next(iter(wrong))):
        bt2.TraceCollectionMessageIterator(bt2.AutoSourceComponentSpec(DEMO, wrong))
    with pytest.raises(bt2._Error, match=next(iter(wrong))):
        bt2.QueryExecutor(fs, "babeltrace.trace-infos", params).query()


def test_sources_are_found_before_their_parameters_are_checked() -> None:
    """As in Babeltrace, which adds components to its graph then."""
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    with pytest.raises(RuntimeError, match="docs"):
        bt2.TraceCollectionMessageIterator([bt2.ComponentSpec(fs, {}), "docs"])


WRONG_QUERIES: list[object] = [
    None,
    3,
    [DEMO],
    {},
    {"type": "directory", "inputs": []},
    {"type": 1, "input": 2, "path": 3},
]


@pytest.mark.parametrize("params", WRONG_QUERIES, ids=str)
def test_queries_check_their_parameters(params: object) -> None:
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    for name in ("babeltrace.support-info", "babeltrace.trace-infos", "metadata-info"):
        with pytest.raises(bt2._Error):
            bt2.QueryExecutor(fs, name, params).query()


def test_values_are_assigned_anew() -> None:
    number, real, truth, text = (bt2.create_value(each) for each in (5, 0.5, True, "a"))
    number.value, real.value, truth.value, text.value = -7, 2, False, "b"
    assert (number, real, truth, text) == (-7, 2.0, False, "b")
    text += "c"
    assert text == "bc" and isinstance(text, bt2.StringValue)
    with pytest.raises(TypeError, match="integral number"):
        number.value = "x"
    with pytest.raises(ValueError, match="64-bit"):
        number.value = 2**63
    with pytest.raises(AttributeError):
        number.value


def test_objects_have_addresses() -> None:
    msg = next(events(DEMO))
    event = msg.event
    objects = [msg, event, event.cls, event.stream, event.stream.trace, event.packet, event.payload_field,
               event.payload_field["id"], event.payload_field["name"], msg.default_clock_snapshot]
    assert all(isinstance(each.addr, int) and each.addr > 0 for each in objects)
    assert event.addr == event.addr != msg.addr


def test_names_are_in_modules_as_in_babeltrace() -> None:
    from kymograph.compat.bt2 import event, event_class, field, message, trace, value

    assert event._EventConst is bt2._EventConst and trace._TraceConst is bt2._TraceConst
    assert field._IntegerFieldConst is bt2._IntegerFieldConst and not hasattr(field, "_IntegerFieldClassConst")
    assert value.MapValue is bt2.MapValue and message._EventMessageConst is bt2._EventMessageConst
    assert event_class.EventClassLogLevel.DEBUG == 14
    import kymograph.compat.bt2.field_class as field_class

    assert field_class._StructureFieldClassConst is bt2._StructureFieldClassConst


def test_traces_are_called_after_their_folders(tmp_path: pathlib.Path) -> None:
    """As Babeltrace calls them: by their host, and where they are below what was named."""
    shutil.copytree(DEMO, tmp_path / "run" / "ust")
    host = next(events(DEMO)).event.stream.trace.environment.get("hostname")
    folders = {str(tmp_path): "run/ust", str(tmp_path / "run"): "ust", str(tmp_path / "run" / "ust"): None}
    for path, below in folders.items():
        name = next(events(path)).event.stream.trace.name
        assert name == "/".join(str(part) for part in (host, below) if part is not None)


def test_the_end_of_a_trace_is_told() -> None:
    told = []
    messages = bt2.TraceCollectionMessageIterator(DEMO)
    trace = next(messages).stream.trace
    trace.add_destruction_listener(lambda gone: told.append(len(gone)))
    removed = trace.add_destruction_listener(lambda gone: told.append("removed"))
    trace.remove_destruction_listener(removed)
    with pytest.raises(ValueError):
        trace.remove_destruction_listener(removed)
    with pytest.raises(TypeError):
        trace.add_destruction_listener("x")
    del messages, trace
    gc.collect()
    assert told == [2]


def test_events_as_dictionaries() -> None:
    """As `tracetools_read` makes them."""
    def to_python(field):  # type: ignore[no-untyped-def]
        if isinstance(field, bt2._IntegerFieldConst):
            return int(field)
        if isinstance(field, bt2._RealFieldConst):
            return float(field)
        if isinstance(field, bt2._StringFieldConst):
            return str(field)
        raise TypeError(type(field))

    msg = next(events(DEMO))
    scopes = (msg.event.payload_field, msg.event.common_context_field, msg.event.packet.context_field)
    fields = {name: to_python(value) for scope in scopes if scope for name, value in scope.items()}
    assert {"_name": msg.event.name, "_timestamp": msg.default_clock_snapshot.ns_from_origin, **fields} == {
        "_name": "jobs:submit", "_timestamp": 1795219372255263261, "id": 0, "kind": 5, "name": "config.toml",
        "queue_depth": 1, "vpid": 29832, "vtid": 29832, "procname": "demo", "cpu_id": 1,
    }


def test_messages_may_be_kept() -> None:
    kept = list(bt2.TraceCollectionMessageIterator(DEMO))
    again = [msg.event["id"] for msg in events(DEMO)]
    assert [msg.event["id"] for msg in kept if type(msg) is bt2._EventMessageConst] == again


def test_time_is_cut_as_filters_say() -> None:
    times = [msg.default_clock_snapshot.ns_from_origin for msg in events(DEMO)]
    begin, end = times[600], times[1200]
    params = {"begin": f"{begin // 10**9}.{begin % 10**9:09}", "end": f"{end // 10**9}.{end % 10**9:09}"}
    trimmer = bt2.ComponentSpec.from_named_plugin_and_component_class("utils", "trimmer", params)
    cut = [msg.default_clock_snapshot.ns_from_origin for msg in events(DEMO, filter_component_specs=trimmer)]
    assert cut == [each for each in times if begin <= each <= end]


def test_what_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    for path in (str(tmp_path), "/nonexistent"):
        with pytest.raises(RuntimeError, match="did not produce any component"):
            bt2.TraceCollectionMessageIterator(path)
    with pytest.raises(TypeError):
        bt2.TraceCollectionMessageIterator(5)
    with pytest.raises(ValueError, match="no such plugin"):
        bt2.ComponentSpec.from_named_plugin_and_component_class("nosuch", "fs")
    with pytest.raises(KeyError):
        bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "nosuch")
    assert bt2.find_plugin("nosuch") is None
    (tmp_path / "metadata").write_text("/* CTF 1.8 */ nonsense")
    with pytest.raises(bt2._Error) as refused:
        bt2.TraceCollectionMessageIterator(str(tmp_path))
    assert len(refused.value) >= 1 and refused.value[0].message


def test_a_fault_is_told_when_all_the_rest_was_read(tmp_path: pathlib.Path) -> None:
    shutil.copytree(DEMO, tmp_path / "trace")
    shutil.rmtree(tmp_path / "trace" / "index")
    file = tmp_path / "trace" / "jobs_0"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])
    seen = 0
    with pytest.raises(bt2._Error) as fault:
        for _ in events(str(tmp_path / "trace")):
            seen += 1
    assert 1000 < seen < 2400
    assert "jobs_0" in fault.value[0].file_name and "jobs_0" in str(fault.value)


def test_folders_of_one_session_are_one_trace(tmp_path: pathlib.Path) -> None:
    for name, stream in (("one", "jobs_0"), ("two", "jobs_1")):
        (tmp_path / name).mkdir()
        for file in ("metadata", stream):
            shutil.copy(pathlib.Path(DEMO) / file, tmp_path / name)
    found = list(events([str(tmp_path / "one"), str(tmp_path / "two")]))
    cycles = [msg.default_clock_snapshot.value for msg in events(DEMO)]
    assert [msg.default_clock_snapshot.value for msg in found] == cycles
    assert {len(msg.event.stream.trace) for msg in found} == {2}


def test_the_end_is_a_stop() -> None:
    messages = bt2.TraceCollectionMessageIterator(DEMO)
    collections.deque(messages, maxlen=0)
    for _ in range(2):
        with pytest.raises(bt2.Stop):
            next(messages)


def test_fields_of_ctf_2() -> None:
    """Which Babeltrace 2.0.4 does not read."""
    from conftest import corpus

    kinds = set()
    for msg in events(corpus("ctf/tracecompass/CTF2-vl-ints")):
        kinds |= {type(field).__name__ for field in msg.event.payload_field.values()}
    assert kinds & {"_UnsignedIntegerFieldConst", "_SignedIntegerFieldConst"}
