"""Oracle of `kymo block`: what block devices were asked for, and how long they took. See docs/analyses.md, section 8.

    block.py TRACE
"""

import math
import sys
from collections import defaultdict

from events import Trace
from figures import Answer, percentiles, statistics, with_prefix

FIELDS = ("dev", "sector", "nr_sector", "bytes", "rwbs", "error", "errors")
WANTED = {
    **{name: FIELDS for name in ("block_rq_insert", "block_rq_issue", "block_rq_complete")},
    "lttng_statedump_block_device": ("dev", "diskname"),
}
MINOR_BITS = 20
SECTOR_BYTES = 512


def is_write(rwbs):
    """LTTng gives a number, perf a text."""
    if isinstance(rwbs, str):
        return "W" in rwbs or "D" in rwbs or "R" not in rwbs
    return bool((rwbs or 0) & 1)


class Device:
    """What one device was asked for."""

    def __init__(self):
        self.requests = {"reads": 0, "writes": 0}
        self.sectors, self.errors, self.latencies, self.queued = 0, 0, [], []
        self.others = dict.fromkeys(("began_before", "never_ended", "lost_inside"), 0)


class Requests:
    """All requests, one event after the other."""

    def __init__(self, trace):
        self.losses = trace.losses()
        self.devices = defaultdict(Device)
        self.inserted, self.issued, self.names = {}, {}, {}

    def _is_whole(self, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses)

    def _without_end(self, begin):
        return "never_ended" if self._is_whole(begin, math.inf) else "lost_inside"

    def step(self, event):
        if event.name == "lttng_statedump_block_device":
            self.names[event.get("dev")] = event.get("diskname")
        elif event.name in WANTED:
            getattr(self, event.name[len("block_rq_") :])(event, self.devices[event.get("dev")])

    @staticmethod
    def _sectors(event):
        sectors = event.get("nr_sector")
        return (event.get("bytes") or 0) // SECTOR_BYTES if sectors is None else sectors

    def insert(self, event, _):
        self.inserted[event.get("dev"), event.get("sector")] = event.time

    def issue(self, event, device):
        key = event.get("dev"), event.get("sector") + self._sectors(event)
        if key in self.issued:
            device.others[self._without_end(self.issued[key])] += 1
        queued = self.inserted.pop((event.get("dev"), event.get("sector")), None)
        if queued is not None and self._is_whole(queued, event.time):
            device.queued.append(event.time - queued)
        device.requests["writes" if is_write(event.get("rwbs")) else "reads"] += 1
        device.sectors += self._sectors(event)
        self.issued[key] = event.time

    def complete(self, event, device):
        begin = self.issued.pop((event.get("dev"), event.get("sector") + self._sectors(event)), None)
        device.errors += bool(event.get("error", "errors"))
        if begin is None:
            device.others["began_before" if self._is_whole(-math.inf, event.time) else "lost_inside"] += 1
        elif self._is_whole(begin, event.time):
            device.latencies.append(event.time - begin)
        else:
            device.others["lost_inside"] += 1

    def finish(self):
        for (dev, _), begin in self.issued.items():
            self.devices[dev].others[self._without_end(begin)] += 1

    def rows(self, result, table):
        for dev, device in sorted(self.devices.items()):
            name = self.names.get(dev, f"{dev >> MINOR_BITS},{dev & ((1 << MINOR_BITS) - 1)}")
            queue = with_prefix(statistics(device.queued), "queue_")
            del queue["queue_stdev"]
            figures = {**statistics(device.latencies), **percentiles(device.latencies)}
            sizes = {"sectors": device.sectors, "bytes": device.sectors * SECTOR_BYTES}
            result.row(table, {"device": name, **device.requests, **sizes, "errors": device.errors, **figures, **queue, **device.others})


def answer(path):
    trace = Trace(path, WANTED)
    requests = Requests(trace)
    for event in trace.events:
        requests.step(event)
    requests.finish()
    result = Answer()
    requests.rows(result, "per-device")
    return result


if __name__ == "__main__":
    answer(sys.argv[1]).print()
