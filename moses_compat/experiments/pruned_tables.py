"""Table 1 of an experiment: which entries a system keeps, what is translated with them, and what they tell.

A finished run is a file named after all that its translations depend on: the entries, the tables, the weights, the
texts, the search.  A run that was done before is read, whatever happened since.
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

from moses_compat.engine.laboratory import Laboratory
from moses_compat.experiments.build import method_options
from moses_compat.experiments.build_commands import shown_path
from moses_compat.experiments.phrase_frames import histogram_frame, surprise_frame, surprising_entries
from moses_compat.experiments.results import FinishedRun, Scoreboard, pruning_frames
from moses_compat.experiments.run_store import RunStore, digest_of
from moses_compat.experiments.settings import AFFORDABLE, DEV, FULL, RANDOM, PruningGrid, PruningSystem, labels_of
from moses_compat.experiments.workbench import Workbench, development_check
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import raw_blocks
from phrasetool.phrases import ByteArray, Int64Array, Mask
from phrasetool.pruning.decision import Ranking
from phrasetool.pruning.measures import SIMILARITIES, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBestWithinBudget
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.text_splitting import single_spaced

# Histograms and surprises are of the tables nearest to this size.
_LOOKED_AT = 0.1


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
    load: Callable[[], Laboratory], planned: PlannedRun, store: RunStore, tick: Callable[[], None] = lambda: None
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
    laboratory = load()
    began = time.monotonic()
    keep = None if planned.entries == planned.of else planned.keep
    translations = laboratory.translate(laboratory.translator(keep), tick)
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
