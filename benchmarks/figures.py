"""Draw the figures of the documentation from the results of other benchmarks and from the reference table.

pruning.svg      BLEU of pruned tables minus BLEU of the full table, by size: five methods, all language pairs
pruning-all.svg  the same for every method
size.svg         share of the table kept at each threshold, for two protection rules
training.svg     accuracy on held-out pairs by iteration, for both objectives
translators.svg  sentence pairs per second when training a translator, by loss and vocabulary size

By default all figures are drawn; names on the command line select some of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection

import matplotlib as mpl
from measuring import COMMAND, ROOT, WORK, model, reference
from page_tables.pruning import complete, title
from study import MARGIN, SIZES

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = ROOT / "docs" / "figures"
STYLE = {
    "figure.figsize": (6.4, 3.6),
    "svg.hashsalt": "phrasetool",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


# In the order of the legend: methods with similarity, then methods without.
METHODS = {
    "composition+semantic+usage": ("#0b3c8c", "-", "P"),
    "composition+semantic": ("#0072b2", "-", "o"),
    "composition+semantic+significance": ("#56b4e9", "-", "s"),
    "count+semantic": ("#5b4fc4", "-", "^"),
    "semantic": ("#882255", "-", "v"),
    "composition+usage": ("#a3262a", "--", "P"),
    "composition+count": ("#d55e00", "--", "o"),
    "composition+significance": ("#e69f00", "--", "s"),
    "usage": ("#7a4a1d", "--", "p"),
    "count": ("#6e7f1c", "--", "^"),
    "significance": ("#009e73", "--", "D"),
    "composition": ("#b58900", "--", "v"),
}
LOWEST = -4.0
# The figure of the README: the default, the same without similarity, similarity alone, and two baselines.
SHOWN = ("composition+semantic+usage", "composition+usage", "semantic", "count", "significance")


def draw_pruning(name_of_file: str, methods: Collection[str]) -> None:
    """Plot BLEU by size, with a panel for each language pair."""
    figure, grid = plt.subplots(2, 3, figsize=(9.6, 6.4), sharex=True, sharey=True)
    for axes, pair in zip(grid.flat, complete(), strict=False):
        full = pair.bleu(pair.full)
        for method in methods:
            colour, line, marker = METHODS[method]
            points = [pair.bleu(pair.method(method, size)) - full for size in SIZES]
            axes.plot([100 * size for size in SIZES], points, line, color=colour, marker=marker, ms=3.5, lw=1.2,
                      label=method)  # fmt: skip
        axes.axhline(0, color="#1c1d1f", lw=1)
        axes.axhspan(MARGIN, -MARGIN, color="#009e73", alpha=0.15, lw=0)
        entries = pair.mean(pair.full, "of")
        axes.set_title(f"{title(pair)}\n{entries / 1e6:.1f} million entries, BLEU {full:.2f}", fontsize=8.5)
        axes.set_xscale("log")
        axes.set_xticks([3, 5, 10, 15, 28], ["3", "5", "10", "15", "28"])
        axes.minorticks_off()
        axes.set_ylim(LOWEST - 0.15, 1.0)
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("entries kept (%)")
    for axes in grid.flat[len(complete()) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("BLEU minus that of the full table", fontsize=8.5)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    columns = min(4, -(-len(labels) // 2))
    figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.03 + 0.025 * -(-len(labels) // columns), 1, 1))
    figure.savefig(DOCS / name_of_file, metadata={"Date": None})


def sweep(protect: str) -> tuple[list[float], list[float]]:
    """Return thresholds and the share of the table kept at each."""
    scores = WORK / "scores.parquet"
    command = [
        COMMAND,
        "prune",
        str(reference() / "phrase-table.gz"),
        "-m",
        model(),
        "--similarities",
        str(scores),
        "-q",
    ]
    process = subprocess.run(
        [*command, "--sweep", "-0.5:1:0.05", "--protect", protect], check=True, capture_output=True, text=True
    )
    rows = [line.split("\t") for line in process.stdout.splitlines()[1:]]
    return [float(row[0]) for row in rows], [float(row[2]) for row in rows]


def draw_sizes() -> None:
    figure, axes = plt.subplots()
    for protect, label in (
        ("all", "every source keeps its 10 best (the paper's rule)"),
        ("words", "one-word sources do"),
    ):
        thresholds, shares = sweep(protect)
        axes.plot(thresholds, [100 * share for share in shares], marker=".", label=f"--protect {protect}: {label}")
    axes.set_xlabel("threshold")
    axes.set_ylabel("entries left (%)")
    axes.set_ylim(0, 102)
    axes.legend(loc="lower left", fontsize=8)
    axes.set_title("1,117,535 entries, German-English")
    figure.tight_layout()
    figure.savefig(DOCS / "size.svg", metadata={"Date": None})


def draw_training() -> None:
    path = ROOT / "benchmarks" / "results" / "learning_curves.json"
    curves = json.loads(path.read_text())["curves"]
    figure, axes = plt.subplots()
    for name, values in curves.items():
        axes.plot(range(1, len(values) + 1), values, marker=".", label=name)
    axes.set_xlabel("iteration")
    axes.set_ylabel("accuracy@1 of 1,000, held out")
    axes.set_ylim(0, 1)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(DOCS / "training.svg", metadata={"Date": None})


def draw_translators() -> None:
    sizes = json.loads((ROOT / "benchmarks" / "results" / "translator_speed.json").read_text())["sizes"]
    figure, axes = plt.subplots()
    for loss in next(iter(sizes.values())):
        line = "--" if loss in ("vmf", "cosine") else ":" if loss.startswith("cross") else "-"
        speeds = [speeds_by_loss[loss]["pairs_per_cpu_second"] for speeds_by_loss in sizes.values()]
        axes.plot([int(size) for size in sizes], speeds, line, marker=".", label=loss)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([int(size) for size in sizes], [f"{int(size):,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("target words")
    axes.set_ylabel("sentence pairs a second of one core")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(DOCS / "translators.svg", metadata={"Date": None})


FIGURES = {
    "pruning": lambda: draw_pruning("pruning.svg", SHOWN),
    "pruning-all": lambda: draw_pruning("pruning-all.svg", METHODS),
    "training": draw_training,
    "size": draw_sizes,
    "translators": draw_translators,
}


def main() -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update(STYLE)
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name]()


if __name__ == "__main__":
    main()
