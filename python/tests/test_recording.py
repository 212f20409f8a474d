"""Recording from Python: the same as the command, with sessions as objects."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import kymograph

#: Only hangs take so long.
HANG_S = 120


@pytest.fixture(autouse=True)
def own_recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Sessions of other tests are not seen."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("KYMO_SESSION", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)


def test_a_program_is_recorded(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["sh", "-c", "echo one; echo two; echo three >&2; exit 7"]
    recording = kymograph.record(words, capture_output=True, output=tmp_path / "trace", name=None)
    assert (recording.status, recording.output) == (7, tmp_path / "trace")
    lines = [(event.name, event["line"]) for event in recording.trace if event.name.startswith("output:")]
    assert sorted(lines) == [("output:stderr", "three"), ("output:stdout", "one"), ("output:stdout", "two")]
    assert recording.summary["captured"]["lines"] == 3
    recording.stop()
    assert recording.summary["has_ended"] and recording.summary["events"] == 3
    output, errors = capfd.readouterr()
    assert (output, errors) == ("one\ntwo\n", "three\n"), "the program's output, and none of the command's"
    assert repr(recording).startswith("<kymograph.Recording 'sh': 3 events in ")


def test_a_session_is_an_object(tmp_path: pathlib.Path) -> None:
    with kymograph.record(
        name="mine", output=tmp_path / "trace", only=["slow: a:b over 5ms since a:c per d", "a:e every 3"]
    ) as recording:
        assert recording.summary["session"] == "mine" and not recording.summary["has_ended"]
        assert dict(recording.limits) == {"slow": 5_000_000, "e": 3}
        recording.limits["slow"] = "20ms"
        recording.limits["slow", "/cart"] = 1_000
        recording.limits["e"] = 7
        assert dict(recording.limits) == {"slow": 20_000_000, ("slow", "/cart"): 1_000, "e": 7}
        del recording.limits["slow"]
        assert recording.limits["slow"] == 5_000_000 and len(recording.limits) == 3
        with pytest.raises(KeyError):
            recording.limits["fast"] = 1
        recording.disable("a:b")
        recording.enable("a:b", level="info")
        assert repr(recording).startswith("<kymograph.Recording 'mine': recording in ")
    assert recording.summary["has_ended"]
    assert recording.trace.info().events == recording.summary["own_events"]


def test_a_flight_recorder_gives_snapshots(tmp_path: pathlib.Path) -> None:
    with kymograph.record(mode="overwrite", output=tmp_path / "trace") as recording:
        assert recording.snapshot(tmp_path / "one").info().traces
    assert recording.summary["has_ended"]


def test_what_is_wrong_is_said(tmp_path: pathlib.Path) -> None:
    with pytest.raises(kymograph.QuestionError, match="unexpected argument '--bogus'"):
        kymograph.record(["true"], bogus=True)
    with pytest.raises(kymograph.QuestionError, match="`json` is no option here"):
        kymograph.record(["true"], json=True)
    with pytest.raises(kymograph.QuestionError, match="a program at least"):
        kymograph.record([])
    with pytest.raises(kymograph.Error, match="nowhere"):
        kymograph.record("/nowhere/at/all", output=tmp_path / "trace")
    recording = kymograph.record(name="gone", output=tmp_path / "gone")
    recording.stop()
    again = kymograph.Recording("gone", tmp_path / "gone")
    with pytest.raises(kymograph.RecordError):
        print(again.summary)


def test_ctrl_c_ends_the_program(tmp_path: pathlib.Path) -> None:
    script = f"""
import kymograph
try:
    kymograph.record(["sh", "-c", "echo ready; exec sleep 600"], output={str(tmp_path / "trace")!r})
except KeyboardInterrupt:
    print("interrupted")
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=HANG_S)
    assert output == "interrupted\n"
    assert kymograph.open(tmp_path / "trace").info() is not None


def test_the_kernel_is_recorded(tmp_path: pathlib.Path) -> None:
    try:
        recording = kymograph.record(
            [sys.executable, "-c", "import os\nfor n in range(50):\n  try: os.close(987654)\n  except OSError: pass"],
            kernel="syscalls",
            kernel_of="command",
            kernel_filter="syscall_entry_close when fd == 987654",
            output=tmp_path / "trace",
        )
    except kymograph.RecordError as error:
        assert any(word in str(error) for word in ("tracefs", "may not", "privileges")), error
        pytest.skip(f"NO KERNEL EVENTS HERE: {error}")
    if recording.summary["kernel"]["tracefs_absent"]:
        pytest.skip("NO TRACEFS HERE: there are no system calls")
    calls = recording.trace.events("syscall_entry_close", columns=["fd"]).to_polars()
    assert calls["fd"].to_list() == [987654] * 50


def test_limits_of_the_kernel_are_a_mapping(tmp_path: pathlib.Path) -> None:
    own = f"when pid == {os.getpid()}"
    try:
        recording = kymograph.record(
            kernel_only=[f"slow: syscalls over p50 per name {own}", f"gate: sys_enter closed {own}"],
            watch=[f"calls: syscalls {own} --by name"],
            output=tmp_path / "trace",
        )
    except kymograph.Error as error:
        assert any(word in str(error) for word in ("tracefs", "may not", "privileges", "btf", "not permitted")), error
        pytest.skip(f"NO RULES OF THE KERNEL HERE: {error}")
    with recording:
        limits = recording.limits
        assert limits["gate"] == "closed"
        limits["gate"] = "open"
        assert limits["gate"] == "open"
        for _ in range(1000):
            os.getppid()
        running = limits["slow", "getppid"]
        assert isinstance(running, int) and 0 < running < HANG_S * 1_000_000_000 and ("slow", "getppid") in limits
        limits["slow", "getppid"] = "5ms"
        assert limits["slow", "getppid"] == 5_000_000
        limits["slow"] = 7_000
        assert limits["slow"] == 7_000
        with pytest.raises(KeyError):
            print(limits["slow", "no_such_call"])
    (counts,) = recording.summary["kernel"]["watches"]
    assert counts["name"] == "calls" and counts["events"] >= 1000
    rows = recording.trace.events("watch:total", columns=["row", "events"]).to_polars().rows()
    assert dict(rows)["getppid"] >= 1000


def test_a_session_outlives_who_began_it(tmp_path: pathlib.Path) -> None:
    script = f"import kymograph; print(kymograph.record(name='stays', output={str(tmp_path / 'trace')!r}).session)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_S, env=os.environ)
    assert done.stdout == "stays\n", done
    begin = time.monotonic()
    left = kymograph.Recording("stays", tmp_path / "trace")
    assert not left.summary["has_ended"] and time.monotonic() - begin < HANG_S
    left.stop()
