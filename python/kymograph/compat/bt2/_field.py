"""Fields. Numbers, texts and structures, which loops meet, are native; here are the others."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import abc
import collections.abc
import numbers

from kymograph._native import bt2 as _native
from kymograph.compat.bt2 import _utils
from kymograph.compat.bt2._numbers import _extract_value

_FieldConst = _native._FieldConst
_NumericFieldConst = _native._NumericFieldConst
_IntegralFieldConst = _native._IntegralFieldConst
_BoolFieldConst = _native._BoolFieldConst
_IntegerFieldConst = _native._IntegerFieldConst
_UnsignedIntegerFieldConst = _native._UnsignedIntegerFieldConst
_SignedIntegerFieldConst = _native._SignedIntegerFieldConst
_UnsignedEnumerationFieldConst = _native._UnsignedEnumerationFieldConst
_SignedEnumerationFieldConst = _native._SignedEnumerationFieldConst
_RealFieldConst = _native._RealFieldConst
_SinglePrecisionRealFieldConst = _native._SinglePrecisionRealFieldConst
_DoublePrecisionRealFieldConst = _native._DoublePrecisionRealFieldConst
_StringFieldConst = _native._StringFieldConst
_StructureFieldConst = _native._StructureFieldConst

numbers.Integral.register(_IntegralFieldConst)
numbers.Real.register(_RealFieldConst)
collections.abc.Mapping.register(_StructureFieldConst)

__all__ = ["_extract_value", "_get_leaf_field"]


class _EnumerationFieldConst(abc.ABC):
    """An enumeration, signed or not."""


_EnumerationFieldConst.register(_UnsignedEnumerationFieldConst)
_EnumerationFieldConst.register(_SignedEnumerationFieldConst)


def _get_leaf_field(field):
    """What an option or a variant holds; anything else itself."""
    if isinstance(field, _VariantFieldConst):
        return _get_leaf_field(field.selected_option)
    if isinstance(field, _OptionFieldConst):
        return _get_leaf_field(field.field)
    return field


class _OtherFieldConst(_utils._Object):
    __slots__ = ("_cls",)
    __hash__ = None

    def __init__(self, cls):
        self._cls = cls

    @property
    def cls(self):
        return self._cls

    def __eq__(self, other):
        return self._spec_eq(_get_leaf_field(other))

    def __repr__(self):
        return self._repr()


class _BitArrayFieldConst(_OtherFieldConst):
    __slots__ = ("_bits",)

    def __init__(self, cls, bits):
        super().__init__(cls)
        self._bits = bits

    @property
    def value_as_integer(self):
        return self._bits

    def _spec_eq(self, other):
        return type(other) is type(self) and self.value_as_integer == other.value_as_integer

    def _repr(self):
        return repr(self._bits)

    def __str__(self):
        return str(self._bits)

    def __len__(self):
        return self.cls.length


class _BlobFieldConst(_OtherFieldConst):
    __slots__ = ("_data",)

    def __init__(self, cls, data):
        super().__init__(cls)
        self._data = data

    @property
    def data(self):
        return memoryview(self._data)

    def __bytes__(self):
        return self._data

    def __len__(self):
        return len(self._data)

    def __getitem__(self, index):
        return self._data[index]

    def _spec_eq(self, other):
        return isinstance(other, (bytes, bytearray, memoryview, _BlobFieldConst)) and self._data == bytes(other)

    def _repr(self):
        return repr(self._data)


class _StaticBlobFieldConst(_BlobFieldConst):
    __slots__ = ()


class _DynamicBlobFieldConst(_BlobFieldConst):
    __slots__ = ()


class _ContainerFieldConst(_OtherFieldConst):
    __slots__ = ()

    def __bool__(self):
        return len(self) != 0

    def __delitem__(self, index):
        raise NotImplementedError

    def __setitem__(self, index, value):
        raise TypeError(f"'{type(self)}' object does not support item assignment")


class _OptionFieldConst(_OtherFieldConst):
    __slots__ = ("_field",)

    def __init__(self, cls, field):
        super().__init__(cls)
        self._field = field

    @property
    def field(self):
        return self._field

    @property
    def has_field(self):
        return self._field is not None

    def _spec_eq(self, other):
        return _get_leaf_field(self) == other

    def __bool__(self):
        return self.has_field

    def __str__(self):
        return str(self._field)

    def _repr(self):
        return repr(self._field)


class _VariantFieldConst(_ContainerFieldConst):
    __slots__ = ("_index", "_option")

    def __init__(self, cls, index, option):
        super().__init__(cls)
        self._index, self._option = index, option

    @property
    def selected_option_index(self):
        return self._index

    @property
    def selected_option(self):
        return self._option

    def __len__(self):
        return len(self.cls)

    def _spec_eq(self, other):
        return _get_leaf_field(self) == other

    def __bool__(self):
        raise NotImplementedError

    def __str__(self):
        return str(self._option)

    def _repr(self):
        return repr(self._option)


class _ArrayFieldConst(_ContainerFieldConst, collections.abc.Sequence):
    __slots__ = ("_elements",)

    def __init__(self, cls, elements):
        super().__init__(cls)
        self._elements = elements

    @property
    def length(self):
        return len(self._elements)

    def __len__(self):
        return len(self._elements)

    def __getitem__(self, index):
        if not isinstance(index, numbers.Integral):
            raise TypeError(f"'{type(index).__name__}' is not an integral number object: invalid index")
        index = int(index)
        if not 0 <= index < len(self):
            raise IndexError(f"{self._NAME} field object index is out of range")
        return self._elements[index]

    def insert(self, index, value):
        raise NotImplementedError

    def _spec_eq(self, other):
        if not isinstance(other, collections.abc.Sequence) or len(self) != len(other):
            return False
        return all(not ours != theirs for ours, theirs in zip(self, other))

    def _repr(self):
        return f"[{', '.join(map(repr, self))}]"


class _StaticArrayFieldConst(_ArrayFieldConst):
    __slots__ = ()
    _NAME = "Const static array"


class _DynamicArrayFieldConst(_ArrayFieldConst):
    __slots__ = ()
    _NAME = "Const dynamic array"
