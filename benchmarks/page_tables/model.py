"""Tables for the documentation: losses, encoders and autoencoders."""

from __future__ import annotations

import math
import statistics
from functools import partial

from reconstruction import COMPARED

from page_tables.kept_results import difference, find, markdown

LOSS_PAIRS = {"multi30k-de-en": "Multi30k German-English", "tatoeba-zh-en": "Tatoeba Chinese-English"}
LOSSES = ("in-batch", "max-margin", "sampled", "most-informative", "syn-projection", "syn-difference", "vmf")
UNCORRECTED = "in-batch without correction"
# Sentence pairs of Multi30k.
_MULTI30K = 29_000
# Architecture -> its name in the documentation.
AUTOENCODERS = {
    "mean-max": "gated mean-max", "mean": "gated, mean alone", "max": "gated, maximum alone",
    "lstm-mean-max": "gated mean-max, LSTMs", "lstm": "LSTM without gate",
}  # fmt: skip


def losses() -> str:
    """Return a table of accuracy and training speed for each loss and for the earlier settings of the default."""
    rows = []
    for loss in (LOSSES[0], UNCORRECTED, *LOSSES[1:]):
        cells = [f"`{loss}`" if loss in LOSSES else "`in-batch`, no correction, no counts, temperature 0.1"]
        for name in LOSS_PAIRS:
            figures = find(f"objectives/{name}/rae/{loss}")
            speed = f"{figures['pairs_per_second']:,}" if "pairs_per_second" in figures else ""
            cells += [f"{figures['accuracy_at_1']:.3f} ± {figures['deviation']:.3f}", speed]
        rows.append(cells)
    head = "loss | " + " | ".join(f"{title} | pairs per second" for title in LOSS_PAIRS.values())
    return markdown(head, rows)


def loss_times() -> str:
    """Return a table of milliseconds of a loss and its gradient alone."""
    times = find("objectives/loss_milliseconds")
    rows = [[f"`{loss}`", *(f"{times[n][loss]:.1f}" for n in times)] for loss in LOSSES]
    return markdown("loss alone, 512 pairs, ms | " + " | ".join(f"n = {n}" for n in times), rows)


def encoder_accuracy() -> str:
    """Return a table of accuracy and speed of training and annotating, by encoder and dimension."""
    encoders = find("encoders/encoders")
    titles = {"rae": "RAE", "mean-max": "mean-max", "mean-max, layers trained": "mean-max, layers trained"}
    rows = []
    for n in (50, 200, 512):
        for kind, title in titles.items():
            figures = encoders[f"{kind}, n = {n}"]
            seeds = " and ".join(f"{seed:.3f}" for seed in figures.get("seeds", ()))
            accuracy = f"{figures['accuracy_at_1']:.3f} ({seeds})" if seeds else "not measured"
            speed = f"{figures['pairs_per_second']:,}" if "pairs_per_second" in figures else ""
            seconds = f"{figures['annotate']['seconds']['median']:.1f} s" if "annotate" in figures else ""
            rows.append([title, str(n), accuracy, speed, seconds])
    return markdown("encoder | n | accuracy@1 (two seeds) | training, pairs per second | `annotate`", rows)


def held_out() -> str:
    """Return a table of the quality of the default loss and BRAE's on held-out pairs."""
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
    """Return a table of the accuracy of external encoders, by normalisation."""
    titles = {
        "mean, learnt": "`train --architecture mean`, learnt",
        "mean, identity": "`train --architecture mean`, identity",
        "static, a folder a side": "static, a folder for each side", "static, one folder": "static, one folder",
        "transformers": "transformers", "sentence-transformers": "sentence-transformers",
    }  # fmt: skip
    normalisations = ("cosine", "centred", "margin", "centred-margin")
    accuracies = find("sentence_encoders/accuracy_at_1")
    rows = [
        [
            title,
            *(
                f"{accuracies[name][normalisation]:.3f}" if normalisation in accuracies[name] else ""
                for normalisation in normalisations
            ),
        ]
        for name, title in titles.items()
        if name in accuracies
    ]
    return markdown("encoder | raw | centred | margin (CSLS) | both", rows)


def autoencoders(results: str = "reconstruction") -> str:
    """Return a table of the reconstruction quality of each architecture.

    Args:
        results: name of results of `reconstruction.py`, with some architectures, and their speeds if measured.
    """
    architectures = find(f"{results}/architectures")
    shown = {name: architectures[name] for name in AUTOENCODERS if name in architectures}
    timed = all("words_per_second" in figures for figures in shown.values())
    rows = [
        [
            AUTOENCODERS[name], f"{figures['dimension']}", f"{figures['bleu']:.1f}", f"{figures['rouge_1']:.1f}",
            f"{figures['rouge_2']:.1f}", f"{figures['exact']:.1f} %",
            *([f"{figures['words_per_second']:,}"] if timed else []),
        ]
        for name, figures in shown.items()
    ]  # fmt: skip
    head = "architecture | size of the vector | BLEU | ROUGE-1 | ROUGE-2 | exact match"
    return markdown(head + " | words per second in training" * timed, rows)


