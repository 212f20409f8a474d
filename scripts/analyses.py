#!/usr/bin/env python3
"""Checks that analyses answer what docs/analyses.md defines, to the last unit, on the corpus and on traces made to be odd.

    analyses.py [KYMO] [--only NAME] [--random N]

Five checks. On traces of the corpus, `kymo` and the oracles (scripts/oracles, over babeltrace2's library) answer the same.
On the traces of tests/analyses/odd-traces.txt both answer what is worked out there by hand. On random schedules of which
events are then left out, bounds contain what the whole schedule says; and both find the same periods there. On
random dumps of Barrelfish both break operations down into the same steps. Without KYMO only the oracles are checked.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORACLES = ROOT / "scripts" / "oracles"
CASES = ROOT / "tests" / "analyses" / "odd-traces.txt"
sys.path.insert(0, str(ORACLES))

import kept  # noqa: E402
import tiny_dump  # noqa: E402
import tiny_trace  # noqa: E402

COMMANDS = {"in-periods": ["analyse", "count"]}
PROGRAMS = {"io": "inout.py", "threads": "whose.py", "rates": "count.py", "gaps": "count.py", "in-periods": "periods.py", "periods": "period_sums.py"}
KERNEL = (
    "ctf/tracecompass/many-threads",
    "ctf/tracecompass/bug446190",
    "ctf/tracecompass/flipping-endianness",
    "ctf/babeltrace/succeed/lttng-tracefile-rotation/kernel",
    "ctf/tracecompass/perf-taskset2",
)
FUNCTIONS = "--begin {0}:func_entry --end {0}:func_exit --key vtid --nested --by addr"
SERVICE = "lib.eal.service.run"
INTERRUPTS = (
    "--begin irq_handler_entry --end irq_handler_exit --key cpu --key irq --capture irq --capture cpu",
    "--period 'i : irq_handler_entry : irq_handler_exit if irq == $begin.irq && packet.cpu_id == $begin.packet.cpu_id'"
    " --period-captures 'i : number=irq, cpu=packet.cpu_id'",
)
# Interrupts by number, by their name, and what they wake; each by CPU.
SERVED = (
    """--period '{"name": "i", "begin": "irq_handler_entry", "end": "irq_handler_exit", "same": ["irq", "cpu"],
     "told": {"number": "irq", "cpu": "cpu"}, "told_at_end": {"result": "ret"}}'
     --period '{"name": "wake", "within": "i", "begin": "sched_wakeup", "end": "irq_handler_exit", "as_parent": {"cpu": "cpu"},
     "told": {"tid": "tid"}}' --of i --by i.number,i.cpu""",
    """--period 'i : irq_handler_entry : irq_handler_exit if irq == $begin.irq && packet.cpu_id == $begin.packet.cpu_id'
     --period 'wake(i) : sched_wakeup if packet.cpu_id == $parent.packet.cpu_id : irq_handler_exit'
     --period-captures 'i : number=irq, cpu=packet.cpu_id : result=ret' --period-captures 'wake : tid=tid'
     --aggregate-by i --group-by i.number,cpu""",
)
# From switch to switch of some threads; calls in them, which overlap, and switches in these.
TURNS = (
    """--period '{"name": "turn", "begin": "sched_switch", "if": {"next_tid": [16, 3]}, "told": {"cpu": "cpu", "tid": "next_tid"}}'
     --period '{"name": "open", "within": "turn", "begin": "syscall_entry_open", "end": "syscall_exit_open", "same": ["cpu"],
     "told": {"flags": "flags"}}'
     --period '{"name": "switch", "within": "open", "begin": "sched_switch", "end": "sched_switch",
     "as_parent": {"cpu": "cpu"}, "same": ["cpu"]}'
     --of turn --by turn.tid,open.flags --min 100000""",
    """--period 'turn : sched_switch if next_tid % 16 == 3' --period-captures 'turn : cpu=packet.cpu_id, tid=next_tid'
     --period 'open(turn) : syscall_entry_open : syscall_exit_open if packet.cpu_id == $begin.packet.cpu_id'
     --period 'switch(open) : sched_switch if packet.cpu_id == $parent.packet.cpu_id : sched_switch
     if packet.cpu_id == $begin.packet.cpu_id'
     --period-captures 'open : flags=flags' --aggregate-by turn --group-by turn.tid,open.flags --min-duration 100us
     --order-by hierarchy""",
)
CALLS = (
    """--period '{"name": "f", "begin": "lttng_ust_cyg_profile:func_entry", "end": "lttng_ust_cyg_profile:func_exit",
     "same": ["vtid", "addr"], "told": {"addr": "addr"}, "told_at_end": {"site": "call_site"}}' --by f.addr,f.site""",
    """--period 'f : lttng_ust_cyg_profile:func_entry : lttng_ust_cyg_profile:func_exit if vtid == $begin.vtid && addr == $begin.addr'
     --period-captures 'f : addr=addr : site=call_site' --group-by f.addr,f.site --order-by time""",
)
DUMMIES = (
    """--period '{"name": "", "begin": "dummy_event", "told": {"at": "dummy_value"}}'
     --period '{"name": "odd", "begin": "dummy_event", "end": "dummy_event", "if": {"dummy_value": [2, 1]},
     "end_if": {"dummy_value": [3, 0]}}'""",
    """--period ': dummy_event' --period-captures ' : at=dummy_value'
     --period 'odd : dummy_event if dummy_value % 2 == 1 : dummy_event if dummy_value % 3 == 0'""",
)
# The same of schedules with losses: calls of each CPU, and the interrupts and pages in them.
LOSSY_PERIODS = (
    """--period '{"name": "call", "begin": "syscall_entry_read", "end": "syscall_exit_read", "same": ["cpu"],
     "told": {"cpu": "cpu"}, "told_at_end": {"ret": "ret"}}'
     --period '{"name": "served", "within": "call", "begin": "irq_handler_entry", "end": "irq_handler_exit", "same": ["irq", "cpu"]}'
     --period '{"name": "page", "within": "served", "begin": "mm_page_alloc", "end": "mm_page_free", "as_parent": {"cpu": "cpu"}}'
     --of call --by call.cpu,call.ret""",
    """--period 'call : syscall_entry_read : syscall_exit_read if packet.cpu_id == $begin.packet.cpu_id'
     --period 'served(call) : irq_handler_entry : irq_handler_exit if irq == $begin.irq && packet.cpu_id == $begin.packet.cpu_id'
     --period 'page(served) : mm_page_alloc if packet.cpu_id == $parent.packet.cpu_id : mm_page_free'
     --period-captures 'call : cpu=packet.cpu_id : ret=ret' --aggregate-by call --group-by cpu,ret""",
)
OPERATIONS = "--begin irq_handler_entry --end irq_handler_exit --key irq", "--start irq_handler_entry --stop irq_handler_exit --key irq"
LOSSY = {"periods": LOSSY_PERIODS, "breakdown": OPERATIONS}
# Events of programs, which say who they are by contexts, or do not.
PROGRAM_TRACES = (
    "ctf/tracecompass/context-switches/context-switches-ust",
    "ctf/tracecompass/cyg-profile/glxgears-cyg-profile-fast",
    "ctf/tracecompass/dpdk_service_cores",
)
DEMO = ROOT / "examples" / "traces" / "demo"
# The analysis, options of the oracle, those of kymo (None: the same), and traces.
QUESTIONS = (
    *((analysis, "", "", KERNEL) for analysis in ("count", "cpu", "syscalls", "io", "sched", "irq", "block")),
    ("memory", "", "", ("ctf/tracecompass/bug446190",)),
    ("threads", "", "", (*KERNEL, *PROGRAM_TRACES)),
    ("rates", "--rates 100000000", "--period 100ms", KERNEL[1:]),
    ("gaps", "--gaps 5", "--top 5", KERNEL),
    ("in-periods", "--begin sched_switch", "--period ': sched_switch'", KERNEL[1:2]),
    ("in-periods", *INTERRUPTS, KERNEL[:2]),
    ("periods", *SERVED, KERNEL[:2]),
    ("periods", *TURNS, KERNEL[:1]),
    ("periods", *CALLS, ("ctf/tracecompass/context-switches/context-switches-ust",)),
    ("periods", *DUMMIES, ("ctf/babeltrace/packet-seq-num/2-streams-lost-in-1", "ctf/babeltrace/packet-seq-num/2-lost-before-last")),
    ("pairs", FUNCTIONS.format("lttng_ust_cyg_profile"), None, ("ctf/tracecompass/context-switches/context-switches-ust",)),
    ("pairs", FUNCTIONS.format("lttng_ust_cyg_profile_fast"), None, ("ctf/tracecompass/cyg-profile/glxgears-cyg-profile-fast",)),
    ("pairs", f"--begin {SERVICE}.begin --end {SERVICE}.end --key lcore_id", None, ("ctf/tracecompass/dpdk_service_cores",)),
    ("pairs", "--begin irq_handler_entry --end irq_handler_exit --key cpu --key irq", None, KERNEL[:2]),
    ("breakdown", "--begin jobs:begin --end jobs:end --key id", None, (DEMO,)),
    # An interrupt, of the group `irq`, with all that is told of it; a wakeup, and what is told of the thread until it runs.
    ("breakdown", "--begin *_handler_entry --end *_handler_exit --key irq", None, KERNEL[:2]),
    ("breakdown", "--begin sched_wakeup --end sched_switch --key tid=next_tid", None, KERNEL[:2]),
    ("breakdown", f"--begin {SERVICE}.begin --end {SERVICE}.end --key lcore_id", None, ("ctf/tracecompass/dpdk_service_cores",)),
)
# Answers of kymo that are known to differ, and how.
OPEN_ON_TRACES = {}
# Columns that make a row's key; all others are compared.
KEYS = {
    "thread", "incarnation", "process", "cpu", "syscall", "errno", "irq", "device", "interface", "path", "fd", "category",
    "capture_1", "capture_2", "waker", "waker_incarnation", "priority", "application", "name", "stream_class", "stream", "group", "key", "begin_of_pair", "period",
    "group_1", "group_2", "begin", "part", "operation", "step", "time",
}
PERCENTILES = {"p50", "p90", "p99", "p999"}
PERCENTILE_ERROR = 0.001
UNKNOWN = "?"
# What the oracles' words are for kymo.
KYMO_WORDS = {"--begin": "--start", "--end": "--stop", "--by": "--group", "cpu": "packet.cpu_id"}


