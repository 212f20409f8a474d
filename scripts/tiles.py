#!/usr/bin/env python3
"""Checks that what `kymo view` sends to be drawn is true: tiles against a count of every event, one by one.

    tiles.py KYMO [--only NAME] [--windows N] [--seed N] [--program TRACE]...

On kernel traces of the corpus, and on the project's sample, whose durations, counters and declared states are those of scripts/oracles/durations.py. What
is true of each is found by scripts/oracles/truth.py: what ran where from when to when, who was in which state and call, which interrupts were
served, which events there are. Then random windows of random widths are asked of a server, and everything in the answers is
counted again: which value covers most of a bucket and which the next most, for how long, what begins in it, what it ends with; instants
and how many are of the most frequent class; exact runs, instants and wakeups where there are few, to the nanosecond; between what and
what counters go, and what they are on average. Besides, what two neighbouring buckets say must add up to what the bucket of the next level says, whatever
the truth is; windows of the events of one class only must have these and no others, and of wakeups those that are such events; and what is at random times on random tracks, which is asked for with all that is known of it, must begin and end as it does in truth.

Where more happens in a bucket than can be told apart on a screen, the server keeps the values that last longest or happen most often, and
puts the rest together as others; times are kept to a part of the bucket. So of buckets with few values everything must be true, of
those with many the sums, what begins, and the value at the end; times up to that part.

Simple and slow on purpose. Where the corpus or babeltrace2's library is absent, nothing is checked, and that is said aloud.
"""

import argparse
import bisect
import collections
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "oracles"))

import served  # noqa: E402
from truth import FOREVER, Bucket, Truth, TruthOfPrograms  # noqa: E402

TRACES = (
    "ctf/tracecompass/bug446190",
    "ctf/tracecompass/flipping-endianness",
    "ctf/babeltrace/succeed/lttng-tracefile-rotation/kernel",
    "ctf/tracecompass/perf-taskset2",
    "ctf/tracecompass/many-threads",
)
PROGRAMS = (ROOT / "examples/traces/demo",)
# Of these, who is in which state, and how much there is to do.
OWN = ROOT / "scripts/oracles/jobs-own.toml"
BUCKETS_MAX = 300
TRACKS_MAX = 40
SHARE = 65535
# So many values of a bucket are told apart, whatever happens: of what lasts, and of what happens.
TOLD_APART, TOLD_APART_INSTANTS = 6, 3
# Where buckets are of more nanoseconds than that, begins and ends are kept to such a part of a bucket. Half of it is lost of each
# at most, as often too much as too little: of many, as much as the root of their number, and next to nothing of all buckets together.
TIME_EXACT, TIME_PART = 64, 1 / 64
BIAS_MAX = 1 / 1024
# Events of streams without a CPU: which stream is which, is not told.
LANES = ("events", None)
# Whatever is not told apart.
OTHERS = "others"
OTHER_BIN = 0xFFFFFFFE
SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
# Differences that are shown of a window.
SHOWN = 5


# What the server says, in the words of the truth


class Named:
    """Tracks and values of a server, as the truth calls them."""

    def __init__(self, tracks, values):
        self._tracks, self._values = tracks, values

    def track(self, number):
        """What a track is of: ("thread", 1234, "state"), ("events", 3), ("latency", "calls"), ("wakeups",)."""
        track = self._tracks[number]
        kind, _, *rest = track["id"].split("/")
        if kind == "events":
            return kind, track["cpu"]
        return (kind, *(int(word) if word.isdigit() else word for word in rest))

    def value(self, number):
        return self._value(self._values[number], self._tracks)

    @staticmethod
    def _value(value, tracks):
        """What a value stands for: a tid, a state, the name of a call or event, the number of an interrupt."""
        kind, label = value["kind"], value["label"]
        if kind == "thread":
            return tracks[value["track"]]["tid"] if value["track"] is not None else 0
        if kind == "others":
            return OTHERS
        # `running on CPU 3`
        if kind == "doing":
            return label.split(" on CPU ")[0]
        if kind == "softirq" and label in SOFTIRQS:
            return SOFTIRQS.index(label)
        if kind == "call":
            return label.removeprefix("#")
        # `irq 41 ahci`, `softirq 12`
        return int(label.split()[1]) if kind in ("irq", "softirq") else label


