"""The command in the wheel is the program: same output, same status, same end by signals."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

WHEEL = str(pathlib.Path(sys.executable).parent / "kymo")
#: Only hangs take so long.
HANG_S = 120


def run(program: str, words: list[str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run([program, *words], capture_output=True, timeout=HANG_S)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["examples/traces/demo"], 0),
        (["print", "--limit", "3", "examples/traces/demo"], 0),
        (["count", "--json", "examples/traces/demo"], 0),
        (["check", "examples/traces/demo"], 0),
        (["nowhere"], 1),
        (["--version"], 0),
        (["print", "--bogus", "examples/traces/demo"], 2),
        (["print", "--filter", "queue_dept > 3", "examples/traces/demo"], 2),
        (["print", "--begin", "2", "--end", "1", "examples/traces/demo"], 2),
        (["cpu", "examples/traces/demo"], 2),
        (["man", "nothing"], 2),
        (["state", "--at", "1", "examples/traces/demo"], 2),
    ],
)
def test_it_is_the_program(words: list[str], status: int) -> None:
    ours = run(WHEEL, words)
    assert ours[0] == status, ours
    program = os.environ.get("KYMO")
    if not program:
        pytest.skip("PROGRAM ABSENT: set KYMO to the program that was built of the same source")
    assert ours == run(program, words)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    words = f"{WHEEL} print examples/traces/demo | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, timeout=HANG_S, text=True)
    assert done.stdout.endswith("\n0\n") and done.stderr == "", done


def test_ctrl_c_ends_it_at_once() -> None:
    # Its output is more than a pipe holds, and nobody reads it.
    child = subprocess.Popen([WHEEL, "print", "examples/traces/demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.read(1) == b"["
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=HANG_S)
    assert (child.returncode, errors) == (-signal.SIGINT, b"")
