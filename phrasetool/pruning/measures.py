"""What criteria that look at a whole table need to know of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases

# What is found out by forced decoding: how often an entry is used, and probabilities made of that.
FORCED_NEEDS = frozenset({"uses", "forced"})


@dataclass(frozen=True)
class NumberedEntries:
    """The N entries of a table as pairs of numbers.

    Attributes:
        sources: the distinct source phrases.
        targets: the distinct target phrases.
        source_numbers, target_numbers: int32, shape (N,), which of them an entry has.
    """

    sources: Phrases
    targets: Phrases
    source_numbers: Int32Array
    target_numbers: Int32Array

    def __len__(self) -> int:
        return len(self.source_numbers)


@dataclass(frozen=True)
class Measures:
    """The N entries of a table in G source groups, as arrays; some 50 bytes an entry.

    Attributes:
        group_offsets: int64, shape (G + 1,), the first entry of each source group.
        source_lengths: int64, shape (G,), words of each source.
        faulty: bool, shape (N,), lines that are no entries; what else is said of them means nothing.
        probabilities: float32, shape (N,), p(target | source), the third score.
        counts: float32, shape (N,), how often the pair was extracted; 1 where the table does not say.
        model_scores: float32, shape (N,), what the entry adds to the score of a model: logarithms of its scores times
            their weights, and the weight of a phrase; None if no weights were given.
        similarities: float32, shape (N, 2), source-to-target and target-to-source; None if nobody asked.
        opinion: bool, shape (N,), False where a side has only unknown words; None with the similarities.
        significance: float32, shape (N,), -ln p of Fisher's exact test; None if nobody asked.
        alpha: -ln p of a pair that occurs once, together; with the significance.
        losses: float32, shape (N,), what the model loses without the entry (see `composition`), where the sizes of all
            its weights add up to 1, as tuning leaves them; None if nobody asked.
        uses: float32, shape (N,), how often the pair was used in forced decoding of the training set; None if nobody
            asked.
        forced: float32, shape (N, 2), p(target | source) and p(source | target) by these uses; None if nobody asked.
        smoothed: float32, shape (N, 2), p(target | source) and p(source | target) by the counts of the table, smoothed;
            None if nobody asked.
    """

    group_offsets: Int64Array
    source_lengths: Int64Array
    faulty: npt.NDArray[np.bool_]
    probabilities: FloatArray
    counts: FloatArray
    model_scores: FloatArray | None = None
    similarities: FloatArray | None = None
    opinion: npt.NDArray[np.bool_] | None = None
    significance: FloatArray | None = None
    alpha: float = 0.0
    losses: FloatArray | None = None
    uses: FloatArray | None = None
    forced: FloatArray | None = None
    smoothed: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.faulty)
