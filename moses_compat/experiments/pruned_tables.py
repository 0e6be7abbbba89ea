"""Table 1 of an experiment: pruned tables, what is translated with them, and the entries they keep and remove."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
import pandas as pd

from moses_compat.experiments.build_commands import shown_path
from moses_compat.experiments.runs import PlannedRun, decode_run, plan_runs, read_entries
from moses_compat.experiments.workbench import Workbench
from phrasetool.experiments.phrase_frames import histogram_frame, surprise_frame, surprising_entries
from phrasetool.experiments.results import FinishedRun, Scoreboard, pruning_frames
from phrasetool.experiments.systems import FULL, RANDOM, PruningGrid, PruningSystem, labels_of
from phrasetool.pruning.measures import LOSSES, MODEL_SCORES, SIGNIFICANCE, SIMILARITIES, USES

# Histograms and surprises are of the tables nearest to this size.
_LOOKED_AT = 0.1


def pruned_table_frames(bench: Workbench, asked: PruningGrid) -> dict[str, pd.DataFrame]:
    """`pruning` (Table 1), `contests` (who wins), and of tables of about a tenth `histogram` and `surprises`.

    Args:
        bench: the decoder and the measures.
        asked: which tables; those whose size cannot be had are left out.
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
            line = prune_command(bench, run.system)
            finished.append(FinishedRun(run.system, run.label, run.entries, run.of, record["translations"], line))
    session.seconds["all pruning runs, when they were done"] = round(took, 3)
    board = Scoreboard(session.texts.references, session.config.samples)
    table, contests = pruning_frames(finished, board)
    return {"pruning": table, "contests": contests, **_looked_at(bench, planned)}


def prune_command(bench: Workbench, system: PruningSystem) -> str:
    """What somebody types to write this table; nothing for the full one."""
    if system.rule == FULL:
        return ""
    method, plan, bitext = system.parsed(), bench.plan, bench.session.config.bitext
    needs = method.needs
    options = ["--target-size" if system.rule == "size" else "--threshold", f"{system.wanted:g}"]
    options = [] if method.thresholds else options
    options += ["--protect", system.protect, "--keep-top", str(system.keep_top), "--method", system.method]
    if system.combine:
        options += ["--combine", system.combine]
    if system.seed:
        options += ["--seed", str(system.seed)]
    if SIMILARITIES in needs:
        options += ["--scores", plan.scores[plan.dimension]]
    if needs & {LOSSES, MODEL_SCORES}:
        options += ["--moses-ini", plan.ini]
    if SIGNIFICANCE in needs and bitext:
        options += ["--corpus", bitext.source, bitext.target]
    if USES in needs and plan.forced_pairs:
        options += ["--forced-pairs", plan.forced_pairs]
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
