"""Examples in docstrings are true, and types are."""

import doctest
import importlib
import json
import pathlib
import pkgutil
import re
import subprocess
import sys
import tempfile
from types import ModuleType

import pytest

import kymograph
from conftest import DEMO, ROOT, WITH_SQL

MODULES = [
    importlib.import_module(each.name)
    for each in pkgutil.walk_packages(kymograph.__path__, "kymograph.")
    if not each.name.endswith("_command")
]


@pytest.mark.parametrize("module", [kymograph, *MODULES], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    names = {"kymograph": kymograph, "trace": kymograph.open(DEMO), "json": json, "tempfile": tempfile}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for case in doctest.DocTestFinder().find(module, extraglobs=names):
        asks_sql = any(re.search(r"trace\.(sql|database)\(", example.source) for example in case.examples)
        if WITH_SQL or not asks_sql:
            runner.run(case)
    assert runner.failures == 0


def test_what_people_import_has_examples() -> None:
    finder = doctest.DocTestFinder()
    assert sum(len(case.examples) for module in MODULES for case in finder.find(module)) >= 5


def test_types() -> None:
    """The package, as mypy sees them who installed the wheel."""
    cache = pathlib.Path(sys.prefix) / "mypy-cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "--package", "kymograph"]
    command += ["--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=sys.prefix)
    assert done.returncode == 0, done.stdout + done.stderr
