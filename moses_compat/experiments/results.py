"""From translations of finished runs to the frames of Tables 1 and 2 and of the ladder: scores, intervals, tests.

Every system of a text is scored on the same bootstrap samples, so any two can be compared.  `ALL` is all test sets as
one text; the development set is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moses_compat.experiments.settings import ALL, DEV, FULL, RANDOM, PruningSystem
from phrasetool.phrases import Int32Array
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap, sentence_statistics
from phrasetool.smt.evaluation.metrics import SAMPLES

# Translations of one system by the name of the text.
Translations = Mapping[str, Sequence[str]]

_PRUNING = (
    "system", "method", "combine", "semantic", "rule", "wanted", "protect", "keep_top", "seed", "entries", "share",
    "text", "bleu", "low", "high", "difference", "p", "worst", "command",
)  # fmt: skip
_CONTESTS = (
    "wanted", "protect", "with_semantics", "without", "bleu_with", "bleu_without", "difference", "p", "dev_with",
    "dev_without",
)  # fmt: skip
_ANNOTATION = (
    "system", "columns", "dimension", "tuning_seeds", "text", "bleu", "deviation", "difference", "p", "dev_bleu",
)  # fmt: skip

_LADDER = (
    "step", "entries", "share", "tuning_seeds", "text", "bleu", "deviation", "gain", "gain_low", "gain_high", "gain_p",
    "total", "total_low", "total_high", "total_p",
)  # fmt: skip


@dataclass(frozen=True)
class FinishedRun:
    """A pruned table (or the full one) and what the decoder made of it.

    Attributes:
        system: which table.
        label: its name, no two the same.
        entries, of: entries it has, and the full table has.
        translations: of all texts.
        command: what writes the table.
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
        label: its name, no two the same.
        columns: what was appended, in words; empty for the baseline.
        dimension: of the similarities; 0 where there are none.
        translations: of all texts, for each tuning seed.
    """

    label: str
    columns: str
    dimension: int
    translations: Sequence[Translations]


class Scoreboard:
    """Scores translations of texts, each on its own samples.

    Args:
        references: the text of each name; all but `dev` are test sets, in this order.
        samples: of the bootstrap.
    """

    def __init__(self, references: Translations, samples: int = SAMPLES) -> None:
        self._references = references
        self.tests = [name for name in references if name != DEV]
        self.texts = [*self.tests, ALL, *([DEV] if DEV in references else [])]
        sizes = {name: len(lines) for name, lines in references.items()}
        sizes[ALL] = sum(sizes[name] for name in self.tests)
        self._bootstraps = {name: Bootstrap(sizes[name], samples) for name in self.texts}

    def statistics(self, translations: Translations) -> dict[str, Int32Array]:
        """Of the sentences of each text, `ALL` included; see `sentence_statistics`."""
        found = {name: sentence_statistics(translations[name], lines) for name, lines in self._references.items()}
        found[ALL] = np.concatenate([found[name] for name in self.tests])
        return found

    def sampled(self, statistics: Mapping[str, Int32Array]) -> dict[str, BleuSamples]:
        """BLEU of each text and of its samples."""
        return {name: self._bootstraps[name](statistics[name]) for name in self.texts}

    def __call__(self, translations: Translations) -> dict[str, BleuSamples]:
        """The same from translations."""
        return self.sampled(self.statistics(translations))


def pruning_frames(runs: Sequence[FinishedRun], board: Scoreboard) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 1, and who wins: `pruning` with a row per system and text, `contests` with a row per size and protection.

    Args:
        runs: the full table, and others in any number.

    Raises:
        ValueError: the full table is missing.
    """
    scores = {run.label: board(run.translations) for run in runs}
    full = next((scores[run.label] for run in runs if run.system.rule == FULL), None)
    if full is None:
        raise ValueError("there is no run of the full table")
    rows = [row for run in runs for row in _rows(run, board.texts, scores[run.label], full)]
    pruning = pd.DataFrame(rows, columns=_PRUNING)
    return pruning, pd.DataFrame(_contests(runs, scores), columns=_CONTESTS)


def _rows(
    run: FinishedRun, texts: Sequence[str], scores: Mapping[str, BleuSamples], full: Mapping[str, BleuSamples]
) -> Iterator[tuple[Any, ...]]:
    system = run.system
    for text in texts:
        low, high = scores[text].interval
        is_full = system.rule == FULL
        worst = float("nan") if is_full else scores[text].difference_interval(full[text])[0]
        yield (
            run.label, system.method, system.combine, system.semantic, system.rule, system.wanted, system.protect,
            system.keep_top, system.seed, run.entries, run.entries / max(run.of, 1), text, scores[text].bleu, low, high,
            scores[text].bleu - full[text].bleu,
            float("nan") if is_full else scores[text].p_value(full[text]), worst, run.command,
        )  # fmt: skip


