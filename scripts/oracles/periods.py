"""Oracle of `--period` with events: how many events of each class there are in each period. See docs/analyses.md, section 1.

    periods.py TRACE --begin NAME [--end NAME] [--key FIELD]... [--capture FIELD]...

Each event BEGIN opens a period; an event END closes all open ones whose keys are its own. Without END, BEGIN is END too.
"""

import argparse
from bisect import bisect_left
from collections import Counter

from events import Trace
from figures import Answer


def value(event, field):
    return event.cpu if field == "cpu" else event.get(field)


def periods(trace, arguments):
    """From when to when, and what the first event has."""
    ends, found, opened = arguments.end or arguments.begin, [], []
    for event in trace.events:
        key = [value(event, field) for field in arguments.key]
        if event.name == ends:
            closed = [period for period in opened if period[1] == key and None not in key]
            opened = [period for period in opened if period not in closed]
            found += [(begin, event.time, captured) for begin, _, captured in closed]
        if event.name == arguments.begin:
            opened.append((event.time, key, [value(event, field) for field in arguments.capture]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--begin", required=True)
    parser.add_argument("--end")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--capture", action="append", default=[])
    arguments = parser.parse_args()
    fields = {field for field in [*arguments.key, *arguments.capture] if field != "cpu"}
    wanted = {arguments.begin, arguments.end}
    trace = Trace(arguments.trace, lambda name: fields if name in wanted else (), is_wanted=lambda name: True, name_of=str)
    times = [event.time for event in trace.events]
    result = Answer()
    for begin, end, captured in periods(trace, arguments):
        within = trace.events[bisect_left(times, begin) : bisect_left(times, end)]
        for name, count in Counter(event.name for event in within).items():
            captures = {f"capture_{place}": known for place, known in enumerate(captured, 1)}
            result.row("per-class", {"period": [begin, end], **captures, "name": name, "count": count})
    result.print()


if __name__ == "__main__":
    main()
