"""Tables for the documentation: translators that predict word vectors, as tables 1 and 2 of Bhat et al. (2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from neural_columns import compared
from stored import StoredStudy
from translators import ALIGNMENT_WEIGHTS, LENGTH_WEIGHTS, LOSSES, MARGINS, PAPER_LOSSES, PAPER_MARGINAL, SEEDS

from page_tables.kept_results import difference, find, markdown
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap

RUNS = StoredStudy("translators")

# Name of a system in the documentation -> prefix of its runs.
_SYSTEMS = {
    **{loss: loss for loss in LOSSES},
    "vmf, tuned regularisers": "vmf-tuned",
    "cross-entropy, 4 epochs": "equal-time-cross-entropy",
    "cross-entropy-tied, 4 epochs": "equal-time-cross-entropy-tied",
    "syn-projection, random targets": "random",
}
_MARGINAL = ("syn-projection", "syn-difference", "sampled", "most-informative")
# Tuned options of each loss with the paper's size.
_TUNED = {**dict.fromkeys(PAPER_MARGINAL, ("margin",)), "vmf": ("length_weight", "alignment_weight")}
_ACCURACIES = ("accuracy@1", "accuracy@2", "accuracy@5", "accuracy@10")
_COSINES = ("right: cosine with the nearest", "wrong: cosine with the nearest", "wrong: cosine with the target")


@cache
def _runs(system: str) -> tuple[dict[str, Any], ...]:
    """Return the results of a system's runs, one per seed."""
    records = [RUNS.record(f"{_SYSTEMS[system]}-{seed}") for seed in SEEDS]
    return tuple(record for record in records if record is not None)


@cache
def _samples(system: str) -> tuple[BleuSamples, ...]:
    """Return bootstrap samples of all test sets together for each seed, with the same sentences for all systems."""
    names = [f"{_SYSTEMS[system]}-{seed}" for seed in SEEDS]
    return tuple(_samples_of(name) for name in names if RUNS.arrays(name))


def _samples_of(name: str) -> BleuSamples:
    """Return bootstrap samples of a run."""
    statistics = RUNS.run(name).read()
    return _bootstrap(len(statistics))(statistics)


@cache
def _bootstrap(sentences: int) -> Bootstrap:
    return Bootstrap(sentences)


def _there() -> Iterator[tuple[str, tuple[dict[str, Any], ...]]]:
    for system in _SYSTEMS:
        if runs := _runs(system):
            yield system, runs


def _spread(values: Sequence[float]) -> str:
    """Format mean and standard deviation."""
    mean = f"{np.mean(values):.2f}"
    return f"{mean} ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def losses() -> str:
    """Return table 1: BLEU of each loss, and its difference to vMF over equally many seeds."""
    rows = []
    for system, runs in _there():
        margin = runs[0]["loss_options"].get("margin")
        seeds = min(len(runs), len(_samples("vmf")))
        difference_text = ""
        if system != "vmf":
            difference_text = difference(compared(_samples("vmf")[:seeds], _samples(system)[:seeds]))
        rows.append([
            system, f"{margin:g}" if margin and "cross" not in system else "", f"{len(runs)}",
            f"{np.mean([run['epochs'] for run in runs]):.0f}",
            f"{np.mean([run['cpu_seconds'] for run in runs]):.0f}",
            _spread([run["ALL"]["bleu"] for run in runs]), difference_text,
            f"{np.mean([_dropping(run) for run in runs]):+.2f}",
        ])  # fmt: skip
    head = "loss | margin | seeds | epochs | CPU seconds | BLEU | difference to vmf | without repeated words"
    return markdown(head, rows)


def _relative_time(processor: str) -> str:
    """Return the CPU time of four epochs of cross-entropy relative to eight of syn-projection, on a machine."""
    four, eight = (
        np.mean([run["cpu_seconds"] for run in _runs(system) if run["machine"].startswith(processor)])
        for system in ("cross-entropy, 4 epochs", "syn-projection")
    )
    return f"{four / eight:.1f}"


def _dropping(run: dict[str, Any]) -> float:
    """Return the gain in BLEU on the first test set from removing immediately repeated words."""
    return float(run["test_2016_flickr"]["without repetitions"] - run["test_2016_flickr"]["bleu"])


def predictions() -> str:
    """Return table 2: accuracy of predictions given the preceding words of the translation or the reference."""
    rows = []
    for kind in ("free-running", "teacher-forced"):
        for system, runs in _there():
            means = {name: np.mean([run[kind][name] for run in runs]) for name in (*_ACCURACIES, *_COSINES)}
            cosines = [f"{means[name]:.2f}" if "cross" not in system else "" for name in _COSINES]
            rows.append([kind, system, *(f"{100 * means[name]:.1f}" for name in _ACCURACIES), *cosines])
    head = "history | loss | @1 | @2 | @5 | @10 | right: nearest | wrong: nearest | wrong: target"
    return markdown(head, rows)


def margins(runs: str = "margin", losses: Sequence[str] = _MARGINAL) -> str:
    """Return a table of BLEU on the development set by margin, after a short training.

    Args:
        runs: prefix of the names of the runs.
        losses: losses with a margin; losses without results for all margins have no row.
    """
    rows = []
    for loss in losses:
        records = [RUNS.record(f"{runs}-{loss}-{value}") for value in MARGINS]
        if None in records:
            continue
        values = [record["dev"]["bleu"] for record in records]
        rows.append([loss, *(_marked(value, max(values)) for value in values)])
    return markdown("loss | " + " | ".join(f"{value:g}" for value in MARGINS), rows)


