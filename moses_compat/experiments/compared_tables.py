"""Tables 1 and 2 of an experiment: phrase tables pruned by many methods, and tables with more columns, tuned again.

Only results are written: a pruned table is a mask over the entries in memory, and appended columns have the values that
the decoder would read from an annotated table.  The file name of a finished run is a digest of everything that its
translations depend on (entries, tables, weights, texts, search), so each run is executed once.
"""

from __future__ import annotations

import functools
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from moses_compat.engine.model import LoadedModel, MosesModel
from moses_compat.experiments.build import method_options
from moses_compat.experiments.build_commands import RunStore, digest_of, shown_path
from moses_compat.experiments.phrase_frames import histogram_frame, surprise_frame, surprising_entries
from moses_compat.experiments.results import FinishedRun, Scoreboard, TunedRuns, annotation_frame, pruning_frames
from moses_compat.experiments.session import RunContext, development_check
from moses_compat.experiments.settings import (
    AFFORDABLE,
    DEV,
    FULL,
    RANDOM,
    AnnotationSettings,
    PruningGrid,
    PruningSystem,
    labels_of,
)
from moses_compat.files.finished_work import FinishedWork
from moses_compat.files.streams import Input
from moses_compat.lines.insert_scores import LEAST_LOG, scale_similarities
from moses_compat.measures.pair_counts import SMALLEST_SMOOTHED
from moses_compat.measures.saved_scores import SavedScores
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import PhraseToolError
from phrasetool.phrases import ByteArray, FloatArray, Int64Array, Mask
from phrasetool.pruning.decision import Ranking
from phrasetool.pruning.measures import FORCED, LOSSES, SCORED, SIGNIFICANCE, SIMILARITIES, SMOOTHED, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBestWithinBudget
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.smt.extraction.smoothing import SMALLEST_PROBABILITY
from phrasetool.smt.tuning.candidates import NBest, Weights
from phrasetool.smt.tuning.loop import NBestDecoder, TuningRun, tune
from phrasetool.text_splitting import single_spaced

# Histograms and surprises describe the tables nearest to this size.
_DETAILED_SIZE = 0.1

_LOSS_CAP = np.float32(3.0)
_LARGEST_SIGNIFICANCE = np.float32(20.0)
N_BEST = 100


def pruned_table_frames(context: RunContext, grid: PruningGrid) -> dict[str, pd.DataFrame]:
    """Return `pruning` (Table 1), `contests`, and for tables of about a tenth `histogram` and `surprises`.

    Args:
        context: the decoder and the measures.
        grid: the tables to compare; those whose size is not attainable are left out.

    Raises:
        PhraseToolError: the development set is not plausible, see `DevelopmentCheck`.
    """
    session, store = context.session, context.store
    labels = labels_of([PruningSystem(), *grid.systems()])
    skipped: dict[str, str] = {}
    planned = list(plan_runs(labels, context.measures, context.identity, context.model.weights, skipped.__setitem__))
    if skipped:
        label, reason = next(iter(skipped.items()))
        more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        session.watch.say(f"no table that small: {label}{more} left out ({reason})")
    missing = {run.key for run in planned if store.read(run.key) is None}
    session.watch.say(f"{len(planned)} tables to compare, {len(missing)} to translate with")
    finished, took = [], 0.0
    with session.watch.items("translate", len(missing) * session.texts.sentences, "sentence") as tick:
        for run in planned:
            record = decode_run(context.load, run, store, lambda: tick(1))
            took += record["seconds"]
            if run.system.rule == FULL:
                _check_bleu(context, record["translations"][DEV])
            line = prune_command(context, run.system)
            finished.append(FinishedRun(run.system, run.label, run.entries, run.of, record["translations"], line))
    session.seconds["all pruning runs, when they were done"] = round(took, 3)
    board = Scoreboard(session.texts.references, session.config.samples)
    table, contests = pruning_frames(finished, board)
    return {"pruning": table, "contests": contests, **_detail_frames(context, planned)}


