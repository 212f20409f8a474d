"""Open traces, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kymograph import _native
from kymograph._info import Info

StrPath = str | os.PathLike[str]


def open(  # noqa: A001  (people write kymograph.open)
    path: StrPath | Sequence[StrPath],
    *,
    threads: int = 0,
    clock_shift: int | timedelta = 0,
    cache: StrPath | bool = True,
) -> Trace:
    """Opens one or more traces, to be read as one.

    Args:
        path: A folder with a ``metadata`` file, a folder above such, a single stream file, or an archive of them; or
            several of these.
        threads: How many may read; 0: as ``KYMO_THREADS`` says, or one for each core.
        clock_shift: Time that every clock is ahead, in nanoseconds or as a ``timedelta``.
        cache: Where to remember what was found; ``True``: as the command (`cache_folder`), ``False``: nowhere.

    Raises:
        OpenError: There is no trace, or none that can be understood. Of several, those that can be read are read.

    >>> kymograph.open("examples/traces/demo", threads=1, cache=False).info().packets
    17
    """
    return Trace(path, threads=threads, clock_shift=clock_shift, cache=cache)


class Trace:
    """One or more open traces; `kymograph.open` makes it.

    It may be used by several threads at once, pickled (another process opens the traces itself), and used after a fork.
    """

    def __init__(
        self,
        path: StrPath | Sequence[StrPath],
        *,
        threads: int = 0,
        clock_shift: int | timedelta = 0,
        cache: StrPath | bool = True,
    ) -> None:
        several = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        self._paths = [os.fspath(each) for each in several]
        if not self._paths:
            raise ValueError("there is no path of a trace")
        self._threads = threads
        self._clock_shift_ns = _nanos(clock_shift)
        self._cache = cache if isinstance(cache, bool) else os.fspath(cache)
        self._opened = self._open()

    def _open(self) -> tuple[int, _native.Session]:
        cache = _native.cache_folder() if self._cache is True else self._cache or None
        threads = self._threads or int(os.environ.get("KYMO_THREADS") or 0)
        return os.getpid(), _native.Session(self._paths, threads, self._clock_shift_ns, cache)

    @property
    def _session(self) -> _native.Session:
        """The open session of this process: what a parent opened is the parent's."""
        process, session = self._opened
        if process != os.getpid():
            self._opened = process, session = self._open()
        return session

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (self._paths, self._threads, self._clock_shift_ns, self._cache)

    @property
    def paths(self) -> tuple[str, ...]:
        """What was opened.

        >>> trace.paths
        ('examples/traces/demo',)
        """
        return tuple(self._paths)

    def info(self, *, exact: bool = False) -> Info:
        """What the traces hold, at a glance: from their metadata, the packet index, and a few packets of many.

        Args:
            exact: Counts every event instead of estimating.

        >>> print(trace.info())  # doctest: +ELLIPSIS
        demo  (examples/traces/demo)
          recorded  by lttng-ust 2.13 on vm
        ...
        """
        return Info._of(*self._session.info(exact))

    def __repr__(self) -> str:
        return f"<kymograph.Trace {', '.join(map(repr, self._paths))}: {self._session.summary()}>"


def _opened_again(paths: list[str], threads: int, clock_shift_ns: int, cache: str | bool) -> Trace:
    return Trace(paths, threads=threads, clock_shift=clock_shift_ns, cache=cache)


def _nanos(length: int | timedelta) -> int:
    if isinstance(length, timedelta):
        return (length.days * 86_400 + length.seconds) * 1_000_000_000 + length.microseconds * 1_000
    return length
