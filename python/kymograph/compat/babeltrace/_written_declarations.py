"""Declarations of fields that are written: each says how a field lies in a packet, and writes itself as text."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import operator

from kymograph.compat.babeltrace._written_text import ENCODINGS, LITTLE, is_identifier, is_name, quoted, write_only
from kymograph.compat.babeltrace.common import CTFStringEncoding


class IntegerBase:
    """The bases that integers are shown in."""

    INTEGER_BASE_UNKNOWN = -1
    INTEGER_BASE_BINARY = 2
    INTEGER_BASE_OCTAL = 8
    INTEGER_BASE_DECIMAL = 10
    INTEGER_BASE_HEXADECIMAL = 16


_BASES = {2: "binary", 8: "octal", 10: "decimal", 16: "hexadecimal"}


class FieldDeclaration:
    """Base class of all declarations. `None` as byte order is that of the trace."""

    IntegerBase = IntegerBase
    _is_little = None
    _align = 1

    def __init__(self):
        raise TypeError("a declaration is of one of the derived classes")

    @write_only
    def alignment(self, alignment):
        """The alignment in bits: a power of two."""
        alignment = operator.index(alignment)
        if alignment < 0:
            raise OverflowError("an alignment is not negative")
        if alignment == 0 or alignment & (alignment - 1) or not self._may_align(alignment):
            raise ValueError("Invalid alignment value.")
        self._align = alignment

    @write_only
    def byte_order(self, byte_order):
        """The byte order: a constant of `ByteOrder`."""
        if byte_order not in LITTLE:
            raise ValueError("Could not set byte order value.")
        self._set_little(LITTLE[byte_order])

    def _may_align(self, alignment):
        return True

    def _set_little(self, is_little):
        self._is_little = is_little

    def _alignment(self):
        """The alignment of a field in a packet."""
        return self._align

    def _little(self, is_little):
        return is_little if self._is_little is None else self._is_little

    def _problem(self):
        """Why no field can be of this declaration."""
        return None

    def _layout(self, is_little, indent):
        """The alignment and byte order as attributes."""
        return f"align = {self._align};", f"byte_order = {'le' if self._little(is_little) else 'be'};"


class IntegerFieldDeclaration(FieldDeclaration):
    """An integer of 1 to 64 bits."""

    def __init__(self, size):
        size = operator.index(size)
        if size < 0:
            raise OverflowError("a size is not negative")
        if not 1 <= size <= 64:
            raise ValueError("FieldDeclaration creation failed.")
        self._size = size
        self._signed, self._base, self._encoding = False, 10, CTFStringEncoding.NONE

    @write_only
    def signed(self, signed):
        """Whether the integer has a sign."""
        self._signed = bool(operator.index(signed))

    @write_only
    def base(self, base):
        """The base it is shown in: a constant of `IntegerBase`."""
        if base not in _BASES:
            raise ValueError("Could not set base value.")
        self._base = base

    @write_only
    def encoding(self, encoding):
        """The encoding, if the integer is a character: a constant of `CTFStringEncoding`."""
        if encoding not in ENCODINGS:
            raise ValueError("Could not set integer encoding.")
        self._encoding = encoding

    def _text(self, is_little, indent, map_=""):
        align, order = self._layout(is_little, indent)
        return (
            f"integer {{ size = {self._size}; {align} signed = {'true' if self._signed else 'false'};"
            f" encoding = {ENCODINGS[self._encoding]}; base = {_BASES[self._base]}; {order}{map_} }}"
        )

    def _fits(self, value):
        if self._signed:
            return -(1 << self._size - 1) <= value < 1 << self._size - 1
        return value < 1 << self._size


class EnumerationFieldDeclaration(FieldDeclaration):
    """Labels for ranges of an integer."""

    def __init__(self, integer_type):
        if not isinstance(integer_type, IntegerFieldDeclaration):
            raise TypeError("Invalid integer container.")
        self._container = integer_type
        self._mappings = []

    def add_mapping(self, name, range_start, range_end):
        """Give the numbers of a range, both ends included, a label."""
        name, start, end = str(name), operator.index(range_start), operator.index(range_end)
        is_taken = any(name == label or (start <= upper and lower <= end) for label, lower, upper in self._mappings)
        if not name or end < start or is_taken:
            raise ValueError("Could not add mapping to enumeration type.")
        self._mappings.append((name, start, end))

    def _set_little(self, is_little):
        self._container._set_little(is_little)

    def _may_align(self, alignment):
        self._container._align = alignment
        return True

    def _alignment(self):
        return self._container._alignment()

    def _problem(self):
        return None if self._mappings else "an enumeration has labels"

    def _label(self, value):
        return next((label for label, lower, upper in self._mappings if lower <= value <= upper), None)

    def _text(self, is_little, indent):
        ranges = (
            f"{quoted(label)} = {lower}" + (f" ... {upper}" if upper != lower else "")
            for label, lower, upper in self._mappings
        )
        return f"enum : {self._container._text(is_little, indent)} {{ {', '.join(ranges)} }}"


class FloatFieldDeclaration(FieldDeclaration):
    """A number in the formats of IEEE 754, of 32 bits unless its digits are set."""

    FLT_EXP_DIG = 8
    DBL_EXP_DIG = 11
    FLT_MANT_DIG = 24
    DBL_MANT_DIG = 53

    def __init__(self):
        self._exponent, self._mantissa = self.FLT_EXP_DIG, self.FLT_MANT_DIG

    @write_only
    def exponent_digits(self, digits):
        """The bits of the exponent: `FLT_EXP_DIG` or `DBL_EXP_DIG`."""
        if digits not in (self.FLT_EXP_DIG, self.DBL_EXP_DIG):
            raise ValueError("Could not set exponent digit count.")
        self._exponent = digits

    @write_only
    def mantissa_digits(self, digits):
        """The bits of the mantissa: `FLT_MANT_DIG` or `DBL_MANT_DIG`."""
        if digits not in (self.FLT_MANT_DIG, self.DBL_MANT_DIG):
            raise ValueError("Could not set mantissa digit count.")
        self._mantissa = digits

    def _problem(self):
        return None if self._exponent + self._mantissa in (32, 64) else "a floating-point number has 32 or 64 bits"

    def _text(self, is_little, indent):
        align, order = self._layout(is_little, indent)
        return f"floating_point {{ exp_dig = {self._exponent}; mant_dig = {self._mantissa}; {order} {align} }}"


FloatingPointFieldDeclaration = FloatFieldDeclaration


class Members:
    """Named declarations, in their order."""

    def __init__(self):
        self._members = {}
        self._frozen = False

    def _add(self, field_type, field_name, message):
        if not isinstance(field_type, FieldDeclaration):
            raise TypeError("Invalid field_type. Type must be a FieldDeclaration-derived class.")
        name = str(field_name)
        if self._frozen or not is_name(name) or not is_identifier(name) or name in self._members:
            raise ValueError(message)
        self._members[name] = field_type

    def _members_text(self, is_little, indent):
        tabs = "\t" * (indent + 1)
        lines = []
        for name, declaration in self._members.items():
            lengths = ""
            while isinstance(declaration, (ArrayFieldDeclaration, SequenceFieldDeclaration)):
                lengths += f"[{declaration._length}]"
                declaration = declaration._element
            lines.append(f"{tabs}{declaration._text(is_little, indent + 1)} {name}{lengths};\n")
        return "{\n" + "".join(lines) + "\t" * indent + "}"

    def _freeze(self):
        self._frozen = True

    def _problem(self):
        return next(filter(None, (declaration._problem() for declaration in self._members.values())), None)


class StructureFieldDeclaration(Members, FieldDeclaration):
    """Named fields one after another."""

    def add_field(self, field_type, field_name):
        """Add a field at the end."""
        self._add(field_type, field_name, "Could not add field to structure.")

    def _alignment(self):
        return max([self._align, *(declaration._alignment() for declaration in self._members.values())])

    def _text(self, is_little, indent):
        return f"struct {self._members_text(is_little, indent)} align({self._alignment()})"


class VariantFieldDeclaration(Members, FieldDeclaration):
    """One of several fields, which an enumeration with their names as labels selects."""

    def __init__(self, enum_tag, tag_name):
        if not isinstance(enum_tag, EnumerationFieldDeclaration):
            raise TypeError("Invalid tag type; must be of type EnumerationFieldDeclaration.")
        super().__init__()
        self._tag, self._tag_name = enum_tag, str(tag_name)
        if not is_name(self._tag_name):
            raise ValueError("FieldDeclaration creation failed.")

    def add_field(self, field_type, field_name):
        """Add the field that a label of the enumeration selects."""
        labels = [label for label, _, _ in self._tag._mappings]
        if str(field_name) not in labels:
            raise ValueError("Could not add field to variant.")
        self._add(field_type, field_name, "Could not add field to variant.")

    def _may_align(self, alignment):
        return False

    def _problem(self):
        missing = [label for label, _, _ in self._tag._mappings if label not in self._members]
        if not self._members or missing:
            return "a variant has a field for each label of its enumeration"
        return super()._problem()

    def _text(self, is_little, indent):
        return f"variant <{self._tag_name}> {self._members_text(is_little, indent)}"


class ArrayFieldDeclaration(FieldDeclaration):
    """A number of fields of one declaration."""

    def __init__(self, element_type, length):
        length = operator.index(length)
        if length < 0:
            raise OverflowError("a length is not negative")
        if length == 0:
            raise ValueError("FieldDeclaration creation failed.")
        self._element, self._length = element_type, length

    def _alignment(self):
        return self._element._alignment()

    def _may_align(self, alignment):
        return False

    def _problem(self):
        return self._element._problem()


class SequenceFieldDeclaration(FieldDeclaration):
    """As many fields of one declaration as an integer before tells."""

    def __init__(self, element_type, length_field_name):
        self._element, self._length = element_type, str(length_field_name)
        if not is_name(self._length):
            raise ValueError("FieldDeclaration creation failed.")

    def _alignment(self):
        return self._element._alignment()

    def _may_align(self, alignment):
        return False

    def _problem(self):
        return self._element._problem()


class StringFieldDeclaration(FieldDeclaration):
    """Text that ends with a zero byte."""

    _align = 8

    def __init__(self):
        self._encoding = CTFStringEncoding.UTF8

    @write_only
    def encoding(self, encoding):
        """The encoding: `CTFStringEncoding.UTF8` or `CTFStringEncoding.ASCII`."""
        if encoding not in (CTFStringEncoding.UTF8, CTFStringEncoding.ASCII):
            raise ValueError("Could not set string encoding.")
        self._encoding = encoding

    def _may_align(self, alignment):
        return alignment == 8

    def _text(self, is_little, indent):
        return f"string {{ encoding = {ENCODINGS[self._encoding]}; }}"
