"""Tables 1 and 2 of an experiment: pruned by many methods, and with more columns, each tuned again.

Nothing is written but results: a pruned table is a mask over the entries in memory, and columns are given to entries as
the decoder would read them from an annotated table.  A finished run is a file named after all that its translations
depend on (entries, tables, weights, texts, search), so a run is done once.
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
from moses_compat.experiments.workbench import Workbench, development_check
from moses_compat.files.finished_work import FinishedWork
from moses_compat.files.streams import Input
from moses_compat.lines.insert_scores import LEAST_LOG, scale_similarities
from moses_compat.measures.pair_counts import SMALLEST_SMOOTHED
from moses_compat.measures.saved_scores import SavedScores
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import PhraseToolError
from phrasetool.phrases import ByteArray, FloatArray, Int64Array, Mask
from phrasetool.pruning.decision import Ranking
from phrasetool.pruning.measures import FORCED, LOSSES, OPINION, SIGNIFICANCE, SIMILARITIES, SMOOTHED, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBestWithinBudget
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.smt.extraction.smoothing import SMALLEST_PROBABILITY
from phrasetool.smt.tuning.candidates import NBest, Weights
from phrasetool.smt.tuning.loop import NBestDecoder, TuningRun, tune
from phrasetool.text_splitting import single_spaced

# Histograms and surprises are of the tables nearest to this size.
_LOOKED_AT = 0.1

_LOSS_CAP = np.float32(3.0)
_LARGEST_SIGNIFICANCE = np.float32(20.0)
N_BEST = 100


def pruned_table_frames(bench: Workbench, asked: PruningGrid) -> dict[str, pd.DataFrame]:
    """`pruning` (Table 1), `contests` (who wins), and of tables of about a tenth `histogram` and `surprises`.

    Args:
        bench: the decoder and the measures.
        asked: which tables; those whose size cannot be had are left out.

    Raises:
        PhraseToolError: the development set makes no sense, see `DevelopmentCheck`.
    """
    session, store = bench.session, bench.store
    labels = labels_of([PruningSystem(), *asked.systems()])
    skipped: dict[str, str] = {}
    planned = list(plan_runs(labels, bench.measures, bench.identity, bench.model.weights, skipped.__setitem__))
    if skipped:
        label, reason = next(iter(skipped.items()))
        more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        session.watch.say(f"no table that small: {label}{more} left out ({reason})")
    missing = {run.key for run in planned if store.read(run.key) is None}
    session.watch.say(f"{len(planned)} tables to compare, {len(missing)} to translate with")
    finished, took = [], 0.0
    with session.watch.items("translate", len(missing) * session.texts.sentences, "sentence") as tick:
        for run in planned:
            record = decode_run(bench.load, run, store, lambda: tick(1))
            took += record["seconds"]
            if run.system.rule == FULL:
                _check_bleu(bench, record["translations"][DEV])
            line = prune_command(bench, run.system)
            finished.append(FinishedRun(run.system, run.label, run.entries, run.of, record["translations"], line))
    session.seconds["all pruning runs, when they were done"] = round(took, 3)
    board = Scoreboard(session.texts.references, session.config.samples)
    table, contests = pruning_frames(finished, board)
    return {"pruning": table, "contests": contests, **_looked_at(bench, planned)}


def _check_bleu(bench: Workbench, translations: Sequence[str]) -> None:
    """Refuse a development set that the full table cannot translate, before it is translated by others."""
    symbols = Symbols()
    found = symbols.read_lines("".join(f"{line}\n" for line in translations).encode())
    truth = symbols.read_lines(bench.session.texts.targets[DEV])
    measure = functools.partial(bleu_statistics, np.arange(len(found)), found)
    development_check(bench.session, bench.model).bleu(measure, [truth])


def prune_command(bench: Workbench, system: PruningSystem) -> str:
    """What somebody types to write this table; nothing for the full one."""
    if system.rule == FULL:
        return ""
    method, plan = system.parsed(), bench.plan
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
    options += method_options(method, plan.ini, bench.session.config.bitext, plan.forced_pairs)
    return shlex.join(["phrasetool", "prune", *map(shown_path, [bench.model.table, *options]), "-o", "pruned.gz"])


def _looked_at(bench: Workbench, planned: Sequence[PlannedRun]) -> dict[str, pd.DataFrame]:
    """Frames about the entries of the tables of about a tenth: one of each method."""
    measures = bench.measures
    chosen: dict[str, PlannedRun] = {}
    for run in planned:
        system = run.system
        if system.rule != "size" or system.method == RANDOM:
            continue
        there = chosen.get(system.kind)
        if there is None or abs(system.wanted - _LOOKED_AT) < abs(there.system.wanted - _LOOKED_AT):
            chosen[system.kind] = run
    frames: dict[str, pd.DataFrame] = {}
    masks = {kind: run.keep for kind, run in chosen.items()}
    if SIMILARITIES in measures and chosen:
        frames["histogram"] = histogram_frame(measures, {chosen[kind].label: mask for kind, mask in masks.items()})
    groups = np.repeat(np.arange(len(measures.group_offsets) - 1), np.diff(measures.group_offsets))
    worths = {kind: run.system.parsed().worth(measures) for kind, run in chosen.items()}
    surprising = surprising_entries(worths, masks, groups)
    if surprising:
        frames["surprises"] = surprise_frame(measures, surprising, lambda rows: read_entries(bench.model.table, rows))
    return frames


class TableDecisions:
    """Which entries of a table systems keep: those that `phrasetool prune` would write.

    Args:
        measures: of the N entries.
    """

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._affordable = functools.cache(lambda protect, frequent: KeepBestWithinBudget(measures, protect, frequent))
        self._last: tuple[Method, Ranking] | None = None

    def settled(self, system: PruningSystem) -> PruningSystem:
        """The system with the number of entries that a protected source keeps, if it does not say one."""
        if system.keep_top != AFFORDABLE:
            return system
        allowed = allowed_entries(system.wanted, len(self._measures))
        return replace(system, keep_top=self._affordable(system.protect, system.frequent).best(allowed).k)

    def keep(self, system: PruningSystem) -> Mask:
        """bool, shape (N,): the entries that stay.

        Args:
            system: settled.  Those of one method are best asked for one after another: it ranks the entries once.

        Raises:
            TooSmallError: the protected entries alone are more than the wanted size allows.
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
        system: how it comes from the full table.
        label: its name.
        entries: how many it has.
        packed: bits of the entries that stay.
        of: N, entries of the full table.
        key: of its file.
    """

    system: PruningSystem
    label: str
    entries: int
    packed: ByteArray
    of: int
    key: str

    @property
    def keep(self) -> Mask:
        """bool, shape (N,)."""
        return np.unpackbits(self.packed, count=self.of).astype(np.bool_)


def plan_runs(
    labels: Mapping[PruningSystem, str],
    measures: Measures,
    identity: str,
    weights: npt.NDArray[np.float64],
    skipped: Callable[[str, str], None],
) -> Iterator[PlannedRun]:
    """Decide about the entries for each system.

    Args:
        labels: names of the systems; those of one method one after another, so that it is asked once.
        measures: of the table.
        identity: of the decoder, see `decoder_identity`.
        weights: what it decodes with.
        skipped: called with the label and the reason where a wanted size cannot be had.
    """
    decisions = TableDecisions(measures)
    for system, label in labels.items():
        try:
            exact = decisions.settled(system)
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
    """Translate all texts with a table, and keep the result; or read what was kept.

    Args:
        load: what translates; only asked for where there is something to translate.
        planned: the table.
        store: where results are kept.
        tick: called after each sentence that is translated.
    """
    there = store.read(planned.key)
    if there is not None:
        return there
    loaded = load()
    began = time.monotonic()
    keep = None if planned.entries == planned.of else planned.keep
    translations = loaded.translate(loaded.translator(keep), tick)
    record = {
        "system": planned.label, "entries": planned.entries, "of": planned.of,
        "seconds": round(time.monotonic() - began, 3), "translations": translations,
    }  # fmt: skip
    store.write(planned.key, record)
    # As it will be read again.
    return store.read(planned.key) or record


def read_entries(path: str, rows: Int64Array) -> Sequence[tuple[bytes, bytes]]:
    """Source and target of some entries of a table.

    Args:
        path: of the table.
        rows: int64, ascending, 0-based numbers of entries.
    """
    found: list[tuple[bytes, bytes]] = []
    with Input(path) as source:
        for raw in raw_blocks(source, whole_groups=False):
            first, last = np.searchsorted(rows, [raw.first_entry, raw.first_entry + raw.lines])
            if first < last:
                lines = raw.text.tobytes().split(b"\n")
                for row in rows[first:last].tolist():
                    fields = lines[row - raw.first_entry].split(b"|||", 2)
                    found.append((single_spaced(fields[0]), single_spaced(fields[1])))
    return found


def tuned_table_frame(bench: Workbench, asked: AnnotationSettings) -> pd.DataFrame:
    """`annotation` (Table 2).

    Args:
        bench: the decoder and the measures.
        asked: which tables and columns, and how they are tuned.

    Raises:
        PhraseToolError: a size cannot be had.
    """
    session, store, measures = bench.session, bench.store, bench.measures
    model = with_default_weights(bench.model) if asked.start == "default" else bench.model
    plan = TuningPlan(DEV, session.texts.targets[DEV], asked.iterations)
    one = asked.iterations * session.texts.sources[DEV].count(b"\n") + session.texts.sentences
    jobs = []
    for table in tables_to_tune(bench, asked):
        columns = [part for part in table.columns.split("+") if part]
        similar = _with_scores(measures, bench.plan.scores[table.dimension]) if "semantic" in columns else measures
        values = column_values(similar, columns, bench.plan.probable and not table.dimension)
        keys = {seed: tuning_key(bench.identity, model, values, table.keep, plan, seed) for seed in asked.tuning_seeds}
        jobs.append((table, values, keys))
    missing = sum(store.read(key) is None for *_, keys in jobs for key in keys.values())
    session.watch.say(f"{len(jobs) * len(asked.tuning_seeds)} tunings, {missing} to do")
    runs, took = [], 0.0
    with session.watch.items("tune", missing * one, "sentence") as tick:
        for table, values, keys in jobs:
            # Bound now: the values are those of this turn.
            more = functools.cache(lambda values=values: annotated(bench.load(), model, values))
            facts = {"system": table.label, "columns": table.columns, "dimension": table.dimension}
            records = [tuned_run(more, table.keep, plan, seed, store, key, facts, tick) for seed, key in keys.items()]
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
        keep: bool, shape (N,), the entries it has; all if None.
        columns: what is appended, with `+` between; nothing if empty.
        dimension: of the model whose similarities are among them; 0 for none.
    """

    label: str
    keep: Mask | None
    columns: str = ""
    dimension: int = 0


