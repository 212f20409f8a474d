#!/usr/bin/env python3
"""Checks `kymo sql`: its answers are DuckDB's, over what `kymo export` writes of the same traces.

    sql.py KYMO [--only WORD]

Run it with the Python of the environment that scripts/setup.sh python makes: it needs duckdb and pyarrow. Traces are those of
the corpus ($KYMO_CORPUS, else ../shared/corpus), a kernel's and a program's, and examples/traces/demo. DuckDB reads times that count nanoseconds as
microseconds, so it gets them as numbers: `{t:N}` in a query is a time to one and a number to the other.
"""

import argparse
import decimal
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "traces" / "demo"
KERNEL = "ctf/tracecompass/many-threads"
PROGRAM = "ctf/tracecompass/cyg-profile"

# What is asked of every table: T, a column of whole numbers N, a value of it V, a column of text S and a value of it W, and
# two times A and B within.
GENERAL = """
select count(*) from T
select count(*), count(N), min(N), max(N), sum(N) from T
select N, count(*) from T group by N
select N, count(*) as c from T group by N having count(*) > 3 order by c desc, N limit 7
select count(*) from T where N = V
select cycles, N from T where N = V
select cycles from T where N <> V and N > 0
select cycles from T where N < V or N >= V + 3
select cycles from T where N between V - 2 and V + 2
select cycles from T where N not between V - 2 and V + 2
select cycles from T where N in (V, V + 1, 0)
select cycles from T where N not in (V, V + 1)
select cycles from T where not (N = V and cycles % 2 = 0)
select cycles from T where N * 2 + 1 > V and N % 3 = 1
select cycles from T where N & 1 = 1
select cycles from T where N - 1 < V
select cycles from T where N > V + 0.5
select N / 2, count(*) from T group by 1
select count(distinct N) from T
select count(*) from T where N is null
select count(*) from T where N is not null and N <= V
select CAST(time AS BIGINT) as t, cycles, stream from T where time >= {t:A} and time < {t:B} order by time, stream, cycles
select CAST(time AS BIGINT) as t from T where time between {t:A} and {t:B} and N >= V order by 1
select count(*) from T where time > {t:B} or time <= {t:A}
select count(*) from T where not (time > {t:A}) and N <> V
select CAST(min(time) AS BIGINT), CAST(max(time) AS BIGINT) from T
select max(d) from (select CAST(time AS BIGINT) - CAST(lag(time) over (order by time, stream, cycles) AS BIGINT) as d from T) as x
select stream, count(*) from T group by stream order by stream
select stream, N, row_number() over (partition by stream order by cycles, N) as r from T where N = V
select S, count(*) from T group by S
select S, count(*) from T where S = 'W' group by S
select count(*) from T where S <> 'W'
select count(*) from T where S in ('W', 'x')
select count(*) from T where S not in ('W', 'x')
select count(*) from T where S like substr('W', 1, 1) || '%'
select count(*) from T where S like 'P%'
select count(*) from T where S not like 'P%'
select count(*) from T where S like '%Q'
select count(*) from T where S like '%M%' and N >= 0
select count(*) from T where S like 'P_%'
select count(*) from T where S > 'W'
select count(*) from T where S <= 'W' and N <> V
select count(*) from T where starts_with(S, 'P')
select upper(S), length(S), count(*) from T group by 1, 2
select a.N, count(*) from T as a join (select N from T group by N having count(*) > 2) as b on a.N = b.N group by 1
select N from T where N > (select avg(N) from T) group by N order by N desc limit 5
select N, sum(case when S = 'W' then 1 else 0 end) from T group by N
select * from (select cycles, N from T order by cycles, N limit 10) as x union all select cycles, N from T where N = V
with x as (select N, count(*) as c from T group by N) select max(c), min(c), avg(c) from x
"""

OF_EVENTS = """
select name, count(*) from events group by name
select count(*) from events where name = 'T'
select name, count(*) from events where name like 'P%' group by name
select name, stream, count(*) from events where name in ('T', 'nothing') group by name, stream
select name, min(cycles) from events where name <> 'T' and time >= {t:A} group by name
select CAST(time AS BIGINT) as t, name from events where time >= {t:A} and time < {t:B} order by time, name
select count(*) from events where time > {t:B}
"""


