"""Tables for the documents: score columns, encoders, and how the default method was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from columns_study import BRAE, FORCED, REFERENCE, RESULTS, SIMILAR, SMOOTHED, TENTH
from study import DEFAULT_LOSS, Comparison, SentenceStatistics, studied
from trial import DIMENSIONS

from page_tables.kept_results import contests, facts, find, mark, markdown, pruning, results
from page_tables.pruning import NUMBERS, change

FOUR = f"{SMOOTHED}+{FORCED}"
SIX = f"{FOUR}+{SIMILAR}"
# Measured with the loss without its correction for frequency.
ENCODER_PAIRS = ("enja-small", "multi30k-de-en", "tatoeba-zh-en")
MEAN_MAX = tuple(f"{name}-mean-max" for name in ENCODER_PAIRS)
_GERMAN = "pruning/multi30k-de-en"


class Columns(SentenceStatistics):
    """The study of score columns for one language pair."""

    def rows(self, columns: str = "", loss: str = "", size: float = 1.0) -> list[int]:
        """The systems with some columns, one for each tuning seed."""
        s = self.systems
        return [int(index) for index in s[(s.columns_ == columns) & (s.loss == loss) & (s["size_"] == size)].index]

    def __init__(self, name: str) -> None:
        super().__init__(name, RESULTS)
        # `columns` and `size` are attributes of every data frame.
        self.systems = self.systems.rename(columns={"columns": "columns_", "size": "size_"})

    @property
    def plain(self) -> list[int]:
        """The table as it is."""
        return self.rows()

    def gain(self, columns: str, loss: str = "", size: float = 1.0) -> Comparison | None:
        """Columns compared with the full table as it is."""
        rows = self.rows(columns, loss, size)
        return self.compare(rows, self.plain) if rows else None

    def gain_of_similarities(self) -> Comparison | None:
        """All six columns compared with the four that need no model."""
        rows, others = self.rows(SIX, DEFAULT_LOSS), self.rows(FOUR)
        return self.compare(rows, others) if rows and others else None


@cache
def pairs() -> list[Columns]:
    """All language pairs that have results, as the pruning study orders them."""
    return [Columns(name) for name in studied() if (RESULTS / f"{name}.json").exists()]


def _cell(gain: Comparison | None) -> str:
    return change(gain) if gain else ""


def with_columns() -> str:
    """BLEU of tables tuned again with columns, less that of the table as it is; only columns with results."""
    gains: dict[str, list[Comparison | None]] = {
        "similarities": [pair.gain(SIMILAR, DEFAULT_LOSS) for pair in pairs()],
        "BRAE's similarities": [pair.gain(SIMILAR, BRAE) for pair in pairs()],
        "smoothed": [pair.gain(SMOOTHED) for pair in pairs()],
        "smoothed, forced": [pair.gain(FOUR) for pair in pairs()],
        "all six": [pair.gain(SIX, DEFAULT_LOSS) for pair in pairs()],
        "all six, compared with the four": [pair.gain_of_similarities() for pair in pairs()],
    }
    shown = {head: cells for head, cells in gains.items() if any(cells)}
    rows = [
        [str(pair.facts["name"]), f"{pair.bleu(pair.plain):.2f}", *(_cell(cells[row]) for cells in shown.values())]
        for row, pair in enumerate(pairs())
    ]
    return markdown(" | ".join(["language pair", "full", *shown]), rows)


def tenth_with_columns() -> str:
    """The same for tables pruned to a tenth."""
    rows = []
    for pair in pairs():
        gains = [pair.gain("", "", TENTH), pair.gain(SIX, DEFAULT_LOSS, TENTH)]
        if all(gains):
            rows.append([str(pair.facts["name"]), f"{pair.bleu(pair.plain):.2f}", *map(_cell, gains)])
    return markdown("language pair | full | 10 % kept | 10 % kept, all six", rows)


def dimensions() -> str:
    """Table 2 of the BRAE paper: the similarities as columns, by the dimension of the model."""
    (pair,) = (one for one in pairs() if one.name == REFERENCE)
    rows = [["no similarities", f"{pair.bleu(pair.plain):.2f}", ""]]
    for label, loss in {
        "n = 50": DEFAULT_LOSS,
        **{loss: loss for loss in DIMENSIONS},
        "n = 50, BRAE's loss": BRAE,
    }.items():
        if systems := pair.rows(SIMILAR, loss):
            rows.append([label, f"{pair.bleu(systems):.2f}", change(pair.compare(systems, pair.plain))])
    return markdown("model | BLEU | difference", rows)


def full(name: str) -> dict[str, Any]:
    """The row of the table that was not pruned."""
    return pruning(name)["full"]["full"]


def bleu(row: dict[str, Any]) -> str:
    """BLEU, and whether it differs from that of the full table."""
    return f"{row['bleu']:.2f}{mark(row['p'])}"


def encoders() -> str:
    """Pruning with the similarities of either encoder."""
    wanted = [("semantic", "0.28"), ("semantic", "0.1"), ("semantic", ">= 0.7, words"),
              ("count+semantic", "0.1"), ("composition+semantic*2+usage", "0.1")]  # fmt: skip
    rows = []
    for name in ENCODER_PAIRS:
        both = [name, f"{name}-mean-max"]
        cells = [str(facts(name)["name"]), " / ".join(f"{full(run)['bleu']:.2f}" for run in both)]
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
    return markdown("score of an entry: its count, times | 10 % kept | 5 % kept", rows)


def ranking_mean(variant: str, size: str) -> float:
    """BLEU, the mean over the development sets."""
    sets = results("ranking_on_dev")["bleu of development sets"].values()
    return sum(found[variant][size] for found in sets) / len(sets)


def _contested(names: Iterable[str], better: int) -> int:
    """Comparisons at p < 0.05 in which the method with similarities is better (1) or worse (-1)."""
    rows = [row for name in names for row in contests(name).values()]
    return sum(row["p"] < 0.05 and row["difference"] * better > 0 for row in rows)


def _gains(columns: str, loss: str) -> list[Comparison]:
    return [gain for pair in pairs() if (gain := pair.gain(columns, loss))]


def _beyond() -> list[Comparison]:
    return [gain for pair in pairs() if (gain := pair.gain_of_similarities())]


def _extreme(pick: Callable[[Sequence[float]], float], gains: Sequence[Comparison]) -> str:
    return f"{pick([gain.difference for gain in gains]):+.2f}"


def _significant(gains: Sequence[Comparison]) -> str:
    return NUMBERS[sum(gain.significant and gain.difference > 0 for gain in gains)]


TABLES = {
    "columns": with_columns, "columns of a tenth": tenth_with_columns, "dimensions": dimensions, "encoders": encoders,
    "ranking": ranking,
}  # fmt: skip
VALUES = {
    "columns: least gain of the four": lambda: _extreme(min, _gains(FOUR, "")),
    "columns: largest gain of the four": lambda: _extreme(max, _gains(FOUR, "")),
    "columns: pairs that gain by the four": lambda: _significant(_gains(FOUR, "")),
    "columns: pairs": lambda: NUMBERS[len(pairs())],
    "columns: least gain of all six": lambda: _extreme(min, _gains(SIX, DEFAULT_LOSS)),
    "columns: largest gain of all six": lambda: _extreme(max, _gains(SIX, DEFAULT_LOSS)),
    "columns: pairs that gain by all six": lambda: _significant(_gains(SIX, DEFAULT_LOSS)),
    "columns: least gain of similarities": lambda: _extreme(min, _gains(SIMILAR, DEFAULT_LOSS)),
    "columns: largest gain of similarities": lambda: _extreme(max, _gains(SIMILAR, DEFAULT_LOSS)),
    "columns: pairs that gain by similarities": lambda: _significant(_gains(SIMILAR, DEFAULT_LOSS)),
    "columns: least gain beyond the four": lambda: _extreme(min, _beyond()),
    "columns: largest gain beyond the four": lambda: _extreme(max, _beyond()),
    "columns: pairs that gain beyond the four": lambda: _significant(_beyond()),
    "ranking without uses, 5 %": lambda: f"{ranking_mean('loss 0.3..1, similarity', '0.05'):.2f}",
    "ranking with uses, 5 %": lambda: f"{ranking_mean('loss 0.3..1, similarity, uses', '0.05'):.2f}",
    "mean-max comparisons": lambda: f"{sum(len(contests(name)) for name in MEAN_MAX)}",
    "mean-max comparisons won": lambda: NUMBERS[_contested(MEAN_MAX, 1)],
    "mean-max comparisons lost": lambda: NUMBERS[_contested(MEAN_MAX, -1)],
    "cost of the threshold, German": lambda: f"{-find(f'{_GERMAN}/semantic/>= 0.7, words/difference'):.1f}",
    "mean-max cost of the threshold, German": lambda: (
        f"{-find(f'{_GERMAN}-mean-max/semantic/>= 0.7, words/difference'):.1f}"
    ),
}  # fmt: skip
