"""Tables for the documentation: effect of pruning on BLEU, from the pruning study; see `study`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from study import DEFAULT_LOSS as LOSS
from study import MARGIN, SIZES, WITH, WITHOUT, Comparison, Study, studied, study

from page_tables.kept_results import mark, markdown

DEFAULT = "composition+semantic+usage"
BRAE = "max-margin"
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
# Zhang et al. (2014), table 1: threshold -> share of the entries kept in %, BLEU of all their texts together.
_PAPER = {
    "": (100, 34.82),
    "0.4": (52, 35.16), "0.5": (44, 34.89), "0.6": (35, 35.05), "0.7": (28, 34.76), "0.8": (20, 34.04),
    "8": (48, 35.13), "12": (36, 34.72), "16": (25, 34.09), "20": (18, 33.97),
}  # fmt: skip


def title(pair: Study) -> str:
    """Return the title of a language pair."""
    return str(pair.facts["name"])


def pairs() -> list[Study]:
    """Return all language pairs of the study."""
    return [study(name) for name in studied()]


def percent(size: float) -> str:
    """Format a share as per cent with a non-breaking space, 0.1 as `10 %`."""
    return f"{100 * size:g}\u00a0%"


def escaped(method: str) -> str:
    """Return the name of a method, escaped for Markdown."""
    return method.replace("*", "\\*")


def stars(compared: Comparison) -> str:
    """Return the stars of a comparison."""
    return mark(compared.p, compared.low, compared.high)


def change(comparison: Comparison) -> str:
    """Format a difference with its interval and stars of significance."""
    return f"{comparison.difference:+.2f}{stars(comparison)} ({comparison.low:+.2f} to {comparison.high:+.2f})"


def complete() -> list[Study]:
    """Return the language pairs with results for all methods and sizes."""
    return [pair for pair in pairs() if pair.rows("composition", wanted=0.28)]


def summary() -> str:
    """Return the README's table: the rule of the paper, and a tenth of the table by three methods."""
    cells = []
    for pair in pairs():
        systems = [
            pair.rows("semantic", "threshold", 0.7, LOSS), pair.method(DEFAULT, 0.1), pair.method("count", 0.1),
            pair.method("significance", 0.1),
        ]  # fmt: skip
        comparisons = [pair.compare(rows, pair.full) for rows in systems]
        cells.append([
            title(pair), f"{pair.mean(pair.full, 'of'):,.0f}", f"{pair.bleu(pair.full):.2f}",
            *(f"{comparison.difference:+.2f}{stars(comparison)}" for comparison in comparisons),
        ])  # fmt: skip
    head = "language pair | entries | BLEU | threshold 0.7 | 10 % kept | 10 %, by count | 10 %, by significance"
    return markdown(head, cells)


def by_size() -> str:
    """Return a table of the change of BLEU from pruning by the default method, by size."""
    cells = []
    for pair in complete():
        changes = [change(pair.compare(pair.method(DEFAULT, size), pair.full)) for size in SIZES]
        cells.append([title(pair), f"{pair.mean(pair.full, 'of'):,.0f}", f"{pair.bleu(pair.full):.2f}", *changes])
    return markdown("language pair | entries | full | " + " | ".join(map(percent, SIZES)), cells)


def by_method() -> str:
    """Return a table of BLEU of tables pruned to a tenth, by method."""
    shown = (DEFAULT, "composition+semantic", "semantic", "composition+usage", "composition", "count", "significance")
    cells = []
    for pair in complete():
        row = [title(pair), f"{pair.bleu(pair.full):.2f}"]
        for rows in [pair.method(method, 0.1) for method in shown] + [pair.rows("random", wanted=0.1)]:
            row.append(f"{pair.bleu(rows):.2f}{stars(pair.compare(rows, pair.full))}")
        cells.append(row)
    head = "comp.+sem.+usage | comp.+sem. | semantic | comp.+usage | composition | count | significance | random"
    return markdown(f"language pair | full | {head}", cells)