def _contests(
    runs: Sequence[FinishedRun], scores: Mapping[str, Mapping[str, BleuSamples]]
) -> Iterator[tuple[Any, ...]]:
    """The winners are chosen on the development set; what is compared is the score on the test sets."""
    sized = [run for run in runs if run.system.rule == "size"]
    for wanted, protect in dict.fromkeys((run.system.wanted, run.system.protect) for run in sized):
        here = [run for run in sized if (run.system.wanted, run.system.protect) == (wanted, protect)]
        with_semantics = [run for run in here if run.system.semantic]
        without = [run for run in here if not run.system.semantic and not _by_chance(run.system)]
        if not with_semantics or not without:
            continue
        best, other = (max(group, key=lambda run: scores[run.label][DEV].bleu) for group in (with_semantics, without))
        first, second = scores[best.label], scores[other.label]
        yield (
            wanted, protect, best.system.kind, other.system.kind, first[ALL].bleu, second[ALL].bleu,
            first[ALL].bleu - second[ALL].bleu, first[ALL].p_value(second[ALL]), first[DEV].bleu, second[DEV].bleu,
        )  # fmt: skip


def _by_chance(system: PruningSystem) -> bool:
    return any(part.name == RANDOM for part in system.parsed().parts)


@dataclass(frozen=True)
class TunedScores:
    """What several tunings of one table score.

    Attributes:
        means: of BLEU over the tunings, by text.
        deviations: of BLEU over the tunings; NaN where there is one.
        together: samples of the BLEU of statistics that are summed over the tunings first (Clark et al., ACL 2011, on
            why one tuning is not enough); for paired tests.
    """

    means: Mapping[str, float]
    deviations: Mapping[str, float]
    together: Mapping[str, BleuSamples]

    @classmethod
    def of(cls, tunings: Sequence[Translations], board: Scoreboard) -> TunedScores:
        """From the translations of each tuning."""
        each = [board.statistics(translations) for translations in tunings]
        single = [board.sampled(statistics) for statistics in each]
        together = board.sampled({text: np.sum([part[text] for part in each], axis=0) for text in board.texts})
        scores = {text: np.array([one[text].bleu for one in single]) for text in board.texts}
        alone = len(each) == 1
        return cls(
            {text: float(values.mean()) for text, values in scores.items()},
            {text: float("nan") if alone else float(values.std(ddof=1)) for text, values in scores.items()},
            together,
        )  # fmt: skip


def annotation_frame(runs: Sequence[TunedRuns], board: Scoreboard) -> pd.DataFrame:
    """Table 2: a row per system and text.

    A score is the mean over tuning seeds; the test is a paired bootstrap over sentences, see `TunedScores`.

    Args:
        runs: the baseline first; all tuned equally often.
    """
    rows: list[tuple[Any, ...]] = []
    base: TunedScores | None = None
    for run in runs:
        found = TunedScores.of(run.translations, board)
        for text in board.texts:
            p = found.together[text].p_value(base.together[text]) if base else float("nan")
            rows.append((
                run.label, run.columns, run.dimension, len(run.translations), text, found.means[text],
                found.deviations[text], found.means[text] - (base or found).means[text], p,
                found.means.get(DEV, float("nan")),
            ))  # fmt: skip
        base = base or found
    return pd.DataFrame(rows, columns=_ANNOTATION)


@dataclass(frozen=True)
class LadderRuns:
    """A step of the ladder, tuned several times.

    Attributes:
        label: its name, no two the same.
        entries: of its table.
        share: of these among the entries of the table that was pruned; 1 for one that was not.
        translations: of all texts, for each tuning seed.
        below: the label of the step it is compared with; None: the full table with the most steps.
    """

    label: str
    entries: int
    share: float
    translations: Sequence[Translations]
    below: str | None = None


def ladder_frame(runs: Sequence[LadderRuns], board: Scoreboard) -> pd.DataFrame:
    """The ladder: a row per step and text, each against the step below and against the first.

    Args:
        runs: from the table as it is upwards, pruned ones last; all tuned equally often.
    """
    rows: list[tuple[Any, ...]] = []
    first: TunedScores | None = None
    last: TunedScores | None = None
    done: dict[str, TunedScores] = {}
    for run in runs:
        found = done[run.label] = TunedScores.of(run.translations, board)
        below = done[run.below] if run.below else last
        for text in board.texts:
            steps = [_compared(found, other, text) if other else _NO_STEP for other in (below, first)]
            rows.append((
                run.label, run.entries, run.share, len(run.translations), text, found.means[text],
                found.deviations[text], *steps[0], *steps[1],
            ))  # fmt: skip
        first = first or found
        last = found if run.share == 1 else last
    return pd.DataFrame(rows, columns=_LADDER)


# Gain, its interval, p.
_NO_STEP = (float("nan"),) * 4


def _compared(found: TunedScores, other: TunedScores, text: str) -> tuple[float, float, float, float]:
    one, base = found.together[text], other.together[text]
    return found.means[text] - other.means[text], *one.difference_interval(base), one.p_value(base)
