"""Scripts that were written for `bt2`: those of its documentation, and what a comparison with it does not reach.

`scripts/oracles/bt2_compat.py` compares everything else with Babeltrace's own."""

import collections
import datetime
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
