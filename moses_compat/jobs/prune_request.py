"""The request of a pruning run: the entries to remove, the criteria, and the input and output files.

A request validates itself: combinations of options that cannot be used raise `UnusableRequest`, for the library and the
command line alike.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moses_compat.files.finished_work import FinishedWork, described, settings_before, settings_of
from moses_compat.files.packing import packing_for
from moses_compat.files.paths import STANDARD, same_file, scratch_place
from moses_compat.files.streams import Input
from moses_compat.lines.counts import CountUse
from moses_compat.measures.similarities import EncoderRequest, parts_folder
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import sorted_name
from phrasetool.phrase_encoder.model import CPU
from phrasetool.pruning.decision import is_brae_rule, protects_frequent
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
from phrasetool.pruning.protection import KeepBest, KeepBestWithinBudget, frequent_count
from phrasetool.pruning.thresholds import Threshold
from phrasetool.translator.settings import READINGS
from phrasetool.watch import SILENT, Watch

# The best method by measurement, if the weights of a model are known.
BEST = "composition+semantic"
BEST_WITH_USES = "composition+semantic+usage"
SEMANTIC = "semantic"
DEFAULT_MODEL = "phrasetool-model"
# Fields that do not affect stored results; the scan has its own settings.
_NOT_SETTINGS = ("table", "output", "reordering_table", "scores", "sorted_table", "resume", "work", "scan")
# Files for which stored results depend only on whether they are written.
_WRITTEN = ("reordering_out", "rejected", "reasons", "stats")
_TO_BE_WRITTEN = "not there yet"
# Names of fields in messages, where they differ from the names of the library's arguments.
_ARGUMENTS = {"ini": "moses_ini", "corpora": "corpus", "model_folder": "model"}


class UnusableRequest(ValueError):
    """Options that cannot be used together, or that lack another one.

    Args:
        message: names options as the fields of the request, in braces: `{scores} and {columns} ...`.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(self.worded(_ARGUMENTS))

    def worded(self, names: Mapping[str, str]) -> str:
        """Return the message with other names of the options.

        Args:
            names: field of the request -> name of the option; a field that is missing keeps its name.
        """
        return worded(self.message, names)


def worded(message: str, names: Mapping[str, str]) -> str:
    """Return a message with names for the fields in braces; a field without a name keeps its own."""
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[1]), message)


