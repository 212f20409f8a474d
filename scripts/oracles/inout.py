"""Oracle of `kymo io`: who read and wrote how much of what. See docs/analyses.md, section 5.

    inout.py TRACE
"""

import sys
from collections import defaultdict

import block
from events import Trace
from figures import Answer, percentiles, statistics
from syscalls import Calls, call_of, errno_of, kind_of, signed
from threads import UNKNOWN, WANTED, Replay

DISK, NET, UNSURE = "disk", "net", "unknown"
OPEN_PATH = {"open", "openat", "openat2", "creat"}
OPEN_OTHER = {"socket", "accept", "accept4", "dup", "dup2", "dup3", "pipe", "pipe2", "socketpair", "fcntl", "fcntl64"}
READ = {"read", "readv", "pread64", "preadv", "preadv2", "recv", "recvfrom", "recvmsg"}
WRITE = {"write", "writev", "pwrite64", "pwritev", "pwritev2", "send", "sendto", "sendmsg"}
BOTH = {
    "splice": ("fd_in", "fd_out"),
    "copy_file_range": ("fd_in", "fd_out"),
    "sendfile": ("in_fd", "out_fd"),
    "sendfile64": ("in_fd", "out_fd"),
}
SYNC = {"sync", "syncfs", "fsync", "fdatasync", "sync_file_range", "sync_file_range2"}
DUPLICATED = {"dup": "fildes", "dup2": "oldfd", "dup3": "oldfd", "fcntl": "fd", "fcntl64": "fd"}
DUPLICATE_COMMANDS = (0, 1030)
CLOSE_ON_EXEC = 0x80000
ENTRY_FIELDS = ("id", "fd", "filename", "pathname", "flags", "type", "family", "cmd", "fildes", "oldfd")
ENTRY_FIELDS += ("fd_in", "fd_out", "in_fd", "out_fd")
OTHERS = {
    "lttng_statedump_file_descriptor": ("pid", "file_table_address", "fd", "filename"),
    "sched_process_exec": ("tid", "pid"),
    "net_dev_xmit": ("len", "name"),
    "netif_receive_skb": ("len", "name"),
}
COUNTS = ("read", "write", "reads", "writes", "opens", "syncs", "errors")
KINDS = [f"{way}_{kind}" for way in ("read", "write") for kind in (DISK, NET, UNSURE)]


class File:
    """What an fd is."""

    __slots__ = ("path", "kind", "closes_on_exec")

    def __init__(self, path, kind, closes_on_exec=False):
        self.path, self.kind, self.closes_on_exec = path, kind, closes_on_exec


def is_named(name):
    """Whether a call is about files."""
    return name in OPEN_PATH | OPEN_OTHER | READ | WRITE | SYNC or name in BOTH


def wanted(name):
    for table in (WANTED, OTHERS, block.WANTED):
        if name in table:
            return table[name]
    kind, _ = kind_of(name)
    return {"entry": ENTRY_FIELDS, "exit": ("ret", "fildes", "id"), None: None}[kind]


