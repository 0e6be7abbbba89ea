"""Settings of an experiment, section by section, and the pruned tables that it compares."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moses_compat.experiments.config_table import ConfigTable, asked
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.pruning.decision import Rule, protects_frequent
from phrasetool.pruning.measures import FORCED, LOSSES, OCCURRENCES, SIGNIFICANCE, SIMILARITIES, SMOOTHED, USES, Measure
from phrasetool.pruning.methods import COMBINATIONS, Method, parse_method
from phrasetool.pruning.protection import PROTECTIONS, KeepBest, frequent_count
from phrasetool.pruning.thresholds import Threshold

FULL = "full"
RANDOM = "random"
# What a source keeps at least at a threshold, where nobody says otherwise (Zhang et al. 2014, footnote 3).
KEEP_TOP = 10
# As many as there is room for, see `KeepBestWithinBudget`.
AFFORDABLE = -1
DEV, ALL = "dev", "ALL"
# The score columns that an experiment can append -> what they are made of.
COLUMN_MEASURES: Mapping[str, Measure[Any]] = {
    "semantic": SIMILARITIES, "composition": LOSSES, "significance": SIGNIFICANCE, "forced": FORCED,
    "kneser-ney": SMOOTHED,
}  # fmt: skip
# Of them, those that `phrasetool annotate` writes.
ANNOTATED = ("semantic", "forced", "kneser-ney")
# What `quick` leaves of an experiment.
_QUICK_SENTENCES, _QUICK_METHODS, _QUICK_SIZES, _QUICK_ITERATIONS, _QUICK_TUNING = 200, 4, 2, 3, 6


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


@dataclass(frozen=True)
class TextPair:
    """Two files with a tokenised sentence a line, a line for a line."""

    source: str = asked(ConfigTable.file)
    target: str = asked(ConfigTable.file)


@dataclass(frozen=True)
class FinishedModel:
    """What `[moses]` names: a model that is there.

    Attributes:
        ini: a moses.ini of version 2 with its weights.
        table, reordering_table: used instead of those it names.
        pairs: phrase pairs to train similarities on; the table itself if there are none and no bitext.
    """

    ini: str = asked(ConfigTable.file)
    table: str | None = asked(ConfigTable.file, None)
    reordering_table: str | None = asked(ConfigTable.file, None)
    pairs: str | None = asked(ConfigTable.file, None)


@dataclass(frozen=True)
class BuildSettings:
    """What `[build]` says of making a model from the bitext.

    Attributes:
        lm_order: of the language model.
        lm_text: more text for it.
        max_phrase_length: words a phrase may have.
        leave_one_out: score entries in forced decoding as if the sentence at hand had not been extracted from.
    """

    lm_order: int = asked(ConfigTable.integer, 5, least=1)
    lm_text: tuple[str, ...] = asked(ConfigTable.files, ())
    max_phrase_length: int = asked(ConfigTable.integer, 7, least=1)
    leave_one_out: bool = asked(ConfigTable.boolean, True)


@dataclass(frozen=True)
class ElsewhereSettings:
    """What `[model.text_encoder]` says: an encoder of texts that was trained elsewhere; see `annotate --encoder`.

    Attributes:
        folder: of the encoder.
        target_folder: of that of the target side, if it is another.
        detokenise: a language, or two with a comma between them.
        prefix: stands before every text.
    """

    folder: str = asked(ConfigTable.folder)
    target_folder: str | None = asked(ConfigTable.folder, None)
    detokenise: str | None = asked(ConfigTable.text, None)
    prefix: str | None = asked(ConfigTable.text, None)


@dataclass(frozen=True)
class EncoderSettings:
    """What `[model]` says of the similarities.

    Attributes:
        folder: a model that is there, of any family; else one is trained.
        second_folder: where that is a translator, the translator of the other direction.
        text_encoder: an encoder from elsewhere in place of a model.
        dimension: n.
        loss: one of `OBJECTIVES`.
        encoder: one of `ENCODERS`.
        iterations, pretrain_iterations: passes over the pairs; what `phrasetool train` takes if None.
        min_pair_count: pairs seen less often are left out.
        source_text, target_text: monolingual text for word vectors.
        options: more hyper-parameters of training, see `TrainingSettings`, and options of the loss and of the encoder.
    """

    folder: str | None = asked(ConfigTable.folder, None)
    dimension: int = asked(ConfigTable.integer, 50, least=1)
    loss: str = asked(ConfigTable.choice, "in-batch", choices=tuple(OBJECTIVES))
    encoder: str = asked(ConfigTable.choice, "rae", choices=tuple(ENCODERS))
    iterations: int | None = asked(ConfigTable.integer, None, least=0)
    pretrain_iterations: int | None = asked(ConfigTable.integer, None, least=0)
    min_pair_count: float = asked(ConfigTable.number, 0.0)
    source_text: tuple[str, ...] = asked(ConfigTable.files, ())
    target_text: tuple[str, ...] = asked(ConfigTable.files, ())
    options: Mapping[str, Any] = field(default_factory=dict)
    second_folder: str | None = asked(ConfigTable.folder, None)
    text_encoder: ElsewhereSettings | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is a model or an encoder, so that none has to be trained."""
        return bool(self.folder or self.text_encoder)


