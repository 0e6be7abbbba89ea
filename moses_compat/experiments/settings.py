"""Settings of an experiment, section by section, and the pruned tables that it compares."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moses_compat.experiments.config_table import ConfigTable, setting
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.pruning.decision import Rule, protects_frequent
from phrasetool.pruning.measures import FORCED, LOSSES, OCCURRENCES, SIGNIFICANCE, SIMILARITIES, SMOOTHED, USES, Measure
from phrasetool.pruning.methods import COMBINATIONS, Method, parse_method
from phrasetool.pruning.protection import PROTECTIONS, KeepBest, frequent_count
from phrasetool.pruning.thresholds import Threshold

FULL = "full"
RANDOM = "random"
# Default minimum number of entries per source at a threshold (Zhang et al. 2014, footnote 3).
KEEP_TOP = 10
# Value of `keep_top`: as many entries as the size allows, see `KeepBestWithinBudget`.
AFFORDABLE = -1
DEV, ALL = "dev", "ALL"
# Score column that an experiment can append -> the measure from which it is computed.
COLUMN_MEASURES: Mapping[str, Measure[Any]] = {
    "semantic": SIMILARITIES, "composition": LOSSES, "significance": SIGNIFICANCE, "forced": FORCED,
    "kneser-ney": SMOOTHED,
}  # fmt: skip
# The columns that `phrasetool annotate` writes.
ANNOTATED = ("semantic", "forced", "kneser-ney")
# Limits of an experiment with `quick`.
_QUICK_SENTENCES, _QUICK_METHODS, _QUICK_SIZES, _QUICK_ITERATIONS, _QUICK_TUNING = 200, 4, 2, 3, 6


@dataclass(frozen=True)
class PruningSystem:
    """A system: the full table, or a rule that prunes it.

    Attributes:
        method: names of criteria joined by `+`, or `full`.
        combine: how several criteria are combined; empty for a single one.
        rule: `size`, `threshold` or `full`.
        wanted: the target share of the entries, or the threshold; 1 for the full table, and 0 if the criteria have
            their own thresholds.
        protect, keep_top: see `KeepBest`; `AFFORDABLE` for as many entries as the size allows.
        seed: seed of the random criterion; 0 for all others.
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
        """Return the method; must not be called for the full table."""
        return parse_method(self.method, self.combine or "product", self.seed)

    def pruning_rule(self) -> Rule:
        """Return the pruning rule; must not be called for the full table."""
        method, best = self.parsed(), KeepBest(self.keep_top, self.protect, self.frequent)
        if method.thresholds:
            return Rule.of(method, best)
        if self.rule == "size":
            return Rule.of(method, best, size=self.wanted)
        return Rule.of(method, best, threshold=Threshold.of(self.wanted))

    @property
    def frequent(self) -> int | None:
        """The count above which mutual translations are protected; None if they are not protected."""
        return frequent_count(self.protect_frequent, protects_frequent(self.parsed(), self.rule == "threshold"))

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures of the table that the method and the protection need."""
        needs = self.parsed().needs
        return needs if self.frequent is None else needs | {OCCURRENCES}

    @property
    def semantic(self) -> bool:
        """Whether one of the criteria uses semantic similarity."""
        return self.rule != FULL and SIMILARITIES in self.parsed().needs

    @property
    def kind(self) -> str:
        """The method and how its criteria are combined."""
        return self.method if self.combine in ("", "product") else f"{self.method} ({self.combine})"


def _thresholds(table: ConfigTable, key: str) -> dict[str, tuple[float, ...]]:
    inner = table.table(key, None)
    return {method: inner.numbers(method) for method in inner}


def _keep_top(table: ConfigTable, key: str) -> dict[float, int]:
    """Read one number for all sizes, or a table that maps the largest size of a range to a number."""
    if not isinstance(table.values[key], Mapping):
        return {1.0: table.integer(key, least=0)}
    inner = table.table(key, None)
    numbers = {}
    for name in inner:
        try:
            size = float(name)
        except ValueError:
            size = 0.0
        if not 0 < size <= 1:
            raise table.error(key, f'has the key {name!r}; expected a size, as in {{"0.07" = 3, "1" = 10}}')
        numbers[size] = inner.integer(name, least=0)
    return numbers


@dataclass(frozen=True)
class PruningGrid:
    """Settings of `[prune]`: the pruned tables to compare.

    Attributes:
        methods: as in `phrasetool prune --method`.
        combine: ways to combine several criteria; each is tried.
        sizes: target shares of the entries.
        thresholds: by method, thresholds to try in addition.
        protect: which sources keep their best entries; each is tried.
        keep_top: number of best entries that are kept, by the largest size for which it is used.  Larger sizes keep as
            many as the size allows.  Thresholds use the number for size 1, or 10 if it is missing.
        seeds: seeds of the random criterion; each is tried.
    """

    methods: tuple[str, ...] = setting(ConfigTable.texts, ())
    combine: tuple[str, ...] = setting(ConfigTable.choices, ("product",), choices=COMBINATIONS)
    sizes: tuple[float, ...] = setting(ConfigTable.shares, ())
    thresholds: Mapping[str, tuple[float, ...]] = setting(_thresholds, dict)
    protect: tuple[str, ...] = setting(ConfigTable.choices, ("words",), choices=PROTECTIONS)
    keep_top: Mapping[float, int] = setting(_keep_top, dict)
    seeds: tuple[int, ...] = setting(ConfigTable.integers, (1,))

    def best_of(self, size: float, otherwise: int = AFFORDABLE) -> int:
        """Return the number of best entries that a protected source keeps in a table of this size."""
        fitting = [limit for limit in self.keep_top if size <= limit]
        return self.keep_top[min(fitting)] if fitting else otherwise

    def systems(self) -> Iterator[PruningSystem]:
        """Yield all systems, method by method, without the full table."""
        for method in dict.fromkeys((*self.methods, *self.thresholds)):
            parts = parse_method(method, None).parts
            for combine in combinations_of(method, self.combine):
                for seed in self.seeds if any(part.name == RANDOM for part in parts) else (0,):
                    for protect in self.protect:
                        for rule, value in self._cuts(method):
                            keep = self.best_of(value) if rule == "size" else self.best_of(1.0, KEEP_TOP)
                            yield PruningSystem(method, combine, rule, value, protect, keep, seed)

    def _cuts(self, method: str) -> Iterator[tuple[str, float]]:
        """Yield the sizes and thresholds of a method."""
        if parse_method(method, None).thresholds:
            yield "threshold", 0.0
            return
        if method in self.methods:
            yield from (("size", size) for size in self.sizes)
        yield from (("threshold", threshold) for threshold in self.thresholds.get(method, ()))


def combinations_of(method: str, combine: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ways to combine criteria that are valid for a method; an empty one for a single criterion.

    Raises:
        ValueError: the method is unknown, or no way is valid for it.
    """
    if len(parse_method(method, None).parts) == 1:
        return ("",)
    fitting, reason = [], None
    for combination in combine:
        try:
            parse_method(method, combination)
            fitting.append(combination)
        except ValueError as error:
            reason = error
    if fitting:
        return tuple(fitting)
    if parse_method(method, None).thresholds:
        return ("intersection",)
    raise reason or ValueError("there is no way to combine criteria")