def architectures_compared() -> str:
    """Return a table of differences in BLEU between architectures, with intervals, on the measured texts."""
    texts = {
        "reconstruction-paper": "captions, paper's dimensions", "reconstruction-paragraphs": "paragraphs",
        "reconstruction-chinese": "Chinese lines", "reconstruction-chinese-paragraphs": "Chinese paragraphs",
    }  # fmt: skip
    differences = {title: find(f"{name}/differences") for name, title in texts.items()}
    # Each key names two architectures, separated by " - "; not all texts have all keys.
    rows = []
    for key in differences["paragraphs"]:
        better, baseline = (AUTOENCODERS[name] for name in key.split(" - "))
        cells = [difference(comparisons[key]) if key in comparisons else "" for comparisons in differences.values()]
        rows.append([f"{better}, less {baseline}", *cells])
    return markdown(" | ".join(["difference in BLEU", *differences]), rows)


def reconstructed_paragraph() -> str:
    """Return a held-out paragraph with its reconstruction by each architecture."""
    shown = find("reconstruction-paragraphs/examples")
    rows = [["(the text)", shown["text"]]]
    rows += [[title, shown["reconstructions"][name]] for name, title in AUTOENCODERS.items()]
    return markdown("architecture | reconstruction", rows, 2)


def nearest_paragraphs() -> str:
    """Return a table of held-out paragraphs and their nearest training paragraphs."""
    nearest = find("reconstruction-paragraphs/examples")["nearest"]
    return markdown("held-out text | nearest of the training texts", [[*pair] for pair in nearest.items()], 2)


def poolings() -> str:
    """Return a table that compares both poolings with the mean alone."""
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
    """Return a table of nearest phrases of new phrases, by three models."""
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
    """Format a number; values below 0.05 are shown as powers of ten."""
    return f"{value:g}" if value >= 0.05 else f"$10^{{{round(math.log10(value))}}}$"


def grid_of_brae() -> str:
    """Return a table of AUC on the development pairs by value; each row is chosen after those above it."""
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
    """Return a table of the paper's values and the chosen ones, on the test pairs."""
    rows = []
    for name, title in (("paper", "the paper's"), ("chosen", "chosen here")):
        runs = find(f"brae_grid/{name}")
        cells = [
            f"{statistics.mean(runs[key]):.3f} ± {statistics.stdev(runs[key]):.3f}" for key in ("auc", "accuracy_at_1")
        ]
        rows.append([title, *(_shown(runs["values"][value]) for value in _VALUES_OF_BRAE), *cells])
    return markdown(" | ".join(["values", *_VALUES_OF_BRAE.values(), "AUC", "accuracy@1"]), rows)


def _translator_hours(passes: int) -> str:
    """Return the hours that two cores need to train a translator of the paper's size on all pairs."""
    rate = find("training_devices/families/translator, preset lstm/cpu/per second")
    return f"{_MULTI30K * passes / rate / 3600:.1f}"


def tagger() -> str:
    """Return a table of the accuracy of the tagger by language."""
    rows = []
    for language, figures in find("tagger/languages").items():
        rows.append([language, f"{figures['words']:,}", f"{figures['cased']:.1f}", f"{figures['lower']:.1f}"])
    return markdown("language | words | accuracy, % | accuracy in lower case, %", rows)


def _lost_by_dropout(architecture: str) -> str:
    """Return the BLEU that the paper's dropout costs in the paper's dimensions."""
    without, with_dropout = (
        find(f"{name}/architectures/{architecture}/bleu")
        for name in ("reconstruction-paper", "reconstruction-paper-dropout")
    )
    return f"{without - with_dropout:.1f}"


def _above(name: str, path: str = "reconstruction", better: str = "mean-max") -> str:
    """Return the difference in BLEU between two architectures."""
    architectures = find(f"{path}/architectures")
    return f"{architectures[better]['bleu'] - architectures[name]['bleu']:.1f}"


# Suffix of the name of a value -> results of `reconstruction.py`.
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
    "autoencoders, paper's dropout": lambda: autoencoders("reconstruction-paper-dropout"),
    "architectures compared": architectures_compared,
    "reconstructed paragraph": reconstructed_paragraph, "nearest paragraphs": nearest_paragraphs,
    "poolings": poolings, "sentence encoders": sentence_encoders,
    "tagger": tagger, "nearest phrases": nearest_phrases,
    "grid of BRAE": grid_of_brae, "values of BRAE": values_of_brae,
}  # fmt: skip
VALUES = {
    "hours of twenty epochs, translator": lambda: _translator_hours(20),
    "lost by dropout, attention": lambda: _lost_by_dropout("mean-max"),
    "lost by dropout, LSTMs": lambda: _lost_by_dropout("lstm-mean-max"),
    "both poolings above the mean, one pass": lambda: _above("mean", "reconstruction-one-pass"),
    "LSTM above gated attention, paper's dimensions": lambda: _above("mean-max", "reconstruction-paper", "lstm"),
    **{
        f"{title}{texts}": partial(_above, worse, results, better)
        for texts, results in _TEXTS.items()
        for title, (better, worse) in COMPARED.items()
    },
}  # fmt: skip
