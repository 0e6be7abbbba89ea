"""Search for the smallest table whose loss of BLEU is within a budget.

BLEU is not monotonic in the size: two tables that differ in a few entries differ in a few sentences, by chance up or
down, and a pruned table may well be better than one twice its size.  The result of plain bisection would depend on its
first few comparisons, and the smallest of many sizes may keep the budget by chance.  The search therefore has three
stages: tables each half as large as the previous one; bisection, on the logarithm of the size, between the smallest of
them that keeps the budget and the next; and the sizes just above the answer, until the answer keeps the budget both
alone and on the isotonic regression of all trials.  By default the search compares point estimates on one development
set.  With non-inferiority, it compares the lower ends of the 95 % intervals, so that a loss beyond the budget is
excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.smt.evaluation.bleu import BleuSamples

# Number of sizes per halving of the table: neighbouring sizes differ by a factor of 2 ** (1 / 8), or 9 %.
_STEPS_PER_HALVING = 8
# Smallest share of the entries that is tried.
_SMALLEST_SHARE = 0.001


@dataclass(frozen=True)
class Comparison:
    """BLEU of a system compared with that of a baseline.

    Attributes:
        bleu: BLEU of the system.
        difference: BLEU of the system minus that of the baseline.
        low, high: the 95 % interval of the difference.
    """

    bleu: float
    difference: float
    low: float
    high: float

    def judged(self, non_inferior: bool) -> float:
        """Return the value to compare with a budget: the difference or, if `non_inferior`, its lower limit."""
        return self.low if non_inferior else self.difference

    def keeps(self, max_loss: float, non_inferior: bool) -> bool:
        """Return whether at most `max_loss` points are lost; if `non_inferior`, whether the interval excludes more."""
        return -self.judged(non_inferior) <= max_loss


def compare(system: BleuSamples, baseline: BleuSamples) -> Comparison:
    """Compare two systems on the same bootstrap samples: percentiles of the differences (Koehn, EMNLP 2004)."""
    low, high = np.percentile(system.samples - baseline.samples, [2.5, 97.5])
    return Comparison(system.bleu, system.bleu - baseline.bleu, float(low), float(high))


@dataclass(frozen=True)
class Trial:
    """Evaluation of one table size.

    Attributes:
        entries: size of the table.
        result: comparison with the full table.
    """

    entries: int
    result: Comparison


@dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes:
        trials: all trials in the order of their evaluation, the full table first.
        answer: the smallest table that keeps the budget both alone and on the rising curve.
        by_chance: smaller tables that keep the budget alone but not on the rising curve, so by chance; smallest first.
    """

    trials: Sequence[Trial]
    answer: Trial
    by_chance: Sequence[Trial]


def size_grid(entries: int, smallest: int) -> list[int]:
    """Return the sizes that may be tried, descending in steps of about 8 %, from all entries to the smallest size.

    Args:
        entries: size of the full table.
        smallest: number of entries that are always kept; sizes below a thousandth of the table are not tried.
    """
    last = min(max(smallest, int(entries * _SMALLEST_SHARE), 1), entries)
    steps = int(np.log2(max(entries, 1) / max(last, 1)) * _STEPS_PER_HALVING)
    sizes = [int(entries * 2 ** (-step / _STEPS_PER_HALVING)) for step in range(steps + 1)]
    return sorted({*(size for size in sizes if size >= last), last}, reverse=True)


def search_size(
    evaluate: Callable[[int], Comparison], sizes: Sequence[int], max_loss: float, non_inferior: bool = False
) -> Found:
    """Find the smallest size at which no more than `max_loss` BLEU is lost.

    Args:
        evaluate: compares a table of the given number of entries with the full one.
        sizes: result of `size_grid`, descending, the full table first.
        max_loss: largest loss in BLEU points, at least 0.
        non_inferior: whether the 95 % interval must exclude a larger loss.

    Raises:
        ValueError: `sizes` is empty, or the budget is negative.
    """
    if not sizes or not max_loss >= 0:
        raise ValueError(f"cannot search {len(sizes)} sizes for a loss of {max_loss}")
    tried: dict[int, Trial] = {}

    def keeps_budget(trial: Trial) -> bool:
        return trial.result.keeps(max_loss, non_inferior)

    def attempt(step: int) -> Comparison:
        if step not in tried:
            tried[step] = Trial(sizes[step], evaluate(sizes[step]))
        return tried[step].result

    last = len(sizes) - 1
    hopeless = 0
    for step in [*range(0, last, _STEPS_PER_HALVING), last]:
        # After two consecutive sizes that are certainly too small, smaller ones are not tried.
        hopeless = hopeless + 1 if attempt(step).high < -max_loss else 0
        if hopeless == 2:
            break
    while True:
        answer = _believed(tried, max_loss, non_inferior)
        smaller = min((step for step in tried if step > answer), default=answer)
        if smaller - answer > 1:
            attempt((answer + smaller) // 2)
            continue
        neighbours = [step for step in (answer - 1, answer - 2) if step > 0 and step not in tried]
        if not neighbours:
            break
        attempt(neighbours[0])
    smallest_first = sorted((step for step in tried if step > answer), reverse=True)
    by_chance = [tried[step] for step in smallest_first if keeps_budget(tried[step])]
    return Found(list(tried.values()), tried[answer], by_chance)


def _believed(tried: dict[int, Trial], max_loss: float, non_inferior: bool) -> int:
    """Return the last step that keeps the budget alone and on the rising curve."""
    steps = sorted(tried, reverse=True)
    differences = [tried[step].result.judged(non_inferior) for step in steps]
    curve = rising_curve(differences)
    good = [
        step for step, smooth in zip(steps, curve, strict=True)
        if tried[step].result.keeps(max_loss, non_inferior) and -smooth <= max_loss
    ]  # fmt: skip
    # The full table loses nothing and is always acceptable, even if rounding in the curve suggests a loss.
    return max(good, default=0)


def rising_curve(values: Sequence[float]) -> list[float]:
    """Return the non-decreasing curve nearest to the values in least squares (isotonic regression)."""
    from sklearn.isotonic import isotonic_regression

    curve: list[float] = isotonic_regression(np.asarray(values, np.float64)).tolist()
    return curve
