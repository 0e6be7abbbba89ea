"""What a pruning run is asked for: which entries go, what is known of them, where everything is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moses_compat.files.finished_work import FinishedWork, described, settings_before, settings_of
from moses_compat.files.names import scratch_place
from moses_compat.files.streams import Input
from moses_compat.lines.counts import CountUse
from moses_compat.measures.encoder_request import EncoderRequest
from moses_compat.measures.neural.part_folders import parts_beside
from moses_compat.tables.blocks import BLOCK_BYTES, LONGEST_TABLE_LINE, TableScan
from moses_compat.tables.sorted_copy import sorted_name
from phrasetool.models.bilingual import CPU
from phrasetool.pipeline import Runner
from phrasetool.pruning.decision import is_paper_s, protects_frequent
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    MODEL_SCORES,
    OCCURRENCES,
    SIGNIFICANCE,
    USES,
    Measure,
    TableMeasures,
)
from phrasetool.pruning.methods import Method, parse_method
from phrasetool.pruning.protection import AffordableBest, KeepBest, frequent_count
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import NOBODY, Watch

# What is best by measurement, where the weights of a model are given.
BEST = "composition+semantic"
BEST_WITH_USES = "composition+semantic+usage"
SEMANTIC = "semantic"
DEFAULT_MODEL = "phrasetool-model"
# Fields that nothing that is kept depends on.
_NO_MATTER = (
    "table", "output", "reordering_table", "threads", "scores", "sorted_table", "resume", "finished", "work",
    "runner",
)  # fmt: skip
# Of these files, it matters whether they are wanted.
_WRITTEN = ("reordering_out", "rejected", "reasons", "stats")
_TO_BE_WRITTEN = "not there yet"


@dataclass(frozen=True)
class PruneRequest:
    """What is wanted.

    Attributes:
        table: the phrase table, text or gzip; `-` for standard input.
        threshold, target_size, max_bleu_loss, sweep: one of them says what goes: what is worth less; all but this share
            of the entries; as much as loses no more BLEU than this on the development set; or nothing, but sizes at
            these thresholds are wanted.
        method: names of criteria, see `parse_method`; the best that the rest allows if None.
        combine: how several criteria become one.
        seed: of the random criterion.
        keep_top, protect: see `KeepBest`; None for what suits the cut.
        protect_frequent: count above which mutual translations are protected (see `KeepBest`), or `none`; None for what
            suits the cut: 100 where similarity alone decides, by a threshold, else `none`.
        model_folder: of the model that similarities come from.
        more_models: of a translator of the other direction, if the model is a translator; and of models that other
            criteria of the method ask.
        reading: how translators score pairs, see `phrasetool.translator.likelihood`.
        encoder: a sentence encoder that similarities come from, in place of a model.
        scores: a file of similarities: used if it is there, else made.
        columns, scale: positions of two score columns that hold similarities, from 0, and how they were written.
        ini: the moses.ini of the table.
        corpora: the two sides of the bitext that the table was made from.
        forced_pairs: pairs of leave-one-out forced decoding.
        output: of the table; `-` for standard output.
        reordering_table, reordering_out: a table that is kept in step, and where it goes.
        rejected, reasons, stats: files for lines that go, for why, and for counts.
        dev: the two sides of the development set.
        search: options of the decoder, see `SearchOptions`.
        by_criterion: where several criteria decide, whether to count which of them alone would have removed what goes.
        ask_all: where meaning alone decides, whether to ask about entries that stay whatever it says, too, so that all
            below the threshold are counted.
        threads, block_bytes, on_error, allow_empty, force, max_line: see `TableScan`.
        sort: whether to sort the table first, into a copy beside `output`.
        sorted_table: that copy, where it was made.
        resume: whether to keep what is finished beside the output, and to go on from what is there.
        finished: that, while it is there.
        work: the folder of what is measured, while it is needed; None for the place of `output`.
        runner: has blocks worked on, where the table streams; threads if None.
        device: where phrases are encoded, see `BilingualModel.scorer`.
    """

    table: str
    threshold: Threshold | None = None
    target_size: float | None = None
    max_bleu_loss: float | None = None
    sweep: Sequence[float] | None = None
    method: str | None = None
    combine: str | None = None
    seed: int = 1
    keep_top: int | None = None
    protect: str | None = None
    model_folder: str = DEFAULT_MODEL
    encoder: EncoderRequest | None = None
    scores: str | None = None
    columns: tuple[int, int] | None = None
    scale: str = "exp"
    ini: str | None = None
    corpora: tuple[str, str] | None = None
    forced_pairs: str | None = None
    output: str = "-"
    reordering_table: str | None = None
    reordering_out: str | None = None
    rejected: str | None = None
    reasons: str | None = None
    stats: str | None = None
    dev: tuple[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)
    by_criterion: bool = True
    ask_all: bool = True
    threads: int = 1
    block_bytes: int = BLOCK_BYTES
    on_error: str = "fail"
    allow_empty: bool = False
    force: bool = False
    sort: bool = False
    sorted_table: str | None = None
    more_models: tuple[str, ...] = ()
    reading: str = "normalised"
    resume: bool = False
    finished: FinishedWork | None = None
    max_line: int = LONGEST_TABLE_LINE
    work: str | None = None
    runner: Runner | None = None
    device: str = CPU
    protect_frequent: int | str | None = None

    def scan(self, watch: Watch = NOBODY) -> TableScan:
        """How the table is read; warnings go to `watch`."""
        return TableScan(
            self.on_error, self.threads, self.block_bytes,
            allow_empty=self.allow_empty, force=self.force, warn=watch.warn, finished=self.finished,
            max_line=self.max_line, runner=self.runner,
        )  # fmt: skip

    @property
    def read_path(self) -> str:
        """The file that entries are read from."""
        return self.sorted_table or self.table

    @property
    def work_folder(self) -> str | None:
        """The folder of what is measured: where there has to be room for the output; None for the system's."""
        return self.work or scratch_place(self.output)

    @property
    def read_name(self) -> str | None:
        """What messages call it; None for its path."""
        return sorted_name(self.table) if self.sorted_table else None

    def open_table(self) -> Input:
        """The table, at its beginning.

        Raises:
            DataError: it cannot be opened.
        """
        return Input(self.read_path, self.read_name)

    def parsed_method(self) -> Method:
        """The method, by its name or the best that is possible: the paper's without a model's weights.

        Raises:
            ValueError: there is no such method.
        """
        best = SEMANTIC
        if self.ini is not None:
            best = BEST_WITH_USES if self.forced_pairs else BEST
        return parse_method(self.method or best, self.combine, self.seed)

    def lacking(self, method: Method) -> str | None:
        """What the method needs that was not given: `weights`, `corpora` or `forced_pairs`; None if all is there."""
        if method.needs & {MODEL_SCORES, LOSSES} and self.ini is None:
            return "weights"
        if SIGNIFICANCE in method.needs and self.corpora is None:
            return "corpora"
        if USES in method.needs and self.forced_pairs is None:
            return "forced_pairs"
        return None

    def keeping(self, watch: Watch) -> contextlib.AbstractContextManager[FinishedWork | None]:
        """What is finished, kept until everything is.

        Raises:
            PhraseToolError: it cannot be kept, or what is there is of another run.
        """
        if not self.resume:
            return contextlib.nullcontext()
        written = {name.replace("_", " "): str(getattr(self, name) is not None) for name in _WRITTEN}
        settings = settings_of(self, (*_NO_MATTER, *_WRITTEN)) | written
        if self.scores:
            # A run that was stopped at its very end may have written the file that it did not find.
            begun = settings_before(self.output).get("scores") == _TO_BE_WRITTEN
            there = os.path.exists(self.scores) and not begun
            settings["scores"] = described(self.scores) if there else _TO_BE_WRITTEN
        return FinishedWork(self.output, self.read_path, settings, watch.say)

    def check_thresholds(self, method: Method) -> None:
        """Refuse thresholds that the method can never reach.

        Raises:
            ValueError: naming the first one.
        """
        for threshold in (self.threshold, *map(Threshold.of, self.sweep or ())):
            method.check_threshold(threshold)

    @property
    def folders(self) -> tuple[str, ...]:
        """Of all models."""
        return (self.model_folder, *self.more_models)

    @property
    def part_folders(self) -> list[str | None]:
        """Where the finished scores of each model are kept until everything is done."""
        return [parts_beside(self.scores or self.output, number) for number in range(1, len(self.folders) + 1)]

    def dry(self) -> PruneRequest:
        """The same without any file: what goes is counted, and nothing is written."""
        scores = self.scores if self.scores and os.path.exists(self.scores) else None
        nowhere = os.devnull if self.reordering_out else None
        return replace(
            self,
            output=os.devnull,
            work=self.work_folder,
            reordering_out=nowhere,
            rejected=None,
            reasons=None,
            stats=None,
            scores=scores,
            resume=False,
        )

    def streams(self, method: Method) -> bool:
        """Whether the table can be pruned in one pass: by meaning alone, and not by what a loss of BLEU allows."""
        return is_paper_s(method) and self.max_bleu_loss is None

    def by_source(self, method: Method) -> bool:
        """Whether the entries of a source have to stand together: for what stays, the method, or the decoder."""
        protects = self.keep_top != 0 and self.protect != "none"
        return protects or method.by_source or self.max_bleu_loss is not None

    @property
    def frequent(self) -> int | None:
        """The count above which mutual translations are protected; None if none is.

        Raises:
            ValueError: `protect_frequent` is neither a count nor `none`.
        """
        method = self.parsed_method()
        at_threshold = self.threshold is not None or self.sweep is not None or bool(method.thresholds)
        return frequent_count(self.protect_frequent, protects_frequent(method, at_threshold))

    def count_use(self, method: Method) -> CountUse | None:
        """What needs a joint count of each entry: the method, or protection that was asked for; None if nothing."""
        if COUNTS in method.needs:
            return CountUse(f"the method {method.name}", remedy="prune without counts")
        if self.protect_frequent is not None and self.frequent is not None:
            return CountUse("the protection of frequent entries", remedy="protect by no count")
        return None

    def needs(self, method: Method) -> frozenset[Measure[Any]]:
        """What has to be measured: for the method, and for what is protected."""
        return method.needs if self.frequent is None else method.needs | {OCCURRENCES}

    @property
    def best(self) -> KeepBest:
        """What stays in any case: the paper's rule, but for what was asked for."""
        return KeepBest(10 if self.keep_top is None else self.keep_top, self.protect or "all", self.frequent)

    def rule_for_size(self, measures: TableMeasures) -> Callable[[int], KeepBest]:
        """What stays in any case where so many entries stay: as asked for, or what there is room for."""
        protect = self.protect or "words"
        if self.keep_top is not None:
            wanted = KeepBest(self.keep_top, protect, self.frequent)
            return lambda entries: wanted
        return AffordableBest(measures, protect, self.frequent).best

    @property
    def outputs(self) -> list[str | None]:
        """What is written besides the table."""
        return [self.reordering_out, self.rejected, self.reasons, self.stats]
