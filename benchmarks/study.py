"""Read and write stored results of studies: systems, their BLEU on any text, comparisons of any two of them.

A system with a model is a mean over the seeds of the model.  Its intervals and tests resample the seeds as well as the
sentences, so that they hold for a newly trained model.
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

RESULTS = ROOT / "benchmarks" / "results" / "pruning_study"
# Columns of a system that do not identify it: results, how they came about, and how many entries could be protected.
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
# Of the statistics of a sentence, what the others follow from, with the length of the reference.
STATISTICS = [*range(MATCHES.start, MATCHES.stop), LENGTH]
SAMPLES = 1000
# "No loss": the lower end of the 95 % interval of the difference is above this.
MARGIN = -0.3
DEV, TESTS = "dev", "tests"
# Of the models that `phrasetool train` makes.
DEFAULT_LOSS = "in-batch"


@dataclass(frozen=True)
class Comparison:
    """Result of comparing a system with another one.

    Attributes:
        difference: of BLEU.
        low, high: its 95 % interval.
        p: of a two-sided test.
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
        """Whether the two differ at p < 0.05, and the 95 % interval excludes 0; a skewed distribution may disagree."""
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
        """Which sentences are of which text; `tests` are all but the development set."""
        texts, first = {}, 0
        for name, sentences in self.facts["texts"].items():
            texts[name] = slice(first, first + sentences)
            first += sentences
        assert next(iter(texts)) == DEV
        return {**texts, TESTS: slice(texts[DEV].stop, first)}

    def _counts(self, text: str) -> np.ndarray:
        """How often each sentence of a text is in each sample, shape (SAMPLES, S)."""
        if text in self._kept_counts:
            return self._kept_counts[text]
        rows = self._texts[text]
        sentences = rows.stop - rows.start
        drawn = np.random.default_rng(12345).integers(0, sentences, (SAMPLES, sentences))
        counts = np.stack([np.bincount(one, minlength=sentences) for one in drawn]).astype(np.float32)
        return self._kept_counts.setdefault(text, counts)

    def _statistics(self, row: int, text: str) -> np.ndarray:
        """Statistics of BLEU of the sentences of a text, shape (S, REFERENCE_LENGTH + 1)."""
        rows = self._texts[text]
        values = self._values[row, rows].astype(np.int64)
        statistics = np.zeros((len(values), REFERENCE_LENGTH + 1), np.int64)
        statistics[:, MATCHES] = values[:, :ORDER]
        statistics[:, TOTALS] = np.maximum(values[:, ORDER:] - np.arange(ORDER), 0)
        statistics[:, REFERENCE_LENGTH] = self._lengths[rows]
        return statistics

    def _score(self, row: int, text: str) -> float:
        """BLEU of a system on a text."""
        if (row, text) not in self._kept_scores:
            self._kept_scores[row, text] = float(bleu_of_sums(self._statistics(row, text).sum(0)))
        return self._kept_scores[row, text]

    def _sample_scores(self, row: int, text: str) -> np.ndarray:
        """BLEU of a system on the samples of a text, shape (SAMPLES,)."""
        if (row, text) not in self._kept_samples:
            sums = self._counts(text) @ self._statistics(row, text).astype(np.float32)
            self._kept_samples[row, text] = bleu_of_sums(sums)
        return self._kept_samples[row, text]

    def statistics(self, row: int) -> np.ndarray:
        """The stored statistics of a system, shape (S, len(STATISTICS))."""
        statistics: np.ndarray = self._values[row]
        return statistics

    def bleu(self, rows: Sequence[int], text: str = TESTS) -> float:
        """Mean BLEU over the seeds."""
        return float(np.mean([self._score(row, text) for row in rows]))

    def mean(self, rows: Sequence[int], column: str) -> float:
        """Mean over the seeds of a column of `systems`."""
        return float(self.systems.loc[list(rows), column].mean())

    def _samples(self, rows: Sequence[int], text: str) -> np.ndarray:
        """BLEU of the samples, each of which draws its seeds, too; systems of as many seeds draw the same ones."""
        samples = np.stack([self._sample_scores(row, text) for row in rows])
        drawn = np.random.default_rng(777).integers(0, len(rows), (SAMPLES, len(rows)))
        result: np.ndarray = samples[drawn, np.arange(SAMPLES)[:, None]].mean(1)
        return result

    def compare(self, rows: Sequence[int], others: Sequence[int], text: str = TESTS) -> Comparison:
        """A system against another, by a bootstrap that is paired in the sentences."""
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
        """The systems of a method, one for each seed of the model."""
        s = self.systems
        selected = s[(s.method == method) & (s["rule"] == rule) & np.isclose(s.wanted, wanted) & (s.loss == loss)]
        return [int(index) for index in selected.index]

    @property
    def full(self) -> list[int]:
        """The table as it is."""
        return self.rows("full", "full")

    def method(self, method: str, size: float, loss: str = DEFAULT_LOSS) -> list[int]:
        """A method at a size; its seeds, if it asks a model."""
        return self.rows(method, wanted=size, loss=loss if "semantic" in method else "")

    def best_on_dev(self, methods: Sequence[str], size: float) -> str:
        """The method with the best BLEU on the development set, with models of the first seed."""
        first = {method: self.method(method, size)[:1] for method in methods}
        return max((method for method, rows in first.items() if rows), key=lambda one: self.bleu(first[one], DEV))


class Results:
    """Results of a study for one language pair, while it is measured; `SentenceStatistics` reads what it writes.

    Statistics of the first system are stored as they are, those of others as differences to it, which are mostly 0.

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
        """Take over stored results, if the decoder and the models are the same.

        Args:
            first: statistics of the first system, measured now.
            models: name -> how the model is trained, of all models.
        """
        if not (self.folder / f"{self.name}.json").exists():
            return
        stored = SentenceStatistics(self.name, self.folder)
        same = json.loads(json.dumps(models))
        if any(how != same.get(model) for model, how in stored.facts["models"].items()):
            print(f"{self.name}: stored results are of other models and are measured again", flush=True)
        elif not np.array_equal(stored.statistics(0), first):
            print(f"{self.name}: stored results are of another decoder and are measured again", flush=True)
        else:
            for number, row in enumerate(stored.facts["systems"]):
                self._add(row, stored.statistics(number))

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a system has results."""
        return _key(row) in self._stored

    def add(self, row: Mapping[str, Any], statistics: np.ndarray) -> None:
        """Add the results of a system.

        Args:
            row: what identifies the system, and columns of `MEASURED`.
            statistics: the `STATISTICS` of all sentences, int16, shape (S, len(STATISTICS)).
        """
        self._add({**row, "commit": current_commit()}, statistics)

    def _add(self, row: Mapping[str, Any], statistics: np.ndarray) -> None:
        self._stored.add(_key(row))
        self._rows.append(row)
        self._statistics.append(statistics)

    def save(self) -> None:
        """Write everything."""
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
    """Return the columns that identify a system, as a key."""
    return json.dumps({name: value for name, value in row.items() if name not in MEASURED}, sort_keys=True)


@cache
def current_commit() -> str:
    """The commit of the checkout that measures."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@cache
def study(name: str) -> Study:
    """A language pair, read once."""
    return Study(name)


def studied() -> list[str]:
    """The language pairs that there are results of."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))
