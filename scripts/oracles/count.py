"""Oracle of `kymo count`, `kymo rates` and `kymo gaps`: what there is, and when. See docs/analyses.md, sections 2 and 10.

    count.py TRACE [--rates NANOSECONDS | --gaps COUNT]
"""

import argparse
from collections import defaultdict

from events import Trace, lost_count
from figures import Answer


def counts(result, trace):
    classes, streams = defaultdict(int), defaultdict(int)
    for (stream, (_, name)), count in trace.counts.items():
        classes[name] += count
        streams[stream] += count
    for name, count in sorted(classes.items()):
        result.row("per-class", {"name": name, "count": count})
    for stream, count in sorted(streams.items()):
        result.row("per-stream", {"stream": stream, "count": count})
    losses = [loss for stream in trace.streams for loss in stream.losses]
    lost, known = lost_count(losses), sum(loss.count or 0 for loss in losses)
    total = sum(classes.values())
    high = None if lost is None else total + lost
    result.row("total", {"count": [total, total, high], "lost": [known, known, lost]})


def rates(result, trace, period):
    begin, end = trace.whole_span()
    found = defaultdict(lambda: defaultdict(int))
    for event in trace.events:
        found[event.name][(event.time - begin) // period] += 1
    for name, counts in sorted(found.items()):
        for number, count in sorted(counts.items()):
            first = begin + number * period
            losses = [loss for loss in trace.losses() if loss.touches(first, min(first + period, end))]
            lost = lost_count(losses)
            high = None if lost is None else count + lost
            row = {"period": [first, min(first + period, end)], "name": name, "count": [count, count, high]}
            result.row("course", row)


def gaps(result, trace, most):
    lanes = defaultdict(list)
    for stream in trace.streams:
        lanes[("stream", stream.number) if stream.cpu is None else ("cpu", stream.cpu)].append(stream)
    rows_of_gaps(result, None, trace.events, trace.losses(), most, shortest(trace))
    for streams in lanes.values():
        numbers = {stream.number for stream in streams}
        events = [event for event in trace.events if event.stream in numbers]
        rows_of_gaps(result, streams, events, [loss for stream in streams for loss in stream.losses], most, 0)


def shortest(trace):
    """How long a gap of all lanes must be to be told."""
    begin, end = trace.whole_span()
    k = 0
    while (end >> k) - (begin >> k) >= 1 << 18:
        k += 1
    return 1 << k


def rows_of_gaps(result, streams, events, losses, most, least):
    found = []
    for left, right in zip(events, events[1:]):
        if right.time - left.time >= max(least, 1):
            is_loss = any(loss.touches(left.time, right.time) for loss in losses)
            found.append((left.time - right.time, left.time, right.time, "loss" if is_loss else "quiet"))
    name = ", ".join(str(stream.number) for stream in streams) if streams else None
    for negative, begin, end, kind in sorted(found)[:most]:
        row = {"stream": name, "cpu": streams[0].cpu if streams else None, "begin": begin, "end": end}
        result.row("gaps", {**row, "length": -negative, "kind": kind})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--rates", type=int)
    parser.add_argument("--gaps", type=int)
    arguments = parser.parse_args()
    needs_events = arguments.rates or arguments.gaps
    trace = Trace(arguments.trace, lambda name: () if needs_events else None, is_wanted=lambda name: True, name_of=str)
    result = Answer()
    if arguments.rates:
        rates(result, trace, arguments.rates)
    elif arguments.gaps:
        gaps(result, trace, arguments.gaps)
    else:
        counts(result, trace)
    result.print()


if __name__ == "__main__":
    main()
