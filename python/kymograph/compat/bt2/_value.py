"""Value objects: parameters, user attributes, environments, what queries answer."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc
import numbers

from kymograph.compat.bt2 import _utils
from kymograph.compat.bt2._numbers import _Integral, _Numeric


class _ValueConst(_utils._Object):
    __slots__ = ("_value",)

    def __init__(self, value):
        self._value = value


class _BoolValueConst(_Integral, _ValueConst, numbers.Integral):
    __slots__ = ()


class _IntegerValueConst(_Integral, _ValueConst, numbers.Integral):
    __slots__ = ()


class _UnsignedIntegerValueConst(_IntegerValueConst):
    __slots__ = ()


class _SignedIntegerValueConst(_IntegerValueConst):
    __slots__ = ()


class _RealValueConst(_Numeric, _ValueConst, numbers.Real):
    __slots__ = ()


class _StringValueConst(collections.abc.Sequence, _ValueConst):
    __slots__ = ()
    __hash__ = None

    @staticmethod
    def _text(value):
        value = value._value if isinstance(value, _StringValueConst) else value
        _utils._check_str(value)
        return value

    def __eq__(self, other):
        try:
            return self._value == self._text(other)
        except Exception:
            return False

    def __lt__(self, other):
        return self._value < self._text(other)

    def __le__(self, other):
        return self._value <= self._text(other)

    def __gt__(self, other):
        return self._value > self._text(other)

    def __ge__(self, other):
        return self._value >= self._text(other)

    def __bool__(self):
        return bool(self._value)

    def __repr__(self):
        return repr(self._value)

    def __str__(self):
        return self._value

    def __getitem__(self, index):
        return self._value[index]

    def __len__(self):
        return len(self._value)

    def __contains__(self, item):
        return self._text(item) in self._value


class _ArrayValueConst(collections.abc.Sequence, _ValueConst):
    __slots__ = ()
    __hash__ = None

    def __eq__(self, other):
        if not isinstance(other, collections.abc.Sequence) or len(self) != len(other):
            return False
        return all(ours == theirs for ours, theirs in zip(self, other))

    def __len__(self):
        return len(self._value)

    def __getitem__(self, index):
        if not isinstance(index, numbers.Integral):
            raise TypeError(f"'{type(index).__name__}' object is not an integral number object: invalid index")
        if not 0 <= int(index) < len(self):
            raise IndexError("array value object index is out of range")
        return self._value[int(index)]

    def __repr__(self):
        return f"[{', '.join(map(repr, self))}]"


class _MapValueConst(collections.abc.Mapping, _ValueConst):
    __slots__ = ()
    __hash__ = None

    def __eq__(self, other):
        if not isinstance(other, collections.abc.Mapping) or len(self) != len(other):
            return False
        return all(key in other and self[key] == other[key] for key in self)

    def __ne__(self, other):
        return not self == other

    def __len__(self):
        return len(self._value)

    def __contains__(self, key):
        _utils._check_str(key)
        return key in self._value

    def __getitem__(self, key):
        if key not in self:
            raise KeyError(key)
        return self._value[key]

    def __iter__(self):
        return iter(self._value)

    def __repr__(self):
        return f"{{{', '.join(f'{key!r}: {value!r}' for key, value in self.items())}}}"


class _Changeable:
    """A value that is assigned anew by its `value`, which cannot be read: the object is its value."""

    __slots__ = ()

    def _set_value(self, value):
        self._value = self._checked(value)

    value = property(fset=_set_value)


class BoolValue(_Changeable, _BoolValueConst):
    __slots__ = ()

    def __init__(self, value=False):
        super().__init__(self._checked(value))

    @staticmethod
    def _checked(value):
        value = value._value if isinstance(value, _BoolValueConst) else value
        if not isinstance(value, bool):
            raise TypeError(f"'{type(value)}' object is not a 'bool', 'BoolValue', or '_BoolValueConst' object")
        return value


class _IntegerValue(_Changeable, _IntegerValueConst):
    __slots__ = ()

    def __init__(self, value=0):
        super().__init__(self._checked(value))

    @classmethod
    def _checked(cls, value):
        if not isinstance(value, numbers.Integral):
            raise TypeError("expecting an integral number object")
        cls._check(int(value))
        return int(value)


class UnsignedIntegerValue(_IntegerValue, _UnsignedIntegerValueConst):
    __slots__ = ()
    _check = staticmethod(_utils._check_uint64)


class SignedIntegerValue(_IntegerValue, _SignedIntegerValueConst):
    __slots__ = ()
    _check = staticmethod(_utils._check_int64)


class RealValue(_Changeable, _RealValueConst):
    __slots__ = ()

    def __init__(self, value=0.0):
        super().__init__(self._checked(value))

    @staticmethod
    def _checked(value):
        if not isinstance(value, numbers.Real):
            raise TypeError("expecting a real number object")
        return float(value)


class StringValue(_Changeable, _StringValueConst):
    __slots__ = ()

    def __init__(self, value=""):
        super().__init__(self._checked(value))

    @classmethod
    def _checked(cls, value):
        return cls._text(value)

    def __iadd__(self, value):
        self.value = self._value + self._text(value)
        return self


class ArrayValue(_ArrayValueConst, collections.abc.MutableSequence):
    __slots__ = ()

    def __init__(self, value=None):
        super().__init__([create_value(each) for each in value or ()])

    def __setitem__(self, index, value):
        self[index]
        self._value[int(index)] = create_value(value)

    def __delitem__(self, index):
        raise NotImplementedError

    def append(self, value):
        self._value.append(create_value(value))

    def insert(self, index, value):
        raise NotImplementedError

    def __iadd__(self, iterable):
        for each in iterable:
            self.append(each)
        return self


class MapValue(_MapValueConst, collections.abc.MutableMapping):
    __slots__ = ()

    def __init__(self, value=None):
        super().__init__({})
        for key, each in (value or {}).items():
            self[key] = each

    def __setitem__(self, key, value):
        _utils._check_str(key)
        self._value[key] = create_value(value)

    def __delitem__(self, key):
        raise NotImplementedError


def _made(value, bool_, signed, unsigned, real, string, array, map_):
    if value is None or isinstance(value, _ValueConst):
        return value
    if isinstance(value, bool):
        return bool_(value)
    if isinstance(value, numbers.Integral):
        return unsigned(value) if unsigned and value >= 2**63 else signed(value)
    if isinstance(value, numbers.Real):
        return real(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, collections.abc.Sequence):
        return array(value)
    if isinstance(value, collections.abc.Mapping):
        return map_(value)
    raise TypeError(f"cannot create value object from '{type(value).__name__}' object")


def create_value(value):
    """A value object of what Python has for the same; `None` is itself."""
    return _made(value, BoolValue, SignedIntegerValue, None, RealValue, StringValue, ArrayValue, MapValue)


def _const(value):
    """The same as objects that do not change."""

    def array(values):
        return _ArrayValueConst([_const(each) for each in values])

    def map_(values):
        return _MapValueConst({key: _const(each) for key, each in values.items()})

    return _made(
        value,
        _BoolValueConst,
        _SignedIntegerValueConst,
        _UnsignedIntegerValueConst,
        _RealValueConst,
        _StringValueConst,
        array,
        map_,
    )
