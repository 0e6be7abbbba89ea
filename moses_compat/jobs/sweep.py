"""How many entries thresholds would leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_compat.jobs.prune_measures import (
    checked_method,
    checked_tables,
    sizes_by_threshold,
    whole_measures,
)
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_sources import kept_path, similarity_source
from phrasetool.pruning.decision import Rule
from phrasetool.pruning.ranked_table import RankedTable
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import NOBODY, Watch


class Swept(NamedTuple):
    """What a threshold would leave.

    Attributes:
        threshold: where entries are cut.
        kept: entries that stay.
        entries: all of them.
        failing: entries that would go if nothing were protected.
    """

    threshold: float
    kept: int
    entries: int
    failing: int

    @property
    def protected(self) -> int:
        """Entries below the threshold that stay all the same."""
        return self.failing - (self.entries - self.kept)


def sweep(request: PruneRequest, watch: Watch = NOBODY) -> list[Swept]:
    """How many entries each threshold of `request.sweep` leaves; no table is written.

    Raises:
        DataError: as `prune`.
    """
    method, thresholds = checked_method(request), list(request.sweep or ())
    with checked_tables(request, watch) as request:
        if request.streams(method):
            similarities = similarity_source(request, watch)
            keep = kept_path(request, similarities)
            curve = sizes_by_threshold(request, method, similarities, keep, watch, thresholds)
            counts = zip(thresholds, curve.survivors.tolist(), curve.failing.tolist(), strict=True)
            return [Swept(threshold, kept, curve.entries, failing) for threshold, kept, failing in counts]
        ranking = RankedTable(method, whole_measures(request, method, watch)[0])
    rules = [Rule.of(method, request.best, threshold=Threshold.of(threshold)) for threshold in thresholds]
    found = []
    for threshold, rule in zip(thresholds, rules, strict=True):
        totals = np.zeros(2, np.int64)
        for part in ranking.decide(rule.cut, rule.best).parts():
            totals += np.count_nonzero(part.keep), np.count_nonzero(part.fails)
        found.append(Swept(threshold, int(totals[0]), len(ranking), int(totals[1])))
    return found