def labels_of(systems: list[PruningSystem]) -> dict[PruningSystem, str]:
    """Return a unique label for each system, with only those settings in which the systems differ."""
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
    """Two parallel files with one tokenised sentence per line."""

    source: str = setting(ConfigTable.file)
    target: str = setting(ConfigTable.file)


@dataclass(frozen=True)
class FinishedModel:
    """Settings of `[moses]`: an existing model.

    Attributes:
        ini: a moses.ini of version 2 with its weights.
        table, reordering_table: files that replace those of the ini.
        pairs: phrase pairs to train similarities on; without them and without a bitext, the table is used.
    """

    ini: str = setting(ConfigTable.file)
    table: str | None = setting(ConfigTable.file, None)
    reordering_table: str | None = setting(ConfigTable.file, None)
    pairs: str | None = setting(ConfigTable.file, None)


@dataclass(frozen=True)
class BuildSettings:
    """Settings of `[build]`: how a model is made from the bitext.

    Attributes:
        lm_order: order of the language model, 2 to 100; Moses does not read models of order 1.
        lm_text: additional text for the language model.
        max_phrase_length: maximum number of words of a phrase, 1 to 50.
        leave_one_out: score entries in forced decoding without their occurrences in the current sentence pair.
    """

    lm_order: int = setting(ConfigTable.integer, 5, least=2, most=100)
    lm_text: tuple[str, ...] = setting(ConfigTable.files, ())
    max_phrase_length: int = setting(ConfigTable.integer, 7, least=1, most=50)
    leave_one_out: bool = setting(ConfigTable.boolean, True)