def _parts(table: ConfigTable, key: str, text: str, known: Collection[str]) -> list[str]:
    """The columns that a text names, with `+` between them."""
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        if part not in known:
            raise table.error(key, f"holds {part!r}; expected {', '.join(known)}")
    return parts


def _columns(table: ConfigTable, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys("+".join(_parts(table, key, text, COLUMN_MEASURES)) for text in table.texts(key)))


@dataclass(frozen=True)
class AnnotationSettings:
    """What `[annotate]` asks for.

    Attributes:
        dimensions: of the models whose similarities are appended, each on its own; 0 is the model that is there.
        columns: what is appended: `semantic` (two), `composition`, `significance`, `forced` (two), `kneser-ney` (two),
            or several with `+` between them; each of them on its own; none: only sizes are compared.
        tuning_seeds: tune with each of them.
        start: tune from `default` weights, or from those of the `ini`; new columns begin at 0.
        iterations: runs of the decoder in a tuning.
        sizes: of the tables that are tuned, with and without columns: 1 for the full one, else a share of its entries.
        method: which method prunes them.
    """

    dimensions: tuple[int, ...] = asked(ConfigTable.integers, (50,))
    columns: tuple[str, ...] = asked(_columns, ("semantic",))
    tuning_seeds: tuple[int, ...] = asked(ConfigTable.integers, (1, 2, 3))
    start: str = asked(ConfigTable.choice, "default", choices=("default", "ini"))
    iterations: int = asked(ConfigTable.integer, 25, least=1)
    sizes: tuple[float, ...] = asked(ConfigTable.shares, (1.0,))
    method: str = asked(ConfigTable.text, "composition+semantic")

    @property
    def measured(self) -> frozenset[str]:
        """What the columns are made of."""
        return frozenset(part for columns in self.columns for part in columns.split("+"))


def _written_columns(table: ConfigTable, key: str) -> str:
    """Columns that `phrasetool annotate` writes, with `+` between them; none if empty."""
    text = "+".join(table.texts(key))
    return "+".join(dict.fromkeys(_parts(table, key, text, ANNOTATED))) if text else ""


@dataclass(frozen=True)
class LadderSettings:
    """What `[ladder]` asks for: steps, each on top of those before, on tables that are written and tuned again.

    Attributes:
        columns: what is appended, some of `ANNOTATED` with `+` between them; none if empty.
        augment: whether words of the development set and the test sets that no entry translates get entries.
        monolingual: text of the source language that these are learnt from, too.
        rerank: translators that choose from n-best lists; none if empty.
        sizes: shares of the entries to which the table with all of it is pruned.
        method: which method prunes it.
        tuning_seeds: tune with each of them, from the weights of the ini.
        iterations: runs of the decoder in a tuning.
    """

    columns: str = asked(_written_columns, "kneser-ney+forced+semantic")
    augment: bool = asked(ConfigTable.boolean, True)
    monolingual: tuple[str, ...] = asked(ConfigTable.files, ())
    rerank: tuple[str, ...] = asked(ConfigTable.folders, ())
    sizes: tuple[float, ...] = asked(ConfigTable.shares, (0.1,))
    method: str = asked(ConfigTable.text, "composition+semantic")
    tuning_seeds: tuple[int, ...] = asked(ConfigTable.integers, (1, 2, 3))
    iterations: int = asked(ConfigTable.integer, 25, least=1)

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """What its columns are made of, and what its method asks."""
        columns = {COLUMN_MEASURES[column] for column in self.columns.split("+") if column}
        return frozenset(columns | (parse_method(self.method, None).needs if self.sizes else set()))


@dataclass(frozen=True)
class NeighbourSettings:
    """What `[neighbours]` asks for.

    Attributes:
        phrases: of either language; frequent ones are chosen if there are none.
        count: neighbours of each.
        pretrain_iterations: of the unsupervised model next to the bilingual one.
    """

    phrases: tuple[str, ...] = asked(ConfigTable.texts, ())
    count: int = asked(ConfigTable.integer, 5, least=1)
    pretrain_iterations: int = asked(ConfigTable.integer, 5, least=1)