def _check_bleu(context: RunContext, translations: Sequence[str]) -> None:
    """Reject a development set that the full table cannot translate, before other tables translate it."""
    symbols = Symbols()
    hypotheses = symbols.read_lines("".join(f"{line}\n" for line in translations).encode())
    references = symbols.read_lines(context.session.texts.targets[DEV])
    measure = functools.partial(bleu_statistics, np.arange(len(hypotheses)), hypotheses)
    development_check(context.session, context.model).bleu(measure, [references])


def prune_command(context: RunContext, system: PruningSystem) -> str:
    """Return the command line that writes a table; an empty text for the full table."""
    if system.rule == FULL:
        return ""
    method, plan = system.parsed(), context.plan
    options = ["--target-size" if system.rule == "size" else "--threshold", f"{system.wanted:g}"]
    options = [] if method.thresholds else options
    options += ["--protect", system.protect, "--keep-top", str(system.keep_top), "--method", system.method]
    if system.combine:
        options += ["--combine", system.combine]
    if system.protect_frequent is not None:
        options += ["--protect-frequent", str(system.protect_frequent)]
    if system.seed:
        options += ["--seed", str(system.seed)]
    if SIMILARITIES in method.needs:
        options += ["--similarities", plan.scores[plan.dimension]]
    options += method_options(method, plan.ini, context.session.config.bitext, plan.forced_pairs)
    return shlex.join(["phrasetool", "prune", *map(shown_path, [context.model.table, *options]), "-o", "pruned.gz"])


def _detail_frames(context: RunContext, planned: Sequence[PlannedRun]) -> dict[str, pd.DataFrame]:
    """Return frames about the entries of one table per method, with about a tenth of the entries."""
    measures = context.measures
    chosen: dict[str, PlannedRun] = {}
    for run in planned:
        system = run.system
        if system.rule != "size" or system.method == RANDOM:
            continue
        previous = chosen.get(system.kind)
        if previous is None or abs(system.wanted - _DETAILED_SIZE) < abs(previous.system.wanted - _DETAILED_SIZE):
            chosen[system.kind] = run
    frames: dict[str, pd.DataFrame] = {}
    masks = {kind: run.keep for kind, run in chosen.items()}
    if SIMILARITIES in measures and chosen:
        frames["histogram"] = histogram_frame(measures, {chosen[kind].label: mask for kind, mask in masks.items()})
    groups = np.repeat(np.arange(len(measures.group_offsets) - 1), np.diff(measures.group_offsets))
    scores = {kind: run.system.parsed().scores(measures) for kind, run in chosen.items()}
    surprising = surprising_entries(scores, masks, groups)
    if surprising:
        frames["surprises"] = surprise_frame(measures, surprising, lambda rows: read_entries(context.model.table, rows))
    return frames


class TableDecisions:
    """Selection of the entries that systems keep: the same entries that `phrasetool prune` would write.

    Args:
        measures: measures of the N entries of the table.
    """

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._affordable = functools.cache(functools.partial(KeepBestWithinBudget.of, measures))
        self._last: tuple[Method, Ranking] | None = None

    def with_keep_top(self, system: PruningSystem) -> PruningSystem:
        """Return the system with `keep_top` set to a number, if it is `AFFORDABLE`."""
        if system.keep_top != AFFORDABLE:
            return system
        allowed = allowed_entries(system.wanted, len(self._measures))
        return replace(system, keep_top=self._affordable(system.protect, system.frequent).best(allowed).k)

    def keep(self, system: PruningSystem) -> Mask:
        """Return which entries a system keeps, bool, shape (N,).

        Args:
            system: a result of `with_keep_top`.  Systems of one method should be passed one after another, so that the
                entries are ranked only once.

        Raises:
            TooSmallError: the protected entries alone are more than the target size allows.
        """
        if system.rule == FULL:
            return np.ones(len(self._measures), np.bool_)
        rule = system.pruning_rule()
        if self._last is None or self._last[0] != rule.method:
            self._last = rule.method, rule.ranking(self._measures)
        return rule.decide(self._last[1]).keep


