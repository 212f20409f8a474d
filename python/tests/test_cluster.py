"""Parts that other processes read come to what one process says, whatever happens to them."""

import concurrent.futures
import datetime
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import DEMO, corpus
from made import made

import kymograph
from kymograph import cluster

distributed = pytest.importorskip("distributed")

# What Dask says of its own dependencies and of workers that go is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")


#: Of 4096 events each; less is not worth to be cut for several readers.
PACKETS = 250


class Keys(kymograph.Analysis[dict[int, int], dict[int, int]]):
    """How many events each key has."""

    events = "tick"
    columns = ("key",)

    def init(self) -> dict[int, int]:
        return {}

    def step(self, state: dict[int, int], batch: kymograph.Batch) -> None:
        for key in batch["key"]:
            state[key] = state.get(key, 0) + 1

    def merge(self, left: dict[int, int], right: dict[int, int]) -> None:
        for key, events in right.items():
            left[key] = left.get(key, 0) + events


class Slow(Keys):
    """The same, slowly, so that something can happen meanwhile."""

    def step(self, state: dict[int, int], batch: kymograph.Batch) -> None:
        time.sleep(0.1)
        super().step(state, batch)


class Times(kymograph.Analysis[list[int], list[int]]):
    """All times, in order: any part in the wrong place shows."""

    columns = ("time",)

    def init(self) -> list[int]:
        return []

    def step(self, state: list[int], batch: kymograph.Batch) -> None:
        state.extend(batch["time"])

    def merge(self, left: list[int], right: list[int]) -> None:
        left.extend(right)


@pytest.fixture
def long(tmp_path: pathlib.Path) -> kymograph.Trace:
    """A trace that is worth to be cut."""
    return kymograph.open(made(tmp_path / "long", packets=PACKETS), threads=2)


@pytest.fixture
def client() -> Iterator[Any]:
    """A real cluster: several processes that share nothing with this one."""
    config = {"distributed.scheduler.allowed-failures": 10, "distributed.comm.retry.count": 2}
    import dask

    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
        ) as local,
        distributed.Client(local) as connected,
    ):
        yield connected


def equal(one: kymograph.Answer, other: kymograph.Answer) -> bool:
    """Whether all tables are the same, and what is said of the trace."""
    tables = [[(table.name, table.schema.names, table.rows()) for table in each.tables] for each in (one, other)]
    return tables[0] == tables[1] and one.report == other.report


def test_parts_are_read_in_any_order_and_merged_by_whoever(long: kymograph.Trace) -> None:
    plan = cluster.plan(long, "rates", readers=4)
    assert len(plan.parts) > 4
    chance = random.Random(1)
    parts = [pickle.loads(pickle.dumps(part)) for part in chance.sample(plan.parts, len(plan.parts))]
    known = [pickle.loads(pickle.dumps(cluster.read(part))) for part in parts]
    expected = long.analyze("rates")
    assert equal(plan.finish(known), expected)
    known.sort(key=lambda each: each.first)
    while len(known) > 2:
        at = chance.randrange(len(known) - 1)
        known[at : at + 2] = [cluster.merge(*known[at : at + 2])]
    assert equal(plan.finish(known), expected)
    assert equal(plan.finish(known), expected), "what is known can be used again"


def test_own_analyses_too(long: kymograph.Trace) -> None:
    for analysis in (Keys, Times):
        plan = cluster.plan(long, analysis, readers=4)
        known = [pickle.loads(pickle.dumps(cluster.read(part))) for part in plan.parts]
        assert len(known) > 4
        expected = long.run(analysis)
        assert plan.finish(known) == expected
        middle = cluster.merge(*known[1:4])
        assert plan.finish([*known[4:], middle, known[0]]) == expected


def test_what_is_missing_or_there_twice_is_said(long: kymograph.Trace) -> None:
    plan = cluster.plan(long, "rates", readers=4)
    known = [cluster.read(part) for part in plan.parts]
    for some, said in (
        (known[1:], "part 0 is missing"),
        (known[:-1], f"part {len(known) - 1} is missing"),
        (known[:2] + known[1:], "part 1 is there twice"),
        ([], "part 0 is missing"),
    ):
        with pytest.raises(ValueError, match=said):
            plan.finish(some)
    with pytest.raises(ValueError, match="part 1 is missing"):
        cluster.merge(known[0], known[2])


