"""Checks of arguments, with the words that `bt2` has for what is wrong."""

# mypy: ignore-errors
# As untyped as the interface that it follows.


def _check_bool(value):
    if not isinstance(value, bool):
        raise TypeError(f"'{type(value).__name__}' is not a 'bool' object")


def _check_int(value):
    if not isinstance(value, int):
        raise TypeError(f"'{type(value).__name__}' is not an 'int' object")


def _check_str(value):
    if not isinstance(value, str):
        raise TypeError(f"'{type(value).__name__}' is not a 'str' object")


def _check_type(value, expected):
    if not isinstance(value, expected):
        raise TypeError(f"'{type(value).__name__}' is not a '{expected}' object")


def _check_int64(value):
    _check_int(value)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"expecting a signed 64-bit integral value (got {value})")


def _check_uint64(value):
    _check_int(value)
    if not 0 <= value < 2**64:
        raise ValueError(f"expecting an unsigned 64-bit integral value (got {value})")


def _check_log_level(level):
    _check_int(level)
    if level not in (1, 2, 3, 4, 5, 6, 255):
        raise ValueError(f"'{level}' is not a valid logging level")


class _Object:
    """What Babeltrace shares: it has an address, and is not copied."""

    __slots__ = ()

    @property
    def addr(self):
        return id(self)

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__name__} object @ {hex(self.addr)}>"

    def __copy__(self):
        raise NotImplementedError

    def __deepcopy__(self, memo):
        raise NotImplementedError