@dataclass(frozen=True)
class PlannedRun:
    """A table to decode with.

    Attributes:
        system: how the table is pruned.
        label: name of the system.
        entries: number of entries that are kept.
        packed: packed bits of the kept entries.
        of: N, the number of entries of the full table.
        key: key of the run in the store.
    """

    system: PruningSystem
    label: str
    entries: int
    packed: ByteArray
    of: int
    key: str

    @property
    def keep(self) -> Mask:
        """Which entries are kept, bool, shape (N,)."""
        return np.unpackbits(self.packed, count=self.of).astype(np.bool_)


def plan_runs(
    labels: Mapping[PruningSystem, str],
    measures: Measures,
    identity: str,
    weights: npt.NDArray[np.float64],
    skipped: Callable[[str, str], None],
) -> Iterator[PlannedRun]:
    """Decide which entries each system keeps.

    Args:
        labels: names of the systems; systems of one method follow each other, so that entries are ranked only once.
        measures: measures of the table.
        identity: identity of the decoder, see `decoder_identity`.
        weights: weights of the decoder.
        skipped: called with the label and the reason if a target size is not attainable.
    """
    decisions = TableDecisions(measures)
    for system, label in labels.items():
        try:
            exact = decisions.with_keep_top(system)
            keep = decisions.keep(exact)
        except TooSmallError as error:
            skipped(label, str(error))
            continue
        packed = np.packbits(keep)
        key = digest_of(identity, packed.tobytes(), weights.tobytes())
        yield PlannedRun(exact, label, int(keep.sum()), packed, len(keep), key)