@dataclass(frozen=True)
class PretrainedEncoderSettings:
    """Settings of `[model.text_encoder]`: a pretrained text encoder; see `annotate --encoder`.

    Attributes:
        folder: folder of the encoder.
        target_folder: folder of the encoder of the target side, if it differs.
        detokenise: a language, or two separated by a comma.
        prefix: text that precedes every input.
    """

    folder: str = setting(ConfigTable.folder)
    target_folder: str | None = setting(ConfigTable.folder, None)
    detokenise: str | None = setting(ConfigTable.text, None)
    prefix: str | None = setting(ConfigTable.text, None)


@dataclass(frozen=True)
class EncoderSettings:
    """Settings of `[model]`: the source of the similarities.

    Attributes:
        folder: an existing model of any family; None to train one.
        second_folder: the translator of the other direction, if `folder` is a translator.
        text_encoder: a pretrained encoder in place of a model.
        dimension: dimension n of the phrase vectors.
        loss: one of `OBJECTIVES`.
        encoder: one of `ENCODERS`.
        iterations, pretrain_iterations: passes over the pairs; None for the default of `phrasetool train`.
        min_pair_count: pairs with a smaller count are left out.
        source_text, target_text: monolingual text for word vectors.
        options: further hyper-parameters of training, see `TrainingSettings`, and options of the loss and the encoder.
    """

    folder: str | None = setting(ConfigTable.folder, None)
    dimension: int = setting(ConfigTable.integer, 50, least=1)
    loss: str = setting(ConfigTable.choice, "in-batch", choices=tuple(OBJECTIVES))
    encoder: str = setting(ConfigTable.choice, "rae", choices=tuple(ENCODERS))
    iterations: int | None = setting(ConfigTable.integer, None, least=0)
    pretrain_iterations: int | None = setting(ConfigTable.integer, None, least=0)
    min_pair_count: float = setting(ConfigTable.number, 0.0)
    source_text: tuple[str, ...] = setting(ConfigTable.files, ())
    target_text: tuple[str, ...] = setting(ConfigTable.files, ())
    options: Mapping[str, Any] = field(default_factory=dict)
    second_folder: str | None = setting(ConfigTable.folder, None)
    text_encoder: PretrainedEncoderSettings | None = None

    @property
    def exists(self) -> bool:
        """Whether a model or an encoder exists, so that none has to be trained."""
        return bool(self.folder or self.text_encoder)


def _parts(table: ConfigTable, key: str, text: str, known: Collection[str]) -> list[str]:
    """Return the column names in a text, where they are joined by `+`."""
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        if part not in known:
            raise table.error(key, f"holds {part!r}; expected {', '.join(known)}")
    return parts


def _columns(table: ConfigTable, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys("+".join(_parts(table, key, text, COLUMN_MEASURES)) for text in table.texts(key)))


@dataclass(frozen=True)
class AnnotationSettings:
    """Settings of `[annotate]`: the tables with appended columns to compare.

    Attributes:
        dimensions: dimensions of the models whose similarities are appended, each in a separate table; 0 is the
            existing model.
        columns: appended columns, each item in a separate table: `semantic` (two columns), `composition`,
            `significance`, `forced` (two), `kneser-ney` (two), or several joined by `+`; empty to compare sizes only.
        tuning_seeds: seeds of tuning; each is tried.
        start: start of tuning: `default` weights, or those of the `ini`; weights of new columns start at 0.
        iterations: maximum number of decoder runs in tuning.
        sizes: shares of the entries of the tables that are tuned, with and without columns; 1 for the full table.
        method: the method that prunes them.
    """

    dimensions: tuple[int, ...] = setting(ConfigTable.integers, (50,))
    columns: tuple[str, ...] = setting(_columns, ("semantic",))
    tuning_seeds: tuple[int, ...] = setting(ConfigTable.integers, (1, 2, 3))
    start: str = setting(ConfigTable.choice, "default", choices=("default", "ini"))
    iterations: int = setting(ConfigTable.integer, 25, least=1)
    sizes: tuple[float, ...] = setting(ConfigTable.shares, (1.0,))
    method: str = setting(ConfigTable.text, "composition+semantic")

    @property
    def measured(self) -> frozenset[str]:
        """The names of all single columns."""
        return frozenset(part for columns in self.columns for part in columns.split("+"))


def _written_columns(table: ConfigTable, key: str) -> str:
    """Read columns that `phrasetool annotate` writes, joined by `+`; empty for none."""
    text = "+".join(table.texts(key))
    return "+".join(dict.fromkeys(_parts(table, key, text, ANNOTATED))) if text else ""