def test_times_and_selections_mean_the_same_there(long: kymograph.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = datetime.datetime.fromtimestamp(0.001).isoformat(sep=" ")
    span: dict[str, Any] = {"begin": begin, "end": 8_000_000, "where": "key != 3"}
    plan = cluster.plan(long, "gaps", readers=2, **span)
    expected = long.gaps(**span)
    assert not equal(expected, long.gaps(where="key != 3"))
    # Readers are in another zone.
    monkeypatch.setenv("TZ", "Asia/Tokyo" if time.timezone != -9 * 3600 else "UTC")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert equal(plan.finish(pool.map(cluster.read, plan.parts)), expected)


def test_another_trace_is_refused(long: kymograph.Trace, tmp_path: pathlib.Path) -> None:
    other = made(tmp_path / "other", packets=PACKETS - 1)
    for what in ("rates", Keys):
        plan = cluster.plan(long, what, readers=4, paths=other)
        with pytest.raises(kymograph.OtherTraceError, match="these are other traces: here are"):
            cluster.read(plan.parts[0])
        moved = cluster.plan(long, what, readers=4, paths=pathlib.Path(long.paths[0]).absolute().as_uri())
        assert cluster.read(moved.parts[0]).end == 1
        nowhere = cluster.plan(long, what, readers=4, paths=tmp_path / "nowhere")
        with pytest.raises(kymograph.OpenError, match="nowhere"):
            cluster.read(nowhere.parts[0])


def test_readers_shift_clocks_as_far(long: kymograph.Trace, tmp_path: pathlib.Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        for name in ("one", "two"):
            shutil.copytree(long.paths[0], folder / name)
    offsets = {here: 5_000, here / "two": 3_000_000}
    both = kymograph.open([here / "one", here / "two"], threads=2, trace_offsets=offsets)
    for what in ("rates", "gaps"):
        # By the paths that readers have, which may be others.
        for paths in (None, [there / "one", there / "two"]):
            plan = cluster.plan(both, what, readers=2, paths=paths)
            assert equal(plan.finish(map(cluster.read, plan.parts)), both.analyze(what))
    with pytest.raises(ValueError, match="2 paths were opened, readers get 1"):
        cluster.plan(both, "rates", readers=2, paths=there)


def test_what_cannot_be_cut_is_read_here() -> None:
    trace = kymograph.open(DEMO)
    with pytest.raises(kymograph.UnsliceableError):
        cluster.plan(trace, "rates", readers=4)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert equal(trace.analyze("rates", client=pool), trace.analyze("rates"))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_executors(long: kymograph.Trace, method: str) -> None:
    seen: list[tuple[int, int]] = []
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        found = long.analyze("rates", client=pool, progress=lambda done, total: seen.append((done, total)))
        assert equal(found, long.analyze("rates"))
        # The two functions do the same.
        plan = cluster.plan(long, "gaps", readers=2)
        assert equal(plan.finish(pool.map(cluster.read, plan.parts)), long.gaps())
    total = seen[0][1]
    assert seen == [(done, total) for done in range(1, total + 1)]


def test_dask_says_the_same(long: kymograph.Trace, client: Any) -> None:
    for name in ("gaps", "rates"):
        assert equal(long.analyze(name, client=client), long.analyze(name)), name
    assert long.analyze(Times, client=client) == long.run(Times)


def test_kernel_traces_on_dask(client: Any) -> None:
    trace = kymograph.open(corpus("ctf/tracecompass/many-threads"))
    shipped = 0
    for name in ("cpu", "io", "syscalls", "sched"):
        plan = cluster.plan(trace, name, readers=3)
        known = client.gather(client.map(cluster.read, plan.parts, pure=False))
        shipped = max(shipped, sum(len(pickle.dumps(each)) for each in known))
        assert equal(plan.finish(known), trace.analyze(name)), name
        assert equal(trace.analyze(name, client=client), trace.analyze(name)), name
    traced = sum(file.stat().st_size for file in pathlib.Path(trace.paths[0]).iterdir() if file.is_file())
    # States, not events.
    assert shipped < traced, f"{shipped} of {traced} bytes"


def test_a_worker_that_is_killed_costs_nothing_but_time(long: kymograph.Trace, client: Any) -> None:
    pids = list(client.run(os.getpid).values())
    killed = threading.Timer(1.0, lambda: os.kill(pids[0], signal.SIGKILL))
    killed.start()
    try:
        assert long.analyze(Slow, client=client) == long.run(Keys)
    finally:
        killed.join()


def test_a_worker_that_stalls_costs_nothing_but_time(long: kymograph.Trace, client: Any) -> None:
    pids = list(client.run(os.getpid).values())
    stalled = threading.Timer(1.0, lambda: os.kill(pids[0], signal.SIGSTOP))
    stalled.start()
    try:
        assert long.analyze(Slow, client=client, patience=2.0) == long.run(Keys)
    finally:
        stalled.join()
        os.kill(pids[0], signal.SIGCONT)


class Wrong(Keys):
    """It fails in the middle."""

    def step(self, state: dict[int, int], batch: kymograph.Batch) -> None:
        raise ZeroDivisionError("as it was told")


def test_what_an_analysis_raises_is_raised_here_and_the_rest_is_cancelled(long: kymograph.Trace, client: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="as it was told"):
        long.analyze(Wrong, client=client)
    end = time.monotonic() + 30
    while any(client.processing().values()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert equal(long.analyze("rates", client=client), long.analyze("rates"))
