"""The tests run against the installed wheel, in the repository's folder."""

import os
import pathlib

import pytest

import kymograph
from kymograph import _native

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = "examples/traces/demo"

# What is tested is what people install.
assert ROOT / "python" not in pathlib.Path(kymograph.__file__).parents, "the wheel is not installed"


#: The package kymograph-sql is installed, too.
WITH_SQL = hasattr(_native, "Database")
needs_sql = pytest.mark.skipif(not WITH_SQL, reason="kymograph-sql is not installed: `make python` tests without and with it")
# Who says that it is there does not want its tests to be left out.
assert WITH_SQL or "KYMO_WITH_SQL" not in os.environ, "kymograph-sql is not installed"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Paths are those of the examples; the cache is nobody's."""
    monkeypatch.chdir(ROOT)
    if "KYMO_TEST_CACHE" not in os.environ:
        os.environ["KYMO_TEST_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ["KYMO_TEST_CACHE"])


@pytest.fixture
def trace() -> kymograph.Trace:
    """The trace that is shipped with the source."""
    return kymograph.open(DEMO)


def corpus(part: str) -> str:
    """A trace of the corpus; where that is absent, the test says so."""
    folder = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not (folder / part).exists():
        pytest.skip(f"CORPUS ABSENT: {folder / part} is not there")
    return str(folder / part)
