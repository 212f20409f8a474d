#!/usr/bin/env python3
"""Measures kymo on a trace that is not in the page cache, against the disk's own rate.

    cold.py KYMO TRACE [--runs 5] [--threads 2]

Before each run the trace's pages are given back (posix_fadvise), and how much of it is resident is checked with
mincore. The disk's rate is that of as many readers as kymo has threads, with 1 MiB reads, over the same files, in turn
with kymo: a slow minute of the disk hits both.
"""

import argparse
import ctypes
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

PAGE = mmap.PAGESIZE
READ = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def streams(trace):
    return [path for path in sorted(pathlib.Path(trace).rglob("*")) if path.is_file() and path.stat().st_size]


def resident(path):
    """The share of a file's pages that is in memory."""
    size = path.stat().st_size
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as pages:
        found = (ctypes.c_ubyte * -(-size // PAGE))()
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), found):
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(page & 1 for page in found) / len(found)


def forget(files):
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    kept = max(resident(path) for path in files)
    if kept > 0.01:
        sys.exit(f"{kept:.0%} of a file stay in memory: the page cache cannot be emptied here")


def read_all(files, readers):
    """Reads the files with as many threads, each file by one of them."""
    left, lock = sorted(files, key=lambda path: path.stat().st_size), threading.Lock()

    def read():
        buffer = bytearray(READ)
        while True:
            with lock:
                if not left:
                    return
                path = left.pop()
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    threads = [threading.Thread(target=read) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kymo")
    parser.add_argument("trace")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    files = streams(arguments.trace)
    size = sum(path.stat().st_size for path in files)
    threads = ["--threads", str(arguments.threads), arguments.trace]
    jobs = {
        "the disk": lambda: read_all(files, arguments.threads),
        "count by class": lambda: subprocess.run([arguments.kymo, "count", *threads], stdout=subprocess.DEVNULL),
        "all fields, time order": lambda: subprocess.run([arguments.kymo, "print", "--format", "none", *threads]),
    }
    taken = {job: [] for job in jobs}
    for _ in range(arguments.runs):
        for job, run in jobs.items():
            forget(files)
            start = time.monotonic()
            run()
            taken[job].append(size / (time.monotonic() - start) / 1e6)
    disk = statistics.median(taken["the disk"])
    print(f"{size / 1e6:.0f} MB, {arguments.threads} threads, medians of {arguments.runs} runs")
    for job, rates in taken.items():
        rate = statistics.median(rates)
        print(f"| {job} | {rate:.0f} MB/s | {rate / disk:.2f} of the disk's rate |")


if __name__ == "__main__":
    main()
