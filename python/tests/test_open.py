"""Opening, and what is said at a glance."""

import copy
import pathlib
import pickle
import shutil
import subprocess
import sys
from datetime import timedelta

import pytest

import kymograph
from conftest import DEMO


def test_what_cannot_be_opened_is_said_as_the_command_does() -> None:
    kymo = str(pathlib.Path(sys.executable).parent / "kymo")
    for path in ["nowhere", "README.md", "docs"]:
        with pytest.raises(kymograph.OpenError) as caught:
            kymograph.open(path)
        said = subprocess.run([kymo, "info", path], capture_output=True, text=True).stderr
        assert said.strip().removeprefix("error: ") == str(caught.value)


def test_of_several_what_can_be_read_is_read(tmp_path: pathlib.Path) -> None:
    trace = kymograph.open([DEMO, pathlib.Path("nowhere")])
    with pytest.warns(kymograph.UnreadableWarning, match="nowhere: No such file"):
        info = trace.info()
    assert info.events == 2400
    assert [problem.place for problem in info.report.unreadable] == ["nowhere"]
    assert not info.report.complete


def test_no_paths() -> None:
    with pytest.raises(ValueError, match="no path"):
        kymograph.open([])


def test_clocks_can_be_shifted(trace: kymograph.Trace) -> None:
    begin = trace.info().begin_ns
    assert begin is not None
    assert kymograph.open(DEMO, clock_shift=5).info().begin_ns == begin + 5
    assert kymograph.open(DEMO, clock_shift=timedelta(seconds=-1)).info().begin_ns == begin - 1_000_000_000


def test_clocks_of_single_traces_can_be_shifted(trace: kymograph.Trace, tmp_path: pathlib.Path) -> None:
    one, two = tmp_path / "one", tmp_path / "hosts" / "two"
    shutil.copytree(DEMO, one)
    shutil.copytree(DEMO, two)
    later = timedelta(milliseconds=40)
    both = kymograph.open([one, two], clock_shift=2, trace_offsets={tmp_path / "hosts": 7, str(two): later})
    for opened in (both, pickle.loads(pickle.dumps(both))):
        first, second = opened.info().traces
        assert (first.clock_shift_ns, second.clock_shift_ns) == (2, 40_000_002)
        assert first.begin_ns is not None and second.begin_ns == first.begin_ns + 40_000_000
    # What one has in a period, the other has two periods later.
    alone, together = ([row[-1] for row in each.rates(period="20ms")["course"].rows()] for each in (trace, both))
    assert sum(together) == 2 * sum(alone) and max(together) > max(alone)
    with pytest.raises(kymograph.OpenError, match="none of the traces, nor has it one below; there is: .*one"):
        kymograph.open(one, trace_offsets={two: 1})


DUMP = """# Start 9 Duration 0 Stop 18446744073709551615
# Min_timestamp 2000
# Core 0 LOG DUMP ===
# Offset 0 0
# DCB 0 ffffff8002656c00 app
0 2000 2656c00
0 4000 1300000000
0 6000 1300000001
"""


def test_files_in_other_formats_are_traces(tmp_path: pathlib.Path) -> None:
    dump, names = tmp_path / "any.name", tmp_path / "names.pleco"
    dump.write_text(DUMP)
    names.write_text('subsystem kernel { event CSWITCH "", event OTHER "", };')
    named = kymograph.open(dump, definitions=names, clock_frequency=2_000_000_000)
    assert named.cpu(by="application")["per-application"].rows()[0][0] == "app"
    for trace in (named, pickle.loads(pickle.dumps(named))):
        assert (trace.info().begin_ns, trace.info().end_ns) == (1000, 3000)
        assert {event.name for event in trace} == {"kernel:CSWITCH", "kernel:event"}
    assert named.verify() == kymograph.findings(dump, definitions=names, clock_frequency=2_000_000_000) == []
    assert {finding.rule for finding in kymograph.findings(dump)} == {"unknown-frequency", "guessed-definitions"}
    with pytest.raises(ValueError, match="at least one cycle"):
        kymograph.open(dump, clock_frequency=0)
    with pytest.raises(kymograph.OpenError, match="definitions .*nowhere"):
        kymograph.open(dump, definitions=tmp_path / "nowhere")


def test_copies_open_the_same(trace: kymograph.Trace) -> None:
    for other in [pickle.loads(pickle.dumps(trace)), copy.copy(trace), copy.deepcopy(trace)]:
        assert other.paths == trace.paths
        assert other.info() == trace.info()


def test_it_needs_nothing_but_python() -> None:
    """An interpreter without any other package imports it and answers."""
    home = str(pathlib.Path(kymograph.__file__).parents[1])
    program = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("kymograph", {home!r} + "/kymograph/__init__.py",
                                              submodule_search_locations=[{home!r} + "/kymograph"])
sys.modules["kymograph"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.open({DEMO!r}).info().events)
foreign = {{"numpy", "pyarrow", "pandas", "polars", "duckdb"}} & set(sys.modules)
assert not foreign, foreign
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("2400\n", "")
