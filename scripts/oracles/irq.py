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
        self.stacks, self.names, self.touched = defaultdict(list), {}, set()
        self.hard, self.hard_others = defaultdict(list), defaultdict(int)
        self.soft, self.soft_others = defaultdict(list), defaultdict(int)
        self.serving, self.soft_touched = {}, set()
        self.raised, self.raises, self.waits = {}, defaultdict(int), defaultdict(list)

    def _is_whole(self, cpu, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses[cpu])

    def _without_entry(self, event, touched):
        is_first = event.cpu not in touched and self._is_whole(event.cpu, -math.inf, event.time)
        return "began_before" if is_first else "lost_inside"

    def _without_exit(self, cpu, begin):
        return "never_ended" if self._is_whole(cpu, begin, math.inf) else "lost_inside"

    def entry(self, event):
        number, name = event.get("irq"), event.get("name")
        self.names[number] = name
        self.stacks[event.cpu].append((number, event.time))
        self.touched.add(event.cpu)

    def exit(self, event):
        number, stack = event.get("irq"), self.stacks[event.cpu]
        if any(entry[0] == number for entry in stack):
            while stack[-1][0] != number:
                above = stack.pop()
                self.hard_others[above[0], "lost_inside"] += 1
            _, begin = stack.pop()
            if self._is_whole(event.cpu, begin, event.time):
                self.hard[number, event.cpu].append(event.time - begin)
            else:
                self.hard_others[number, "lost_inside"] += 1
        else:
            kind = self._without_entry(event, self.touched)
            self.hard_others[number, kind] += 1
        self.touched.add(event.cpu)

    def softirq_raise(self, event):
        key = event.cpu, event.get("vec")
        self.raises[key[1]] += 1
        self.raised.setdefault(key, event.time)

    def softirq_entry(self, event):
        cpu, vector = event.cpu, event.get("vec")
        running = self.serving.get(cpu)
        if running:
            self.soft_others[running[0], "lost_inside"] += 1
        self.serving[cpu] = (vector, event.time)
        self.soft_touched.add(cpu)
        raised = self.raised.pop((cpu, vector), None)
        if raised is not None and self._is_whole(cpu, raised, event.time):
            self.waits[vector].append(event.time - raised)

    def softirq_exit(self, event):
        cpu, vector = event.cpu, event.get("vec")
        running = self.serving.pop(cpu, None)
        if running is None:
            kind = self._without_entry(event, self.soft_touched)
            self.soft_others[vector, kind] += 1
        elif running[0] != vector:
            self.soft_others[running[0], "lost_inside"] += 1
            self.soft_others[vector, "lost_inside"] += 1
        elif self._is_whole(cpu, running[1], event.time):
            self.soft[vector].append(event.time - running[1])
        else:
            self.soft_others[vector, "lost_inside"] += 1
        self.soft_touched.add(cpu)

    def finish(self):
        for cpu, stack in self.stacks.items():
            for number, begin in stack:
                self.hard_others[number, self._without_exit(cpu, begin)] += 1
        for cpu, (vector, begin) in self.serving.items():
            self.soft_others[vector, self._without_exit(cpu, begin)] += 1


def answer(path):
    trace = Trace(path, {**WANTED, **{name: ("vec",) for name in SOFT}})
    found = Interrupts(trace)
    steps = {"irq_handler_entry": found.entry, "irq_handler_exit": found.exit}
    for event in trace.events:
        (steps.get(event.name) or getattr(found, SOFT.get(event.name)))(event)
    found.finish()
    result = Answer()
    keys = {key for key, _ in found.hard} | {key for key, _ in found.hard_others}
    for key in sorted(keys):
        values = [value for (other, _), some in found.hard.items() if other == key for value in some]
        counts = {kind: found.hard_others.get((key, kind), 0) for kind in CLASSES}
        result.row("hard", {"irq": [key, found.names.get(key)], **statistics(values), **counts})
    for (key, cpu), values in sorted(found.hard.items()):
        some = {name: value for name, value in statistics(values).items() if name in ("count", "total", "min", "max")}
        result.row("hard-per-cpu", {"cpu": cpu, "irq": [key, found.names.get(key)], **some})
    vectors = set(found.soft) | set(found.raises) | {vector for vector, _ in found.soft_others}
    for vector in sorted(vectors):
        counts = {kind: found.soft_others.get((vector, kind), 0) for kind in CLASSES}
        left = sum(1 for _, other in found.raised if other == vector)
        raised = with_prefix(statistics(found.waits.get(vector, [])), "raise_")
        row = {"irq": vector, **statistics(found.soft.get(vector, [])), **counts, "raises": found.raises[vector]}
        result.row("soft", {**row, **raised, "raise_never_ended": left})
    return result


if __name__ == "__main__":
    answer(sys.argv[1]).print()
