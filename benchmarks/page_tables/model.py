"""Tables for the documents: losses, encoders and autoencoders."""

from __future__ import annotations

import math
import statistics
from functools import partial

from reconstruction import COMPARED

from page_tables.kept_results import difference, find, markdown

LOSS_PAIRS = {"multi30k-de-en": "Multi30k German-English", "tatoeba-zh-en": "Tatoeba Chinese-English"}
LOSSES = ("in-batch", "max-margin", "sampled", "most-informative", "syn-projection", "syn-difference", "vmf")
UNCORRECTED = "in-batch without correction"
# Sentence pairs of Multi30k, and examples that `train syntax --preset paper` makes of the bitexts of `syntax.py`.
_MULTI30K, _SYNTAX = 29_000, 482_356
# Architecture -> what readers call it.
AUTOENCODERS = {
    "mean-max": "gated mean-max", "mean": "gated, mean alone", "max": "gated, maximum alone",
    "lstm-mean-max": "gated mean-max, LSTMs", "lstm": "LSTM without gate",
}  # fmt: skip


def losses() -> str:
    """Accuracy and speed of training by each loss, and by the default without its frequency correction."""
    rows = []
    for loss in (LOSSES[0], UNCORRECTED, *LOSSES[1:]):
        cells = [f"`{loss}`" if loss in LOSSES else loss.replace("in-batch", "`in-batch`")]
        for name in LOSS_PAIRS:
            there = find(f"objectives/{name}/rae/{loss}")
            speed = f"{there['pairs_per_second']:,}" if "pairs_per_second" in there else ""
            cells += [f"{there['accuracy_at_1']:.3f} ± {there['deviation']:.3f}", speed]
        rows.append(cells)
    head = "loss | " + " | ".join(f"{title} | pairs per second" for title in LOSS_PAIRS.values())
    return markdown(head, rows)


def loss_times() -> str:
    """Milliseconds of a loss and its gradient alone."""
    times = find("objectives/loss_milliseconds")
    rows = [[f"`{loss}`", *(f"{times[n][loss]:.1f}" for n in times)] for loss in LOSSES]
    return markdown("loss alone, 512 pairs, ms | " + " | ".join(f"n = {n}" for n in times), rows)


def encoder_accuracy() -> str:
    """Accuracy, speed of training and of annotating by encoder and dimension."""
    encoders = find("encoders/encoders")
    titles = {"rae": "RAE", "mean-max": "mean-max", "mean-max, layers trained": "mean-max, layers trained"}
    rows = []
    for n in (50, 200, 512):
        for kind, title in titles.items():
            there = encoders[f"{kind}, n = {n}"]
            seeds = " and ".join(f"{seed:.3f}" for seed in there.get("seeds", ()))
            accuracy = f"{there['accuracy_at_1']:.3f} ({seeds})" if seeds else "not measured"
            speed = f"{there['pairs_per_second']:,}" if "pairs_per_second" in there else ""
            seconds = f"{there['annotate']['seconds']['median']:.1f} s" if "annotate" in there else ""
            rows.append([title, str(n), accuracy, speed, seconds])
    return markdown("encoder | n | accuracy@1 (two seeds) | training, pairs per second | `annotate`", rows)


def held_out() -> str:
    """The default loss and BRAE's on pairs that they have not seen."""
    meanings = {
        "accuracy_at_1": "accuracy@1: the true target ranks first of 1,000",
        "any_translation_at_1": "the same, another translation in the pairs counted too",
        "accuracy_at_10": "accuracy@10: it ranks among the first ten",
        "mean_reciprocal_rank": "mean reciprocal rank",
        "auc_random_words": "AUC against the target with random words",
        "auc_other_targets": "AUC against the target of another pair",
    }
    rows = []
    for name, meaning in meanings.items():
        row = [meaning]
        for loss in ("in-batch", "max-margin"):
            figures = find(f"held_out/{loss}/{name}")
            row += [f"{figures['mean']:.3f}", f"{min(figures['splits']):.3f} to {max(figures['splits']):.3f}"]
        rows.append(row)
    return markdown("mean of 8 splits, smallest and largest | default loss | | BRAE's loss |", rows)


