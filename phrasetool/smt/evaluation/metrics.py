"""Scores of translations by sacrebleu, confidence intervals, significance tests, and notes on comparability."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.text_splitting import split_words
from phrasetool.vocabulary import has_escapes, lacks_escapes

METRICS = ("bleu", "chrf", "ter")
# sacrebleu's names of the tests, and how many samples it draws.
TESTS = {"bootstrap": "bs", "approximate-randomization": "ar"}
DEFAULT_SAMPLES = {"bootstrap": 1000, "approximate-randomization": 10_000}
# sacrebleu's own default, so that figures agree with those of its command line.
DEFAULT_SEED = 12345
SAMPLES = 1000
# Seed of the choice of runs in each bootstrap sample.
_RUNS_SEED = 777
# Samples processed at a time; bounds the memory of the drawn sentence numbers.
_SAMPLES_PER_BLOCK = 100
# p-values below this are marked with a star.
SIGNIFICANT = 0.05

_SEED_VARIABLE = "SACREBLEU_SEED"
# Below this BLEU and this share of words that are in the reference of their line, a text is probably a translation of
# another text.  Measured: correct texts have at least a BLEU of 2.2 and a share of 0.24; another text or order of lines
# has 0.02 to 0.24.
_LOW_BLEU = 2.0
_FEW_SHARED = 0.25
_PUNCTUATION = frozenset(".,;:?!。，")


def is_significant(p_value: float, low: float, high: float) -> bool:
    """Return whether a difference meets both criteria: a small p, and an interval from `low` to `high` without 0.

    The p of sacrebleu's bootstrap is computed from absolute differences and may be small although the interval contains
    0.  False for NaN.
    """
    return p_value < SIGNIFICANT and (low > 0 or high < 0)


@dataclass(frozen=True)
class SystemScore:
    """The score of one system by one metric.

    Attributes:
        score: corpus score in points of the metric (0 to 100, TER may be higher); the mean over several runs.
        mean, interval: mean and half the width of the 95 % interval over bootstrap samples.
        difference: score minus that of the baseline; None for the baseline.
        p_value: probability of so large a difference between equally good systems; None for the baseline, 1 if there is
            no difference (sacrebleu then gives the smallest possible value).
        difference_low, difference_high: 95 % interval of the difference over bootstrap samples; None for the baseline.
        run_scores: the scores of its runs, at least one.
    """

    score: float
    mean: float
    interval: float
    difference: float | None = None
    p_value: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    run_scores: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """Standard deviation of the scores of the runs; NaN for a single run."""
        return float(np.std(self.run_scores, ddof=1)) if len(self.run_scores) > 1 else float("nan")

    @property
    def is_significant(self) -> bool:
        """Whether the system differs from the baseline; see `is_significant`."""
        if self.p_value is None or self.difference_low is None or self.difference_high is None:
            return False
        return is_significant(self.p_value, self.difference_low, self.difference_high)


@dataclass(frozen=True)
class MetricReport:
    """Scores of all systems by one metric.

    Attributes:
        name: sacrebleu's name of the metric, such as `chrF2`.
        higher_is_better: False for error rates.
        signature: sacrebleu's signature, which records all settings that reproduce the figures.
        systems: scores in the order of the hypotheses.
    """

    name: str
    higher_is_better: bool
    signature: str
    systems: list[SystemScore]

    def is_non_inferior(self, system: SystemScore, margin: float) -> bool:
        """Return whether the 95 % interval of the difference to the baseline excludes a loss of `margin` or more.

        Args:
            system: one of the systems except the baseline.
            margin: points of the metric, above 0.
        """
        assert system.difference_low is not None
        assert system.difference_high is not None
        loss = -system.difference_low if self.higher_is_better else system.difference_high
        return loss < margin


def evaluate(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = METRICS,
    tokenize: str = "none",
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = DEFAULT_SEED,
    runs: int = 1,
) -> list[MetricReport]:
    """Score systems and compare each with the first one.

    A system that was tuned several times has several runs (Clark et al., ACL 2011, on why one tuning is not enough).
    Its score is the mean of the runs' scores.  The interval of a difference draws both sentences and runs
    (`means_of_drawn_runs`); the interval of a score and the test draw sentences only, whose statistics are summed over
    the runs.

    Args:
        hypotheses: translations by each system, those of its runs one after another; lines without line ends, the same
            number in each.
        references: one or more reference translations with the same number of lines.
        metrics: names from `METRICS`.
        tokenize: sacrebleu's tokenizer for BLEU; `none` splits words at spaces.
        test: paired test, one of `TESTS`: bootstrap resampling (Koehn, EMNLP 2004) or approximate randomisation
            (Riezler and Maxwell, 2005).
        samples: bootstrap samples or random swaps; `DEFAULT_SAMPLES` if None.  Intervals are always by bootstrap.
        seed: of both, at least 1.
        runs: number of translations of each system.

    Raises:
        ValueError: no lines, numbers of lines that differ, an unknown name, `samples` or `seed` below 1, or a number
            of translations that is not a multiple of the runs.
    """
    sizes = {len(lines) for lines in (*hypotheses, *references)}
    if not hypotheses or not references or len(sizes) != 1 or sizes == {0}:
        raise ValueError(f"all texts must have the same number of lines, at least 1, got {sorted(sizes)}")
    if test not in TESTS:
        raise ValueError(f"{test!r} is not one of {', '.join(TESTS)}")
    if samples is not None and samples < 1:
        raise ValueError(f"samples is {samples}, expected at least 1")
    if seed < 1:
        raise ValueError("the seed must be at least 1")
    if runs < 1 or len(hypotheses) % runs:
        raise ValueError(f"{len(hypotheses)} translations are not {runs} of each system")
    systems = [_Runs(hypotheses[first : first + runs]) for first in range(0, len(hypotheses), runs)]
    scorers = {name: _scorer(name, tokenize) for name in metrics}
    samples = samples or DEFAULT_SAMPLES[test]
    with _sacrebleu_seed(seed):
        if len(systems) == 1:
            return [_one_system(scorer, systems[0], references, samples) for scorer in scorers.values()]
        return _compare(scorers, systems, references, TESTS[test], samples)


class _Runs(list[str]):
    """The translations of a system: for sacrebleu, the lines of the first run, with the statistics of all runs.

    Args:
        runs: the lines of each run, at least one.
    """

    def __init__(self, runs: Sequence[Sequence[str]]) -> None:
        super().__init__(runs[0])
        self.runs = runs


def _scorer(name: str, tokenize: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"{tokenize!r} is not one of {', '.join(BLEU.TOKENIZERS)}")
    if name == "bleu":
        # `force`: no warning about tokenised text; the report has its own.
        return _with_float_scores(BLEU)(tokenize=tokenize, force=True)
    if name == "chrf":
        return _with_float_scores(CHRF)()
    if name == "ter":
        return _with_float_scores(TER)()
    raise ValueError(f"{name!r} is not one of {', '.join(METRICS)}")


def _with_float_scores(metric: type[Any]) -> type[Any]:
    """Return the metric with scores of one type; it keeps the sentence statistics of all runs of a system.

    sacrebleu's score of a bootstrap sample is a float if there is no match or no word, otherwise a numpy.float32, and
    its mean over the samples fails on a mixture.
    """

    class FloatScores(metric):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            # One element per system: the statistics of each run, and its scores.
            self.statistics: list[list[npt.NDArray[np.float32]]] = []
            self.run_scores: list[tuple[float, ...]] = []

        def _extract_corpus_statistics(self, hypotheses: _Runs, references: Any) -> Any:
            of_runs = [super(FloatScores, self)._extract_corpus_statistics(run, references) for run in hypotheses.runs]
            self.run_scores.append(tuple(float(self._aggregate_and_compute(each).score) for each in of_runs))
            # Numbers of n-grams, edits and words can be summed over runs as they are over sentences.
            self.statistics.append([np.array(rows, np.float32) for rows in of_runs])
            return [[sum(column) for column in zip(*rows, strict=True)] for rows in zip(*of_runs, strict=True)]

        def _compute_score_from_stats(self, stats: Sequence[int]) -> Any:
            score = super()._compute_score_from_stats(stats)
            score.score = float(score.score)
            return score

        def sampled(self, counts: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float64]]:
            """Score the bootstrap samples of every system, see `means_of_drawn_runs`.

            Args:
                counts: how often each sentence is drawn, shape (B, S).
            """
            scores = [
                [[self._compute_score_from_stats(sums).score for sums in counts @ statistics] for statistics in of_runs]
                for of_runs in self.statistics
            ]
            return [means_of_drawn_runs(np.array(of_runs)) for of_runs in scores]

    return FloatScores


def _one_system(scorer: Any, hypothesis: _Runs, references: Sequence[Sequence[str]], samples: int) -> MetricReport:
    from sacrebleu.metrics.ter import TER

    score = scorer.corpus_score(hypothesis, references, n_bootstrap=samples)
    (run_scores,) = scorer.run_scores
    system = SystemScore(fmean(run_scores), float(score._mean), float(score._ci), run_scores=run_scores)
    return MetricReport(score.name, not isinstance(scorer, TER), str(scorer.get_signature()), [system])


def _compare(
    scorers: Mapping[str, Any],
    hypotheses: Sequence[_Runs],
    references: Sequence[Sequence[str]],
    test: str,
    samples: int,
) -> list[MetricReport]:
    from sacrebleu.metrics.ter import TER
    from sacrebleu.significance import PairedTest

    named: list[tuple[str, Sequence[str]]] = [(str(i), lines) for i, lines in enumerate(hypotheses)]
    # 0: intervals from sacrebleu's usual 1,000 bootstrap samples; the bootstrap test has its own.
    intervals, resamples = (0, SAMPLES) if test == "ar" else (-1, samples)
    paired = PairedTest(named, scorers, references, test_type=test, n_samples=samples, n_ar_confidence=intervals)
    signatures, scores = paired()
    counts = bootstrap_counts(len(hypotheses[0]), resamples, int(os.environ[_SEED_VARIABLE]))
    reports = []
    for name, signature in signatures.items():
        results: list[Any] = scores[name]
        metric: Any = paired.metrics[name]
        means = [fmean(run_scores) for run_scores in metric.run_scores]
        baseline, *others = metric.sampled(counts)
        of_differences: list[tuple[float | None, float | None]] = [(None, None)]
        of_differences += [middle_interval(system_samples - baseline) for system_samples in others]
        systems = [
            SystemScore(
                means[i],
                float(result.mean),
                float(result.ci),
                means[i] - means[0] if i else None,
                (float(result.p_value) if result.score != results[0].score else 1.0) if i else None,
                *interval,
                run_scores=metric.run_scores[i],
            )
            for i, (result, interval) in enumerate(zip(results, of_differences, strict=True))
        ]
        reports.append(MetricReport(name, not isinstance(paired.metrics[name], TER), str(signature), systems))
    return reports


def bootstrap_counts(sentences: int, samples: int, seed: int) -> npt.NDArray[np.float32]:
    """Draw bootstrap samples of a text; with sacrebleu's seed they are sacrebleu's samples.

    Args:
        sentences: S, at least 1.
        samples: B.
        seed: of the draw.

    Returns:
        How often each sentence is in each sample, shape (B, S).

    Raises:
        ValueError: the number of sentences is below 1.
    """
    if sentences < 1:
        raise ValueError("cannot sample from no sentences")
    drawn = np.random.default_rng(seed).choice(sentences, size=(samples, sentences), replace=True)
    counts = np.empty((samples, sentences), np.float32)
    for first in range(0, samples, _SAMPLES_PER_BLOCK):
        rows = drawn[first : first + _SAMPLES_PER_BLOCK]
        keys = rows + np.arange(len(rows))[:, None] * sentences
        counts[first : first + len(rows)] = np.bincount(keys.ravel(), minlength=len(rows) * sentences).reshape(
            len(rows), sentences
        )
    return counts


def means_of_drawn_runs(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean score over runs, drawn with replacement, on each bootstrap sample of a text.

    Intervals of these means apply to a new training or tuning, not only to new sentences.  Systems with equally many
    runs draw the same ones, so that runs in the same order are paired.  A single run is always drawn.

    Args:
        samples: scores of R runs of a system on B samples, shape (R, B).

    Returns:
        shape (B,).
    """
    runs, count = samples.shape
    drawn = np.random.default_rng(_RUNS_SEED).integers(0, runs, (count, runs))
    means: npt.NDArray[np.float64] = samples[drawn, np.arange(count)[:, None]].mean(1)
    return means


