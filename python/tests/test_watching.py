"""Counting events of the kernel from Python."""

import os
import pathlib
import sys

import pytest

import kymograph

#: Closes a number that is no file so many times.
CALLS = 50
CLOSES = f"""
import os
for n in range({CALLS}):
    try: os.close(987654)
    except OSError: pass
"""


@pytest.fixture(autouse=True)
def may_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    try:
        kymograph.watch("sched_switch", duration="10ms").stop()
    except kymograph.QuestionError as error:
        if os.geteuid() == 0 and os.path.exists("/sys/kernel/btf/vmlinux") and "not permitted" not in str(error):
            raise
        pytest.skip(f"NO COUNTS HERE: {error}")


def closes() -> list[str]:
    """A program with a name of its own."""
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b'closes', 0, 0, 0)"
    return [sys.executable, "-c", f"{name}{CLOSES}"]


def test_a_program_is_counted() -> None:
    watch = kymograph.watch('sys_enter when comm == "closes" && args[0] == 987654', closes(), by=["name", "comm"])
    counts = watch.counts
    assert (watch.status, dict(counts)) == (
        0,
        {("close", "closes"): kymograph.CountRow({"name": "close", "comm": "closes"}, CALLS, None, None)},
    )
    assert (counts.events, counts.is_final, counts.lost) == (CALLS, True, {"map_full": 0, "interrupted": 0})
    assert repr(watch).endswith(f"&& args[0] == 987654': {CALLS} events>")
    assert counts.to_polars().to_dicts() == [{"name": "close", "comm": "closes", "events": CALLS}]


def test_a_block_is_counted() -> None:
    with kymograph.watch(f'syscalls when pid == {os.getpid()} && name == "close" && ret == -9', by="name", hist="took", sum="took") as watch:
        exec(CLOSES, {})
    row = watch.counts["close"]
    assert row.events == CALLS and row.histogram is not None and row.histogram["count"] == CALLS
    assert row.sum == row.histogram["sum"] and 0 < row.histogram["p50"] <= row.histogram["most"]
    assert watch.counts.to_pyarrow().column_names[:3] == ["name", "events", "sum"]
    assert watch.stop() is watch.counts, "it may be stopped twice"


def test_times_are_counted_one_by_one() -> None:
    times = list(kymograph.watch("sched_switch", by="cpu_id", every="50ms", duration="300ms"))
    assert len(times) >= 2 and not any(counts.is_final for counts in times)
    # The last one is shorter.
    assert all(counts.time_ns >= 40_000_000 for counts in times[:-1])


def test_a_time_is_read_while_a_program_runs() -> None:
    watch = kymograph.watch("sched_switch", [sys.executable, "-c", "import time; time.sleep(0.5)"], by="next_comm", every="1ms")
    times = list(watch)
    assert len(times) >= 3 and sum(counts.events for counts in times) == watch.counts.events
    assert watch.counts._repr_html_().startswith("<table>")


def test_counts_are_there_at_the_end() -> None:
    watch = kymograph.watch("sched_switch")
    with pytest.raises(kymograph.QuestionError, match="until it is stopped"):
        print(watch.counts)
    assert watch.stop().is_final
    empty = kymograph.watch("sched_switch when prev_prio == 9000", by="prev_comm", duration="20ms").counts
    assert len(empty) == 0 and empty.to_polars()["events"].to_list() == [] and empty._repr_html_()


def test_mistakes_are_told() -> None:
    with pytest.raises(kymograph.QuestionError, match="sched_switch"):
        kymograph.watch("shced_switch")
    with pytest.raises(kymograph.QuestionError, match="next_comm"):
        kymograph.watch("sched_switch", by="next_com")
    with pytest.raises(kymograph.QuestionError, match="bogus"):
        kymograph.watch("sched_switch", bogus=True)


def test_counts_become_a_trace(tmp_path: pathlib.Path) -> None:
    question = f'syscalls when pid == {os.getpid()} && name == "close" && ret == -9'
    with kymograph.watch(question, by="name", hist="took", output=tmp_path / "counts") as watch:
        exec(CLOSES, {})
    trace = kymograph.open(tmp_path / "counts")
    rows = trace.events("watch:row", columns=["name", "events"]).to_polars()
    assert (rows["events"].sum(), set(rows["name"])) == (CALLS, {"close"})
    (total,) = trace.events("watch:total", columns=["events", "p99"]).to_polars().rows()
    histogram = watch.counts["close"].histogram
    assert histogram is not None and total == (CALLS, histogram["p99"])
