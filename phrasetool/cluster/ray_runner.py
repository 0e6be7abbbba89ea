"""Blocks worked on by the processes of a Ray cluster; the results are those of `phrasetool.pipeline.run`, in its order.

Each process gets the work once, with all that it refers to (a model, a table), and then blocks.  A process that is
killed, or whose machine goes, costs time alone: its blocks are given to others, and another process takes its place.
Nothing is shuffled, and no file but those of the one process that reads and writes is looked at.
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

# Small blocks (sentences) travel together: at most this many, or this many bytes.
_ITEMS, _BYTES = 32, 1 << 20
# Batches that wait at a process, so that it never waits.
_AT_ONCE = 2
# A failure of this many processes in a row is not an accident.
_MOST_LOST = 100
# Seconds within which some process must have answered; a batch takes a few.
_PATIENCE = 600


class _Worker:
    """A process of the cluster.

    Args:
        work: pickled, what is done to a block; in bytes of its own, so that its arrays can be written to, as those of
            the process that it comes from.
    """

    def __init__(self, work: bytes) -> None:
        self._work: Callable[[Any], Any] = cloudpickle.loads(work)

    def ready(self) -> int:
        """The number of the process."""
        return os.getpid()

    def work(self, blocks: bytes) -> bytes:
        """Work on a batch; the results, pickled, and the error that ended it, if one did."""
        results: list[Any] = []
        try:
            for block in cloudpickle.loads(blocks):
                results.append(self._work(block))
        except Exception as error:
            return _pickled((results, error))
        return _pickled((results, None))


@dataclass
class _Batch:
    """Blocks on their way.

    Attributes:
        data: the blocks, pickled; kept until there is a result, as a process may be lost.
        result: of all of them, once it is there.
    """

    data: bytes
    result: bytes | None = None


@dataclass
class _Process:
    """One of the cluster.

    Attributes:
        actor: the process itself.
        start: reference that resolves once the process has started; None afterwards.  A cluster that has too few
            processors, as one that lost a machine, never starts some.
        under_way: what it has to do: reference -> batch.
    """

    actor: Any
    start: Any
    under_way: dict[Any, _Batch] = field(default_factory=dict)

    @property
    def references(self) -> list[Any]:
        """References that the process has yet to answer."""
        return list(self.under_way) if self.start is None else [self.start]


class RayRunner:
    """Does what `phrasetool.pipeline.run` does, on a Ray cluster.

    Args:
        address: of the cluster; None to start one on this machine, with as many processors as it has.
        processors: how many to start then; None for all.

    Raises:
        PhraseToolError: no cluster answers at the address.
    """

    def __init__(self, address: str | None = None, processors: int | None = None) -> None:
        self.lost = 0
        # The cluster's own messages are not the user's.
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        try:
            if not ray.is_initialized():
                if address is None:
                    ray.init(num_cpus=processors, **quiet)
                else:
                    ray.init(address, **{name: quiet[name] for name in ("log_to_driver", "logging_level")})
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise PhraseToolError(f"{address or 'ray'}: no cluster runs there: {first_line(error)}") from error

    @property
    def address(self) -> str:
        """Where other processes find the cluster."""
        return str(ray.get_runtime_context().gcs_address)

    def __call__(self, blocks: Iterable[Block], work: Callable[[Block], Result], threads: int) -> Iterator[Result]:
        """See `phrasetool.pipeline.run`; `threads` processes work.

        Items are handed out one by one where `work.large` is true, else several small ones at once.

        Raises:
            PhraseToolError: processes are lost one after another, or none can be started.
            ValueError: fewer than one process.
        """
        if threads < 1:
            raise ValueError(f"cannot run on {threads} processes")
        pool = _Pool(_pickled(work), threads)
        under_way: deque[_Batch] = deque()
        try:
            for data in _batches(blocks, 1 if getattr(work, "large", False) else _ITEMS):
                under_way.append(pool.submit(_Batch(data)))
                while under_way and (len(under_way) > (_AT_ONCE + 1) * threads or under_way[0].result is not None):
                    yield from pool.results(under_way.popleft())
            while under_way:
                yield from pool.results(under_way.popleft())
        finally:
            self.lost += pool.lost
            pool.close()


class _Pool:
    """Processes that do one kind of work."""

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
        """Have a batch worked on, when its turn comes."""
        self._waiting.append(batch)
        self._give()
        self._collect(0)
        return batch

    def results(self, batch: _Batch) -> Iterator[Any]:
        """The results of a batch, once they are there.

        Raises:
            Exception: what the work raised.
        """
        while batch.result is None:
            self._give()
            self._collect(_PATIENCE)
        results, error = cloudpickle.loads(batch.result)
        yield from results
        if error is not None:
            raise error

    def _give(self) -> None:
        """Give batches to processes that have started and have little to do."""
        started = [process for process in self._processes if process.start is None]
        while started and self._waiting:
            process = min(started, key=lambda one: len(one.under_way))
            if len(process.under_way) >= _AT_ONCE:
                return
            batch = self._waiting.popleft()
            process.under_way[process.actor.work.remote(batch.data)] = batch

    def _collect(self, seconds: float) -> None:
        """Take what is done; wait for one if there is time."""
        references = [reference for process in self._processes for reference in process.references]
        ready, _ = ray.wait(references, num_returns=1, timeout=seconds)
        if not ready and seconds:
            raise PhraseToolError(f"no process of the cluster answered within {seconds:,.0f} seconds")
        for reference in ready:
            process = next(one for one in self._processes if reference in one.references)
            try:
                result = ray.get(reference)
            except (RayActorError, ObjectLostError) as error:
                self._replace(process, error)
            else:
                if process.start is None:
                    process.under_way.pop(reference).result = result
                process.start = None

    def _replace(self, process: _Process, error: RayError) -> None:
        """Another process for one that is lost; its batches are worked on before all others."""
        self.lost += 1
        if self.lost > _MOST_LOST:
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
    """Blocks, pickled in batches of so many at most."""
    iterator = iter(blocks)
    for first in iterator:
        data = _pickled([first])
        if more := min(most, _BYTES // len(data)) - 1 if len(data) < _BYTES else 0:
            data = _pickled([first, *itertools.islice(iterator, more)])
        yield data


def _pickled(value: object) -> bytes:
    """With functions that other processes cannot import, and with all arrays inside."""
    data: bytes = cloudpickle.dumps(value, protocol=5)
    return data