def middle_interval(samples: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of bootstrap samples, as sacrebleu takes it: a fortieth is cut at either end."""
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


@contextlib.contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """Set sacrebleu's seed, which can be set only in the environment."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED_VARIABLE]
        else:
            os.environ[_SEED_VARIABLE] = before


def any_significant(reports: Sequence[MetricReport]) -> bool:
    """Return whether any system differs significantly from the baseline."""
    return any(system.is_significant for report in reports for system in report.systems)


def score_lines(report: MetricReport, files: Sequence[str], margin: float | None = None) -> list[str]:
    """Format the scores of all systems by one metric: a title, a line for each system, verdicts, the signature.

    Args:
        report: of S systems.
        files: S paths, those of the systems' first runs; a system is labelled with the file name, or with the path if
            two files have the same name.
        margin: non-inferiority margin in points; None for no verdict.
    """
    names = [os.path.basename(path) for path in files]
    if len(set(names)) < len(names):
        names = list(files)
    runs = len(report.systems[0].run_scores)
    shown = [f"{name}, {runs} runs" if runs > 1 else name for name in names]
    if len(names) > 1:
        shown[0] += " (baseline)"
    title = f"{report.name}, {'more' if report.higher_is_better else 'less'} is better"
    width = max(len(title), *(len(name) + 2 for name in shown))
    compared = f"  {'difference':>10}  {'95 %':>14}  {'p':>7}" if len(files) > 1 else ""
    spread = f"  {'s.d.':>5}" if runs > 1 else ""
    rows = [f"{title:<{width}}  {'score':>6}{spread}  {'95 %':>6}{compared}"]
    for name, system in zip(shown, report.systems, strict=True):
        spread = f"  {system.deviation:5.2f}" if runs > 1 else ""
        row = f"  {name:<{width - 2}}  {system.score:6.2f}{spread}  {'±' + format(system.interval, '.2f'):>6}"
        if system.p_value is not None:
            star = " *" if system.is_significant else ""
            interval = f"{system.difference_low:+.2f} to {system.difference_high:+.2f}"
            row += f"  {system.difference:>+10.2f}  {interval:>14}  {system.p_value:7.4f}{star}"
        rows.append(row)
    for name, system in zip(names[1:], report.systems[1:], strict=True):
        if margin is not None:
            verdict = "is non-inferior" if report.is_non_inferior(system, margin) else "is not shown to be non-inferior"
            rows.append(f"  {name} {verdict} (margin {margin:g})")
    return [row.rstrip(" ") for row in (*rows, f"  {report.signature}")]


def rouge_n(
    candidates: Sequence[Sequence[str]], references: Sequence[Sequence[str]], order: int
) -> npt.NDArray[np.float64]:
    """Return the n-gram F1 of every candidate and its reference: the harmonic mean of precision and recall.

    An n-gram matches as often as it occurs in both (section 2; the recall is Eq. 1).  Words are neither stemmed nor
    lower-cased.  The F1 of a corpus is the mean of those of its texts, as in the package `rouge-score`.

    Args:
        candidates: N texts, each a sequence of words.
        references: N texts of the same form.
        order: n, at least 1.

    Returns:
        float64, shape (N,), from 0 to 1; 0 where neither text has `order` words.

    Raises:
        ValueError: the numbers of candidates and references differ, or n is not positive.
    """
    if len(candidates) != len(references) or order < 1:
        raise ValueError(f"{len(candidates)} candidates, {len(references)} references, n = {order}")
    f1_scores = np.zeros(len(candidates))
    for i, (candidate, reference) in enumerate(zip(candidates, references, strict=True)):
        produced, expected = _n_grams(candidate, order), _n_grams(reference, order)
        # 2 P R / (P + R), with P = matches / n-grams produced, R = matches / n-grams expected.
        f1_scores[i] = 2 * (produced & expected).total() / max(produced.total() + expected.total(), 1)
    return f1_scores


def _n_grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[first:] for first in range(order)), strict=False))


