"""The tuning loop: decode n-best lists, gather candidates, find new weights with an optimiser, decode again.

Modelled on mert-moses.pl: the n-best lists of all runs are kept, a run's quality is the BLEU of its own first
candidates, and the weights of the best run are returned (as with --return-best-dev), not the last ones.

Some weights may be fixed.  To the optimisers, the features with fixed weights are one more feature: their weighted sum.
Its weight is tuned like the others.  Because only ratios of weights matter, all weights are then multiplied by the
factor that makes it 1, and the decoder uses the fixed weights unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from phrasetool.smt.tuning import optimisers
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, Weights, first_best_bleu, normalised

# (pool, start weights, seed) -> weights.
Optimiser = Callable[[CandidatePool, Weights, int], Weights]

ALGORITHMS: dict[str, Optimiser] = {"mira": optimisers.optimise_mira, "pro": optimisers.optimise_pro}

# mert-moses.pl stops when no weight changes by more than this.
_SMALLEST_CHANGE = 1e-5
# The weight of the sum of fixed features stays positive: an update reduces it at most to this share.
_LEAST_SHARE_OF_FIXED = 0.5
# A restart multiplies or divides each weight by up to this factor.
_LARGEST_FACTOR = 2.0


@dataclass(frozen=True)
class NBestDecoder:
    """A decoder of the development set, called with the weights that are tuned.

    The candidates have the tuned features and, if a weight that is not tuned differs from 0, a last feature: the
    weighted sum of the features that are not tuned.

    Args:
        translator: the model, with the values of the weights that are not tuned.
        sentences: S sentences of the development set, ids of the table's source words.
        options: of the search.
        n_best: candidates per sentence, no two with the same words.
        tuned: bool, shape (F,), which weights are tuned.
        threads: for decoding.
        tick: called after each sentence.
    """

    translator: Translator
    sentences: Phrases
    options: SearchOptions
    n_best: int
    tuned: npt.NDArray[np.bool_]
    threads: int = 1
    tick: Callable[[], None] = lambda: None

    @property
    def fixed(self) -> bool:
        """Whether a weight that is not tuned differs from 0."""
        return bool(self._fixed_weights.any())

    @property
    def _fixed_weights(self) -> Weights:
        """The weights that are not tuned, 0 for the tuned ones; float64, shape (F,)."""
        return np.where(self.tuned, 0.0, self.translator.weights)

    def all_weights(self, weights: Weights) -> Weights:
        """Return the tuned weights together with the others, float64, shape (F,)."""
        whole = self.translator.weights.copy()
        whole[self.tuned] = weights
        return whole

    def __call__(self, weights: Weights, runner: Runner = run) -> NBest:
        """Return the candidates under these weights; their words are ids of the table's target words.

        Args:
            weights: the tuned weights.
            runner: runs the translation of sentences.
        """
        translator = self.translator.with_weights(self.all_weights(weights))
        counts, features, words = [], [], []
        fixed, fixed_weights = self.fixed, self._fixed_weights
        for translation in translator.translate_all(
            self.sentences, self.options, self.n_best, threads=self.threads, runner=runner
        ):
            counts.append(len(translation))
            columns = translation.features[:, self.tuned]
            if fixed:
                # A sum over each row separately: equal candidates of different runs have the same sum, to the last bit.
                columns = np.column_stack([columns, (translation.features * fixed_weights).sum(axis=1)])
            features.append(columns.astype(np.float32))
            targets = translator.table.targets.select(translation.steps.entries)
            words.append(Phrases(targets.offsets[translation.steps.offsets], targets.words))
            self.tick()
        return NBest(
            np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            np.concatenate([np.zeros((0, int(self.tuned.sum()) + fixed), np.float32), *features]),
            Phrases.concatenate(words),
        )


@dataclass(frozen=True)
class TuningRun:
    """One run of the decoder.

    Attributes:
        restart: number of its restart, from 0, which begins with the given start weights.
        run: its number, from 1.
        weights: float64, shape (F,), weights that it decoded with.
        bleu: BLEU of its first candidates, 0 to 100.
        new: number of candidates that were not known before.
        candidates: number of all known candidates.
        best: whether it is the best run so far, of all restarts.
    """

    restart: int
    run: int
    weights: Weights
    bleu: float
    new: int
    candidates: int
    best: bool


@dataclass(frozen=True)
class TuningResult:
    """Result of tuning.

    Attributes:
        best: the run with the highest BLEU, the first on a tie.
        runs: all runs, in order.
        reasons: the reason why each restart ended, in words.
    """

    best: TuningRun
    runs: list[TuningRun]
    reasons: list[str]

    @property
    def weights(self) -> Weights:
        """Weights of the best run, float64, shape (F,)."""
        return self.best.weights


def tune(
    decode: Callable[[Weights], NBest],
    references: Sequence[Phrases],
    start: npt.ArrayLike,
    algorithm: str | Optimiser = "mira",
    *,
    fixed: bool = False,
    iterations: int = 25,
    restarts: int = 1,
    patience: int = 5,
    seed: int = 1,
    report: Callable[[TuningRun], None] = lambda run: None,
) -> TuningResult:
    """Find weights under which a decoder's translations of a development set have a high BLEU.

    A restart ends after `iterations` runs, after `patience` runs without a better BLEU in this restart, when a run adds
    no new candidate, or when no weight changes by 1e-5.

    Args:
        decode: returns the n-best lists of the whole development set under given weights.
        references: R references of S sentences each, word ids as in the n-best lists.
        start: shape (F,), weights to begin with, not all 0; only their ratios matter, except for `fixed`.
        algorithm: `mira`, `pro`, or a function.
        fixed: whether the n-best lists have one more feature than there are weights, the last one, whose weight is
            always 1.  The weights are then not normalised, unless this feature is the same in all candidates of each
            sentence; the first run decodes with `start` as it is.
        iterations: maximum number of decoder runs of a restart.
        restarts: number of starts: first from `start`, then from random changes of it (see `perturbed`).
        patience: see above.
        seed: random seed.
        report: called with each run as soon as it is measured.

    Raises:
        ValueError: `start` is all 0 or not finite; an unknown algorithm; a number below 1; or `CandidatePool.add` does
            not accept an n-best list.
    """
    if min(iterations, restarts, patience) < 1:
        raise ValueError("iterations, restarts and patience must be at least 1")
    if isinstance(algorithm, str) and algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm!r} is not one of {', '.join(ALGORITHMS)}")
    optimise = ALGORITHMS[algorithm] if isinstance(algorithm, str) else algorithm
    start_weights = normalised(np.append(start, 1.0) if fixed else start)
    runs: list[TuningRun] = []
    reasons = []
    for restart in range(restarts):
        rng = np.random.default_rng((seed, restart))
        weights = perturbed(start_weights, rng) if restart else start_weights
        pool = CandidatePool(references, len(start_weights))
        best_here = -1.0
        since_best = 0
        for number in range(1, iterations + 1):
            decoded_with = _without_fixed(weights, pool) if fixed else weights
            n_best = decode(decoded_with)
            bleu = first_best_bleu(n_best, references)
            new = pool.add(n_best)
            best = bleu > max((run.bleu for run in runs), default=-1.0)
            runs.append(TuningRun(restart, number, decoded_with, bleu, new, len(pool), best))
            report(runs[-1])
            since_best = 0 if bleu > best_here else since_best + 1
            best_here = max(best_here, bleu)
            if number == iterations:
                reasons.append(f"{iterations} runs were completed")
                break
            if since_best == patience:
                reasons.append(f"no better BLEU in {patience} runs")
                break
            if not new:
                reasons.append("the decoder found no new hypotheses")
                break
            before, weights = weights, optimise(pool, weights, int(rng.integers(1 << 31)))
            if fixed:
                weights = normalised(np.append(weights[:-1], max(weights[-1], _LEAST_SHARE_OF_FIXED * before[-1])))
            if np.abs(weights - before).max() < _SMALLEST_CHANGE:
                reasons.append(f"no weight changed by {_SMALLEST_CHANGE:g}")
                break
    return TuningResult(max(runs, key=lambda run: run.bleu), runs, reasons)


def _without_fixed(weights: Weights, pool: CandidatePool) -> Weights:
    """Return all weights but the last, multiplied by the factor that makes the last one 1.

    They are normalised instead if the last feature does not affect any choice between the candidates in the pool.
    """
    if len(pool) and not pool.varies()[-1]:
        return normalised(weights[:-1])
    return weights[:-1] / weights[-1]


def perturbed(weights: Weights, rng: np.random.Generator) -> Weights:
    """Return normalised weights after multiplying each by a random factor from 1/2 to 2 (uniform in the logarithm).

    A weight of 0 becomes uniform between plus and minus half of the mean absolute weight.  Other weights keep their
    sign: a decoder with an inverted language-model weight finds nothing to learn from.

    Args:
        weights: float64, shape (F,), not all 0.
        rng: source of randomness.
    """
    factors = _LARGEST_FACTOR ** rng.uniform(-1, 1, weights.shape)
    additions = rng.uniform(-0.5, 0.5, weights.shape) * np.abs(weights).mean()
    return normalised(np.where(weights == 0, additions, weights * factors))
