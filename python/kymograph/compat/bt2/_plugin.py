"""Plugins and component classes, as far as reading CTF needs them, and what can be queried of them."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc
import os

from kymograph.compat.bt2 import _utils
from kymograph.compat.bt2._error import UnknownObject, _Error
from kymograph.compat.bt2._value import _const, _MapValueConst, _StringValueConst, create_value


class LoggingLevel:
    TRACE = 1
    DEBUG = 2
    INFO = 3
    WARNING = 4
    ERROR = 5
    FATAL = 6
    NONE = 255


_level = LoggingLevel.NONE


def get_minimal_logging_level():
    return LoggingLevel.DEBUG


def get_global_logging_level():
    return _level


def set_global_logging_level(level):
    """Kept, and without effect: nothing is logged here."""
    global _level
    _utils._check_log_level(level)
    _level = level


def get_maximal_mip_version():
    return 0


def get_greatest_operative_mip_version(component_descriptors, log_level=LoggingLevel.NONE):
    if len(component_descriptors) == 0:
        raise ValueError("no component descriptors")
    return 0


class _ComponentClassConst(_utils._Object):
    def __init__(self, name, description, help_):
        self._name, self._description, self._help = name, description, help_

    @property
    def name(self):
        return self._name

    @property
    def description(self):
        return self._description

    @property
    def help(self):
        return self._help

    def __eq__(self, other):
        return self is other

    __hash__ = None


class _SourceComponentClassConst(_ComponentClassConst):
    pass


class _FilterComponentClassConst(_ComponentClassConst):
    pass


class _SinkComponentClassConst(_ComponentClassConst):
    pass


class _PluginComponentClasses(collections.abc.Mapping):
    __hash__ = None

    def __init__(self, classes):
        self._classes = {each.name: each for each in classes}

    def __getitem__(self, key):
        _utils._check_str(key)
        return self._classes[key]

    def __len__(self):
        return len(self._classes)

    def __iter__(self):
        return iter(self._classes)


class _Plugin(_utils._Object):
    version = None

    def __init__(self, name, description, sources=(), filters=()):
        self._name, self._description = name, description
        self._sources, self._filters = _PluginComponentClasses(sources), _PluginComponentClasses(filters)

    @property
    def name(self):
        return self._name

    @property
    def author(self):
        return "Kymograph"

    @property
    def license(self):
        return "MIT OR Apache-2.0"

    @property
    def description(self):
        return self._description

    @property
    def path(self):
        return None

    @property
    def source_component_classes(self):
        return self._sources

    @property
    def filter_component_classes(self):
        return self._filters

    @property
    def sink_component_classes(self):
        return _PluginComponentClasses(())


class _PluginSet(_utils._Object, collections.abc.Sequence):
    def __len__(self):
        return len(_PLUGINS)

    def __getitem__(self, index):
        return _PLUGINS[index]


_FS = _SourceComponentClassConst("fs", "Read CTF traces from the file system.", None)
_MUXER = _FilterComponentClassConst("muxer", "Sort messages from multiple inputs by time.", None)
_TRIMMER = _FilterComponentClassConst("trimmer", "Discard messages that occur outside a specific time range.", None)
_PLUGINS = (
    _Plugin("ctf", "CTF input", sources=(_FS,)),
    _Plugin("utils", "Common utilities", filters=(_MUXER, _TRIMMER)),
)


def find_plugins(
    find_in_std_env_var=True,
    find_in_user_dir=True,
    find_in_sys_dir=True,
    find_in_static=True,
    fail_on_load_error=False,
):
    """The plugins that there are: `ctf` with `fs`, and `utils` with `muxer` and `trimmer`."""
    return _PluginSet()


def find_plugins_in_path(path, recurse=True, fail_on_load_error=False):
    """None: plugins are not loaded."""
    _utils._check_str(path)
    if not os.path.exists(path):
        raise ValueError(f"cannot find any plugin in `{path}`: there is no such path")
    return None


def find_plugin(name, *_, **__):
    """The plugin of that name; `None` if there is none."""
    _utils._check_str(name)
    return next((plugin for plugin in _PLUGINS if plugin.name == name), None)


class QueryExecutor(_utils._Object):
    """Asks a component class; `fs` knows `babeltrace.support-info`, `babeltrace.trace-infos` and `metadata-info`."""

    def __init__(self, component_class, object_name, params=None, method_obj=None):
        if not isinstance(component_class, _ComponentClassConst):
            raise TypeError(f"'{type(component_class).__name__}' is not a component class object")
        _utils._check_str(object_name)
        self._class, self._object_name, self._params = component_class, object_name, create_value(params)

    @property
    def is_interrupted(self):
        return False

    def query(self):
        answers = {
            "babeltrace.support-info": _support_info,
            "babeltrace.trace-infos": _trace_infos,
            "metadata-info": _metadata_info,
        }
        if self._class is not _FS or self._object_name not in answers:
            raise UnknownObject(f"cannot query component class: {self._object_name}")
        return _const(answers[self._object_name](self._params))


def _opened(paths):
    from kymograph.compat.bt2 import _iterator

    return _iterator._described(paths)


def _text(params, name):
    """A parameter of a query that has to be a text."""
    value = params.get(name) if isinstance(params, _MapValueConst) else None
    if not isinstance(value, _StringValueConst):
        wrong = "missing mandatory" if value is None else "expecting a text as"
        raise _Error(f"cannot query component class: {wrong} `{name}` parameter")
    return str(value)


def _support_info(params):
    nothing = {"weight": 0.0}
    kind, path = _text(params, "type"), _text(params, "input")
    if kind != "directory" or not os.path.isfile(os.path.join(path, "metadata")):
        return nothing
    try:
        traces = _opened([path])["traces"]
    except _Error:
        return nothing
    group = next((trace["uuid"] for trace in traces if trace["uuid"] is not None), None)
    return {"weight": 0.75} if group is None else {"group": group, "weight": 0.75}


def _trace_infos(params):
    from kymograph.compat.bt2 import _iterator

    params = _iterator._parameters(params, "cannot query component class")
    said = _iterator._described(_iterator._inputs(params, "cannot query component class"), _iterator._shift_ns(params))
    infos = []
    for number, trace in enumerate(said["traces"]):
        streams = []
        for stream in (each for each in said["streams"] if each["trace"] == number):
            of_class = trace["stream_classes"][stream["class"]]["id"]
            name = trace["uuid"] or os.path.abspath(trace["path"])
            of_stream = stream["id"] if stream["has_id"] else os.path.abspath(stream["path"])
            info = {"port-name": f"{name} | {of_class} | {of_stream}"}
            if stream["begin_ns"] is not None and stream["end_ns"] is not None:
                info["range-ns"] = {"begin": stream["begin_ns"], "end": stream["end_ns"]}
            streams.append(info)
        infos.append({"stream-infos": streams})
    return infos


def _metadata_info(params):
    path = _text(params, "path")
    try:
        with open(os.path.join(path, "metadata"), "rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise _Error(f"cannot query component class: {error}") from error
    magic = 0x75D11D57
    packetized = begin in (magic.to_bytes(4, "little"), magic.to_bytes(4, "big"))
    return {"text": _opened([path])["traces"][0]["text"], "is-packetized": packetized}
