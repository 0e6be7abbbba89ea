"""Processors that kernels are compiled for: those whose vector registers hold sixteen floats, eight, or fewer."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Processor(NamedTuple):
    """A kind of processor.

    Attributes:
        name: by which LLVM knows it; empty for what all processors of this machine's family have.
        features: the instruction sets that it has, by NumPy's names.
        floats: how many float32 a register holds.
        rows, vectors: of a matrix product, what is summed in registers at a time.
    """

    name: str
    features: Sequence[str]
    floats: int
    rows: int
    vectors: int


# Features of every x86 server since 2013, those that servers since 2017 may have, and no features.
AVX2 = Processor("x86-64-v3", ("AVX2", "FMA3", "F16C"), 8, 4, 2)
AVX512 = Processor("x86-64-v4", ("AVX512F", "AVX512CD", "AVX512VL", "AVX512BW", "AVX512DQ"), 16, 8, 2)
ANY = Processor("", (), 4, 4, 4)

_wanted: list[Processor] = []


def missing_features(wanted: Sequence[str]) -> list[str]:
    """Those instruction sets, by NumPy's names, that this processor does not have."""
    features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    return [name for name in wanted if not features.get(name)]


def this_processor() -> Processor:
    """The kind that this machine's is of."""
    return next(kind for kind in (AVX512, AVX2, ANY) if not missing_features(kind.features))


def common_processor() -> Processor:
    """Return the processor whose features other machines of its family have, too."""
    return ANY if missing_features(AVX2.features) else AVX2


def compiled_for() -> Processor:
    """Return the processor that kernels are compiled for: this machine, unless `compiling_for` names another one."""
    return _wanted[-1] if _wanted else this_processor()


@contextlib.contextmanager
def compiling_for(processor: Processor) -> Iterator[None]:
    """Compile kernels for another processor than this machine's."""
    _wanted.append(processor)
    try:
        yield
    finally:
        _wanted.pop()
