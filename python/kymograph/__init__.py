"""Opens any CTF trace, at memory speed: events as columns, answers as tables.

>>> import kymograph
>>> trace = kymograph.open("examples/traces/demo")
>>> trace
<kymograph.Trace 'examples/traces/demo': 2,400 events in 66.668 ms>
>>> trace.events("jobs:begin", columns=["time", "worker"]).to_polars().shape
(400, 2)
>>> trace.pairs(start="jobs:begin", stop="jobs:end", key="id")
<kymograph.Answer pairs: ...; complete>

All functions that read a trace release the interpreter lock meanwhile. Several threads may use a trace
at the same time.
"""

import atexit as _atexit

from kymograph import _library

_library.choose()

from kymograph._native import Event, __version__, cache_folder  # noqa: E402
from kymograph._native import ends as _ends  # noqa: E402
from kymograph._trace import Trace, open  # noqa: E402

_atexit.register(_ends)

# The rest is imported when somebody asks for it: importing takes a few milliseconds.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kymograph import cluster
    from kymograph._answer import Answer, Table
    from kymograph._errors import (
        CheckError,
        Error,
        ForkError,
        KymographWarning,
        LossWarning,
        MemoryLimitError,
        NotInstalledError,
        OpenError,
        OtherTraceError,
        QuestionError,
        QuestionWarning,
        ReadError,
        RecordError,
        UnanswerableError,
        UnreadableWarning,
        UnsliceableError,
        WriteError,
    )
    from kymograph._events import Events
    from kymograph._info import Clock, Counters, CpuCounter, Info, TraceInfo
    from kymograph._objects import BpfRecord, BpfRun, bpf
    from kymograph._own import Analysis
    from kymograph._recording import Recording, RuleLimits, record
    from kymograph._report import Problem, Report
    from kymograph._sql import Database, Rows
    from kymograph._tables import Batch, Schema
    from kymograph._values import ExportedTable, Finding, findings
    from kymograph._watching import CountRow, Counts, Watch, watch

_HOMES = {
    "kymograph._answer": "Answer Table",
    "kymograph._errors": (
        "CheckError Error ForkError KymographWarning LossWarning MemoryLimitError NotInstalledError "
        "OpenError OtherTraceError QuestionError QuestionWarning ReadError RecordError UnanswerableError UnreadableWarning UnsliceableError WriteError"
    ),
    "kymograph._events": "Events",
    "kymograph._info": "Clock Counters CpuCounter Info TraceInfo",
    "kymograph._objects": "BpfRecord BpfRun bpf",
    "kymograph._own": "Analysis",
    "kymograph._recording": "Recording RuleLimits record",
    "kymograph._report": "Problem Report",
    "kymograph._sql": "Database Rows",
    "kymograph._tables": "Batch Schema",
    "kymograph._values": "ExportedTable Finding findings",
    "kymograph._watching": "CountRow Counts Watch watch",
}

__all__ = [
    "Analysis",
    "Answer",
    "Batch",
    "BpfRecord",
    "BpfRun",
    "CheckError",
    "Clock",
    "CountRow",
    "Counters",
    "Counts",
    "CpuCounter",
    "Database",
    "Error",
    "Event",
    "Events",
    "ExportedTable",
    "Finding",
    "ForkError",
    "Info",
    "KymographWarning",
    "LossWarning",
    "MemoryLimitError",
    "NotInstalledError",
    "OpenError",
    "OtherTraceError",
    "Problem",
    "QuestionError",
    "QuestionWarning",
    "ReadError",
    "RecordError",
    "Recording",
    "Report",
    "Rows",
    "RuleLimits",
    "Schema",
    "Table",
    "Trace",
    "TraceInfo",
    "UnanswerableError",
    "UnreadableWarning",
    "UnsliceableError",
    "Watch",
    "WriteError",
    "__version__",
    "bpf",
    "cache_folder",
    "cluster",
    "findings",
    "open",
    "record",
    "watch",
]


def __getattr__(name: str) -> object:
    import importlib

    if name == "cluster":
        return importlib.import_module("kymograph.cluster")
    for home, names in _HOMES.items():
        if name in names.split():
            value: object = getattr(importlib.import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
