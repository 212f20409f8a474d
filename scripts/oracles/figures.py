"""Statistics and tables as docs/analyses.md defines them: exact integers, nothing estimated."""

import json
import math
import sys

PERCENTILES = (("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999))


def nearest(numerator, denominator):
    """A quotient of natural numbers, rounded to the nearest whole, halves up."""
    return (2 * numerator + denominator) // (2 * denominator)


def statistics(values):
    """Columns from `count` to `stdev`."""
    count, total = len(values), sum(values)
    if not count:
        return {"count": 0, "total": 0, "min": None, "avg": None, "max": None, "stdev": None}
    deviation = None
    if count > 1:
        squared = count * sum(value * value for value in values) - total * total
        deviation = round(math.sqrt(squared / (count * (count - 1))))
    return {
        "count": count,
        "total": total,
        "min": min(values),
        "avg": nearest(total, count),
        "max": max(values),
        "stdev": deviation,
    }


def percentiles(values):
    """Columns `p50` to `p999`, by nearest rank."""
    ordered = sorted(values)
    return {
        name: ordered[-(-len(ordered) * thousandths // 1000) - 1] if ordered else None
        for name, thousandths in PERCENTILES
    }


def with_prefix(columns, prefix):
    return {prefix + name: value for name, value in columns.items()}


class Answer:
    """Tables that grow by rows; all rows of a table have the same columns, in the same order."""

    def __init__(self):
        self.tables = {}

    def row(self, table, cells):
        columns, rows = self.tables.setdefault(table, (list(cells), []))
        if list(cells) != columns:
            raise ValueError(f"{table}: {list(cells)} beside {columns}")
        rows.append(list(cells.values()))

    def print(self, stale=()):
        """As JSON on standard output."""
        tables = [
            {"class": name, "columns": [{"name": column} for column in columns], "rows": rows}
            for name, (columns, rows) in self.tables.items()
        ]
        json.dump({"tables": tables, "stale": sorted(stale)}, sys.stdout)
        print()


def union(spans):
    """Spans that do not overlap, in order, covering the same."""
    whole = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(whole[-1][1], end))
        else:
            whole.append((begin, end))
    return whole


def length(spans):
    return sum(end - begin for begin, end in spans)


def common(spans, begin, end):
    """How much of a span lies in spans that do not overlap each other."""
    return sum(max(0, min(right, end) - max(left, begin)) for left, right in spans)
