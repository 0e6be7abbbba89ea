"""Tables of what comes through a middle language; see result_tables.py."""

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
# Similarities or counts of a method.
_BY = {"": "", OTHER_COUNTS: " of `--counts min`", LEGS: ", of the halves", DEFAULT_LOSS: ", of the pairs"}
_WITHOUT = tuple((method, "") for method in WITHOUT)
_WITH = tuple((method, by) for by in (LEGS, DEFAULT_LOSS) for method in WITH)
_SIMILARITIES = {LEGS: "of the halves", DEFAULT_LOSS: "of the pairs", BRAE: "of the pairs, BRAE's loss"}
# Scores of a table in addition to its four.
_SCORES = {
    "plain": "plain", "control": "path columns", "control+legs": "path columns, similarities of the halves",
    "control+model": "path columns, similarities of the new pairs",
}  # fmt: skip
# Where the table got more entries, where a translator chose, and a table of what that was trained on.
_WORDS, _RERANKED, _TRANSLATED = "+words", "+rerank", "translated"


def _pairs() -> dict[str, dict[str, Any]]:
    """Name of a pair -> its systems, those with figures; pairs in the order of their names here."""
    pairs = find("pivoting/pairs")
    return {name: pairs[pair]["systems"] for pair, name in _NAMES.items() if pair in pairs}


def systems() -> str:
    """BLEU of tables with more scores, tuned."""
    others = ("direct-", "together-", _TRANSLATED)
    rows = []
    for pair, found in _pairs().items():
        names = [name for name in found if not (name.startswith(others) or name.endswith((_WORDS, _RERANKED)))]
        for name in sorted(names, key=lambda name: name != "plain"):
            figures = found[name]
            gains = [difference(figures[to]) if to in figures else "" for to in ("to plain", "to control")]
            rows.append([pair, _SCORES[name], str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *gains])
    return markdown("pair | scores | tuning seeds | BLEU | difference to plain | to path columns", rows, right=2)


