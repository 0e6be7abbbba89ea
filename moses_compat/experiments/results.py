"""Scores, intervals and tests of finished runs: the frames of Tables 1 and 2 and of the ladder.

All systems are scored on the same bootstrap samples of a text, so any two can be compared.  `ALL` is all test sets as
one text, without the development set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moses_compat.experiments.settings import ALL, DEV, FULL, RANDOM, PruningSystem
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap, sentence_statistics
from phrasetool.smt.evaluation.metrics import SAMPLES

# Translations of one system by the name of the text.
Translations = Mapping[str, Sequence[str]]

_PRUNING = (
    "system", "method", "combine", "semantic", "rule", "wanted", "protect", "keep_top", "seed", "entries", "share",
    "text", "bleu", "low", "high", "difference", "p", "worst", "best", "command",
)  # fmt: skip
_CONTESTS = (
    "wanted", "protect", "with_semantics", "without", "bleu_with", "bleu_without", "difference", "p", "worst", "best",
    "dev_with", "dev_without",
)  # fmt: skip
_ANNOTATION = (
    "system", "columns", "dimension", "tuning_seeds", "text", "bleu", "deviation", "difference", "low", "high", "p",
    "dev_bleu",
)  # fmt: skip

_LADDER = (
    "step", "entries", "share", "tuning_seeds", "text", "bleu", "deviation", "gain", "gain_low", "gain_high", "gain_p",
    "total", "total_low", "total_high", "total_p",
)  # fmt: skip


@dataclass(frozen=True)
class FinishedRun:
    """A pruned table (or the full one) and its translations.

    Attributes:
        system: the system that pruned the table.
        label: its unique name.
        entries, of: number of entries of the table and of the full table.
        translations: translations of all texts.
        command: command line that writes the table.
    """

    system: PruningSystem
    label: str
    entries: int
    of: int
    translations: Translations
    command: str = ""


@dataclass(frozen=True)
class TunedRuns:
    """An annotated table (or the one without annotation), tuned several times.

    Attributes:
        label: its unique name.
        columns: names of the appended columns; empty for the baseline.
        dimension: dimension of the model of the similarities; 0 without similarities.
        translations: translations of all texts, for each tuning seed.
    """

    label: str
    columns: str
    dimension: int
    translations: Sequence[Translations]


class Scoreboard:
    """Scores translations of texts, each text on its own bootstrap samples.

    Args:
        references: reference translations by name; all but `dev` are test sets, in this order.
        samples: number of bootstrap samples.
    """

    def __init__(self, references: Translations, samples: int = SAMPLES) -> None:
        self._references = references
        self.tests = [name for name in references if name != DEV]
        self.texts = [*self.tests, ALL, *([DEV] if DEV in references else [])]
        sizes = {name: len(lines) for name, lines in references.items()}
        sizes[ALL] = sum(sizes[name] for name in self.tests)
        self._bootstraps = {name: Bootstrap(sizes[name], samples) for name in self.texts}

    def __call__(self, translations: Translations) -> dict[str, BleuSamples]:
        """Return BLEU of the translations of each text, `ALL` included, and of its samples."""
        by_text = {name: sentence_statistics(translations[name], lines) for name, lines in self._references.items()}
        by_text[ALL] = np.concatenate([by_text[name] for name in self.tests])
        return {name: self._bootstraps[name](by_text[name]) for name in self.texts}


def pruning_frames(runs: Sequence[FinishedRun], board: Scoreboard) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `pruning` (Table 1), a row per system and text, and `contests`, a row per size and protection.

    Args:
        runs: runs of the full table and of any number of pruned ones.

    Raises:
        ValueError: the full table is missing.
    """
    scores = {run.label: board(run.translations) for run in runs}
    full = next((scores[run.label] for run in runs if run.system.rule == FULL), None)
    if full is None:
        raise ValueError("the run of the full table is missing")
    rows = [row for run in runs for row in _rows(run, board.texts, scores[run.label], full)]
    pruning = pd.DataFrame(rows, columns=_PRUNING)
    return pruning, pd.DataFrame(_contests(runs, scores), columns=_CONTESTS)


def _rows(
    run: FinishedRun, texts: Sequence[str], scores: Mapping[str, BleuSamples], full: Mapping[str, BleuSamples]
) -> Iterator[tuple[Any, ...]]:
    """Yield a row per text; `worst` and `best` are the ends of the interval of the difference to the full table."""
    system = run.system
    for text in texts:
        low, high = scores[text].interval
        is_full = system.rule == FULL
        worst, best = _NO_STEP[:2] if is_full else scores[text].difference_interval(full[text])
        yield (
            run.label, system.method, system.combine, system.semantic, system.rule, system.wanted, system.protect,
            system.keep_top, system.seed, run.entries, run.entries / max(run.of, 1), text, scores[text].bleu, low, high,
            scores[text].bleu - full[text].bleu,
            float("nan") if is_full else scores[text].p_value(full[text]), worst, best, run.command,
        )  # fmt: skip