@dataclass(frozen=True)
class TextForm:
    """Surface form of a text.

    Attributes:
        tokenised: punctuation marks are tokens.
        lower_cased: there are letters with case, but no capitals; None without such letters.
        escaped: there are Moses' escapes, such as `&apos;`; None if no character needs one.
    """

    tokenised: bool
    lower_cased: bool | None
    escaped: bool | None


def text_form(lines: Sequence[str]) -> TextForm:
    """Guess the surface form of a text from its first 1,000 lines."""
    text = " ".join(lines[:1000])
    tokens = split_words(text)
    loose = sum(token in _PUNCTUATION for token in tokens)
    tight = sum(len(token) > 1 and token[-1] in _PUNCTUATION and token[-2].isalnum() for token in tokens)
    # Tokenised text still has attached full stops, in abbreviations.
    data = text.encode("utf-8", "surrogateescape")
    escaped = None
    if has_escapes(data):
        escaped = True
    elif b"&" in data or lacks_escapes(data):
        escaped = False
    has_case = text.lower() != text.upper()
    return TextForm(loose > tight, text == text.lower() if has_case else None, escaped)


def score_notes(texts: Mapping[str, Sequence[str]], references: Sequence[str], tokenize: str) -> list[str]:
    """Return notes that a reader needs to compare the scores with others.

    Args:
        texts: name -> lines, of hypotheses and references.
        references: names of the references, at least one.
        tokenize: sacrebleu's tokenizer for BLEU.
    """
    notes = []
    reference = references[0]
    form = text_form(texts[reference])
    names = {"tokenised": "tokenised", "lower_cased": "lower-cased", "escaped": "escaped for Moses (&apos;)"}
    looks = [name for key, name in names.items() if getattr(form, key)]
    if tokenize == "none":
        notes.append(
            "Text was scored without tokenisation (--tokenize none): spaces separate words; BLEU is case-sensitive."
        )
    else:
        notes.append(f"BLEU was computed on text tokenised by sacrebleu (--tokenize {tokenize}).")
    if looks:
        *first, last = looks
        description = f"{', '.join(first)} and {last}" if first else last
        notes.append(f"The reference looks {description}: do not compare with scores of text that is not.")
        if form.tokenised and tokenize != "none":
            notes.append("It is now tokenised twice; --tokenize none avoids this.")
    for path, lines in texts.items():
        other = text_form(lines)
        for key, name in names.items():
            if {getattr(other, key), getattr(form, key)} == {True, False}:
                yes, no = (path, reference) if getattr(other, key) else (reference, path)
                notes.append(f"Warning: {yes} looks {name}, {no} does not.")
        if any(not line.isascii() and _has_surrogates(line) for line in lines):
            notes.append(f"Warning: {path} is not UTF-8; its other bytes count as characters.")
        if split := split_words_note(path, lines):
            notes.append(f"Warning: {split}.")
        empty = 0 if path in references else untranslated_lines(lines, [texts[other] for other in references])
        if empty:
            notes.append(f"Warning: {empty:,} of {len(lines):,} lines of {path} have no words.")
    return notes


