"""Tables for the documentation: sentence-pair classifiers, mining with them, and reranked n-best lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from stored import StoredStudy

from page_tables.kept_results import difference, find, markdown
from phrasetool.smt.evaluation.metrics import means_of_drawn_runs

RUNS = StoredStudy("parallel_tables")

_SETS = ("random", "containment", "unseen")
# Precision, recall and F1 in the paper's experiment, English-Burmese; the paper uses mBERT where we use "own BERT".
_PAPER = {
    "SVM": (62.19, 68.17, 65.04), "LR": (57.51, 62.78, 60.03), "LSTM": (76.16, 73.06, 74.58),
    "Bi-GRU": (78.72, 73.53, 76.03), "Bi-LSTM": (79.27, 75.48, 77.33), "word2vec": (81.34, 75.61, 78.37),
    "own BERT, contextual, frozen": (82.42, 77.53, 79.90), "full, frozen": (81.13, 78.30, 79.69),
    "full, tuned": (83.91, 78.00, 80.84),
}  # fmt: skip
_LENGTH = (
    ("Bi-LSTM", "Bi-LSTM, length"), ("own BERT, contextual, frozen", "full, frozen"),
    ("own BERT, contextual, tuned", "full, tuned"), ("own BERT, static, tuned", "full, static, tuned"),
    ("default, no length", "default"), ("default, no length, no containment", "default, no containment"),
)  # fmt: skip
_SAMPLES = 2000
# Systems by the number of wrong targets per pair, and by the share of training pairs.
_NEGATIVES = {
    "1": "default, 1 negatives", "2": "default, 2 negatives", "5, the default": "default, 5 epochs",
    "10": "default, 10 negatives", "20": "default, 20 negatives",
}  # fmt: skip
_PAIRS = {
    "a sixteenth": "default, sixteenth of the pairs", "a quarter": "default, quarter of the pairs",
    "all": "default, 5 epochs",
}  # fmt: skip
_SIZE = (
    ("Bi-LSTM", "preset paper"), ("Bi-LSTM, length", "preset paper, length"),
    ("preset paper", "preset paper, length"), ("default, 5 epochs", "preset paper"),
)  # fmt: skip
_PAPER_SIZE = {"Bi-LSTM": "preset paper", "with length": "preset paper, length"}


@cache
def _runs(corpus: str) -> Mapping[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Return figures and outcomes per sentence of each seed, by system."""
    runs_by_system: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for name in RUNS.runs():
        if not name.startswith(f"{corpus}-"):
            continue
        figures = RUNS.record(name)
        outcomes = {kind: array.astype(np.int64) for kind, array in RUNS.arrays(name).items()}
        runs_by_system.setdefault(figures["system"], []).append((figures, outcomes))
    return runs_by_system


def classifiers(corpus: str) -> str:
    """Return a table of precision, recall and F1 of all systems on a corpus, as means over seeds."""
    rows = []
    variants = {*_NEGATIVES.values(), *_PAIRS.values()} - {"default, 5 epochs"}
    for name, runs in sorted(_runs(corpus).items(), key=lambda item: _means(item[1], "random", "best")[-1]):
        if name in variants:
            continue
        seconds = np.mean([figures["cpu_seconds"] for figures, _ in runs])
        random = [_told(_means(runs, "random", threshold)) for threshold in ("at 0.5", "best")]
        contained = [f"{_means(runs, kind, 'best')[-1]:.1f}" for kind in _SETS[1:]]
        rows.append([name, f"{len(runs)}", *random, *contained, f"{seconds:.0f}", _told(_PAPER.get(name, ()))])
    head = "system | seeds | random, at 0.5 | random, best threshold | containment | unseen containment | CPU seconds"
    return markdown(f"{head} | the paper", rows)


def _means(runs: list[tuple[dict[str, Any], dict[str, Any]]], kind: str, threshold: str) -> tuple[float, ...]:
    """Return mean precision, recall and F1 over seeds."""
    return tuple(float(np.mean([figures[kind][threshold][metric] for figures, _ in runs])) for metric in "PRF")


def _told(quality: tuple[float, ...]) -> str:
    return " / ".join(f"{value:.1f}" for value in quality)


def negatives_and_pairs() -> str:
    """Return a table of F1 by the number of wrong targets per pair, and by the share of training pairs."""
    runs = _runs("tatoeba-zh-en")
    rows = []
    for title, systems in (("wrong targets per pair", _NEGATIVES), ("pairs of the bitext", _PAIRS)):
        for number, name in systems.items():
            if name in runs:
                scores = [f"{_means(runs[name], kind, 'best')[-1]:.1f}" for kind in _SETS]
                rows.append([f"{title}: {number}", f"{len(runs[name])}", *scores])
    return markdown("setting | seeds | random | containment | unseen containment", rows)


def paper_size() -> str:
    """Return a table of F1 and loss on the development set by epoch, with the paper's network and settings."""
    logs = {
        f"{corpus}, {title}": _runs(directory)[name][0][0]["log"]
        for corpus, directory in (("Chinese", "tatoeba-zh-en"), ("Japanese", "enja-small"))
        for title, name in _PAPER_SIZE.items()
        if name in _runs(directory)
    }
    epochs = range(1, 1 + max(len(log) for log in logs.values()))
    rows = [
        [
            f"{epoch}",
            *(
                f"{100 * log[epoch - 1]['best_f1']:.1f} / {log[epoch - 1]['development_loss']:.3f}"
                for log in logs.values()
            ),
        ]
        for epoch in epochs
    ]
    return markdown(" | ".join(["epoch", *logs]), rows)


