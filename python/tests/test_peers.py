"""`scripts/peers.py` runs tests of other readers on kymo: it misses no test that does not end."""

import importlib.util
import os
import pathlib
import sys

import pytest
from conftest import ROOT

_spec = importlib.util.spec_from_file_location("peers", ROOT / "scripts" / "peers.py")
assert _spec is not None and _spec.loader is not None
peers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(peers)

TESTS = """
import os, signal, unittest

def note(line):
    os.write(int(os.environ["PEERS_NOTES"]), line.encode() + b"\\n")

class T(unittest.TestCase):
    def test_a(self): pass

    def test_b(self):
        note("# absent: something")
        {body}

    def test_c(self): self.fail()
"""


def outcomes(tmp_path: pathlib.Path, command: list[object]) -> list[tuple[str, str]]:
    program = peers.Program(command, dict(os.environ), tmp_path, {})
    return [(name, outcome) for name, outcome, _ in program.results]


def of_unittests(tmp_path: pathlib.Path, text: str) -> list[tuple[str, str]]:
    file = tmp_path / "test_file.py"
    file.write_text(text)
    return outcomes(tmp_path, [sys.executable, peers.__file__, "--unittests", file])


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        ("os.abort()", [("ends by itself", "fail")]),
        ("os.kill(os.getpid(), signal.SIGKILL)", [("ends by itself", "fail")]),
        # No signal: only the plan tells.
        ("os._exit(0)", []),
    ],
)
def test_a_crash_fails_the_tests_that_did_not_end(
    tmp_path: pathlib.Path, body: str, ending: list[tuple[str, str]]
) -> None:
    found = of_unittests(tmp_path, TESTS.format(body=body))
    assert found == [("T.test_a", "pass"), ("T.test_b", "fail"), ("result 3 of 3", "fail"), *ending]


def test_a_crash_behind_the_last_test_is_a_failure(tmp_path: pathlib.Path) -> None:
    found = of_unittests(tmp_path, TESTS.format(body="import atexit; atexit.register(os.abort)"))
    assert found == [("T.test_a", "pass"), ("T.test_b", "absent"), ("T.test_c", "fail"), ("ends by itself", "fail")]


def test_a_test_is_one_result(tmp_path: pathlib.Path) -> None:
    """Failures of parts are no results of their own: they would stand in for tests that did not end."""
    text = """
import unittest

class Parts(unittest.TestCase):
    def test_a(self):
        for part in range(3):
            with self.subTest(part=part):
                self.assertEqual(part, 1)

    def test_b(self):
        with self.subTest(): self.skipTest("part")
        with self.subTest(): pass

    def test_c(self): self.skipTest("why")

    @unittest.expectedFailure
    def test_d(self): self.fail()

    @unittest.expectedFailure
    def test_e(self): pass

class Setup(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError

    def test_f(self): pass
"""
    found = of_unittests(tmp_path, text)
    assert found == [
        ("Parts.test_a", "fail"), ("Parts.test_b", "skip"), ("Parts.test_c", "skip"), ("Parts.test_d", "pass"),
        ("Parts.test_e", "fail"), ("setUpClass (test_file.Setup)", "fail"),
    ]


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ("echo 1..2; echo ok 1 - a; exit 1", [("result 2 of 2", "fail")]),
        ("echo 1..1; echo ok 1 - a; kill -SEGV $$", [("ends by itself", "fail")]),
        ("echo ok 1 - a", [("has a plan", "fail")]),
        ("echo ok 1 - a; echo 1..1; exit 1", []),
    ],
)
def test_a_script_has_a_whole_plan(tmp_path: pathlib.Path, script: str, missing: list[tuple[str, str]]) -> None:
    assert outcomes(tmp_path, ["bash", "-c", script]) == [("a", "pass"), *missing]
