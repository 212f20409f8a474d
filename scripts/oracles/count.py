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
    begin, _ = trace.whole_span()
    found = defaultdict(int)
    for event in trace.events:
        found[begin + (event.time - begin) // period * period, event.name] += 1
    for (time, name), count in sorted(found.items()):
        result.row("course", {"period": time, "name": name, "count": count})


def gaps(result, trace, most):
    for stream in [*trace.streams, None]:
        events = [event for event in trace.events if stream is None or event.stream == stream.number]
        losses = trace.losses() if stream is None else stream.losses
        found = []
        for left, right in zip(events, events[1:]):
            is_loss = any(loss.touches(left.time, right.time) for loss in losses)
            kind = "loss" if is_loss else "quiet"
            found.append((left.time - right.time, left.time, right.time, kind))
        for negative, begin, end, kind in sorted(found)[:most]:
            row = {"stream": stream and stream.number, "begin": begin, "end": end, "length": -negative, "kind": kind}
            result.row("gaps", row)


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
