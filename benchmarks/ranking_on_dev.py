"""How the bounds and exponents of `composition+semantic+usage` were chosen: BLEU of development sets, all six pairs.

The worth of an entry is count^a * min(max(loss, least), most) * similarity^g * p(target | source)^b * uses^u, where an
entry without a composition loses `most`, and uses is (uses in leave-one-out forced decoding + r) / (count + 1), r the
uses of all entries over their counts.  By every variant the table is pruned to 10 and to 5 % of the entries (one-word
sources protected, as many of their best as fit), and translates the development set with the weights of the full table.

Needs what `experiments.py` built; test sets are not looked at.  Only variants that are not in
benchmarks/results/ranking_on_dev.json yet are measured.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
from experiments import PAIRS, RESULTS, built_model, folder
from measuring import report

from moses_compat.engine.laboratory import Laboratory
from moses_compat.engine.model import MosesModel
from moses_compat.files.streams import Input
from moses_compat.ini.tables import choose_table
from moses_compat.measures.measure import MeasureRequest, measure_table
from moses_compat.measures.model_weights import weights_of
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.similarities import FileSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.experiments.config import read_experiment_config
from phrasetool.pruning.criteria import Usage
from phrasetool.pruning.decision import OfSize, Ranking, decide
from phrasetool.pruning.measures import COUNTS, LOSSES, PROBABILITIES, SIMILARITIES, Measures
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import AffordableBest
from phrasetool.smt.evaluation.metrics import evaluate

SIZES = (0.1, 0.05)
# least, most, a, g, b, u (0 if not said)
VARIANTS = {
    "count alone": (1, 1, 1, 0, 0),
    "loss 0..3, similarity^2": (0, 3, 1, 2, 0),
    "loss 0..1, similarity": (0, 1, 1, 1, 0),
    "loss 0.3..1": (0.3, 1, 1, 0, 0),
    "loss 0.3..1, similarity": (0.3, 1, 1, 1, 0),
    "loss 0.3..1, similarity^2": (0.3, 1, 1, 2, 0),
    "loss 0.3..3, similarity": (0.3, 3, 1, 1, 0),
    "loss 0.1..1, similarity": (0.1, 1, 1, 1, 0),
    "loss 0.6..1, similarity": (0.6, 1, 1, 1, 0),
    "count^1.5, loss 0.3..1, similarity": (0.3, 1, 1.5, 1, 0),
    "loss 0.3..1, similarity, p^0.3": (0.3, 1, 1, 1, 0.3),
    "loss 0.3..1, uses": (0.3, 1, 1, 0, 0, 1),
    "loss 0.3..1, similarity, uses": (0.3, 1, 1, 1, 0, 1),
    "loss 0.3..1, similarity, uses^0.5": (0.3, 1, 1, 1, 0, 0.5),
    "similarity, uses": (1, 1, 1, 1, 0, 1),
}


def worth(measures: Measures, least: float, most: float, a: float, g: float, b: float, u: float = 0) -> np.ndarray:
    """float32, shape (N,)."""
    loss = np.clip(measures[LOSSES], max(least, 1e-3), most)
    similarity = np.clip(measures[SIMILARITIES].mean(axis=1), 0.02, 1)
    probability = np.maximum(measures[PROBABILITIES], 1e-7)
    uses = Usage().factor(measures)
    return (measures[COUNTS] ** a * loss * similarity**g * probability**b * uses**u).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="*", default=list(PAIRS))
    names = parser.parse_args().pairs
    kept = RESULTS / "ranking_on_dev.json"
    # What was measured before stays; without the file, all is measured.
    figures: dict[str, dict[str, dict[str, float]]] = (
        json.loads(kept.read_text())["bleu of development sets"] if kept.exists() else {}
    )
    for name in names:
        there = figures.setdefault(name, {})
        missing = {label: values for label, values in VARIANTS.items() if label not in there}
        if not missing:
            continue
        ini, table, scores = built_model(name)
        model = MosesModel.read(ini, table)
        model = replace(model, search=replace(model.search, algorithm="cube", pop_limit=400, stack_size=400))
        with Input(table) as source:
            request = MeasureRequest(
                weights_of(model.ini, choose_table(model.ini, table)), FileSimilarities(scores), losses=True,
                forced_pairs=PairUses.read(str(folder(name) / "build" / "forced.gz")), scan=TableScan(threads=2),
            )  # fmt: skip
            measures = measure_table(source, request).whole()
        dev = read_experiment_config(str(PAIRS[name])).dev
        with open(dev.source, "rb") as text:
            laboratory = Laboratory.load(model, {"dev": text.read()}, 2)
        with open(dev.target, encoding="utf-8") as text:
            reference = text.read().splitlines()

        def bleu(keep: np.ndarray | None, laboratory: Laboratory = laboratory, lines: list[str] = reference) -> float:
            found = laboratory.translate(laboratory.translator(keep))["dev"]
            return round(evaluate([found], [lines], metrics=["bleu"], samples=10)[0].systems[0].score, 2)

        there["full"] = {"1": bleu(None)}
        for label, values in missing.items():
            said = worth(measures, *values)
            nobody = np.zeros(len(measures), np.bool_)
            ranking = Ranking(parse_method("count"), measures, said, said.astype(np.float64), nobody)
            found = there[label] = {}
            for size in SIZES:
                best = AffordableBest(measures, "words").best(int(size * len(measures)))
                found[f"{size:g}"] = bleu(decide(ranking, OfSize(size), best).keep)
    report("ranking_on_dev", {"bleu of development sets": figures})


if __name__ == "__main__":
    main()