def _contests(
    runs: Sequence[FinishedRun], scores: Mapping[str, Mapping[str, BleuSamples]]
) -> Iterator[tuple[Any, ...]]:
    """Yield comparisons of the best methods on the development set, by their scores on the test sets."""
    sized = [run for run in runs if run.system.rule == "size"]
    for size, protect in dict.fromkeys((run.system.wanted, run.system.protect) for run in sized):
        runs_of_size = [run for run in sized if (run.system.wanted, run.system.protect) == (size, protect)]
        with_semantics = [run for run in runs_of_size if run.system.semantic]
        without = [run for run in runs_of_size if not run.system.semantic and not _by_chance(run.system)]
        if not with_semantics or not without:
            continue
        best_with, best_without = (
            max(group, key=lambda run: scores[run.label][DEV].bleu) for group in (with_semantics, without)
        )
        first, second = scores[best_with.label], scores[best_without.label]
        yield (
            size, protect, best_with.system.kind, best_without.system.kind, first[ALL].bleu, second[ALL].bleu,
            first[ALL].bleu - second[ALL].bleu, first[ALL].p_value(second[ALL]),
            *first[ALL].difference_interval(second[ALL]), first[DEV].bleu, second[DEV].bleu,
        )  # fmt: skip


def _by_chance(system: PruningSystem) -> bool:
    return any(part.name == RANDOM for part in system.parsed().parts)


@dataclass(frozen=True)
class TunedScores:
    """BLEU of several tunings of one table.

    Attributes:
        means: means of BLEU over the tunings, by text, with bootstrap samples of sentences and tunings.
        deviations: standard deviations of BLEU over the tunings; NaN for a single tuning.
    """

    means: Mapping[str, BleuSamples]
    deviations: Mapping[str, float]

    @classmethod
    def of(cls, tunings: Sequence[Translations], board: Scoreboard) -> TunedScores:
        """Return the scores of the translations of each tuning."""
        each = [board(translations) for translations in tunings]
        by_text = {text: [scores[text] for scores in each] for text in board.texts}
        return cls(
            {text: BleuSamples.mean_of(scores) for text, scores in by_text.items()},
            {text: _deviation([score.bleu for score in scores]) for text, scores in by_text.items()},
        )


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def annotation_frame(runs: Sequence[TunedRuns], board: Scoreboard) -> pd.DataFrame:
    """Return `annotation` (Table 2), a row per system and text.

    A score is the mean over tuning seeds; interval and test are those of a paired bootstrap over sentences and seeds.

    Args:
        runs: runs with the same number of tunings, the baseline first.
    """
    rows: list[tuple[Any, ...]] = []
    base: TunedScores | None = None
    for run in runs:
        scores = TunedScores.of(run.translations, board)
        for text in board.texts:
            # The baseline differs from itself by 0, without an interval.
            difference = _compared(scores, base, text) if base else (0.0, *_NO_STEP[1:])
            rows.append((
                run.label, run.columns, run.dimension, len(run.translations), text, scores.means[text].bleu,
                scores.deviations[text], *difference, scores.means[DEV].bleu if DEV in scores.means else float("nan"),
            ))  # fmt: skip
        base = base or scores
    return pd.DataFrame(rows, columns=_ANNOTATION)


@dataclass(frozen=True)
class LadderRuns:
    """A step of the ladder, tuned several times.

    Attributes:
        label: its unique name.
        entries: number of entries of its table.
        share: share of the entries that pruning kept; 1 for a table that is not pruned.
        translations: translations of all texts, for each tuning seed.
        below: label of the step that it is compared with; None for the full table with the most steps.
    """

    label: str
    entries: int
    share: float
    translations: Sequence[Translations]
    below: str | None = None


def ladder_frame(runs: Sequence[LadderRuns], board: Scoreboard) -> pd.DataFrame:
    """Return `ladder`, a row per step and text, compared with the step below and with the first step.

    Args:
        runs: runs with the same number of tunings, the original table first, pruned ones last.
    """
    rows: list[tuple[Any, ...]] = []
    first: TunedScores | None = None
    last: TunedScores | None = None
    scores_by_step: dict[str, TunedScores] = {}
    for run in runs:
        scores = scores_by_step[run.label] = TunedScores.of(run.translations, board)
        below = scores_by_step[run.below] if run.below else last
        for text in board.texts:
            steps = [_compared(scores, other, text) if other else _NO_STEP for other in (below, first)]
            rows.append((
                run.label, run.entries, run.share, len(run.translations), text, scores.means[text].bleu,
                scores.deviations[text], *steps[0], *steps[1],
            ))  # fmt: skip
        first = first or scores
        last = scores if run.share == 1 else last
    return pd.DataFrame(rows, columns=_LADDER)


# NaN in place of a gain, its interval and p.
_NO_STEP = (float("nan"),) * 4


def _compared(scores: TunedScores, other: TunedScores, text: str) -> tuple[float, float, float, float]:
    samples, base = scores.means[text], other.means[text]
    return samples.bleu - base.bleu, *samples.difference_interval(base), samples.p_value(base)