class Usage:
    """Files, bytes and operations, one event after the other."""

    def __init__(self, trace, replay):
        self.replay = replay
        self.tables = defaultdict(dict)
        self.pid_by_address = {}
        self.entered = {}
        self.threads = defaultdict(lambda: defaultdict(int))
        self.files = defaultdict(lambda: defaultdict(int))
        self.latencies = defaultdict(list)
        self.interfaces = defaultdict(lambda: defaultdict(int))
        self.calls = Calls(trace, replay, self.ended)

    def process_of(self, thread):
        """Whose fds a thread uses: a pid, or the thread itself."""
        return self.replay.pids.get(thread, thread)

    def _join(self):
        """Threads whose process has just been said bring what they have."""
        for thread in [key for key in self.tables if isinstance(key, tuple) and key in self.replay.pids]:
            whole = self.tables[self.replay.pids[thread]]
            for fd, file in self.tables.pop(thread).items():
                whole.setdefault(fd, file)

    def step(self, event, happenings):
        if event.name in WANTED:
            self._join()
        kind, name = call_of(event)
        if kind == "entry" and (is_named(name) or name == "close"):
            self._entry(event, name)
        if kind is None or is_named(name) or (kind == "exit" and not name):
            self.calls.step(event, happenings)
        for what in happenings:
            if what[0] == "forked" and "child_tid" in event.fields:
                child, parent = event.get("child_pid"), event.get("parent_pid")
                if child != parent:
                    self.tables[child] = dict(self.tables[parent])
        if event.name == "lttng_statedump_process_state" and event.get("file_table_address"):
            self.pid_by_address[event.get("file_table_address")] = event.get("pid")
        elif event.name == "lttng_statedump_file_descriptor":
            path, pid, address = event.get("filename"), event.get("pid"), event.get("file_table_address")
            # Since LTTng 2.12 it names the process's table of files instead; a `pid` is one of the context then.
            if address is not None:
                pid = self.pid_by_address.get(address)
            if pid is not None:
                self.tables[pid][event.get("fd")] = File(path, DISK if path.startswith("/") else UNSURE)
        elif event.name == "sched_process_exec":
            self._exec(event)
        elif event.name in ("net_dev_xmit", "netif_receive_skb"):
            interface = self.interfaces[event.get("name")]
            way = "sent" if event.name == "net_dev_xmit" else "received"
            interface[way] += 1
            interface[way + "_bytes"] += event.get("len")

    def _exec(self, event):
        table = self.tables[self.process_of(self.replay.thread_of(event))]
        for fd in [fd for fd, file in table.items() if file.closes_on_exec]:
            del table[fd]

    def _entry(self, event, name):
        process = self.process_of(self.replay.thread_of(event))
        table = self.tables[process]
        files = {}
        for field in ("fd", "fd_in", "fd_out", "in_fd", "out_fd"):
            fd = event.get(field)
            if fd is not None:
                files[field] = table.get(fd) or (fd, process)
        self.entered[event] = files
        if name == "close":
            table.pop(event.get("fd"), None)

    def ended(self, thread, kind, name, entry, exit):
        if exit is None or not name:
            return
        ret = signed(exit.get("ret"))
        files = self.entered.pop(entry, {}) if entry else {}
        duration = exit.time - entry.time if kind == "completed" else None
        self._count(thread, name, entry, ret, files, duration)
        if entry and ret is not None and ret >= 0 and name in OPEN_PATH | OPEN_OTHER:
            self._opened(self.tables[self.process_of(thread)], name, entry, exit, ret, files)

    def _count(self, thread, name, entry, ret, files, duration):
        is_error = errno_of(ret) is not None
        mine = self.threads[thread]
        if name in OPEN_PATH | OPEN_OTHER:
            if name.startswith("fcntl") and (entry is None or entry.get("cmd") not in DUPLICATE_COMMANDS):
                return
            mine["opens"] += 1
            if name in OPEN_PATH and entry:
                file = self.files[entry.get("filename", "pathname")]
                file["opens"] += 1
                file["errors"] += is_error
            self._took("open", duration)
        elif name in SYNC:
            mine["syncs"] += 1
            if name != "sync":
                file = self._file(files.get("fd"))
                file["syncs"] += 1
                file["errors"] += is_error
            self._took("sync", duration)
        elif name in READ | WRITE:
            self._transfer(mine, "read" if name in READ else "write", files.get("fd"), ret, duration)
        elif name in BOTH:
            for way, field in zip(("read", "write"), BOTH[name]):
                self._transfer(mine, way, files.get(field), ret, duration)
        else:
            return
        mine["errors"] += is_error

    def _took(self, category, duration):
        if duration is not None:
            self.latencies[category].append(duration)

    def _file(self, file):
        return self.files[file.path if isinstance(file, File) else file]

    def _transfer(self, mine, way, file, ret, duration):
        size = max(ret or 0, 0)
        kind = file.kind if isinstance(file, File) else UNSURE
        mine[way + "s"] += 1
        mine[way] += size
        mine[f"{way}_{kind}"] += size
        row = self._file(file)
        row[way + "s"] += 1
        row[way] += size
        row["errors"] += errno_of(ret) is not None
        self._took(way, duration)

    def _opened(self, table, name, entry, exit, ret, files):
        flags = (entry.get("type") if name == "socket" else entry.get("flags")) or 0
        closes = bool(flags & CLOSE_ON_EXEC)
        if name in OPEN_PATH:
            table[ret] = File(entry.get("filename", "pathname"), DISK, closes)
        elif name == "socket":
            table[ret] = File("socket", NET if entry.get("family") in (2, 10) else UNSURE, closes)
        elif name in ("accept", "accept4"):
            listener = table.get(entry.get("fd"))
            kind = listener.kind if isinstance(listener, File) else UNSURE
            table[ret] = File("socket", kind, closes and name == "accept4")
        elif name in ("pipe", "pipe2"):
            ends = exit.get("fildes")
            for fd in ends if isinstance(ends, list) and len(ends) == 2 else ():
                table[fd] = File("pipe", UNSURE, closes and name == "pipe2")
        elif name in DUPLICATED:
            self._duplicated(table, name, entry, ret, closes)

    @staticmethod
    def _duplicated(table, name, entry, ret, closes):
        if name.startswith("fcntl"):
            if entry.get("cmd") not in DUPLICATE_COMMANDS:
                return
            closes = entry.get("cmd") == 1030
        file = table.get(entry.get(DUPLICATED[name]))
        if file:
            table[ret] = File(file.path, file.kind, closes and name != "dup")
        else:
            table.pop(ret, None)


