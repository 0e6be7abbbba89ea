"""Scores of translations, their confidence, and whether two systems differ, all by sacrebleu."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

METRICS = ("bleu", "chrf", "ter")
# sacrebleu's names of them, and how many samples it draws.
TESTS = {"bootstrap": "bs", "approximate-randomization": "ar"}
DEFAULT_SAMPLES = {"bootstrap": 1000, "approximate-randomization": 10_000}
# sacrebleu's own default, so that figures agree with those of its command line.
DEFAULT_SEED = 12345
# p-values below it are marked with a star.
SIGNIFICANT = 0.05

_SEED_VARIABLE = "SACREBLEU_SEED"


@dataclass(frozen=True)
class SystemScore:
    """The score of one system by one metric.

    Attributes:
        score: of the corpus, in points of the metric (0 to 100, TER may be more).
        mean, interval: mean and half the width of the 95 % interval over bootstrap samples.
        difference: score minus that of the baseline; None for the baseline.
        p_value: how likely a difference that large is if the two systems are equally good; None for the baseline, 1
            without a difference (sacrebleu then gives the smallest possible value).
    """

    score: float
    mean: float
    interval: float
    difference: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class MetricReport:
    """All systems by one metric.

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


def evaluate(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = METRICS,
    tokenize: str = "none",
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = DEFAULT_SEED,
) -> list[MetricReport]:
    """Score systems and compare each with the first one.

    Args:
        hypotheses: translations of each system, lines without line ends, all of the same number.
        references: one or more reference translations, of that number of lines each.
        metrics: of `METRICS`.
        tokenize: sacrebleu's tokenizer for BLEU; `none` takes words as spaces separate them.
        test: paired test, one of `TESTS`: bootstrap resampling (Koehn, EMNLP 2004) or approximate randomisation
            (Riezler and Maxwell, 2005).
        samples: bootstrap samples or random swaps; `DEFAULT_SAMPLES` if None.  Intervals are always by bootstrap.
        seed: of both, at least 1.

    Raises:
        ValueError: no lines, numbers of lines that differ, an unknown name, or a seed below 1.
    """
    sizes = {len(lines) for lines in (*hypotheses, *references)}
    if not hypotheses or not references or len(sizes) != 1 or sizes == {0}:
        raise ValueError(f"expected one number of lines, at least 1, got {sorted(sizes)}")
    if seed < 1:
        raise ValueError("the seed must be at least 1")
    scorers = {name: _scorer(name, tokenize) for name in metrics}
    samples = samples or DEFAULT_SAMPLES[test]
    with _sacrebleu_seed(seed):
        if len(hypotheses) == 1:
            return [_one_system(scorer, hypotheses[0], references, samples) for scorer in scorers.values()]
        return _compare(scorers, hypotheses, references, TESTS[test], samples)


def _scorer(name: str, tokenize: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name == "bleu":
        # `force`: no warning about tokenised text; the report has one of its own.
        return _with_float_scores(BLEU)(tokenize=tokenize, force=True)
    if name == "chrf":
        return _with_float_scores(CHRF)()
    if name == "ter":
        return _with_float_scores(TER)()
    raise ValueError(f"{name!r} is not one of {', '.join(METRICS)}")


def _with_float_scores(metric: type[Any]) -> type[Any]:
    """The metric with scores of one type.

    sacrebleu scores a bootstrap sample without a match, or without a word, by a float and others by a numpy.float32,
    and the mean that it takes of the samples fails on a mixture.
    """

    class FloatScores(metric):
        def _compute_score_from_stats(self, stats: Sequence[int]) -> Any:
            score = super()._compute_score_from_stats(stats)
            score.score = float(score.score)
            return score

    return FloatScores


def _one_system(
    scorer: Any, hypothesis: Sequence[str], references: Sequence[Sequence[str]], samples: int
) -> MetricReport:
    from sacrebleu.metrics.ter import TER

    score = scorer.corpus_score(hypothesis, references, n_bootstrap=samples)
    system = SystemScore(float(score.score), float(score._mean), float(score._ci))
    return MetricReport(score.name, not isinstance(scorer, TER), str(scorer.get_signature()), [system])


def _compare(
    scorers: Mapping[str, Any],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    test: str,
    samples: int,
) -> list[MetricReport]:
    from sacrebleu.metrics.ter import TER
    from sacrebleu.significance import PairedTest

    named = [(str(i), lines) for i, lines in enumerate(hypotheses)]
    # 0: intervals from sacrebleu's usual 1,000 bootstrap samples; the bootstrap test has its own.
    intervals = 0 if test == "ar" else -1
    paired = PairedTest(named, scorers, references, test_type=test, n_samples=samples, n_ar_confidence=intervals)
    signatures, scores = paired()
    reports = []
    for name, signature in signatures.items():
        results: list[Any] = scores[name]
        first = results[0].score
        systems = [
            SystemScore(
                float(result.score),
                float(result.mean),
                float(result.ci),
                float(result.score - first) if i else None,
                (float(result.p_value) if result.score != first else 1.0) if i else None,
            )
            for i, result in enumerate(results)
        ]
        reports.append(MetricReport(name, not isinstance(paired.metrics[name], TER), str(signature), systems))
    return reports


@contextlib.contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """The one way to tell sacrebleu the seed is the environment."""
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
    """Whether any system differs from the baseline."""
    return any((system.p_value or 1) < SIGNIFICANT for report in reports for system in report.systems)


def score_lines(report: MetricReport, files: Sequence[str]) -> list[str]:
    """The scores of all systems by one metric: a title, a line for each system, the signature.

    Args:
        report: of S systems.
        files: S paths; a system goes by the name of its file, or by its path if two have the same name.
    """
    names = [os.path.basename(path) for path in files]
    if len(set(names)) < len(names):
        names = list(files)
    if len(names) > 1:
        names[0] += " (baseline)"
    title = f"{report.name}, {'more' if report.higher_is_better else 'less'} is better"
    width = max(len(title), *(len(name) + 2 for name in names))
    compared = f"  {'difference':>10}  {'p':>7}" if len(files) > 1 else ""
    rows = [f"{title:<{width}}  {'score':>6}  {'95 %':>6}{compared}"]
    for name, system in zip(names, report.systems, strict=True):
        row = f"  {name:<{width - 2}}  {system.score:6.2f}  {'±' + format(system.interval, '.2f'):>6}"
        if system.p_value is not None:
            star = " *" if system.p_value < SIGNIFICANT else ""
            row += f"  {system.difference:>+10.2f}  {system.p_value:7.4f}{star}"
        rows.append(row)
    return [row.rstrip(" ") for row in (*rows, f"  {report.signature}")]
