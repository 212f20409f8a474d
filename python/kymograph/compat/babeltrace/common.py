"""Constants that reading and writing share."""

# mypy: ignore-errors
# As untyped as the interface that it follows.


def _name_of(constants, value, otherwise):
    """The name of the constant that has this value."""
    for name, constant in vars(constants).items():
        if isinstance(constant, int) and constant == value:
            return name
    return otherwise


class CTFStringEncoding:
    """The encodings of text."""

    NONE = 0
    UTF8 = 1
    ASCII = 2
    UNKNOWN = 3


class ByteOrder:
    """The byte orders. Reading tells little, big or unknown; writing takes native, little, big or network."""

    BYTE_ORDER_NATIVE = 0
    BYTE_ORDER_LITTLE_ENDIAN = 1
    BYTE_ORDER_BIG_ENDIAN = 2
    BYTE_ORDER_NETWORK = 3
    BYTE_ORDER_UNKNOWN = 4


class CTFTypeId:
    """The types of fields."""

    UNKNOWN = 0
    INTEGER = 1
    FLOAT = 2
    ENUM = 3
    STRING = 4
    STRUCT = 5
    UNTAGGED_VARIANT = 6
    VARIANT = 7
    ARRAY = 8
    SEQUENCE = 9
    NR_CTF_TYPES = 10

    @staticmethod
    def type_name(id):
        """The name of a type."""
        return _name_of(CTFTypeId, id, "UNKNOWN_TYPE")


class CTFScope:
    """The places where the fields of an event are."""

    TRACE_PACKET_HEADER = 0
    STREAM_PACKET_CONTEXT = 1
    STREAM_EVENT_HEADER = 2
    STREAM_EVENT_CONTEXT = 3
    EVENT_CONTEXT = 4
    EVENT_FIELDS = 5

    @staticmethod
    def scope_name(scope):
        """The name of a scope."""
        return _name_of(CTFScope, scope, "UNKNOWN_SCOPE")


class ClockType:
    """The units of times."""

    CLOCK_CYCLES = 0
    CLOCK_REAL = 1


#: The order in which a field's name is looked up.
_SCOPES = (
    CTFScope.EVENT_FIELDS,
    CTFScope.EVENT_CONTEXT,
    CTFScope.STREAM_EVENT_CONTEXT,
    CTFScope.STREAM_EVENT_HEADER,
    CTFScope.STREAM_PACKET_CONTEXT,
    CTFScope.TRACE_PACKET_HEADER,
)

#: The value that stands for an unknown time.
_NO_TIME = 2**64 - 1


class FieldError(Exception):
    """Raised when a field's value cannot be told."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return repr(self.value)
