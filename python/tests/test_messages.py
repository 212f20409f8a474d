"""Loops over single events: what they give, and that nothing they are left in does harm."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import kymograph
from conftest import DEMO


def test_events_come_in_the_order_of_time_with_their_fields(trace: kymograph.Trace) -> None:
    events = list(trace)
    assert len(events) == 2400
    times = [event.time for event in events]
    assert times == sorted(times)
    # What was kept can still be read.
    first = events[0]
    assert (first.name, first.id, first.time, first.cycles) == ("jobs:submit", 0, 1795219372255263261, 5425812897170)
    assert dict(first.items()) == {
        "id": 0, "kind": 5, "name": "config.toml", "queue_depth": 1,
        "vpid": 29832, "vtid": 29832, "procname": "demo", "cpu_id": 1,
    }
    assert first.labels("kind") == ["CUSTOM"]
    assert (first["name"], first.get("nosuch", 5), "kind" in first, "nosuch" in first) == ("config.toml", 5, True, False)
    assert list(first) == first.keys() and len(first) == 8
    with pytest.raises(KeyError, match="nosuch"):
        first["nosuch"]
    with pytest.raises(TypeError):
        first[5]


def test_events_are_chosen_as_columns_are(trace: kymograph.Trace) -> None:
    chosen = list(trace.messages("jobs:end", where="result < 0"))
    assert len(chosen) == len([event for event in trace if event.name == "jobs:end" and event["result"] < 0]) > 0
    middle = chosen[len(chosen) // 2].time
    assert [event.time for event in trace.messages("jobs:end", where="result < 0", begin=middle)] == [
        event.time for event in chosen if event.time >= middle
    ]


def readers() -> int:
    """Threads that read ahead."""
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return names.count("kymo-messages")


def test_nobody_reads_for_a_loop_that_was_left(trace: kymograph.Trace) -> None:
    for event in trace:
        break
    loop = iter(trace)
    next(loop)
    del loop
    gc.collect()
    until = time.monotonic() + 30
    while readers() and time.monotonic() < until:
        time.sleep(0.05)
    assert readers() == 0
    # What was kept is whole.
    assert event["name"] == "config.toml"


def test_several_threads_loop_at_once(trace: kymograph.Trace) -> None:
    sums: list[int] = []

    def loop() -> None:
        sums.append(sum(event["id"] for event in trace if event.name == "jobs:submit"))

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(sums)) == 1 and len(sums) == 4


def test_threads_that_share_a_loop_get_each_event_once(trace: kymograph.Trace) -> None:
    shared, seen, refused = iter(trace), [], []

    def loop() -> None:
        while True:
            try:
                seen.append((next(shared).time, threading.get_ident()))
            except StopIteration:
                return
            except RuntimeError as error:
                # Another thread waits for the next batch.
                refused.append(error)
                time.sleep(0.001)

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(moment for moment, _ in seen) == [event.time for event in trace]


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("module", ["kymograph", "kymograph.compat.bt2"])
def test_the_interpreter_may_end_in_the_middle_of_a_loop(module: str) -> None:
    done = run(f"""
        import sys, threading
        import kymograph
        from kymograph.compat import bt2
        def begin():
            if {module!r} == "kymograph":
                return iter(kymograph.open({DEMO!r}))
            return iter(bt2.TraceCollectionMessageIterator({DEMO!r}))
        kept = [begin(), begin()]
        for each in kept:
            next(each)
        def endless():
            while True:
                for each in begin():
                    pass
        for _ in range(3):
            threading.Thread(target=endless, daemon=True).start()
        for number, each in enumerate(begin()):
            if number > 100:
                break
        print("out")
    """)
    assert (done.returncode, done.stdout) == (0, "out\n"), done.stderr


def test_a_child_process_does_not_go_on_with_its_parents_loop() -> None:
    done = run(f"""
        import os, kymograph
        trace = kymograph.open({DEMO!r})
        loop = iter(trace)
        first = next(loop)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                # What was pulled before is there; what would come is not.
                assert first["name"] == "config.toml"
                for _ in loop:
                    pass
            except (RuntimeError, kymograph.Error):
                code = 0 if len(list(trace)) == 2400 else 2
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert 1 + sum(1 for _ in loop) == 2400
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["cut", "removed", "grown"])
def test_a_trace_that_changes_while_it_is_read_does_no_harm(tmp_path: pathlib.Path, what: str) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(DEMO, folder)
    trace = kymograph.open(folder, cache=False)
    loop = iter(trace)
    next(loop)
    change(folder, what)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = 1 + sum(1 for event in loop if "id" in event and event["id"] >= 0)
    assert 0 < count <= 2400


def test_what_a_trace_has_lost_since_it_was_opened_is_told(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(DEMO, folder)
    trace = kymograph.open(folder, cache=False)
    change(folder, "cut")
    with pytest.warns(kymograph.UnreadableWarning):
        count = sum(1 for _ in trace)
    assert count < 2400


def change(folder: pathlib.Path, what: str) -> None:
    for file in folder.glob("jobs_*"):
        if what == "cut":
            os.truncate(file, 5000)
        elif what == "removed":
            file.unlink()
        else:
            with file.open("ab") as end:
                end.write(bytes(range(256)) * 40)