def tables_to_tune(bench: Workbench, asked: AnnotationSettings) -> Iterator[TunedTable]:
    """Of each size the table as it is, then with columns; the largest as it is comes first, it is the baseline."""
    several = len(asked.columns) > 1
    for place, size in enumerate(asked.sizes):
        keep = _pruned(bench, asked.method, size) if size < 1 else None
        share = f"{asked.method} {100 * size:g} %" if size < 1 else ""
        yield TunedTable(share if place else f"baseline{f', {share}' if share else ''}", keep)
        for columns in asked.columns:
            models = [dimension or bench.plan.dimension for dimension in asked.dimensions]
            for dimension in models if "semantic" in columns.split("+") else (0,):
                label = f"annotated n={dimension}" if dimension else "annotated"
                label += f" ({columns})" if several else ""
                yield TunedTable(f"{label}, {share}" if share else label, keep, columns, dimension)


def _pruned(bench: Workbench, method: str, size: float) -> Mask:
    """The entries of a pruned table."""
    config = bench.session.config
    grid = config.prune or PruningGrid()
    wanted = PruningSystem(method, "", "size", size, grid.protect[0], grid.best_of(size))
    try:
        decisions = TableDecisions(bench.measures)
        return decisions.keep(decisions.settled(wanted))
    except TooSmallError as error:
        raise PhraseToolError(f"{config.path}: annotate.sizes: {error}") from error