def rule(loss: str = LOSS) -> str:
    """Return a table of the rule of the BRAE paper: removed entries and occurrences, change of BLEU."""
    cells = []
    for pair in pairs():
        rows = pair.rows("semantic", "threshold", 0.7, loss)
        if not rows:
            continue
        comparison = pair.compare(rows, pair.full)
        cells.append([
            title(pair), f"{pair.bleu(pair.full):.2f}", f"{100 * (1 - pair.mean(rows, 'share')):.1f} %",
            f"{100 * (1 - pair.mean(rows, 'occurrences')):.1f} %", change(comparison),
            "yes" if comparison.non_inferior else "no",
        ])  # fmt: skip
    head = "language pair | full | entries removed | occurrences removed | BLEU | non-inferior"
    return markdown(head, cells)


def losses() -> str:
    """Return a table of pruning by similarity alone, by the loss of the model and its training pairs."""
    named = {
        LOSS: "default", "uncorrected": "no correction, no counts, temperature 0.1",
        "plain pairs": "default, plain forced decoding",
        BRAE: "BRAE (`max-margin`)",
    }  # fmt: skip
    cells = []
    for pair in pairs():
        for loss, label in named.items():
            sets = [
                pair.rows("semantic", "threshold", 0.7, loss), pair.method("semantic", 0.28, loss),
                pair.method("semantic", 0.1, loss),
            ]  # fmt: skip
            if all(sets):
                cells.append([title(pair), label, *(change(pair.compare(rows, pair.full)) for rows in sets)])
    return markdown("language pair | model | threshold 0.7 | 28 % kept | 10 % kept", cells, right=2)


def thresholds(name: str = "multi30k-de-en") -> str:
    """Return table 1 of the BRAE paper: thresholds of similarity and significance, here and in the paper."""
    pair = study(name)

    def paper(value: str) -> list[str]:
        if value not in _PAPER:
            return ["", ""]
        share, bleu = _PAPER[value]
        return [f"{share} %", f"{bleu:.2f} ({bleu - _PAPER[''][1]:+.2f})"]

    cells = [["full table", "100.0 %", f"{pair.bleu(pair.full):.2f}", *paper("")]]
    systems = [
        (f"{label}, {value}", value if loss == BRAE else "-", pair.rows("semantic", "threshold", float(value), loss))
        for loss, label in ((LOSS, "default loss"), (BRAE, "BRAE's loss"))
        for value in ("0.4", "0.5", "0.6", "0.7", "0.8")
    ]
    systems += [
        (f"significance, {value}", value, pair.rows(f"significance:{value}", "threshold", 0.0))
        for value in ("8", "12", "16", "20", "a+e")
    ]
    for label, value, rows in systems:
        if rows:
            cells.append([
                label, f"{100 * pair.mean(rows, 'share'):.1f} %",
                f"{pair.bleu(rows):.2f}, {change(pair.compare(rows, pair.full))}", *paper(value),
            ])  # fmt: skip
    return markdown("threshold | entries kept | BLEU, difference | paper: kept | paper: BLEU", cells)


@cache
def contests(pair: Study) -> list[tuple[float, str, str, Sequence[int], Sequence[int], Comparison]]:
    """Compare the best methods with and without similarities at each size, both chosen on the development set.

    Methods are chosen with models of the first seed, and compared with models of all seeds.
    """
    pairings = []
    for size in SIZES:
        best, best_without = pair.best_on_dev(WITH, size), pair.best_on_dev(WITHOUT, size)
        rows, others = pair.method(best, size), pair.method(best_without, size)
        pairings.append((size, best, best_without, rows, others, pair.compare(rows, others)))
    return pairings


def meaning() -> str:
    """Return a table that compares the best methods with and without similarities at every size."""
    cells = []
    for pair in complete():
        for size, best, best_without, rows, others, comparison in contests(pair):
            cells.append([
                title(pair), percent(size), escaped(best), escaped(best_without), f"{pair.bleu(rows):.2f}",
                f"{pair.bleu(others):.2f}", change(comparison),
            ])  # fmt: skip
    return markdown(
        "language pair | kept | best with | best without | BLEU with | without | difference", cells, right=4
    )


