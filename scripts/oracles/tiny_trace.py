"""Writes tiny CTF 1.8 traces as LTTng's kernel tracer would, of packets and events that are given as values.

    Packet(cpu, begin, end, events=[(time, "sched_switch", {"prev_tid": 0, ...})], discarded=2, sequence=5)
    write(folder, packets)

Integers have 64 bits, fields that are not given are 0, texts "-" (never empty: babeltrace2 2.0.4 gives other texts then).
`discarded`: events lost up to the end of this packet since the trace began; `sequence`: the number of the packet.
"""

import pathlib
import struct

TEXTS = {"comm", "prev_comm", "next_comm", "parent_comm", "child_comm", "name", "filename"}
WAKE = ("comm", "tid", "prio", "target_cpu")
BLOCK = ("dev", "sector", "nr_sector", "rwbs")
CLASSES = {
    "sched_switch": ("prev_comm", "prev_tid", "prev_prio", "prev_state", "next_comm", "next_tid", "next_prio"),
    "sched_waking": WAKE,
    "sched_wakeup": WAKE,
    "sched_wakeup_new": WAKE,
    "sched_process_fork": ("parent_comm", "parent_tid", "parent_pid", "child_comm", "child_tid", "child_pid"),
    "sched_process_exit": ("comm", "tid", "prio"),
    "sched_process_exec": ("filename", "tid", "old_tid"),
    "lttng_statedump_process_state": ("tid", "vtid", "pid", "vpid", "ppid", "vppid", "name"),
    "lttng_statedump_file_descriptor": ("pid", "fd", "flags", "fmode", "filename"),
    "syscall_entry_read": ("fd", "count"),
    "syscall_exit_read": ("ret", "buf"),
    "syscall_entry_write": ("fd", "buf", "count"),
    "syscall_exit_write": ("ret",),
    "syscall_entry_openat": ("dfd", "filename", "flags", "mode"),
    "syscall_exit_openat": ("ret",),
    "syscall_entry_close": ("fd",),
    "syscall_exit_close": ("ret",),
    "syscall_entry_dup2": ("oldfd", "newfd"),
    "syscall_exit_dup2": ("ret",),
    "syscall_entry_socket": ("family", "type", "protocol"),
    "syscall_exit_socket": ("ret",),
    "syscall_entry_fsync": ("fd",),
    "syscall_exit_fsync": ("ret",),
    "syscall_entry_clone": ("clone_flags", "newsp"),
    "syscall_exit_clone": ("ret",),
    "syscall_entry_exit_group": ("error_code",),
    "irq_handler_entry": ("irq", "name"),
    "irq_handler_exit": ("irq", "ret"),
    "irq_softirq_raise": ("vec",),
    "irq_softirq_entry": ("vec",),
    "irq_softirq_exit": ("vec",),
    "block_rq_insert": BLOCK,
    "block_rq_issue": BLOCK,
    "block_rq_complete": BLOCK,
    "net_dev_xmit": ("skbaddr", "len", "rc", "name"),
    "netif_receive_skb": ("skbaddr", "len", "name"),
    "work_begin": ("key", "name"),
    "work_end": ("key",),
}
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
