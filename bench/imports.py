#!/usr/bin/env python3
"""Measures files in other formats and their peers on the same machine in the same run.

    imports.py --kymo KYMO [--rounds 5]

Every round does each job once, in turn; the result is the median over the rounds, process start included, on one core. It
goes to bench/results/imports-MACHINE-DATE.md. The files are made once and kept in $KYMO_BENCH (default
~/.cache/kymograph/bench).

    dump      a Barrelfish dump of 500 MB, 16 cores: all fields to columns in the order of time
    reader    the same by a reader in Python: lines to columns, sorted by time
    capture   pcapng with 1,000,000 packets (TCP and UDP over Ethernet and IPv4): all fields to columns
    tshark    the same by tshark -T fields, of the fields that kymo decodes
"""

import argparse
import datetime
import os
import pathlib
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
KEPT = pathlib.Path(os.environ.get("KYMO_BENCH", pathlib.Path.home() / ".cache/kymograph/bench"))
DUMP_BYTES = 500_000_000
CORES = 16
PACKETS = 1_000_000
# MB/s of the dump; times as fast as tshark.
DUMP_MBS = (150, 400)
CAPTURE_TIMES = (20, 60)
FIELDS = """frame.time_epoch frame.interface_name frame.cap_len frame.len eth.src eth.dst eth.type ip.version ip.src ip.dst ip.proto
ip.ttl ip.len ip.frag_offset tcp.srcport tcp.dstport tcp.seq_raw tcp.ack_raw tcp.flags tcp.window_size_value tcp.len udp.srcport
udp.dstport udp.length""".split()
READER = """
import sys
cores = {}
for line in open(sys.argv[1]):
    if line[0] == "#":
        continue
    words = line.split()
    if len(words) != 3:
        continue
    core, time, value = int(words[0]), int(words[1]), int(words[2], 16)
    columns = cores.setdefault(core, ([], [], [], []))
    columns[0].append(time)
    columns[1].append(value >> 48)
    columns[2].append(value >> 32 & 0xFFFF)
    columns[3].append(value & 0xFFFFFFFF)
import heapq
print(sum(1 for _ in heapq.merge(*(columns[0] for columns in cores.values()))))
"""


def make_dump(path):
    """Lines as trace_dump writes them: switches, timers, system calls, messages; each core by itself."""
    chance = random.Random(1)
    names = ["init", "monitor", "mem_serv", "spawnd", "bench", "skb"]
    dcbs = [[0xFFFFFF8002000000 + core * 0x10000 + number * 0x200 for number in range(len(names))] for core in range(CORES)]
    each = DUMP_BYTES // CORES
    with path.open("w") as file:
        file.write(f"# Start 45163585368 Duration 0 Stop {2**64 - 1}\n# Min_timestamp 45163585368\n")
        for core in range(CORES):
            file.write(f"# Core {core} LOG DUMP {'=' * 50}\n# Offset {core} {core * 37}\n")
            for dcb, name in zip(dcbs[core], names):
                file.write(f"# DCB {core} {dcb:x} {name}\n")
            begin = file.tell()
            time = 45163585368
            while file.tell() - begin < each:
                lines = []
                for _ in range(10_000):
                    time += chance.randrange(20, 3000)
                    kind = chance.random()
                    if kind < 0.3:
                        value = dcbs[core][chance.randrange(len(names))] & 0xFFFFFFFF
                    elif kind < 0.5:
                        value = 1 << 32 | time // 1000 & 0xFFFFFF
                    elif kind < 0.7:
                        value = chance.choice((0x0002_0000, 0x0002_0001, 0x0003_0000, 0x0003_0001)) << 16 | 1
                    else:
                        side = 0xEA00 if kind < 0.85 else 0xEB00
                        value = side << 48 | chance.randrange(1 << 16) << 32 | chance.randrange(1 << 32)
                    lines.append(f"{core} {time} {value:x}\n")
                file.write("".join(lines))


