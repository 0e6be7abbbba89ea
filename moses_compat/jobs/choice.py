"""What was decided about a whole table, and what is protected in a table of some size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.pruning.decision import Decision
from phrasetool.pruning.measures import Measures
from phrasetool.pruning.protection import AffordableBest, KeepBest


@dataclass(frozen=True)
class Chosen:
    """What was decided about a whole table.

    Attributes:
        decision: about its entries.
        best: the rule that protected some.
        rule: for the signature line.
        figures: for the statistics.
    """

    decision: Decision
    best: KeepBest
    rule: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def rule_for_size(request: PruneRequest, measures: Measures) -> Callable[[int], KeepBest]:
    """What is protected where so many entries stay: as asked for, or what there is room for."""
    protect = request.protect or "words"
    if request.keep_top is not None:
        wanted = KeepBest(request.keep_top, protect)
        return lambda entries: wanted
    return AffordableBest(measures, protect).best


def protection(best: KeepBest) -> str:
    """In words."""
    best_of = "the best" if best.k == 1 else f"the {best.k} best"
    return f"{best_of} of every {'source' if best.protect == 'all' else 'one-word source'}"
