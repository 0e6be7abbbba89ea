"""PyTorch with one thread: the last bits of what it computes depend on how many share a product."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
# Blocks that are under way, and how many threads there were before the first of them.
_inside = _before = 0


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread; it has its threads back when the last such block ends.

    Some of its libraries count threads for the process, others for each thread of it.  So who computes in several
    threads enters here before they start, and again in each of them.
    """
    import torch

    global _inside, _before
    with _LOCK:
        if not _inside:
            _before = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                torch.set_num_threads(_before)