class Trace:
    """A trace, and its tables in DuckDB."""

    def __init__(self, kymo, path, folder):
        self.kymo, self.path = kymo, path
        subprocess.run([kymo, "export", str(path), "--output", str(folder)], check=True, stdout=subprocess.DEVNULL)
        self.base = duckdb.connect()
        self.tables, parts = {}, []
        for file in sorted(pathlib.Path(folder).glob("**/*.parquet")):
            table = pyarrow.parquet.read_table(file)
            at = table.schema.get_field_index("time")
            table = table.set_column(at, "time", table.column("time").cast("int64"))
            name = self.event_name(file.stem)
            self.tables[name] = table
            self.base.register(name, table)
            names = pyarrow.array([name] * len(table))
            parts.append(table.select(["time", "cycles", "stream"]).append_column("name", names))
        self.base.register("events", pyarrow.concat_tables(parts))

    def event_name(self, stem):
        """Files have no signs in their names that some system does not take."""
        if not hasattr(self, "names"):
            out = self.rows("select distinct event from fields union select distinct name from events")
            self.names = {re.sub(r"[^\w.-]", "_", name): name for (name,) in out if name}
        return self.names[stem]

    def rows(self, query):
        """What kymo answers."""
        done = subprocess.run([self.kymo, "sql", str(self.path), query, "--format", "arrow"], capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"{query}\n{done.stderr.decode()}")
        table = pyarrow.ipc.open_stream(done.stdout).read_all()
        return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else []

    def values(self, name):
        """A column of numbers, one of texts, values of them and times."""
        table = self.tables[name]
        columns = [field for field in table.schema if field.name not in ("time", "cycles", "stream")]
        # Sums of the widest numbers without a sign are no 64 bits in one, and more in the other.
        is_number = lambda kind: pyarrow.types.is_integer(kind) and not pyarrow.types.is_uint64(kind)
        number = next((field.name for field in columns if is_number(field.type)), None)
        text = next((field.name for field in columns if pyarrow.types.is_string(field.type)), None)
        middle = len(table) // 2
        times = table.column("time").to_pylist()
        found = {"T": name, "A": times[len(times) // 3], "B": times[2 * len(times) // 3]}
        if number:
            found |= {"N": number, "V": table.column(number)[middle].as_py()}
        if text:
            word = table.column(text)[middle].as_py()
            found |= {"S": text, "W": word}
            # Only one of them has a sign that escapes.
            if word and not re.search(r"[%_\\]", word):
                found |= {"P": word[:2], "Q": word[-2:], "M": word[1:3]}
        return found


def filled(query, values):
    """A query for this table; None: it has not what is asked for."""
    for key in sorted(set(re.findall(r"\b[TNVSWPQMAB]\b", query))):
        if key not in values:
            return None

    def word(found):
        key = found.group(0)
        value = str(values[key]).replace("'", "''")
        return f'"{value}"' if key in "TNS" and f"'{key}'" not in query else value

    return re.sub(r"\b[TNVSWPQMAB]\b", word, query)


def canonical(value):
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return round(value, 9 - int(math.floor(math.log10(abs(value))))) if value and math.isfinite(value) else value
    return value


def same(ours, theirs, is_ordered):
    """Whether rows are the same."""
    ours = [tuple(map(canonical, row)) for row in ours]
    theirs = [tuple(map(canonical, row)) for row in theirs]
    if not is_ordered:
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    return len(ours) == len(theirs) and all(equal(one, other) for one, other in zip(ours, theirs))


def equal(one, other):
    return all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) or isinstance(b, float) else a == b
        for a, b in zip(one, other)
    ) if None not in one and None not in other else one == other


def check(trace, queries, values):
    """How many queries were asked, and what differs."""
    asked, wrong = 0, []
    for query in filter(None, (line.strip() for line in queries.splitlines())):
        text = filled(query, values)
        if text is None:
            continue
        ours = re.sub(r"\{t:(-?\d+)\}", r"to_timestamp_nanos(\1)" if trace.are_dates else r"\1", text)
        # DuckDB's `/` is of reals.
        theirs = re.sub(r"\{t:(-?\d+)\}", r"\1", text).replace(" / ", " // ")
        expected = trace.base.execute(theirs).fetchall()
        got = trace.rows(ours)
        asked += 1
        outer = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", text))
        if not same(got, expected, "order by" in outer):
            wrong.append(f"{ours}\n  kymo:   {got[:3]} ({len(got)} rows)\n  DuckDB: {expected[:3]} ({len(expected)} rows)")
    return asked, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kymo")
    parser.add_argument("--only", default="", help="traces whose path has this in it")
    arguments = parser.parse_args()
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    paths = [DEMO]
    if corpus.is_dir():
        paths += [corpus / name for name in (KERNEL, PROGRAM)]
    else:
        print(f"CORPUS ABSENT: {corpus} is not there; SQL is compared on the demo alone", file=sys.stderr)
    failed = False
    for path in (path for path in paths if arguments.only in str(path)):
        if not path.exists():
            sys.exit(f"{path} is not there")
        with tempfile.TemporaryDirectory() as folder:
            trace = Trace(arguments.kymo, path, folder)
            are_dates = "Timestamp" in str(trace.rows("select arrow_typeof(time) from events limit 1"))
            trace.are_dates = are_dates
            largest = sorted(trace.tables, key=lambda name: -len(trace.tables[name]))[:3]
            asked, wrong = 0, []
            for name in largest:
                for queries in (GENERAL, OF_EVENTS):
                    some, differ = check(trace, queries, trace.values(name))
                    asked, wrong = asked + some, wrong + differ
            print(f"{path.name}: {asked} queries over {', '.join(largest)}: {len(wrong)} differ")
            for text in wrong:
                print(text)
            failed |= bool(wrong) or asked < 60
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
