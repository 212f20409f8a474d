"""Threads, forks, the end of the interpreter, traces that change while they are read: answers or errors, never a crash.

What could crash or hang runs in a process of its own; times only guard against hangs.
"""

import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import kymograph
from made import made, packet

HANG_S = 120
ROWS = 96 * 4096 * 2


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("made") / "trace")


def run(program: str, *words: str) -> str:
    """What a program of its own prints; it must end well and say nothing else."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def rows(trace: kymograph.Trace) -> int:
    return sum(map(len, trace.events(columns=["number"])))


def test_the_made_trace_is_cut(large: str) -> None:
    trace = kymograph.open(large)
    assert trace.events()._native.cut(2) > 2
    assert rows(trace) == ROWS == trace.info(exact=True).events


def test_several_threads_ask_one_trace(large: str) -> None:
    trace = kymograph.open(large)
    events = trace.events(columns=["key"])
    wanted = (ROWS, trace.count()["count"].rows(), trace.rates(period="1ms")["course"].rows())

    def ask(number: int) -> tuple[object, ...]:
        return sum(map(len, events)), trace.count()["count"].rows(), trace.rates(period="1ms")["course"].rows()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(16))) == [wanted] * 16


def test_several_threads_share_one_stream(large: str) -> None:
    batches = kymograph.open(large).events(columns=["key"])._native.stream()

    def take(number: int) -> int:
        return sum(batch.num_rows for batch in batches)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(4))) == ROWS


def test_forks(large: str) -> None:
    program = """
        import os, sys, kymograph, pyarrow
        trace = kymograph.open(sys.argv[1], threads=2)
        events = trace.events(columns=["number"])
        half = iter(events)
        first = len(next(half))
        capsule = pyarrow.RecordBatchReader.from_stream(events)
        capsule.read_next_batch()
        lines = trace.lines()
        next(lines)
        child = os.fork()
        if child == 0:
            for stale in (lambda: next(half), lambda: list(events)):
                try:
                    stale()
                except kymograph.ForkError as error:
                    print(error)
            try:
                capsule.read_next_batch()
            except Exception as error:
                print(type(error).__name__, "another process" in str(error))
            try:
                for _ in lines:
                    pass
            except kymograph.ForkError as error:
                print("lines", error)
            print(sum(map(len, trace.events(columns=["number"]))), trace.info(exact=True).events, flush=True)
            del half, capsule, events, lines
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), first + sum(map(len, half)))
    """
    said = "it was begun by another process: a child of it must begin anew"
    told = run(program, large).splitlines()
    assert told[:2] == [said, said]
    assert told[2].endswith("True")
    assert told[3] in (f"lines {said}",)
    assert told[4:] == [f"{ROWS} {ROWS}", f"7 {ROWS}"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(large: str, method: str) -> None:
    trace = kymograph.open(large)
    next(iter(trace.events()))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(rows, [trace] * 4)) == [ROWS] * 4


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("thread", ["batches", "printing", "asking", "running"])
def test_the_interpreter_ends_meanwhile(large: str, pause: float, thread: str) -> None:
    program = """
        import sys, threading, time, kymograph
        trace = kymograph.open(sys.argv[1], threads=2)

        class Own(kymograph.Analysis):
            def init(self): return 0
            def step(self, state, batch): return state + len(batch)
            def merge(self, left, right): return left + right

        class Slow:
            def write(self, text): time.sleep(0.0001)

        def batches():
            while True:
                for batch in trace.events(): pass

        def printing():
            while True: trace.print(Slow())

        def asking():
            while True: trace.rates()

        def running():
            # Who says so on standard error while the interpreter ends may hold its lock for ever, and that ends the process.
            try:
                while True: trace.run(Own)
            except RuntimeError as error:
                if "cannot schedule new futures" not in str(error): raise

        for _ in range(3):
            threading.Thread(target=globals()[sys.argv[3]], daemon=True).start()
        half = iter(trace.events())
        next(half)
        lines = trace.lines()
        next(lines)
        time.sleep(float(sys.argv[2]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), large, str(pause), thread]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), done