# Comparing


class Differences:
    """What is wrong in a window; a few are kept as text."""

    def __init__(self):
        self.count, self.shown = 0, []

    def add(self, text):
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append(text)

    def same(self, what, found, expected):
        if found != expected:
            self.add(f"{what}: {found!r} was sent, {expected!r} is true")


class Window:
    """Buckets of a level that are asked for."""

    def __init__(self, origin, level, first, count):
        self.origin, self.level, self.first, self.count = origin, level, first, count
        self.begin = origin + (first << level)
        self.end = self.begin + (count << level)

    def bucket(self, number):
        """From when to when."""
        begin = self.begin + (number << self.level)
        return begin, begin + (1 << self.level)

    def number(self, time):
        """The bucket of a time."""
        return (time - self.begin) >> self.level

    def of(self, timed):
        """What is in the window of a list in the order of time."""
        first, last = (bisect.bisect_left(timed, (time,)) for time in (self.begin, self.end))
        return timed[first:last]

    def __str__(self):
        return f"level {self.level}, {self.count} buckets from {self.first}"


def share_of(time, width):
    return round(time * SHARE / width)


def lost_time(width, begins):
    """How much of the times in a bucket may be lost where so many values begin."""
    return width * TIME_PART * (1 + 2 * math.sqrt(1 + 2 * begins)) if width > TIME_EXACT else 0


def is_share(share, time, width, begins):
    """Whoever rounds up or down is right."""
    return abs(share - time * SHARE / width) <= 1 + lost_time(width, begins) * SHARE / width


def is_rest(name, value):
    """Whether a value of a track means that nothing is done: an idle CPU, a thread that does not run."""
    if name[0] == "cpu" and name[-1] == "thread":
        return value == 0
    return name[0] == "thread" and name[-1] == "state" and value not in ("running", OTHERS, None)


def same_or_others(name, found, expected, differences):
    """Counts by bucket and something: the same, or in buckets of much some of it, and the rest as others."""
    sums, kinds = collections.Counter(), collections.Counter()
    for (bucket, _), count in expected.items():
        sums[bucket] += count
        kinds[bucket] += 1
    told = collections.Counter()
    for (bucket, what), count in found.items():
        told[bucket] += count
        if what is not None and count > expected[bucket, what]:
            differences.add(f"{name}, bucket {bucket}: {count} of {what} were sent, {expected[bucket, what]} are true")
        if kinds[bucket] <= TOLD_APART and count != expected[bucket, what]:
            differences.add(f"{name}, bucket {bucket}: {count} of {what} were sent of {kinds[bucket]}, {expected[bucket, what]} are true")
    differences.same(f"{name}: sums of buckets", dict(told), dict(sums))


