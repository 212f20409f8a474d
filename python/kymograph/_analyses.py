"""Analyses that take nothing but the options of all. Written by `UPDATE=1 cargo test --package kymo-cli registry`, from the registry in
crates/analysis/src/registry.rs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Unpack

    from kymograph._answer import Answer
    from kymograph._words import Options

#: All analyses by name, also those that `Trace` has methods of its own for.
NAMES = ("cpu", "syscalls", "io", "sched", "stacks", "irq", "block", "memory", "pairs", "breakdown", "flows", "periods", "rates", "gaps", "threads", "count")


class Analyses:
    """What `kymograph.Trace` can be asked by a method for each analysis."""

    def _ask(self, command: str, options: Mapping[str, Any], known: Iterable[str] | None = None, *files: str) -> Answer:
        raise NotImplementedError

    def cpu(self, **options: Unpack[Options]) -> Answer:
        """How long each CPU was busy, and with which threads, processes and applications: ``kymo cpu``.

        ``kymo cpu --help`` says what options there are; docs/analyses.md what is counted. This is so for every analysis.

        >>> kernel.cpu(by="process", top=3).names  # doctest: +SKIP
        ('per-process',)
        """
        return self._ask("cpu", options)

    def syscalls(self, **options: Unpack[Options]) -> Answer:
        """Durations and errors of system calls: ``kymo syscalls``."""
        return self._ask("syscalls", options)

    def io(self, **options: Unpack[Options]) -> Answer:
        """Bytes read and written, by thread, file, disk and network interface: ``kymo io``."""
        return self._ask("io", options)

    def sched(self, **options: Unpack[Options]) -> Answer:
        """Scheduling latency of threads, how long they ran, and what blocked them: ``kymo sched``."""
        return self._ask("sched", options)

    def stacks(self, **options: Unpack[Options]) -> Answer:
        """Functions that CPUs ran and in which threads waited, by call stacks: ``kymo stacks``."""
        return self._ask("stacks", options)

    def irq(self, **options: Unpack[Options]) -> Answer:
        """Durations of interrupts and softirqs, and how long softirqs waited: ``kymo irq``."""
        return self._ask("irq", options)

    def block(self, **options: Unpack[Options]) -> Answer:
        """Latencies of requests to block devices: ``kymo block``."""
        return self._ask("block", options)

    def memory(self, **options: Unpack[Options]) -> Answer:
        """Pages of memory that threads took from the kernel and gave back: ``kymo memory``."""
        return self._ask("memory", options)

    def flows(self, **options: Unpack[Options]) -> Answer:
        """Latency of messages from senders to receivers, and messages without either: ``kymo flows``."""
        return self._ask("flows", options)

    def rates(self, **options: Unpack[Options]) -> Answer:
        """Number of events in each period of time: ``kymo rates``.

        >>> trace.rates(period="20ms")["course"].schema
        Schema(period_begin: Timestamp(ns, "UTC"), period_end: Timestamp(ns, "UTC"), name: Utf8, count: Int64)
        """
        return self._ask("rates", options)

    def gaps(self, **options: Unpack[Options]) -> Answer:
        """Longest times without events, and how many events were lost in them: ``kymo gaps``.

        >>> trace.gaps(top=1)
        <kymograph.Answer gaps: ...; complete>
        """
        return self._ask("gaps", options)

    def threads(self, **options: Unpack[Options]) -> Answer:
        """Number of events of each thread, process, application and CPU: ``kymo threads``.

        >>> trace.threads(by="application", top=3)
        <kymograph.Answer threads: ...; complete>
        """
        return self._ask("threads", options)
