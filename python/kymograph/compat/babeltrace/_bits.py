"""Writes values of types into the bits of packets."""

# mypy: ignore-errors
# As untyped as the interface that it follows.


class BitWriter:
    """Bits in a growing buffer. In little-endian integers, the first bit is the lowest of a byte; in others the highest."""

    def __init__(self):
        self._bytes = bytearray()
        self._count = 0

    def __len__(self):
        return self._count

    def __bytes__(self):
        return bytes(self._bytes)

    def align(self, bits):
        """Zeros up to the next multiple of so many bits."""
        self._count += -self._count % bits
        self._grow()

    def _grow(self):
        self._bytes.extend(bytes((self._count + 7) // 8 - len(self._bytes)))

    def integer(self, value, size, is_little):
        """The lowest bits of a number."""
        begin, self._count = self._count, self._count + size
        self._grow()
        first, last = begin // 8, (self._count + 7) // 8
        value &= (1 << size) - 1
        order = "little" if is_little else "big"
        shift = begin % 8 if is_little else -self._count % 8
        there = int.from_bytes(self._bytes[first:last], order)
        self._bytes[first:last] = (there | value << shift).to_bytes(last - first, order)

    def data(self, data):
        """Whole bytes."""
        self.align(8)
        self._bytes += data
        self._count += 8 * len(data)

    def overwrite(self, at, value, size, is_little):
        """An integer of whole bytes that was written before."""
        self._bytes[at // 8 : (at + size) // 8] = value.to_bytes(size // 8, "little" if is_little else "big")