def answer(path):
    trace = Trace(path, wanted)
    replay = Replay(trace)
    usage, requests = Usage(trace, replay), block.Requests(trace)
    for event, happenings in replay:
        usage.step(event, happenings)
        requests.step(event)
    usage.calls.finish()
    requests.finish()
    result = Answer()
    tables(result, usage, replay, bool(trace.losses()))
    requests.rows(result, "per-disk")
    return result, trace


def tables(result, usage, replay, is_lossy):
    bounded = lambda value: [value, value, None if is_lossy else value]
    columns = [COUNTS[0], COUNTS[1], *KINDS, *COUNTS[2:]]
    processes = defaultdict(lambda: defaultdict(int))
    for thread, counts in sorted(usage.threads.items(), key=str):
        if any(counts.values()):
            result.row("per-thread", {**replay.cell(thread), **{name: bounded(counts[name]) for name in columns}})
        for name, count in counts.items():
            processes[replay.pids.get(thread)][name] += count
    for pid, counts in processes.items():
        if any(counts.values()):
            process = {"process": replay.process_cell(pid)}
            result.row("per-process", {**process, **{name: bounded(counts[name]) for name in columns}})
    for file, counts in sorted(usage.files.items(), key=str):
        row = {"path": UNKNOWN if file is None else file, "fd": None, "process": None}
        if isinstance(file, tuple):
            process = replay.process_cell(file[1]) if isinstance(file[1], int) else replay.cell(file[1])["thread"]
            row = {"path": None, "fd": file[0], "process": process}
        result.row("per-file", {**row, **{name: bounded(counts[name]) for name in COUNTS}})
    for category, values in sorted(usage.latencies.items()):
        result.row("per-category", {"category": category, **statistics(values), **percentiles(values)})
    for interface, counts in sorted(usage.interfaces.items()):
        names = ("sent", "sent_bytes", "received", "received_bytes")
        result.row("per-interface", {"interface": interface, **{name: bounded(counts[name]) for name in names}})


if __name__ == "__main__":
    found, source = answer(sys.argv[1])
    found.print(source.stale)
