"""Text is the command's, wherever it goes."""

import io
import pathlib
import subprocess
import sys

import pytest

import kymograph
from conftest import DEMO

KYMO = str(pathlib.Path(sys.executable).parent / "kymo")


def printed(*words: str) -> bytes:
    return subprocess.run([KYMO, "print", *words, DEMO], capture_output=True, check=True, timeout=120).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"format": "json", "event": ["jobs:b*", "jobs:e*"]}, ["--format=json", "--event=jobs:b*", "--event=jobs:e*"]),
        ({"format": "csv", "event": "jobs:chunk", "limit": 7}, ["--format=csv", "--event=jobs:chunk", "--limit=7"]),
        ({"format": "details", "no_trace_name": True}, ["--format=details", "--no-trace-name"]),
        ({"names": ["payload", "scope"], "fields": "all", "clock_cycles": True}, ["--names=payload,scope", "--fields=all", "--clock-cycles"]),
        ({"where": "id == 3", "color": "always", "no_delta": True}, ["--filter=id == 3", "--color=always", "--no-delta"]),
    ],
)
def test_it_is_the_commands(trace: kymograph.Trace, options: dict[str, object], words: list[str]) -> None:
    wanted = printed(*words)
    as_bytes, as_text = io.BytesIO(), io.StringIO()
    trace.print(as_bytes, **options)  # type: ignore[arg-type]
    trace.print(as_text, **options)  # type: ignore[arg-type]
    assert as_bytes.getvalue() == wanted
    assert as_text.getvalue() == wanted.decode()
    assert list(trace.lines(**options)) == wanted.decode().split("\n")[:-1]  # type: ignore[arg-type]


def test_standard_output(trace: kymograph.Trace, capsys: pytest.CaptureFixture[str]) -> None:
    trace.print(limit=2)
    assert capsys.readouterr().out == printed("--limit=2").decode()


def test_a_clock_that_was_shifted() -> None:
    out = io.BytesIO()
    kymograph.open(DEMO, clock_shift=7).print(out)
    assert out.getvalue() == printed("--clock-offset-ns=7")


def test_what_writing_raises_ends_it(trace: kymograph.Trace) -> None:
    class Full:
        def write(self, text: bytes) -> None:
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        trace.print(Full())


def test_lines_may_be_left(trace: kymograph.Trace) -> None:
    for _ in range(20):
        lines = trace.lines()
        assert next(lines).startswith("[")
        del lines


def test_options_that_there_are_not(trace: kymograph.Trace) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        trace.print(colour="red")  # type: ignore[call-arg]
    with pytest.raises(kymograph.QuestionError, match="invalid value 'xml'"):
        trace.print(format="xml")  # type: ignore[arg-type]
