"""The tables that an experiment compares: which methods, how small, what is protected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moses_compat.experiments.config_table import ConfigTable, asked
from phrasetool.pruning.decision import Rule, protects_frequent
from phrasetool.pruning.measures import OCCURRENCES, SIMILARITIES, Measure
from phrasetool.pruning.methods import COMBINATIONS, Method, parse_method
from phrasetool.pruning.protection import PROTECTIONS, KeepBest, frequent_count
from phrasetool.pruning.thresholds import Threshold

FULL = "full"
RANDOM = "random"
# What a source keeps at least at a threshold, where nobody says otherwise (Zhang et al. 2014, footnote 3).
KEEP_TOP = 10
# As many as there is room for, see `AffordableBest`.
AFFORDABLE = -1


@dataclass(frozen=True)
class PruningSystem:
    """A table, by how it comes from the full one.

    Attributes:
        method: names of criteria with `+` between them, or `full`.
        combine: how several criteria are made one; empty for a single one.
        rule: `size`, `threshold` or `full`.
        wanted: the share of the entries that may stay, or the threshold; 1 for the full table, and 0 where the
            criteria have thresholds of their own.
        protect, keep_top: see `KeepBest`; `AFFORDABLE` for the most that there is room for.
        seed: of the random criterion; 0 for all others.
        protect_frequent: as in `phrasetool prune --protect-frequent`: a count, `none`, or None for its default.
    """

    method: str = FULL
    combine: str = ""
    rule: str = FULL
    wanted: float = 1.0
    protect: str = "none"
    keep_top: int = 0
    seed: int = 0
    protect_frequent: int | str | None = None

    def parsed(self) -> Method:
        """The method; not of the full table."""
        return parse_method(self.method, self.combine or "product", self.seed)

    def pruning_rule(self) -> Rule:
        """Its rule; not of the full table."""
        method, best = self.parsed(), KeepBest(self.keep_top, self.protect, self.frequent)
        if method.thresholds:
            return Rule.of(method, best)
        if self.rule == "size":
            return Rule.of(method, best, size=self.wanted)
        return Rule.of(method, best, threshold=Threshold.of(self.wanted))

    @property
    def frequent(self) -> int | None:
        """The count above which mutual translations are protected; None if none is."""
        return frequent_count(self.protect_frequent, protects_frequent(self.parsed(), self.rule == "threshold"))

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """What has to be measured of the table: for the method, and for what is protected."""
        needs = self.parsed().needs
        return needs if self.frequent is None else needs | {OCCURRENCES}

    @property
    def semantic(self) -> bool:
        """Whether a criterion of it looks at meaning."""
        return self.rule != FULL and SIMILARITIES in self.parsed().needs

    @property
    def kind(self) -> str:
        """The method and how its criteria are combined."""
        return self.method if self.combine in ("", "product") else f"{self.method} ({self.combine})"


def _thresholds(table: ConfigTable, key: str) -> dict[str, tuple[float, ...]]:
    inner = table.table(key, None)
    return {method: inner.numbers(method) for method in inner}


def _keep_top(table: ConfigTable, key: str) -> dict[float, int]:
    """One number for all sizes, or a table from the largest size that a number is meant for to the number."""
    if not isinstance(table.values[key], Mapping):
        return {1.0: table.integer(key, least=0)}
    inner = table.table(key, None)
    found = {}
    for name in inner:
        try:
            size = float(name)
        except ValueError:
            size = 0.0
        if not 0 < size <= 1:
            raise table.error(key, f'has the key {name!r}; expected a size, as in {{"0.07" = 3, "1" = 10}}')
        found[size] = inner.integer(name, least=0)
    return found


@dataclass(frozen=True)
class PruningGrid:
    """What `[prune]` asks for.

    Attributes:
        methods: as in `phrasetool prune --method`.
        combine: ways to make several criteria one; each is tried.
        sizes: shares of the entries that may stay.
        thresholds: by method, which thresholds to try besides.
        protect: which sources keep their best entries; each is tried.
        keep_top: how many; by the largest size that it is meant for.  Sizes that are larger keep as many as there is
            room for, thresholds 10.
        seeds: of the random criterion; each is tried.
    """

    methods: tuple[str, ...] = asked(ConfigTable.texts, ())
    combine: tuple[str, ...] = asked(ConfigTable.choices, ("product",), choices=COMBINATIONS)
    sizes: tuple[float, ...] = asked(ConfigTable.shares, ())
    thresholds: Mapping[str, tuple[float, ...]] = asked(_thresholds, dict)
    protect: tuple[str, ...] = asked(ConfigTable.choices, ("words",), choices=PROTECTIONS)
    keep_top: Mapping[float, int] = asked(_keep_top, dict)
    seeds: tuple[int, ...] = asked(ConfigTable.integers, (1,))

    def best_of(self, size: float, otherwise: int = AFFORDABLE) -> int:
        """How many entries a protected source keeps in a table of this size."""
        fitting = [limit for limit in self.keep_top if size <= limit]
        return self.keep_top[min(fitting)] if fitting else otherwise

    def systems(self) -> Iterator[PruningSystem]:
        """All tables, method by method, without the full one."""
        for method in dict.fromkeys((*self.methods, *self.thresholds)):
            parts = parse_method(method, None).parts
            for combine in ways_of(method, self.combine):
                for seed in self.seeds if any(part.name == RANDOM for part in parts) else (0,):
                    for protect in self.protect:
                        for rule, wanted in self._cuts(method):
                            keep = self.best_of(wanted) if rule == "size" else self.best_of(1.0, KEEP_TOP)
                            yield PruningSystem(method, combine, rule, wanted, protect, keep, seed)

    def _cuts(self, method: str) -> Iterator[tuple[str, float]]:
        """The sizes and thresholds of a method."""
        if parse_method(method, None).thresholds:
            yield "threshold", 0.0
            return
        if method in self.methods:
            yield from (("size", size) for size in self.sizes)
        yield from (("threshold", threshold) for threshold in self.thresholds.get(method, ()))


def ways_of(method: str, combine: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the ways to combine criteria that mean something to a method; an empty one for a single criterion.

    Raises:
        ValueError: the method is none, or none of the ways means anything to it.
    """
    if len(parse_method(method, None).parts) == 1:
        return ("",)
    fitting, reason = [], None
    for way in combine:
        try:
            parse_method(method, way)
            fitting.append(way)
        except ValueError as error:
            reason = error
    if fitting:
        return tuple(fitting)
    if parse_method(method, None).thresholds:
        return ("intersection",)
    raise reason or ValueError("there is no way to combine criteria")


def labels_of(systems: list[PruningSystem]) -> dict[PruningSystem, str]:
    """A unique label for each system: what tells it from the others, and no more."""
    protections = {system.protect for system in systems if system.rule != FULL}
    seeds = {system.seed for system in systems if system.seed}
    labels = {}
    for system in systems:
        if system.rule == FULL:
            labels[system] = FULL
            continue
        parts = [system.kind]
        if system.rule == "size":
            parts = [f"{system.kind} {100 * system.wanted:g} %"]
        elif not system.parsed().thresholds:
            parts = [f"{system.kind} at {system.wanted:g}"]
        if len(protections) > 1:
            parts.append(f"protect {system.protect}")
        if system.seed and len(seeds) > 1:
            parts.append(f"seed {system.seed}")
        labels[system] = ", ".join(parts)
    return labels
