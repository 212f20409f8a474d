"""The names of the package, for scripts that name the module within: `babeltrace.babeltrace.Event`."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

from kymograph.compat.babeltrace.common import *
from kymograph.compat.babeltrace.reader import *
from kymograph.compat.babeltrace.writer import CTFWriter
