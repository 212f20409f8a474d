"""Finds the packet and the header of an event in the files of a trace.

The native messages tell neither headers nor the fields of a packet's context that say how the packet is read (its sizes, times
and numbers), which Babeltrace 1 shows like all others. They are read here when a script asks for one of them:

    event ── stream, cycles ──> packets of that time ── decoded once, event by event ──> those of the same cycles and class

Reading them takes much longer than all else that an event has; a loop that does not ask for them does not pay for them.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import bisect
import collections
import mmap
import os

from kymograph.compat.babeltrace._decode import Decoder, EndOfPacket, Selected
from kymograph.compat.babeltrace.common import CTFTypeId

#: So many decoded packets are kept.
_KEPT = 16


class PacketEvent:
    """An event of a packet: its time, its class and its scopes as raw values."""

    __slots__ = ("cycles", "id", "packet", "scopes")

    def __init__(self, packet, cycles, id, scopes):
        self.packet, self.cycles, self.id, self.scopes = packet, cycles, id, scopes


class Packet:
    """A packet's place, header and context."""

    def __init__(self, data, begin, end, stream, scopes, cycles):
        self.data, self.begin, self.end, self.stream, self.scopes = data, begin, end, stream, scopes
        self.begin_cycles, self.end_cycles = cycles
        self.next_bit = None

    def events(self):
        """Its events, as far as they can be read."""
        decoder = Decoder(self.data, self.begin, self.end)
        decoder.at = self.next_bit
        decoder.roots.update(zip(("trace.packet.header", "stream.packet.context"), self.scopes))
        cycles, events = self.begin_cycles or 0, []
        while decoder.at < self.end:
            decoder.clocks = []
            try:
                header = decoder.scope("stream.event.header", self.stream.event_header)
                for value, size in decoder.clocks or _timestamp(header, self.stream):
                    cycles = _extended(cycles, value, size)
                id_ = _event_id(header, self.stream)
                type_ = self.stream.events[id_]
                common = decoder.scope("stream.event.context", self.stream.event_context)
                specific = decoder.scope("event.context", type_.context)
                fields = decoder.scope("event.fields", type_.fields)
            except (EndOfPacket, KeyError):
                break
            events.append(PacketEvent(self, cycles, id_, (*self.scopes, header, common, specific, fields)))
        return events


def _timestamp(header, stream):
    """The header's `timestamp`, which is a time also if no clock is named."""
    for name, type_ in stream.event_header.members if stream.event_header is not None else ():
        if name == "timestamp" and type_.id == CTFTypeId.INTEGER:
            yield header[name], type_.size


def _extended(cycles, value, size):
    """The first clock value not before `cycles` whose lowest bits these are."""
    if size >= 64:
        return value
    lap = 1 << size
    low = cycles & lap - 1
    return cycles - low + value + (lap if value < low else 0)


def _event_id(header, stream):
    """The id that a header tells: that of the selected option of `v` counts more."""
    id_ = next(iter(stream.events)) if len(stream.events) == 1 else 0
    for value in [header, *(each.raw for each in header.values() if isinstance(each, Selected))]:
        if isinstance(value, dict) and "id" in value:
            id_ = int(value["id"])
    return id_


class _FileStream:
    """The packets of one data stream, in the order of time."""

    def __init__(self):
        self.packets = []
        self._begins = None

    def around(self, cycles):
        """The packets whose times the event lies within."""
        if self._begins is None:
            self.packets.sort(key=lambda packet: packet.begin_cycles or 0)
            self._begins = [packet.begin_cycles or 0 for packet in self.packets]
        last = bisect.bisect_right(self._begins, cycles)
        for packet in reversed(self.packets[:last]):
            if packet.end_cycles is None or packet.end_cycles >= cycles:
                yield packet
            elif packet.begin_cycles != cycles:
                return

    def nearest(self, cycles):
        """The packets beside that time, for events that lie outside of the times of their packet."""
        at = bisect.bisect_right(self._begins, cycles)
        return self.packets[max(at - 1, 0) : at + 1]


class PacketFiles:
    """The packets of all data streams of a trace in some folders."""

    def __init__(self, folders, type_):
        self._type = type_
        self._by_path = collections.defaultdict(_FileStream)
        self._by_id = collections.defaultdict(_FileStream)
        self._decoded = collections.OrderedDict()
        for folder in folders:
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                if name != "metadata" and not name.startswith(".") and os.path.isfile(path):
                    self._add_file(path)

    def _add_file(self, path):
        if not os.path.getsize(path):
            return
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        begin, end_of_file = 0, 8 * len(data)
        while begin < end_of_file:
            try:
                packet, size = self._packet(data, begin, end_of_file)
            except (EndOfPacket, KeyError):
                return
            self._by_path[os.path.abspath(path)].packets.append(packet)
            number = packet.scopes[0].get("stream_instance_id")
            if number is not None:
                self._by_id[packet.stream.id, number].packets.append(packet)
            if size <= 0:
                return
            begin += size

    def _packet(self, data, begin, end_of_file):
        decoder = Decoder(data, begin, end_of_file)
        header = decoder.scope("trace.packet.header", self._type.packet_header)
        stream = self._type.streams[header.get("stream_id", next(iter(self._type.streams)))]
        context = decoder.scope("stream.packet.context", stream.packet_context)
        rest = end_of_file - begin
        size = context.get("packet_size", context.get("content_size", rest))
        content = context.get("content_size", size)
        cycles = context.get("timestamp_begin"), context.get("timestamp_end")
        packet = Packet(data, begin, min(begin + content, end_of_file), stream, (header, context), cycles)
        packet.next_bit = decoder.at
        return packet, size

    def _events(self, packet):
        if packet not in self._decoded:
            by_time = collections.defaultdict(list)
            in_order = packet.events()
            for event in in_order:
                by_time[event.cycles, event.id].append(event)
            self._decoded[packet] = (in_order, by_time)
            if len(self._decoded) > _KEPT:
                self._decoded.popitem(last=False)
        else:
            self._decoded.move_to_end(packet)
        return self._decoded[packet]

    def _stream(self, path, key):
        by_id = self._by_id.get(key)
        return by_id if by_id is not None else self._by_path.get(os.path.abspath(path))

    def at_time(self, path, key, cycles, id_):
        """All events of a data stream with these cycles and this class."""
        stream = self._stream(path, key)
        if stream is None:
            return []
        for packets in (stream.around, stream.nearest):
            decoded = [self._events(packet)[1] for packet in packets(cycles)]
            found = [event for by_time in decoded for event in by_time.get((cycles, id_), ())]
            if found:
                return found
        return []

    def at_index(self, path, key, index):
        """The event of a data stream that has so many before it."""
        stream = self._stream(path, key)
        for packet in stream.packets if stream is not None else ():
            events = self._events(packet)[0]
            if index < len(events):
                return [events[index]]
            index -= len(events)
        return []
