"""The package without kymograph-sql is complete in itself, and says how to get SQL; another version of that is not taken."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import kymograph
from conftest import DEMO, ROOT, WITH_SQL
from kymograph import _library

HANG_S = 120


def run(program: str, *words: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


ASK = """
    import kymograph
    trace = kymograph.open(sys.argv[1])
    for ask in (lambda: trace.sql("select 1"), trace.database):
        try:
            ask()
        except kymograph.NotInstalledError as error:
            print(isinstance(error, ImportError), error)
    print(trace.count()["count"].num_rows)
"""


def test_it_is_said_how_to_get_it() -> None:
    # As if it were not there.
    told = run("    import sys\n    sys.modules['kymograph_sql'] = None" + ASK, DEMO).splitlines()
    assert told[0] == told[1] == f"True {_library.WITHOUT_SQL}" and told[2] == "4", told
    assert f"pip install 'kymograph[sql]=={kymograph.__version__}'" in told[0]


def test_the_command_says_so_too() -> None:
    program = """
        import sys
        sys.modules["kymograph_sql"] = None
        sys.argv = ["kymo", "sql", "examples/traces/demo", "select 1", "--json"]
        from kymograph._command import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("error: this kymo was built without SQL") and "pip install 'kymograph[sql]'" in done.stderr


def test_another_version_is_not_taken(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "kymograph_sql"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_native.py").write_text("__version__ = '0.0.7'\n")
    program = f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import kymograph
        for each in caught:
            print(each.category.__name__, each.filename == "<string>", each.message)
        print(hasattr(kymograph._native, "Database"))
    """
    warned, has_sql = run(program).splitlines()
    assert warned.startswith(f"KymographWarning True kymograph {kymograph.__version__} has no SQL"), warned
    assert "0.0.7" in warned and f"pip install 'kymograph[sql]=={kymograph.__version__}'" in warned
    assert has_sql == "False"


def test_there_is_one_version() -> None:
    version = kymograph.__version__
    assert importlib.metadata.version("kymograph") == _library.VERSION == version
    wants = re.findall(r"kymograph(?:-sql)?==([^\"';]+)", (ROOT / "pyproject.toml").read_text())
    assert wants == [version]
    assert f"kymograph=={version}" in (ROOT / "python/sql/pyproject.toml").read_text()
    if WITH_SQL:
        assert importlib.metadata.version("kymograph-sql") == version
        assert importlib.metadata.requires("kymograph-sql") == [f"kymograph=={version}"]
