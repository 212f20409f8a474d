"""Oracle of `kymo periods`: how long periods last and of what they consist. See docs/analyses.md, section 13.

    period_sums.py TRACE --period JSON... [--of NAME [--parts NAME,...]] [--by NAME.WORD,...] [--min NS]

A period is {"name", "begin", "end", "within", "if": {FIELD: [MODULUS, REST]}, "end_if", "same": [FIELD...], "as_parent":
{FIELD: FIELD of the parent's first event}, "told": {WORD: FIELD}, "told_at_end"}. Without "end", "begin" is the end too.
"""

import argparse
import json
import math

from events import Trace
from figures import Answer, common, percentiles, statistics, union


def value(event, field):
    return event.cpu if field == "cpu" else event.get(field)


def are_equal(one, other):
    return one is not None and one == other


class Kind:
    """What somebody calls a period."""

    def __init__(self, said):
        self.name, self.begin, self.end = said["name"], said["begin"], said.get("end")
        self.within, self.same, self.as_parent = said.get("within"), said.get("same", []), said.get("as_parent", {})
        self.when, self.end_when = said.get("if", {}), said.get("end_if", {})
        self.told, self.told_at_end = said.get("told", {}), said.get("told_at_end", {})
        if self.end is None:
            self.end_when = self.when
        self.depth = 0

    def fields(self):
        return {*self.same, *self.as_parent, *self.when, *self.end_when, *self.told.values(), *self.told_at_end.values()}

    @staticmethod
    def is_so(event, conditions):
        numbers = ((value(event, field), *numbers) for field, numbers in conditions.items())
        return all(number is not None and number % modulus == rest for number, modulus, rest in numbers)

    def begins(self, event):
        return event.name == self.begin and self.is_so(event, self.when)

    def ends(self, event):
        return event.name == (self.end or self.begin) and self.is_so(event, self.end_when)


class Period:
    """A period and those in it."""

    def __init__(self, kind, first, parent):
        self.kind, self.first, self.parent, self.children = kind, first, parent, []
        self.end = self.cut = None
        self.told = {word: value(first, field) for word, field in kind.told.items()}
        if parent:
            parent.children.append(self)

    @property
    def begin(self):
        return self.first.time

    @property
    def duration(self):
        return self.end - self.begin

    def is_open(self):
        return self.end is None and self.cut is None

    def is_ended_by(self, event):
        return all(are_equal(value(event, field), value(self.first, field)) for field in self.kind.same)

    def close(self, event):
        self.end = event.time
        self.told.update({word: value(event, field) for word, field in self.kind.told_at_end.items()})
        for child in self.all_within():
            if child.is_open():
                child.cut = event.time

    def all_within(self):
        for child in self.children:
            yield child
            yield from child.all_within()

    def word(self, name, word):
        """What is told of this period, or of the one of that name that it is in."""
        if self.kind.name == name:
            return self.told.get(word)
        return self.parent.word(name, word) if self.parent else None


class Periods:
    """All periods of a trace."""

    def __init__(self, trace, kinds):
        self.losses, self.kinds, self.all, self.idle_ends = trace.losses(), kinds, [], {}
        by_name = {kind.name: kind for kind in kinds}
        for kind in kinds:
            above = kind
            while above.within is not None:
                kind.depth, above = kind.depth + 1, by_name[above.within]
        self._open = {kind.name: [] for kind in kinds}
        for event in trace.events:
            for kind in sorted(kinds, key=lambda kind: -kind.depth):
                if kind.ends(event):
                    self._end(kind, event)
            for kind in sorted(kinds, key=lambda kind: kind.depth):
                if kind.begins(event):
                    self._begin(kind, event)

    def _begin(self, kind, event):
        parents = [None] if kind.within is None else self._open[kind.within]
        for parent in parents:
            pairs = kind.as_parent.items()
            if all(are_equal(value(event, own), value(parent.first, other)) for own, other in pairs):
                self.all.append(Period(kind, event, parent))
                self._open[kind.name].append(self.all[-1])

    def _end(self, kind, event):
        ended = [period for period in self._open[kind.name] if period.is_ended_by(event)]
        for period in ended:
            period.close(event)
        if not ended and kind.end is not None:
            self.idle_ends[kind.name] = self.idle_ends.get(kind.name, 0) + 1
        if ended:
            self._open = {name: [period for period in some if period.is_open()] for name, some in self._open.items()}

    def is_whole(self, period):
        until = next((end for end in (period.end, period.cut) if end is not None), math.inf)
        return not any(loss.touches(period.begin, until) for loss in self.losses)


def group_of(period, by):
    return tuple(period.word(*text.rsplit(".", 1)) for text in by)


def group_cells(group):
    return {f"group_{place}": known for place, known in enumerate(group, 1)}


def captures(period, words):
    return {f"capture_{place}": period.told.get(word) for place, word in enumerate(words, 1)}


