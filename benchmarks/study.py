"""Stored results of studies: systems, their BLEU on any text, and comparisons of any two systems.

Results of a system with a model are means over the seeds of the model.  Intervals and tests resample seeds as well as
sentences, so that they apply to a newly trained model.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import ROOT, machine
from stored import save_compactly

from phrasetool.smt.evaluation.bleu import LENGTH, MATCHES, ORDER, REFERENCE_LENGTH, TOTALS, bleu_of_sums
from phrasetool.smt.evaluation.metrics import means_of_drawn_runs

RESULTS = ROOT / "benchmarks" / "results" / "pruning_study"
# Columns that do not identify a system: results, their origin, and the number of protected entries.
MEASURED = ("keep_top", "entries", "of", "occurrences", "runs", "commit")
# Sizes of pruned tables, and methods without and with similarities.
SIZES = (0.28, 0.15, 0.1, 0.05, 0.03)
WITHOUT = (
    "count", "significance", "composition", "usage", "count+usage", "composition+count", "composition+significance",
    "composition+usage", "composition+significance+usage",
)  # fmt: skip
WITH = (
    "semantic", "count+semantic", "composition+semantic", "composition+semantic*2", "count+semantic+usage",
    "composition+semantic+usage", "composition+semantic*2+usage", "composition+semantic+significance",
    "composition+semantic+significance+usage",
)  # fmt: skip
# Stored statistics of a sentence; the others follow from these and the length of the reference.
STATISTICS = [*range(MATCHES.start, MATCHES.stop), LENGTH]
SAMPLES = 1000
# "No loss": the lower end of the 95 % interval of the difference is above this.
MARGIN = -0.3
DEV, TESTS = "dev", "tests"
# Default loss of `phrasetool train`.
DEFAULT_LOSS = "in-batch"


@dataclass(frozen=True)
class Comparison:
    """Result of comparing a system with another.

    Attributes:
        difference: difference in BLEU.
        low, high: 95 % interval of the difference.
        p: p-value of a two-sided test.
    """

    difference: float
    low: float
    high: float
    p: float

    @property
    def non_inferior(self) -> bool:
        """Whether a loss of `MARGIN` or more can be ruled out."""
        return self.low > MARGIN

    @property
    def significant(self) -> bool:
        """Whether p < 0.05 and the 95 % interval excludes 0; for skewed distributions, only one of these may hold."""
        return self.p < 0.05 and not self.low <= 0 <= self.high


class SentenceStatistics:
    """The stored results of a study for one language pair.

    Args:
        name: name of the pair.
        folder: directory of the study.

    Attributes:
        facts: the contents of the JSON file.
        systems: a row for each system, with the columns that the study stores.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.facts = json.loads((folder / f"{name}.json").read_text("utf-8"))
        self.systems = pd.DataFrame(self.facts["systems"])
        with np.load(folder / f"{name}.npz") as arrays:
            differences = arrays["differences"]
            self._lengths = arrays["reference_lengths"]
        self._values = differences + differences[:1]
        self._values[0] = differences[0]
        self._kept_counts: dict[str, np.ndarray] = {}
        self._kept_scores: dict[tuple[int, str], float] = {}
        self._kept_samples: dict[tuple[int, str], np.ndarray] = {}

    @cached_property
    def _texts(self) -> dict[str, slice]:
        """Rows of the sentences of each text; `tests` are all texts except the development set."""
        texts, first = {}, 0
        for name, sentences in self.facts["texts"].items():
            texts[name] = slice(first, first + sentences)
            first += sentences
        assert next(iter(texts)) == DEV
        return {**texts, TESTS: slice(texts[DEV].stop, first)}

    def _counts(self, text: str) -> np.ndarray:
        """Return how often each sentence of a text is in each sample, shape (SAMPLES, S)."""
        if text in self._kept_counts:
            return self._kept_counts[text]
        rows = self._texts[text]
        sentences = rows.stop - rows.start
        drawn = np.random.default_rng(12345).integers(0, sentences, (SAMPLES, sentences))
        counts = np.stack([np.bincount(sample, minlength=sentences) for sample in drawn]).astype(np.float32)
        return self._kept_counts.setdefault(text, counts)

    def _statistics(self, row: int, text: str) -> np.ndarray:
        """Return BLEU statistics of the sentences of a text, shape (S, REFERENCE_LENGTH + 1)."""
        rows = self._texts[text]
        values = self._values[row, rows].astype(np.int64)
        statistics = np.zeros((len(values), REFERENCE_LENGTH + 1), np.int64)
        statistics[:, MATCHES] = values[:, :ORDER]
        statistics[:, TOTALS] = np.maximum(values[:, ORDER:] - np.arange(ORDER), 0)
        statistics[:, REFERENCE_LENGTH] = self._lengths[rows]
        return statistics

    def _score(self, row: int, text: str) -> float:
        """Return BLEU of a system on a text."""
        if (row, text) not in self._kept_scores:
            self._kept_scores[row, text] = float(bleu_of_sums(self._statistics(row, text).sum(0)))
        return self._kept_scores[row, text]

    def _sample_scores(self, row: int, text: str) -> np.ndarray:
        """Return BLEU of a system on the samples of a text, shape (SAMPLES,)."""
        if (row, text) not in self._kept_samples:
            sums = self._counts(text) @ self._statistics(row, text).astype(np.float32)
            self._kept_samples[row, text] = bleu_of_sums(sums)
        return self._kept_samples[row, text]

    def statistics(self, row: int) -> np.ndarray:
        """Return the stored statistics of a system, shape (S, len(STATISTICS))."""
        statistics: np.ndarray = self._values[row]
        return statistics

    def bleu(self, rows: Sequence[int], text: str = TESTS) -> float:
        """Return mean BLEU over the seeds."""
        return float(np.mean([self._score(row, text) for row in rows]))

    def mean(self, rows: Sequence[int], column: str) -> float:
        """Return the mean of a column of `systems` over the seeds."""
        return float(self.systems.loc[list(rows), column].mean())

    def _samples(self, rows: Sequence[int], text: str) -> np.ndarray:
        """Return BLEU of the samples, which also draw seeds; systems with equally many seeds draw the same ones."""
        return means_of_drawn_runs(np.stack([self._sample_scores(row, text) for row in rows]))

    def compare(self, rows: Sequence[int], others: Sequence[int], text: str = TESTS) -> Comparison:
        """Compare a system with another, by a paired bootstrap over sentences and seeds."""
        difference = self.bleu(rows, text) - self.bleu(others, text)
        samples = self._samples(rows, text) - self._samples(others, text)
        low, high = np.quantile(samples, [0.025, 0.975])
        beyond = int((np.abs(samples - samples.mean()) >= abs(difference)).sum())
        p = 1.0 if difference == 0 else (beyond + 1) / (SAMPLES + 1)
        return Comparison(difference, float(low), float(high), p)


