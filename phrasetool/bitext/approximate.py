"""The nearest vectors of another set, nearly: by faiss, which looks into some of many cells only.

How many cells is not asked: as many as it takes for the nearest of a sample to be the one that exact search finds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from phrasetool.bitext.nearest import Neighbours, exact_rows, known_rows, with_cosines
from phrasetool.phrases import Int64Array
from phrasetool.pipeline import run
from phrasetool.text_encoders.margins import HalfArray
from phrasetool.watch import NOBODY, Watch

# How often the nearest must be the right one, on how many.
AGREEMENT, SAMPLE = 0.98, 1000
# Vectors a cell that the cells are found with; rows that are asked for at a time.
_TRAINING, _ASKED = 40, 512
_SEED = 1


@dataclass(frozen=True)
class Agreement:
    """How approximate a search was.

    Attributes:
        share: of the sample, those whose nearest is the right one.
        sample: how many.
        cells, probed: how many cells there are, and how many are looked into.
    """

    share: float
    sample: int
    cells: int
    probed: int


def approximately_nearest(
    own: HalfArray, others: HalfArray, k: int, threads: int = 1, watch: Watch = NOBODY
) -> tuple[Neighbours, Agreement]:
    """The k nearest others of each row, by cosine; most of them.

    Args:
        own, others: unit rows, float16, shapes (N, n) and (M, n); rows of zeros are near to nothing.
        k: how many; at most M.
        threads: worker threads; the result does not depend on them.
        watch: follows the work.

    Raises:
        ModuleNotFoundError: faiss is not installed.
        ValueError: k is not positive, or dimensions differ.
    """
    from threadpoolctl import threadpool_limits

    if k < 1 or own.shape[1] != others.shape[1]:
        raise ValueError("expected at least one neighbour, and vectors of one dimension")
    known, asked = np.flatnonzero(known_rows(others)), np.flatnonzero(known_rows(own))
    rows = np.full((len(own), min(k, len(others))), -1, np.int64)
    if not len(known) or not len(asked):
        return with_cosines(rows, own, others), Agreement(1.0, 0, 0, 0)
    sample = np.sort(np.random.default_rng(_SEED).choice(asked, min(SAMPLE, len(asked)), replace=False))
    right = exact_rows(np.ascontiguousarray(own[sample]), others, 1, threads)[0][:, 0]
    with threadpool_limits(1):
        index = _index(others, known, watch)
        probed = min(8, index.nlist)
        while True:
            found = known[_search(index, own, sample, 1, probed, threads)[:, 0]]
            share = float(_as_near(found, right, own, others, sample).mean())
            if share >= AGREEMENT or probed == index.nlist:
                break
            probed = min(2 * probed, index.nlist)
        with watch.items("nearest", len(asked), "sentence") as tick:
            for first in range(0, len(asked), _ASKED * threads * 4):
                part = asked[first : first + _ASKED * threads * 4]
                found = _search(index, own, part, rows.shape[1], probed, threads)
                rows[part] = np.where(found >= 0, known[found], -1)
                tick(len(part))
    return _ordered(rows, own, others), Agreement(share, len(sample), index.nlist, probed)


def _index(vectors: HalfArray, known: Int64Array, watch: Watch) -> Any:
    """An inverted file of the known rows as float16."""
    import faiss

    faiss.omp_set_num_threads(1)
    dimension, cells = vectors.shape[1], max(1, min(4 * math.isqrt(len(known)), len(known) // _TRAINING))
    coarse = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFScalarQuantizer(
        coarse, dimension, cells, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
    )
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = _SEED, 8, 1
    rng = np.random.default_rng(_SEED)
    training = np.sort(rng.choice(known, min(_TRAINING * cells, len(known)), replace=False))
    index.train(np.ascontiguousarray(vectors[training], np.float32))
    with watch.items("index", len(known), "sentence") as tick:
        for first in range(0, len(known), 4096):
            part = known[first : first + 4096]
            index.add(np.ascontiguousarray(vectors[part], np.float32))
            tick(len(part))
    return index


def _search(index: Any, own: HalfArray, rows: Int64Array, k: int, probed: int, threads: int) -> Int64Array:
    """Places in the index, shape (len(rows), k); -1 where fewer were found."""
    import faiss

    settings = faiss.SearchParametersIVF(nprobe=probed)  # type: ignore[call-arg]

    def work(part: Int64Array) -> Int64Array:
        # A setting of this thread.
        faiss.omp_set_num_threads(1)
        found: Int64Array = index.search(np.ascontiguousarray(own[part], np.float32), k, params=settings)[1]
        return found

    parts = (rows[first : first + _ASKED] for first in range(0, len(rows), _ASKED))
    return np.concatenate(list(run(parts, work, threads)))


def _as_near(
    found: Int64Array, right: Int64Array, own: HalfArray, others: HalfArray, sample: Int64Array
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether what was found is the right one, or equal to it."""
    same: np.ndarray[Any, np.dtype[np.bool_]] = (found == right) | (others[found] == others[right]).all(1)
    return same


def _ordered(rows: Int64Array, own: HalfArray, others: HalfArray) -> Neighbours:
    """The nearest first, of equally near ones the first."""
    found = with_cosines(rows, own, others)
    order = np.lexsort((rows, -found.cosines, rows < 0), axis=1)
    return Neighbours(np.take_along_axis(rows, order, 1), np.take_along_axis(found.cosines, order, 1))
