"""Tables for the documentation: cost of noise in a bitext, and recovery by filtering and pruning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from dirty_bitexts import LOSSES, RESULTS, WITH, WITHOUT
from study import DEFAULT_LOSS, DEV, SIZES, Comparison, SentenceStatistics

from page_tables.kept_results import markdown
from page_tables.pruning import change, escaped, percent, stars

_BITEXTS = ("dirty", "filtered", "filtered loosely", "fluent", "clean half", "clean")
_PRUNED = ("dirty", "filtered")


class Dirty(SentenceStatistics):
    """The study for one corpus."""

    def rows(self, bitext: str, method: str = "full", wanted: float = 1.0, loss: str = "") -> list[int]:
        """Return the systems of a method, one for each seed of the model."""
        s = self.systems
        chosen = (s.bitext == bitext) & (s.method == method) & (s.wanted == wanted) & (s.loss == loss)
        return [int(index) for index in s[chosen].index]

    def method(self, bitext: str, method: str, size: float) -> list[int]:
        """Return the systems of a method at a size."""
        return self.rows(bitext, method, size, DEFAULT_LOSS if "semantic" in method else "")

    def best_on_dev(self, bitext: str, methods: Sequence[str], size: float) -> str:
        """Return the method with the best BLEU on the development set, with models of the first seed."""
        first = {method: self.method(bitext, method, size)[:1] for method in methods}
        return max((method for method, rows in first.items() if rows), key=lambda name: self.bleu(first[name], DEV))


@cache
def studied() -> list[Dirty]:
    """Return all corpora with results."""
    return [Dirty(path.stem, RESULTS) for path in sorted(RESULTS.glob("*.json"))]


def filters() -> str:
    """Return a table of the quality of each filter on single pairs."""
    rows = []
    for study in studied():
        for kind, figures in study.facts["filter"].items():
            shares = ("precision", "recall", "kept of misaligned", "kept of contained")
            cells = [f"{100 * figures[name]:.1f}" if name in figures else "" for name in shares]
            rows.append([f"{study.facts['name']}, {kind}", *cells])
    head = "bitext | clean among kept, % | clean kept, % | misaligned kept, % | cut or joined kept, %"
    return markdown(head, rows)


def bitexts() -> str:
    """Return a table of BLEU with the full table of each bitext."""
    rows = []
    for study in studied():
        dirty, clean = (study.rows(kind) for kind in ("dirty", "clean"))
        for kind in _BITEXTS:
            if full := study.rows(kind):
                differences = [
                    change(study.compare(full, baseline)) if baseline != full else "" for baseline in (dirty, clean)
                ]
                rows.append([f"{study.facts['name']}, {kind}", f"{study.bleu(full):.2f}", *differences])
    return markdown("bitext | BLEU | to the dirty one | to the clean one", rows)


def pruned() -> str:
    """Return BLEU of pruned tables of dirty and filtered bitexts, compared with the full table of each bitext."""
    rows = []
    for study in studied():
        for kind in _PRUNED:
            for method in (*WITHOUT, *WITH):
                systems = [study.method(kind, method, size) for size in SIZES]
                if all(systems):
                    full = study.rows(kind)
                    cells = [f"{study.bleu(system):.2f}{stars(study.compare(system, full))}" for system in systems]
                    rows.append([f"{study.facts['name']}, {kind}", escaped(method), *cells])
    return markdown("bitext | method | " + " | ".join(map(percent, SIZES)), rows, right=2)


def losses() -> str:
    """Return a table of pruning by similarity alone, for dirty and filtered bitexts, by the loss of the model."""
    rows = []
    for study in studied():
        for kind in _PRUNED:
            full = study.rows(kind)
            for loss in LOSSES:
                systems = [study.rows(kind, "semantic", value, loss) for value in (0.7, 0.28, 0.1)]
                if all(systems):
                    cells = [change(study.compare(system, full)) for system in systems]
                    rows.append([f"{study.facts['name']}, {kind}", f"`{loss}`", *cells])
    return markdown("bitext | loss | threshold 0.7 | 28 % kept | 10 % kept", rows, right=2)


@cache
def _contests() -> list[tuple[Dirty, str, float, str, str, Comparison]]:
    """Compare the best methods with and without similarities at each size, both chosen on the development set."""
    results = []
    for study in studied():
        for kind in _PRUNED:
            for size in SIZES if study.rows(kind, "semantic", 0.1, DEFAULT_LOSS) else ():
                best, best_without = (study.best_on_dev(kind, methods, size) for methods in (WITH, WITHOUT))
                rows, others = study.method(kind, best, size), study.method(kind, best_without, size)
                results.append((study, kind, size, best, best_without, study.compare(rows, others)))
    return results


def meaning() -> str:
    """Return a table that compares the best methods with and without similarities at every size."""
    rows = [
        [f"{study.facts['name']}, {kind}", percent(size), escaped(best), escaped(best_without), change(difference)]
        for study, kind, size, best, best_without, difference in _contests()
    ]
    return markdown("bitext | kept | best with | best without | difference", rows, right=4)


def _contested(sign: int) -> str:
    return str(sum(contest[-1].significant and contest[-1].difference * sign > 0 for contest in _contests()))


TABLES = {
    "filters of dirty bitexts": filters, "dirty bitexts": bitexts, "pruned tables of dirty bitexts": pruned,
    "losses on dirty bitexts": losses, "similarities on dirty bitexts": meaning,
}  # fmt: skip
VALUES = {
    "dirty: comparisons": lambda: str(len(_contests())),
    "dirty: comparisons won": lambda: _contested(1),
    "dirty: comparisons lost": lambda: _contested(-1),
}
