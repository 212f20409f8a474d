#!/usr/bin/env python3
"""Runs tests of other trace readers on kymo.

    peers.py KYMO [--python PYTHON] [--sources FOLDER] [--reference] [--verbose] [babeltrace|bt2|lttng-analyses ...]

    babeltrace        Babeltrace's tests of its command and plugins: a command `babeltrace2` translates to kymo
    bt2               its tests of its Python library: `bt2` is kymograph.compat.bt2
    lttng-analyses    tests of lttng-analyses: `babeltrace` is kymograph.compat.babeltrace

Debian's source packages are fetched into a temporary folder; --sources names a folder that has them unpacked as
`babeltrace2` and `lttnganalyses`. Nothing of them is built: tests that need built programs are listed. PYTHON has
kymograph installed: `make python` makes such an environment. --reference runs the tests with the installed peers
instead, to see which tests they pass in this environment themselves.

A test passes, fails, is skipped by itself, or needs a feature that kymo does not have; the result of the last kind says
nothing. Rows of tests/peers/deviations.tsv list tests that fail (`*` stands for any text), and features that tests need
(`needs NAME`). A reason begins with one of

    exempt:   the wording of a message, or a rule of the peer that kymo does not follow on purpose
    absent:   a feature that kymo does not have
    open:     kymo is wrong

A test that is not listed and does not pass is an error, and so is a listed one that passes. The exit status is 1 then.
"""

import argparse
import collections
import contextlib
import csv
import importlib
import os
import pathlib
import pkgutil
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVIATIONS = ROOT / "tests" / "peers" / "deviations.tsv"
SUITES = ("babeltrace", "bt2", "lttng-analyses")
PACKAGES = {"babeltrace": "babeltrace2", "bt2": "babeltrace2", "lttng-analyses": "lttnganalyses"}
COMMAND_TIMEOUT_S = 60
TEST_TIMEOUT_S = 600
# Lines in the output of a test, before its result: a test in Python begins, kymo runs, a feature is absent, kymo hangs or crashes.
BEGINS, RUNS, ABSENT_MARK, BROKEN = "# begins ", "# runs kymo", "# absent: ", "# broken: "
# The exit status of a program in Rust that panics.
PANIC = 101
RESULT = re.compile(r"(not )?ok\s+\d+(?:\s+-)?\s*(.*?)(?:\s+#\s*(SKIP|TODO)\b.*)?", re.IGNORECASE)
TEMPORARY = re.compile(r"FOLDER/tmp/\S+")
# Programs of Babeltrace that write the traces of some tests, where its tests look for them; `write` has counterparts.
WRITERS = {
    "plugins/src.ctf.fs/succeed": ["gen-trace-simple"],
    "plugins/sink.ctf.fs/succeed": ["gen-trace-float", "gen-trace-double"],
}


# The command `babeltrace2`, which runs with the words of the tests


class Absent(Exception):
    """A feature that has no counterpart in kymo."""


