"""Comparison of losses: accuracy on held-out pairs over several seeds, and training speed.

The pairs are from forced decoding of Multi30k German-English (the reference run's) and Tatoeba Chinese-English (the
pruning study's, or computed here).  The same 2,000 pairs are held out for all losses; each true target is ranked among
1,000 held-out targets by the mean of both similarities.  A seed changes all random choices of training.  All other
settings are the defaults of `phrasetool train` for each loss.

Speed is measured for whole training iterations (both languages, including encoding), and for the loss and its gradient
alone on a batch of 512 pairs; all losses are run in turn, and medians are reported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import COMMAND, DATA, ROOT, WORK, reference, report, turns

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input
from phrasetool.phrase_encoder.losses import OBJECTIVES, FrozenBatch, JointObjective, objective, unit_vectors
from phrasetool.phrase_encoder.settings import VECTORS, TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer
from phrasetool.training.data import PhrasePairs

HELD_OUT = 2000
UNCORRECTED = "in-batch without correction"
# Loss -> settings that differ from the defaults.
LOSSES: dict[str, dict[str, Any]] = {
    **{loss: {"loss": loss} for loss in OBJECTIVES},
    UNCORRECTED: {"loss": "in-batch", "correction": 0.0, "temperature": 0.1, "count_exponent": 0.0},
}
BATCH = 512
POOL = 50_000
RESULTS = ROOT / "benchmarks" / "results" / "objectives.json"


def multi30k() -> Path:
    """Return the forced-decoding pairs of the reference run."""
    return reference() / "forced-pairs.gz"


def tatoeba() -> Path:
    """Return the forced-decoding pairs of Tatoeba: the pruning study's, or computed here."""
    studied = WORK / "experiments" / "tatoeba-zh-en" / "build" / "pairs.gz"
    if studied.is_file():
        return studied
    data, folder = DATA / "tatoeba-zh-en", WORK / "tatoeba-zh-en"
    folder.mkdir(parents=True, exist_ok=True)
    text = [str(data / "train.zh.gz"), str(data / "train.en.gz")]
    dev = ["--dev", str(data / "dev.zh"), str(data / "dev.en")]
    table = ["--table", str(folder / "table.gz"), "--reordering-table", str(folder / "reordering.gz")]
    steps = {
        "aligned.gz": ["align", *text],
        "table.gz": ["extract", *text, str(folder / "aligned.gz"), *table[2:]],
        "lm.arpa.gz": ["lm", text[1], "--order", "5"],
        "start.ini": ["moses-ini", *table, "--lm", str(folder / "lm.arpa.gz")],
        "moses.ini": ["tune", "--moses-ini", str(folder / "start.ini"), *dev, "--search", "cube"],
        "pairs.gz": ["force-decode", "--moses-ini", str(folder / "moses.ini"), *text],
    }
    for output, command in steps.items():
        if not (folder / output).is_file():
            subprocess.run([COMMAND, *command, "-o", str(folder / output)], check=True)
    return folder / "pairs.gz"


PAIRS: dict[str, Callable[[], Path]] = {"multi30k-de-en": multi30k, "tatoeba-zh-en": tatoeba}


def split(name: str) -> tuple[str, str]:
    """Write the training and the held-out pairs; return their paths."""
    with gzip.open(PAIRS[name]()) as file:
        lines = file.readlines()
    order = np.random.default_rng(0).permutation(len(lines))
    paths = []
    for part, index in (("train", np.sort(order[HELD_OUT:])), ("held-out", order[:HELD_OUT])):
        path = WORK / f"objectives-{name}-{part}.txt"
        path.write_bytes(b"".join(lines[i] for i in index))
        paths.append(str(path))
    return paths[0], paths[1]


def accuracy(train: str, held_out: str, model: str, flags: list[str]) -> float:
    """Return accuracy@1 of a model trained with some flags."""
    subprocess.run(
        [COMMAND, "train", train, "-o", model, "--overwrite", "--device", "cpu", "--held-out", "0", "-q", *flags],
        check=True,
    )
    process = subprocess.run(
        [COMMAND, "evaluate-model", held_out, "-m", model, "--json"], check=True, capture_output=True
    )
    return round(json.loads(process.stdout)["accuracy_at_1"], 4)


def accuracies(train: str, held_out: str, model: str, flags: list[str], seeds: int) -> dict[str, Any]:
    """Return mean, standard deviation and values of accuracy@1 for seeds 1 .. `seeds`; `model` keeps the last one."""
    values = [accuracy(train, held_out, model, [*flags, "--seed", str(seed)]) for seed in range(1, seeds + 1)]
    deviation = statistics.stdev(values) if seeds > 1 else 0.0
    return {"accuracy_at_1": round(statistics.mean(values), 4), "deviation": round(deviation, 4), "seeds": values}


def training_seconds(pairs: PhrasePairs, ways: dict[str, dict[str, Any]], rounds: int) -> dict[str, list[float]]:
    """Return seconds per training iteration for each of several settings, in turn, after a warm-up iteration.

    Args:
        pairs: training pairs.
        ways: name -> settings that differ from the defaults.
        rounds: number of measured iterations for each.
    """
    runs = {}
    for name, changes in ways.items():
        # With a constant step size, an increase of the error would end the training.
        merged_settings = {"loss": "in-batch", **changes, "pretrain_iterations": 0, "schedule": "linear"}
        settings = TrainingSettings.for_loss(**merged_settings, iterations=rounds + 1)
        kind = settings.kind
        initial = []
        for which, vocabulary in enumerate((pairs.source_vocabulary, pairs.target_vocabulary)):
            rng = np.random.default_rng([1, which])
            shape = (len(vocabulary), kind.word_dimension(settings.dimension))
            vectors = rng.normal(0, settings.vector_scale, shape).astype(np.float32)
            initial.append(kind.initial(vectors, settings.dimension, settings.start, rng))
        runs[name] = PhraseTrainer(pairs, settings, initial[0], initial[1]).run()
    return turns(runs, rounds)