class Check:
    """Compares answers about one trace with the truth, and with each other."""

    def __init__(self, truth, server, status, generator):
        self.truth, self.server, self.random = truth, server, generator
        self.origin, self.end = status["begin_ns"], status["end_ns"]
        self.tracks, self.values = server.catalogue()
        self.named = Named(self.tracks, self.values)
        self.asked, self.compared = 0, collections.Counter()
        # Shares of buckets that were compared, and how much more than the truth they say together.
        self.shares, self.bias = 0, 0.0

    def value(self, number):
        """What a value of the server stands for; None where it says that there is none."""
        if number is None or number == served.NONE:
            return None
        if number not in self.values:
            self.server.more(self.tracks, self.values)
        return self.named.value(number)

    def track(self, number):
        if number not in self.tracks:
            self.server.more(self.tracks, self.values)
        return self.named.track(number)

    # What tracks there are

    def all_tracks(self):
        """Everything that the truth has is a track, and what is a track is in the truth."""
        differences = Differences()
        expected = {name for name, runs in self.truth.states.items() if runs.between(self.origin, self.end + 1) or runs.points}
        expected |= set(self.truth.instants) - {LANES}
        found = [self.track(number) for number in self.tracks if self.track(number) != LANES]
        expected |= {name for name, numbers in self.truth.numbers.items() if numbers.changes}
        known = set(self.truth.states) | set(self.truth.numbers) | set(self.truth.instants) | set(self.truth.durations) | {("wakeups",)}
        known |= {("events", cpu) for cpu in self.truth.cpus}
        # Of one stream there is no sum.
        expected -= {("all",)} if sum(name[0] == "events" for name in found) < 2 else set()
        differences.same("tracks that are there twice", len(found) - len(set(found)), 0)
        for name in sorted(expected - set(found), key=str):
            differences.add(f"{name}: there is no such track")
        for name in sorted(set(found) - known, key=str):
            differences.add(f"{name}: nothing of the trace is of this track")
        return "tracks", differences

    def as_often_too_much(self):
        """What is lost of times is lost to both sides."""
        differences = Differences()
        bias = self.bias / max(self.shares, 1)
        if abs(bias) > BIAS_MAX:
            differences.add(f"{self.shares} shares of buckets are {bias:+.2%} of a bucket too large on average")
        return "shares", differences

    # Windows

    def window(self):
        """Some buckets somewhere in the trace, of which there may be less than are asked for."""
        span = self.end - self.origin + 1
        level = self.random.randint(0, span.bit_length())
        count = self.random.randint(1, BUCKETS_MAX)
        if self.random.random() < 0.5:
            # Where something happens.
            name = self.random.choice(list(self.truth.instants))
            first = (self.random.choice(self.truth.instants[name])[0] - self.origin) >> level
            return Window(self.origin, level, max(first - self.random.randrange(count), 0), count)
        return Window(self.origin, level, self.random.randint(0, max((span >> level) - count // 2, 0)), count)

    def some_tracks(self):
        """All tracks that are no thread's, and those of some threads."""
        numbers = sorted(number for number in self.tracks if self.track(number) != LANES)
        threads = [number for number in numbers if self.track(number)[0] == "thread"]
        others = [number for number in numbers if self.track(number)[0] != "thread"]
        return (others + self.random.sample(threads, min(len(threads), TRACKS_MAX)))[:1024]

    def one(self):
        """A window against the truth."""
        window, differences = self.window(), Differences()
        tiles = self.server.tiles(window.level, window.first, window.count, self.some_tracks())
        behind = -(-(self.end + 1 - window.begin) // (1 << window.level))
        if tiles.exact_until() < min(behind, window.count):
            differences.add(f"the timeline is complete, but not all is exact: {tiles.spans[:3]}")
        self.asked += 1
        window.count = min(window.count, max(behind, 0))
        window.end = window.begin + (window.count << window.level)
        for number, track in tiles.tracks.items():
            compare = {
                served.STATES: self.states,
                served.RUNS: self.runs,
                served.INSTANTS_IN_BUCKETS: self.counts,
                served.INSTANTS: self.events,
                served.HEAT: self.heat,
                served.COUNTER: self.numbers,
                served.ARROWS_IN_BUCKETS: self.arrows,
                served.ARROWS: self.wakeups,
            }.get(track.form)
            if compare is None:
                differences.add(f"{self.track(number)}: tiles of form {track.form}")
            else:
                self.compared[compare.__name__] += len(track.items)
                compare(window, track, self.track(number), differences)
        return window, differences

    def some_events(self):
        """A window of the events of one class only."""
        window, differences = self.window(), Differences()
        labels = sorted(value["label"] for value in self.values.values() if value["kind"] == "event" and value["label"] != OTHERS)
        waking = [label for label in labels if self.plain_name(label) in self.truth.woken]
        label = self.random.choice(waking if waking and self.random.random() < 0.4 else labels)
        wanted = self.plain_name(label)
        tracks = [number for number in self.some_tracks() if self.track(number) in self.truth.instants or self.track(number) == ("wakeups",)]
        until = time.monotonic() + served.COMPLETE_SECONDS
        behind = min(max(-(-(self.end + 1 - window.begin) // (1 << window.level)), 0), window.count)
        while True:
            tiles = self.server.tiles(window.level, window.first, window.count, tracks, event=label)
            if tiles.exact_until() >= behind:
                break
            if time.monotonic() > until:
                raise served.Wrong(f"events called {label} are not counted after {served.COMPLETE_SECONDS} s: {tiles.spans[:3]}")
        self.asked += 1
        window.count, window.end = behind, window.begin + (behind << window.level)
        for number, track in tiles.tracks.items():
            name = self.track(number)
            if name == ("wakeups",):
                wakes = self.truth.woken.get(wanted, [])
                self.compared["chosen wakeups"] += len(window.of(wakes))
                compare = self.wakeups if track.form == served.ARROWS else self.arrows
                compare(window, track, f"{name}, only {label}", differences, wakes)
                continue
            true = [(at, event) for at, event in window.of(self.truth.instants.get(name, [])) if event == wanted]
            self.compared["chosen"] += len(true)
            if track.form == served.INSTANTS:
                found = collections.Counter((round(item.time) + window.begin, self.plain(item.value)) for item in track.items)
                self.same_counts(f"{name}, only {label}", found, collections.Counter(true), differences)
            else:
                found = {item.bucket: (item.count, item.count_of_value) for item in track.items}
                expected = {bucket: (many, many) for bucket, many in collections.Counter(window.number(at) for at, _ in true).items()}
                differences.same(f"{name}, only {label}", found, expected)
        return window, differences

    def heat(self, window, track, name, differences):
        """Durations that end in each bucket, by bin."""
        expected = collections.Counter()
        for end, duration in window.of(self.truth.durations[name]):
            expected[window.number(end), duration] += 1
        found = {(item.bucket, None if item.bin == OTHER_BIN else item.bin): item.count for item in track.items}
        same_or_others(name, found, expected, differences)

    def numbers(self, window, track, name, differences):
        """What counters are: averages up to what is lost of times."""
        truth, items = self.truth.numbers[name], {item.bucket: item for item in track.items}
        if window.first:
            differences.same(f"{name}: at the begin", track.carry, truth.at(window.begin - 1))
        for number in range(window.count):
            begin, end = window.bucket(number)
            item, expected = items.pop(number, None), truth.bucket(begin, end)
            what = f"{name}, bucket {number}"
            if item is None or expected is None:
                differences.same(what, item, expected)
                continue
            differences.same(f"{what}: changes, least, most, last", tuple(item[1:5]), tuple(expected[:4]))
            lost = lost_time(end - begin, item.changes) / (end - begin) * (item.max - item.min)
            if abs(item.mean - expected[4]) > lost + 1e-9 * max(1, abs(item.min), abs(item.max)):
                differences.same(f"{what}: average", item.mean, expected[4])
        differences.same(f"{name}: buckets behind the window", items, {})

    def arrows(self, window, track, name, differences, wakes=None):
        """Who wakes whom in each bucket; of all events, or of some."""
        expected = collections.Counter()
        for time, (cpu, tid) in window.of(self.truth.arrows if wakes is None else wakes):
            expected[window.number(time), ("cpu", cpu, "thread"), ("thread", tid, "state")] += 1
        found = collections.Counter()
        for item in track.items:
            target = None if item.target == served.NONE else self.track(item.target)
            found[item.bucket, self.track(item.source), target] += item.count
        if any(target is None for _, _, target in found):
            # Only who wakes is told apart there.
            found, expected = (self.without_targets(counts) for counts in (found, expected))
        self.same_counts(name, found, expected, differences)

    @staticmethod
    def without_targets(counts):
        sums = collections.Counter()
        for (bucket, source, _), count in counts.items():
            sums[bucket, source] += count
        return sums

    @staticmethod
    def same_counts(name, found, expected, differences):
        differences.same(f"{name}: too many", dict(found - expected), {})
        differences.same(f"{name}: too few", {}, dict(expected - found))

    def states(self, window, track, name, differences):
        runs, current = self.truth.states[name], self.value(track.carry)
        items = {item.bucket: item for item in track.items}
        if len(items) != len(track.items) or list(items) != sorted(items):
            differences.add(f"{name}: buckets are there twice, or in no order")
        differences.same(f"{name}: at the begin", current, runs.at(window.begin - 1) if window.first else current)
        for number in range(window.count):
            truth, item = Bucket(runs, *window.bucket(number)), items.get(number)
            what = f"{name}, bucket {number}"
            if item is None:
                filled = {None: None} if current is None else {current: 1 << window.level}
                differences.same(f"{what}, which is not there", filled, dict(truth.times) or {None: None})
                continue
            self.state(window, name, what, item, truth, differences)
            current = self.value(item.last)

    def state(self, window, name, what, item, truth, differences):
        width = 1 << window.level
        times = truth.times
        first, second = self.value(item.value), self.value(item.second)
        ranked = [lasted for _, lasted in times.most_common()] + [0, 0]
        lost = lost_time(width, truth.begins)
        is_few = len(times) <= TOLD_APART
        for which, value, share, lasted in (("most", first, item.share, ranked[0]), ("second", second, item.share_second, ranked[1])):
            if OTHERS in (first, value) and not is_few:
                continue
            if value is not None and abs(times.get(value, 0) - lasted) > lost:
                differences.add(f"{what}: {which} of it is {value!r} ({times.get(value, 0)} ns); in truth {dict(times)}")
            if value is None and lasted > lost:
                differences.add(f"{what}: nothing is {which} of it; in truth {dict(times)}")
            if value in times:
                self.shares += 1
                self.bias += share / SHARE - times[value] / width
            if not is_share(share, lasted, width, truth.begins):
                differences.same(f"{what}: share of what is {which}", share, share_of(lasted, width))
        busy = sum(lasted for value, lasted in times.items() if not is_rest(name, value))
        if not is_share(item.busy, busy, width, truth.begins):
            differences.same(f"{what}: share of all that is not at rest", item.busy, share_of(busy, width))
        busiest = self.value(item.busiest)
        if is_rest(name, busiest) or (busiest is None and busy > lost):
            differences.add(f"{what}: most of what is not at rest is {busiest!r}; in truth {dict(times)}")
        differences.same(f"{what}: begins", item.begins, truth.begins)
        differences.same(f"{what}: last", self.value(item.last), truth.last)

    def wakeups(self, window, track, name, differences, wakes=None):
        """Who wakes whom when, and when that one runs."""
        expected = collections.Counter(window.of(self.truth.arrows if wakes is None else wakes))
        found = collections.Counter()
        for item in track.items:
            begin, end = (round(edge) + window.begin for edge in (item.begin, item.end))
            source, target = self.track(item.source), self.track(item.target)
            found[begin, (source[1], target[1])] += 1
            if self.value(item.value) != target[1]:
                differences.add(f"{name}: {self.value(item.value)} is woken, and the arrow leads to {target}")
            runs_at = self.truth.runs_at(target[1], begin)
            if item.flags & 2:
                if runs_at is not None and runs_at < window.end:
                    differences.add(f"{name}: nobody knows when {target} runs, who does so at {runs_at}")
            elif end != runs_at:
                differences.same(f"{name}: {target}, woken at {begin}, runs", end, runs_at)
        self.same_counts(name, found, expected, differences)

    def runs(self, window, track, name, differences):
        expected = self.truth.states[name].between(window.begin, window.end)
        found = [run for run in track.items if run.flags & 1 or run.end > run.begin]
        if len(found) != len(expected):
            told = [(round(run.begin) + window.begin, round(run.end) + window.begin) for run in found]
            differences.same(f"{name}: runs", told, expected)
            return
        for run, true in zip(found, expected):
            begin, end = (round(edge) + window.begin for edge in (run.begin, run.end))
            self.one_run(f"{name} in {window}", (begin, end, run.flags, self.value(run.value)), true, window.end, differences)

    def one_run(self, what, run, true, known_until, differences):
        """A run against the truth; how it ends may be unknown where that is behind what was asked for."""
        begin, end, flags, value = run
        differences.same(f"{what}: value", value, true[2])
        differences.same(f"{what}: begin", None if flags & 1 else begin, None if true[0] == -FOREVER else true[0])
        if flags & 2:
            if true[1] < known_until or true[1] < end:
                differences.add(f"{what}: the end is unknown, and there until {end}; in truth it is {true[1]}")
        else:
            differences.same(f"{what}: end", end, true[1])

    # Items

    def items(self):
        """What is on a track at some time, with all that is known of it."""
        differences = Differences()
        number = self.random.choice(self.some_tracks())
        name = self.track(number)
        if name in self.truth.states:
            time = self.random.randint(self.origin, self.end)
            self.runs_at(number, time, differences)
        elif self.truth.instants.get(name):
            time = self.random.choice(self.truth.instants[name])[0]
            self.events_at(number, time, differences)
        elif name == ("wakeups",) and self.truth.arrows:
            time = self.random.choice(self.truth.arrows)[0]
            self.wakeups_at(number, time, differences)
        else:
            return "items", differences
        return f"{name} at {time}", differences

    def ask(self, number, time):
        self.asked += 1
        return self.server.json("items", track=number, at=time)

    def runs_at(self, number, time, differences):
        expected = self.truth.states[self.track(number)].between(time, time + 1)
        answer = self.ask(number, time)
        found = [item for item in answer["items"] if not item["begin_known"] or item["begin_ns"] < item["end_ns"]]
        differences.same("complete", answer["complete"], True)
        differences.same("runs", len(found), len(expected))
        self.compared["items"] += len(found)
        for item, true in zip(found, expected):
            flags = (not item["begin_known"]) | (not item["end_known"]) << 1
            run = (item["begin_ns"], item["end_ns"], flags, Named._value(item["value"], self.tracks))
            self.one_run("the run", run, true, FOREVER, differences)

    def events_at(self, number, time, differences):
        from events import plain_name

        name = self.track(number)
        events = self.truth.instants[name]
        first, last = (bisect.bisect_left(events, (at,)) for at in (time, time + 1))
        found = self.ask(number, time)["items"]
        self.compared["items"] += len(found)
        names = sorted(plain_name(item["value"]["label"]) for item in found)
        differences.same("events", names, sorted(event for _, event in events[first:last]))
        for item in found:
            event = item["event"]
            told = event and (event["time"], event["event"], type(event["payload"]))
            differences.same("the event", told, (time, item["value"]["label"], dict))

    def wakeups_at(self, number, time, differences):
        expected = sorted(woken for at, woken in self.truth.arrows if at == time)
        found = self.ask(number, time)["items"]
        self.compared["items"] += len(found)
        self.server.more(self.tracks, self.values)
        told = sorted((self.track(item["from"])[1], self.track(item["to"])[1]) for item in found)
        differences.same("wakeups", told, expected)
        for item in found:
            runs_at = self.truth.runs_at(self.track(item["to"])[1], time)
            if item["end_known"]:
                differences.same("who is woken runs", item["end_ns"], runs_at)

    def counts(self, window, track, name, differences):
        items = {item.bucket: item for item in track.items}
        by_bucket = collections.defaultdict(collections.Counter)
        for time, event in window.of(self.truth.instants.get(name, [])):
            by_bucket[window.number(time)][event] += 1
        for number in sorted(set(by_bucket) | set(items)):
            classes = by_bucket[number]
            item, what = items.get(number), f"{name}, bucket {number}"
            if item is None:
                differences.same(f"{what}: events", 0, sum(classes.values()))
                continue
            differences.same(f"{what}: events", item.count, sum(classes.values()))
            most = max(classes.values(), default=0)
            if len(classes) <= TOLD_APART_INSTANTS:
                differences.same(f"{what}: events of the most frequent class", item.count_of_value, most)
                differences.same(f"{what}: of {self.value(item.value)}", classes.get(self.plain(item.value), 0), most)
            elif self.value(item.value) != OTHERS and item.count_of_value > classes[self.plain(item.value)]:
                differences.same(f"{what}: of {self.value(item.value)}", item.count_of_value, classes[self.plain(item.value)])

    def plain(self, number):
        return self.plain_name(self.value(number))

    @staticmethod
    def plain_name(label):
        from events import plain_name

        return plain_name(label)

    def events(self, window, track, name, differences):
        expected = collections.Counter(window.of(self.truth.instants.get(name, [])))
        found = collections.Counter((round(item.time) + window.begin, self.plain(item.value)) for item in track.items)
        self.same_counts(name, found, expected, differences)

    # Levels

    def levels_agree(self):
        """A window twice, in buckets of one level and of the next: two of the former add up to one of the latter."""
        differences, window = Differences(), self.window()
        level, tracks = window.level, self.some_tracks()
        window = Window(self.origin, level + 1, window.first // 2, window.count)
        wide = self.server.tiles(level + 1, window.first, window.count, tracks)
        narrow = self.server.tiles(level, window.first * 2, window.count * 2, tracks)
        self.asked += 2
        for number in tracks:
            sums = collections.Counter()
            for (bucket, what), count in in_buckets(narrow.tracks[number], level).items():
                sums[bucket // 2, what] += count
            self.same_counts(
                f"{self.track(number)}, two buckets of level {level}", in_buckets(wide.tracks[number], level + 1), +sums, differences
            )
            if wide.tracks[number].form == narrow.tracks[number].form == served.STATES:
                self.same_values(window, wide.tracks[number], narrow.tracks[number], differences)
        return window, differences

    def same_values(self, window, wide, narrow, differences):
        """What tracks are at the ends of buckets, and how long the value lasts that two buckets tell of."""
        name = self.track(wide.number)
        differences.same(f"{name}: at the begin", self.value(wide.carry), self.value(narrow.carry))
        halves, items = {item.bucket: item for item in narrow.items}, {item.bucket: item for item in wide.items}
        current = [wide.carry, narrow.carry]
        for number in range(window.count):
            shares = collections.Counter()
            for half in (2 * number, 2 * number + 1):
                if half in halves:
                    shares[halves[half].value] += halves[half].share / 2
                    shares[halves[half].second] += halves[half].share_second / 2
                    current[1] = none_of(halves[half].last)
                elif current[1] is not None:
                    shares[current[1]] += SHARE / 2
            item = items.get(number)
            if item is not None:
                current[0] = none_of(item.last)
                # A half tells of two values only: the whole may tell of more.
                for value, share in ((item.value, item.share), (item.second, item.share_second)):
                    lost = 2 * SHARE * lost_time(1 << window.level, item.begins) / (1 << window.level)
                    if value != served.NONE and share + 2 + lost < shares[value]:
                        differences.add(f"{name}, bucket {number}: {share} of {self.value(value)}; its halves say {shares[value]}")
            differences.same(f"{name}, bucket {number}: last", current[0], current[1])


def none_of(number):
    return None if number == served.NONE else number


def in_buckets(track, level):
    """What happens in each bucket, whatever the form: values that begin, events, durations, arrows."""
    counts = collections.Counter()
    for item in track.items:
        if track.form == served.STATES:
            counts[item.bucket, None] += item.begins
        elif track.form == served.INSTANTS_IN_BUCKETS:
            counts[item.bucket, None] += item.count
        elif track.form == served.INSTANTS:
            counts[int(item.time) >> level, None] += 1
        elif track.form == served.HEAT:
            counts[item.bucket, None] += item.count
        elif track.form == served.COUNTER:
            counts[item.bucket, None] += item.changes
        elif track.form == served.ARROWS_IN_BUCKETS:
            counts[item.bucket, item.source] += item.count
        elif track.form == served.ARROWS:
            counts[int(item.begin) >> level, item.source] += 1
        elif track.form == served.RUNS and not item.flags & 1 and item.begin >= 0:
            counts[int(item.begin) >> level, None] += 1
    return +counts


# The command


def with_library():
    """Goes on with a Python that has babeltrace2's library; False: there is none."""
    if subprocess.run([sys.executable, "-c", "import bt2"], capture_output=True).returncode == 0:
        return True
    other = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(other) and os.path.exists(other):
        if subprocess.run([other, "-c", "import bt2"], capture_output=True).returncode == 0:
            os.execv(other, [other, *sys.argv])
    return False


def check(kymo, path, programs, windows, seed):
    """Whether all answers are right, and what was compared."""
    begun = time.monotonic()
    truth = (TruthOfPrograms if path in programs else Truth)(path)
    read = time.monotonic() - begun
    options = ["--own", str(OWN)] if path in programs else []
    with tempfile.TemporaryDirectory() as cache:
        with served.Served(kymo, [path], *options, environment={"XDG_CACHE_HOME": cache}) as server:
            status = server.complete()
            checking = Check(truth, server, status, random.Random(seed))
            wrong = [checking.all_tracks()]
            wrong += [checking.one() for _ in range(windows)]
            wrong += [checking.levels_agree() for _ in range(windows // 2)]
            wrong += [checking.items() for _ in range(windows)]
            wrong += [checking.some_events() for _ in range(windows)]
            wrong.append(checking.as_often_too_much())
    wrong = [(where, found) for where, found in wrong if found.count]
    words = ", ".join(f"{count} {name}" for name, count in sorted(checking.compared.items()))
    print(f"{path.name}: {truth.events} events, {len(checking.tracks)} tracks, {checking.asked} answers: {words};"
          f" {read:.1f} s + {time.monotonic() - begun - read:.1f} s")
    for where, found in wrong:
        print(f"  {where}: {found.count} differences")
        for line in found.shown:
            print(f"    {line[:400]}")
    return not wrong, checking.compared


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kymo")
    parser.add_argument("--only", default="", help="traces whose path has this in it")
    parser.add_argument("--windows", type=int, default=60, help="random windows of each trace")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=pathlib.Path, action="append", default=[], help="also a trace that kymo recorded of a program")
    arguments = parser.parse_args()
    if not with_library():
        print("NOT CHECKED: tiles, as no Python here has babeltrace2's library (python3-bt2)", file=sys.stderr)
        return 0
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not corpus.is_dir():
        print(f"NOT CHECKED: tiles, as there is no corpus at {corpus} (KYMO_CORPUS)", file=sys.stderr)
        return 0
    programs = (*PROGRAMS, *arguments.program)
    traces = [path for path in (*(corpus / name for name in TRACES), *programs) if arguments.only in str(path)]
    if not traces:
        parser.error(f"no trace has {arguments.only!r} in its path: {', '.join(map(str, (*TRACES, *PROGRAMS)))}")
    results = [check(arguments.kymo, path, programs, arguments.windows, arguments.seed) for path in traces]
    compared = sum((counts for _, counts in results), collections.Counter())
    never = [name for name in ("runs", "events", "wakeups", "numbers", "items") if not compared[name]]
    if never and not arguments.only:
        print(f"nothing was compared of: {', '.join(never)}")
    return 0 if all(is_right for is_right, _ in results) and (arguments.only or not never) else 1


if __name__ == "__main__":
    sys.exit(main())
