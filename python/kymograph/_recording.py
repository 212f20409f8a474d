"""Recording from Python: the command ``kymo record`` with its options as keywords, and its sessions as objects."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from kymograph._errors import QuestionError, RecordError
from kymograph._trace import Trace, open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from kymograph._words import StrPath

    Word = str | int | float | os.PathLike[str]

#: Options that change what the command prints, which is read here.
_OURS = ("json", "detach", "to", "summary", "list", "explain")
#: The exit status of wrong usage.
_USAGE = 2
#: Bytes of standard error that are read at a time, and kept for an exception.
_CHUNK = 1 << 16
#: How long the last of them may take behind the end of the command.
_LAST_WORDS_S = 1


def record(
    command: Word | Sequence[Word] | None = None,
    **options: Word | bool | Sequence[Word] | None,
) -> Recording:
    """Records programs, and the kernel.

    With a command, starts it, records it, and returns when it has ended. Without one, returns when the session records: `Recording.stop`
    ends it, and so does the end of a ``with`` block.

    Args:
        command: The program to start and its arguments; a text is a program without arguments.
        options: Those of ``kymo record``, with ``_`` for ``-``: ``kernel=True``, ``event=["net:*", "!net:poll"]``,
            ``kernel_filter="sched_switch when prev_prio < 20"``, ``output="trace"``, ``duration="5s"``. ``True`` is an option without a
            value, ``None`` and ``False`` are none, and of several values each is said.

    Raises:
        QuestionError: An option has an error.
        RecordError: It cannot be recorded, for example because rights are missing.

    >>> output = tempfile.mkdtemp() + "/trace"
    >>> recording = kymograph.record(["sh", "-c", "echo hello >&2; exit 3"], capture_output=True, output=output)
    >>> recording.status, [event["line"] for event in recording.trace.messages("output:stderr")]
    (3, ['hello'])
    """
    words = option_words(options)
    if command is None:
        begun = json.loads(_asked("record", "--detach", "--json", *words))
        return Recording(begun["session"], pathlib.Path(begun["output"]))
    return _recorded(program_words(command), words)


class Recording:
    """A session that records, or has recorded.

    >>> with kymograph.record(name="example", output=tempfile.mkdtemp() + "/trace") as recording:
    ...     recording.summary["session"]
    'example'
    >>> recording.summary["has_ended"], recording.trace
    (True, <kymograph.Trace ...>)
    """

    #: Its name.
    session: str
    #: The folder of its trace.
    output: pathlib.Path
    #: The exit status of the command; ``None``: there was none.
    status: int | None

    def __init__(self, session: str, output: StrPath, status: int | None = None, summary: dict[str, Any] | None = None) -> None:
        self.session, self.output, self.status = session, pathlib.Path(output), status
        self._ended = summary

    @property
    def summary(self) -> dict[str, Any]:
        """Facts as ``kymo status --json`` and ``kymo record --json`` tell them: how many events, bytes and losses, until now or in all."""
        if self._ended is not None:
            return self._ended
        sessions = json.loads(_asked("status", "--json"))["sessions"]
        for known in sessions:
            if known["summary"]["session"] == self.session:
                summary: dict[str, Any] = known["summary"]
                return summary
        raise RecordError(f"the session `{self.session}` has been ended by somebody else")

    @property
    def trace(self) -> Trace:
        """Its trace, with what is written until now."""
        return open(self.output)

    @property
    def limits(self) -> RuleLimits:
        """Limits of its rules (``only=``), by their names."""
        return RuleLimits(self)

    def stop(self) -> None:
        """Ends the session; it may have ended before."""
        if self._ended is None:
            summaries = json.loads(_asked("stop", self.session, "--json", may_be_incomplete=True))
            self._ended = summaries[0]

    def snapshot(self, output: StrPath | None = None) -> Trace:
        """Writes what a flight recorder (``mode="overwrite"``) keeps now, and opens it."""
        words = [] if output is None else ["--output", os.fspath(output)]
        told = json.loads(_asked("snapshot", self.session, "--json", *words, may_be_incomplete=True))
        return open(told["output"])

    def enable(self, *events: str, **options: Word | bool | Sequence[Word] | None) -> None:
        """Records these events, too: patterns of names, and options of ``kymo enable``."""
        _asked("enable", "--session", self.session, *option_words(options), "--", *events, may_be_incomplete=True)

    def disable(self, *events: str, **options: Word | bool | Sequence[Word] | None) -> None:
        """Records these events no more."""
        _asked("disable", "--session", self.session, *option_words(options), "--", *events, may_be_incomplete=True)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None) -> None:
        try:
            self.stop()
        except RecordError:
            # The exception that ended the block says more.
            if error is None:
                raise

    def __repr__(self) -> str:
        state = "recording" if self._ended is None else f"{self._ended['events']:,} events"
        return f"<kymograph.Recording {self.session!r}: {state} in {str(self.output)!r}>"


class RuleLimits(MutableMapping["str | tuple[str, str]", Any]):
    """Limits of the rules of a session, by name; of one kind by name and kind.

    ``limits["slow"]`` is nanoseconds, or events; it may be set as a number, or as text: ``limits["slow"] = "20ms"``,
    ``limits["slow", "/cart"] = "1s"``. Where the limit is a percentile, it is the time that it stands for now; ``None``: no event tells it yet.
    The limit of a rule of the kernel that is opened and closed is ``"open"`` or ``"closed"``. To delete one makes it that of the rule's
    words again.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def _rules(self) -> dict[str, dict[str, Any]]:
        return {rule["options"]["name"]: rule for rule in self._recording.summary["rules"]}

    def __getitem__(self, name: str | tuple[str, str]) -> int | str | None:
        rule, kind = (name, None) if isinstance(name, str) else name
        told = self._rules()[rule]
        limit: int | None
        if kind is not None:
            kinds = {known["name"]: known["running_ns"] for known in told["kinds"]}
            limit = {**kinds, **told["options"]["limits"]}[kind]
            # A kind without a limit of its own has that of the rule.
            return _own_limit(told) if limit is None else limit
        return _own_limit(told)

    def __setitem__(self, name: str | tuple[str, str], limit: int | str) -> None:
        rule, kind = (name, None) if isinstance(name, str) else name
        is_time = isinstance(limit, int) and rule in (rules := self._rules()) and "over" in rules[rule]["options"]["asks"]["test"]
        self._set(rule, kind, f"{limit}ns" if is_time else str(limit))

    def __delitem__(self, name: str | tuple[str, str]) -> None:
        rule, kind = (name, None) if isinstance(name, str) else name
        self._set(rule, kind, "--reset")

    def _set(self, rule: str, kind: str | None, limit: str) -> None:
        if rule not in self._rules():
            raise KeyError(rule)
        words = [] if kind is None else ["--kind", kind]
        _asked("limit", rule, limit, *words, "--session", self._recording.session)

    def __iter__(self) -> Iterator[str | tuple[str, str]]:
        for name, rule in self._rules().items():
            yield name
            for kind in dict.fromkeys([*rule["options"]["limits"], *(known["name"] for known in rule["kinds"])]):
                yield name, kind

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<kymograph.RuleLimits {dict(self)}>"