def differences(corpus: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of F1 of the second system of each pair minus that of the first.

    Intervals are from a paired bootstrap over sentences and seeds, equally many seeds of both systems.
    """
    rows = []
    runs = _runs(corpus)
    for first, second in pairs:
        if first not in runs or second not in runs:
            continue
        seeds = min(len(runs[first]), len(runs[second]))
        cells = [_difference(runs[first][:seeds], runs[second][:seeds], kind) for kind in _SETS]
        rows.append([f"{second} minus {first}", f"{seeds}", *cells])
    return markdown("systems | seeds | random | containment | unseen containment", rows)


def _difference(first: list[Any], second: list[Any], kind: str) -> str:
    """Return the difference in mean F1, with its 95 % interval and p."""
    one, other = (np.stack([outcomes[kind] for _, outcomes in runs]) for runs in (first, second))
    drawn = np.random.default_rng(1).integers(0, one.shape[1], (_SAMPLES, one.shape[1]))
    sampled = (means_of_drawn_runs(np.stack([_f1(run[drawn].sum(1)) for run in runs])) for runs in (other, one))
    samples = np.sort(np.subtract(*sampled))
    observed = float(_f1(other.sum(1)).mean() - _f1(one.sum(1)).mean())
    # Two-sided: twice the share of resampled differences on the other side of zero.
    p = min(1.0, 2 * (1 + min((samples <= 0).sum(), (samples >= 0).sum())) / (1 + _SAMPLES))
    p_text = f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.3f}"
    return f"{observed:+.1f} ({samples[_SAMPLES // 40]:+.1f} to {samples[-_SAMPLES // 40]:+.1f}), {p_text}"


def _f1(sums: Any) -> Any:
    """Return F1 in per cent from true positives, false positives and false negatives, shape (..., 3)."""
    right, wrong, missed = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    return 100 * 2 * right / np.maximum(2 * right + wrong + missed, 1)


def reranking() -> str:
    """Return a table of BLEU of n-best lists before and after reranking."""
    rows = []
    for pair, systems in find("reranking/pairs").items():
        for system, by_models in systems.items():
            if system != "cross-entropy, 4 epochs":
                continue
            for models, tuned in by_models.items():
                if models == "BLEU of the model":
                    continue
                for features, name in (("new", "the new features"), ("all", "all features")):
                    figures = tuned[features]["ALL"]
                    before, after = (f"{figures[key]:.2f}" for key in ("before", "after"))
                    difference = f"{figures['difference']:+.2f}"
                    p = f"{figures['p']:.3f}"
                    rows.append([f"{pair}, {system}, {models}", name, before, after, difference, p])
    return markdown("pair and models | tuned | before | after | difference | p", rows)


_LANGUAGE_MODEL = "language model, five captions"


def reranking_by_language_model() -> str:
    """Return a table of BLEU before and after reranking with an additional language model."""
    rows = []
    for pair, systems in find("reranking/pairs").items():
        for features, name in (("new", "the new feature"), ("all", "all features")):
            if _LANGUAGE_MODEL in systems:
                gain = systems[_LANGUAGE_MODEL]["language model"][features]["ALL"]
                rows.append([pair, name, *(f"{gain[key]:.2f}" for key in ("before", "after")), difference(gain)])
    return markdown("pair | tuned | before | after | difference (95 % interval)", rows, 2)


def rerank_curve() -> str:
    """Return a table of the gain from translators by training epochs, and their BLEU on the first test set."""
    rows = []
    systems = find("reranking/pairs/multi30k-de-en")
    for system in sorted(set(systems) - {_LANGUAGE_MODEL}, key=lambda name: int(name.split()[1])):
        figures = systems[system]
        (translator_bleu,) = figures["BLEU of the model"].values()
        gains = [
            f"{figures[models]['all']['ALL']['difference']:+.2f}" if models in figures else ""
            for models in ("forward", "forward and backward")
        ]
        rows.append([system.split()[1], f"{translator_bleu:.1f}", *gains])
    return markdown("passes | BLEU of the translator | one direction | both directions", rows)


def mining() -> str:
    """Return a table of mining in two comparable corpora, by margin, with and without the classifier."""
    rows = []
    for corpus, configurations in find("mining/all").items():
        for configuration, by_metric in configurations.items():
            means = {name: figures["mean"] for name, figures in by_metric.items()}
            shares = [f"{100 * means[name]:.1f}" for name in ("precision", "recall", "f1", "accuracy_at_1")]
            rows.append(
                [
                    f"{corpus.capitalize()}, {configuration}",
                    *shares,
                    f"{means['weight']:.2g}" if "reranked" in configuration else "",
                ]
            )
    return markdown("corpus and margin | precision | recall | F1 | accuracy@1 | weight", rows)


TABLES = {
    "classifiers of sentence pairs": partial(classifiers, "tatoeba-zh-en"),
    "length of sentences": partial(differences, "tatoeba-zh-en", _LENGTH),
    "classifiers of Japanese sentence pairs": partial(classifiers, "enja-small"),
    "length of Japanese sentences": partial(differences, "enja-small", _LENGTH),
    "curves of the preset paper": paper_size,
    "the paper's size, Chinese": partial(differences, "tatoeba-zh-en", _SIZE),
    "the paper's size, Japanese": partial(differences, "enja-small", _SIZE),
    "negatives and pairs": negatives_and_pairs,
    "reranking": reranking,
    "reranking by a language model": reranking_by_language_model,
    "rerank curve": rerank_curve,
    "mining": mining,
}
