"""Table 2 of an experiment: full and pruned tables, with more columns and without, each tuned anew."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from moses_compat.experiments.runs import TableDecisions
from moses_compat.experiments.tuned_runs import (
    TuningPlan,
    annotated,
    column_values,
    tuned_run,
    tuning_key,
    with_default_weights,
)
from moses_compat.experiments.workbench import Workbench
from moses_compat.measures.saved_similarities import SavedScores
from phrasetool.errors import PhraseToolError
from phrasetool.experiments.results import Scoreboard, TunedRuns, annotation_frame
from phrasetool.experiments.settings import DEV, AnnotationSettings
from phrasetool.experiments.systems import PruningGrid, PruningSystem
from phrasetool.phrases import Mask
from phrasetool.pruning.measures import OPINION, SIMILARITIES, Measures
from phrasetool.pruning.sizes import TooSmallError


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
        similar = _with_scores(measures, bench.plan.scores[table.dimension]) if table.dimension else measures
        values = column_values(similar, [part for part in table.columns.split("+") if part])
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
            for dimension in asked.dimensions if "semantic" in columns.split("+") else (0,):
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
