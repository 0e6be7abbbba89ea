"""The pruning study: six language pairs, every criterion, models of several losses and seeds, one decoder a pair.

For each pair, `phrasetool experiment`'s commands build a decoder where there is none (one pair has a real Moses run)
and count phrase pairs in leave-one-out forced decoding.  Models are trained on these pairs: the default loss and BRAE's
(`max-margin`), three seeds each; and for comparison the default loss without its correction, and on the pairs of plain
forced decoding.  Tables are pruned in memory by the function that `phrasetool prune` uses, and
translate the development set and the test sets with the weights of the full table.

The first seed is measured with every method and size.  The other seeds are measured where a claim depends on them: the
rule of the paper, similarity alone, and at each size the method that was best on the development set with the first
seed.

benchmarks/results/pruning_study/PAIR.npz holds the BLEU statistics of every sentence of every system, so that any two
systems can be compared later; PAIR.json describes each system and the commit that measured it.  `study.py` reads both.
Systems that they hold are not measured again, if the decoder still translates as it did then.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, ROOT, machine
from study import DEFAULT_LOSS, RESULTS, SIZES, STATISTICS, WITH, WITHOUT, Study, write_statistics

from moses_compat.engine.laboratory import Laboratory
from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build import BuildPlan, plan_build
from moses_compat.experiments.build_commands import BuildStore, CommandRunner
from moses_compat.experiments.pruned_tables import decode_run, plan_runs
from moses_compat.experiments.run_store import RunStore, decoder_identity
from moses_compat.experiments.text_sets import read_experiment_texts
from moses_compat.ini.tables import choose_table
from moses_compat.measures.measure import MeasureRequest, measure_file
from moses_compat.measures.model_weights import weights_of
from moses_compat.measures.similarities import FileSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.experiments.config import read_experiment_config
from phrasetool.experiments.systems import AFFORDABLE, KEEP_TOP, PruningSystem
from phrasetool.pruning.measures import (
    COUNTS,
    LOSSES,
    OCCURRENCES,
    OPINION,
    SIGNIFICANCE,
    SIMILARITIES,
    USES,
    Measure,
    Measures,
)
from phrasetool.smt.evaluation.bootstrap import sentence_statistics
from phrasetool.watch import NOBODY

CONFIGS = ROOT / "benchmarks" / "experiments"
PAIRS = [path.stem for path in sorted(CONFIGS.glob("*.toml"))]
WORK = ROOT / "benchmarks" / "work" / "pruning_study"
SEEDS = (1, 2, 3)
# Name -> whether pairs are those of leave-one-out forced decoding, and options of `phrasetool train`.
MODELS: dict[str, tuple[bool, list[str]]] = {
    "in-batch": (True, []),
    "max-margin": (True, ["--loss", "max-margin"]),
    "uncorrected": (True, ["--correction", "0", "--count-exponent", "0", "--temperature", "0.1"]),
    "plain pairs": (False, []),
}
# Models of other dimensions, whose similarities serve as columns only.
DIMENSIONS: dict[str, tuple[bool, list[str]]] = {
    "n = 100": (True, ["--dimension", "100"]),
    "n = 200": (True, ["--dimension", "200"]),
}
# Compared with others at a threshold and where similarity decides alone; one seed.
ASIDE = ("uncorrected", "plain pairs")
# Methods that are measured for losses other than the default.
OTHER_LOSSES = ("semantic", "count+semantic", "composition+semantic")
# Steps of `phrasetool experiment` that are not needed: this study trains its own models.
SKIPPED = ("train", "scores")
THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)
SIGNIFICANCE_THRESHOLDS = ("8", "12", "16", "20", "a+e")


def of_size(method: str, sizes: tuple[float, ...] = SIZES) -> Iterator[PruningSystem]:
    """Tables of some sizes, one-word sources protected."""
    combine = "product" if "+" in method else ""
    for size in sizes:
        yield PruningSystem(method, combine, "size", size, "words", AFFORDABLE, int(method == "random"))


def at_thresholds(method: str, thresholds: tuple[float, ...]) -> Iterator[PruningSystem]:
    """Tables by the rule of Zhang et al.: the ten best of every source stay."""
    for threshold in thresholds:
        yield PruningSystem(method, "", "threshold", threshold, "all", KEEP_TOP)


def systems_without() -> list[PruningSystem]:
    """The full table, and tables pruned without similarities."""
    found = [PruningSystem(), *of_size("random", (0.1,))]
    for threshold in SIGNIFICANCE_THRESHOLDS:
        found.append(PruningSystem(f"significance:{threshold}", "", "threshold", 0.0, "all", KEEP_TOP))
    for method in WITHOUT:
        found += of_size(method)
    return found


def systems_with(loss: str) -> list[PruningSystem]:
    """Tables pruned with the similarities of a model of the first seed."""
    if loss in ASIDE:
        return [*at_thresholds("semantic", (0.7,)), *of_size("semantic", (0.28, 0.1))]
    found = [*at_thresholds("semantic", THRESHOLDS)]
    for method in WITH if loss == DEFAULT_LOSS else OTHER_LOSSES:
        found += of_size(method)
    return found


def claimed_systems(loss: str, pair: str) -> list[PruningSystem]:
    """Tables pruned with the similarities of a model of another seed: what claims are made about.

    Args:
        loss: of the model.
        pair: whose results for the first seed are stored.
    """
    sizes = SIZES if loss == DEFAULT_LOSS else (0.28, 0.1)
    found = [*at_thresholds("semantic", (0.7,)), *of_size("semantic", sizes)]
    if loss == DEFAULT_LOSS:
        study = Study(pair)
        methods = {size: study.best_on_dev(WITH, size) for size in sizes}
        found += [one for size, method in methods.items() for one in of_size(method, (size,)) if one not in found]
        found += [one for one in of_size("composition+semantic+usage") if one not in found]
    return found


@dataclass
class Pair:
    """A language pair at work: its decoder, its table's measures, and what was translated."""

    name: str
    threads: int
    commit: str
    # What is measured of the table, besides similarities.
    needs: frozenset[Measure[Any]] = frozenset({COUNTS, LOSSES, OCCURRENCES, SIGNIFICANCE, USES})

    def __post_init__(self) -> None:
        self.config = read_experiment_config(str(CONFIGS / f"{self.name}.toml"))
        self.texts = read_experiment_texts(self.config)
        self.work = WORK / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.plan = self._built()
        model = MosesModel.read(self.plan.ini, self.plan.table, self.plan.reordering_table)
        search = self.config.search
        self.model = model.searching(
            algorithm=search.algorithm, stack_size=search.stack, pop_limit=search.pop_limit,
            table_limit=search.table_limit,
        )  # fmt: skip
        self.identity = decoder_identity(self.model, self.texts.sources)
        self.store = RunStore(str(self.work / "runs"))
        self.statistics: list[np.ndarray] = []
        self.rows: list[dict[str, Any]] = []
        self._known: set[str] = set()

    def _built(self) -> BuildPlan:
        """Build a decoder and count pairs in leave-one-out forced decoding."""
        folder = Path(self.config.output) / "build"
        store = BuildStore(str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        plan = plan_build(self.config, self.config.dev, store.path)
        runner = CommandRunner(store, [COMMAND], self.threads, lambda message: print(f"  {message}", flush=True))
        for chains in plan.phases:
            own = [[one for one in chain if not one.name.startswith(SKIPPED)] for chain in chains]
            runner.make([chain for chain in own if chain])
        return plan

    @cached_property
    def laboratory(self) -> Laboratory:
        return Laboratory.load(self.model, self.texts.sources, self.threads)

    @cached_property
    def measures(self) -> Measures:
        """Of the table, without similarities."""
        bitext = self.config.bitext
        assert bitext is not None

        def request(scan: TableScan) -> MeasureRequest:
            return MeasureRequest.of(
                self.needs, scan,
                weights=lambda: weights_of(self.model.ini, choose_table(self.model.ini, self.model.table)),
                corpora=(bitext.source, bitext.target), forced_pairs=self.plan.forced_pairs,
            )  # fmt: skip

        return measure_file(self.model.table, TableScan(threads=self.threads), NOBODY, request).whole()

    def pairs_for(self, loss: str) -> str:
        """The file that a model is trained on."""
        assert self.plan.forced_pairs is not None
        if {**MODELS, **DIMENSIONS}[loss][0]:
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
        """The measures with the similarities of a model, which is trained where there is none."""
        pairs = self.pairs_for(loss)
        folder = self.work / f"{loss}-{seed}"
        scores = folder / "scores.parquet"
        if not scores.exists():
            shutil.rmtree(folder, ignore_errors=True)
            train = [COMMAND, "train", pairs, "-o", str(folder), "--seed", str(seed), "--device", "cpu", "-q"]
            subprocess.run([*train, *{**MODELS, **DIMENSIONS}[loss][1]], check=True)
            score = [COMMAND, "prune", self.model.table, "-m", str(folder), "--scores", str(scores), "--sweep", "0:0:1"]
            subprocess.run([*score, "-q", "--threads", str(self.threads)], check=True, stdout=subprocess.DEVNULL)

        def request(scan: TableScan) -> MeasureRequest:
            source = {SIMILARITIES: FileSimilarities(str(scores))}
            return MeasureRequest(similarities=source, scan=scan)

        found = measure_file(self.model.table, TableScan(threads=self.threads), NOBODY, request).whole()
        return self.measures.with_columns({SIMILARITIES: found[SIMILARITIES], OPINION: found[OPINION]})

    def lacks(self, systems: list[PruningSystem], loss: str, seed: int) -> bool:
        """Whether some of the systems have no results yet."""
        rows = [{"loss": loss, "model_seed": seed, **asdict(system)} for system in systems]
        return any(_identity(row) not in self._known for row in rows)

    def translate(self, systems: list[PruningSystem], measures: Measures, loss: str = "", seed: int = 0) -> None:
        """Translate all texts with some tables."""
        counts = measures[COUNTS].astype(np.float64)
        labels = {
            system: f"{loss} {seed} {system}" for system in systems
            if _identity({"loss": loss, "model_seed": seed, **asdict(system)}) not in self._known
        }  # fmt: skip
        skipped = lambda label, reason: print(f"  {label}: {reason}", flush=True)  # noqa: E731
        for run in plan_runs(labels, measures, self.identity, self.model.weights, skipped):
            record = decode_run(lambda: self.laboratory, run, self.store)
            occurrences = float(counts[run.keep].sum() / counts.sum())
            self._add({
                "loss": loss, "model_seed": seed, **asdict(run.system), "entries": run.entries, "of": run.of,
                "occurrences": round(occurrences, 6), "commit": self.commit,
            }, self.statistics_of(record["translations"]))  # fmt: skip

    def statistics_of(self, translations: Mapping[str, Sequence[str]]) -> np.ndarray:
        """The `STATISTICS` of all sentences, int16, shape (S, len(STATISTICS))."""
        parts = [sentence_statistics(translations[name], lines) for name, lines in self.texts.references.items()]
        return np.concatenate(parts)[:, STATISTICS].astype(np.int16)

    def _add(self, row: dict[str, Any], statistics: np.ndarray) -> None:
        self._known.add(_identity(row))
        self.rows.append(row)
        self.statistics.append(statistics)

    def start(self) -> None:
        """Translate with the full table, and take over stored results if they are of the same decoder and models."""
        self.translate([PruningSystem()], self.measures)
        if not (RESULTS / f"{self.name}.json").exists():
            return
        study = Study(self.name)
        if json.loads(json.dumps(MODELS)) != study.facts["models"]:
            print(f"{self.name}: stored results are of other models and are measured again", flush=True)
        elif not np.array_equal(study.statistics(0), self.statistics[0]):
            print(f"{self.name}: stored results are of another decoder and are measured again", flush=True)
        else:
            for number, row in enumerate(study.facts["systems"][1:], 1):
                self._add({"commit": study.facts["commit"], **row}, study.statistics(number))

    def save(self) -> None:
        """Store all results."""
        candidates = np.diff(self.measures.group_offsets)
        entries = len(self.measures)
        facts = {
            # Shares of the entries: of sources with at most ten, and that the ten best of every source are.
            "of sources with at most ten": round(float(candidates[candidates <= KEEP_TOP].sum() / entries), 4),
            "ten best": round(float(np.minimum(candidates, KEEP_TOP).sum() / entries), 4),
            "name": self.config.name, "machine": machine(), "commit": self.commit,
            "models": MODELS,
        }  # fmt: skip
        write_statistics(RESULTS, self.name, self.rows, self.statistics, self.texts.references, facts)


def _identity(row: dict[str, Any]) -> str:
    """A key of a system: neither its results nor the number of entries that could be protected are part of it."""
    names = ["loss", "model_seed", *asdict(PruningSystem())]
    return json.dumps([row[name] for name in names if name != "keep_top"])


def current_commit() -> str:
    """The commit of the checkout that measures."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def run(name: str, losses: list[str], seeds: tuple[int, ...], threads: int, commit: str) -> None:
    """All systems of a language pair."""
    began = time.monotonic()
    pair = Pair(name, threads, commit)
    print(f"{name}: built after {time.monotonic() - began:.0f} s", flush=True)
    pair.start()
    pair.translate(systems_without(), pair.measures)
    pair.save()
    print(f"{name}: without similarities after {time.monotonic() - began:.0f} s", flush=True)
    for seed in seeds:
        for loss in losses:
            if loss in ASIDE and seed > 1:
                continue
            systems = systems_with(loss) if seed == 1 else claimed_systems(loss, name)
            if pair.lacks(systems, loss, seed):
                pair.translate(systems, pair.similarities(loss, seed), loss, seed)
                pair.save()
            print(f"{name}: {loss}, seed {seed} after {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PAIR")
    parser.add_argument("--losses", default=",".join(MODELS), help="which models")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if unknown := set(options.pairs) - set(PAIRS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(PAIRS)}")
    commit = current_commit()
    for name in options.pairs:
        run(name, options.losses.split(","), SEEDS[: options.seeds], options.threads, commit)


if __name__ == "__main__":
    main()
