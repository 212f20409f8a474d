"""Operators of what is a number but no Python number: on its ``_value``."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import math
import numbers


def _extract_value(other):
    """The Python number of anything that is one."""
    value = getattr(other, "_value", other)
    if isinstance(value, bool):
        return value
    if isinstance(other, numbers.Integral):
        return int(other)
    if isinstance(other, numbers.Real):
        return float(other)
    if isinstance(other, numbers.Complex):
        return complex(other)
    raise TypeError(f"'{type(other).__name__}' object is not a number object")


def _binary(operator):
    def forward(self, other):
        return operator(self._value, _extract_value(other))

    def reflected(self, other):
        return operator(_extract_value(other), self._value)

    return forward, reflected


class _Numeric:
    __slots__ = ()

    def __int__(self):
        return int(self._value)

    def __float__(self):
        return float(self._value)

    def __complex__(self):
        return complex(self._value)

    def __bool__(self):
        return bool(self._value)

    def __repr__(self):
        return repr(self._value)

    def __eq__(self, other):
        try:
            return self._value == _extract_value(other)
        except Exception:
            return False

    __hash__ = None

    def __lt__(self, other):
        return self._value < _extract_value(other)

    def __le__(self, other):
        return self._value < _extract_value(other) or self == other

    def __gt__(self, other):
        return not self._value < _extract_value(other) and self != other

    def __ge__(self, other):
        return not self._value < _extract_value(other)

    __add__, __radd__ = _binary(lambda a, b: a + b)
    __sub__, __rsub__ = _binary(lambda a, b: a - b)
    __mul__, __rmul__ = _binary(lambda a, b: a * b)
    __truediv__, __rtruediv__ = _binary(lambda a, b: a / b)
    __floordiv__, __rfloordiv__ = _binary(lambda a, b: a // b)
    __mod__, __rmod__ = _binary(lambda a, b: a % b)
    __divmod__, __rdivmod__ = _binary(divmod)
    __pow__, __rpow__ = _binary(lambda a, b: a**b)

    def __neg__(self):
        return -self._value

    def __pos__(self):
        return +self._value

    def __abs__(self):
        return abs(self._value)

    def __round__(self, ndigits=None):
        return round(self._value) if ndigits is None else round(self._value, ndigits)

    def __ceil__(self):
        return math.ceil(self._value)

    def __floor__(self):
        return math.floor(self._value)

    def __trunc__(self):
        return int(self._value)


class _Integral(_Numeric):
    __slots__ = ()

    __lshift__, __rlshift__ = _binary(lambda a, b: a << b)
    __rshift__, __rrshift__ = _binary(lambda a, b: a >> b)
    __and__, __rand__ = _binary(lambda a, b: a & b)
    __xor__, __rxor__ = _binary(lambda a, b: a ^ b)
    __or__, __ror__ = _binary(lambda a, b: a | b)

    def __invert__(self):
        return ~self._value

    def __index__(self):
        return int(self._value)
