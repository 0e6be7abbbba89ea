"""Block processing on a Ray cluster, with the same results in the same order as `phrasetool.pipeline.run`.

Each process receives the work function once, with all that it refers to (a model, a table), and then blocks.  If a
process is killed or its machine fails, only time is lost: another process replaces it, and its blocks are processed
again.  No data is shuffled, and only the one process that reads the input and writes the output accesses files.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ray
from ray import cloudpickle
from ray.exceptions import ObjectLostError, RayActorError, RayError

from phrasetool.errors import PhraseToolError, first_line

Block = TypeVar("Block")
Result = TypeVar("Result")

# Small blocks (sentences) are sent in batches of at most this many blocks or bytes.
_ITEMS, _BYTES = 32, 1 << 20
# Batches assigned to a process at once, so that it never idles.
_QUEUE_LENGTH = 2
# Maximum number of lost processes per call; more are not a coincidence.
_MAX_LOST = 100
# Seconds within which some process must answer; a batch takes a few seconds.
_TIMEOUT_SECONDS = 600


class _Worker:
    """Worker process of the cluster.

    Args:
        work: the pickled function that processes a block.  It is passed as bytes so that the arrays that it refers to
            are writable, as in the process that sent it.
    """

    def __init__(self, work: bytes) -> None:
        self._work: Callable[[Any], Any] = cloudpickle.loads(work)

    def ready(self) -> int:
        """Return the ID of the process."""
        return os.getpid()

    def work(self, blocks: bytes) -> bytes:
        """Process a batch; return the pickled results, and the error that stopped it, or None."""
        results: list[Any] = []
        try:
            for block in cloudpickle.loads(blocks):
                results.append(self._work(block))
        except Exception as error:
            return _pickled((results, error))
        return _pickled((results, None))


@dataclass
class _Batch:
    """Batch of blocks in progress.

    Attributes:
        data: the pickled blocks, kept until the result arrives because a process may be lost.
        result: the pickled result of all blocks; None until it arrives.
    """

    data: bytes
    result: bytes | None = None


@dataclass
class _Process:
    """State of one worker process.

    Attributes:
        actor: the Ray actor.
        start: reference that resolves once the process has started; None afterwards.  If the cluster has too few
            processors, for instance after losing a machine, some processes never start.
        under_way: the batches assigned to the process: reference -> batch.
    """

    actor: Any
    start: Any
    under_way: dict[Any, _Batch] = field(default_factory=dict)

    @property
    def references(self) -> list[Any]:
        """References to results that are still pending."""
        return list(self.under_way) if self.start is None else [self.start]


class RayRunner:
    """Counterpart of `phrasetool.pipeline.run` on a Ray cluster.

    Args:
        address: address of the cluster; None to start one on this machine.
        processors: number of processors of a cluster started on this machine; None for all.

    Attributes:
        lost: number of processes lost so far.

    Raises:
        PhraseToolError: no cluster answers at the address.
    """

    def __init__(self, address: str | None = None, processors: int | None = None) -> None:
        self.lost = 0
        # Hide the cluster's own messages from the user.
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        try:
            if not ray.is_initialized():
                if address is None:
                    ray.init(num_cpus=processors, **quiet)
                else:
                    ray.init(address, **{name: quiet[name] for name in ("log_to_driver", "logging_level")})
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise PhraseToolError(
                f"{address or 'ray'}: cannot connect to a Ray cluster: {first_line(error)}"
            ) from error

    @property
    def address(self) -> str:
        """Address at which other processes reach the cluster."""
        return str(ray.get_runtime_context().gcs_address)

    def __call__(self, blocks: Iterable[Block], work: Callable[[Block], Result], threads: int) -> Iterator[Result]:
        """Yield the result of each block in order, like `phrasetool.pipeline.run`, using `threads` processes.

        Blocks are sent one by one if `work.large` is true, otherwise several small blocks at a time.

        Raises:
            PhraseToolError: too many processes are lost, or no process answers.
            ValueError: `threads` is less than 1.
        """
        if threads < 1:
            raise ValueError(f"cannot run on {threads} processes")
        pool = _Pool(_pickled(work), threads)
        under_way: deque[_Batch] = deque()
        try:
            for data in _batches(blocks, 1 if getattr(work, "large", False) else _ITEMS):
                under_way.append(pool.submit(_Batch(data)))
                while under_way and (len(under_way) > (_QUEUE_LENGTH + 1) * threads or under_way[0].result is not None):
                    yield from pool.results(under_way.popleft())
            while under_way:
                yield from pool.results(under_way.popleft())
        finally:
            self.lost += pool.lost
            pool.close()


class _Pool:
    """Pool of processes that run the same work function."""

    def __init__(self, work: bytes, size: int) -> None:
        self._work = ray.put(work)
        self._class = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(_Worker)
        self._processes = [self._started() for _ in range(size)]
        self._waiting: deque[_Batch] = deque()
        self.lost = 0

    def _started(self) -> _Process:
        actor = self._class.remote(self._work)
        return _Process(actor, actor.ready.remote())

    def submit(self, batch: _Batch) -> _Batch:
        """Queue a batch for processing."""
        self._waiting.append(batch)
        self._give()
        self._collect(0)
        return batch

    def results(self, batch: _Batch) -> Iterator[Any]:
        """Wait for a batch and yield its results.

        Raises:
            Exception: the exception that the work function raised.
        """
        while batch.result is None:
            self._give()
            self._collect(_TIMEOUT_SECONDS)
        results, error = cloudpickle.loads(batch.result)
        yield from results
        if error is not None:
            raise error

    def _give(self) -> None:
        """Assign queued batches to started processes that have fewer than `_QUEUE_LENGTH`."""
        started = [process for process in self._processes if process.start is None]
        while started and self._waiting:
            process = min(started, key=lambda candidate: len(candidate.under_way))
            if len(process.under_way) >= _QUEUE_LENGTH:
                return
            batch = self._waiting.popleft()
            process.under_way[process.actor.work.remote(batch.data)] = batch

    def _collect(self, seconds: float) -> None:
        """Collect finished work, waiting up to `seconds` for one result."""
        references = [reference for process in self._processes for reference in process.references]
        ready, _ = ray.wait(references, num_returns=1, timeout=seconds)
        if not ready and seconds:
            raise PhraseToolError(f"no process of the cluster answered within {seconds:,.0f} seconds")
        for reference in ready:
            process = next(candidate for candidate in self._processes if reference in candidate.references)
            try:
                result = ray.get(reference)
            except (RayActorError, ObjectLostError) as error:
                self._replace(process, error)
            else:
                if process.start is None:
                    process.under_way.pop(reference).result = result
                process.start = None

    def _replace(self, process: _Process, error: RayError) -> None:
        """Start a process in place of a lost one, and requeue its batches first."""
        self.lost += 1
        if self.lost > _MAX_LOST:
            raise PhraseToolError(f"{self.lost} processes of the cluster were lost, the last one by: {error}")
        self._waiting.extendleft(reversed(process.under_way.values()))
        self._processes.remove(process)
        ray.kill(process.actor)
        self._processes.append(self._started())

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            ray.kill(process.actor)


def _batches(blocks: Iterable[Any], most: int) -> Iterator[bytes]:
    """Yield pickled batches of at most `most` blocks."""
    iterator = iter(blocks)
    for first in iterator:
        data = _pickled([first])
        if more := min(most, _BYTES // len(data)) - 1 if len(data) < _BYTES else 0:
            data = _pickled([first, *itertools.islice(iterator, more)])
        yield data


def _pickled(value: object) -> bytes:
    """Pickle a value by value: with functions that other processes cannot import, and with all arrays inline."""
    data: bytes = cloudpickle.dumps(value, protocol=5)
    return data
