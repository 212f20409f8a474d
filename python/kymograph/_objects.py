"""eBPF objects of users from Python: the command ``kymo bpf run``, whose maps are dictionaries."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kymograph._errors import QuestionError, RecordError
from kymograph._recording import command_error, option_words, program_words, this_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from kymograph._recording import Word
    from kymograph._words import StrPath

#: Programs of the kernel run while this runs: it says when they have begun, and ends with its standard input.
_BEGUN = "begun"
_WHILE_READ = ("sh", "-c", f"echo {_BEGUN}; read line")
#: How long the last words of the command may take behind its end.
_LAST_WORDS_S = 1


def bpf(
    object: StrPath,  # noqa: A002  (as the file is called)
    *traces: StrPath,
    command: Word | Sequence[Word] | None = None,
    **options: Word | bool | Sequence[Word] | None,
) -> BpfRun:
    """Runs the programs of an eBPF object, compiled by clang: over the events of traces, or without traces in the kernel.

    Over traces, they have run when this returns. In the kernel, they run when it returns, until `BpfRun.stop` or the end of a ``with``
    block; with a command, until that has ended.

    Args:
        object: The file of the object.
        traces: Paths of traces.
        command: A program that is started; those of the object see all of the system, also with a command.
        options: The others of ``kymo bpf run``, with ``_`` for ``-``: ``filter="size > 1000"``, ``duration="5s"``.

    Raises:
        QuestionError: The object or an option has an error, or rights are missing.
        RecordError: Running broke off.

    >>> with kymograph.bpf("opens.o") as run:  # doctest: +SKIP
    ...     work()
    >>> run.maps["by_process"]  # doctest: +SKIP
    {27107: 1, 27114: 3}
    >>> [record.value["path"] for record in kymograph.bpf("opens.o", command="date")]  # doctest: +SKIP
    ['/etc/ld.so.cache', '/lib/x86_64-linux-gnu/libc.so.6', '/etc/localtime']
    """
    words = option_words({name: value for name, value in options.items() if name != "kernel"})
    if traces:
        if command is not None or options.get("kernel"):
            raise QuestionError("programs run over traces, or in the kernel: traces and a command exclude each other")
        return BpfRun([*words, os.fspath(object), *(os.fspath(trace) for trace in traces)], is_of_kernel=False)
    run = BpfRun([*words, os.fspath(object), "--kernel", "--", *_WHILE_READ], is_of_kernel=True)
    if command is not None:
        with run:
            run.status = subprocess.run(program_words(command)).returncode
    return run


@dataclass(frozen=True)
class BpfRecord:
    """A record of a ring."""

    #: The ring.
    map: str
    #: Its time, in nanoseconds since the origin of the clock; ``None``: the event has none.
    time_ns: int | None
    #: A dictionary, if its type is a structure.
    value: Any


class BpfRun:
    """Programs that run, or have run. Iterating gives their records as they come; the end of a ``with`` block stops them."""

    #: The exit status of the command; ``None``: there was none.
    status: int | None = None

    def __init__(self, words: list[str], *, is_of_kernel: bool) -> None:
        # Ctrl-C is for this process alone, which then stops the other one.
        self._child = subprocess.Popen(
            [*this_command(), "bpf", "run", "--json", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._ends_itself = not is_of_kernel or any(word.startswith("--duration=") for word in words)
        self._told = bytearray()
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Both streams are read at any time: the command would wait for a reader, and lose records meanwhile.
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_lines, self._read_errors)]
        for reader in self._readers:
            reader.start()
        self._kept: collections.deque[BpfRecord] = collections.deque()
        self._printed: list[str] = []
        self._maps: dict[str, dict[Any, Any]] = {}
        self._programs: dict[str, dict[str, Any]] = {}
        self._lost: dict[str, int] = {}
        self._is_over = False
        if is_of_kernel:
            while (line := self._lines.get()) != _BEGUN:
                if not line:
                    raise self._broken()
                self._take(line)

    def __iter__(self) -> Iterator[BpfRecord]:
        while True:
            while self._kept:
                yield self._kept.popleft()
            if not self._more():
                return

    @property
    def maps(self) -> dict[str, dict[Any, Any]]:
        """Maps at the end, by name: a dictionary of keys and values; of variables (``.bss``), of their names.

        A structure is a tuple as a key, and a dictionary as a value. Where each CPU has a value, that is a dictionary by CPU. Waits for the
        end, which `stop`, a ``duration``, a command or the end of traces brings.

        Raises:
            QuestionError: Nothing brings it.
        """
        self._finish()
        return self._maps

    @property
    def programs(self) -> dict[str, dict[str, Any]]:
        """How often each program has run, and facts as ``kymo bpf run --json`` tells them, by its name. Waits as `maps` does."""
        self._finish()
        return self._programs

    @property
    def lost(self) -> dict[str, int]:
        """Records that found no room, by ring. Waits as `maps` does."""
        self._finish()
        return self._lost

    @property
    def lines(self) -> list[str]:
        """Lines of ``bpf_printk``. Waits as `maps` does."""
        self._finish()
        return self._printed

    def stop(self) -> BpfRun:
        """Stops it: its maps are there from then on."""
        self._ends_itself = True
        self._close()
        self._finish()
        return self

    def _finish(self) -> None:
        if not self._is_over and not self._ends_itself:
            raise QuestionError("the programs run until they are stopped: `stop()` does that, and so does the end of a `with` block")
        while self._more():
            pass

    def _more(self) -> bool:
        """Takes the next line of the command; whether there is one."""
        if self._is_over:
            return False
        line = self._lines.get()
        if line:
            self._take(line)
            return True
        status = self._end()
        self._is_over = True
        # It tells its programs last.
        if not self._programs:
            raise command_error(status, self._told.decode(errors="replace"))
        return False

    def _take(self, line: str) -> None:
        if not line.startswith("{"):
            return
        told = json.loads(line)
        match told["kind"]:
            case "record":
                self._kept.append(BpfRecord(told["map"], told["time_ns"], told["value"]))
            case "line":
                self._printed.append(told["text"])
            case "map":
                self._maps[told["name"]] = _entries(told)
            case "lost":
                self._lost[told["map"]] = self._lost.get(told["map"], 0) + told["records"]
            case "program":
                self._programs[told["name"]] = told

    def _read_lines(self) -> None:
        """Takes lines of the output, and an empty one at its end."""
        assert self._child.stdout is not None
        with self._child.stdout as stream:
            for line in stream:
                self._lines.put(line.rstrip("\n") or " ")
        self._lines.put("")

    def _read_errors(self) -> None:
        assert self._child.stderr is not None
        with self._child.stderr as stream:
            for line in stream:
                self._told += line.encode()

    def _close(self) -> None:
        if self._child.stdin is not None and not self._child.stdin.closed:
            # The other end may be gone.
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()

    def _end(self) -> int:
        self._close()
        status = self._child.wait()
        for reader in self._readers:
            reader.join(timeout=_LAST_WORDS_S)
        return status

    def _broken(self) -> QuestionError | RecordError:
        status = self._end()
        self._is_over = True
        return command_error(status, self._told.decode(errors="replace"))

    def __enter__(self) -> BpfRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None) -> None:
        try:
            self.stop()
        except RecordError:
            # The exception that ended the block says more.
            if error is None:
                raise

    def __del__(self) -> None:
        child = getattr(self, "_child", None)
        if child is not None and child.poll() is None:
            child.kill()
            self._end()

    def __repr__(self) -> str:
        state = f"maps {', '.join(self._maps) or 'none'}" if self._is_over else "running"
        return f"<kymograph.BpfRun: {state}>"


def _entries(told: dict[str, Any]) -> dict[Any, Any]:
    """The entries of a map, by key."""
    entries = told["entries"]
    if told["name"].startswith("."):
        # Variables: the only entry is the structure of all.
        variables: dict[Any, Any] = entries[0]["value"] if entries and isinstance(entries[0].get("value"), dict) else {}
        return variables
    return {_hashable(entry["key"]): _value(entry) for entry in entries}


def _value(entry: dict[str, Any]) -> Any:
    if "values" in entry:
        return {of["cpu"]: of["value"] for of in entry["values"]}
    return entry["value"]


def _hashable(key: Any) -> Any:
    """A key as a dictionary takes it: the values of a structure, and the items of a list, are a tuple."""
    if isinstance(key, dict):
        return tuple(_hashable(value) for value in key.values())
    if isinstance(key, list):
        return tuple(_hashable(value) for value in key)
    return key