def loss_milliseconds(losses: list[str], dimension: int, rounds: int = 30) -> dict[str, float]:
    """Return median milliseconds of each loss and its gradient for a batch, on one thread, losses in turn."""
    rng = np.random.default_rng(1)
    predicted, positive, corrupted = torch.tensor(rng.normal(size=(3, BATCH, dimension)), dtype=torch.float32).tanh()
    pool = unit_vectors(torch.tensor(rng.normal(size=(POOL, dimension)), dtype=torch.float32))
    predicted.requires_grad_()
    log_shares = (torch.full((BATCH,), -8.0), torch.full((BATCH,), -8.0))
    seconds: dict[str, list[float]] = {loss: [] for loss in losses}
    for number in range(rounds + 1):
        for loss in losses:
            measure = objective(loss)
            frozen = FrozenBatch(positive, corrupted, pool, rng)
            began = time.perf_counter()
            if isinstance(measure, JointObjective):
                batch_losses = measure.batch_losses(predicted, positive, log_shares)
            else:
                batch_losses = measure.frozen_losses(predicted, frozen)
            torch.autograd.grad(batch_losses.mean(), predicted)
            if number:
                seconds[loss].append(time.perf_counter() - began)
    return {loss: round(1000 * statistics.median(values), 3) for loss, values in seconds.items()}


def measured(name: str, losses: list[str], seeds: int, encoder: str, rounds: int, more: list[str]) -> dict:
    """Return accuracy and speed of the losses on some pairs; `more` is passed to `phrasetool train`."""
    train, held_out = split(name)
    more = ["--encoder", encoder, *more]
    results: dict[str, Any] = {}
    for loss in losses if seeds else ():
        model = str(WORK / "objectives-model")
        flags = [part for name, value in LOSSES[loss].items() for part in (f"--{name.replace('_', '-')}", str(value))]
        results[loss] = accuracies(train, held_out, model, [*flags, *more], seeds)
        print(name, encoder, loss, results[loss], flush=True)
    if not rounds:
        return results
    with Input(train) as source:
        pairs = read_training_pairs(source)
    settings_by_loss = {loss: {**LOSSES[loss], "encoder": encoder} for loss in losses}
    for loss, seconds in training_seconds(pairs, settings_by_loss, rounds).items():
        results.setdefault(loss, {})["pairs_per_second"] = round(len(pairs) / statistics.median(seconds))
    return results


def markdown(figures: dict[str, Any], run: str) -> str:
    """Return a Markdown table with accuracy, deviation and speed on each corpus, and milliseconds of each loss."""
    names = [name for name in PAIRS if run in figures.get(name, {})]
    alone = figures["loss_milliseconds"]
    heads = ["loss", *(f"{name}: accuracy@1 | pairs/s" for name in names), *(f"ms alone, n = {n}" for n in alone)]
    lines = ["| " + " | ".join(heads) + " |"]
    lines.append("|" + "---|" * (lines[0].count("|") - 1))
    for loss in LOSSES:
        cells = [loss]
        for name in names:
            row = figures[name][run].get(loss, {})
            cells += [f"{row['accuracy_at_1']:.3f} ± {row['deviation']:.3f}" if "accuracy_at_1" in row else ""]
            cells += [f"{row['pairs_per_second']:,}" if "pairs_per_second" in row else ""]
        cells += [f"{times[loss]:.2f}" if loss in times else "" for times in alone.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--encoder", default="rae")
    parser.add_argument("--seeds", type=int, default=4, help="1 .. N; 0: only speed")
    parser.add_argument("--rounds", type=int, default=3, help="iterations timed with each loss; 0: only accuracy")
    parser.add_argument("--vectors", choices=VECTORS, help="what word vectors start from, not what a loss wants")
    parser.add_argument("--iterations", type=int, help="for a trial; then nothing is kept")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    # Earlier measurements are kept unless repeated.
    figures: dict[str, Any] = {}
    if RESULTS.is_file() and not options.iterations:
        figures = {key: value for key, value in json.loads(RESULTS.read_text()).items() if isinstance(value, dict)}
    more = ["--iterations", str(options.iterations)] if options.iterations else []
    more += ["--vectors", options.vectors] if options.vectors else []
    run = options.encoder + (f", {options.vectors} vectors" if options.vectors else "")
    for name in options.pairs:
        results = measured(name, options.losses, options.seeds, options.encoder, options.rounds, more)
        kept = figures.setdefault(name, {}).setdefault(run, {})
        for loss, row in results.items():
            kept.setdefault(loss, {}).update(row)
    alone = figures.setdefault("loss_milliseconds", {})
    for dimension in (50, 512) if options.rounds else ():
        alone.setdefault(str(dimension), {}).update(
            loss_milliseconds([loss for loss in options.losses if loss in OBJECTIVES], dimension)
        )
    if not options.iterations:
        report("objectives", figures)
    print(markdown(figures, run))


if __name__ == "__main__":
    main()
