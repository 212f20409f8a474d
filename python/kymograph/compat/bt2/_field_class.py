"""What fields are: classes of fields, ranges of integers, paths to fields."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import collections.abc

from kymograph.compat.bt2 import _utils
from kymograph.compat.bt2._value import _const


class IntegerDisplayBase:
    BINARY = 2
    OCTAL = 8
    DECIMAL = 10
    HEXADECIMAL = 16


class FieldPathScope:
    PACKET_CONTEXT = 0
    EVENT_COMMON_CONTEXT = 1
    EVENT_SPECIFIC_CONTEXT = 2
    EVENT_PAYLOAD = 3


_SCOPES = {
    "packet_context": FieldPathScope.PACKET_CONTEXT,
    "event_common_context": FieldPathScope.EVENT_COMMON_CONTEXT,
    "event_specific_context": FieldPathScope.EVENT_SPECIFIC_CONTEXT,
    "event_payload": FieldPathScope.EVENT_PAYLOAD,
}


class _IntegerRangeConst:
    def __init__(self, lower, upper=None):
        self._check_type(lower)
        upper = lower if upper is None else upper
        self._check_type(upper)
        if lower > upper:
            raise ValueError(f"range's lower bound ({lower}) is greater than its upper bound ({upper})")
        self._lower, self._upper = lower, upper

    @property
    def lower(self):
        return self._lower

    @property
    def upper(self):
        return self._upper

    def contains(self, value):
        self._check_type(value)
        return self._lower <= value <= self._upper

    def __eq__(self, other):
        if not isinstance(other, _IntegerRangeConst):
            return False
        return self.lower == other.lower and self.upper == other.upper

    __hash__ = None


class _SignedIntegerRangeConst(_IntegerRangeConst):
    _check_type = staticmethod(_utils._check_int64)


class SignedIntegerRange(_SignedIntegerRangeConst):
    pass


class _UnsignedIntegerRangeConst(_IntegerRangeConst):
    _check_type = staticmethod(_utils._check_uint64)


class UnsignedIntegerRange(_UnsignedIntegerRangeConst):
    pass


class _IntegerRangeSetConst(_utils._Object, collections.abc.Set):
    def __init__(self, ranges):
        self._ranges = [self._range_pycls(lower, upper) for lower, upper in ranges]

    def __len__(self):
        return len(self._ranges)

    def __contains__(self, other):
        return any(each == other for each in self)

    def __iter__(self):
        return iter(self._ranges)

    def __eq__(self, other):
        if not isinstance(other, _IntegerRangeSetConst):
            return False
        return sorted((each.lower, each.upper) for each in self) == sorted((each.lower, each.upper) for each in other)

    __hash__ = None

    def contains_value(self, value):
        return any(each.contains(value) for each in self)


class _SignedIntegerRangeSetConst(_IntegerRangeSetConst):
    _range_pycls = _SignedIntegerRangeConst


class _UnsignedIntegerRangeSetConst(_IntegerRangeSetConst):
    _range_pycls = _UnsignedIntegerRangeConst


class _RangeSet(collections.abc.MutableSet):
    def __init__(self, ranges=None):
        super().__init__(())
        for each in ranges or ():
            self.add(each)

    def add(self, each):
        if type(each) is not self._range_pycls:
            each = self._range_pycls(each) if isinstance(each, int) else self._range_pycls(each[0], each[1])
        self._ranges.append(each)

    def discard(self, each):
        raise NotImplementedError


class SignedIntegerRangeSet(_RangeSet, _SignedIntegerRangeSetConst):
    _range_pycls = SignedIntegerRange
    __hash__ = None


class UnsignedIntegerRangeSet(_RangeSet, _UnsignedIntegerRangeSetConst):
    _range_pycls = UnsignedIntegerRange
    __hash__ = None


class _IndexFieldPathItem:
    def __init__(self, index):
        self._index = index

    @property
    def index(self):
        return self._index


class _CurrentArrayElementFieldPathItem:
    pass


class _CurrentOptionContentFieldPathItem:
    pass


class _FieldPathConst(_utils._Object, collections.abc.Iterable):
    def __init__(self, scope, steps):
        self._scope, self._steps = _SCOPES[scope], steps

    @property
    def root_scope(self):
        return self._scope

    def __len__(self):
        return len(self._steps)

    def __iter__(self):
        for step in self._steps:
            if step == "element":
                yield _CurrentArrayElementFieldPathItem()
            elif step == "content":
                yield _CurrentOptionContentFieldPathItem()
            else:
                yield _IndexFieldPathItem(step)


class _FieldClassConst(_utils._Object):
    """What all have. ``_children`` are the classes of a field's parts, in their order."""

    _children = ()

    def __init__(self, said):
        self._said = said

    @property
    def user_attributes(self):
        return _const(self._said["attributes"] or {})

    def _path(self):
        path = self._said["path"]
        return None if path is None else _FieldPathConst(*path)


class _BoolFieldClassConst(_FieldClassConst):
    pass