def _with_scores(measures: Measures, scores: str) -> Measures:
    """The measures with other similarities."""
    saved = SavedScores(scores)
    _, found = saved.take(len(measures))
    saved.finish("the table", len(measures))
    return measures.with_columns({SIMILARITIES: found.similarities, OPINION: found.opinion})


def column_values(measures: Measures, columns: Sequence[str], probable: bool = False) -> FloatArray:
    """What a decoder sees of appended columns: logarithms.

    `semantic` is two columns: each similarity minus 1, as `phrasetool annotate` writes it, six decimals included.
    Where similarities are `probable`, it is their logarithms: of two translators, of the probability of a word in each
    direction; of one, or of a classifier, one column.
    `composition` is minus the loss, which is taken between 0 and 3: an entry that can be made of others has about 0.
    `significance` is a tenth of -ln p, at most 2, minus 2.
    `forced` is two columns: ln p(target | source) and ln p(source | target) by the uses of forced decoding, as
    `phrasetool annotate` writes them, six digits included.
    `kneser-ney` is two columns: the same by the counts of the table, smoothed so.

    Args:
        measures: of the N entries, with all that the columns need.
        columns: which, in this order.
        probable: whether similarities are probabilities.

    Returns:
        float32, shape (N, C).
    """
    found: list[FloatArray] = [np.zeros((len(measures), 0), np.float32)]
    for column in columns:
        if column == "semantic" and probable:
            found.append(_logarithms(measures[SIMILARITIES], measures[OPINION]))
        elif column == "semantic":
            written = np.floor(scale_similarities(measures[SIMILARITIES], "exp") * 1e6 + 0.5) / 1e6
            found.append(np.log(written.astype(np.float32)))
        elif column == "composition":
            found.append((-np.clip(measures[LOSSES], np.float32(0), _LOSS_CAP)[:, None]).astype(np.float32))
        elif column == "forced":
            found.append(np.log(_six_digits(measures[FORCED], SMALLEST_PROBABILITY).astype(np.float32)))
        elif column == "kneser-ney":
            found.append(np.log(_six_digits(measures[SMOOTHED], SMALLEST_SMOOTHED).astype(np.float32)))
        else:
            tenth = np.minimum(measures[SIGNIFICANCE], _LARGEST_SIGNIFICANCE) / np.float32(10)
            found.append((tenth[:, None] - np.float32(2)).astype(np.float32))
    return np.hstack(found, dtype=np.float32)