def _own_limit(rule: dict[str, Any]) -> int | str | None:
    """The limit of a rule now, for all kinds without one of their own."""
    test, number = rule["options"]["asks"]["test"], rule["options"]["set"]
    if "of-kernel" in test:
        is_closed = test["of-kernel"]["is_closed"] if number is None else number > 0
        return "closed" if is_closed else "open"
    limit: int | None
    if number is not None:
        limit = number
    elif "over" in test:
        limit = test["over"]["limit"].get("time", rule["running_ns"])
    else:
        limit = test["every"] if "every" in test else test["at-most"]["events"]
    return limit


def program_words(command: Word | Sequence[Word]) -> list[str]:
    """A program and its arguments."""
    program = [command] if isinstance(command, str | os.PathLike | int | float) else list(command)
    if not program:
        raise QuestionError("a command has a program at least")
    return [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in program]


def this_command() -> list[str]:
    """The command that this package installs."""
    if not sys.platform.startswith("linux"):
        raise RecordError("programs are recorded on Linux; traces are read everywhere")
    script = pathlib.Path(sysconfig.get_path("scripts")) / "kymo"
    if script.is_file():
        return [sys.executable, str(script)]
    found = shutil.which("kymo")
    if found is None:
        raise RecordError("the command `kymo` of this package is not installed")
    return [found]


def option_words(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        option = name.strip("_").replace("_", "-")
        if option in _OURS:
            raise QuestionError(f"`{name}` is no option here: kymograph reads what the command prints")
        values = value if isinstance(value, list | tuple | set | frozenset) else [value]
        for each in values:
            if each is None or each is False:
                continue
            words.append(f"--{option}" if each is True else f"--{option}={os.fspath(each) if isinstance(each, os.PathLike) else each}")
    return words


def _asked(*words: str, may_be_incomplete: bool = False) -> str:
    """The output of the command."""
    done = subprocess.run([*this_command(), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0 or done.returncode == 1 and may_be_incomplete and done.stdout:
        return done.stdout
    raise command_error(done.returncode, done.stderr)


def command_error(status: int, text: str) -> QuestionError | RecordError:
    text = text.strip()
    _, is_said, said = text.rpartition("error: ")
    message = said.split("\n\nUsage:")[0].strip() if is_said else text or f"kymo has ended with status {status}"
    return QuestionError(message) if status == _USAGE else RecordError(message)


def _recorded(program: list[str], words: list[str]) -> Recording:
    with tempfile.TemporaryDirectory(prefix="kymograph-") as folder:
        summary = pathlib.Path(folder) / "summary.json"
        command = [*this_command(), "record", f"--summary={summary}", *words, "--", *program]
        child = subprocess.Popen(command, stderr=subprocess.PIPE)
        told = bytearray()
        passing = threading.Thread(target=_pass_errors, args=(child, told), daemon=True)
        passing.start()
        status = _waited(child)
        # A program that the command has started may go on, with this pipe.
        passing.join(timeout=_LAST_WORDS_S)
        if not summary.exists():
            raise command_error(status, told.decode(errors="replace"))
        facts: dict[str, Any] = json.loads(summary.read_text())
    return Recording(facts["session"], facts["output"], status, facts)


def _pass_errors(child: subprocess.Popen[bytes], told: bytearray) -> None:
    """Passes on what the command and its program write to standard error, and keeps the end of it."""
    assert child.stderr is not None
    with child.stderr as stream:
        while some := os.read(stream.fileno(), _CHUNK):
            told += some
            del told[:-_CHUNK]
            try:
                os.write(2, some)
            except OSError:
                # It is closed.
                continue


def _waited(child: subprocess.Popen[bytes]) -> int:
    """Waits for a child. Ctrl-C ends the program that it records, and then it ends, too."""
    try:
        return child.wait()
    except KeyboardInterrupt:
        # A terminal has sent it to both; others have sent it to this process alone.
        child.send_signal(signal.SIGINT)
        child.wait()
        raise
