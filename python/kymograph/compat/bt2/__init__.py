"""Babeltrace 2's Python interface for reading, over Kymograph: a script that reads with `bt2` changes one line.

    from kymograph.compat import bt2

What there is, and what is different, is a table in docs/python.md.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import re
import sys
import types

from kymograph._native import bt2 as _native
from kymograph.compat.bt2 import _error, _field, _field_class, _iterator, _message, _plugin, _trace, _value
from kymograph.compat.bt2._value import create_value

# Of Babeltrace: what this interface is.
__version__ = "2.0.4"


def _shown():
    """Names of the interface, without those of its parts."""
    names = {}
    for part in (_error, _field, _field_class, _iterator, _message, _plugin, _trace, _value):
        for name, value in vars(part).items():
            is_native = getattr(value, "__module__", "") == __name__
            is_own = is_native or getattr(value, "__module__", None) == part.__name__
            if isinstance(value, type) and is_own:
                names[name] = value
    names["_EventConst"] = _native._EventConst
    # Babeltrace's objects that may be changed: nobody meets them in reading, but scripts look at their types.
    for name in list(names):
        if not name.endswith("Const") or not name.startswith("_"):
            continue
        changeable = name.removesuffix("Const")
        if changeable not in names and changeable.removeprefix("_") not in names:
            names[changeable] = type(changeable, (names[name],), {"__module__": __name__, "__slots__": ()})
    return names


globals().update(_shown())
for _part in (_plugin,):
    for _name in (
        "find_plugin",
        "find_plugins",
        "find_plugins_in_path",
        "get_global_logging_level",
        "get_greatest_operative_mip_version",
        "get_maximal_mip_version",
        "get_minimal_logging_level",
        "set_global_logging_level",
    ):
        globals()[_name] = getattr(_part, _name)
del _name, _part

# Where Babeltrace keeps its names, for scripts that import them from there: a name that there is none of here is not
# in the module either.
_MODULES = {
    "clock_class": r"ClockClassOffset|_ClockClass(Const)?",
    "clock_snapshot": r"_(Unknown)?ClockSnapshot(Const)?",
    "component": r"_(Source|Filter|Sink)?ComponentClassConst",
    "error": r"ComponentClassType|_Error|_\w*ErrorCause",
    "event": r"_Event(Const)?",
    "event_class": r"EventClassLogLevel|_EventClass(Const)?",
    "field": r"_\w*Field(Const)?",
    "field_class": r"IntegerDisplayBase|_\w*FieldClass(\w*Mapping)?(Const)?",
    "field_path": r"FieldPathScope|_\w*FieldPath(Item|Const)?",
    "integer_range_set": r"_?\w*IntegerRange(Set)?(Const)?",
    "logging": r"LoggingLevel|\w+_logging_level",
    "message": r"_\w*Message\w*",
    "mip": r"get_\w*mip_version",
    "packet": r"_Packet(Const)?",
    "plugin": r"_Plugin\w*|find_plugin\w*",
    "query_executor": r"QueryExecutor",
    "stream": r"_Stream(Const)?",
    "stream_class": r"_StreamClass(Const)?",
    "trace": r"_Trace(Environment)?(Const)?",
    "trace_class": r"_TraceClass(Const)?",
    "trace_collection_message_iterator": r"(AutoSource)?ComponentSpec|TraceCollectionMessageIterator",
    "value": r"_?\w*Value(Const)?|create_value",
}


def _add_modules():
    names = dict(globals())
    for name, pattern in _MODULES.items():
        module = types.ModuleType(f"{__name__}.{name}", f"The names of Babeltrace's module `bt2.{name}`.")
        vars(module).update({each: value for each, value in names.items() if re.fullmatch(pattern, each)})
        globals()[name] = sys.modules[module.__name__] = module


_add_modules()