def everything() -> str:
    """BLEU with more entries, and reranked; and of a table whose bitext was translated from English."""
    rows = []
    for pair, found in _pairs().items():
        names = [name for name in found if name.endswith((_WORDS, _RERANKED))]
        names.sort(key=lambda name: (_RERANKED in name, _WORDS in name, not name.startswith("plain"), name))
        for name in ("plain", *names, *([_TRANSLATED] if _TRANSLATED in found else [])):
            figures = found[name]
            shown = name.replace("control", "path columns").replace(_WORDS, " + words").replace(_RERANKED, " + rerank")
            gain = difference(figures["to plain"]) if "to plain" in figures else ""
            rows.append([pair, shown, str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", gain])
    return markdown("pair | system | tuning seeds | BLEU | difference to plain", rows, right=2)


class Pivot(SentenceStatistics):
    """The study of pruned tables for one language pair."""

    def rows(self, weights: str, method: str = "full", wanted: float = 1.0, loss: str = "") -> list[int]:
        """The systems of a method, one for each seed of the model; `loss` also names other similarities or counts."""
        s = self.systems
        chosen = (s.weights == weights) & (s.method == method) & np.isclose(s.wanted, wanted) & (s.loss == loss)
        return [int(index) for index in s[chosen].index]

    def best_on_dev(self, systems: Sequence[tuple[str, str]], size: float) -> tuple[str, str]:
        """The method with the best BLEU on the development set, with models of the first seed."""
        first = {system: self.rows("tuned", system[0], size, system[1])[:1] for system in systems}
        return max((system for system, rows in first.items() if rows), key=lambda one: self.bleu(first[one], DEV))


@cache
def pruning() -> list[Pivot]:
    """The language pairs that have results, in the order of their names here."""
    return [Pivot(pair, PRUNING) for pair in _NAMES if (PRUNING / f"{pair}.json").exists()]


def pruned() -> str:
    """BLEU of pruned tables, with the tuned weights of the whole one."""
    return _pruned("tuned", SIZES)


def untuned() -> str:
    """The same with default weights."""
    return _pruned("default", SMALLEST)


def _pruned(weights: str, sizes: Sequence[float]) -> str:
    """Methods without similarities first; BLEU, marked where it differs from that of the whole table."""
    rows = []
    for study in pruning():
        full = study.rows(weights)
        rows.append([study.facts["name"], "the whole table", f"{study.bleu(full):.2f}", *[""] * len(sizes)])
        for method, by in (*_WITHOUT, ("count", OTHER_COUNTS), *_WITH):
            systems = [study.rows(weights, method, size, by) for size in sizes]
            cells = [f"{study.bleu(one):.2f}{stars(study.compare(one, full))}" if one else "" for one in systems]
            rows.append([study.facts["name"], _called(method, by), "", *cells])
    return markdown(f"pair | method | all | {' | '.join(map(percent, sizes))}", rows, right=2)


def _called(method: str, by: str) -> str:
    return f"`{method}`{_BY[by]}"


def losses() -> str:
    """Similarity alone, by the source of the similarities: the change of BLEU from the whole table."""
    rows = []
    for study in pruning():
        full = study.rows("tuned")
        for by in (LEGS, DEFAULT_LOSS, BRAE):
            systems = [study.rows("tuned", "semantic", wanted, by) for wanted in (0.7, *SIZES)]
            cells = [change(study.compare(one, full)) if one else "" for one in systems]
            rows.append([study.facts["name"], _SIMILARITIES[by], *cells])
    return markdown(f"pair | similarities | threshold 0.7 | {' | '.join(map(percent, SIZES))}", rows, right=2)


@cache
def _contests() -> list[tuple[Pivot, float, tuple[str, str], tuple[str, str], Comparison]]:
    """At each size the best method with similarities against the best without, both chosen on the development set."""
    results = []
    for study in pruning():
        for size in SIZES:
            best, other = study.best_on_dev(_WITH, size), study.best_on_dev(_WITHOUT, size)
            rows, others = (study.rows("tuned", method, size, by) for method, by in (best, other))
            results.append((study, size, best, other, study.compare(rows, others)))
    return results


def meaning() -> str:
    """The best method with similarities against the best without, at every size."""
    rows = [
        [study.facts["name"], percent(size), _called(*best), _called(*other), change(difference)]
        for study, size, best, other, difference in _contests()
    ]
    return markdown("pair | kept | best with | best without | difference", rows, right=4)


def _contested(sign: int) -> str:
    return NUMBERS[sum(one[-1].significant and one[-1].difference * sign > 0 for one in _contests())]


def _change(pair: str, method: str, size: float, by: str = "", other: tuple[str, str] | None = None) -> str:
    """Change of BLEU by pruning, compared with another method at the size if there is one, or with the whole table."""
    study = next(study for study in pruning() if study.name == pair)
    others = study.rows("tuned") if other is None else study.rows("tuned", other[0], size, other[1])
    return f"{study.compare(study.rows('tuned', method, size, by), others).difference:+.2f}"


def _sizes(found: dict[str, Any], kind: str) -> list[int]:
    """Of the direct bitexts of a kind of systems, ascending."""
    return sorted(int(name.removeprefix(kind)) for name in found if name.startswith(kind))


def together() -> str:
    """BLEU of a direct table and one through English in one ini."""
    rows = []
    for pair, found in _pairs().items():
        for size in _sizes(found, "together-"):
            figures = found[f"together-{size}"]
            gains = [difference(figures[to]) for to in ("to direct", "to plain")]
            rows.append([pair, f"{size:,}", str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *gains])
    return markdown(
        "pair | sentence pairs | tuning seeds | BLEU of both tables | to the direct table | to the pivot table",
        rows, right=2,
    )  # fmt: skip


def direct() -> str:
    """BLEU of tables of direct bitexts."""
    rows = []
    for pair, found in _pairs().items():
        for size in _sizes(found, "direct-"):
            figures = found[f"direct-{size}"]
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
    **{f"pivot: {pair}, count at a tenth": partial(_change, pair, "count", 0.1) for pair in _NAMES},
    **{
        f"pivot: {pair}, other counts at a twentieth": partial(
            _change, pair, "count", 0.05, OTHER_COUNTS, ("count", "")
        )
        for pair in _NAMES
    },
}
