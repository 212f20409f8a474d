"""What notebooks show: whole, in words that people read, safe whatever a trace is called, and never too much."""

import html.parser
import os
import pathlib
import re
import shutil

import pytest

import kymograph
from conftest import DEMO, corpus, needs_sql
from kymograph import _shown as shown
from made import METADATA, made

PAIRS = {"start": "jobs:begin", "stop": "jobs:end", "key": "id"}


class Page(html.parser.HTMLParser):
    """What a browser makes of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.hints: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.hints += [value for name, value in attrs if name == "title" and value]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is closed before what is in it"

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.words.append(data)


def page(thing: object) -> Page:
    return Page(thing._repr_html_())  # type: ignore[attr-defined]


def test_traces(trace: kymograph.Trace) -> None:
    said = page(trace)
    assert {"demo", "complete", "by lttng-ust 2.13 on vm", "2,400, 35,999 per second", "50.0%", "jobs:chunk"} <= set(said.words)
    assert "2026-11-21 00:02:52.255263261 to 00:02:52.321931298 UTC (66.668 ms)" in said.words
    # Marks of time, of which all but the first say the parts of a second alone.
    assert [word for word in said.words if re.fullmatch(r"[\d:]*\.\d\d\d", word)] == ["00:02:52.260", ".280", ".300", ".320"]
    bars = [bits for bits in trace.info().density_bits if bits]
    assert trace._repr_html_().count("px solid;opacity") == len(bars)
    assert f"bytes over time, at most {shown.size(max(bits for bits in bars) / 8 / (0.066668037 / 60))}/s" in said.words
    assert page(trace.info()).words == said.words


def test_answers(trace: kymograph.Trace) -> None:
    said = page(trace.pairs(**PAIRS))  # type: ignore[arg-type]
    assert said.words[:3] == ["pairs", " ", "2026-11-21 00:02:52.255263261 to 00:02:52.321931298 UTC (66.668 ms)"]
    assert {"Average", "avg", "486 µs", "220.0 µs", "[219.9, 220.2]"} <= set(said.words)
    assert {"485,562 ns", "p50, p50_low, p50_high in ns"} <= set(said.hints)
    course = trace.rates(period="1ms")["course"]
    assert f"... and {course.num_rows - 10:,} more rows" in page(course).words
    assert "00:02:52.255263261 to 00:02:52.256263261" in page(course).words
    cut = kymograph.open(corpus("ctf/tracecompass/bug446190")).cpu(top=3)["per-thread"]
    assert cut.omitted > 3 and f"... and {cut.omitted:,} more rows" in page(cut).words


def test_tables_behind_the_first_ones_are_folded() -> None:
    answer = kymograph.open(corpus("ctf/tracecompass/bug446190")).sched()
    text = answer._repr_html_()
    assert text.count("<details open>") == 4 and text.count("<details>") == len([1 for table in answer if table.num_rows]) - 4
    assert [f"<code>{table.name}</code>" in text for table in answer] == [True] * len(answer)
    assert len(text) < 200_000


@pytest.mark.parametrize("analysis", ["cpu", "io", "sched", "syscalls", "irq"])
def test_numbers_are_those_of_the_command(analysis: str) -> None:
    answer = getattr(kymograph.open(corpus("ctf/tracecompass/bug446190")), analysis)()
    words = " ".join(page(answer).words)
    numbers = re.findall(r"(?<=\s)\d[\d.,]*(?: (?:ns|us|ms|s|KiB|MiB|GiB|B)|%)(?=\s)", str(answer).replace("\n", "  \n"))
    heads = {word for line in str(answer).splitlines() for word in re.findall(r"\(([^()]*s)\)$", line)}
    assert len(numbers) > 20
    assert [each for each in numbers if each not in heads and each.replace(" us", " µs") not in words] == []


def test_events_are_read_as_far_as_they_are_shown(trace: kymograph.Trace) -> None:
    events = trace.events("jobs:begin", columns=["time", "worker"])
    said = page(events)
    assert said.words[:4] == ["Events", " ", "'jobs:begin'", "time"] and "2026-11-21 UTC" in said.words
    assert said.tags.count("tr") == 11 and "... and more rows" in said.words
    assert "00:02:52.255297979" in said.words and events.report is None
    few = trace.events("jobs:end", where="result == -13")
    assert page(few).tags.count("tr") == 2 and "complete" in page(few).words and few.report is not None
    assert "no rows" in page(trace.events("jobs:end", where="result == 1 && result == 2")).words


def test_columns_that_say_nothing_are_left_out() -> None:
    events = kymograph.open(corpus("ctf/tracecompass/bug446190")).events()
    said = page(events)
    shown_of_them = said.tags.count("th")
    rest = f"... and more rows; ... and {len(events.schema.names) - shown_of_them:,} more columns, which have nothing in these rows"
    assert 4 < shown_of_them <= 30 and rest in said.words


def test_batches_and_schemas(trace: kymograph.Trace) -> None:
    (batch,) = trace.events("jobs:begin")
    assert "... and 390 more rows" in page(batch).words
    assert {"worker", "Int32"} <= set(page(batch.schema).words)
    assert {"Average", "ns"} <= set(page(trace.pairs(**PAIRS)["total"].schema).words)  # type: ignore[arg-type]


@needs_sql
def test_queries(trace: kymograph.Trace) -> None:
    said = page(trace.sql('select worker, count(*) as jobs from "jobs:begin" group by worker order by worker'))
    assert said.words[-7:] == ["jobs", "0", "161", "1", "147", "2", "92"]
    times = page(trace.sql('select time, time - lag(time) over (order by time) as gap from "jobs:end" order by time limit 12'))
    assert times.words[3:9] == ["time", "2026-11-21 UTC", "gap", "00:02:52.255544156", "–", "00:02:52.255559729"]
    assert times.words[9] == "15.6 µs" and "... and more rows" in times.words


def test_losses_are_seen() -> None:
    lost = kymograph.open(corpus("ctf/tracecompass/hello-lost"))
    for thing in (lost, lost.count(), lost.count().report, lost.info()):
        assert "⚠ complete; the tracer reports 967,700 events discarded" in page(thing).words
    assumed = kymograph.open(corpus("ctf/tracecompass/CTF2-7.0-smalltrace")).info().report
    assert page(assumed).words[0] == "complete; 1 assumption"
    assert page(assumed).words[2:] == ["  ␞{", "  ^", "  help: convert it with `kymo metadata --as ctf2`"]


def test_what_could_not_be_read_is_seen_and_not_warned_of(tmp_path: pathlib.Path) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")
    for file in (tmp_path / "demo").glob("jobs_*"):
        os.truncate(file, file.stat().st_size - 5_000)
    broken = kymograph.open(tmp_path / "demo", cache=False)
    for thing in (broken, broken.events("jobs:end", where="id == 3")):
        said = page(thing)
        assert any(re.fullmatch(r"⚠ \d places could not be read(; 1 assumption)?", word) for word in said.words)
        assert any("jobs_0" in word for word in said.words) and "details" in said.tags


def test_names_of_traces_are_no_html(tmp_path: pathlib.Path) -> None:
    evil = "<script>alert('a' & 'b')</script>"
    folder = pathlib.Path(made(tmp_path / "<i>x", packets=2, events=8))
    (folder / "metadata").write_text(METADATA.replace("name = tick", f'name = "{evil}"'))
    trace = kymograph.open(folder, cache=False)
    things: list[object] = [trace, trace.count(), trace.events(), trace.events(evil), trace.rates()]
    if hasattr(kymograph._native, "Database"):
        things.append(trace.sql("select name as \"<i>\", '\n\u202e' as other from events"))
    for thing in things:
        text = thing._repr_html_()  # type: ignore[attr-defined]
        said = Page(text)
        assert not {"script", "i"} & set(said.tags)
        assert evil in " ".join(said.words), said.words
        assert "\u202e" not in text


def test_clocks_that_know_no_day(tmp_path: pathlib.Path) -> None:
    trace = kymograph.open(made(tmp_path / "trace", packets=4, events=64), cache=False)
    said = page(trace)
    assert "0.000000000 s to 0.000002551 s (2.551 µs)" in said.words
    assert "0.000000000 s to 0.000002551 s (2.551 µs)" in page(trace.rates(period="1us")).words
    # Nothing in this answer says whether times count from 1970.
    assert page(trace.count()).words[:3] == ["count", " ", "2.551 µs"]


def test_few_events_are_not_none(tmp_path: pathlib.Path) -> None:
    folder = pathlib.Path(made(tmp_path / "trace", packets=1, events=3, streams=1))
    (folder / "metadata").write_text(METADATA.replace("freq = 1000000000", "freq = 1"))
    assert "3, 0.150 per second" in page(kymograph.open(folder, cache=False)).words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (shown.duration(0), "0 ns"),
        (shown.duration(999), "999 ns"),
        (shown.duration(1_234), "1.23 µs"),
        (shown.duration(999_600), "1.00 ms"),
        (shown.duration(-12_345_678), "-12.3 ms"),
        (shown.duration(119e9), "119 s"),
        (shown.duration(7_200e9), "2.00 h"),
        (shown.size(1_023), "1,023 B"),
        (shown.size(1_536), "1.5 KiB"),
        (shown.size(2**50), "1024.0 TiB"),
        (shown.percent(0.2148), "21.5%"),
        (shown.percent(0.00001), "0.001%"),
        (shown.number(1_234_567), "1,234,567"),
        (shown.number(16_851.67), "16,851.7"),
        (shown.number(0.125), "0.125"),
        (shown.since_origin(-1), "-0.000000001 s"),
        (shown.instant(10**22), "10,000,000,000,000.000000000 s"),
        (shown.measure((1_000, None, None), shown.duration, " ns").bounds, "[0 ns, ∞]"),
        (shown.measure((float("nan"),), shown.number, "").value, "–"),
        (shown.bar(1, 1_000), "▏"),
        (shown.bar(5, 10), "█" * 10),
        (shown.text("a\nb\x1b[0m").value, "a\\nb\\x1b[0m"),
        (shown.text("").value, '""'),
        (shown.process("java", 1, 2), "java (2 of 1)"),
        (shown.process(None, None, 0), "idle"),
    ],
)
def test_words(words: str, expected: str) -> None:
    assert words == expected