def by_name(periods, arguments, result):
    """Table `statistics`."""
    rows = {}
    row = lambda name, group: rows.setdefault((name, group), {"durations": [], "never": 0, "lost": 0, "idle": 0})
    for period in periods.all:
        if period.end is not None and period.duration < arguments.min:
            continue
        mine = row(period.kind.name, group_of(period, arguments.by))
        if not periods.is_whole(period):
            mine["lost"] += 1
        elif period.end is None:
            mine["never"] += 1
        else:
            mine["durations"].append(period.duration)
    for name, count in periods.idle_ends.items():
        row(name, (None,) * len(arguments.by))["idle"] += count
    for (name, group), mine in rows.items():
        sums = {**statistics(mine["durations"]), **percentiles(mine["durations"])}
        counts = {"never_ended": mine["never"], "lost_inside": mine["lost"], "ended_nothing": mine["idle"]}
        result.row("statistics", {"name": name, **group_cells(group), **sums, **counts})


def each(periods, words, arguments, result):
    """Tables `periods` and `open`."""
    for period in periods.all:
        what = {"name": period.kind.name, "parent": period.parent.begin if period.parent else None}
        told = {**captures(period, words), "uncertain": not periods.is_whole(period)}
        if period.end is None:
            result.row("open", {"begin": period.begin, **what, "parent_end": period.cut, **told})
        elif period.duration >= arguments.min:
            times = {"duration": period.duration, "begin": period.begin, "end": period.end}
            result.row("periods", {**times, **what, **told})


class Within:
    """What one period consists of."""

    def __init__(self, period, parts):
        inner = [part for part in period.all_within() if part.kind.name in parts]
        self.period, spans = period, {name: [] for name in parts}
        self.cut = dict.fromkeys(parts, 0)
        for part in inner:
            if part.end is None:
                self.cut[part.kind.name] += 1
            else:
                spans[part.kind.name].append((part.begin, part.end))
        self.durations = {name: [end - begin for begin, end in some] for name, some in spans.items()}
        # In the period, though none can be elsewhere.
        cover = lambda some: common(union(some), period.begin, period.end)
        self.covered = {name: cover(some) for name, some in spans.items()}
        self.rest = period.duration - cover([span for some in spans.values() for span in some])


def shares(total, covered, whole):
    share = lambda part: part / whole if whole else None
    return {"share": share(total), "covered": covered, "covered_share": share(covered)}


def of_each(periods, words, withins, parts, result):
    """Table `per-parent`."""
    for within in withins:
        period = within.period
        head = {"duration": period.duration, "begin": period.begin, "end": period.end, **captures(period, words)}
        is_lost = {"uncertain": not periods.is_whole(period)}
        for name in parts:
            durations, cut = within.durations[name], within.cut[name]
            if durations or cut:
                measure = shares(sum(durations), within.covered[name], period.duration)
                sums = {**statistics(durations), **measure, "never_ended": cut}
                result.row("per-parent", {**head, "part": name, **sums, **is_lost})
        nothing = {**dict.fromkeys(statistics([])), "total": within.rest}
        measure = shares(within.rest, within.rest, period.duration)
        result.row("per-parent", {**head, "part": None, **nothing, **measure, "never_ended": 0, **is_lost})


def of_all(periods, withins, parts, arguments, result):
    """Table `per-part`."""
    groups = {}
    for within in withins:
        groups.setdefault(group_of(within.period, arguments.by), []).append(within)
    for group, some in groups.items():
        whole = [within for within in some if periods.is_whole(within.period)]
        time = sum(within.period.duration for within in whole)
        lost = {"lost_inside": len(some) - len(whole)}
        for name in (*parts, None):
            totals = [sum(within.durations[name]) if name is not None else within.rest for within in whole]
            covered = sum(within.covered[name] if name is not None else within.rest for within in whole)
            have = [within.durations[name] if name is not None else within.rest for within in whole]
            counts = {"periods": len(whole), "with": sum(bool(known) for known in have)}
            counts["count"] = sum(map(len, have)) if name is not None else None
            sums = statistics(totals)
            del sums["count"]
            sums.update({**percentiles(totals), **shares(sum(totals), covered, time)})
            never = sum(within.cut[name] for within in whole) if name is not None else 0
            result.row("per-part", {"part": name, **group_cells(group), **counts, **sums, "never_ended": never, **lost})


def answer(arguments):
    kinds = [Kind(json.loads(text)) for text in arguments.period]
    names = {name for kind in kinds for name in (kind.begin, kind.end or kind.begin)}
    fields = {field for kind in kinds for field in kind.fields() if field != "cpu"}
    trace = Trace(arguments.trace, lambda name: fields if name in names else None, name_of=str)
    periods, result = Periods(trace, kinds), Answer()
    words = list(dict.fromkeys(word for kind in kinds for word in (*kind.told, *kind.told_at_end)))
    by_name(periods, arguments, result)
    each(periods, words, arguments, result)
    if arguments.of:
        inside = [kind.name for kind in kinds if kind.within is not None]
        parts = [name for name in inside if not arguments.parts or name in arguments.parts]
        wanted = (period for period in periods.all if period.kind.name == arguments.of and period.end is not None)
        withins = [Within(period, parts) for period in wanted if period.duration >= arguments.min]
        of_each(periods, words, withins, parts, result)
        of_all(periods, withins, parts, arguments, result)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--period", action="append", required=True)
    parser.add_argument("--of")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[])
    parser.add_argument("--by", type=lambda text: text.split(","), default=[])
    parser.add_argument("--min", type=int, default=0)
    answer(parser.parse_args()).print()


if __name__ == "__main__":
    main()