class _BitArrayFieldClassConst(_FieldClassConst):
    @property
    def length(self):
        return self._said["length"]


class _IntegerFieldClassConst(_FieldClassConst):
    @property
    def field_value_range(self):
        return self._said["range"]

    @property
    def preferred_display_base(self):
        return self._said["base"]


class _UnsignedIntegerFieldClassConst(_IntegerFieldClassConst):
    _range_set = _UnsignedIntegerRangeSetConst


class _SignedIntegerFieldClassConst(_IntegerFieldClassConst):
    _range_set = _SignedIntegerRangeSetConst


class _RealFieldClassConst(_FieldClassConst):
    pass


class _SinglePrecisionRealFieldClassConst(_RealFieldClassConst):
    pass


class _DoublePrecisionRealFieldClassConst(_RealFieldClassConst):
    pass


class _EnumerationFieldClassMapping:
    def __init__(self, label, ranges):
        self._label, self._ranges = label, ranges

    @property
    def label(self):
        return self._label

    @property
    def ranges(self):
        return self._ranges


class _EnumerationFieldClassConst(_IntegerFieldClassConst, collections.abc.Mapping):
    __hash__ = object.__hash__

    def __init__(self, said):
        super().__init__(said)
        ranges_of = {}
        for label, ranges in said["mappings"]:
            ranges_of.setdefault(label, []).extend(ranges)
        self._ranges_of = ranges_of
        self._labels = {}

    def _labels_of(self, value):
        """The labels that a value has. Few values are met again and again."""
        labels = self._labels.get(value)
        if labels is None:
            labels = [
                label
                for label, ranges in self._ranges_of.items()
                if any(lower <= value <= upper for lower, upper in ranges)
            ]
            if len(self._labels) < 4096:
                self._labels[value] = labels
        return list(labels)

    def _mapping(self, label):
        return self._mapping_pycls(label, self._range_set(self._ranges_of[label]))

    def __len__(self):
        return len(self._ranges_of)

    def __iter__(self):
        return iter(self._ranges_of)

    def __getitem__(self, label):
        _utils._check_str(label)
        if label not in self._ranges_of:
            raise KeyError(label)
        return self._mapping(label)

    def __eq__(self, other):
        return self is other

    def mappings_for_value(self, value):
        self._check_int_type(value)
        return [self._mapping(label) for label in self._labels_of(value)]


class _UnsignedEnumerationFieldClassMappingConst(_EnumerationFieldClassMapping):
    pass


class _SignedEnumerationFieldClassMappingConst(_EnumerationFieldClassMapping):
    pass


class _UnsignedEnumerationFieldClassConst(_EnumerationFieldClassConst, _UnsignedIntegerFieldClassConst):
    _mapping_pycls = _UnsignedEnumerationFieldClassMappingConst
    _check_int_type = staticmethod(_utils._check_uint64)


class _SignedEnumerationFieldClassConst(_EnumerationFieldClassConst, _SignedIntegerFieldClassConst):
    _mapping_pycls = _SignedEnumerationFieldClassMappingConst
    _check_int_type = staticmethod(_utils._check_int64)


class _StringFieldClassConst(_FieldClassConst):
    pass


class _BlobFieldClassConst(_FieldClassConst):
    @property
    def media_type(self):
        return self._said["media_type"]


class _StaticBlobFieldClassConst(_BlobFieldClassConst):
    @property
    def length(self):
        return self._said["length"]


class _DynamicBlobFieldClassConst(_BlobFieldClassConst):
    @property
    def length_field_path(self):
        return self._path()


class _Named:
    """A member of a structure, or an option of a variant."""

    def __init__(self, name, field_class):
        self._name, self._field_class = name, field_class

    @property
    def name(self):
        return self._name

    @property
    def field_class(self):
        return self._field_class

    @property
    def user_attributes(self):
        return _const({})


class _StructureFieldClassMemberConst(_Named):
    pass


class _MappingFieldClass(_FieldClassConst, collections.abc.Mapping):
    __hash__ = object.__hash__

    def __len__(self):
        return len(self._parts)

    def __iter__(self):
        return iter([part.name for part in self._parts])

    def __getitem__(self, key):
        if not isinstance(key, str):
            raise TypeError(f"key must be a 'str' object, got '{type(key).__name__}'")
        for part in self._parts:
            if part.name == key:
                return part
        raise KeyError(key)

    def __eq__(self, other):
        return self is other or collections.abc.Mapping.__eq__(self, other)

    def _at_index(self, index):
        _utils._check_uint64(index)
        if index >= len(self):
            raise IndexError
        return self._parts[index]


class _StructureFieldClassConst(_MappingFieldClass):
    def __init__(self, said):
        super().__init__(said)
        self._parts = [_StructureFieldClassMemberConst(name, _made(member)) for name, member in said["members"]]
        self._children = tuple(part.field_class for part in self._parts)

    def member_at_index(self, index):
        return self._at_index(index)


