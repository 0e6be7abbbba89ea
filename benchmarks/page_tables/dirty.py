"""Tables for the documents: what dirt in a bitext costs, and what filtering and pruning bring back."""

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
        """The systems of a method, one for each seed of the model."""
        s = self.systems
        chosen = (s.bitext == bitext) & (s.method == method) & (s.wanted == wanted) & (s.loss == loss)
        return [int(index) for index in s[chosen].index]

    def method(self, bitext: str, method: str, size: float) -> list[int]:
        """A method at a size."""
        return self.rows(bitext, method, size, DEFAULT_LOSS if "semantic" in method else "")

    def best_on_dev(self, bitext: str, methods: Sequence[str], size: float) -> str:
        """The method with the best BLEU on the development set, with models of the first seed."""
        first = {method: self.method(bitext, method, size)[:1] for method in methods}
        return max((method for method, rows in first.items() if rows), key=lambda one: self.bleu(first[one], DEV))


@cache
def studied() -> list[Dirty]:
    """All corpora that have results."""
    return [Dirty(path.stem, RESULTS) for path in sorted(RESULTS.glob("*.json"))]


def filters() -> str:
    """How right the filter is about single pairs, at the threshold that was best on the development set."""
    rows = []
    for study in studied():
        for kind, figures in study.facts["filter"].items():
            shares = ("precision", "recall", "kept of misaligned", "kept of contained")
            cells = [f"{100 * figures[name]:.1f}" if name in figures else "" for name in shares]
            rows.append([f"{study.facts['name']}, {kind}", *cells])
    head = "bitext | clean among kept, % | clean kept, % | misaligned kept, % | cut or joined kept, %"
    return markdown(head, rows)


def bitexts() -> str:
    """BLEU with the whole table of each bitext."""
    rows = []
    for study in studied():
        dirty, clean = (study.rows(kind) for kind in ("dirty", "clean"))
        for kind in _BITEXTS:
            if full := study.rows(kind):
                differences = [change(study.compare(full, other)) if other != full else "" for other in (dirty, clean)]
                rows.append([f"{study.facts['name']}, {kind}", f"{study.bleu(full):.2f}", *differences])
    return markdown("bitext | BLEU | to the dirty one | to the clean one", rows)


def pruned() -> str:
    """BLEU of the pruned tables of the dirty and of the filtered bitexts, compared with the full table of the same."""
    rows = []
    for study in studied():
        for kind in _PRUNED:
            for method in (*WITHOUT, *WITH):
                systems = [study.method(kind, method, size) for size in SIZES]
                if all(systems):
                    full = study.rows(kind)
                    cells = [f"{study.bleu(one):.2f}{stars(study.compare(one, full))}" for one in systems]
                    rows.append([f"{study.facts['name']}, {kind}", escaped(method), *cells])
    return markdown("bitext | method | " + " | ".join(map(percent, SIZES)), rows, right=2)


def losses() -> str:
    """Similarity alone on the tables of dirty and of filtered bitexts, by the loss of the model."""
    rows = []
    for study in studied():
        for kind in _PRUNED:
            full = study.rows(kind)
            for loss in LOSSES:
                systems = [study.rows(kind, "semantic", wanted, loss) for wanted in (0.7, 0.28, 0.1)]
                if all(systems):
                    cells = [change(study.compare(one, full)) for one in systems]
                    rows.append([f"{study.facts['name']}, {kind}", f"`{loss}`", *cells])
    return markdown("bitext | loss | threshold 0.7 | 28 % kept | 10 % kept", rows, right=2)


@cache
def _contests() -> list[tuple[Dirty, str, float, str, str, Comparison]]:
    """At each size the best method with similarities against the best without, both chosen on the development set."""
    results = []
    for study in studied():
        for kind in _PRUNED:
            for size in SIZES if study.rows(kind, "semantic", 0.1, DEFAULT_LOSS) else ():
                best, other = (study.best_on_dev(kind, methods, size) for methods in (WITH, WITHOUT))
                rows, others = study.method(kind, best, size), study.method(kind, other, size)
                results.append((study, kind, size, best, other, study.compare(rows, others)))
    return results


def meaning() -> str:
    """The best method with similarities against the best without, at every size."""
    rows = [
        [f"{study.facts['name']}, {kind}", percent(size), escaped(best), escaped(other), change(difference)]
        for study, kind, size, best, other, difference in _contests()
    ]
    return markdown("bitext | kept | best with | best without | difference", rows, right=4)


def _contested(sign: int) -> str:
    return str(sum(one[-1].significant and one[-1].difference * sign > 0 for one in _contests()))


TABLES = {
    "filters of dirty bitexts": filters, "dirty bitexts": bitexts, "pruned tables of dirty bitexts": pruned,
    "losses on dirty bitexts": losses, "similarities on dirty bitexts": meaning,
}  # fmt: skip
VALUES = {
    "dirty: comparisons": lambda: str(len(_contests())),
    "dirty: comparisons won": lambda: _contested(1),
    "dirty: comparisons lost": lambda: _contested(-1),
}