def sentence_encoders() -> str:
    """Accuracy of external encoders, by normalisation."""
    titles = {
        "mean, learnt": "`train --architecture mean`, learnt",
        "mean, identity": "`train --architecture mean`, identity",
        "static, a folder a side": "static, a folder for each side", "static, one folder": "static, one folder",
        "transformers": "transformers", "sentence-transformers": "sentence-transformers",
    }  # fmt: skip
    ways = ("cosine", "centred", "margin", "centred-margin")
    accuracies = find("sentence_encoders/accuracy_at_1")
    rows = [
        [title, *(f"{accuracies[name][way]:.3f}" if way in accuracies[name] else "" for way in ways)]
        for name, title in titles.items()
        if name in accuracies
    ]
    return markdown("encoder | raw | centred | margin (CSLS) | both", rows)


def autoencoders(results: str = "reconstruction") -> str:
    """How much of a text each architecture reconstructs.

    Args:
        results: of `reconstruction.py`, with all or some of the architectures, and their speeds if they were timed.
    """
    architectures = find(f"{results}/architectures")
    shown = {name: architectures[name] for name in AUTOENCODERS if name in architectures}
    timed = all("words_per_second" in there for there in shown.values())
    rows = [
        [
            AUTOENCODERS[name], f"{there['dimension']}", f"{there['bleu']:.1f}", f"{there['rouge_1']:.1f}",
            f"{there['rouge_2']:.1f}", f"{there['exact']:.1f} %",
            *([f"{there['words_per_second']:,}"] if timed else []),
        ]
        for name, there in shown.items()
    ]  # fmt: skip
    head = "architecture | size of the vector | BLEU | ROUGE-1 | ROUGE-2 | exact match"
    return markdown(head + " | words per second in training" * timed, rows)


def architectures_compared() -> str:
    """BLEU of one architecture less that of another, with intervals, on the texts that have them."""
    texts = {
        "reconstruction-paper": "captions, paper's dimensions", "reconstruction-paragraphs": "paragraphs",
        "reconstruction-chinese": "Chinese lines", "reconstruction-chinese-paragraphs": "Chinese paragraphs",
    }  # fmt: skip
    differences = {title: find(f"{name}/differences") for name, title in texts.items()}
    # Each key is the two architectures, with " - " between them; not all texts have all of them.
    rows = []
    for key in differences["paragraphs"]:
        one, other = (AUTOENCODERS[name] for name in key.split(" - "))
        cells = [difference(there[key]) if key in there else "" for there in differences.values()]
        rows.append([f"{one}, less {other}", *cells])
    return markdown(" | ".join(["difference in BLEU", *differences]), rows)


def reconstructed_paragraph() -> str:
    """A held-out paragraph as each architecture reconstructs it."""
    shown = find("reconstruction-paragraphs/examples")
    rows = [["(the text)", shown["text"]]]
    rows += [[title, shown["reconstructions"][name]] for name, title in AUTOENCODERS.items()]
    return markdown("architecture | reconstruction", rows, 2)


def nearest_paragraphs() -> str:
    """The training paragraph that is nearest to each of some held-out ones."""
    nearest = find("reconstruction-paragraphs/examples")["nearest"]
    return markdown("held-out text | nearest of the training texts", [[*pair] for pair in nearest.items()], 2)


def poolings() -> str:
    """Both poolings against the mean alone."""
    runs = (
        ("reconstruction-one-pass", "captions"), ("reconstruction", "captions"),
        ("reconstruction-64", "captions, a quarter of the hidden units (64)"),
        ("reconstruction-paper", "captions, the paper's dimensions, batches of 32"),
        ("reconstruction-pairs", "texts of two captions, batches of 8"),
        ("reconstruction-paragraphs", "paragraphs of captions, 50 and more words"),
        ("reconstruction-chinese", "Chinese lines of documentation"),
        ("reconstruction-chinese-paragraphs", "Chinese paragraphs of documentation, 50 and more words"),
    )  # fmt: skip
    rows = []
    for name, texts in runs:
        flags = find(f"{name}/flags")
        both, mean = (find(f"{name}/architectures/{pooling}/bleu") for pooling in ("mean-max", "mean"))
        passes = flags[flags.index("--epochs") + 1]
        rows.append([texts, passes, f"{both:.1f}", f"{mean:.1f}", f"{both - mean:+.1f}"])
    return markdown("texts | epochs | mean-max | mean | difference", rows)


def nearest_phrases() -> str:
    """Nearest phrases of new phrases, by three models."""
    rows = [
        [phrase, *("<br>".join(neighbours) for neighbours in models.values())]
        for phrase, models in find("nearest_phrases/phrases").items()
    ]
    models = next(iter(find("nearest_phrases/phrases").values()))
    return markdown(" | ".join(["new phrase", *models]), rows, len(models) + 1)