def _has_surrogates(line: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in line)


def shared_words(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the share of a text's words that are in a reference of their line, with clipped counts.

    Args:
        hypothesis: lines of words separated by spaces.
        references: the same number of lines each.

    Returns:
        From 0 to 1; 1 for a text without words.
    """
    words = shared = 0
    for line, *truth in zip(hypothesis, *references, strict=True):
        hypothesis_counts, reference_counts = Counter(split_words(line)), Counter[str]()
        for reference in truth:
            reference_counts |= Counter(split_words(reference))
        words += hypothesis_counts.total()
        shared += (hypothesis_counts & reference_counts).total()
    return shared / words if words else 1.0


def split_words_note(name: str, lines: Sequence[str]) -> str:
    """Return a note on words that sacrebleu splits: those with white space other than spaces and tabs; "" if none.

    Args:
        name: name of the text.
        lines: words separated by spaces.
    """
    odd = (line for line in lines if line.split() != split_words(line))
    count = sum(word.split() != [word] for line in odd for word in split_words(line))
    if not count:
        return ""
    return (
        f"{count:,} words of {name} contain white space other than spaces and tabs, such as U+00A0; sacrebleu splits "
        "them there"
    )


def untranslated_lines(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> int:
    """Count the lines of a text that have no word although a reference of the line has one."""
    rows = zip(hypothesis, *references, strict=True)
    return sum(not split_words(line) and any(map(split_words, truth)) for line, *truth in rows)


def unlike_references(
    reports: Sequence[MetricReport], hypotheses: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]]
) -> list[str]:
    """Return warnings about texts that are hardly translations of the same text as the references.

    Args:
        reports: result of `evaluate`; without BLEU there are no warnings.
        hypotheses: name -> lines, in the order of the systems and their runs.
        references: their lines.
    """
    warnings = []
    for report in (report for report in reports if report.name == "BLEU"):
        scores = [score for system in report.systems for score in system.run_scores]
        for (name, lines), score in zip(hypotheses.items(), scores, strict=True):
            if score < _LOW_BLEU and (shared := shared_words(lines, references)) < _FEW_SHARED:
                warnings.append(
                    f"Warning: BLEU of {name} is {score:.2f}, and {100 * shared:.1f} % of its words are in "
                    "the reference of their line: another text, language or order of lines?"
                )
    return warnings


def equal_runs(hypotheses: Mapping[str, Sequence[str]], runs: int) -> list[str]:
    """Return warnings about runs with equal translations, e.g. if a tuning run returned the weights of another.

    Args:
        hypotheses: name -> lines, those of the runs of a system one after another.
        runs: number of runs of each system.
    """
    names = list(hypotheses)
    warnings = []
    for first in range(0, len(names), runs):
        for first_name, second_name in itertools.combinations(names[first : first + runs], 2):
            if hypotheses[first_name] == hypotheses[second_name]:
                warnings.append(f"Warning: {second_name} and {first_name} are equal, but count as two runs.")
    return warnings
