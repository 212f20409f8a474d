"""Oracle of `kymo pairs`: durations between events that belong together. See docs/analyses.md, section 9.

    pairs.py TRACE --begin NAME --end NAME [--key FIELD]... [--nested] [--by FIELD]
"""

import argparse
import math
from collections import defaultdict

from events import Trace
from figures import Answer, percentiles, statistics


class Pairs:
    """What is open under which key."""

    def __init__(self, trace, arguments):
        self.losses, self.arguments = trace.losses(), arguments
        self.open = defaultdict(list)
        self.durations, self.others = defaultdict(list), defaultdict(int)
        self.alone, self.without_key = {"began_before": 0, "lost_inside": 0}, 0

    def step(self, event):
        key = tuple(self._value(event, field) for field in self.arguments.key)
        if None in key:
            self.without_key += 1
            return
        if event.name in self.arguments.end:
            self._end(key, event)
        if event.name in self.arguments.begin:
            self._begin(key, event)

    @staticmethod
    def _value(event, field):
        return event.cpu if field == "cpu" else event.get(field)

    def _begin(self, key, event):
        if self.open[key] and not self.arguments.nested:
            self.without_end(*self.open[key].pop())
        self.open[key].append((event.time, event.get(self.arguments.by) if self.arguments.by else None))

    def _end(self, key, event):
        if not self.open[key]:
            self.alone["began_before" if self._is_whole(-math.inf, event.time) else "lost_inside"] += 1
            return
        begin, group = self.open[key].pop()
        if self._is_whole(begin, event.time):
            self.durations[group].append(event.time - begin)
        else:
            self.others[group, "lost_inside"] += 1

    def without_end(self, begin, group):
        kind = "never_ended" if self._is_whole(begin, math.inf) else "lost_inside"
        self.others[group, kind] += 1

    def _is_whole(self, begin, end):
        return not any(loss.touches(begin, end) for loss in self.losses)


def answer(arguments):
    fields = [*arguments.key, *([arguments.by] if arguments.by else [])]
    names = {*arguments.begin, *arguments.end}
    trace = Trace(arguments.trace, lambda name: fields if name in names else None, name_of=str)
    pairs = Pairs(trace, arguments)
    for event in trace.events:
        pairs.step(event)
    result = Answer()
    still_open = [(begin, key, group) for key, stack in pairs.open.items() for begin, group in stack]
    for begin, _, group in still_open:
        pairs.without_end(begin, group)
    for group in sorted(set(pairs.durations) | {group for group, _ in pairs.others}, key=str):
        values = pairs.durations.get(group, [])
        counts = {kind: pairs.others[group, kind] for kind in ("never_ended", "lost_inside")}
        result.row("per-group", {"group": group, **statistics(values), **percentiles(values), **counts})
    values = [value for some in pairs.durations.values() for value in some]
    counts = {kind: sum(n for (_, k), n in pairs.others.items() if k == kind) for kind in ("never_ended", "lost_inside")}
    counts["lost_inside"] += pairs.alone["lost_inside"]
    alone = {"began_before": pairs.alone["began_before"], "without_key": pairs.without_key, "given_up": 0}
    result.row("total", {**statistics(values), **percentiles(values), **counts, **alone})
    for begin, key, group in sorted(still_open, key=str):
        result.row("open", {"begin": begin, "key": key[0] if len(key) == 1 else ", ".join(map(str, key)), "group": group})
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--begin", action="append", required=True)
    parser.add_argument("--end", action="append", required=True)
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--by")
    answer(parser.parse_args()).print()


if __name__ == "__main__":
    main()
