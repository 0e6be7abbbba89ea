"""Draw the README's figures from what the other benchmarks wrote and from the reference table.

size.svg       how much of the table is left at each threshold, for two ways to protect sources
training.svg   accuracy on held-out pairs over the iterations, both objectives
"""

from __future__ import annotations

import json
import subprocess

import matplotlib as mpl
from measuring import COMMAND, ROOT, WORK, model, reference

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = ROOT / "docs"
STYLE = {
    "figure.figsize": (6.4, 3.6),
    "svg.hashsalt": "phrasetool",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


def sweep(protect: str) -> tuple[list[float], list[float]]:
    """Thresholds and shares of the table."""
    scores = WORK / "scores.parquet"
    command = [COMMAND, "prune", str(reference() / "phrase-table.gz"), "-m", model(), "--scores", str(scores), "-q"]
    done = subprocess.run(
        [*command, "--sweep", "-0.5:1:0.05", "--protect", protect], check=True, capture_output=True, text=True
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
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


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    plt.rcParams.update(STYLE)
    draw_sizes()
    draw_training()


if __name__ == "__main__":
    main()