@dataclass(frozen=True)
class SearchSettings:
    """What `[search]` says of decoding; without a limit, it is as in the ini."""

    algorithm: str = asked(ConfigTable.choice, "cube", choices=("cube", "stack"))
    stack: int = asked(ConfigTable.integer, 400, least=1)
    pop_limit: int = asked(ConfigTable.integer, 400, least=1)
    table_limit: int | None = asked(ConfigTable.integer, None, least=0)


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """An experiment.

    Attributes:
        path: the file it was read from.
        name: for the report.
        output: folder.
        seed: of the aligner, of training and of tuning.
        samples: of the bootstrap.
        sentences: of each text at most; None for all.
        force: go on where a check finds that the development set, the pairs or a model make no sense.
        bitext: what the table was or will be made from, if that is known.
        dev: the development set.
        tests: the test sets, by their names.
        moses, build, model, prune, annotate, ladder, neighbours, search: the sections; None for one that is not there.
    """

    path: str
    name: str = asked(ConfigTable.text)
    output: str
    seed: int = asked(ConfigTable.integer, 1, least=1)
    samples: int = asked(ConfigTable.integer, 1000, least=2)
    bitext: TextPair | None
    dev: TextPair
    tests: Mapping[str, TextPair]
    moses: FinishedModel | None
    build: BuildSettings
    model: EncoderSettings
    prune: PruningGrid | None
    annotate: AnnotationSettings | None
    ladder: LadderSettings | None
    neighbours: NeighbourSettings | None
    search: SearchSettings
    sentences: int | None = None
    force: bool = False

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """What must be measured of the table by the experiment itself."""
        found: set[Measure[Any]] = set()
        for method in (*self.prune.methods, *self.prune.thresholds) if self.prune else ():
            found |= parse_method(method, None).needs
        for system in self.prune.systems() if self.prune else ():
            found |= system.needs
        if self.annotate:
            found |= {COLUMN_MEASURES[column] for column in self.annotate.measured}
            found |= parse_method(self.annotate.method, None).needs if min(self.annotate.sizes) < 1 else set()
        return frozenset(found)

    @property
    def all_needs(self) -> frozenset[Measure[Any]]:
        """What must be measured, by the commands of the ladder, too."""
        return self.needs | self.ladder.needs if self.ladder else self.needs

    @property
    def encodes(self) -> bool:
        """Whether a trained model is needed."""
        return SIMILARITIES in self.all_needs or self.neighbours is not None

    @property
    def counts_uses(self) -> bool:
        """Whether leave-one-out forced decoding of the bitext is needed."""
        return not self.all_needs.isdisjoint({USES, FORCED})

    def quick(self) -> ExperimentConfig:
        """The same with fewer of everything: some minutes, to see whether all is well."""
        prune, annotate = self.prune, self.annotate
        if prune:
            sizes = sorted(prune.sizes, reverse=True)
            few = sizes if len(sizes) <= _QUICK_SIZES else [sizes[len(sizes) // 2], sizes[-1]]
            prune = replace(
                prune, methods=prune.methods[:_QUICK_METHODS], sizes=tuple(few), combine=prune.combine[:1],
                protect=prune.protect[:1], seeds=prune.seeds[:1],
                thresholds={method: values[:1] for method, values in prune.thresholds.items()},
            )  # fmt: skip
        if annotate:
            annotate = replace(
                annotate, dimensions=annotate.dimensions[:1], tuning_seeds=annotate.tuning_seeds[:1],
                columns=annotate.columns[:1], sizes=annotate.sizes[:1],
                iterations=min(annotate.iterations, _QUICK_TUNING),
            )  # fmt: skip
        ladder = self.ladder and replace(
            self.ladder, tuning_seeds=self.ladder.tuning_seeds[:1],
            iterations=min(self.ladder.iterations, _QUICK_TUNING),
        )  # fmt: skip
        iterations = self.model.iterations
        fewer = _QUICK_ITERATIONS if iterations is None else min(iterations, _QUICK_ITERATIONS)
        neighbours = self.neighbours and replace(self.neighbours, pretrain_iterations=1)
        return replace(
            self, output=os.path.join(self.output, "quick"), sentences=_QUICK_SENTENCES, prune=prune,
            annotate=annotate, ladder=ladder, neighbours=neighbours, model=replace(self.model, iterations=fewer),
        )  # fmt: skip