def _marked(value: float | None, best: float) -> str:
    """Format a value, in bold if it is the best."""
    if value is None:
        return ""
    return f"**{value:.2f}**" if value == best else f"{value:.2f}"


def regularisers_of_vmf(runs: str = "regularisers") -> str:
    """Return a table of BLEU on the development set by the two regularisers of vMF, after a short training.

    Cells without results are empty.

    Args:
        runs: prefix of the names of the runs.
    """
    grid = [
        [RUNS.record(f"{runs}-{length}-{alignment}") for alignment in ALIGNMENT_WEIGHTS] for length in LENGTH_WEIGHTS
    ]
    best = max(record["dev"]["bleu"] for row in grid for record in row if record)
    rows = []
    for length, records in zip(LENGTH_WEIGHTS, grid, strict=True):
        values = [record["dev"]["bleu"] if record else None for record in records]
        rows.append([f"{length:g}", *(_marked(value, best) for value in values)])
    head = ["weight of the length \\ factor of the dot product", *(f"{alignment:g}" for alignment in ALIGNMENT_WEIGHTS)]
    return markdown(" | ".join(head), rows)


def negatives() -> str:
    """Return a table of words nearest to synthetic negatives that are neither the correct nor the predicted word."""
    rows = [
        [example["right"], example["predicted"], example["negative"], str(example["times"])]
        for example in find("synthetic_negatives/examples")
    ]
    return markdown("right word | nearest to the prediction | nearest to the negative | times", rows, 3)


def other_pairs() -> str:
    """Return a table of the default loss on other language pairs, and with the paper's size."""
    rows = []
    for name in ("multi30k-cs-en", "tatoeba-zh-en", "paper-size"):
        run = RUNS.record(f"{name}-1")
        tests = [f"{name}: {run[name]['bleu']:.2f}" for name in run if name.startswith("test") or name == "ALL"]
        preset = "lstm" if name == "paper-size" else "gru"
        row = [run["corpus"], preset, f"{run['epochs']}", "; ".join(tests), f"{run['cpu_seconds'] / 60:.1f}"]
        rows.append(row)
    return markdown("pair | preset | epochs | BLEU | CPU minutes", rows)


def paper_size() -> str:
    """Return a table of translators trained as in the paper, and a small one on the same pairs."""
    losses = [*PAPER_LOSSES, *(f"tuned-{loss}" for loss in PAPER_LOSSES)]
    runs = {"third-1": "gru", **{f"paper-third-{loss}-1": "lstm" for loss in losses}}
    first, vmf = (_samples_of(name) for name in ("third-1", "paper-third-vmf-1"))
    rows = []
    for name, preset in runs.items():
        run = RUNS.record(name)
        if run is None:
            continue
        values = [run["loss_options"][name] for name in _TUNED.get(run["loss"], ())]
        options = ", ".join(f"{value:g}" for value in values)
        best = 1 + int(np.argmin(run["development_losses"]))
        samples = _samples_of(name)
        to_small = difference(compared([first], [samples])) if rows else ""
        to_vmf = difference(compared([vmf], [samples])) if preset == "lstm" and run["loss"] != "vmf" else ""
        rows.append([
            preset, run["loss"], options, f"{run['epochs']}", f"{best}", f"{run['cpu_seconds'] / 60:.1f}",
            f"{run['ALL']['bleu']:.2f}", to_small, to_vmf,
        ])  # fmt: skip
    head = (
        "preset | loss | margin, regularisers | epochs | best epoch | CPU minutes | BLEU | difference to `gru` | "
        "difference to `vmf`, same preset"
    )
    return markdown(head, rows, 3)


def syn_losses() -> str:
    """Return the difference in BLEU of the synthetic losses with the paper's size, each with its best margin."""
    both = [_samples_of(f"paper-third-tuned-{loss}-1") for loss in PAPER_MARGINAL]
    return difference(compared([both[0]], [both[1]]))


def speed() -> str:
    """Return a table of pairs per second, and the ratio of time to syn-projection, by vocabulary size."""
    sizes = find("translator_speed/sizes")
    rows = []
    for loss in LOSSES:
        cells = []
        for by_loss in sizes.values():
            ratio = by_loss[loss]["syn-projection is faster by"]
            cells.append(f"{by_loss[loss]['pairs_per_cpu_second']} ({ratio:.2f})")
        rows.append([loss, *cells])
    return markdown("loss | " + " | ".join(f"{int(size):,} words" for size in sizes), rows)


TABLES = {
    "losses of translators": losses, "predicted vectors": predictions, "margins of translators": margins,
    "translators of other pairs": other_pairs, "speed of translators": speed,
    "regularisers of vmf": regularisers_of_vmf, "neighbours of negatives": negatives,
    "translators of the paper's size": paper_size,
    "margins in the paper's size": lambda: margins("paper-margin", PAPER_MARGINAL),
    "margins towards plain targets": lambda: margins("plain-margin", PAPER_MARGINAL),
    "regularisers in the paper's size": lambda: regularisers_of_vmf("paper-regularisers"),
}  # fmt: skip
VALUES = {
    "syn-difference above syn-projection, paper's size": syn_losses,
    "translators: time of four epochs, AMD": lambda: _relative_time("AMD"),
    "translators: time of four epochs, Intel": lambda: _relative_time("Intel"),
}