@dataclass(frozen=True)
class LadderSettings:
    """Settings of `[ladder]`: cumulative steps on tables that are written and tuned again.

    Attributes:
        columns: appended columns, some of `ANNOTATED` joined by `+`; empty for none.
        augment: whether to add entries for words of the development set and the test sets that no entry translates.
        monolingual: further text of the source language from which these entries are learned.
        rerank: translators that rerank n-best lists; empty for no reranking.
        sizes: shares of the entries to which the table with all steps is pruned.
        method: the method that prunes it.
        tuning_seeds: seeds of tuning, which starts from the weights of the ini; each is tried.
        iterations: maximum number of decoder runs in tuning.
    """

    columns: str = setting(_written_columns, "kneser-ney+forced+semantic")
    augment: bool = setting(ConfigTable.boolean, True)
    monolingual: tuple[str, ...] = setting(ConfigTable.files, ())
    rerank: tuple[str, ...] = setting(ConfigTable.folders, ())
    sizes: tuple[float, ...] = setting(ConfigTable.shares, (0.1,))
    method: str = setting(ConfigTable.text, "composition+semantic")
    tuning_seeds: tuple[int, ...] = setting(ConfigTable.integers, (1, 2, 3))
    iterations: int = setting(ConfigTable.integer, 25, least=1)

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures that the columns and the method need."""
        columns = {COLUMN_MEASURES[column] for column in self.columns.split("+") if column}
        return frozenset(columns | (parse_method(self.method, None).needs if self.sizes else set()))


@dataclass(frozen=True)
class NeighbourSettings:
    """Settings of `[neighbours]`: tables of nearest phrases.

    Attributes:
        phrases: phrases of either language; if empty, frequent ones are chosen.
        count: number of neighbours of each phrase.
        pretrain_iterations: training iterations of the unsupervised model next to the bilingual one.
    """

    phrases: tuple[str, ...] = setting(ConfigTable.texts, ())
    count: int = setting(ConfigTable.integer, 5, least=1)
    pretrain_iterations: int = setting(ConfigTable.integer, 5, least=1)


@dataclass(frozen=True)
class SearchSettings:
    """Settings of `[search]`: search algorithm and limits; the limits of tables default to those of the ini.

    Attributes:
        algorithm: `cube` or `stack`.
        stack: largest number of hypotheses in a stack.
        pop_limit: hypotheses that cube pruning adds to a stack; None for `stack`, which has no such limit.
        table_limit: entries per source phrase; None for the limit of the ini.
    """

    algorithm: str = setting(ConfigTable.choice, "cube", choices=("cube", "stack"))
    stack: int = setting(ConfigTable.integer, 400, least=1)
    pop_limit: int | None = setting(ConfigTable.integer, None, least=1)
    table_limit: int | None = setting(ConfigTable.integer, None, least=0)


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """Configuration of an experiment.

    Attributes:
        path: the configuration file.
        name: title of the report.
        output: output folder.
        seed: seed of the aligner, of training and of tuning.
        samples: number of bootstrap samples.
        sentences: maximum number of sentences of each text; None for all.
        force: ignore failed sanity checks of the development set, the pairs and the models.
        bitext: the bitext that the table was or will be made from; None if unknown.
        dev: the development set.
        tests: the test sets, by their names.
        moses, build, model, prune, annotate, ladder, neighbours, search: the sections; None for a missing section.
    """

    path: str
    name: str = setting(ConfigTable.text)
    output: str
    seed: int = setting(ConfigTable.integer, 1, least=1)
    samples: int = setting(ConfigTable.integer, 1000, least=2)
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
        """The measures of the table that the experiment itself needs."""
        measures: set[Measure[Any]] = set()
        for method in (*self.prune.methods, *self.prune.thresholds) if self.prune else ():
            measures |= parse_method(method, None).needs
        for system in self.prune.systems() if self.prune else ():
            measures |= system.needs
        if self.annotate:
            measures |= {COLUMN_MEASURES[column] for column in self.annotate.measured}
            measures |= parse_method(self.annotate.method, None).needs if min(self.annotate.sizes) < 1 else set()
        return frozenset(measures)

    @property
    def all_needs(self) -> frozenset[Measure[Any]]:
        """The measures that the experiment and the commands of its ladder need."""
        return self.needs | self.ladder.needs if self.ladder else self.needs

    @property
    def encodes(self) -> bool:
        """Whether a model of similarities is needed."""
        return SIMILARITIES in self.all_needs or self.neighbours is not None

    @property
    def counts_uses(self) -> bool:
        """Whether leave-one-out forced decoding of the bitext is needed."""
        return not self.all_needs.isdisjoint({USES, FORCED})

    def quick(self) -> ExperimentConfig:
        """Return a reduced experiment that takes a few minutes, to test the configuration."""
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
