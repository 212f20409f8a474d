"""Opens any CTF trace, at memory speed.

>>> import kymograph
>>> trace = kymograph.open("examples/traces/demo")
>>> trace
<kymograph.Trace 'examples/traces/demo': 2,400 events in 71.210 ms>

Everything that reads gives the interpreter's lock back meanwhile; a trace may be asked from several threads at once.
"""

from kymograph._errors import Error, OpenError, UnreadableWarning
from kymograph._info import Clock, Info, TraceInfo
from kymograph._native import __version__, cache_folder
from kymograph._report import Problem, Report
from kymograph._trace import Trace, open

__all__ = [
    "Clock",
    "Error",
    "Info",
    "OpenError",
    "Problem",
    "Report",
    "Trace",
    "TraceInfo",
    "UnreadableWarning",
    "__version__",
    "cache_folder",
    "open",
]
