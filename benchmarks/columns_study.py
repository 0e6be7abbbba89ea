"""Gain in BLEU from score columns: six language pairs, weights tuned again for tables with columns.

Decoders, forced decoding and models are those of `pruning_study.py`.  Each system is tuned by batch MIRA from default
weights with three seeds, on the development set; where columns contain similarities, each tuning seed uses the model
trained with the same seed, so that intervals include the variation between trainings.

    similarities     the two similarities: of the default model, of BRAE's loss, and of models with n = 100 and n = 200
    smoothed         the two probabilities from Kneser-Ney smoothing of the table's counts
    forced           the two probabilities from the usage counts of leave-one-out forced decoding
    tenth            the table pruned to a tenth by `composition+semantic+usage` with the default model of seed 1

benchmarks/results/columns_study/PAIR.npz holds the BLEU statistics of every sentence of every system, PAIR.json
describes the systems; `study.SentenceStatistics` reads both.  Systems that are stored there are not tuned again.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from measuring import ROOT
from pruning_study import CONFIGS, PAIRS, WORK
from study import DEFAULT_LOSS, DEV, Results
from trial import DIMENSIONS, MODELS, SEEDS, Trial

from moses_compat.experiments.compared_tables import (
    TableDecisions,
    TuningPlan,
    annotated,
    column_values,
    tuned_run,
    tuning_key,
    with_default_weights,
)
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.settings import AFFORDABLE, PruningSystem
from phrasetool.phrases import Mask
from phrasetool.pruning.measures import COUNTS, LOSSES, OCCURRENCES, USES, Measure, Measures
from phrasetool.pruning.measures import FORCED as FORCED_PROBABILITIES
from phrasetool.pruning.measures import SMOOTHED as SMOOTHED_PROBABILITIES

RESULTS = ROOT / "benchmarks" / "results" / "columns_study"
SIMILAR, SMOOTHED, FORCED = "semantic", "kneser-ney", "forced"
BRAE = "max-margin"
METHOD, TENTH = "composition+semantic+usage", 0.1
# Pairs whose pruned tables are also tuned, and the pair for models of other dimensions.
PRUNED = ("enja-small", "multi30k-cs-en", "multi30k-de-en", "tatoeba-zh-en")
REFERENCE = "multi30k-de-en"


@dataclass(frozen=True)
class TunedSystem:
    """A table that is tuned.

    Attributes:
        columns: appended columns, joined by `+`; none if empty.
        loss: of the model whose similarities are among the columns; "" without similarities.
        size: share of the entries that the table keeps.
    """

    columns: str = ""
    loss: str = ""
    size: float = 1.0


def systems(pair: str) -> Iterator[TunedSystem]:
    """Yield the systems of a language pair, the plain table first."""
    yield TunedSystem()
    yield TunedSystem(SIMILAR, DEFAULT_LOSS)
    yield TunedSystem(f"{SMOOTHED}+{FORCED}")
    yield TunedSystem(f"{SMOOTHED}+{FORCED}+{SIMILAR}", DEFAULT_LOSS)
    yield TunedSystem(SIMILAR, BRAE)
    yield TunedSystem(SMOOTHED)
    if pair in PRUNED:
        yield TunedSystem("", "", TENTH)
        yield TunedSystem(f"{SMOOTHED}+{FORCED}+{SIMILAR}", DEFAULT_LOSS, TENTH)
    if pair == REFERENCE:
        for loss in DIMENSIONS:
            yield TunedSystem(SIMILAR, loss)


class TunedTrial(Trial):
    """A decoder whose tables are tuned with columns."""

    def pruned(self, measures: Measures) -> Mask:
        """Return which entries the table pruned to a tenth keeps: bool, shape (N,)."""
        decisions = TableDecisions(measures)
        return decisions.keep(decisions.with_keep_top(PruningSystem(METHOD, "", "size", TENTH, "words", AFFORDABLE)))

    def tune(self, system: TunedSystem, seed: int) -> dict[str, Any]:
        """Tune a system and translate all texts; finished work is read from the work folder."""
        model = with_default_weights(self.model)
        measures = self.similarities(system.loss, seed) if system.loss else self.measures
        values = column_values(measures, [part for part in system.columns.split("+") if part])
        keep = self.pruned(self.similarities(DEFAULT_LOSS, SEEDS[0])) if system.size < 1 else None
        plan = TuningPlan(DEV, "".join(f"{line}\n" for line in self.texts.references[DEV]).encode())
        key = tuning_key(self.identity, model, values, keep, plan, seed)
        load = functools.partial(annotated, self.loaded, model, values)
        return tuned_run(load, keep, plan, seed, self.store, key, asdict(system))

    def add(self, system: TunedSystem, seed: int) -> None:
        """Measure a system with a seed, unless its results are stored."""
        row = {**asdict(system), "seed": seed}
        if self.results.has(row):
            return
        began = time.monotonic()
        record = self.tune(system, seed)
        self.results.add({**row, "runs": len(record["runs"])}, self.statistics_of(record["translations"]))
        self.results.save()
        print(f"{self.config.name}: {system}, seed {seed}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PAIR")
    parser.add_argument("--systems", type=int, help="only the first N systems of each pair")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    needs: frozenset[Measure[Any]] = frozenset(
        {COUNTS, LOSSES, OCCURRENCES, USES, FORCED_PROBABILITIES, SMOOTHED_PROBABILITIES}
    )
    models = {**MODELS, **DIMENSIONS}
    for name in options.pairs:
        results = Results(RESULTS, name)
        config = read_experiment_config(str(CONFIGS / f"{name}.toml"))
        trial = TunedTrial(config, WORK / name, results, options.threads, needs)
        first = trial.tune(TunedSystem(), SEEDS[0])
        results.take_over(trial.statistics_of(first["translations"]), models)
        results.facts = {"name": config.name, "models": models, "method": METHOD}
        for system in list(systems(name))[: options.systems]:
            for seed in SEEDS:
                trial.add(system, seed)


if __name__ == "__main__":
    main()
