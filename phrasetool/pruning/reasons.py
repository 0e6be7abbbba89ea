"""Reasons for removals: each criterion's score of the entries, and which criteria alone would have removed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Mask
from phrasetool.pruning.decision import Decision, Ranking
from phrasetool.pruning.sizes import SizeLimit

# The label of entries that no criterion alone would have removed.
TOGETHER = "together"


@dataclass(frozen=True)
class Reasons:
    """Scores of N entries by C criteria, and which of them fail an entry.

    Attributes:
        names: of the criteria.
        worths: float32, shape (N, C), the scores.
        fails: bool, shape (N, C): that criterion alone would remove the entry.
    """

    names: tuple[str, ...]
    worths: FloatArray
    fails: Mask

    def part(self, rows: slice | npt.NDArray[Any]) -> Reasons:
        """Those of some entries."""
        return Reasons(self.names, self.worths[rows], self.fails[rows])

    @property
    def labels(self) -> list[str]:
        """Labels of the `codes`: the names of criteria with `+` between them, or `together`."""
        codes = range(1 << len(self.names))
        return ["+".join(name for bit, name in enumerate(self.names) if code >> bit & 1) or TOGETHER for code in codes]

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """int32, shape (N,): which criteria fail each entry, the first one counting 1, the next 2, then 4 and so on."""
        bits = 1 << np.arange(len(self.names), dtype=np.int32)
        codes: npt.NDArray[np.int32] = self.fails.astype(np.int32) @ bits
        return codes

    def counts(self) -> dict[str, int]:
        """How many entries have each label; labels that none has are left out."""
        counted = np.bincount(self.codes, minlength=1 << len(self.names))
        return {label: int(count) for label, count in zip(self.labels, counted, strict=True) if count}


def explain(ranking: Ranking, decision: Decision) -> Reasons:
    """Explain why the removed entries of a table were removed.

    Where criteria have thresholds of their own, these thresholds count.  Otherwise a criterion alone would have removed
    an entry if it is not among the best unprotected entries by this criterion, as many as were kept.

    Args:
        ranking: the ranking on which the decision is based.
        decision: the decision to explain.
    """
    method, measures = ranking.method, ranking.measures
    if len(method.parts) == 1:
        # The ranking holds the scores of the one criterion.
        return Reasons(method.names, ranking.worth.astype(np.float32)[:, None], decision.fails[:, None])
    worths = method.worths(measures)
    if method.thresholds:
        fails = method.below(worths, measures.alpha)
    else:
        count = int((decision.keep & ~decision.protected).sum())
        first, protected = measures.first, decision.protected
        columns = [np.ascontiguousarray(column) for column in worths.T]
        limits = [SizeLimit.of(lambda worth=column: [(first, worth, protected)], count) for column in columns]  # type: ignore[misc]
        alone = [limit.fails(column, protected, first) for limit, column in zip(limits, columns, strict=True)]
        fails = np.stack(alone, axis=1)
    return Reasons(method.names, worths, fails)
