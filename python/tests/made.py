"""A trace that is made here: as large as one likes, in packets that say their times."""

import pathlib
import struct

import numpy

METADATA = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
stream {
    id = 0;
    packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id; };
    event.header := struct { u32 id; stamp timestamp; };
};
event { id = 0; stream_id = 0; name = tick; fields := struct { u32 number; u32 key; }; };
"""

HEAD = struct.Struct("<IIQQQQI")
EVENT = numpy.dtype([("id", "<u4"), ("timestamp", "<u8"), ("number", "<u4"), ("key", "<u4")])


def packet(number: int, events: int, stream: int) -> bytes:
    """Events that follow those of the packet before; streams take turns."""
    rows = numpy.zeros(events, EVENT)
    rows["number"] = numpy.arange(number * events, (number + 1) * events)
    rows["timestamp"] = rows["number"] * 10 + stream
    rows["key"] = rows["number"] % 7
    body = rows.tobytes()
    bits = (HEAD.size + len(body)) * 8
    stamps = int(rows["timestamp"][0]), int(rows["timestamp"][-1])
    return HEAD.pack(0xC1FC1FC1, 0, *stamps, bits, bits, stream) + body


def made(folder: pathlib.Path, packets: int = 96, events: int = 4096, streams: int = 2) -> str:
    """Writes it."""
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(METADATA)
    for stream in range(streams):
        with open(folder / f"stream_{stream}", "wb") as file:
            for number in range(packets):
                file.write(packet(number, events, stream))
    return str(folder)
