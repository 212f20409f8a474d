"""Oracle of `kymo irq`: how long CPUs serve interrupts, and how long softirqs wait. See docs/analyses.md, section 7.

    irq.py TRACE
"""

import math
import sys
from collections import defaultdict

from events import Trace
from figures import Answer, statistics, with_prefix

WANTED = {"irq_handler_entry": ("irq", "name"), "irq_handler_exit": ("irq",)}
SOFT = {
    prefix + name: name for prefix in ("", "irq_") for name in ("softirq_raise", "softirq_entry", "softirq_exit")
}
CLASSES = ("began_before", "never_ended", "lost_inside")


class Interrupts:
    """What each CPU serves, one event after the other."""

    def __init__(self, trace):
        self.losses = {cpu: trace.losses(cpu) for cpu in [*trace.cpus(), None]}
        self.names, self.touched = {}, set()
        self.served, self.others = defaultdict(list), defaultdict(int)
        self.serving = {}
        self.raised, self.raises, self.waits = {}, defaultdict(int), defaultdict(list)

    def _is_whole(self, cpu, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses[cpu])

    def _entered(self, key, event):
        if key in self.serving:
            self.others[key[0], key[2], "lost_inside"] += 1
        self.serving[key] = event.time
        self.touched.add(key)

    def _left(self, key, event):
        begin = self.serving.pop(key, None)
        kind = "lost_inside"
        if begin is not None and self._is_whole(event.cpu, begin, event.time):
            self.served[key].append(event.time - begin)
            kind = None
        elif begin is None and key not in self.touched and self._is_whole(event.cpu, -math.inf, event.time):
            kind = "began_before"
        if kind:
            self.others[key[0], key[2], kind] += 1
        self.touched.add(key)

    def entry(self, event):
        self.names[event.get("irq")] = event.get("name")
        self._entered(("hard", event.cpu, event.get("irq")), event)

    def exit(self, event):
        self._left(("hard", event.cpu, event.get("irq")), event)

    def softirq_raise(self, event):
        key = event.cpu, event.get("vec")
        self.raises[key[1]] += 1
        self.raised.setdefault(key, event.time)

    def softirq_entry(self, event):
        cpu, vector = event.cpu, event.get("vec")
        self._entered(("soft", cpu, vector), event)
        raised = self.raised.pop((cpu, vector), None)
        if raised is not None and self._is_whole(cpu, raised, event.time):
            self.waits[vector].append(event.time - raised)

    def softirq_exit(self, event):
        self._left(("soft", event.cpu, event.get("vec")), event)

    def finish(self):
        for (sort, cpu, number), begin in self.serving.items():
            kind = "never_ended" if self._is_whole(cpu, begin, math.inf) else "lost_inside"
            self.others[sort, number, kind] += 1


def answer(path):
    trace = Trace(path, {**WANTED, **{name: ("vec",) for name in SOFT}})
    found = Interrupts(trace)
    steps = {"irq_handler_entry": found.entry, "irq_handler_exit": found.exit}
    for event in trace.events:
        (steps.get(event.name) or getattr(found, SOFT.get(event.name)))(event)
    found.finish()
    result = Answer()
    numbers = {(key[0], key[-1]) for key in found.served} | {key[:2] for key in found.others}
    numbers |= {("soft", vector) for vector in found.raises}
    for sort, number in sorted(numbers):
        values = [value for key, some in found.served.items() if (key[0], key[2]) == (sort, number) for value in some]
        counts = {kind: found.others.get((sort, number, kind), 0) for kind in CLASSES}
        irq = [number, found.names.get(number) if sort == "hard" else None]
        row = {"irq": irq, **statistics(values), **counts}
        if sort == "soft":
            left = sum(1 for _, other in found.raised if other == number)
            row["raises"] = found.raises[number]
            row.update(with_prefix(statistics(found.waits.get(number, [])), "raise_"))
            row["raise_never_ended"] = left
        result.row(sort, row)
    for (sort, cpu, number), values in sorted(found.served.items()):
        some = {name: value for name, value in statistics(values).items() if name in ("count", "total", "min", "max")}
        irq = [number, found.names.get(number) if sort == "hard" else None]
        result.row(f"{sort}-per-cpu", {"cpu": cpu, "irq": irq, **some})
    return result


if __name__ == "__main__":
    answer(sys.argv[1]).print()
