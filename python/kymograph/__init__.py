"""Opens any CTF trace, at memory speed: events as columns, answers as tables.

>>> import kymograph
>>> trace = kymograph.open("examples/traces/demo")
>>> trace
<kymograph.Trace 'examples/traces/demo': 2,400 events in 71.210 ms>
>>> trace.events("jobs:begin", columns=["time", "worker"]).to_polars().shape
(400, 2)
>>> trace.pairs(start="jobs:begin", stop="jobs:end", key="id")
<kymograph.Answer pairs: ...; complete>

Everything that reads gives the interpreter's lock back meanwhile; a trace may be asked from several threads at once.
"""

from kymograph._answer import Answer, Table
from kymograph._errors import (
    CheckError,
    Error,
    ForkError,
    KymographWarning,
    LossWarning,
    OpenError,
    QuestionError,
    QuestionWarning,
    ReadError,
    UnanswerableError,
    UnreadableWarning,
    UnsliceableError,
    WriteError,
)
from kymograph._events import Events
from kymograph._info import Clock, Info, TraceInfo
from kymograph._native import __version__, cache_folder
from kymograph._own import Analysis
from kymograph._report import Problem, Report
from kymograph._tables import Batch, Schema
from kymograph._trace import ExportedTable, Finding, Trace, findings, open

__all__ = [
    "Analysis",
    "Answer",
    "Batch",
    "CheckError",
    "Clock",
    "Error",
    "Events",
    "ExportedTable",
    "Finding",
    "ForkError",
    "Info",
    "KymographWarning",
    "LossWarning",
    "OpenError",
    "Problem",
    "QuestionError",
    "QuestionWarning",
    "ReadError",
    "Report",
    "Schema",
    "Table",
    "Trace",
    "TraceInfo",
    "UnanswerableError",
    "UnreadableWarning",
    "UnsliceableError",
    "WriteError",
    "__version__",
    "cache_folder",
    "findings",
    "open",
]
