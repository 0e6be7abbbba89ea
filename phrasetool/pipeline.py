"""Parallel processing of blocks by threads, with results in the order of the blocks.

The work on a block (parse, score, select, format, compress) is a function of that block alone, so the resulting table
does not depend on the number of threads or the size of the blocks, and a cluster can run the same function.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")


class Runner(Protocol):
    """The interface of `run` and its replacements."""

    def __call__(self, blocks: Iterable[Block], work: Callable[[Block], Result], threads: int) -> Iterator[Result]:
        """Yield the results of `work` in the order of the blocks, as `run` does."""


def run(blocks: Iterable[Block], work: Callable[[Block], Result], threads: int) -> Iterator[Result]:
    """Apply `work` to every block on `threads` threads and yield the results in the order of the blocks.

    At most 2 * threads + 1 blocks are in progress, so memory does not grow with the table.  When `blocks` or `work`
    raises, or the caller stops early, blocks that are not yet started are cancelled, and started ones are awaited.

    Raises:
        ValueError: `threads` is less than 1.
    """
    if threads < 1:
        raise ValueError(f"cannot run on {threads} threads")
    pool = ThreadPoolExecutor(threads, thread_name_prefix="phrasetool")
    under_way: deque[Future[Result]] = deque()
    try:
        for block in blocks:
            under_way.append(pool.submit(work, block))
            while under_way and (len(under_way) > 2 * threads or under_way[0].done()):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        # Threads are not joined.  After an error in the caller, the garbage collector may close this generator at any
        # time, also while another thread is being started; a join then waits forever (CPython 3.11 and 3.12).
        pool.shutdown(wait=False, cancel_futures=True)
        # The caller may close the files that `work` reads.
        for future in under_way:
            if not future.cancelled():
                future.exception()