def _logarithms(probabilities: FloatArray, opinion: Mask) -> FloatArray:
    """Of probabilities, at least e^-50; 0 without an opinion; a column if both are alike."""
    st, ts = probabilities.T
    both = probabilities[:, :1] if np.array_equal(st, ts) else probabilities
    floor = np.float32(np.exp(LEAST_LOG))
    return np.where(opinion[:, None], np.log(np.maximum(both, floor)), np.float32(0)).astype(np.float32)


def _six_digits(probabilities: FloatArray, least: float) -> npt.NDArray[np.float64]:
    """Numbers, where they are less than `least` that, as they are when written with six digits and read again."""
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
    entries, features, place = loaded.entries, model.features, model.place
    added = values.shape[1]
    sizes = [size + added * (i == place) for i, size in enumerate(features.tables)]
    column = features.table_columns(place).stop
    at = np.full(added, features.table_part.start + column)
    more = replace(
        model, features=replace(features, tables=tuple(sizes)), weights=np.insert(model.weights, at, 0.0),
        tuneable=np.insert(model.tuneable, at, True),
    )  # fmt: skip
    own = entries.tables == place
    new = np.where(own[:, None], values[np.where(own, entries.numbers, 0)], np.float32(0))
    scores = np.hstack([entries.scores[:, :column], new, entries.scores[:, column:]], dtype=np.float32)
    return replace(loaded, model=more, entries=replace(entries, scores=scores))


def with_default_weights(model: MosesModel) -> MosesModel:
    """The model with the weights that train-model.perl writes, where they may be tuned."""
    return replace(model, weights=np.where(model.tuneable, model.features.default_weights(), model.weights))


@dataclass(frozen=True)
class TuningPlan:
    """How a table is tuned.

    Attributes:
        dev: name of the development set among the texts of the loaded model.
        references: its translation, bytes of a text.
        iterations: runs of the decoder at most.
    """

    dev: str
    references: bytes
    iterations: int = 25


def tuning_key(
    identity: str, model: MosesModel, values: FloatArray, keep: Mask | None, plan: TuningPlan, seed: int
) -> str:
    """Of the file of a tuning run: digits that differ when anything differs that its result depends on."""
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
    """Tune by batch MIRA, translate all texts with the weights found, and keep both; or read what was kept.

    What is finished of it is kept, too: a run that is killed goes on, to the same result.

    Args:
        load: returns the loaded model, as of `annotated`; called only if a run is not finished yet.
        keep: which entries are there; all if None.
        plan: how it is tuned.
        seed: of the tuning.
        store, key: where the result is kept.
        facts: more to keep with it.
        tick: called with the number of sentences translated, or not needed where tuning ends early.
    """
    there = store.read(key)
    if there is not None:
        return there
    loaded = load()
    began = time.monotonic()
    translator = loaded.translator(keep)
    model, sentences = loaded.model, loaded.sentences[plan.dev]
    decoder = NBestDecoder(translator, sentences, model.search, N_BEST, model.tuneable, loaded.threads, lambda: tick(1))
    truth = [translator.table.target_symbols.read_lines(plan.references, add=False)]
    runs: list[TuningRun] = []
    with FinishedWork(store.unfinished(key), model.paths[0], {"run": key}) as finished:

        def decode(weights: Weights) -> NBest:
            # A run is reported when it is scored, before the next one.
            return decoder(weights, finished.runner(f"run-{len(runs)}", weights, by=loaded.runner))

        result = tune(
            decode, truth, model.weights[model.tuneable], "mira", iterations=plan.iterations, seed=seed,
            report=runs.append,
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
