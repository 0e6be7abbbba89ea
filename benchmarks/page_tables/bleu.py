"""Tables for the documentation: score columns, encoders, and the choice of the default method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from columns_study import BRAE, FORCED, REFERENCE, RESULTS, SIMILAR, SMOOTHED, TENTH
from study import DEFAULT_LOSS, Comparison, SentenceStatistics, Study, studied, study
from trial import DIMENSIONS

from page_tables.kept_results import markdown, results
from page_tables.pruning import NUMBERS, change, title

FOUR = f"{SMOOTHED}+{FORCED}"
SIX = f"{FOUR}+{SIMILAR}"
MEAN_MAX = "mean-max"
# Language pairs whose test sets are small, so that their intervals are wide.
UNCERTAIN = ("enja-small", "tatoeba-zh-en")


class Columns(SentenceStatistics):
    """The study of score columns for one language pair."""

    def rows(self, columns: str = "", loss: str = "", size: float = 1.0) -> list[int]:
        """Return the systems with some columns, one for each tuning seed."""
        s = self.systems
        return [int(index) for index in s[(s.columns_ == columns) & (s.loss == loss) & (s["size_"] == size)].index]

    def __init__(self, name: str) -> None:
        super().__init__(name, RESULTS)
        # `columns` and `size` are attributes of every data frame.
        self.systems = self.systems.rename(columns={"columns": "columns_", "size": "size_"})

    @property
    def plain(self) -> list[int]:
        """The full table without additional columns."""
        return self.rows()

    def gain(self, columns: str, loss: str = "", size: float = 1.0) -> Comparison | None:
        """Compare a table with columns with the full table without them."""
        rows = self.rows(columns, loss, size)
        return self.compare(rows, self.plain) if rows else None

    def gain_of_similarities(self) -> Comparison | None:
        """Compare all six columns with the four that need no model."""
        rows, others = self.rows(SIX, DEFAULT_LOSS), self.rows(FOUR)
        return self.compare(rows, others) if rows and others else None


@cache
def pairs() -> list[Columns]:
    """Return all language pairs with results, in the order of the pruning study."""
    return [Columns(name) for name in studied() if (RESULTS / f"{name}.json").exists()]


def _cell(gain: Comparison | None) -> str:
    return change(gain) if gain else ""


def with_columns() -> str:
    """Return a table of gains in BLEU from columns after tuning again, for columns with results."""
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
    """Return the same for tables pruned to a tenth."""
    rows = []
    for pair in pairs():
        gains = [pair.gain("", "", TENTH), pair.gain(SIX, DEFAULT_LOSS, TENTH)]
        if all(gains):
            rows.append([str(pair.facts["name"]), f"{pair.bleu(pair.plain):.2f}", *map(_cell, gains)])
    return markdown("language pair | full | 10 % kept | 10 % kept, all six", rows)


def dimensions() -> str:
    """Return table 2 of the BRAE paper: similarities as columns, by the dimension of the model."""
    (pair,) = (candidate for candidate in pairs() if candidate.name == REFERENCE)
    rows = [["no similarities", f"{pair.bleu(pair.plain):.2f}", ""]]
    for label, loss in {
        "n = 50": DEFAULT_LOSS,
        **{loss: loss for loss in DIMENSIONS},
        "n = 50, BRAE's loss": BRAE,
    }.items():
        if systems := pair.rows(SIMILAR, loss):
            rows.append([label, f"{pair.bleu(systems):.2f}", change(pair.compare(systems, pair.plain))])
    return markdown("model | BLEU | difference", rows)


def encoders() -> str:
    """Return a table of pruning with the similarities of each encoder, with models of the first seed."""
    rows = []
    for pair in _both_encoders():
        cells = [title(pair)]
        for rule, value in (("threshold", 0.7), ("size", 0.28), ("size", 0.1)):
            for loss in (DEFAULT_LOSS, MEAN_MAX):
                cells.append(change(pair.compare(pair.rows("semantic", rule, value, loss)[:1], pair.full)))
        rows.append(cells)
    head = "threshold 0.7: RAE | mean-max | 28 % kept: RAE | mean-max | 10 % kept: RAE | mean-max"
    return markdown(f"language pair | {head}", rows)


def _both_encoders() -> list[Study]:
    return [study(name) for name in studied() if study(name).rows("semantic", wanted=0.1, loss=MEAN_MAX)]


def ranking() -> str:
    """Return a table of mean BLEU on all development sets for the tried variants of the default method."""
    sets = results("ranking_on_dev")["bleu of development sets"]
    rows = []
    for variant in next(iter(sets.values())):
        if variant != "full":
            rows.append([variant, *(f"{ranking_mean(variant, size):.2f}" for size in ("0.1", "0.05"))])
    return markdown("score of an entry: its count, times | 10 % kept | 5 % kept", rows)


def ranking_mean(variant: str, size: str) -> float:
    """Return mean BLEU on the development sets."""
    sets = results("ranking_on_dev")["bleu of development sets"].values()
    return sum(variants[variant][size] for variants in sets) / len(sets)


def _gains(columns: str, loss: str, without: Sequence[str] = ()) -> list[Comparison]:
    """Return the gains of all language pairs except some."""
    return [gain for pair in pairs() if pair.name not in without and (gain := pair.gain(columns, loss))]


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
    "columns: least gain of the four, larger tables": lambda: _extreme(min, _gains(FOUR, "", UNCERTAIN)),
    "columns: largest gain of the four, larger tables": lambda: _extreme(max, _gains(FOUR, "", UNCERTAIN)),
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
}  # fmt: skip
