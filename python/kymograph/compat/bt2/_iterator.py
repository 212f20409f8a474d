"""The iterator over the messages of traces, and how it is told what to read."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import datetime
import numbers
import os
import re

from kymograph import _native as _kymograph
from kymograph._errors import Error as KymographError
from kymograph._native import bt2 as _native
from kymograph.compat.bt2 import _field, _message, _plugin, _utils
from kymograph.compat.bt2._error import Stop, _Error, _MessageIteratorErrorCause
from kymograph.compat.bt2._trace import _PacketConst, _StreamConst, _too_large, _TraceConst
from kymograph.compat.bt2._value import (
    _ArrayValueConst,
    _BoolValueConst,
    _MapValueConst,
    _SignedIntegerValueConst,
    _StringValueConst,
    create_value,
)

# The parameters of `ctf.fs`, and the types of their values; `_inputs` looks at its own.
_PARAMETERS = {
    "inputs": object,
    "trace-name": _StringValueConst,
    "clock-class-offset-s": _SignedIntegerValueConst,
    "clock-class-offset-ns": _SignedIntegerValueConst,
    "force-clock-class-origin-unix-epoch": _BoolValueConst,
}


class _BaseComponentSpec:
    def __init__(self, params, obj, logging_level):
        if logging_level is not None:
            _utils._check_log_level(logging_level)
        self._params = create_value(params)
        self._obj = obj
        self._logging_level = logging_level

    @property
    def params(self):
        return self._params

    @property
    def obj(self):
        return self._obj

    @property
    def logging_level(self):
        return self._logging_level


class ComponentSpec(_BaseComponentSpec):
    """A component of a class: `ctf.fs` for what is read; `utils.muxer` and `utils.trimmer` for what is left out."""

    def __init__(self, component_class, params=None, obj=None, logging_level=_plugin.LoggingLevel.NONE):
        if type(params) is str:
            params = {"inputs": [params]}
        super().__init__(params, obj, logging_level)
        if not isinstance(
            component_class, (_plugin._SourceComponentClassConst, _plugin._FilterComponentClassConst)
        ):
            raise TypeError(f"'{type(component_class).__name__}' is not a source or filter component class")
        self._component_class = component_class

    @property
    def component_class(self):
        return self._component_class

    @classmethod
    def from_named_plugin_and_component_class(
        cls, plugin_name, component_class_name, params=None, obj=None, logging_level=_plugin.LoggingLevel.NONE
    ):
        plugin = _plugin.find_plugin(plugin_name)
        if plugin is None:
            raise ValueError(f"no such plugin: {plugin_name}")
        for classes in (plugin.source_component_classes, plugin.filter_component_classes):
            if component_class_name in classes:
                return cls(classes[component_class_name], params, obj, logging_level)
        raise KeyError(
            f"source or filter component class `{component_class_name}` not found in plugin `{plugin_name}`"
        )


class AutoSourceComponentSpec(_BaseComponentSpec):
    """Whatever traces are found there."""

    _no_obj = object()

    def __init__(self, input, params=None, obj=_no_obj, logging_level=None):
        super().__init__(params, obj, logging_level)
        self._input = input

    @property
    def input(self):
        return self._input


def _get_ns(time):
    if time is None:
        return None
    if isinstance(time, numbers.Real):
        seconds = time
    elif isinstance(time, datetime.datetime):
        seconds = time.timestamp()
    else:
        raise TypeError(f'"{time}" is not an integral number or a datetime.datetime object')
    return int(seconds * 1e9)


class _Maker:
    """Makes the objects that are not native; see `crates/python/src/compat`."""

    def __init__(self, trace_name, force_unix):
        self._trace_name, self._force_unix = trace_name, force_unix

    def streams(self, said):
        traces = [_TraceConst(trace, self._trace_name, self._force_unix) for trace in said["traces"]]
        return [_StreamConst(stream, traces[stream["trace"]]) for stream in said["streams"]]

    def mark(self, kind, subject, begin, end, count):
        return _message._KINDS[kind](subject, begin, end, count)

    def packet(self, stream, context):
        return _PacketConst(stream, context)

    def array(self, cls, elements):
        is_static = hasattr(cls, "length")
        return (_field._StaticArrayFieldConst if is_static else _field._DynamicArrayFieldConst)(cls, elements)

    def option(self, cls, field):
        return _field._OptionFieldConst(cls, field)

    def variant(self, cls, index, option):
        return _field._VariantFieldConst(cls, index, option)

    def bits(self, cls, bits):
        return _field._BitArrayFieldConst(cls, bits)

    def blob(self, cls, data):
        is_static = hasattr(cls, "length")
        return (_field._StaticBlobFieldConst if is_static else _field._DynamicBlobFieldConst)(cls, data)

    def too_large(self, cycles):
        return _too_large(cycles)

    def end(self, unreadable):
        """What is raised at the end: what could not be read is told when all the rest was given out."""
        if not unreadable:
            return Stop("graph object could not run once")
        causes = [_MessageIteratorErrorCause(message, "fs: 'source.ctf.fs'", place) for place, message in unreadable]
        return _Error("graph object could not run once", causes)


class TraceCollectionMessageIterator(_native.MessageIterator):
    """The messages of traces in the order of time.

    >>> from kymograph.compat import bt2
    >>> messages = bt2.TraceCollectionMessageIterator("examples/traces/demo")
    >>> next(msg.event.name for msg in messages if type(msg) is bt2._EventMessageConst)
    'jobs:submit'
    """

    def __init__(
        self,
        source_component_specs,
        filter_component_specs=None,
        stream_intersection_mode=False,
        begin=None,
        end=None,
        plugin_set=None,
    ):
        _utils._check_bool(stream_intersection_mode)
        begin_ns, end_ns = _get_ns(begin), _get_ns(end)
        if plugin_set is not None:
            _utils._check_type(plugin_set, _plugin._PluginSet)
        sources = _sources(source_component_specs)
        begin_ns, end_ns = _filtered(filter_component_specs, begin_ns, end_ns)
        if not sources:
            raise ValueError("no component descriptors")
        wanted = _Wanted()
        for source in sources:
            wanted.add(source)
        self._src_comp_specs = sources
        maker = _Maker(wanted.trace_name, wanted.force_unix)
        try:
            self._begin(_session(wanted.paths, wanted.offsets), maker, begin_ns, end_ns, stream_intersection_mode)
        except KymographError as error:
            raise _Error(str(error)) from error


class _Wanted:
    """The parameters of all sources together: what is read is read as one."""

    def __init__(self):
        self.paths = []
        self.offsets = {}
        self.force_unix = False
        self.trace_name = None

    def add(self, spec):
        is_auto = type(spec) is AutoSourceComponentSpec
        what = "cannot add component to graph"
        params = _parameters(spec.params, what)
        paths = [str(spec.input)] if is_auto else _inputs(params, what)
        self.paths += paths
        shift_ns = _shift_ns(params)
        for path in map(os.path.abspath, paths):
            if self.offsets.setdefault(path, shift_ns) != shift_ns:
                raise NotImplementedError(f"{path}: sources that shift its clocks differently cannot be read together")
        self.force_unix |= bool(params.get("force-clock-class-origin-unix-epoch", False))
        if "trace-name" in params:
            self.trace_name = str(params["trace-name"])


def _parameters(params, what):
    """Parameters of `ctf.fs`, if it knows their names and the types of their values."""
    if params is None:
        return {}
    if not isinstance(params, _MapValueConst):
        raise _Error(f"{what}: the parameters are no map")
    for name, value in params.items():
        if name not in _PARAMETERS:
            raise _Error(f"{what}: unexpected parameter `{name}`")
        if not isinstance(value, _PARAMETERS[name]):
            raise _Error(f"{what}: the value of the parameter `{name}` has the wrong type")
    return params


def _inputs(params, what):
    """The paths that `inputs` lists. One text is no list of paths."""
    inputs = params["inputs"] if "inputs" in params else None
    is_list = isinstance(inputs, _ArrayValueConst) and len(inputs) > 0
    if not is_list or not all(isinstance(path, _StringValueConst) for path in inputs):
        wrong = "missing mandatory" if inputs is None else "expecting a list of paths as"
        raise _Error(f"{what}: {wrong} `inputs` parameter")
    return [str(path) for path in inputs]


def _shift_ns(params):
    """How far clocks are set ahead."""
    return int(params.get("clock-class-offset-s", 0)) * 10**9 + int(params.get("clock-class-offset-ns", 0))


def _sources(specs):
    """The specs as a list. `_Wanted` checks their parameters."""
    if type(specs) in (ComponentSpec, AutoSourceComponentSpec, str):
        specs = [specs]
    specs = [AutoSourceComponentSpec(spec) if type(spec) is str else spec for spec in specs]
    for spec in specs:
        if type(spec) not in (ComponentSpec, AutoSourceComponentSpec):
            raise TypeError(f'"{type(spec)}" object is not a ComponentSpec or AutoSourceComponentSpec')
        if type(spec) is ComponentSpec and spec.component_class is not _plugin._FS:
            raise NotImplementedError(f"`{spec.component_class.name}` is no source here: only `ctf.fs` is")
    unused = [str(spec.input) for spec in specs if type(spec) is AutoSourceComponentSpec and not _has_trace(spec)]
    if unused:
        raise RuntimeError("Some auto source component specs did not produce any component: " + ", ".join(unused))
    return specs


def _has_trace(spec):
    """Whether a trace may be there; archives may hold some."""
    path = str(spec.input)
    if os.path.isfile(path):
        return True
    return any("metadata" in files for _, _, files in os.walk(path))


def _filtered(specs, begin_ns, end_ns):
    """The times that are left by filters."""
    specs = [specs] if type(specs) is ComponentSpec else specs or []
    for spec in specs:
        if type(spec) is not ComponentSpec:
            raise TypeError(f'"{type(spec)}" object is not a ComponentSpec')
        if spec.component_class is _plugin._TRIMMER:
            params = {} if spec.params is None else spec.params
            begins = [time for time in (begin_ns, _trimmed(params, "begin")) if time is not None]
            ends = [time for time in (end_ns, _trimmed(params, "end")) if time is not None]
            begin_ns, end_ns = max(begins, default=None), min(ends, default=None)
        elif spec.component_class is not _plugin._MUXER:
            raise NotImplementedError(f"`{spec.component_class.name}` is no filter here")
    return begin_ns, end_ns


def _trimmed(params, name):
    if name not in params:
        return None
    time = params[name]
    if isinstance(time, numbers.Real):
        return int(time * 10**9)
    match = re.fullmatch(r"(-?\d+)(?:\.(\d{1,9}))?", str(time))
    if match is None:
        raise NotImplementedError(f"the trimmer's `{name}` is understood as seconds only: {time}")
    return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))


def _session(paths, offsets):
    threads = int(os.environ.get("KYMO_THREADS") or 0)
    shift_ns = 0
    # Folders that are shifted by themselves are of different machines; one shift of all leaves chunks of a session together.
    if len(set(offsets.values())) == 1:
        shift_ns, offsets = next(iter(offsets.values())), {}
    try:
        return _kymograph.Session(paths, threads, shift_ns, list(offsets.items()), (None, None), _kymograph.cache_folder())
    except KymographError as error:
        raise _Error(f"cannot add component to graph: {error}") from error


def _described(paths, shift_ns=0):
    """What traces say of themselves, where clocks are set ahead."""
    return _native.describe(_session(paths, {os.path.abspath(path): shift_ns for path in paths}))