def make_capture(path):
    chance = random.Random(2)

    def block(kind, body):
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHQ", 0x1A2B3C4D, 1, 0, 2**64 - 1)))
        file.write(block(1, struct.pack("<HHI", 1, 0, 1600) + struct.pack("<HH4s", 2, 4, b"eth0")))
        time = 1_700_000_000_000_000
        for number in range(PACKETS):
            time += chance.randrange(1, 200)
            payload = bytes(chance.choice((0, 64, 512, 1400)))
            is_tcp = number % 3 != 0
            ports = struct.pack(">HH", chance.randrange(1024, 65536), 443)
            head = (
                ports + struct.pack(">IIHHHH", number, number // 2, 0x5010, 512, 0, 0)
                if is_tcp
                else ports + struct.pack(">HH", 8 + len(payload), 0)
            )
            source = bytes([10, 0, chance.randrange(4), chance.randrange(1, 255)])
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(head) + len(payload), number & 0xFFFF, 0, 64, 6 if is_tcp else 17, 0, source, bytes([10, 0, 9, 1]))
            data = bytes.fromhex("0200000000010200000000020800") + ip + head + payload
            padded = data + bytes(-len(data) % 4)
            body = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + padded
            file.write(block(6, body))


def made(name, make):
    path = KEPT / name
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        print(f"making {path}", flush=True)
        part = path.with_suffix(".part")
        make(part)
        part.rename(path)
    return str(path)


def jobs(kymo, dump, capture):
    columns = [kymo, "print", "--format", "none", "--threads", "1"]
    fields = [word for field in FIELDS for word in ("-e", field)]
    yield "dump", [*columns, "--clock-frequency", "2.8GHz", dump]
    yield "reader", [sys.executable, "-c", READER, dump]
    yield "capture", [*columns, capture]
    if shutil.which("tshark"):
        yield "tshark", ["tshark", "-n", "-r", capture, "-T", "fields", *fields]
    else:
        print("NOT MEASURED: tshark is not installed", flush=True)


def report(found, sizes, load):
    middle = {name: statistics.median(times) for name, times in found.items()}
    lines = [
        f"# Files in other formats: {run.machine()}, {datetime.date.today()}, load {load:.1f} before the first run",
        "",
        "| job | required | aim | measured |",
        "|---|---|---|---|",
        f"| dump of Barrelfish, {sizes['dump'] / 1e6:.0f} MB, to columns, one core, MB/s | {DUMP_MBS[0]} | {DUMP_MBS[1]} "
        f"| {sizes['dump'] / 1e6 / middle['dump']:.0f} |",
        f"| the same, a reader in Python, MB/s | | | {sizes['dump'] / 1e6 / middle['reader']:.1f} |",
    ]
    if "tshark" in middle:
        lines.append(
            f"| pcapng, {PACKETS:,} packets, {sizes['capture'] / 1e6:.0f} MB, to columns, one core, times as fast as `tshark -T fields` "
            f"| {CAPTURE_TIMES[0]} | {CAPTURE_TIMES[1]} | {middle['tshark'] / middle['capture']:.1f} |"
        )
    lines += ["", "| job | median s | lowest | highest | runs |", "|---|---|---|---|---|"]
    for name, times in found.items():
        lines.append(f"| {name} | {middle[name]:.3f} | {min(times):.3f} | {max(times):.3f} | {len(times)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kymo", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    choice = parser.parse_args()
    load = os.getloadavg()[0]
    dump, capture = made("barrelfish-500MB.trc", make_dump), made("million.pcapng", make_capture)
    sizes = {"dump": os.path.getsize(dump), "capture": os.path.getsize(capture)}
    found = {}
    for number in range(choice.rounds + 1):
        for name, words in jobs(choice.kymo, dump, capture):
            begin = time.monotonic()
            subprocess.run([*run.CORE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
            # The first round only warms the page cache.
            if number:
                found.setdefault(name, []).append(time.monotonic() - begin)
    text = report(found, sizes, load)
    print(text)
    machine = re.sub("[^a-z0-9]+", "-", run.machine().lower()).strip("-")
    (HERE / "results" / f"imports-{machine}-{datetime.date.today()}.md").write_text(text)


if __name__ == "__main__":
    main()
