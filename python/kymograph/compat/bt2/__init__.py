"""Babeltrace 2's Python interface for reading, over Kymograph: a script that reads with `bt2` changes one line.

    from kymograph.compat import bt2

What there is, and what is different, is a table in docs/python.md.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

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
