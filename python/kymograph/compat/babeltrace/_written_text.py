"""Names, numbers and literals of the metadata that a writer makes."""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import operator
import re

from kymograph.compat.babeltrace.common import ByteOrder, CTFStringEncoding

_KEYWORDS = frozenset(
    """align callsite const char clock double enum env event floating_point float integer int long short signed stream
    string struct trace typealias typedef unsigned variant void _Bool _Complex _Imaginary""".split()
)
LITTLE = {
    ByteOrder.BYTE_ORDER_NATIVE: None,
    ByteOrder.BYTE_ORDER_LITTLE_ENDIAN: True,
    ByteOrder.BYTE_ORDER_BIG_ENDIAN: False,
    ByteOrder.BYTE_ORDER_NETWORK: False,
}
ENCODINGS = {CTFStringEncoding.NONE: "none", CTFStringEncoding.UTF8: "UTF8", CTFStringEncoding.ASCII: "ASCII"}


def is_name(name):
    """Whether each word begins as a name does and none is a keyword of the metadata."""
    words = name.split(" ") if isinstance(name, str) else []
    return any(words) and not any(word in _KEYWORDS for word in words)


def is_identifier(name):
    """Whether metadata can have the name without quotes."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and name not in _KEYWORDS


def unsigned(value):
    """A number of 64 bits."""
    value = operator.index(value)
    if not 0 <= value < 2**64:
        raise OverflowError(f"{value} does not fit in an unsigned integer of 64 bits")
    return value


def quoted(text):
    """A literal of the metadata; other characters than those of ASCII are written as the bytes of UTF-8."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    shown = []
    for character in text:
        if character in escapes:
            shown.append(escapes[character])
        elif " " <= character <= "~":
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape")]
    return f'"{"".join(shown)}"'


def write_only(set_):
    """An attribute that is set and not read."""

    def get(self):
        raise NotImplementedError("Getter not implemented.")

    return property(get, set_, doc=set_.__doc__)