def _contested(sign: int) -> int:
    """Count the comparisons in which similarities are significantly better (1) or worse (-1)."""
    every = [row[-1] for pair in complete() for row in contests(pair)]
    return sum(comparison.significant and comparison.difference * sign > 0 for comparison in every)


def _non_inferior(method: str, size: float) -> int:
    """Count the pairs for which a loss of more than the margin can be excluded."""
    return sum(pair.compare(pair.method(method, size), pair.full).non_inferior for pair in pairs())


def _rule(column: str, loss: str = LOSS) -> list[float]:
    """Return the shares removed by the rule of the BRAE paper, in per cent."""
    return [100 * (1 - pair.mean(pair.rows("semantic", "threshold", 0.7, loss), column)) for pair in pairs()]


def _seeds() -> str:
    """Return the number of models behind the means of similarity alone, by language pair."""
    numbers = {title(pair): len(pair.method("semantic", 0.1)) for pair in pairs()}
    return ", ".join(f"{NUMBERS[number]} on {name}" for name, number in numbers.items())


def _within(size: float, least: float) -> int:
    """Count the pairs for which the change of BLEU from similarity alone at a size is above a limit."""
    return sum(pair.compare(pair.method("semantic", size), pair.full).difference > least for pair in pairs())


def _rule_non_inferior() -> int:
    return sum(pair.compare(pair.rows("semantic", "threshold", 0.7, LOSS), pair.full).non_inferior for pair in pairs())


def _leave_one_out(name: str, size: float) -> str:
    """Return the change of BLEU by training on pairs of leave-one-out forced decoding instead of plain, at a size."""
    pair = study(name)
    return change(pair.compare(pair.method("semantic", size), pair.method("semantic", size, "plain pairs")))


def _worst(loss: str) -> float:
    """Return the largest loss in BLEU if similarity alone keeps 28 % of the entries."""
    rows = [(pair, pair.method("semantic", 0.28, loss)) for pair in pairs()]
    return max(-pair.compare(seeds, pair.full).difference for pair, seeds in rows if seeds)


TABLES = {
    "study: summary": summary, "study: by size": by_size, "study: by method": by_method, "study: rule": rule,
    "study: losses": losses, "study: thresholds": thresholds, "study: meaning": meaning,
}  # fmt: skip
_REFERENCE = "multi30k-de-en"
VALUES = {
    "study: within ten": lambda: f"{100 * study(_REFERENCE).facts['of sources with at most ten']:.0f}",
    "study: ten best": lambda: f"{100 * study(_REFERENCE).facts['ten best']:.0f}",
    "study: pairs": lambda: NUMBERS[len(pairs())],
    "study: margin": lambda: f"{-MARGIN:.1f}",
    "study: pairs without loss at a tenth": lambda: NUMBERS[_non_inferior(DEFAULT, 0.1)],
    "study: pairs without loss by the rule": lambda: NUMBERS[_rule_non_inferior()],
    "study: comparisons": lambda: f"{sum(len(contests(pair)) for pair in complete())}",
    "study: comparisons won": lambda: NUMBERS[_contested(1)],
    "study: comparisons lost": lambda: NUMBERS[_contested(-1)] if _contested(-1) else "none",
    "study: seeds": _seeds,
    "study: pairs at 28 %": lambda: NUMBERS[_within(0.28, -0.5)],
    "study: pairs at 10 %": lambda: NUMBERS[_within(0.1, -1.5)],
    "study: most occurrences removed by the rule": lambda: f"{max(_rule('occurrences')):.1f}",
    "study: most entries removed by the rule": lambda: f"{max(_rule('share')):.1f}",
    "study: least entries removed by the rule": lambda: f"{min(_rule('share')):.1f}",
    "study: most entries removed by BRAE's loss": lambda: f"{max(_rule('share', BRAE)):.1f}",
    **{
        f"study: leave-one-out, {name}, {100 * size:g} %": partial(_leave_one_out, name, size)
        for name in ("multi30k-de-en", "enja-small")
        for size in (0.28, 0.1)
    },
    "study: largest loss without correction": lambda: f"{_worst('uncorrected'):.1f}",
}
