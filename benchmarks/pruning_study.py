"""The pruning study: six language pairs, all criteria, models of several losses and seeds, one decoder per pair.

For each pair, the commands of `phrasetool experiment` build a decoder if necessary (one pair has a real Moses run) and
count phrase pairs in leave-one-out forced decoding.  Models are trained on these pairs: with the default loss and
BRAE's (`max-margin`), with three seeds each; and for comparison with the default loss without its correction, with the
mean-max encoder, and on the pairs of plain forced decoding.

The first seed is measured with every method and size.  The other seeds are measured where a claim depends on them: the
rule of the paper, similarity alone, and at each size the method that was best on the development set with the first
seed.

benchmarks/results/pruning_study/PAIR.npz holds the BLEU statistics of every sentence of every system, so that any two
systems can be compared later; PAIR.json describes each system and the commit that measured it.  `study.py` reads both.
Stored systems are not measured again if the decoder's translations are unchanged.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from measuring import ROOT
from study import DEFAULT_LOSS, RESULTS, SIZES, WITH, WITHOUT, Results, Study
from trial import MODELS, SEEDS, Trial, at_thresholds, of_size

from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.settings import KEEP_TOP, PruningSystem

CONFIGS = ROOT / "benchmarks" / "experiments"
PAIRS = [path.stem for path in sorted(CONFIGS.glob("*.toml"))]
WORK = ROOT / "benchmarks" / "work" / "pruning_study"
# Models that are only measured at a threshold and with similarity as the only criterion; one seed.
ASIDE = ("uncorrected", "plain pairs", "mean-max")
# Methods that are measured for losses other than the default.
OTHER_LOSSES = ("semantic", "count+semantic", "composition+semantic")
THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)
SIGNIFICANCE_THRESHOLDS = ("8", "12", "16", "20", "a+e")


def systems_without() -> list[PruningSystem]:
    """Return the full table, and tables pruned without similarities."""
    systems = [PruningSystem(), *of_size("random", (0.1,))]
    for threshold in SIGNIFICANCE_THRESHOLDS:
        systems.append(PruningSystem(f"significance:{threshold}", "", "threshold", 0.0, "all", KEEP_TOP))
    for method in WITHOUT:
        systems += of_size(method)
    return systems


def systems_with(loss: str) -> list[PruningSystem]:
    """Return the tables pruned with the similarities of a model of the first seed."""
    if loss in ASIDE:
        return [*at_thresholds("semantic", (0.7,)), *of_size("semantic", (0.28, 0.1))]
    systems = [*at_thresholds("semantic", THRESHOLDS)]
    for method in WITH if loss == DEFAULT_LOSS else OTHER_LOSSES:
        systems += of_size(method)
    return systems


def claimed_systems(loss: str, pair: str) -> list[PruningSystem]:
    """Return the tables pruned with the similarities of a model of another seed, on which claims depend.

    Args:
        loss: loss of the model.
        pair: language pair, whose results for the first seed are stored.
    """
    sizes = SIZES if loss == DEFAULT_LOSS else (0.28, 0.1)
    systems = [*at_thresholds("semantic", (0.7,)), *of_size("semantic", sizes)]
    if loss == DEFAULT_LOSS:
        study = Study(pair)
        methods = {size: study.best_on_dev(WITH, size) for size in sizes}
        systems += [
            system for size, method in methods.items() for system in of_size(method, (size,)) if system not in systems
        ]
        systems += [system for system in of_size("composition+semantic+usage") if system not in systems]
    return systems


def trial_of(name: str, threads: int, results: Results, **more: Any) -> Trial:
    """Return the trial of a language pair."""
    return Trial(read_experiment_config(str(CONFIGS / f"{name}.toml")), WORK / name, results, threads, **more)


def run(name: str, losses: list[str], seeds: tuple[int, ...], threads: int) -> None:
    """Measure all systems of a language pair."""
    began = time.monotonic()
    results = Results(RESULTS, name)
    trial = trial_of(name, threads, results)
    print(f"{name}: built after {time.monotonic() - began:.0f} s", flush=True)
    results.take_over(trial.full_statistics(), MODELS)
    trial.translate([PruningSystem(), *systems_without()], trial.measures)
    candidates, entries = np.diff(trial.measures.group_offsets), len(trial.measures)
    results.facts = {
        # Shares of entries: those of sources with at most ten entries, and the ten best of every source.
        "of sources with at most ten": round(float(candidates[candidates <= KEEP_TOP].sum() / entries), 4),
        "ten best": round(float(np.minimum(candidates, KEEP_TOP).sum() / entries), 4),
        "name": trial.config.name, "models": MODELS,
    }  # fmt: skip
    results.save()
    print(f"{name}: without similarities after {time.monotonic() - began:.0f} s", flush=True)
    for seed in seeds:
        for loss in losses:
            if loss in ASIDE and seed > 1:
                continue
            systems = systems_with(loss) if seed == 1 else claimed_systems(loss, name)
            if trial.lacks(systems, loss, seed):
                trial.translate(systems, trial.similarities(loss, seed), loss, seed)
                results.save()
            print(f"{name}: {loss}, seed {seed} after {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PAIR")
    parser.add_argument("--losses", default=",".join(MODELS), help="which models")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if unknown := set(options.pairs) - set(PAIRS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(PAIRS)}")
    for name in options.pairs:
        run(name, options.losses.split(","), SEEDS[: options.seeds], options.threads)


if __name__ == "__main__":
    main()