# Answers


class Table:
    """A table with cells as the oracles write them."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, [dict(zip(columns, row)) for row in rows]


def plain(cell):
    """A cell of kymo's JSON as the oracles write it."""
    if not isinstance(cell, dict):
        return cell
    if cell.get("unknown"):
        return UNKNOWN
    if "low" in cell:
        return [cell["value"], cell["low"], cell["high"]]
    if "tid" in cell:
        process = [cell["name"], cell["pid"]]
        return process if cell["tid"] is None else [*process, cell["tid"]]
    if "begin" in cell:
        return [cell["begin"], cell["end"]]
    if "number" in cell:
        return [cell["number"], cell["name"]]
    return cell.get("value", cell)


def tables_of_counts(answer, streams):
    """What `kymo count` prints, which has no tables, as tables."""
    count, lost = answer["events"], answer["events_discarded"]
    is_known = not answer["events_discarded_is_lower_bound"] and not answer["packets_lost"]
    bounds = {"count": [count, count, count + lost if is_known else None], "lost": [lost, lost, lost if is_known else None]}
    return {
        "per-class": Table(["name", "count"], [[group["class"], group["events"]] for group in answer["groups"]]),
        "per-stream": Table(["stream", "count"], [[group["stream"], group["events"]] for group in streams["groups"]]),
        "total": Table(list(bounds), [list(bounds.values())]),
    }


