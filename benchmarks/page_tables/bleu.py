"""Tables for the documents: what pruning and annotating do to BLEU, from the experiments in benchmarks/results/."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import PAIRS

from page_tables.kept_results import contests, facts, find, has, mark, markdown, pruning, results, tuned

EVERY = "kneser-ney+forced+semantic"
ENCODER_PAIRS = tuple(name for name in PAIRS if has(f"{name}-mean-max", "pruning"))


def title(name: str) -> str:
    """Of a language pair."""
    return str(facts(name)["name"])


def full(name: str) -> dict[str, Any]:
    """The row of the table that was not pruned."""
    return pruning(name)["full"]["full"]


def bleu(row: dict[str, Any]) -> str:
    """BLEU, and whether it differs from that of the full table."""
    return f"{row['bleu']:.2f}{mark(row['p'])}"


def change(row: dict[str, Any]) -> str:
    """The difference to the full table, and whether it is one."""
    return f"{row['difference']:+.2f}{mark(row['p'])}"


def with_columns() -> str:
    """BLEU of tables tuned again, as they are and with columns."""
    wanted = ("semantic", "kneser-ney", EVERY, "full at 0.1", f"{EVERY} at 0.1")
    rows = []
    for name in PAIRS:
        there = tuned(name)
        cells = [f"{there[key]['bleu']:.2f} ({change(there[key])})" if key in there else "" for key in wanted]
        rows.append([title(name), f"{there['full']['bleu']:.2f}", *cells])
    head = "language pair | full | similarities | smoothed | all six | 10 % kept | 10 % kept, all six"
    return markdown(head, rows)


def encoders() -> str:
    """Pruning with the similarities of either encoder."""
    wanted = [("semantic", "0.28"), ("semantic", "0.1"), ("semantic", ">= 0.7, words"),
              ("count+semantic", "0.1"), ("composition+semantic*2+usage", "0.1")]  # fmt: skip
    rows = []
    for name in ENCODER_PAIRS:
        both = [name, f"{name}-mean-max"]
        cells = [title(name), " / ".join(f"{full(run)['bleu']:.2f}" for run in both)]
        for method, rule in wanted:
            shown = []
            for run in both:
                row = pruning(run)[method][rule]
                share = f" ({row['share']:.0%})" if rule.startswith(">=") else ""
                shown.append(bleu(row) + share)
            cells.append(" / ".join(shown))
        rows.append(cells)
    head = (
        "language pair | full | similarities alone, 28 % | 10 % | threshold 0.7 | count+semantic, 10 % | "
        "comp.+sem.\\*2+usage, 10 %"
    )
    return markdown(head, rows)


def ranking() -> str:
    """Means over the development sets of all pairs, of everything that was tried for the default method."""
    sets = results("ranking_on_dev")["bleu of development sets"]
    rows = []
    for variant in next(iter(sets.values())):
        if variant != "full":
            rows.append([variant, *(f"{ranking_mean(variant, size):.2f}" for size in ("0.1", "0.05"))])
    return markdown("worth of an entry: its count, times | 10 % kept | 5 % kept", rows)


def ranking_mean(variant: str, size: str) -> float:
    """BLEU, the mean over the development sets."""
    sets = results("ranking_on_dev")["bleu of development sets"].values()
    return sum(found[variant][size] for found in sets) / len(sets)


def _contested(names: Iterable[str], better: int) -> int:
    """Comparisons at p < 0.05 in which the method with similarities is better (1) or worse (-1)."""
    rows = [row for name in names for row in contests(name).values()]
    return sum(row["p"] < 0.05 and row["difference"] * better > 0 for row in rows)


def _gain(columns: str, pick: Any) -> float:
    """The least or the largest gain by columns over the pairs that have them."""
    return float(pick(tuned(name)[columns]["difference"] for name in PAIRS if columns in tuned(name)))


def _gains(columns: str) -> int:
    """Pairs on which columns gain at p < 0.05."""
    rows = [tuned(name)[columns] for name in PAIRS if columns in tuned(name)]
    return sum(row["p"] < 0.05 and row["difference"] > 0 for row in rows)


MEAN_MAX = tuple(f"{name}-mean-max" for name in ENCODER_PAIRS)
NUMBER_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_GERMAN = "pruning/multi30k-de-en"
TABLES = {"columns": with_columns, "encoders": encoders, "ranking": ranking}
VALUES = {
    "pairs": lambda: NUMBER_WORDS[len(PAIRS)],
    "mean-max comparisons": lambda: f"{sum(len(contests(name)) for name in MEAN_MAX)}",
    "mean-max comparisons won": lambda: NUMBER_WORDS[_contested(MEAN_MAX, 1)],
    "mean-max comparisons lost": lambda: NUMBER_WORDS[_contested(MEAN_MAX, -1)],
    "least gain of all columns": lambda: f"{_gain(EVERY, min):.2f}",
    "largest gain of all columns": lambda: f"{_gain(EVERY, max):.2f}",
    "pairs that gain by all columns": lambda: NUMBER_WORDS[_gains(EVERY)],
    "least gain of similarities": lambda: f"{_gain('semantic', min):.2f}",
    "largest gain of similarities": lambda: f"{_gain('semantic', max):.2f}",
    "pairs with similarities alone": lambda: NUMBER_WORDS[sum("semantic" in tuned(name) for name in PAIRS)],
    "cost of the threshold, German": lambda: f"{-find(f'{_GERMAN}/semantic/>= 0.7, words/difference'):.1f}",
    "mean-max cost of the threshold, German": lambda: (
        f"{-find(f'{_GERMAN}-mean-max/semantic/>= 0.7, words/difference'):.1f}"
    ),
    "ranking without uses, 5 %": lambda: f"{ranking_mean('loss 0.3..1, similarity', '0.05'):.2f}",
    "ranking with uses, 5 %": lambda: f"{ranking_mean('loss 0.3..1, similarity, uses', '0.05'):.2f}",
}  # fmt: skip