def parameters(text):
    """`a=yes,b="x"` as a dictionary; values stay text, lists become lists of text."""
    found, rest = {}, text.strip()
    while rest:
        match = re.match(r'\s*([\w.:-]+)\s*=\s*(\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)', rest)
        if not match:
            raise Absent("parameters of components")
        value = match[2]
        if value.startswith("["):
            found[match[1]] = [unquoted(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"|[^\s,\[\]]+', value)]
        else:
            found[match[1]] = unquoted(value)
        rest = rest[match.end() :]
    return found


def unquoted(text):
    text = text.strip()
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def is_true(value):
    return value.lower() in ("yes", "true", "1")


# Options with the same meaning in `kymo print`, without and with a value.
FLAGS = {
    "--clock-cycles", "--clock-date", "--clock-force-correlate", "--clock-gmt", "--clock-seconds", "--no-delta",
    "--stream-intersection", "--verbose",
}
VALUES = {
    "--begin", "--end", "--timerange", "--clock-offset", "--clock-offset-ns", "--color", "--fields", "--names",
}
OTHER_VALUES = {"--component", "--input-format", "--output-format", "--output", "--params"}
SHORT = {
    "-b": "--begin", "-e": "--end", "-t": "--timerange", "-c": "--component", "-f": "--fields", "-i": "--input-format",
    "-n": "--names", "-o": "--output-format", "-w": "--output", "-p": "--params", "-v": "--verbose",
}
# Options of graphs and plugins.
ABSENT = {
    "--connect": "component graphs",
    "--debug": "log levels",
    "--debug-info": "debug information",
    "--debug-info-dir": "debug information",
    "--debug-info-full-path": "debug information",
    "--debug-info-target-prefix": "debug information",
    "--log-level": "log levels",
    "--omit-home-plugin-path": "plugins",
    "--omit-system-plugin-path": "plugins",
    "--plugin-path": "plugins",
    "--retry-duration": "component graphs",
    "--run-args": "component graphs",
    "--run-args-0": "component graphs",
    "-d": "log levels",
    "-l": "log levels",
}
COMMANDS = {"help": "help of plugins", "list-plugins": "plugins", "query": "queries of the command", "run": "component graphs"}


def translated(words):
    """The words of `babeltrace2` as the words of kymo, and the file for its output."""
    if words and words[0] in COMMANDS:
        raise Absent(COMMANDS[words[0]])
    words = collections.deque(words[1:] if words[:1] == ["convert"] else words)
    options, paths, output, format_, sink, given = [], [], None, None, None, {}
    component = None
    while words:
        word = words.popleft()
        if not word.startswith("-") or word == "-":
            if word in COMMANDS or word == "convert":
                raise Absent("options before commands")
            paths.append(word)
            component = given.setdefault("source", {})
            continue
        if not word.startswith("--") and len(word) > 2 and SHORT.get(word[:2]) in VALUES | OTHER_VALUES:
            words.appendleft(word[2:])
            word = word[:2]
        word, equals, value = word.partition("=")
        word = SHORT.get(word, word)
        if word[:2] in ABSENT or word in ABSENT:
            raise Absent(ABSENT.get(word) or ABSENT[word[:2]])
        if word in FLAGS:
            options.append(word)
            continue
        if word not in VALUES | OTHER_VALUES:
            options.append(word + equals + value)
            continue
        value = value if equals else words.popleft() if words else None
        if value is None:
            options.append(word)
        elif word in VALUES:
            options.append(f"{word}={value}")
        elif word == "--component":
            kind = value.rpartition(":")[2].replace("source.", "src.", 1).replace("filter.", "flt.", 1)
            if kind in ("src.ctf.fs", "flt.utils.muxer"):
                component = given.setdefault("source" if kind == "src.ctf.fs" else "muxer", {})
            elif kind in ("sink.text.details", "sink.text.pretty", "sink.utils.dummy", "sink.ctf.fs"):
                sink, component = kind, given.setdefault("sink", {})
            else:
                raise Absent(f"component {kind}")
        elif word == "--params":
            if component is None:
                raise Absent("parameters of components")
            component.update(parameters(value))
        elif word == "--input-format":
            if value != "ctf":
                raise Absent(f"input format {value}")
        elif word == "--output-format":
            format_ = value
        else:
            output = value
    source = given.get("source", {})
    paths += source.pop("inputs", [])
    for name, value in source.items():
        if name == "force-clock-class-origin-unix-epoch":
            options += ["--clock-force-correlate"] if is_true(value) else []
        elif name in ("clock-class-offset-s", "clock-class-offset-ns"):
            options.append(f"--clock-offset{'-ns' if name.endswith('ns') else ''}={value}")
        else:
            raise Absent(f"parameter {name} of src.ctf.fs")
    sink = sink or {"ctf": "sink.ctf.fs", "dummy": "sink.utils.dummy", "ctf-metadata": "metadata"}.get(format_, "sink.text.pretty")
    parts = given.get("sink", {})
    if sink == "metadata":
        return ["metadata", *options, *paths], output
    if sink == "sink.ctf.fs":
        return ["cut", "--output", parts.pop("path", output) or "", *paths, *options, *absent_parameters(sink, parts)], None
    options = ["print", *options, *paths]
    if sink == "sink.utils.dummy":
        return [*options, "--format", "none"], output
    if sink == "sink.text.details":
        for name in ("trace", "stream"):
            if not is_true(parts.pop(f"with-{name}-name", "yes")):
                options.append(f"--no-{name}-name")
        options += ["--format", "details"]
    return [*options, *absent_parameters(sink, parts)], output


def absent_parameters(sink, parameters_left):
    for name in parameters_left:
        raise Absent(f"parameter {name} of {sink}")
    return []


def babeltrace2(kymo, words):
    """Runs kymo as the tests run `babeltrace2`."""
    try:
        arguments, output = translated(words)
    except Absent as absent:
        note(f"{ABSENT_MARK}{absent}")
        print(f"ERROR: kymo has no counterpart of {absent}", file=sys.stderr)
        return 2
    note(RUNS)
    out = open(output, "wb") if output else None
    child = subprocess.Popen([kymo, *arguments], stdout=out)
    try:
        status = child.wait(timeout=COMMAND_TIMEOUT_S)
        problem = "crashes" if status < 0 or status == PANIC else None
    except subprocess.TimeoutExpired:
        child.kill()
        status, problem = 1, "hangs"
    if problem:
        note(f"{BROKEN}kymo {shlex.join(arguments)} {problem}")
    return abs(status)


def note(line):
    """Writes a line into the output of the running test."""
    os.write(int(os.environ["PEERS_NOTES"]), f"{line}\n".encode())


# Programs that tests need, in processes of their own


def write(program, folder):
    """Writes the trace that a program of Babeltrace's tests writes."""
    from kymograph.compat.babeltrace import common, writer as ctf

    def real(exponent, mantissa):
        declaration = ctf.FloatFieldDeclaration()
        declaration.exponent_digits, declaration.mantissa_digits = exponent, mantissa
        return declaration

    number = ctf.IntegerFieldDeclaration(8)
    number.signed = True
    fields, events = {
        "gen-trace-simple": (
            {"first": number, "second": ctf.StringFieldDeclaration()},
            [(3600 + 5000 * index, {"first": index - 23, "second": "saluuuut"}) for index in range(25)],
        ),
        "gen-trace-float": ({"flt": real(8, 24)}, [(0, {"flt": -28.4751})]),
        "gen-trace-double": ({"dbl": real(11, 53)}, [(0, {"dbl": 17283.3881})]),
    }[program]
    trace = ctf.Writer(folder)
    clock = ctf.Clock("default")
    trace.add_clock(clock)
    trace.byte_order = common.ByteOrder.BYTE_ORDER_BIG_ENDIAN
    stream_class, event_class = ctf.StreamClass("hello"), ctf.EventClass("ev")
    stream_class.clock = clock
    for name, declaration in fields.items():
        event_class.add_field(declaration, name)
    stream_class.add_event_class(event_class)
    stream = trace.create_stream(stream_class)
    for time_ns, values in events:
        event = ctf.Event(event_class)
        for name, value in values.items():
            event.payload(name).value = value
        clock.time = time_ns
        stream.append_event(event)
    stream.flush()
    return 0


# Methods that kymo's classes lack, and that a test file uses while it is imported: without them none of its tests would run.
LACKED = {
    "bt2": [("_StructureFieldClass", "append_member"), ("_VariantFieldClassWithoutSelector", "append_option")],
}


class Missing(type):
    """A name that a module lacks. Test files may derive classes from it when they are imported; a test that uses it says so."""

    def __new__(cls, name, bases, members, **_):
        return super().__new__(cls, name, bases, members)

    def __init__(cls, name, bases, members, **_):
        super().__init__(name, bases, members)

    def __call__(cls, *_, **__):
        note(f"{ABSENT_MARK}{cls.absent}")
        raise NotImplementedError(f"kymo has no counterpart of {cls.absent}")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return missing(f"{cls.absent}.{name}")


def missing(name):
    note(f"{ABSENT_MARK}{name}")
    return Missing(name.rpartition(".")[2], (), {"absent": name})


def take_the_place(name, real):
    """Makes `name`, which is being imported, the module `real` with its modules."""
    real = importlib.import_module(real)
    for part in pkgutil.iter_modules(real.__path__):
        sys.modules[f"{name}.{part.name}"] = importlib.import_module(f"{real.__name__}.{part.name}")

    def absent(attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return missing(f"{name}.{attribute}")

    for owner, method in LACKED.get(name, ()):
        setattr(getattr(real, owner), method, Missing(method, (), {"absent": f"{name}.{owner}.{method}"}))
    real.__getattr__ = absent
    sys.modules[name] = real


def run_unittests(file):
    """Runs the tests of a file, and prints their results as TAP."""
    import unittest

    file = pathlib.Path(file)

    class Result(unittest.TestResult):
        """One line for each test that ends, and for a class or module whose setup fails."""

        count = 0

        def startTest(self, test):
            print(f"{BEGINS}{self.name(test)}", flush=True)
            self.problems, self.skipped = [], ""

        def stopTest(self, test):
            word, more = ("not ok", "") if self.problems else ("ok", self.skipped)
            self.line(test, word, "".join(self.problems), more)

        def name(self, test):
            return test.id().removeprefix(f"{file.stem}.")

        def line(self, test, word, detail="", more=""):
            self.count += 1
            print("".join(f"# {part}\n" for part in detail.splitlines()), end="")
            print(f"{word} {self.count} - {self.name(test)}{more}", flush=True)

        def addError(self, test, error):
            problem = self._exc_info_to_string(error, test)
            if test.countTestCases():
                self.problems.append(problem)
            else:
                self.line(test, "not ok", problem)

        addFailure = addError

        def addSubTest(self, test, subtest, error):
            if error:
                self.problems.append(self._exc_info_to_string(error, test))

        def addUnexpectedSuccess(self, test):
            self.problems.append("passes, although a failure is expected")

        def addSkip(self, test, reason):
            self.skipped = f" # SKIP {reason}"

    # A package with tests is entered from where its name begins.
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    tests = unittest.TestLoader().discover(str(file.parent), file.name, str(top))
    # First: a test that ends the process ends those behind it, too.
    print(f"1..{tests.countTestCases()}", flush=True)
    tests.run(Result())
    return 0


# Sources


def run_quietly(command, **options):
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise SystemExit(f"peers: {shlex.join(map(str, command))} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def apt_configuration(folder):
    """Options of apt for source packages from where this machine has its packages; apt changes nothing outside of `folder` then."""
    parts = folder / "sources"
    for made in (parts, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        made.mkdir(parents=True)
    for source in pathlib.Path("/etc/apt").glob("sources.list*"):
        for file in source.iterdir() if source.is_dir() else [source]:
            text = file.read_text()
            if file.suffix == ".sources":
                text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
            else:
                text = re.sub(r"^deb ", "deb-src ", text, flags=re.MULTILINE)
            if file.suffix in (".sources", ".list"):
                (parts / file.name).write_text(text)
    places = {
        "Etc::sourcelist": "/dev/null",
        "Etc::sourceparts": parts,
        "State::lists": folder / "lists",
        "Cache": folder / "cache",
    }
    return [part for name, place in places.items() for part in ("-o", f"Dir::{name}={place}")]


def fetch(packages, folder):
    """Unpacks Debian's source packages below `folder`, each under its name."""
    if not shutil.which("apt-get"):
        raise SystemExit("peers: there is no apt-get to fetch the tests with; --sources names a folder that has them")
    options = apt_configuration(folder / "apt")
    run_quietly(["apt-get", *options, "--quiet", "update"], timeout=TEST_TIMEOUT_S)
    for package in packages:
        at = folder / f"{package}-package"
        at.mkdir()
        run_quietly(["apt-get", *options, "--quiet", "--download-only", "source", package], cwd=at, timeout=TEST_TIMEOUT_S)
        run_quietly(["dpkg-source", "--no-check", "--extract", *at.glob("*.dsc"), folder / package])
    return folder


# Tests


class Program:
    """A test program: its results, each as (name, outcome, detail), in their order."""

    def __init__(self, command, environment, folder, words):
        self.words, self.results, self.before = words, [], []
        self.planned, self.counts = None, collections.Counter()
        # The test that began and did not end yet.
        self.begun = None
        # Features without a counterpart that the last commands needed, and whether a result has taken them.
        self.absent, self.is_taken = [], False
        reading, writing = os.pipe()
        environment = dict(environment, PEERS_NOTES=str(writing))
        child = subprocess.Popen(
            [*map(str, command)], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing,
            pass_fds=[writing], start_new_session=True,
        )
        os.close(writing)
        with open(reading, "rb", buffering=0) as pipe:
            ends = self.read(pipe, child, time.monotonic() + TEST_TIMEOUT_S)
        self.find_missing(child.returncode if ends else None)

    def find_missing(self, status):
        """Adds a failure for each test without a result. `status` is that of the program, if it ended by itself."""
        if self.begun is not None:
            self.add_broken(self.begun, "does not end")
        for number in range(len(self.results), self.planned or 0):
            self.add_broken(f"result {number + 1} of {self.planned}", "is missing")
        if not self.results:
            self.add("has results", "fail")
        elif self.planned is None:
            self.add_broken("has a plan", "is missing")
        if status is None:
            self.add_broken(f"ends within {TEST_TIMEOUT_S} s", "hangs")
        elif status < 0:
            self.add_broken("ends by itself", f"is ended by a signal: {signal.strsignal(-status)}")

    def read(self, pipe, child, deadline):
        """Reads until the program ends, then ends the processes that it left. Returns whether it ended before the deadline."""
        rest, ends, is_running = b"", False, True
        with selectors.DefaultSelector() as selector, open(os.pidfd_open(child.pid)) as ended:
            selector.register(pipe, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while selector.get_map():
                timeout = max(0, deadline - time.monotonic()) if is_running else None
                ready = {key.fileobj for key, _ in selector.select(timeout)}
                if is_running and (ended in ready or not ready):
                    ends, is_running = ended in ready, False
                    selector.unregister(ended)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
                if pipe in ready:
                    data = os.read(pipe.fileno(), 1 << 16)
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines if data else [rest]:
                        self.line(line.decode(errors="replace"))
                    if not data:
                        selector.unregister(pipe)
        child.wait()
        return ends

    def line(self, line):
        plan = re.fullmatch(r"1\.\.(\d+)", line)
        result = RESULT.fullmatch(line)
        if plan:
            self.planned = int(plan[1])
        elif result:
            self.add(result[2], "skip" if result[3] else "fail" if result[1] else "pass")
        elif line.startswith((BEGINS, RUNS, ABSENT_MARK)):
            if line.startswith(BEGINS):
                self.begun = line.removeprefix(BEGINS)
            if self.is_taken or line.startswith(BEGINS):
                self.absent, self.is_taken = [], False
            if line.startswith(ABSENT_MARK):
                self.absent.append(line.removeprefix(ABSENT_MARK))
        elif line.strip():
            self.before.append(line)

    def add_broken(self, name, problem):
        """Adds a failure for which no absent feature is a reason."""
        self.before.append(f"{BROKEN}{problem}")
        self.add(name, "fail")

    def add(self, name, outcome):
        """Adds a result. Results with the same name are numbered."""
        for text, word in self.words.items():
            name = name.replace(text, word)
        name = TEMPORARY.sub("FILE", name)
        self.counts[name] += 1
        if self.counts[name] > 1:
            name += f" ({self.counts[name]})"
        if any(line.startswith(BROKEN) for line in self.before):
            outcome = "fail"
        elif self.absent and outcome != "skip":
            outcome, self.before = "absent", sorted(set(self.absent))
        self.results.append((name, outcome, self.before))
        self.before, self.is_taken, self.begun = [], True, None


def babeltrace_programs(source):
    """Test programs of Babeltrace that are scripts."""
    for part in ("cli", "plugins", "python-plugin-provider"):
        for file in sorted((source / "tests" / part).rglob("test_*")):
            if not file.suffix and file.is_file():
                yield str(file.relative_to(source / "tests")), ["bash", file]


def python_programs(python, folder, prefix=""):
    for file in sorted(folder.glob("test_*.py")):
        yield prefix + file.stem, [python, __file__, "--unittests", file]


def executable(path, *words):
    """A command of these words, which is given more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    path.chmod(0o755)


def module(path, name):
    """A module that is another one."""
    path.mkdir(parents=True)
    scripts = str(pathlib.Path(__file__).resolve().parent)
    (path / "__init__.py").write_text(
        f"import sys\n\nsys.path.append({scripts!r})\nimport peers\n\n"
        f"sys.path.remove({scripts!r})\npeers.take_the_place(__name__, {name!r})\n"
    )


class Run:
    """All that tests run with."""

    def __init__(self, kymo, python, sources, is_reference, folder):
        self.python, self.is_reference, self.folder = python, is_reference, folder
        self.babeltrace, self.analyses = sources / "babeltrace2", sources / "lttnganalyses"
        self.modules, self.temporary, self.built = folder / "modules", folder / "tmp", folder / "built"
        self.temporary.mkdir()
        self.command = pathlib.Path("/usr/bin/babeltrace2")
        if not is_reference:
            self.command = folder / "bin" / "babeltrace2"
            executable(self.command, sys.executable, __file__, "--babeltrace2", kymo)
            module(self.modules / "bt2", "kymograph.compat.bt2")
            module(self.modules / "babeltrace", "kymograph.compat.babeltrace")
        for place, names in WRITERS.items():
            for name in names:
                executable(self.built / place / name, python, __file__, "--write", name)

    def environment(self, paths):
        others = ("BABELTRACE", "BT_", "KYMO", "PYTHON", "LIBBABELTRACE")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        environment.update(LC_ALL="C.UTF-8", TZ="UTC", TMPDIR=str(self.temporary))
        environment.update(PYTHONPATH=os.pathsep.join(map(str, paths)), PYTHONDONTWRITEBYTECODE="1")
        return environment

    def suite(self, suite):
        """Names of test programs with their results."""
        words = {str(self.folder): "FOLDER", str(self.babeltrace): "SOURCE", str(self.analyses): "SOURCE"}
        if suite == "lttng-analyses":
            # The tests run commands of the source folder.
            environment, programs, folder = self.of_analyses(), self.analyses_programs(), self.analyses
        else:
            environment, folder = self.of_babeltrace(), self.temporary
            python = python_programs(self.python, self.babeltrace / "tests" / "bindings" / "python" / "bt2")
            programs = babeltrace_programs(self.babeltrace) if suite == "babeltrace" else python
        for name, command in programs:
            yield name, Program(command, environment, folder, words).results

    def of_babeltrace(self):
        """The environment of Babeltrace's tests."""
        tests = self.babeltrace / "tests"
        environment = self.environment([self.modules, tests / "utils" / "python"])
        places = {
            "BT_TESTS_SRCDIR": tests,
            "BT_TESTS_DATADIR": tests / "data",
            "BT_CTF_TRACES_PATH": tests / "data" / "ctf-traces",
            "BT_TESTS_BUILDDIR": self.built,
            "BT_TESTS_BT2_BIN": self.command,
            "BT_TESTS_PYTHON_BIN": self.python,
            "BT_TESTS_PYTHONPATH": self.modules,
            "BT_PLUGINS_PATH": self.folder,
            # The installed Babeltrace finds plugins in Python with this, and only with Debian's Python.
            "BT_TESTS_PROVIDER_DIR": next(iter(pathlib.Path("/usr/lib").glob("*/babeltrace2/plugin-providers")), ""),
        }
        environment.update({name: str(place) for name, place in places.items()})
        environment.update(BT_OS_TYPE="linux", BT_TESTS_BABELTRACE_PLUGIN_PATH="", BABELTRACE_PLUGIN_PATH="")
        environment.update(BABELTRACE_PYTHON_BT2_NO_TRACEBACK="1", PATH=os.pathsep.join(["/usr/bin", environment["PATH"]]))
        return environment

    def of_analyses(self):
        """The environment of the tests of lttng-analyses, whose commands look for `python3`, and for names that Python 3.10 removed."""
        python = self.folder / "python"
        executable(python / "python3", self.python)
        (python / "sitecustomize.py").write_text(
            "import collections.abc\n\n"
            "vars(collections).update({name: getattr(collections.abc, name) for name in collections.abc.__all__})\n"
        )
        environment = self.environment([self.modules, self.analyses, python, self.parsing()])
        environment["PATH"] = os.pathsep.join([str(python), environment["PATH"]])
        return environment

    def analyses_programs(self):
        for part in ("common", "integration"):
            yield from python_programs(self.python, self.analyses / "tests" / part, f"{part}/")

    def parsing(self):
        """A folder with the one module that lttng-analyses needs, if the Python of the tests lacks it."""
        folder = self.folder / "pyparsing"
        if subprocess.run([self.python, "-c", "import pyparsing"], capture_output=True).returncode:
            pip = [self.python, "-m", "pip", "install", "--quiet", "--target", folder, "pyparsing<4"]
            run_quietly(pip, timeout=TEST_TIMEOUT_S)
        return folder


# The list


class Listed:
    """A row of the list: of a test, or of a feature that tests need."""

    def __init__(self, row):
        self.suite, self.test, self.reason, self.count = row["suite"], row["test"], row["reason"], 0
        self.pattern = re.compile(".*".join(map(re.escape, self.test.split("*"))), re.DOTALL)

    def covers(self, suite, test):
        return suite == self.suite and self.pattern.fullmatch(test) is not None


def compare(listed, suite, program, results, report):
    """Counts the results of a program by outcome, and reports those that the list does not expect."""
    counts = collections.Counter()
    for name, outcome, detail in results:
        test = f"{program}: {name}"
        names = [f"needs {feature}" for feature in detail] if outcome == "absent" else [test]
        rows = [next((row for row in listed if row.covers(suite, name)), None) for name in names]
        if outcome in ("pass", "skip"):
            counts[outcome] += 1
            if rows[0] and outcome == "pass":
                report(f"PASSES NOW  {suite}  {test}: change {DEVIATIONS.relative_to(ROOT)}", [])
        elif all(rows):
            counts[rows[0].reason.partition(":")[0]] += 1
        else:
            counts["not listed"] += 1
            report(f"NOT LISTED  {suite}  {test}: {outcome}", detail)
        for row in rows:
            if row:
                row.count += 1
    return counts


def main():
    internal = {"--babeltrace2": babeltrace2, "--write": write, "--unittests": run_unittests}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if internal:
        words = sys.argv[2:]
        return internal(words[0], words[1:]) if internal is babeltrace2 else internal(*words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kymo", type=pathlib.Path)
    parser.add_argument("suites", nargs="*", metavar="|".join(SUITES))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_intermixed_args()
    suites = options.suites or SUITES
    if not set(suites) <= set(SUITES):
        parser.error(f"the suites are {', '.join(SUITES)}")
    with open(DEVIATIONS, newline="") as file:
        listed = [Listed(row) for row in csv.DictReader(file, delimiter="\t")]
    problems = 0

    def report(line, detail):
        nonlocal problems
        problems += 1
        print(line)
        for part in detail if options.verbose else ():
            print(f"    {part}")

    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        folder = pathlib.Path(folder)
        sources = options.sources or fetch({PACKAGES[suite] for suite in suites}, folder)
        run = Run(options.kymo.resolve(), options.python, sources.resolve(), options.reference, folder)
        totals = {}
        for suite in suites:
            totals[suite] = collections.Counter()
            for program, results in run.suite(suite):
                totals[suite] += compare(listed, suite, program, results, report)
    for row in listed:
        if row.suite in suites and not row.count:
            report(f"NO LONGER   {row.suite}  {row.test}: remove it from {DEVIATIONS.relative_to(ROOT)}", [])
    print_table(totals)
    return 1 if problems else 0


def print_table(totals):
    columns = ["pass", "skip", "exempt", "absent", "open", "not listed"]
    print(f"{'':16}{'tests':>8}" + "".join(f"{column:>12}" for column in columns))
    for suite, counts in totals.items():
        print(f"{suite:16}{counts.total():>8}" + "".join(f"{counts[column]:>12}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())