def tables_of(text):
    answer = json.loads(text)
    tables = {}
    for table in answer["tables"]:
        columns = [column["name"] for column in table["columns"]]
        tables[table["class"]] = Table(columns, [[plain(cell) for cell in row] for row in table["rows"]])
    return tables, set(answer.get("stale", ()))


def bounded(cell):
    """A number with bounds, whatever it is."""
    if isinstance(cell, list) and len(cell) == 3 and isinstance(cell[0], (int, float)):
        return cell
    return [cell, cell, cell]


def comparable(column, cell):
    """What of a key is compared: names may be told from the tables' numbers."""
    if column in ("thread", "waker") and isinstance(cell, list):
        return tuple(cell)
    return tuple(map(str, cell)) if isinstance(cell, list) else cell


# Who answers


def python_with_bt2():
    """A Python that has babeltrace2's library."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import bt2"], capture_output=True).returncode == 0:
            return python
    return None


def asked(command):
    begin = time.monotonic()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600)
    return done, time.monotonic() - begin


class Oracle:
    """Programs in scripts/oracles."""

    name = "oracle"

    def __init__(self, python):
        self.python = python

    def knows(self, analysis):
        return True

    def answer(self, analysis, options, trace):
        done, seconds = kept.ask([self.python, ORACLES / PROGRAMS.get(analysis, f"{analysis}.py"), trace, *options], timeout=600)
        if done.returncode:
            raise RuntimeError(f"oracle {analysis}: {done.stderr.strip().splitlines()[-1:]}")
        return *tables_of(done.stdout), seconds


class Kymo:
    """The program that is checked."""

    name = "kymo"

    def __init__(self, path):
        self.path = path
        self.commands = subprocess.run([path, "--help"], capture_output=True, text=True).stdout

    def knows(self, analysis):
        command = COMMANDS.get(analysis, [analysis])[0]
        return re.search(rf"^\s+{command}\b", self.commands, re.MULTILINE) is not None

    def answer(self, analysis, options, trace):
        options = [KYMO_WORDS.get(word, word) for word in options]
        done, seconds = asked([self.path, *COMMANDS.get(analysis, [analysis]), trace, "--json", *options])
        if "no event of these traces has the role" in done.stderr:
            return {}, set(), seconds
        if done.returncode:
            raise RuntimeError(f"kymo {analysis}: {done.stderr.strip()[:300]}")
        if analysis == "count":
            streams = json.loads(asked([self.path, analysis, trace, "--json", "--by", "stream"])[0].stdout)
            return tables_of_counts(json.loads(done.stdout), streams), set(), seconds
        return *tables_of(done.stdout), seconds


# Comparing


def rows_by_key(table, columns):
    keys = [column for column in columns if column in KEYS]
    rows = {}
    for row in table.rows:
        rows.setdefault(tuple(comparable(column, row.get(column)) for column in keys), []).append(row)
    return rows


def is_same(column, wanted, found):
    if column in PERCENTILES and isinstance(wanted, int) and bounded(found)[0] is not None:
        return abs(bounded(found)[0] - wanted) <= max(1, wanted * PERCENTILE_ERROR)
    if column.endswith("stdev") and isinstance(wanted, int) and bounded(found)[0] is not None:
        return abs(bounded(found)[0] - wanted) <= max(1, wanted * 1e-9)
    return bounded(wanted) == bounded(found)


def differences(wanted, found, stale):
    """What differs between two answers; and how many cells were compared."""
    problems, cells = [], 0
    for name, table in wanted.items():
        if name not in found:
            if not table.rows:
                continue
            problems.append(f"no table {name}")
            continue
        missing = [column for column in table.columns if column not in found[name].columns]
        if missing:
            problems.append(f"{name}: no column {', '.join(missing)}")
        columns = [column for column in table.columns if column not in missing]
        ours = rows_by_key(found[name], columns)
        for key, rows in rows_by_key(table, columns).items():
            others = ours.pop(key, [])
            if any(part in stale for part in key if isinstance(part, str)):
                continue
            if len(rows) != len(others):
                problems.append(f"{name} {key}: {len(others)} rows, expected {len(rows)}")
                continue
            for row, other in zip(rows, others):
                cells += len(columns)
                for column in columns:
                    if column not in KEYS and not is_same(column, row[column], other[column]):
                        problems.append(f"{name} {key} {column}: {other[column]}, expected {row[column]}")
        problems += [f"{name} {key}: not expected" for key in ours if not any(part in stale for part in key if isinstance(part, str))]
    return problems, cells


def total(table, column):
    return sum(bounded(row[column])[0] or 0 for row in table.rows) if table else 0


def contradictions(analysis, tables):
    """Sums of one answer that should be the same and are not."""
    sums = {
        "cpu": (("per-cpu", "busy", "per-thread", "run_time"), ("per-thread", "run_time", "per-process", "run_time")),
        "syscalls": [("per-syscall", column, "per-thread", column) for column in ("count", "total", "errors", "lost_inside")]
        + [("per-syscall", "errors", "errors", "count")],
        "io": [("per-thread", column, "per-process", column) for column in ("read", "write", "opens", "errors")]
        + [("per-thread", column, "per-file", column) for column in ("read", "write", "reads", "writes")],
        "sched": [("per-thread", column, "total", column) for column in ("count", "total", "never_ended", "unseen")]
        + [("per-priority", "total", "total", "total"), ("wakers", "total", "total", "total")],
        "irq": (("hard", "count", "hard-per-cpu", "count"), ("hard", "total", "hard-per-cpu", "total")),
        "memory": [("total", column, table, column)
            for column in ("allocations", "allocated", "frees", "freed")
            for table in ("per-thread", "per-process", "per-cpu")],
        "threads": [("total", "count", table, "count") for table in ("per-thread", "per-process", "per-application", "per-cpu")],
        "pairs": [("per-group", column, "total", column) for column in ("count", "total", "never_ended")],
        "count": (("per-class", "count", "total", "count"), ("per-stream", "count", "total", "count")),
    }
    for one, column, other, other_column in sums.get(analysis, ()):
        left, right = total(tables.get(one), column), total(tables.get(other), other_column)
        if left != right:
            yield f"{one} has {left} of {column}, {other} has {right} of {other_column}"


def compare_on_corpus(oracle, kymo, corpus, only):
    """Both answers on all traces; returns how many differ."""
    failures = 0
    print(f"{'analysis':<10} {'trace':<52} {'cells':>8} {'oracle':>8} {'kymo':>8}")
    for analysis, options, own_options, traces in QUESTIONS:
        if only and analysis != only:
            continue
        for trace in traces:
            path = corpus / trace
            try:
                wanted, stale, slow = oracle.answer(analysis, shlex.split(options), path)
                for problem in contradictions(analysis, wanted):
                    print(f"{analysis} {trace}: oracle: {problem}")
                    failures += 1
                line = f"{analysis:<10} {str(trace).removeprefix('ctf/')[-52:]:<52}"
                if kymo is None or not kymo.knows(analysis):
                    size = sum(len(table.rows) * len(table.columns) for table in wanted.values())
                    print(f"{line} {size:>8} {slow:>7.2f}s  not asked")
                    continue
                found, _, fast = kymo.answer(analysis, shlex.split(options if own_options is None else own_options), path)
            except (RuntimeError, ValueError) as error:
                print(f"{analysis} {trace}: {error}")
                failures += 1
                continue
            problems, cells = differences(wanted, found, stale | ({""} if stale else set()))
            problems += contradictions(analysis, found)
            print(f"{line} {cells:>8} {slow:>7.2f}s {fast:>7.3f}s" + (f"  {len(problems)} DIFFER" if problems else ""))
            known = OPEN_ON_TRACES.get((analysis, trace))
            for problem in [f"open: {known}"] if known and problems else problems[:8]:
                print(f"    {problem}")
            failures += bool(problems) and known is None
    return failures


# Instants


def state_of(kymo, trace, at):
    """What kymo says of an instant: CPUs and threads by their numbers, each with whether that is certain."""
    sign, second, rest = "-" * (at < 0), *divmod(abs(at), 10**9)
    done, seconds = asked([kymo.path, "state", trace, "--at", f"{sign}{second}.{rest:09}", "--json"])
    if done.returncode:
        raise RuntimeError(f"kymo state: {done.stderr.strip()[:300]}")
    tables = tables_of(done.stdout)[0]
    none = lambda cell: None if cell == UNKNOWN else cell
    number = lambda cell: cell[0] if cell else None
    cpus, threads = {}, {}
    for row in tables["cpus"].rows:
        tid = {"idle": 0, UNKNOWN: None}[row["thread"]] if isinstance(row["thread"], str) else row["thread"][2]
        served = [number(row["irq"]), number(row["softirq"])]
        cpus[str(row["cpu"])] = [tid, none(row["since"]), row["until"], *served], not row["uncertain"]
    for row in tables["threads"].rows:
        name, pid, tid = row["thread"]
        what = [row["state"], row["cpu"], none(row["since"]), row["until"], name, pid, none(row["call"])]
        threads[str(tid)] = what, not row["uncertain"]
    return {"cpus": cpus, "threads": threads}, seconds


def wrong_states(wanted, found):
    """What differs between two views of an instant; and how many rows are certain, and not."""
    problems, certain, uncertain = [], 0, 0
    for things in ("cpus", "threads"):
        for number, (row, is_certain) in found[things].items():
            # A CPU of which no event tells who runs is none to the oracle.
            expected = wanted[things].get(number) or ([None] * 5 if things == "cpus" else None)
            certain, uncertain = certain + is_certain, uncertain + (not is_certain)
            if is_certain and row != expected:
                problems.append(f"{things} {number}: {row}, expected {expected}")
        problems += [f"{things} {number}: missing" for number in wanted[things] if number not in found[things]]
    return problems, certain, uncertain


INSTANTS = 40


def compare_states(oracle, kymo, corpus):
    """What CPUs and threads do at random instants of all kernel traces; returns how many traces differ."""
    failures = 0
    for trace in KERNEL:
        done, slow = kept.ask([oracle.python, ORACLES / "state.py", corpus / trace, INSTANTS, 7], timeout=600)
        if done.returncode:
            print(f"state {trace}: oracle: {done.stderr.strip().splitlines()[-1:]}")
            failures += 1
            continue
        problems, certain, uncertain, fast = [], 0, 0, []
        for line in done.stdout.splitlines():
            wanted = json.loads(line)
            found, seconds = state_of(kymo, corpus / trace, wanted["at"])
            wrong, right, open_rows = wrong_states(wanted, found)
            problems += [f"at {wanted['at']}: {problem}" for problem in wrong]
            certain, uncertain, fast = certain + right, uncertain + open_rows, [*fast, seconds]
        line = f"{'state':<10} {trace.removeprefix('ctf/')[-52:]:<52} {certain:>8} {slow:>7.2f}s {min(fast):>7.3f}s"
        print(line + f"  {uncertain} rows uncertain" * bool(uncertain) + f"  {len(problems)} DIFFER" * bool(problems))
        for problem in problems[:8]:
            print(f"    {problem}")
        failures += bool(problems)
    return failures


# Traces worked out by hand


class Case:
    """A trace as text, and what to say of it."""

    def __init__(self, text):
        lines = text.split("\n")
        self.name, self.packets, self.expectations, self.is_for_kymo = lines[0].strip(), [], [], False
        for line in lines[1:]:
            words = line.split()
            self.is_for_kymo |= words[:1] == ["kymo:"]
            if not words or words[0] in ("why:", "kymo:"):
                continue
            if words[0] == "packet":
                self._packet(words[1:])
            elif words[0] in ("expect", "absent", "open"):
                self.expectations.append(Expectation(line))
            else:
                self._event(words)

    def _packet(self, words):
        begin, end = words[1].split("..")
        options = {name: int(value) for name, value in (word.split("=") for word in words[2:])}
        self.packets.append(tiny_trace.Packet(int(words[0]), int(begin), int(end), **options))

    def _event(self, words):
        if words[2:3] == ["->"]:
            words = [words[0], "sched_switch", f"prev_tid={words[1]}", f"next_tid={words[3]}", *words[4:]]
        values = dict(word.split("=", 1) for word in words[2:])
        numbers = {name: value if name in tiny_trace.TEXTS else int(value) for name, value in values.items()}
        self.packets[-1].events.append((int(words[0]), words[1], numbers))


class Expectation:
    """A row that there is, or is not."""

    def __init__(self, line):
        head, _, cells = line.partition(":")
        words = head.split()
        self.line, self.is_there, self.is_open = line.strip(), words[0] != "absent", words[0] == "open"
        first_key = next((place for place, word in enumerate(words) if "=" in word), len(words))
        self.analysis, self.options, self.table = words[1], words[2 : first_key - 1], words[first_key - 1]
        self.key = dict(word.split("=", 1) for word in words[first_key:])
        self.cells = dict(word.split("=", 1) for word in cells.split())

    def problem(self, tables):
        """What is wrong with an answer; None: nothing."""
        table = tables.get(self.table)
        rows = [row for row in table.rows if self._is_meant(row)] if table else []
        if not self.is_there:
            return "there is such a row" if rows else None
        if len(rows) != 1:
            return f"{len(rows)} such rows"
        for column, text in self.cells.items():
            wanted = expected_number(text)
            if bounded(rows[0].get(column)) != wanted:
                return f"{column} is {rows[0].get(column)}"
        return None

    def _is_meant(self, row):
        return all(is_meant(row, column, text) for column, text in self.key.items())


def is_meant(row, column, text):
    cell = row.get(column)
    if text in ("-", UNKNOWN):
        return cell == {"-": None, UNKNOWN: UNKNOWN}[text]
    tid, _, incarnation = text.partition("/")
    if column in ("thread", "waker") and isinstance(cell, list):
        number = row.get("incarnation" if column == "thread" else "waker_incarnation")
        return str(cell[2]) == tid and (not incarnation or str(number) == incarnation)
    if column == "process" and isinstance(cell, list):
        return str(cell[1]) == text
    if column == "irq" and isinstance(cell, list):
        return str(cell[0]) == text
    return str(cell) == text


def expected_number(text):
    if text == "-":
        return [None, None, None]
    value, low, high = re.fullmatch(r"(-?\d+)(?:\[(\d+),(\d+|none)\])?", text).groups()
    if low is None:
        return [int(value)] * 3
    return [int(value), int(low), None if high == "none" else int(high)]


def unmet(case, answerer, only, folder):
    """The expectations of a case that an answerer was asked about, each with what is wrong."""
    answers = {}
    for expectation in case.expectations:
        analysis, options = expectation.analysis, tuple(expectation.options)
        if (only and analysis != only) or not answerer.knows(analysis):
            continue
        try:
            if (analysis, options) not in answers:
                answers[analysis, options] = answerer.answer(analysis, options, folder)[0]
            yield expectation, expectation.problem(answers[analysis, options])
        except (RuntimeError, ValueError) as error:
            yield expectation, str(error)


def check_cases(answerers, only):
    """Every answerer on every case; returns how many expectations are not met."""
    failures, met = 0, dict.fromkeys((answerer.name for answerer in answerers), 0)
    for text in re.split(r"^--- ", CASES.read_text(), flags=re.MULTILINE)[1:]:
        case = Case(text)
        with tempfile.TemporaryDirectory() as folder:
            tiny_trace.write(folder, case.packets)
            for answerer in answerers:
                if case.is_for_kymo and answerer.name != "kymo":
                    continue
                for expectation, problem in unmet(case, answerer, only, folder):
                    met[answerer.name] += problem is None
                    is_open = answerer.name == "kymo" and expectation.is_open
                    failures += (problem is None) == is_open
                    if is_open and problem is None:
                        print(f"mended, so that it is no more `open`: {case.name}: {expectation.line}")
                    if problem:
                        print(f"{'open: ' * is_open}{case.name}: {answerer.name}: {problem}\n    {expectation.line}")
    print("odd traces: " + ", ".join(f"{name} meets {count} expectations" for name, count in met.items()))
    return failures


# Schedules with something left out


class Machine:
    """A machine that could have been: threads run, block, call, are woken; CPUs are interrupted."""

    def __init__(self, chance, cpus):
        self.chance, self.now = chance, 0
        self.running, self.events = [0] * cpus, [[] for _ in range(cpus)]
        self.states = dict.fromkeys(range(1, 4 + cpus), "ready")
        self.calls, self.serving = {}, [None] * cpus

    def step(self):
        """Something happens on some CPU."""
        self.now += self.chance.randrange(1, 30)
        cpu = self.chance.randrange(len(self.running))
        actions = [self._interrupt, self._wake, self._switch, self._page]
        actions += [self._call, self._call] if self.running[cpu] and self.serving[cpu] is None else []
        self.chance.choice(actions)(cpu)

    def _tell(self, cpu, event, /, **values):
        self.events[cpu].append((self.now, event, values))

    def _interrupt(self, cpu):
        if self.serving[cpu] is None:
            self.serving[cpu] = self.chance.randrange(2)
            self._tell(cpu, "irq_handler_entry", irq=self.serving[cpu], name="x")
        else:
            self._tell(cpu, "irq_handler_exit", irq=self.serving[cpu])
            self.serving[cpu] = None

    def _wake(self, cpu):
        asleep = [tid for tid, state in self.states.items() if state == "asleep"]
        if asleep:
            tid = self.chance.choice(asleep)
            self._tell(cpu, "sched_waking", tid=tid)
            self._tell(cpu, "sched_wakeup", tid=tid)
            self.states[tid] = "ready"

    def _page(self, cpu):
        self._tell(cpu, self.chance.choice(("mm_page_alloc", "mm_page_free")), order=self.chance.randrange(3))

    def _call(self, cpu):
        tid = self.running[cpu]
        name = self.calls.pop(tid, None)
        if name:
            self._tell(cpu, f"syscall_exit_{name}", ret=self.chance.choice((3, -11)))
        else:
            self.calls[tid] = self.chance.choice(("read", "write"))
            self._tell(cpu, f"syscall_entry_{self.calls[tid]}", fd=1)

    def _switch(self, cpu):
        leaving = self.running[cpu]
        following = self.chance.choice([0, *(tid for tid, state in self.states.items() if state == "ready")])
        if self.serving[cpu] is not None or following == leaving:
            return
        state = self.chance.choice((0, 0, 1, 2)) if leaving else 0
        self._tell(cpu, "sched_switch", prev_tid=leaving, prev_state=state, next_tid=following)
        self.states.update({leaving: "asleep" if state else "ready"} if leaving else {})
        self.states.update({following: "running"} if following else {})
        self.running[cpu] = following


def schedule(chance, cpus, length):
    """What could have happened, as events of each CPU, and when it ended."""
    machine = Machine(chance, cpus)
    while machine.now < length:
        machine.step()
    end = machine.now + 10
    # Answers are about the time from the first to the last event or loss: it is the same with losses.
    machine.events[0] = [(0, MARKS[0], {"key": 0}), *machine.events[0], (end, MARKS[1], {"key": 0})]
    return machine.events, end


# Events that are never left out.
MARKS = ("work_begin", "work_end")


def packets_of(chance, events, end, is_lossy):
    """The events in packets; the same packets with events left out, if that is asked for."""
    packets = []
    for cpu, mine in enumerate(events):
        cuts = sorted(chance.sample(range(1, end), 6))
        discarded = 0
        for begin, until in zip([0, *cuts], [*cuts, end]):
            inside = [event for event in mine if begin <= event[0] < until or event[0] == until == end]
            if is_lossy and begin and chance.random() < 0.4:
                kept = [event for event in inside if chance.random() < 0.6 or event[1] in MARKS]
                discarded += len(inside) - len(kept)
                inside = kept
            packets.append(tiny_trace.Packet(cpu, begin, until, inside, discarded=discarded))
    return packets


PAGES = ("allocations", "allocated", "frees", "freed")
BOUNDED = {
    "cpu": {"per-cpu": ("busy", "idle", "switches"), "per-thread": ("run_time", "runs", "migrations", "preemptions")},
    "memory": {"total": PAGES, "per-cpu": PAGES, "per-thread": PAGES},
    "threads": {"total": ("count", "idle"), "per-cpu": ("count",), "per-thread": ("count",)},
}
MEASURED = {
    "syscalls": ("per-syscall", "per-thread"),
    "sched": ("per-thread", "runs"),
    "irq": ("hard", "hard-per-cpu"),
}


def pairs_of_rows(whole, lossy, name):
    """Rows of both answers with the same key; names of threads are not part of it."""
    for table in (whole, lossy):
        if name not in table:
            return
    columns = [column for column in whole[name].columns if column in KEYS]
    key = lambda row: tuple(str(row[c][-1] if c == "thread" else row[c]) for c in columns)
    others = {key(row): row for row in lossy[name].rows}
    for row in whole[name].rows:
        if key(row) in others:
            yield " ".join((name, *key(row))), row, others[key(row)]


def broken_bounds(whole, lossy, tables):
    """Bounds of the lossy answer that do not contain what the whole one says."""
    for name, columns in tables.items():
        for what, row, other in pairs_of_rows(whole, lossy, name):
            # What nobody is known to have done is what was seen of that: no bounds are claimed.
            for column in columns if row.get("thread") != UNKNOWN else ():
                truth, (_, low, high) = bounded(row[column])[0], bounded(other[column])
                if truth < low or (high is not None and truth > high):
                    yield f"{what} {column}: the truth {truth} is not in {other[column]}"


def untrue_measures(whole, lossy, name):
    """Completed intervals of the lossy answer that the whole one cannot have."""
    for what, row, other in pairs_of_rows(whole, lossy, name):
        if bounded(other["count"])[0] == 0:
            continue
        limits = {column: bounded(row.get(column))[0] for column in ("count", "total", "min", "max") if column in row}
        for column, limit in limits.items():
            found = bounded(other[column])[0]
            if limit is None or (found < limit if column == "min" else found > limit):
                yield f"{what} {column}: {found} cannot be, all there is is {limit}"


def untrue_states(kymo, whole, lossy, end):
    """What kymo is certain of at instants of a trace with losses, and is not so."""
    for at in range(end // 12, end, end // 6):
        truth, found = (state_of(kymo, trace, at)[0] for trace in (whole, lossy))
        for things in ("cpus", "threads"):
            # Interrupts and calls are not said to be certain; nor are names, which have no losses here.
            facts = lambda row: row[:1] if things == "cpus" else row[:2]
            for number, (row, is_certain) in found[things].items():
                real = truth[things].get(number, ([None] * 7, True))[0]
                if is_certain and facts(row) != facts(real):
                    yield f"{things} {number} at {at}: {row}, in truth {real}"


def breaches(answerer, whole, lossy, only):
    """What an answerer says of a trace with losses that is not true."""
    for analysis, tables in BOUNDED.items():
        if answerer.knows(analysis) and only in (None, analysis):
            yield from broken_bounds(*(answerer.answer(analysis, [], trace)[0] for trace in (whole, lossy)), tables)
    for analysis, names in MEASURED.items():
        if answerer.knows(analysis) and only in (None, analysis):
            answers = [answerer.answer(analysis, [], trace)[0] for trace in (whole, lossy)]
            for name in names:
                yield from untrue_measures(*answers, name)
    if answerer.name == "kymo" and answerer.knows("state") and only in (None, "state"):
        yield from untrue_states(answerer, whole, lossy, 2000)


def check_bounds(answerers, count, only):
    """Random schedules, whole and with losses; returns how many have a bound that does not hold."""
    failures = 0
    for number in range(count):
        events, end = schedule(random.Random(number), 1 + number % 3, 2000)
        with tempfile.TemporaryDirectory() as folder:
            whole, lossy = pathlib.Path(folder) / "whole", pathlib.Path(folder) / "lossy"
            tiny_trace.write(whole, packets_of(random.Random(number), events, end, False))
            tiny_trace.write(lossy, packets_of(random.Random(number), events, end, True))
            for answerer in answerers:
                problems = list(breaches(answerer, whole, lossy, only))
                failures += bool(problems)
                for problem in problems[:3]:
                    print(f"schedule {number}: {answerer.name}: {problem}")
    print(f"losses: what is said is true in {count * len(answerers) - failures} of {count * len(answerers)} random schedules")
    return failures


def compare_with_losses(oracle, kymo, count, analysis):
    """Periods, or operations, of random schedules with losses; returns of how many both answers differ."""
    failures, cells = 0, 0
    for number in range(count):
        events, end = schedule(random.Random(number), 1 + number % 3, 2000)
        with tempfile.TemporaryDirectory() as folder:
            tiny_trace.write(folder, packets_of(random.Random(number), events, end, True))
            own, theirs = (shlex.split(options) for options in LOSSY[analysis])
            wanted, found = oracle.answer(analysis, own, folder)[0], kymo.answer(analysis, theirs, folder)[0]
        problems, compared = differences(wanted, found, set())
        failures, cells = failures + bool(problems), cells + compared
        for problem in problems[:3]:
            print(f"{analysis} of schedule {number}: {problem}")
    print(f"{analysis} with losses: {count - failures} of {count} random schedules agree, {cells} cells")
    return failures


def compare_dumps(oracle, kymo, count):
    """Operations in random dumps of Barrelfish, which the oracle reads itself; returns of how many both answers differ."""
    failures, cells, complete = 0, 0, 0
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            dump = pathlib.Path(folder) / "dump.trc"
            tiny_dump.write(dump, random.Random(number), cores=1 + number % 4, operations=20 + 10 * (number % 7))
            wanted, found = oracle.answer("breakdown", ["--barrelfish"], dump)[0], kymo.answer("breakdown", [], dump)[0]
        problems, compared = differences(wanted, found, set())
        failures, cells, complete = failures + bool(problems), cells + compared, complete + total(wanted.get("operations"), "count")
        for problem in problems[:3]:
            print(f"dump {number}: {problem}")
    print(f"operations: {count - failures} of {count} random dumps agree, {complete} operations, {cells} cells")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kymo", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", help="one analysis")
    parser.add_argument("--no-corpus", action="store_true", help="only odd traces and schedules")
    parser.add_argument("--random", type=int, default=20, help="random schedules")
    arguments = parser.parse_args()
    python = python_with_bt2()
    oracle = Oracle(python) if python else None
    kymo = Kymo(str(arguments.kymo.resolve())) if arguments.kymo else None
    answerers = [answerer for answerer in (oracle, kymo) if answerer]
    if oracle is None:
        print("PEER ABSENT: Python has no module bt2 (Debian: python3-bt2); analyses were not compared with the oracles")
    corpus = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    failures = 0
    if arguments.no_corpus:
        print("the corpus was not looked at")
    elif oracle and not corpus.is_dir():
        print("CORPUS ABSENT: analyses were only tried on odd traces")
    elif oracle:
        failures += compare_on_corpus(oracle, kymo, corpus, arguments.only)
        if kymo and arguments.only in (None, "state"):
            failures += compare_states(oracle, kymo, corpus)
    failures += check_cases(answerers, arguments.only)
    failures += check_bounds(answerers, arguments.random, arguments.only)
    for analysis in LOSSY:
        if oracle and kymo and arguments.only in (None, analysis):
            failures += compare_with_losses(oracle, kymo, arguments.random, analysis)
    if kymo and arguments.only in (None, "breakdown"):
        failures += compare_dumps(oracle or Oracle(sys.executable), kymo, arguments.random)
    kept.remove_old()
    print(f"analyses: {failures} differ" if failures else "analyses: all agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