class _OptionFieldClassConst(_FieldClassConst):
    def __init__(self, said):
        super().__init__(said)
        self._children = (_made(said["content"]),)

    @property
    def field_class(self):
        return self._children[0]


class _OptionWithSelectorFieldClassConst(_OptionFieldClassConst):
    @property
    def selector_field_path(self):
        return self._path()


class _OptionWithBoolSelectorFieldClassConst(_OptionWithSelectorFieldClassConst):
    @property
    def selector_is_reversed(self):
        return False


class _OptionWithIntegerSelectorFieldClassConst(_OptionWithSelectorFieldClassConst):
    @property
    def ranges(self):
        return self._range_set(self._said["ranges"])


class _OptionWithUnsignedIntegerSelectorFieldClassConst(_OptionWithIntegerSelectorFieldClassConst):
    _range_set = _UnsignedIntegerRangeSetConst


class _OptionWithSignedIntegerSelectorFieldClassConst(_OptionWithIntegerSelectorFieldClassConst):
    _range_set = _SignedIntegerRangeSetConst


class _VariantFieldClassOptionConst(_Named):
    pass


class _VariantFieldClassWithIntegerSelectorOptionConst(_VariantFieldClassOptionConst):
    def __init__(self, name, field_class, ranges):
        super().__init__(name, field_class)
        self._ranges = ranges

    @property
    def ranges(self):
        return self._ranges


class _VariantFieldClassConst(_MappingFieldClass):
    def __init__(self, said):
        super().__init__(said)
        self._parts = [self._option(name, _made(option), ranges) for name, option, ranges in said["options"]]
        self._children = tuple(part.field_class for part in self._parts)

    @staticmethod
    def _option(name, field_class, ranges):
        return _VariantFieldClassOptionConst(name, field_class)

    def option_at_index(self, index):
        return self._at_index(index)


class _VariantFieldClassWithoutSelectorConst(_VariantFieldClassConst):
    pass


class _VariantFieldClassWithIntegerSelectorConst(_VariantFieldClassConst):
    def _option(self, name, field_class, ranges):
        return _VariantFieldClassWithIntegerSelectorOptionConst(name, field_class, self._range_set(ranges))

    @property
    def selector_field_path(self):
        return self._path()


class _VariantFieldClassWithUnsignedIntegerSelectorConst(_VariantFieldClassWithIntegerSelectorConst):
    _range_set = _UnsignedIntegerRangeSetConst


class _VariantFieldClassWithSignedIntegerSelectorConst(_VariantFieldClassWithIntegerSelectorConst):
    _range_set = _SignedIntegerRangeSetConst


class _ArrayFieldClassConst(_FieldClassConst):
    def __init__(self, said):
        super().__init__(said)
        self._children = (_made(said["element"]),)

    @property
    def element_field_class(self):
        return self._children[0]


class _StaticArrayFieldClassConst(_ArrayFieldClassConst):
    @property
    def length(self):
        return self._said["length"]


class _DynamicArrayFieldClassConst(_ArrayFieldClassConst):
    pass


class _DynamicArrayWithLengthFieldFieldClassConst(_DynamicArrayFieldClassConst):
    @property
    def length_field_path(self):
        return self._path()


def _variant(said):
    if said["path"] is None:
        return _VariantFieldClassWithoutSelectorConst(said)
    if said["signed"]:
        return _VariantFieldClassWithSignedIntegerSelectorConst(said)
    return _VariantFieldClassWithUnsignedIntegerSelectorConst(said)


def _option(said):
    if said["path"] is None:
        return _OptionFieldClassConst(said)
    if said["ranges"] is None:
        return _OptionWithBoolSelectorFieldClassConst(said)
    if said["signed"]:
        return _OptionWithSignedIntegerSelectorFieldClassConst(said)
    return _OptionWithUnsignedIntegerSelectorFieldClassConst(said)


def _dynamic_array(said):
    if said["path"] is None:
        return _DynamicArrayFieldClassConst(said)
    return _DynamicArrayWithLengthFieldFieldClassConst(said)


_KINDS = {
    "bool": _BoolFieldClassConst,
    "bit_array": _BitArrayFieldClassConst,
    "unsigned_integer": _UnsignedIntegerFieldClassConst,
    "signed_integer": _SignedIntegerFieldClassConst,
    "unsigned_enumeration": _UnsignedEnumerationFieldClassConst,
    "signed_enumeration": _SignedEnumerationFieldClassConst,
    "single_real": _SinglePrecisionRealFieldClassConst,
    "double_real": _DoublePrecisionRealFieldClassConst,
    "string": _StringFieldClassConst,
    "static_blob": _StaticBlobFieldClassConst,
    "dynamic_blob": _DynamicBlobFieldClassConst,
    "structure": _StructureFieldClassConst,
    "static_array": _StaticArrayFieldClassConst,
    "dynamic_array": _dynamic_array,
    "option": _option,
    "variant": _variant,
}


def _made(said):
    """The class of what is said of it; `None` of nothing."""
    return None if said is None else _KINDS[said["kind"]](said)
