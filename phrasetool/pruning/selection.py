"""The selection rule: a failed entry goes unless it is among the best k of a protected source.

Zhang et al. (2014), footnote 3: "we always keep the first 10 best according to the semantic similarity".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.jit import exact_kernel
from phrasetool.phrases import EntryBlock, Int64Array
from phrasetool.scoring.scorer import Scores

PROTECTIONS = ("all", "words", "none")


@exact_kernel
def _mark_best(
    group_offsets: Int64Array,
    protected: npt.NDArray[np.bool_],
    faulty: npt.NDArray[np.bool_],
    keys: npt.NDArray[np.float64],
    k: int,
    marked: npt.NDArray[np.bool_],
) -> None:
    for group in range(len(protected)):
        first, last = group_offsets[group], group_offsets[group + 1]
        if not protected[group] or k == 0:
            continue
        if last - first <= k:
            marked[first:last] = True
            continue
        # A stable sort keeps equal keys in table order.
        order = np.argsort(-keys[first:last], kind="mergesort")
        left = k
        for i in order:
            if left > 0 and not faulty[first + i]:
                marked[first + i] = True
                left -= 1


@dataclass(frozen=True)
class KeepBest:
    """Protects the best k entries of a source, ranked by the mean of both similarities, ties by table order.

    Args:
        k: how many entries a source keeps at least.
        protect: `all` sources (the paper's rule), sources of one word only (`words`: no word becomes unknown to the
            decoder), or `none`.

    Raises:
        ValueError: k is negative, or `protect` is not one of `PROTECTIONS`.
    """

    k: int = 10
    protect: str = "all"

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"cannot keep the best {self.k} entries")
        if self.protect not in PROTECTIONS:
            raise ValueError(f"unknown protection {self.protect!r}; expected one of {', '.join(PROTECTIONS)}")

    def marks(self, block: EntryBlock, scores: Scores) -> npt.NDArray[np.bool_]:
        """bool, shape (N,): the entries that stay whatever a criterion says."""
        if self.protect == "none":
            protected = np.zeros(len(block.source_lengths), np.bool_)
        elif self.protect == "words":
            protected = block.source_lengths == 1
        else:
            protected = np.ones(len(block.source_lengths), np.bool_)
        similarities = scores.similarities.astype(np.float64)
        marked = np.zeros(len(block), np.bool_)
        keys = (similarities[:, 0] + similarities[:, 1]) / 2
        _mark_best(block.group_offsets, protected, block.faulty, keys, self.k, marked)
        return marked
