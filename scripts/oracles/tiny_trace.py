"""Writes tiny CTF 1.8 traces as LTTng's kernel tracer would, of packets and events that are given as values.

    Packet(cpu, begin, end, events=[(time, "sched_switch", {"prev_tid": 0, ...})], discarded=2, sequence=5)
    write(folder, packets)

Integers have 64 bits, fields that are not given are 0, texts "-" (never empty: babeltrace2 2.0.4 gives other texts then).
`discarded`: events lost up to the end of this packet since the trace began; `sequence`: the number of the packet.
"""

import pathlib
import struct

EVENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "analyses" / "events.txt"


def classes():
    """Fields of each class of events, as events.txt lists them."""
    lines = EVENTS.read_text().split("\n\n", 1)[1].splitlines()
    return {name: fields for name, *fields in map(str.split, lines)}


TEXTS = {field[:-1] for fields in classes().values() for field in fields if field.endswith("$")}
CLASSES = {name: tuple(field.removesuffix("$") for field in fields) for name, fields in classes().items()}
NUMBERS = {name: number for number, name in enumerate(CLASSES)}
PACKET_CONTEXT = ("timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded")
MAGIC = 0xC1FC1FC1


class Packet:
    """What one packet holds."""

    def __init__(self, cpu, begin, end, events=(), discarded=0, sequence=None):
        self.cpu, self.begin, self.end, self.events = cpu, begin, end, list(events)
        self.discarded, self.sequence = discarded, sequence


def metadata():
    """The trace class, in TSDL."""
    context = "".join(f" u64 {name};" for name in PACKET_CONTEXT)
    lines = [
        "/* CTF 1.8 */",
        "typealias integer { size = 64; align = 8; signed = false; } := u64;",
        "typealias integer { size = 64; align = 8; signed = true; } := i64;",
        "typealias integer { size = 32; align = 8; signed = false; } := u32;",
        "typealias integer { size = 16; align = 8; signed = false; } := u16;",
        "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };",
        'env { domain = "kernel"; sysname = "Linux"; kernel_release = "4.4.0"; tracer_name = "lttng-modules"; '
        "tracer_major = 2; tracer_minor = 13; tracer_patchlevel = 0; };",
        "clock { name = monotonic; freq = 1000000000; };",
        "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time64;",
        "stream { id = 0; packet.context := struct {"
        + context.replace("u64 timestamp", "time64 timestamp")
        + " u32 cpu_id; }; event.header := struct { u16 id; time64 timestamp; }; };",
    ]
    for name, fields in CLASSES.items():
        members = "".join(f" string _{field};" if field in TEXTS else f" i64 _{field};" for field in fields)
        lines.append(f'event {{ name = "{name}"; id = {NUMBERS[name]}; stream_id = 0; fields := struct {{{members} }}; }};')
    return "\n".join(lines) + "\n"


def event_bytes(time, name, values):
    unknown = set(values) - set(CLASSES[name])
    if unknown:
        raise ValueError(f"{name} has no {unknown}")
    data = struct.pack("<HQ", NUMBERS[name], time)
    for field in CLASSES[name]:
        if field in TEXTS:
            data += str(values.get(field, "-")).encode() + b"\0"
        else:
            data += struct.pack("<q", values.get(field, 0))
    return data


def packet_bytes(packet, sequence):
    events = b"".join(event_bytes(*event) for event in packet.events)
    head = struct.calcsize("<IIQQQQQQI")
    bits = (head + len(events)) * 8
    times = packet.begin, packet.end, bits, bits, sequence, packet.discarded
    return struct.pack("<IIQQQQQQI", MAGIC, 0, *times, packet.cpu) + events


def write(folder, packets):
    """Makes a trace of packets, those of each CPU in order."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text(metadata())
    for cpu in sorted({packet.cpu for packet in packets}):
        data, next_sequence = b"", 0
        for packet in packets:
            if packet.cpu == cpu:
                sequence = next_sequence if packet.sequence is None else packet.sequence
                next_sequence = sequence + 1
                data += packet_bytes(packet, sequence)
        (folder / f"channel0_{cpu}").write_bytes(data)
