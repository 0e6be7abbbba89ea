"""Common code of the studies of pruning and columns: models, systems, and a decoder with pruned tables.

Tables are pruned in memory by the function that `phrasetool prune` uses, and the development and test sets are
translated with the weights of the full table.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND
from study import SIZES, STATISTICS, Results

from moses_compat.engine.model import LoadedModel, MosesModel
from moses_compat.experiments.build import BuildPlan, open_build_store, plan_build
from moses_compat.experiments.build_commands import CommandRunner, RunStore, decoder_identity
from moses_compat.experiments.compared_tables import decode_run, plan_runs
from moses_compat.experiments.session import read_experiment_texts
from moses_compat.experiments.settings import AFFORDABLE, KEEP_TOP, ExperimentConfig, PruningSystem
from moses_compat.ini.tables import choose_table, weights_of
from moses_compat.measures.measure import MeasureRequest, measure_file
from moses_compat.measures.similarities import FileSimilarities, SimilaritySource
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    OCCURRENCES,
    SCORED,
    SIGNIFICANCE,
    SIMILARITIES,
    USES,
    Measure,
    Measures,
)
from phrasetool.smt.evaluation.bleu import sentence_statistics
from phrasetool.watch import SILENT

SEEDS = (1, 2, 3)
NEEDS: frozenset[Measure[Any]] = frozenset({COUNTS, LOSSES, OCCURRENCES, SIGNIFICANCE, USES})
# Name -> whether its pairs are from leave-one-out forced decoding, and options of `phrasetool train`.
MODELS: dict[str, tuple[bool, list[str]]] = {
    "in-batch": (True, []),
    "max-margin": (True, ["--loss", "max-margin"]),
    "uncorrected": (True, ["--correction", "0", "--count-exponent", "0", "--temperature", "0.1"]),
    "plain pairs": (False, []),
    "mean-max": (True, ["--encoder", "mean-max"]),
}
# Models of other dimensions, whose similarities are only used as columns.
DIMENSIONS: dict[str, tuple[bool, list[str]]] = {
    "n = 100": (True, ["--dimension", "100"]),
    "n = 200": (True, ["--dimension", "200"]),
}
# Steps of `phrasetool experiment` to skip, because the studies train their own models.
SKIPPED = ("train", "scores")


def of_size(method: str, sizes: tuple[float, ...] = SIZES) -> Iterator[PruningSystem]:
    """Yield tables of some sizes, with one-word sources protected."""
    combine = "product" if "+" in method else ""
    for size in sizes:
        yield PruningSystem(method, combine, "size", size, "words", AFFORDABLE, int(method == "random"))


def at_thresholds(method: str, thresholds: tuple[float, ...]) -> Iterator[PruningSystem]:
    """Yield tables by the rule of Zhang et al., which keeps the ten best entries of every source."""
    for threshold in thresholds:
        yield PruningSystem(method, "", "threshold", threshold, "all", KEEP_TOP)


class Trial:
    """A decoder, the measures of its table, and results of translating with pruned tables.

    Args:
        config: texts, table, bitext and search; missing files are built.
        work: directory for models and finished translations.
        results: where results are stored.
        threads: number of threads.
        needs: measures of the table in addition to similarities.
        facts: further columns of the stored rows, for studies with several trials.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        work: Path,
        results: Results,
        threads: int,
        needs: frozenset[Measure[Any]] = NEEDS,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.config, self.work, self.results, self.threads, self.needs = config, work, results, threads, needs
        self.facts = dict(facts or {})
        self.texts = read_experiment_texts(config)
        results.references = self.texts.references
        work.mkdir(parents=True, exist_ok=True)
        self.plan = self._built()
        model = MosesModel.read(self.plan.ini, self.plan.table, self.plan.reordering_table)
        search = config.search
        self.model = model.searching(
            algorithm=search.algorithm, stack_size=search.stack, pop_limit=search.pop_limit,
            table_limit=search.table_limit,
        )  # fmt: skip
        self.identity = decoder_identity(self.model, self.texts.sources)
        self.store = RunStore(str(work / "runs"))

    def _built(self) -> BuildPlan:
        """Build a decoder and count pairs in leave-one-out forced decoding."""
        folder = Path(self.config.output) / "build"
        store = open_build_store(self.config, str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        plan = plan_build(self.config, self.config.dev, store.path)
        runner = CommandRunner(store, [COMMAND], self.threads, lambda message: print(f"  {message}", flush=True))
        for chains in plan.phases:
            needed_chains = [[step for step in chain if not step.name.startswith(SKIPPED)] for chain in chains]
            runner.make([chain for chain in needed_chains if chain])
        return plan

    @cached_property
    def loaded(self) -> LoadedModel:
        return LoadedModel.load(self.model, self.texts.sources, self.threads)

    @cached_property
    def measures(self) -> Measures:
        """The measures of the table without similarities."""
        bitext = self.config.bitext

        def request(scan: TableScan) -> MeasureRequest:
            return MeasureRequest.of(
                self.needs, scan,
                weights=lambda: weights_of(self.model.ini, choose_table(self.model.ini, self.model.table)),
                corpora=(bitext.source, bitext.target) if bitext else None, forced_pairs=self.plan.forced_pairs,
            )  # fmt: skip

        return measure_file(self.model.table, TableScan(threads=self.threads), SILENT, request).whole()

    def pairs_for(self, loss: str) -> str:
        """Return the file of training pairs of a model."""
        if {**MODELS, **DIMENSIONS}[loss][0]:
            assert self.plan.forced_pairs is not None
            return self.plan.forced_pairs
        path = self.work / "plain-pairs.gz"
        if not path.exists():
            bitext = self.config.bitext
            assert bitext is not None
            command = [COMMAND, "force-decode", "--moses-ini", self.plan.ini, bitext.source, bitext.target]
            for option, table in (("--table", self.plan.table), ("--reordering-table", self.plan.reordering_table)):
                command += [option, table] if table else []
            subprocess.run([*command, "-o", str(path), "-q", "--threads", str(self.threads)], check=True)
        return str(path)

    def similarities(self, loss: str, seed: int) -> Measures:
        """Return the measures with the similarities of a model, trained if it is missing."""
        pairs = self.pairs_for(loss)
        folder = self.work / f"{loss}-{seed}"
        scores = folder / "scores.parquet"
        if not scores.exists():
            shutil.rmtree(folder, ignore_errors=True)
            # No pairs are held out, as for the models of stored results.
            train = [COMMAND, "train", pairs, "-o", str(folder), "--seed", str(seed), "--device", "cpu", "-q"]
            train += ["--held-out", "0"]
            subprocess.run([*train, *{**MODELS, **DIMENSIONS}[loss][1]], check=True)
            score = [
                COMMAND,
                "prune",
                self.model.table,
                "-m",
                str(folder),
                "--similarities",
                str(scores),
                "--sweep",
                "0:0:1",
            ]
            subprocess.run([*score, "-q", "--threads", str(self.threads)], check=True, stdout=subprocess.DEVNULL)

        return self.with_similarities(FileSimilarities(str(scores)))

    def with_similarities(self, source: SimilaritySource) -> Measures:
        """Return the measures with similarities of any source."""

        def request(scan: TableScan) -> MeasureRequest:
            return MeasureRequest(similarities={SIMILARITIES: source}, scan=scan)

        similar = measure_file(self.model.table, TableScan(threads=self.threads), SILENT, request).whole()
        return self.measures.with_columns({SIMILARITIES: similar[SIMILARITIES], SCORED: similar[SCORED]})

    def _row(self, system: PruningSystem, loss: str, seed: int) -> dict[str, Any]:
        return {**self.facts, "loss": loss, "model_seed": seed, **asdict(system)}

    def lacks(self, systems: Sequence[PruningSystem], loss: str, seed: int) -> bool:
        """Return whether some of the systems have no results yet."""
        return not all(self.results.has(self._row(system, loss, seed)) for system in systems)

    def translate(self, systems: Sequence[PruningSystem], measures: Measures, loss: str = "", seed: int = 0) -> None:
        """Translate all texts with pruned tables, unless their results are stored."""
        counts = measures[COUNTS].astype(np.float64)
        labels = {
            system: f"{loss} {seed} {system}"
            for system in systems
            if not self.results.has(self._row(system, loss, seed))
        }
        skipped = lambda label, reason: print(f"  {label}: {reason}", flush=True)  # noqa: E731
        for run in plan_runs(labels, measures, self.identity, self.model.weights, skipped):
            record = decode_run(lambda: self.loaded, run, self.store)
            occurrences = float(counts[run.keep].sum() / counts.sum())
            row = {
                **self._row(run.system, loss, seed), "entries": run.entries, "of": run.of,
                "occurrences": round(occurrences, 6),
            }  # fmt: skip
            self.results.add(row, self.statistics_of(record["translations"]))

    def statistics_of(self, translations: Mapping[str, Sequence[str]]) -> np.ndarray:
        """Return the `STATISTICS` of all sentences, int16, shape (S, len(STATISTICS))."""
        parts = [sentence_statistics(translations[name], lines) for name, lines in self.texts.references.items()]
        return np.concatenate(parts)[:, STATISTICS].astype(np.int16)

    def full_statistics(self) -> np.ndarray:
        """Return the statistics with the full table."""
        labels = {PruningSystem(): "full"}
        skipped = lambda label, reason: None  # noqa: E731
        (run,) = plan_runs(labels, self.measures, self.identity, self.model.weights, skipped)
        return self.statistics_of(decode_run(lambda: self.loaded, run, self.store)["translations"])
