"""The runs of `phrasetool experiment`: measured, decoded or read again, and put into frames."""

from __future__ import annotations

import functools
import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from phrasetool_cli.shared.progress import ItemProgress, TableProgress, say

if TYPE_CHECKING:
    import pandas as pd

    from moses_compat.engine.laboratory import Laboratory
    from moses_compat.engine.model import MosesModel
    from moses_compat.experiments.runs import PlannedRun, RunStore
    from moses_compat.experiments.texts import ExperimentTexts
    from phrasetool.experiments.settings import ExperimentConfig
    from phrasetool.experiments.systems import PruningSystem
    from phrasetool.phrases import Mask
    from phrasetool.pruning.measures import Measures
    from phrasetool_cli.shared.experiment_steps import Built

# Histograms and surprises are of the tables nearest to this size.
_LOOKED_AT = 0.1


@dataclass
class Session:
    """An experiment on its way.

    Attributes:
        config: what is wanted.
        texts: the development set and the test sets.
        threads: for everything.
        quiet: say nothing.
        seconds: how long each part took.
        commands: how to do parts of it by hand.
        began: when the current part began.
    """

    config: ExperimentConfig
    texts: ExperimentTexts
    threads: int
    quiet: bool
    seconds: dict[str, float] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def say(self, message: str) -> None:
        """Tell the user, if they want to hear."""
        if not self.quiet:
            say(message)

    def part(self, name: str) -> None:
        """A part is done."""
        now = time.monotonic()
        self.seconds[name] = round(now - self.began, 3)
        self.began = now

    def path(self, *names: str) -> str:
        """A file of the experiment's folder."""
        return os.path.join(self.config.output, *names)


def measured(session: Session, model: MosesModel, built: Built) -> Measures:
    """Read the table once for all that is wanted of it."""
    from moses_compat.files.streams import Input
    from moses_compat.ini.tables import choose_table
    from moses_compat.measures.measure import MeasureRequest, measure_table
    from moses_compat.measures.model_weights import weights_of
    from moses_compat.measures.similarities import FileSimilarities
    from moses_compat.tables.blocks import TableScan

    bitext, scores = session.config.bitext, built.scores.get(built.dimension)
    with Input(model.table) as source, TableProgress("measure", source.size(), session.quiet) as progress:
        request = MeasureRequest.of(
            session.config.needs,
            TableScan(threads=session.threads, progress=progress),
            weights=lambda: weights_of(model.ini, choose_table(model.ini, model.table)),
            similarities=FileSimilarities(scores) if scores else None,
            corpora=(bitext.source, bitext.target) if bitext else None,
            forced_pairs=built.forced_pairs,
        )
        return measure_table(source, request)


