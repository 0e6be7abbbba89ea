"""What an experiment is asked for, section by section."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moses_compat.experiments.config_table import ConfigTable, asked
from moses_compat.experiments.systems import PruningGrid
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.pruning.measures import FORCED, LOSSES, SIGNIFICANCE, SIMILARITIES, SMOOTHED, USES, Measure
from phrasetool.pruning.methods import parse_method

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
