#!/usr/bin/env python3
"""Makes a huge trace that takes little room: real packet headers, holes between them.

    sparse.py OUT [--size 100G] [--packet 1M] [--streams 8] [--events N]

    packet   0          52 bytes                packet size
             | header, context | N event records | hole ............ |
             '-------- content size ------------'

Every packet says truthfully how long its content is, how long it is itself, when it begins and ends, and how many events
were lost, so that the trace is valid and any CTF 1.8 reader may open it.
"""

import argparse
import pathlib
import struct

HEADER = struct.Struct("<IIQQQQQI")
EVENT = struct.Struct("<QI")
MAGIC = 0xC1FC1FC1
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
PACKET_NS = 1_000_000
METADATA = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace {
    major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; };
};
clock { name = sparse; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.sparse.value; } := time;
stream {
    id = 0;
    packet.context := struct {
        time timestamp_begin; time timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num;
        u32 events_discarded;
    };
    event.header := struct { time timestamp; };
};
event { name = "beat"; id = 0; stream_id = 0; fields := struct { u32 number; }; };
"""


def size(text):
    return int(float(text[:-1]) * UNITS[text[-1].upper()]) if text[-1].upper() in UNITS else int(text)


def packet(number, events, packet_bytes):
    """The bytes of a packet up to its hole."""
    begin = number * PACKET_NS
    records = b"".join(EVENT.pack(begin + 1 + at * 1000, at) for at in range(events))
    content = (HEADER.size + len(records)) * 8
    return HEADER.pack(MAGIC, 0, begin, begin + PACKET_NS - 1, content, packet_bytes * 8, number, 0) + records


def stream(path, packets, packet_bytes, events):
    with open(path, "wb") as file:
        for number in range(packets):
            file.seek(number * packet_bytes)
            file.write(packet(number, events, packet_bytes))
        file.truncate(packets * packet_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--size", type=size, default="100G", help="bytes of all streams (default 100G)")
    parser.add_argument("--packet", type=size, default="1M", help="bytes of a packet (default 1M)")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--events", type=int, default=4, help="events in a packet (default 4)")
    arguments = parser.parse_args()
    if HEADER.size + arguments.events * EVENT.size > arguments.packet or arguments.events * 1000 >= PACKET_NS:
        parser.error(f"{arguments.events} events do not fit in a packet")
    arguments.out.mkdir(parents=True)
    (arguments.out / "metadata").write_text(METADATA)
    packets = arguments.size // arguments.packet // arguments.streams
    for number in range(arguments.streams):
        stream(arguments.out / f"stream_{number}", packets, arguments.packet, arguments.events)
    total = packets * arguments.streams
    print(f"{arguments.out}: {total} packets, {total * arguments.events} events, {total * arguments.packet} bytes")


if __name__ == "__main__":
    main()