def decode_run(
    load: Callable[[], LoadedModel], planned: PlannedRun, store: RunStore, tick: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Translate all texts with a table and store the result, or read a stored result.

    Args:
        load: returns the loaded model; called only if there is something to translate.
        planned: the table.
        store: the store of results.
        tick: called after each sentence that is translated.
    """
    kept = store.read(planned.key)
    if kept is not None:
        return kept
    loaded = load()
    began = time.monotonic()
    keep = None if planned.entries == planned.of else planned.keep
    translations = loaded.translate(loaded.translator(keep), tick)
    record = {
        "system": planned.label, "entries": planned.entries, "of": planned.of,
        "seconds": round(time.monotonic() - began, 3), "translations": translations,
    }  # fmt: skip
    store.write(planned.key, record)
    # Read back, so that later calls return an equal record.
    return store.read(planned.key) or record


def read_entries(path: str, rows: Int64Array) -> Sequence[tuple[bytes, bytes]]:
    """Return source and target of some entries of a table.

    Args:
        path: the table.
        rows: int64, ascending, 0-based numbers of entries.
    """
    phrases: list[tuple[bytes, bytes]] = []
    with Input(path) as source:
        for raw in raw_blocks(source, whole_groups=False):
            first, last = np.searchsorted(rows, [raw.first_entry, raw.first_entry + raw.lines])
            if first < last:
                lines = raw.text.tobytes().split(b"\n")
                for row in rows[first:last].tolist():
                    fields = lines[row - raw.first_entry].split(b"|||", 2)
                    phrases.append((single_spaced(fields[0]), single_spaced(fields[1])))
    return phrases


def tuned_table_frame(context: RunContext, settings: AnnotationSettings) -> pd.DataFrame:
    """Return the frame `annotation` (Table 2).

    Args:
        context: the decoder and the measures.
        settings: the tables and columns, and how they are tuned.

    Raises:
        PhraseToolError: a size is not attainable.
    """
    session, store, measures = context.session, context.store, context.measures
    model = with_default_weights(context.model) if settings.start == "default" else context.model
    plan = TuningPlan(DEV, session.texts.targets[DEV], settings.iterations)
    sentences_per_run = settings.iterations * session.texts.sources[DEV].count(b"\n") + session.texts.sentences
    jobs = []
    for table in tables_to_tune(context, settings):
        columns = [part for part in table.columns.split("+") if part]
        similar = _with_scores(measures, context.plan.scores[table.dimension]) if "semantic" in columns else measures
        values = column_values(similar, columns, context.plan.probable and not table.dimension)
        seeds = settings.tuning_seeds
        keys = {seed: tuning_key(context.identity, model, values, table.keep, plan, seed) for seed in seeds}
        jobs.append((table, values, keys))
    missing = sum(store.read(key) is None for *_, keys in jobs for key in keys.values())
    session.watch.say(f"{len(jobs) * len(settings.tuning_seeds)} tunings, {missing} to do")
    runs, took = [], 0.0
    with session.watch.items("tune", missing * sentences_per_run, "sentence") as tick:
        for table, values, keys in jobs:
            # A default argument, because the function is called later and `values` changes in the loop.
            load_annotated = functools.cache(lambda values=values: annotated(context.load(), model, values))
            facts = {"system": table.label, "columns": table.columns, "dimension": table.dimension}
            records = [
                tuned_run(load_annotated, table.keep, plan, seed, store, key, facts, tick) for seed, key in keys.items()
            ]
            took += sum(record["seconds"] for record in records)
            translations = [record["translations"] for record in records]
            runs.append(TunedRuns(table.label, table.columns, table.dimension, translations))
    session.seconds["all tuning runs, when they were done"] = round(took, 3)
    return annotation_frame(runs, Scoreboard(session.texts.references, session.config.samples))


@dataclass(frozen=True)
class TunedTable:
    """A row of Table 2.

    Attributes:
        label: its name.
        keep: which entries it has, bool, shape (N,); all if None.
        columns: names of the appended columns, joined by `+`; empty for none.
        dimension: dimension of the model whose similarities are appended; 0 for none.
    """

    label: str
    keep: Mask | None
    columns: str = ""
    dimension: int = 0


def tables_to_tune(context: RunContext, settings: AnnotationSettings) -> Iterator[TunedTable]:
    """Yield the tables of each size, without and with columns; the largest without columns is first, the baseline."""
    several = len(settings.columns) > 1
    for index, size in enumerate(settings.sizes):
        keep = _pruned(context, settings.method, size) if size < 1 else None
        share = f"{settings.method} {100 * size:g} %" if size < 1 else ""
        yield TunedTable(share if index else f"baseline{f', {share}' if share else ''}", keep)
        for columns in settings.columns:
            models = [dimension or context.plan.dimension for dimension in settings.dimensions]
            for dimension in models if "semantic" in columns.split("+") else (0,):
                label = f"annotated n={dimension}" if dimension else "annotated"
                label += f" ({columns})" if several else ""
                yield TunedTable(f"{label}, {share}" if share else label, keep, columns, dimension)


def _pruned(context: RunContext, method: str, size: float) -> Mask:
    """Return the entries of a pruned table, bool, shape (N,)."""
    config = context.session.config
    grid = config.prune or PruningGrid()
    system = PruningSystem(method, "", "size", size, grid.protect[0], grid.best_of(size))
    try:
        decisions = TableDecisions(context.measures)
        return decisions.keep(decisions.with_keep_top(system))
    except TooSmallError as error:
        raise PhraseToolError(f"{config.path}: annotate.sizes: {error}") from error


def _with_scores(measures: Measures, path: str) -> Measures:
    """Return the measures with their similarities replaced by saved ones."""
    saved = SavedScores(path)
    _, scores = saved.take(len(measures))
    saved.finish("the table", len(measures))
    return measures.with_columns({SIMILARITIES: scores.similarities, SCORED: scores.scored})


def column_values(measures: Measures, columns: Sequence[str], probable: bool = False) -> FloatArray:
    """Return the scores of appended columns as the decoder reads them: logarithms.

    `semantic` is two columns: each similarity minus 1, rounded to six decimals as `phrasetool annotate` writes them.
    If similarities are `probable`, `semantic` is their logarithms: two columns for two translators, the probability of
    a word in each direction; one column for a single translator or a classifier.
    `composition` is minus the loss, clipped to [0, 3]: about 0 for an entry that the decoder can compose from others.
    `significance` is a tenth of -ln p, at most 2, minus 2.
    `forced` is two columns: ln p(target | source) and ln p(source | target) by usage in forced decoding, rounded to six
    digits as `phrasetool annotate` writes them.
    `kneser-ney` is two columns: the same by the counts of the table, with Kneser-Ney smoothing.

    Args:
        measures: measures of the N entries, with all that the columns need.
        columns: names of the columns, in this order.
        probable: whether similarities are probabilities.

    Returns:
        float32, shape (N, C).
    """
    values: list[FloatArray] = [np.zeros((len(measures), 0), np.float32)]
    for column in columns:
        if column == "semantic" and probable:
            values.append(_logarithms(measures[SIMILARITIES], measures[SCORED]))
        elif column == "semantic":
            written = np.floor(scale_similarities(measures[SIMILARITIES], "exp") * 1e6 + 0.5) / 1e6
            values.append(np.log(written.astype(np.float32)))
        elif column == "composition":
            values.append((-np.clip(measures[LOSSES], np.float32(0), _LOSS_CAP)[:, None]).astype(np.float32))
        elif column == "forced":
            values.append(np.log(_six_digits(measures[FORCED], SMALLEST_PROBABILITY).astype(np.float32)))
        elif column == "kneser-ney":
            values.append(np.log(_six_digits(measures[SMOOTHED], SMALLEST_SMOOTHED).astype(np.float32)))
        else:
            tenth = np.minimum(measures[SIGNIFICANCE], _LARGEST_SIGNIFICANCE) / np.float32(10)
            values.append((tenth[:, None] - np.float32(2)).astype(np.float32))
    return np.hstack(values, dtype=np.float32)


def _logarithms(probabilities: FloatArray, scored: Mask) -> FloatArray:
    """Return the logarithms of probabilities, at least -50; 0 without a score; one column if both are equal."""
    st, ts = probabilities.T
    columns = probabilities[:, :1] if np.array_equal(st, ts) else probabilities
    floor = np.float32(np.exp(LEAST_LOG))
    return np.where(scored[:, None], np.log(np.maximum(columns, floor)), np.float32(0)).astype(np.float32)


def _six_digits(probabilities: FloatArray, least: float) -> npt.NDArray[np.float64]:
    """Return numbers, at least `least`, rounded to six significant digits, as they are after writing and reading."""
    values = np.maximum(probabilities.astype(np.float64), least)
    scale = 10.0 ** (5 - np.floor(np.log10(values)))
    rounded: npt.NDArray[np.float64] = np.round(values * scale) / scale
    return rounded


def annotated(loaded: LoadedModel, model: MosesModel, values: FloatArray) -> LoadedModel:
    """Return the loaded model with additional scores of each entry, whose weights are 0 and tuneable.

    Args:
        loaded: the model, whose table has N entries.
        model: the model of the ini, possibly with other weights.
        values: float32, shape (N, C), logarithms.
    """
    entries, features, table_index = loaded.entries, model.features, model.place
    added = values.shape[1]
    sizes = [size + added * (i == table_index) for i, size in enumerate(features.tables)]
    column = features.table_columns(table_index).stop
    at = np.full(added, features.table_part.start + column)
    extended = replace(
        model, features=replace(features, tables=tuple(sizes)), weights=np.insert(model.weights, at, 0.0),
        tuneable=np.insert(model.tuneable, at, True),
    )  # fmt: skip
    own = entries.tables == table_index
    new = np.where(own[:, None], values[np.where(own, entries.numbers, 0)], np.float32(0))
    scores = np.hstack([entries.scores[:, :column], new, entries.scores[:, column:]], dtype=np.float32)
    return replace(loaded, model=extended, entries=replace(entries, scores=scores))


def with_default_weights(model: MosesModel) -> MosesModel:
    """Return the model with train-model.perl's default weights for the tuneable features."""
    return replace(model, weights=np.where(model.tuneable, model.features.default_weights(), model.weights))


@dataclass(frozen=True)
class TuningPlan:
    """Settings of tuning a table.

    Attributes:
        dev: name of the development set among the texts of the loaded model.
        references: its reference translation, as the bytes of a text.
        iterations: maximum number of decoder runs.
    """

    dev: str
    references: bytes
    iterations: int = 25


def tuning_key(
    identity: str, model: MosesModel, values: FloatArray, keep: Mask | None, plan: TuningPlan, seed: int
) -> str:
    """Return the key of a tuning run in the store: a digest of everything that its result depends on."""
    mask = b"" if keep is None else np.packbits(keep).tobytes()
    return digest_of(
        "tuning", identity, values.tobytes(), repr(values.shape), model.weights.tobytes(), model.tuneable.tobytes(),
        mask, plan.dev, plan.references, repr((plan.iterations, N_BEST, seed)),
    )  # fmt: skip


def tuned_run(
    load: Callable[[], LoadedModel],
    keep: Mask | None,
    plan: TuningPlan,
    seed: int,
    store: RunStore,
    key: str,
    facts: Mapping[str, Any],
    tick: Callable[[int], None] = lambda sentences: None,
) -> dict[str, Any]:
    """Tune by batch MIRA, translate all texts with the tuned weights, and store both, or read a stored result.

    Finished parts are stored, so that a killed run can be resumed, with the same result.

    Args:
        load: returns the loaded model, such as one of `annotated`; called only if the run is not finished yet.
        keep: which entries the table has; all if None.
        plan: settings of tuning.
        seed: seed of tuning.
        store, key: the store of the result, and its key.
        facts: further facts to store with the result.
        tick: called with the number of sentences that were translated, or that early stopping made unnecessary.
    """
    kept = store.read(key)
    if kept is not None:
        return kept
    loaded = load()
    began = time.monotonic()
    translator = loaded.translator(keep)
    model, sentences = loaded.model, loaded.sentences[plan.dev]
    decoder = NBestDecoder(translator, sentences, model.search, N_BEST, model.tuneable, loaded.threads, lambda: tick(1))
    references = [translator.table.target_symbols.read_lines(plan.references, add=False)]
    runs: list[TuningRun] = []
    with FinishedWork(store.unfinished(key), model.paths[0], {"run": key}) as finished:

        def decode(weights: Weights) -> NBest:
            # A run is reported when it has been scored, before the next one begins.
            return decoder(weights, finished.runner(f"run-{len(runs)}", weights, by=loaded.runner))

        result = tune(
            decode, references, model.weights[model.tuneable], "mira", iterations=plan.iterations, seed=seed,
            fixed=decoder.fixed, report=runs.append,
        )  # fmt: skip
        tick((plan.iterations - len(runs)) * len(sentences))
        weights = decoder.all_weights(result.weights)
        translations = loaded.translate(translator.with_weights(weights), lambda: tick(1))
        record = {
            **facts, "seed": seed, "runs": [round(run.bleu, 4) for run in runs],
            "dev_bleu_in_tuning": round(result.best.bleu, 4),
            "weights": {name: weights[part].tolist() for name, part in model.features.slices.items()},
            "seconds": round(time.monotonic() - began, 3), "translations": translations,
        }  # fmt: skip
        store.write(key, record)
    return store.read(key) or record
