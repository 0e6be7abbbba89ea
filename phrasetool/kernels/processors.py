"""Processor types that kernels are compiled for: with vector registers of sixteen floats, eight, or fewer."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Processor(NamedTuple):
    """Processor type.

    Attributes:
        name: LLVM's name; empty for the baseline of this machine's architecture.
        features: supported instruction sets, by NumPy's names.
        floats: number of float32 values in a vector register.
        rows, vectors: rows and vector registers per row of the tile that a matrix product sums in registers.
    """

    name: str
    features: Sequence[str]
    floats: int
    rows: int
    vectors: int


# Features of every x86 server since 2013; features that servers since 2017 may have; no features.
AVX2 = Processor("x86-64-v3", ("AVX2", "FMA3", "F16C"), 8, 4, 2)
AVX512 = Processor("x86-64-v4", ("AVX512F", "AVX512CD", "AVX512VL", "AVX512BW", "AVX512DQ"), 16, 8, 2)
ANY = Processor("", (), 4, 4, 4)

_chosen: list[Processor] = []


def missing_features(names: Sequence[str]) -> list[str]:
    """Return those instruction sets, by NumPy's names, that this machine's processor does not support."""
    features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    return [name for name in names if not features.get(name)]


def this_processor() -> Processor:
    """Return the type of this machine's processor."""
    return next(kind for kind in (AVX512, AVX2, ANY) if not missing_features(kind.features))


def common_processor() -> Processor:
    """Return the processor type whose features other machines of this architecture have, too."""
    return ANY if missing_features(AVX2.features) else AVX2


def compiled_for() -> Processor:
    """Return the processor type that kernels are compiled for: this machine's, unless within `compiling_for`."""
    return _chosen[-1] if _chosen else this_processor()


@contextlib.contextmanager
def compiling_for(processor: Processor) -> Iterator[None]:
    """Compile kernels for the given processor type instead of this machine's."""
    _chosen.append(processor)
    try:
        yield
    finally:
        _chosen.pop()
