"""Tables for the documentation: pivot tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from pivoting import LEGS, OTHER_COUNTS, PRUNING, SMALLEST, WITH, WITHOUT
from study import DEFAULT_LOSS, DEV, SIZES, Comparison, SentenceStatistics

from page_tables.kept_results import difference, find, markdown
from page_tables.pruning import BRAE, NUMBERS, change, percent, stars

_NAMES = {"de-cs": "German-Czech", "cs-de": "Czech-German", "zh-es": "Chinese-Spanish"}
# Source of a method's similarities or counts -> its label.
_BY = {"": "", OTHER_COUNTS: " of `--counts min`", LEGS: ", of the halves", DEFAULT_LOSS: ", of the pairs"}
_WITHOUT = tuple((method, "") for method in WITHOUT)
_WITH = tuple((method, by) for by in (LEGS, DEFAULT_LOSS) for method in WITH)
_SIMILARITIES = {LEGS: "of the halves", DEFAULT_LOSS: "of the pairs", BRAE: "of the pairs, BRAE's loss"}
# System -> scores of its table in addition to the four.
_SCORES = {
    "plain": "plain", "control": "path columns", "control+legs": "path columns, similarities of the halves",
    "control+model": "path columns, similarities of the new pairs",
}  # fmt: skip
# Suffixes of systems with additional entries and with reranking, and the table of the translated bitext.
_WORDS, _RERANKED, _TRANSLATED = "+words", "+rerank", "translated"


def _pairs() -> dict[str, dict[str, Any]]:
    """Return the systems of each pair with results, in the order of `_NAMES`."""
    pairs = find("pivoting/pairs")
    return {name: pairs[pair]["systems"] for pair, name in _NAMES.items() if pair in pairs}


def systems() -> str:
    """Return a table of BLEU with additional scores, after tuning."""
    others = ("direct-", "together-", _TRANSLATED)
    rows = []
    for pair, by_system in _pairs().items():
        names = [name for name in by_system if not (name.startswith(others) or name.endswith((_WORDS, _RERANKED)))]
        for name in sorted(names, key=lambda name: name != "plain"):
            figures = by_system[name]
            gains = [difference(figures[to]) if to in figures else "" for to in ("to plain", "to control")]
            rows.append([pair, _SCORES[name], str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *gains])
    return markdown("pair | scores | tuning seeds | BLEU | difference to plain | to path columns", rows, right=2)


def everything() -> str:
    """Return a table of BLEU with additional entries, reranking, and a bitext translated from English."""
    rows = []
    for pair, by_system in _pairs().items():
        names = [name for name in by_system if name.endswith((_WORDS, _RERANKED))]
        names.sort(key=lambda name: (_RERANKED in name, _WORDS in name, not name.startswith("plain"), name))
        for name in ("plain", *names, *([_TRANSLATED] if _TRANSLATED in by_system else [])):
            figures = by_system[name]
            shown = name.replace("control", "path columns").replace(_WORDS, " + words").replace(_RERANKED, " + rerank")
            gain = difference(figures["to plain"]) if "to plain" in figures else ""
            rows.append([pair, shown, str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", gain])
    return markdown("pair | system | tuning seeds | BLEU | difference to plain", rows, right=2)


class Pivot(SentenceStatistics):
    """The study of pruned tables for one language pair."""

    def rows(self, weights: str, method: str = "full", wanted: float = 1.0, loss: str = "") -> list[int]:
        """Return the systems of a method, one per model seed; `loss` may also name other similarities or counts."""
        s = self.systems
        chosen = (s.weights == weights) & (s.method == method) & np.isclose(s.wanted, wanted) & (s.loss == loss)
        return [int(index) for index in s[chosen].index]

    def best_on_dev(self, systems: Sequence[tuple[str, str]], size: float) -> tuple[str, str]:
        """Return the method with the best BLEU on the development set, with models of the first seed."""
        first = {system: self.rows("tuned", system[0], size, system[1])[:1] for system in systems}
        return max(
            (system for system, rows in first.items() if rows), key=lambda candidate: self.bleu(first[candidate], DEV)
        )


@cache
def pruning() -> list[Pivot]:
    """Return the language pairs with results, in the order of `_NAMES`."""
    return [Pivot(pair, PRUNING) for pair in _NAMES if (PRUNING / f"{pair}.json").exists()]


def pruned() -> str:
    """Return a table of BLEU of pruned tables, with the tuned weights of the full table."""
    return _pruned("tuned", SIZES)


def untuned() -> str:
    """Return the same with default weights."""
    return _pruned("default", SMALLEST)


def _pruned(weights: str, sizes: Sequence[float]) -> str:
    """Return a table of BLEU by method, marked if significantly different from that of the full table."""
    rows = []
    for study in pruning():
        full = study.rows(weights)
        rows.append([study.facts["name"], "the whole table", f"{study.bleu(full):.2f}", *[""] * len(sizes)])
        for method, by in (*_WITHOUT, ("count", OTHER_COUNTS), *_WITH):
            systems = [study.rows(weights, method, size, by) for size in sizes]
            cells = [
                f"{study.bleu(system):.2f}{stars(study.compare(system, full))}" if system else "" for system in systems
            ]
            rows.append([study.facts["name"], _called(method, by), "", *cells])
    return markdown(f"pair | method | all | {' | '.join(map(percent, sizes))}", rows, right=2)


def _called(method: str, by: str) -> str:
    return f"`{method}`{_BY[by]}"


def losses() -> str:
    """Return a table of the change of BLEU from pruning by similarity alone, by source of the similarities."""
    rows = []
    for study in pruning():
        full = study.rows("tuned")
        for by in (LEGS, DEFAULT_LOSS, BRAE):
            systems = [study.rows("tuned", "semantic", value, by) for value in (0.7, *SIZES)]
            cells = [change(study.compare(system, full)) if system else "" for system in systems]
            rows.append([study.facts["name"], _SIMILARITIES[by], *cells])
    return markdown(f"pair | similarities | threshold 0.7 | {' | '.join(map(percent, SIZES))}", rows, right=2)


@cache
def _contests() -> list[tuple[Pivot, float, tuple[str, str], tuple[str, str], Comparison]]:
    """Compare the best methods with and without similarities at each size, both chosen on the development set."""
    results = []
    for study in pruning():
        for size in SIZES:
            best, best_without = study.best_on_dev(_WITH, size), study.best_on_dev(_WITHOUT, size)
            rows, others = (study.rows("tuned", method, size, by) for method, by in (best, best_without))
            results.append((study, size, best, best_without, study.compare(rows, others)))
    return results


def meaning() -> str:
    """Return a table that compares the best methods with and without similarities at every size."""
    rows = [
        [study.facts["name"], percent(size), _called(*best), _called(*best_without), change(difference)]
        for study, size, best, best_without, difference in _contests()
    ]
    return markdown("pair | kept | best with | best without | difference", rows, right=4)


def _contested(sign: int) -> str:
    return NUMBERS[sum(contest[-1].significant and contest[-1].difference * sign > 0 for contest in _contests())]


def _change(pair: str, method: str, size: float, by: str = "", other: tuple[str, str] | None = None) -> str:
    """Return the change of BLEU from a method to another at the same size, or to the full table if None."""
    study = next(study for study in pruning() if study.name == pair)
    others = study.rows("tuned") if other is None else study.rows("tuned", other[0], size, other[1])
    return change(study.compare(study.rows("tuned", method, size, by), others))


def _without_loss(size: float) -> str:
    """Return the number of pairs on which the table pruned by count is non-inferior to the whole one."""
    every = [study.compare(study.rows("tuned", "count", size), study.rows("tuned")) for study in pruning()]
    return NUMBERS[sum(compared.non_inferior for compared in every)]


def _sizes(results: dict[str, Any], kind: str) -> list[int]:
    """Return the sizes of the direct bitexts of a kind of systems, ascending."""
    return sorted(int(name.removeprefix(kind)) for name in results if name.startswith(kind))


def together() -> str:
    """Return a table of BLEU with a direct and a pivot table in one ini."""
    rows = []
    for pair, by_system in _pairs().items():
        for size in _sizes(by_system, "together-"):
            figures = by_system[f"together-{size}"]
            gains = [difference(figures[to]) for to in ("to direct", "to plain")]
            rows.append([pair, f"{size:,}", str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *gains])
    return markdown(
        "pair | sentence pairs | tuning seeds | BLEU of both tables | to the direct table | to the pivot table",
        rows, right=2,
    )  # fmt: skip


def direct() -> str:
    """Return a table of BLEU with tables of direct bitexts."""
    rows = []
    for pair, by_system in _pairs().items():
        for size in _sizes(by_system, "direct-"):
            figures = by_system[f"direct-{size}"]
            rows.append([pair, f"{size:,}", f"{np.mean(figures['BLEU']):.2f}", difference(figures["to plain"])])
    return markdown("pair | sentence pairs | BLEU | difference to the pivot table", rows)


TABLES = {
    "systems through English": systems,
    "everything through English": everything,
    "pruned tables through English": pruned,
    "direct bitexts": direct,
    "pruned with default weights": untuned,
    "both tables": together,
    "similarities alone through English": losses,
    "similarities through English": meaning,
}
VALUES = {
    "pivot: comparisons": lambda: str(len(_contests())),
    "pivot: comparisons won": lambda: _contested(1),
    "pivot: comparisons lost": lambda: _contested(-1),
    "pivot: pairs": lambda: NUMBERS[len(pruning())],
    "pivot: pairs without loss at 28 %": lambda: _without_loss(0.28),
    "pivot: pairs without loss at a tenth": lambda: _without_loss(0.1),
    **{f"pivot: {pair}, count at a tenth": partial(_change, pair, "count", 0.1) for pair in _NAMES},
    **{
        f"pivot: {pair}, other counts at a twentieth": partial(
            _change, pair, "count", 0.05, OTHER_COUNTS, ("count", "")
        )
        for pair in _NAMES
    },
}