@dataclass(frozen=True)
class PruneRequest:
    """A pruning run.

    Attributes:
        table: the phrase table, compressed or not; `-` for standard input.
        threshold, target_size, max_bleu_loss, sweep: exactly one of them, unless the criteria of `method` have
            thresholds: remove entries that score less; keep this share of the entries; lose no more BLEU than this on
            the development set; or count the sizes at these thresholds and write nothing.
        non_inferior: whether the 95 % interval on the development set must exclude a larger loss than `max_bleu_loss`.
        method: names of criteria, see `parse_method`; None for the best that the other options allow.
        combine: how several criteria are combined.
        seed: random seed of the random criterion.
        keep_top, protect: see `KeepBest`; None for the default of the cut.
        protect_frequent: count above which mutual translations are protected (see `KeepBest`), or `none`; None for the
            default: 100 where similarity alone decides, by a threshold, else `none`.
        model_folder: folder of the model that similarities come from.
        more_models: folders of a translator of the other direction, if the model is a translator, and of models that
            other criteria of the method need.
        reading: how translators score pairs, see `phrasetool.translator.decoding`.
        encoder: a sentence encoder that similarities come from, in place of a model.
        scores: a file of similarities: read if it exists, else written.
        columns, scale: positions of two score columns that hold similarities, from 0, and their scale.
        ini: the moses.ini of the table.
        corpora: the two sides of the bitext that the table was made from.
        forced_pairs: pairs of leave-one-out forced decoding.
        output: file of the pruned table; `-` for standard output.
        reordering_table, reordering_out: a reordering table to prune in step, and its output file.
        rejected, reasons, stats: files for removed lines, for the reasons, and for counts.
        dev: the two sides of the development set.
        search: options of the decoder, see `SearchOptions`.
        by_criterion: whether to count, for several criteria, which of them alone would have removed an entry.
        ask_all: where similarity alone decides, whether to also score protected entries, so that all entries below the
            threshold are counted.
        scan: settings for reading tables, with the number of threads.
        sort: whether to sort the table first, into a copy next to `output`.
        sorted_table: path of that copy, once it exists.
        resume: whether to keep finished work next to the output, and to continue an interrupted run.
        work: folder for temporary files; None for the folder of `output`.
        device: the device that encodes phrases, see `BilingualModel.scorer`.

    Raises:
        UnusableRequest: options conflict, or one that the method needs is missing.
    """

    table: str
    threshold: Threshold | None = None
    target_size: float | None = None
    max_bleu_loss: float | None = None
    non_inferior: bool = False
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
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False
    sorted_table: str | None = None
    more_models: tuple[str, ...] = ()
    reading: str = "normalised"
    resume: bool = False
    work: str | None = None
    device: str = CPU
    protect_frequent: int | str | None = None

    def __post_init__(self) -> None:
        try:
            method = self.parsed_method
        except ValueError as error:
            raise UnusableRequest(f"{{method}}: {error}") from error
        self._check_sources(method)
        self._check_cut(method)
        self._check_files(method)

    def _check_sources(self, method: Method) -> None:
        """Check that each input that the method needs is given exactly once."""
        criteria_with_models = sorted({"parallel", "syntax"} & set(method.names))
        models = len(self.folders)
        if models > 2 + len(criteria_with_models):
            others = "".join(f", and one for the method {name}" for name in criteria_with_models)
            raise UnusableRequest(
                f"{{model_folder}} names one model, or two translators, one per direction{others}, not {models} models"
            )
        if method.needs & {MODEL_SCORES, LOSSES} and self.ini is None:
            raise UnusableRequest(f"{{method}} {method.name} needs the weights of a model: give {{ini}}")
        if SIGNIFICANCE in method.needs and self.corpora is None:
            raise UnusableRequest(
                f"{{method}} {method.name} needs the bitext that the table was made from: give {{corpora}} SOURCE "
                "TARGET"
            )
        if USES in method.needs and self.forced_pairs is None:
            raise UnusableRequest(
                f"{{method}} {method.name} needs the pairs that forced decoding of the bitext used: give "
                "{forced_pairs} PAIRS"
            )
        if self.scores and self.columns:
            raise UnusableRequest("{scores} and {columns} are two sources of similarities; give one")
        if self.encoder and self.columns:
            raise UnusableRequest("{encoder} and {columns} are two sources of similarities; give one")
        if self.reading not in READINGS:
            raise UnusableRequest(f"{{reading}} is {self.reading!r}; expected one of {', '.join(READINGS)}")
        if self.columns and min(self.columns) < 0:
            raise UnusableRequest(f"{{columns}} are positions of scores, counted from 0, not {self.columns}")

    def _check_cut(self, method: Method) -> None:
        """Check that exactly one option determines how much is removed, with a valid value for the method."""
        cuts = {
            "{threshold}": self.threshold,
            "{target_size}": self.target_size,
            "{max_bleu_loss}": self.max_bleu_loss,
            "{sweep}": self.sweep,
        }
        names = [name for name, value in cuts.items() if value is not None]
        if method.thresholds and names:
            raise UnusableRequest(
                "the criteria of {method} have their own thresholds; leave out {threshold}, {target_size}, "
                "{max_bleu_loss} and {sweep}"
            )
        if not method.thresholds and len(names) != 1:
            several = ""
            if names:
                several = f", not both {' and '.join(names)}" if len(names) == 2 else f", not {', '.join(names)}"
            raise UnusableRequest(
                f"give one of {{threshold}}, {{target_size}}, {{max_bleu_loss}} and {{sweep}}{several}"
            )
        if self.threshold is not None and self.threshold.named and method.names != ("significance",):
            raise UnusableRequest(f"{{threshold}} {self.threshold.text} goes with {{method}} significance alone")
        for threshold in (self.threshold, *map(Threshold.of, self.sweep or ())):
            try:
                method.check_threshold(threshold)
            except ValueError as error:
                name = "{method}" if method.thresholds else "{threshold}" if self.sweep is None else "{sweep}"
                raise UnusableRequest(f"{name}: {error}") from error
        if any(number is not None and math.isnan(number) for number in (self.target_size, self.max_bleu_loss)):
            raise UnusableRequest("a size or a loss must be a number, not NaN")
        if self.target_size is not None and not 0 < self.target_size <= 1:
            raise UnusableRequest(
                f"{{target_size}} is a share of the entries above 0, at most 1, not {self.target_size}"
            )
        try:
            _ = self.frequent
        except ValueError as error:
            raise UnusableRequest(f"{{protect_frequent}}: {error}") from error
        if self.max_bleu_loss is None:
            # Without a maximum loss, a development set would be ignored.
            if self.dev or self.search or self.non_inferior:
                raise UnusableRequest("{dev}, {non_inferior} and the options of the search go with {max_bleu_loss}")
        elif self.ini is None or self.dev is None:
            raise UnusableRequest("{max_bleu_loss} translates: give {dev} SOURCE REFERENCE and {ini} INI")
        elif self.non_inferior and not self.max_bleu_loss:
            raise UnusableRequest("{non_inferior} needs a margin: a {max_bleu_loss} above 0, such as 0.3")
        elif STANDARD in (self.table, *self.dev):
            raise UnusableRequest("{max_bleu_loss} reads its files more than once, so none can be standard input")

    def _check_files(self, method: Method) -> None:
        """Check that files can be read as often as needed, and that all of them are used."""
        if self.table == STANDARD and self.target_size is not None:
            raise UnusableRequest("{target_size} reads the table twice, so it cannot come from standard input")
        if self.sweep is not None and (any(self.outputs) or self.reordering_table or self.output != STANDARD):
            raise UnusableRequest(
                "{sweep} writes no table; leave out {output}, {rejected}, {reasons}, {stats} and the options of the "
                "reordering table"
            )
        if self.reasons and (packing := packing_for(self.reasons)):
            raise UnusableRequest(
                f"{{reasons}} writes Parquet, which is already compressed; leave out {packing.ending}"
            )
        if (self.reordering_table is None) != (self.reordering_out is None):
            raise UnusableRequest("give both {reordering_table} and {reordering_out}, or neither")
        if self.reordering_table == self.table == STANDARD:
            raise UnusableRequest("the phrase table and the reordering table cannot both come from standard input")
        if self.streams:
            return
        if self.table == STANDARD:
            raise UnusableRequest(
                f"{{method}} {method.name} reads the table twice, so it cannot come from standard input"
            )
        if self.scores and not os.path.exists(self.scores) and method.uses_similarities:
            raise UnusableRequest(
                f"{self.scores}: no such file; {{method}} {method.name} needs existing similarities; first write them "
                "with {threshold} 0, without {method} and {ini}"
            )

    def scan_for(self, watch: Watch = SILENT) -> TableScan:
        """Return the settings for reading the table, with warnings sent to `watch`."""
        return replace(self.scan, warn=watch.warn)

    @property
    def read_path(self) -> str:
        """The file that entries are read from."""
        return self.sorted_table or self.table

    @property
    def work_folder(self) -> str | None:
        """The folder for temporary files, by default that of the output; None for the system's."""
        return self.work or scratch_place(self.output)

    @property
    def read_name(self) -> str | None:
        """The name of `read_path` in messages; None for the path itself."""
        return sorted_name(self.table) if self.sorted_table else None

    def open_table(self) -> Input:
        """Open the table.

        Raises:
            DataError: it cannot be opened.
        """
        return Input(self.read_path, self.read_name)

    def without_effect(self) -> dict[str, str]:
        """Return the fields without effect and what each is for, with fields in braces; `on_error` is the scan's."""
        method, unused = self.parsed_method, {}
        if "random" not in method.names:
            unused["seed"] = "the method random"
        if len(method.names) == 1:
            unused["combine"] = f"several criteria; {{method}} {method.name} is one"
        # The bitext is also searched for the development set.
        if "significance" not in method.names and self.max_bleu_loss is None:
            unused["corpora"] = f"the method significance, not for {method.name}"
        if "usage" not in method.names:
            unused["forced_pairs"] = f"the method usage, not for {method.name}"
        if not method.uses_similarities:
            sources = ("model_folder", "encoder", "scores", "columns")
            unused |= dict.fromkeys(sources, f"methods with similarities, not for {method.name}")
        if self.columns is None:
            unused["scale"] = "similarities in columns; name them with {columns}"
        if self.max_bleu_loss is not None and self.scan.on_error != "fail":
            unused["on_error"] = "thresholds and sizes; the decoder of {max_bleu_loss} reads no malformed lines"
        return unused

    @property
    def parsed_method(self) -> Method:
        """The requested method, or the best that the inputs allow: similarity alone without a model's weights.

        Raises:
            ValueError: the method is unknown.
        """
        best = SEMANTIC
        if self.ini is not None:
            best = BEST_WITH_USES if self.forced_pairs else BEST
        return parse_method(self.method or best, self.combine, self.seed)

    def keeping(self, watch: Watch) -> contextlib.AbstractContextManager[FinishedWork | None]:
        """Store finished results until the whole run is complete, if `resume` is set.

        Raises:
            PhraseToolError: results cannot be stored, or those that exist belong to another run.
        """
        if not self.resume:
            return contextlib.nullcontext()
        written = {name.replace("_", " "): str(getattr(self, name) is not None) for name in _WRITTEN}
        settings = settings_of(self, (*_NOT_SETTINGS, *_WRITTEN)) | self.scan.settings | written
        if self.scores:
            # A run that was interrupted at its very end may have written the file of scores itself.
            unfinished = settings_before(self.output).get("scores") == _TO_BE_WRITTEN
            exists = os.path.exists(self.scores) and not unfinished
            settings["scores"] = described(self.scores) if exists else _TO_BE_WRITTEN
        return FinishedWork(self.output, self.read_path, settings, watch.say)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of all models."""
        return (self.model_folder, *self.more_models)

    @property
    def part_folders(self) -> list[str | None]:
        """Folders of the finished scores of each model, kept until the run is complete."""
        return [parts_folder(self.scores or self.output, number) for number in range(1, len(self.folders) + 1)]

    def dry(self) -> PruneRequest:
        """Return the same request without any output: removed entries are counted, and nothing is written."""
        scores = self.scores if self.scores and os.path.exists(self.scores) else None
        nowhere = os.devnull if self.reordering_out else None
        return replace(
            self,
            output=self.output if self.sweep is not None else os.devnull,
            work=self.work_folder,
            reordering_out=nowhere,
            rejected=None,
            reasons=None,
            stats=None,
            scores=scores,
            resume=False,
        )

    @property
    def streams(self) -> bool:
        """Whether the table can be pruned in one pass: by similarity alone, and not by a loss of BLEU."""
        return is_brae_rule(self.parsed_method) and self.max_bleu_loss is None

    @property
    def by_source(self) -> bool:
        """Whether the entries of a source must be adjacent: for protection, the method, or the decoder."""
        protects = self.keep_top != 0 and self.protect != "none"
        return protects or self.parsed_method.by_source or self.max_bleu_loss is not None

    @property
    def frequent(self) -> int | None:
        """The count above which mutual translations are protected; None if none is.

        Raises:
            ValueError: `protect_frequent` is neither a count nor `none`.
        """
        method = self.parsed_method
        at_threshold = self.threshold is not None or self.sweep is not None or bool(method.thresholds)
        return frequent_count(self.protect_frequent, protects_frequent(method, at_threshold))

    @property
    def count_use(self) -> CountUse | None:
        """The feature that needs a joint count of each entry: the method, or requested protection; None for none."""
        method = self.parsed_method
        if COUNTS in method.needs:
            return CountUse(f"the method {method.name}", remedy="prune without counts")
        if self.protect_frequent is not None and self.frequent is not None:
            return CountUse("the protection of frequent entries", remedy="protect by no count")
        return None

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures that the method and the protection need."""
        method = self.parsed_method
        return method.needs if self.frequent is None else method.needs | {OCCURRENCES}

    @property
    def best(self) -> KeepBest:
        """The protection rule at a threshold: the requested values, by default those of BRAE."""
        return KeepBest(10 if self.keep_top is None else self.keep_top, self.protect or "all", self.frequent)

    @property
    def skips_malformed(self) -> bool:
        """Whether malformed lines are left out of the table."""
        return self.scan.on_error == "skip"

    @property
    def budget(self) -> KeepBestWithinBudget:
        """The protection rule for a table of a given size, before the entries have been counted."""
        return KeepBestWithinBudget(self.protect or "words", self.frequent, self.skips_malformed)

    @property
    def requested_for_size(self) -> KeepBest | None:
        """The protection rule for a table of a given size if it is requested; None if it depends on the size."""
        if self.keep_top is None and self.protect != "none":
            return None
        # Without protected sources, the number of entries has no effect.
        keep_top = KeepBestWithinBudget.MOST if self.keep_top is None else self.keep_top
        return KeepBest(keep_top, self.protect or "words", self.frequent)

    def rule_for_size(self, measures: TableMeasures) -> Callable[[int], KeepBest]:
        """Return a function from a number of entries to the protection rule: as requested, or as much as fits."""
        if requested := self.requested_for_size:
            return lambda entries: requested
        return self.budget.with_table(measures).best

    def checked_files(self) -> tuple[list[str | None], list[str | None]]:
        """Return the files that no output may replace, and all outputs; see `refuse_overwriting`.

        Raises:
            DataError: the ini cannot be read.
        """
        saved = self.scores is not None and os.path.exists(self.scores)
        inputs = [self.table, self.ini, self.reordering_table, self.forced_pairs, *(self.corpora or ())]
        inputs += [*(self.dev or ()), self.scores if saved else None, *(self._files_of_ini() if self.ini else ())]
        output = self.output if self.sweep is None else None
        return inputs, [output, *self.outputs, None if saved else self.scores]

    def _files_of_ini(self) -> list[str]:
        """Return the files that the ini names, except the pruned tables, if it names these already."""
        from moses_compat.ini.reading import read_moses_ini
        from moses_compat.ini.tables import phrase_tables

        assert self.ini is not None
        ini = read_moses_ini(self.ini)
        replaced = {feature.name: self.output for feature in phrase_tables(ini)}
        replaced |= {one.name: self.reordering_out or "" for one in ini.features if one.kind == "LexicalReordering"}
        kept = []
        for feature in ini.features:
            if path := feature.arguments.get("path"):
                path = ini.resolve(path)
                # Moses adds the ending automatically.
                kept += [one for one in (path, f"{path}.gz") if not same_file(one, replaced.get(feature.name, ""))]
        return kept

    @property
    def outputs(self) -> list[str | None]:
        """Output files in addition to the table."""
        return [self.reordering_out, self.rejected, self.reasons, self.stats]
