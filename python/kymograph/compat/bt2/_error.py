"""Exceptions, and where errors come from."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc


class ComponentClassType:
    SOURCE = 1
    FILTER = 2
    SINK = 4


class _ErrorCause:
    """Why something failed. Files and lines are those of the trace, as far as it has any."""

    def __init__(self, message, module_name="kymograph", file_name="", line_number=0):
        self._message = message
        self._module_name = module_name
        self._file_name = file_name
        self._line_number = line_number

    def __str__(self):
        place = f" ({self._file_name})" if self._file_name else ""
        return f"[{self._module_name}]{place}\n  {self._message}"

    @property
    def message(self):
        return self._message

    @property
    def module_name(self):
        return self._module_name

    @property
    def file_name(self):
        return self._file_name

    @property
    def line_number(self):
        return self._line_number


class _ComponentClassErrorCause(_ErrorCause):
    """Of a component class: `source.ctf.fs`."""

    component_class_type = property(lambda _: ComponentClassType.SOURCE)
    component_class_name = property(lambda _: "fs")
    plugin_name = property(lambda _: "ctf")


class _ComponentErrorCause(_ComponentClassErrorCause):
    """Of a component."""

    component_name = property(lambda _: "fs")


class _MessageIteratorErrorCause(_ComponentErrorCause):
    """Of a message iterator."""

    component_output_port_name = property(lambda _: "out")


class _Error(Exception, collections.abc.Sequence):
    """Something cannot be read; a sequence of its causes."""

    def __init__(self, message, causes=()):
        super().__init__(message)
        self._msg = message
        self._causes = list(causes) or [_ErrorCause(message)]

    def __getitem__(self, index):
        return self._causes[index]

    def __len__(self):
        return len(self._causes)

    def __str__(self):
        lines = [self._msg]
        for number, cause in enumerate(reversed(self._causes)):
            lines.append(("ERROR:    " if number == 0 else "CAUSED BY ") + str(cause))
        return "\n".join(lines)


class _MemoryError(_Error):
    """Raised when an operation fails due to memory issues."""


class _OverflowError(_Error, OverflowError):
    """Raised when a number does not fit."""


class UnknownObject(Exception):
    """Raised when a component class does not know what is queried."""


class TryAgain(Exception):
    """Raised when nothing is there yet."""


class Stop(StopIteration):
    """Raised at the end."""


class _IncompleteUserClass(Exception):
    """Raised when a user's class lacks a method."""