class Study(SentenceStatistics):
    """The pruning study for one language pair.

    Args:
        name: name of the pair.

    Attributes:
        systems: a row for each system: loss and seed of its model ("" and 0 for none), method, rule, size or threshold,
            shares of entries and occurrences kept.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, RESULTS)
        self.systems["share"] = self.systems.entries / self.systems.of

    def rows(self, method: str, rule: str = "size", wanted: float = 1.0, loss: str = "") -> list[int]:
        """Return the systems of a method, one for each seed of the model."""
        s = self.systems
        selected = s[(s.method == method) & (s["rule"] == rule) & np.isclose(s.wanted, wanted) & (s.loss == loss)]
        return [int(index) for index in selected.index]

    @property
    def full(self) -> list[int]:
        """The full table."""
        return self.rows("full", "full")

    def method(self, method: str, size: float, loss: str = DEFAULT_LOSS) -> list[int]:
        """Return the systems of a method at a size, one for each seed if it uses a model."""
        return self.rows(method, wanted=size, loss=loss if "semantic" in method else "")

    def best_on_dev(self, methods: Sequence[str], size: float) -> str:
        """Return the method with the best BLEU on the development set, with models of the first seed."""
        first = {method: self.method(method, size)[:1] for method in methods}
        return max((method for method, rows in first.items() if rows), key=lambda name: self.bleu(first[name], DEV))


class Results:
    """Results of a study for one language pair during measurement; `SentenceStatistics` reads the written files.

    Statistics of the first system are stored unchanged, those of others as differences to it, which are mostly 0.

    Args:
        folder: directory of the study.
        name: name of the pair.

    Attributes:
        facts: further contents of the JSON file.
        references: text name -> its reference translations, the development set first.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.facts: Mapping[str, Any] = {}
        self.references: Mapping[str, Sequence[str]] = {}
        self._rows: list[Mapping[str, Any]] = []
        self._statistics: list[np.ndarray] = []
        self._stored: set[str] = set()

    def take_over(self, first: np.ndarray, models: Mapping[str, Any]) -> None:
        """Keep stored results if the decoder and the models are unchanged.

        Args:
            first: statistics of the first system, measured now.
            models: name -> training options, for all models.
        """
        if not (self.folder / f"{self.name}.json").exists():
            return
        stored = SentenceStatistics(self.name, self.folder)
        same = json.loads(json.dumps(models))
        if any(options != same.get(model) for model, options in stored.facts["models"].items()):
            print(f"{self.name}: stored results are of other models and are measured again", flush=True)
        elif not np.array_equal(stored.statistics(0), first):
            print(f"{self.name}: stored results are of another decoder and are measured again", flush=True)
        else:
            for number, row in enumerate(stored.facts["systems"]):
                self._add(row, stored.statistics(number))

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether a system has results."""
        return _key(row) in self._stored

    def add(self, row: Mapping[str, Any], statistics: np.ndarray) -> None:
        """Add the results of a system.

        Args:
            row: columns that identify the system, and columns of `MEASURED`.
            statistics: the `STATISTICS` of all sentences, int16, shape (S, len(STATISTICS)).
        """
        self._add({**row, "commit": current_commit()}, statistics)

    def _add(self, row: Mapping[str, Any], statistics: np.ndarray) -> None:
        self._stored.add(_key(row))
        self._rows.append(row)
        self._statistics.append(statistics)

    def save(self) -> None:
        """Write all results and facts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stacked = np.stack(self._statistics)
        differences = stacked - stacked[:1]
        differences[0] = stacked[0]
        lengths = [[len(line.split()) for line in lines] for lines in self.references.values()]
        lengths_array = np.concatenate(lengths).astype(np.int16)
        save_compactly(
            self.folder / f"{self.name}.npz", {"differences": differences, "reference_lengths": lengths_array}
        )
        texts = {text: len(lines) for text, lines in self.references.items()}
        facts = {**self.facts, "machine": machine(), "texts": texts}
        head = json.dumps(facts, ensure_ascii=False, indent=1)
        systems = ",\n".join(json.dumps(row) for row in self._rows)
        (self.folder / f"{self.name}.json").write_text(f'{head[:-2]},\n "systems": [\n{systems}\n]\n}}\n')


def _key(row: Mapping[str, Any]) -> str:
    """Return the columns that identify a system as a key."""
    return json.dumps({name: value for name, value in row.items() if name not in MEASURED}, sort_keys=True)


@cache
def current_commit() -> str:
    """Return the commit of this checkout."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@cache
def study(name: str) -> Study:
    """Return the study of a language pair, which is read once."""
    return Study(name)


def studied() -> list[str]:
    """Return the language pairs with results."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))