def test_ctrl_c_ends_printing(large: str) -> None:
    program = """
        import os, signal, sys, kymograph
        class Interrupts:
            def write(self, text): os.kill(os.getpid(), signal.SIGINT)
        try:
            kymograph.open(sys.argv[1]).print(Interrupts())
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert run(program, large) == "interrupted\n"


def asked(path: str, change: str) -> dict[str, object]:
    """What all questions say of a trace that changes behind the back of who opened it."""
    program = """
        import json, os, pathlib, shutil, sys, warnings, kymograph
        folder, change = pathlib.Path(sys.argv[1]), sys.argv[2]
        trace = kymograph.open(folder, cache=False)
        half = iter(trace.events(columns=["number"]))
        first = len(next(half))
        exec(change)

        class Rows(kymograph.Analysis):
            columns = ["number"]
            def init(self): return 0
            def step(self, state, batch): return state + len(batch)
            def merge(self, left, right): return left + right

        said = {}
        def ask(name, question):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    answer = question()
                except kymograph.Error as error:
                    answer = f"{type(error).__name__}: {error}"
            said[name] = [answer, [str(each.message) for each in caught]]

        ask("half", lambda: first + sum(map(len, half)))
        ask("events", lambda: sum(map(len, trace.events(columns=["number"]))))
        ask("run", lambda: trace.run(Rows))
        ask("count", lambda: sum(trace.count()["count"]["events"]))
        ask("rates", lambda: sum(trace.rates()["rates"]["count"]))
        ask("print", lambda: sum(1 for line in trace.lines()))
        ask("info", lambda: trace.info(exact=True).events)
        ask("repr", lambda: repr(trace) and 0)
        ask("verify", lambda: len(trace.verify()))
        ask("again", lambda: sum(map(len, kymograph.open(folder, cache=False).events(columns=["number"]))))
        print(json.dumps(said))
    """
    said: dict[str, object] = json.loads(run(program, path, textwrap.dedent(change)))
    return said


READING = ["events", "run", "count", "rates", "print", "info"]


def test_a_trace_that_grows(tmp_path: pathlib.Path) -> None:
    path = made(tmp_path / "trace")
    more = tmp_path / "more"
    more.write_bytes(packet(96, 4096, 0))
    said = asked(path, f"with open(folder / 'stream_0', 'ab') as file: file.write(pathlib.Path({str(more)!r}).read_bytes())")
    # What was opened is what it was; who opens it again sees the rest.
    for question in ["half", *READING]:
        assert said[question] == [ROWS, []], question
    assert said["again"] == [ROWS + 4096, []]


def test_a_trace_that_shrinks(tmp_path: pathlib.Path) -> None:
    path = made(tmp_path / "trace")
    size = os.path.getsize(f"{path}/stream_0")
    said = asked(path, f"os.truncate(folder / 'stream_0', {size // 2 - 5})")
    for question in READING:
        answer, warned = said[question]  # type: ignore[misc]
        assert ROWS // 2 < answer < ROWS, (question, answer)
        assert any("stream_0" in each for each in warned), (question, warned)
    assert said["verify"][0] > 0  # type: ignore[index]
    assert ROWS // 2 < said["again"][0] < ROWS and said["again"][1]  # type: ignore[index]


@pytest.mark.parametrize("change", ["os.truncate(folder / 'stream_0', 0)", "os.remove(folder / 'stream_0')", "shutil.rmtree(folder)"])
def test_a_trace_that_disappears(tmp_path: pathlib.Path, change: str) -> None:
    path = made(tmp_path / "trace")
    said = asked(path, change)
    for question in READING:
        answer, warned = said[question]  # type: ignore[misc]
        assert answer == ROWS or warned or isinstance(answer, str), (question, answer)
        assert isinstance(answer, str) or answer <= ROWS
    if "rmtree" in change:
        assert str(said["again"][0]).startswith("OpenError")  # type: ignore[index]


def test_a_trace_of_noise(tmp_path: pathlib.Path) -> None:
    path = made(tmp_path / "trace")
    change = """
        file = folder / 'stream_1'
        size = os.path.getsize(file)
        with open(file, 'r+b') as out:
            out.seek(size // 3)
            out.write(bytes(range(256)) * (size // 3 // 256))
    """
    said = asked(path, change)
    for question in READING:
        answer, warned = said[question]  # type: ignore[misc]
        assert warned or isinstance(answer, str), (question, answer, warned)
