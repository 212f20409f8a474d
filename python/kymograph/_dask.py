"""Questions on a Dask cluster.

Each part is a task that depends on no other one. If a worker fails, another one reads its parts; the first
result counts::

    part ──submit──> task ─┬─ finished ──fetch──> what is known
                           ├─ killed, lost ─────> again, on whichever worker
                           └─ nothing for long ─> again, on another worker beside it
"""

from __future__ import annotations

import queue
import statistics
import time
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kymograph._errors import Error
from kymograph.cluster import Known, Part, Plan, read

#: Seconds between two looks at workers that say nothing.
_TICK = 0.25
#: A part that takes so many times as long as others do has stalled.
_TIMES_AS_LONG = 8
#: Results that are fetched at the same time.
_FETCHERS = 4


def threads_of(client: Any) -> int:
    """Number of tasks that the workers of a client run at the same time."""
    count: int = sum(client.nthreads().values())
    if count == 0:
        # They may still be starting.
        client.wait_for_workers(1)
        count = sum(client.nthreads().values())
    return count


class _Task:
    """A part that is being read."""

    def __init__(self, part: Part) -> None:
        self.part = part
        #: Attempts that may still succeed.
        self.futures: set[Any] = set()
        self.attempts = 0
        #: When the last attempt began.
        self.since = time.monotonic()


class _Job:
    """A question on its way."""

    def __init__(
        self, shared: Plan[Any], client: Any, progress: Callable[[int, int], object] | None, retries: int, patience: float
    ) -> None:
        self.client = client
        self.progress = progress
        self.retries = retries
        self.patience = patience
        self.token = uuid.uuid4().hex[:12]
        self.total = len(shared.parts)
        self.tasks = {part.number: _Task(part) for part in shared.parts}
        #: Parts that are known.
        self.count = 0
        #: Seconds that parts took which are known.
        self.took: list[float] = []
        #: Futures that are done, and results that were fetched.
        self.events: queue.SimpleQueue[tuple[int, Any, Known | BaseException | None]] = queue.SimpleQueue()

    def submit(self, task: _Task, workers: list[str] | None = None) -> None:
        number, attempt = task.part.number, task.attempts
        task.attempts += 1
        task.since = time.monotonic()
        key = f"kymograph-{self.token}-{number}-{attempt}"
        # Parts do not depend on each other, and what was read once need not be remembered.
        future = self.client.submit(read, task.part, key=key, pure=False, workers=workers)
        task.futures.add(future)
        future.add_done_callback(lambda done: self.events.put((number, done, None)))

    def run(self) -> Generator[Known]:
        """The result of each part, as it comes."""
        fetchers = ThreadPoolExecutor(_FETCHERS, "kymograph-fetch")
        try:
            for task in self.tasks.values():
                self.submit(task)
            while self.tasks:
                try:
                    number, future, result = self.events.get(timeout=_TICK)
                except queue.Empty:
                    self.look_for_stalls()
                    continue
                waiting = self.tasks.get(number)
                if waiting is None or future not in waiting.futures:
                    continue
                if isinstance(result, Known):
                    self.take(waiting)
                    yield result
                elif result is not None or future.status != "finished":
                    self.fail(waiting, future, result or _exception(future))
                else:
                    fetchers.submit(self.fetch, number, future)
        finally:
            # Without waiting: what a worker does not give is not needed.
            fetchers.shutdown(wait=False, cancel_futures=True)
            self.forget(future for task in self.tasks.values() for future in task.futures)

    def fetch(self, number: int, future: Any) -> None:
        """Fetches a result; its worker may have stalled since."""
        try:
            self.events.put((number, future, self.gather(future)))
        except BaseException as error:  # noqa: BLE001  (whatever it is, somebody waits for it)
            self.events.put((number, future, error))

    def gather(self, future: Any) -> Known:
        async def gathered() -> Known:
            # From the worker itself; by way of the scheduler it would be copied twice.
            try:
                result: Known = await self.client._gather(future, direct=True)
            except OSError:
                result = await self.client._gather(future, direct=False)
            return result

        known: Known = self.client.sync(gathered, callback_timeout=self.patience)
        return known

    def take(self, task: _Task) -> None:
        del self.tasks[task.part.number]
        self.took.append(time.monotonic() - task.since)
        self.count += 1
        self.forget(task.futures)
        if self.progress:
            self.progress(self.count, self.total)

    def fail(self, task: _Task, future: Any, error: BaseException | None) -> None:
        task.futures.discard(future)
        # What the trace or the analysis says is so wherever it is read.
        is_ours = isinstance(error, Error) or future.status == "error" and not _is_of_cluster(error)
        if is_ours or task.attempts > self.retries:
            raise error or RuntimeError(f"part {task.part.number} was cancelled")
        if not task.futures:
            self.submit(task)

    def look_for_stalls(self) -> None:
        """Starts overdue parts again, on workers that are not reading them."""
        usual = _TIMES_AS_LONG * statistics.median(self.took) if self.took else 0.0
        latest = time.monotonic() - max(self.patience, usual)
        late = [task for task in self.tasks.values() if task.since < latest and task.attempts <= self.retries]
        if not late:
            return
        reading: dict[Any, str] = {}
        for worker, keys in self.client.processing().items():
            reading.update(dict.fromkeys(map(str, keys), worker))
        workers = list(self.client.nthreads())
        for task in late:
            busy = {reading.get(str(future.key)) for future in task.futures}
            others = [worker for worker in workers if worker not in busy]
            # What waits for its turn is on no worker yet.
            if others and busy != {None}:
                self.submit(task, others)
            else:
                task.since = time.monotonic()

    def forget(self, futures: Any) -> None:
        futures = list(futures)
        if futures:
            self.client.cancel(futures, force=True)


def _exception(future: Any) -> BaseException | None:
    if future.status != "error":
        return None
    error: BaseException | None = future.exception(timeout=10)
    return error


def _is_of_cluster(error: BaseException | None) -> bool:
    """Whether an error comes from the cluster, and not from the analysis."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    return error is None or isinstance(error, (KilledWorker, CommClosedError, TimeoutError, OSError))


def on_dask(
    shared: Plan[Any], client: Any, progress: Callable[[int, int], object] | None, retries: int, patience: float
) -> Generator[Known]:
    """Results of the workers of a client for all parts, as they come."""
    return _Job(shared, client, progress, retries, patience).run()