def pruning(
    session: Session, model: MosesModel, built: Built, measures: Measures, load: Callable[[], Laboratory],
    store: RunStore, identity: str,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """Table 1, who wins, similarity histograms, surprises."""
    from moses_compat.experiments.runs import decode_run, plan_runs
    from phrasetool.experiments.results import FinishedRun, Scoreboard, pruning_frames
    from phrasetool.experiments.systems import PruningSystem, labels_of

    config = session.config
    assert config.prune is not None
    labels = labels_of([PruningSystem(), *config.prune.systems()])

    skipped: dict[str, str] = {}
    planned = list(plan_runs(labels, measures, identity, model.weights, skipped.__setitem__))
    if skipped:
        label, reason = next(iter(skipped.items()))
        more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        session.say(f"no table that small: {label}{more} left out ({reason})")
    missing = {run.key for run in planned if store.read(run.key) is None}
    session.say(f"{len(planned)} tables to compare, {len(missing)} to translate with")
    finished, took = [], 0.0
    with ItemProgress("translate", len(missing) * session.texts.sentences, "sentence", session.quiet) as progress:
        for run in planned:
            record = decode_run(load, run, store, progress.tick)
            took += record["seconds"]
            line = _prune_command(session, model, built, run.system)
            finished.append(FinishedRun(run.system, run.label, run.entries, run.of, record["translations"], line))
    session.seconds["all pruning runs, when they were done"] = round(took, 3)
    board = Scoreboard(session.texts.references, config.samples)
    table, contests = pruning_frames(finished, board)
    return {"pruning": table, "contests": contests, **_looked_at(model, measures, planned)}


def _prune_command(session: Session, model: MosesModel, built: Built, system: PruningSystem) -> str:
    """What writes this table."""
    from phrasetool.experiments.systems import FULL
    from phrasetool.pruning.measures import LOSSES, MODEL_SCORES, SIGNIFICANCE, SIMILARITIES, USES
    from phrasetool_cli.shared.experiment_build import shown

    if system.rule == FULL:
        return ""
    method = system.parsed()
    needs = method.needs
    options = ["--target-size" if system.rule == "size" else "--threshold", f"{system.wanted:g}"]
    options = [] if method.thresholds else options
    options += ["--protect", system.protect, "--keep-top", str(system.keep_top), "--method", system.method]
    if system.combine:
        options += ["--combine", system.combine]
    if system.seed:
        options += ["--seed", str(system.seed)]
    if SIMILARITIES in needs:
        options += ["--scores", built.scores[built.dimension]]
    if needs & {LOSSES, MODEL_SCORES}:
        options += ["--moses-ini", built.ini]
    if SIGNIFICANCE in needs and session.config.bitext:
        options += ["--corpus", session.config.bitext.source, session.config.bitext.target]
    if USES in needs and built.forced_pairs:
        options += ["--forced-pairs", built.forced_pairs]
    return shlex.join(["phrasetool", "prune", shown(model.table), *map(shown, options), "-o", "pruned.gz"])


def _looked_at(model: MosesModel, measures: Measures, planned: list[PlannedRun]) -> dict[str, pd.DataFrame]:
    """Frames about the entries of the tables of about a tenth: one of each method."""
    import numpy as np

    from moses_compat.experiments.runs import read_entries
    from phrasetool.experiments.phrase_frames import histogram_frame, surprise_frame, surprising_entries
    from phrasetool.pruning.measures import SIMILARITIES

    chosen: dict[str, PlannedRun] = {}
    for run in planned:
        system = run.system
        if system.rule != "size" or system.method == "random":
            continue
        there = chosen.get(system.kind)
        if there is None or abs(system.wanted - _LOOKED_AT) < abs(there.system.wanted - _LOOKED_AT):
            chosen[system.kind] = run
    frames: dict[str, Any] = {}
    masks = {kind: run.keep for kind, run in chosen.items()}
    if SIMILARITIES in measures and chosen:
        frames["histogram"] = histogram_frame(measures, {chosen[kind].label: mask for kind, mask in masks.items()})
    groups = np.repeat(np.arange(len(measures.group_offsets) - 1), np.diff(measures.group_offsets))
    worths = {kind: run.system.parsed().worth(measures) for kind, run in chosen.items()}
    surprising = surprising_entries(worths, masks, groups)
    if surprising:
        frames["surprises"] = surprise_frame(measures, surprising, lambda rows: read_entries(model.table, rows))
    return frames


def annotation(
    session: Session, model: MosesModel, built: Built, measures: Measures, load: Callable[[], Laboratory],
    store: RunStore, identity: str,
) -> pd.DataFrame:  # fmt: skip
    """Table 2."""
    from moses_compat.experiments.tuned_runs import (
        TuningPlan,
        annotated,
        column_values,
        tuned_run,
        tuning_key,
        with_default_weights,
    )
    from phrasetool.experiments.results import Scoreboard, TunedRuns, annotation_frame

    config = session.config
    assert config.annotate is not None
    asked = config.annotate
    if asked.start == "default":
        model = with_default_weights(model)
    plan = TuningPlan("dev", session.texts.targets["dev"], asked.iterations)
    one = asked.iterations * session.texts.sources["dev"].count(b"\n") + session.texts.sentences
    jobs = []
    for table in _tables_to_tune(session, measures):
        similar = _similar(measures, built.scores[table.dimension]) if table.dimension else measures
        values = column_values(similar, [part for part in table.columns.split("+") if part])
        keys = {seed: tuning_key(identity, model, values, table.keep, plan, seed) for seed in asked.tuning_seeds}
        jobs.append((table, values, keys))
    missing = sum(store.read(key) is None for *_, keys in jobs for key in keys.values())
    session.say(f"{len(jobs) * len(asked.tuning_seeds)} tunings, {missing} to do")
    runs, took = [], 0.0
    with ItemProgress("tune", missing * one, "sentence", session.quiet) as progress:
        for table, values, keys in jobs:
            # Bound now: the values are those of this turn.
            more = functools.cache(lambda values=values: annotated(load(), model, values))
            facts = {"system": table.label, "columns": table.columns, "dimension": table.dimension}
            records = [
                tuned_run(more, table.keep, plan, seed, store, key, facts, progress.tick) for seed, key in keys.items()
            ]
            took += sum(record["seconds"] for record in records)
            translations = [record["translations"] for record in records]
            runs.append(TunedRuns(table.label, table.columns, table.dimension, translations))
    session.seconds["all tuning runs, when they were done"] = round(took, 3)
    return annotation_frame(runs, Scoreboard(session.texts.references, config.samples))


@dataclass(frozen=True)
class _TunedTable:
    """A row of Table 2: some entries, and columns of a model with vectors of this dimension (0: of none)."""

    label: str
    keep: Mask | None
    columns: str = ""
    dimension: int = 0


def _tables_to_tune(session: Session, measures: Measures) -> Iterator[_TunedTable]:
    """Of each size the table as it is, then with columns; the largest as it is comes first, it is the baseline."""
    asked = session.config.annotate
    assert asked is not None
    several = len(asked.columns) > 1
    for place, size in enumerate(asked.sizes):
        keep = _pruned(session, measures, size) if size < 1 else None
        share = f"{asked.method} {100 * size:g} %" if size < 1 else ""
        yield _TunedTable(share if place else f"baseline{f', {share}' if share else ''}", keep)
        for columns in asked.columns:
            for dimension in asked.dimensions if "semantic" in columns.split("+") else (0,):
                label = f"annotated n={dimension}" if dimension else "annotated"
                label += f" ({columns})" if several else ""
                yield _TunedTable(f"{label}, {share}" if share else label, keep, columns, dimension)


def _pruned(session: Session, measures: Measures, size: float) -> Mask:
    """The entries of a pruned table."""
    from moses_compat.experiments.runs import TableDecisions
    from phrasetool.errors import PhraseToolError
    from phrasetool.experiments.systems import PruningGrid, PruningSystem
    from phrasetool.pruning.sizes import TooSmallError

    asked, grid = session.config.annotate, session.config.prune or PruningGrid()
    assert asked is not None
    wanted = PruningSystem(asked.method, "", "size", size, grid.protect[0], grid.best_of(size))
    try:
        decisions = TableDecisions(measures)
        return decisions.keep(decisions.settled(wanted))
    except TooSmallError as error:
        raise PhraseToolError(f"{session.config.path}: annotate.sizes: {error}") from error


def _similar(measures: Measures, scores: str) -> Measures:
    """The measures with other similarities."""
    from moses_compat.measures.saved_similarities import SavedScores
    from phrasetool.pruning.measures import OPINION, SIMILARITIES

    saved = SavedScores(scores)
    _, found = saved.take(len(measures))
    saved.finish("the table", len(measures))
    return measures.with_columns({SIMILARITIES: found.similarities, OPINION: found.opinion})