_VALUES_OF_BRAE = {
    "alpha": "$\\alpha$", "lambda_words": "$\\lambda_L$", "lambda_rec": r"$\lambda_{rec}$",
    "lambda_sem": r"$\lambda_{sem}$",
}  # fmt: skip


def _shown(value: float) -> str:
    """A power of ten, or a number from 0.05 on."""
    return f"{value:g}" if value >= 0.05 else f"$10^{{{round(math.log10(value))}}}$"


def grid_of_brae() -> str:
    """AUC on the development pairs by value, each chosen after those above it."""
    rows = []
    for name, title in _VALUES_OF_BRAE.items():
        candidates = find(f"brae_grid/grid/{name}")
        best = max(row["auc"] for row in candidates)
        rows.append([title, ", ".join(
            f"{_shown(row['value'])}: " + (f"**{row['auc']:.3f}**" if row["auc"] == best else f"{row['auc']:.3f}")
            for row in candidates
        )])  # fmt: skip
    return markdown("value | AUC by value", rows, 2)


def values_of_brae() -> str:
    """The paper's values and those of the search, on the test pairs."""
    rows = []
    for name, title in (("paper", "the paper's"), ("chosen", "chosen here")):
        runs = find(f"brae_grid/{name}")
        cells = [
            f"{statistics.mean(runs[key]):.3f} ± {statistics.stdev(runs[key]):.3f}" for key in ("auc", "accuracy_at_1")
        ]
        rows.append([title, *(_shown(runs["values"][value]) for value in _VALUES_OF_BRAE), *cells])
    return markdown(" | ".join(["values", *_VALUES_OF_BRAE.values(), "AUC", "accuracy@1"]), rows)


def _hours(family: str, examples: float, passes: int) -> str:
    """Hours that two cores need to train a model of the paper's size."""
    rate = find(f"training_devices/families/{family}/cpu/per second")
    return f"{examples * passes / rate / 3600:.1f}"


def tagger() -> str:
    """Accuracy of the tagger by language."""
    rows = []
    for language, found in find("tagger/languages").items():
        rows.append([language, f"{found['words']:,}", f"{found['cased']:.1f}", f"{found['lower']:.1f}"])
    return markdown("language | words | accuracy, % | accuracy in lower case, %", rows)


def _above(name: str, path: str = "reconstruction", better: str = "mean-max") -> str:
    """By how much BLEU an architecture is better than another."""
    there = find(f"{path}/architectures")
    return f"{there[better]['bleu'] - there[name]['bleu']:.1f}"


# How the name of a value ends -> results of `reconstruction.py`.
_TEXTS = {
    "": "reconstruction", ", paragraphs": "reconstruction-paragraphs", ", Chinese": "reconstruction-chinese",
    ", paper's dimensions": "reconstruction-paper", ", Chinese paragraphs": "reconstruction-chinese-paragraphs",
}  # fmt: skip
TABLES = {
    "losses": losses, "loss times": loss_times, "encoder accuracy": encoder_accuracy, "held-out": held_out,
    "autoencoders": autoencoders, "autoencoders, paragraphs": lambda: autoencoders("reconstruction-paragraphs"),
    "autoencoders, Chinese": lambda: autoencoders("reconstruction-chinese"),
    "autoencoders, Chinese paragraphs": lambda: autoencoders("reconstruction-chinese-paragraphs"),
    "autoencoders, paper's dimensions": lambda: autoencoders("reconstruction-paper"),
    "architectures compared": architectures_compared,
    "reconstructed paragraph": reconstructed_paragraph, "nearest paragraphs": nearest_paragraphs,
    "poolings": poolings, "sentence encoders": sentence_encoders,
    "tagger": tagger, "nearest phrases": nearest_phrases,
    "grid of BRAE": grid_of_brae, "values of BRAE": values_of_brae,
}  # fmt: skip
VALUES = {
    "hours of ten epochs, syntax": lambda: _hours("syntax, preset paper", _SYNTAX, 10),
    "hours of twenty epochs, translator": lambda: _hours("translator, preset lstm", _MULTI30K, 20),
    "both poolings above the mean, one pass": lambda: _above("mean", "reconstruction-one-pass"),
    **{
        f"{title}{texts}": partial(_above, worse, results, better)
        for texts, results in _TEXTS.items()
        for title, (better, worse) in COMPARED.items()
    },
}  # fmt: skip
