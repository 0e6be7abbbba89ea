"""Objectives: the losses of predicted vectors against those of the other language, and their registry.

An objective is a frozen dataclass that derives from `JointObjective` or `CoTrainingObjective`, and whose fields are
declared by `phrasetool.options.option`.  It is registered by one line in `OBJECTIVES`.  Modules of objectives must not
import torch when they are imported (methods may).

**Margin losses over cosines** (Bhat, Kumar and Tsvetkov 2020, Eq. 1).

    L = max(0, margin + u'.p - u.p)

with p the predicted, u the true and u' a negative vector, all of length one.  The objectives differ in their u':

Sampled (sections 3, 4): random phrases of the other language.

Most informative (section 3; Lazaridou et al. 2015): of the phrases of the other language, the one whose vector is
closest to p - u, the error of the prediction.

Syn-margin: a vector computed from the prediction and the target alone.  p = l1 u + l2 u_orth, where u_orth is the unit
vector of the component of p orthogonal to u.  The loss against any unit vector x, with x.u = l3 and x.u_orth = l4, is
(section 3.1)

    max(0, margin + l4 u_orth.p - (1 - l3) u.p)

By projection (section 3.2) x = u_orth, that is l3 = 0 and l4 = 1.  By difference x is the unit vector of p - u; with a
the angle between p and u, l3 = -sin(a / 2) and l4 = cos(a / 2).  Both are constants for the gradient.  Where p = u the
negative is zero, so the loss is max(0, margin - 1); where p = -u, u_orth is zero, so the loss is margin + 1, and has no
gradient.

**In-batch cross-entropy.**  Symmetric cross-entropy over cosines at a temperature, as in CLIP (Radford et al. 2021) and
bilingual sentence encoders (Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence Embeddings").

The candidates of a batch are drawn in proportion to their frequency in the pairs.  Without a correction, the optimal
score of s and t is their pointwise mutual information (Oord et al. 2018, "Representation Learning with Contrastive
Predictive Coding"), which ranks frequent translations low: a phrase that occurs often is often a wrong candidate.
Therefore log q, the logarithm of the probability of drawing the candidate, is subtracted from its logit (Bengio and
Senecal 2008, "Adaptive importance sampling to accelerate training of a neural probabilistic language model"; Yi et al.
2019, "Sampling-bias-corrected neural modeling for large corpus item recommendations").  The optimal score is then
log p(t|s) plus a constant for each s, and log p(s|t) plus a constant for each t.

No phrase of the batch is left out as "a second translation": leaving some out shifts the optimum for phrases with many
partners.

**Von Mises-Fisher likelihood** (Kumar and Tsvetkov 2019; Bhat et al. 2020, section 2).

    L = -log C_n(||p||) - p.u,     C_n(k) = k^(n/2 - 1) / ((2 pi)^(n/2) I_{n/2-1}(k))

with p the prediction, not normalised, and u the true vector, of length one.  The direction of p is the expected
direction of u, its length the certainty.  For vectors u whose mean has the length r, the minimum is at
I_{n/2}(k) / I_{n/2-1}(k) = r, where k is about n r / (1 - r^2) (Sra 2012): 5 n for r = 0.9, so k must grow with n.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from phrasetool.options import Options, option, registered, with_options

if TYPE_CHECKING:
    from torch import Tensor


# Settings for losses of directions.  Both languages move towards each other's vectors of the previous iteration, and
# hardly anything separates phrases that initially point in the same direction, so word vectors are spread out; and
# combined with a reconstruction error, these losses learn less.
DIRECTIONAL_LOSS_DEFAULTS: Mapping[str, Any] = {"vectors": "centred", "alpha": 0.0, "learning_rate": 0.01}


@dataclass(frozen=True)
class FrozenBatch:
    """The other language during co-training, for one batch of B pairs, without gradients.

    Attributes:
        positive: vectors of the true partners, shape (B, n).
        corrupted: vectors of the partners with their words replaced by random ones, shape (B, n); None if the
            objective does not need them.
        pool: unit vectors of all distinct phrases of the other language, shape (P, n).
        rng: draws for this batch; they depend on the seed, not on the scheduling of threads.
    """

    positive: Tensor
    corrupted: Tensor | None
    pool: Tensor
    rng: np.random.Generator


@dataclass(frozen=True)
class Objective(Options, ABC):
    """Base of all objectives.

    Attributes:
        name: name for users (`--loss`).
        summary: description of some ten words, for `--help`.
        defaults: training settings that differ from the general ones.
        bounded: whether no loss is below zero; otherwise divergence is detected by other measures.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    defaults: ClassVar[Mapping[str, Any]] = {}
    bounded: ClassVar[bool] = True


class JointObjective(Objective):
    """Objective under which both languages are updated together, on vectors of one batch."""

    @abstractmethod
    def batch_losses(self, predicted: Tensor, other: Tensor, log_shares: tuple[Tensor, Tensor]) -> Tensor:
        """Return the losses of one direction, shape (B,).

        Args:
            predicted: phrases of one side transformed into the other side's space, shape (B, n).
            other: the other side's phrase vectors, shape (B, n); row i belongs to row i of `predicted`.
            log_shares: for both sides, shape (B,) each, the logarithm of the share of the training pairs that contain
                the phrase, which is the probability of drawing it as a candidate.
        """


class CoTrainingObjective(Objective):
    """Objective under which each language is updated while the other is frozen.

    Attributes:
        needs_corrupted: whether the losses need `FrozenBatch.corrupted`.
    """

    needs_corrupted: ClassVar[bool] = False

    @property
    def corrupts_by_frequency(self) -> bool:
        """Whether the random words of corrupted phrases are drawn by frequency; otherwise uniformly."""
        return False

    @abstractmethod
    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return the losses of one direction, shape (B,), finite for any input.

        Args:
            predicted: phrases transformed into the other side's space, shape (B, n).
            frozen: the other side.
        """


# Shorter vectors count as zero: in single precision, the direction of such a small difference of two unit vectors is
# rounding noise, and the gradient of a direction grows as one over the length.
SHORTEST = 1e-6
# Two unit vectors whose cosine is this close to 1 are equal up to rounding, in single precision and 1,024 dimensions.
_SAME = 1e-6
# Phrases compared at once: their cosines with a batch stay in the cache.
_POOL_BLOCK = 4096


def unit_vectors(vectors: Tensor) -> Tensor:
    """Scale vectors to length one; a vector shorter than `SHORTEST` becomes zero and gets no gradient.

    Args:
        vectors: shape (B, n).

    Returns:
        shape (B, n).
    """
    lengths: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors * (lengths.clamp_min(SHORTEST).reciprocal() * (lengths >= SHORTEST))


def margin_loss(predicted: Tensor, positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """Return max(0, margin + negative.predicted - positive.predicted) (Eq. 1).

    Args:
        predicted, positive, negative: unit (or zero) vectors, shape (B, n).
        margin: lambda.

    Returns:
        shape (B,).
    """
    return (((negative - positive) * predicted).sum(1) + margin).relu()


def most_informative(predicted: Tensor, positive: Tensor, pool: Tensor) -> Tensor:
    """Return for every pair the vector of the pool with the largest cosine to predicted - positive, except positive.

    Args:
        predicted, positive: unit (or zero) vectors, shape (B, n).
        pool: unit (or zero) vectors, shape (P, n).

    Returns:
        shape (B, n); the first on a tie; zero where the pool contains only the partner.
    """
    differences = predicted - positive
    picked = pool[_closest(differences, pool)]
    same = (picked * positive).sum(1) >= 1 - _SAME
    # Very rare, because predicted - positive points away from the partner.
    if same.any():
        rows = same.nonzero().squeeze(1)
        cosines = (differences[rows] @ pool.T).masked_fill(positive[rows] @ pool.T >= 1 - _SAME, -float("inf"))
        best, index = cosines.max(1)
        picked[rows] = pool[index] * best.isfinite()[:, None]
    return picked


def _closest(queries: Tensor, pool: Tensor) -> Tensor:
    """Return the rows of the pool with the largest product, shape (B,)."""
    best, index = (queries @ pool[:_POOL_BLOCK].T).max(1)
    for start in range(_POOL_BLOCK, len(pool), _POOL_BLOCK):
        value, block_index = (queries @ pool[start : start + _POOL_BLOCK].T).max(1)
        index = (block_index + start).where(value > best, index)
        best = value.maximum(best)
    return index


@dataclass(frozen=True)
class _MarginLoss(CoTrainingObjective):
    """Base class of the four margin losses.

    Attributes:
        margin: lambda.

    Raises:
        ValueError: the margin is negative.
    """

    # The paper does not state its margin.  With this one, a pair has a gradient as long as its cosine is below 1,
    # against a negative that is orthogonal to the prediction.  All losses that share it learn less with smaller
    # margins.
    margin: float = option(1.0, "Margin between true and negative partner.", ge=0)

    defaults: ClassVar[Mapping[str, Any]] = DIRECTIONAL_LOSS_DEFAULTS


@dataclass(frozen=True)
class Sampled(_MarginLoss):
    """Margin loss, mean over random phrases, as `--loss sampled`.

    Attributes:
        negatives: k, the number of phrases drawn for every pair.

    Raises:
        ValueError: an option is out of range.
    """

    # The paper's value.  Twenty give no better model on 54,000 pairs, and a slightly better one on 16,000.
    negatives: int = option(5, "Random phrases drawn for every pair.", ge=1)

    name: ClassVar[str] = "sampled"
    summary: ClassVar[str] = "have a higher cosine with the partner than with random phrases"

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return the mean margin loss over k uniform draws from the pool, with replacement; see `CoTrainingObjective`.

        A draw may be the partner itself; its loss is then the margin, without a gradient.
        """
        import torch

        drawn = frozen.rng.integers(0, len(frozen.pool), (len(predicted), self.negatives))
        index = torch.from_numpy(drawn).to(frozen.pool.device)
        unit = unit_vectors(predicted)
        right = (unit * unit_vectors(frozen.positive)).sum(1, keepdim=True)
        wrong = torch.bmm(frozen.pool[index], unit[:, :, None]).squeeze(2)
        return (wrong - right + self.margin).relu().mean(1)


class _OneNegative(_MarginLoss):
    """Margin loss against one negative, which is a constant for the gradient."""

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return max(0, margin + negative.p - u.p); see `CoTrainingObjective`."""
        unit, positive = unit_vectors(predicted), unit_vectors(frozen.positive)
        return margin_loss(unit, positive, self.negative(unit.detach(), positive, frozen), self.margin)

    @abstractmethod
    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return the negatives of unit vectors p and u, shape (B, n)."""


@dataclass(frozen=True)
class MostInformative(_OneNegative):
    """Margin loss against the most informative negative, as `--loss most-informative`.

    Attributes:
        pool_size: number of phrases to choose from, drawn for every batch; 0 for all.

    Raises:
        ValueError: an option is out of range.
    """

    # The worst of a few hundred gives a better model than the worst of thousands, and sooner.
    pool_size: int = option(256, "Phrases to find the negative among, drawn for every batch; 0: all.", ge=0)

    name: ClassVar[str] = "most-informative"
    summary: ClassVar[str] = "have a higher cosine with the partner than with the hardest negative"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return the phrases of the pool, or of a sample of it, that are closest to p - u."""
        import torch

        pool = frozen.pool
        if 0 < self.pool_size < len(pool):
            drawn = frozen.rng.choice(len(pool), self.pool_size, replace=False, shuffle=False)
            pool = pool[torch.from_numpy(drawn).to(pool.device)]
        return most_informative(predicted, positive, pool)


class SynProjection(_OneNegative):
    """Margin loss against u_orth, as `--loss syn-projection`."""

    name: ClassVar[str] = "syn-projection"
    summary: ClassVar[str] = "margin against what the prediction has orthogonal to the partner"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return u_orth, the unit vector of p - (p.u) u; zero where p is parallel to u."""
        rest = predicted - (predicted * positive).sum(1, keepdim=True) * positive
        # The rounding error along u is large compared with a small difference; a second projection removes it.
        rest = rest - (rest * positive).sum(1, keepdim=True) * positive
        return unit_vectors(rest)


class SynDifference(_OneNegative):
    """Margin loss against u_diff, as `--loss syn-difference`."""

    name: ClassVar[str] = "syn-difference"
    summary: ClassVar[str] = "margin against the difference of the prediction and the partner"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return u_diff, the unit vector of p - u; zero where p equals u."""
        return unit_vectors(predicted - positive)


CORRUPTIONS = ("frequency", "uniform")


def semantic_error(transformed: Tensor, other: Tensor) -> Tensor:
    """Return E_sem(s|t) = 1/2 ||p_t - f(Wl_s p_s + bl_s)||^2 (Eq. 9).

    Args:
        transformed: f(Wl p + bl) of one side, shape (B, n).
        other: phrase vectors of the other side, shape (B, n).

    Returns:
        shape (B,).
    """
    return 0.5 * (other - transformed).square().sum(1)


@dataclass(frozen=True)
class MaxMargin(CoTrainingObjective):
    """Max-semantic-margin loss against random words, as `--loss max-margin`.

    Attributes:
        margin: margin by which E_sem of the partner must be smaller.
        corruption: distribution of the random words of the corrupted phrases: `frequency`, that of the running words,
            or `uniform`, over the vocabulary.

    Raises:
        ValueError: the margin is negative, or the distribution is unknown.
    """

    margin: float = option(1.0, "Margin between true and corrupted partner.", ge=0)
    corruption: str = option("frequency", "Draw random words by frequency or uniform.", choices=CORRUPTIONS)

    name: ClassVar[str] = "max-margin"
    summary: ClassVar[str] = "be nearer to the partner than to a corrupted partner (BRAE's)"
    # Section 4.1 of the paper, and updates for each pair (Eq. 14 to 16), but for pretrain_iterations and patience.
    defaults: ClassVar[Mapping[str, Any]] = {
        "alpha": 0.15, "learning_rate": 0.01, "schedule": "constant", "batch_size": 1, "optimizer": "sgd",
        "lambda_words": 1e-2, "lambda_rec": 1e-3, "lambda_sem": 1e-3, "pretrain_iterations": 5, "start": "normal",
        "patience": 5,
    }  # fmt: skip
    needs_corrupted: ClassVar[bool] = True

    @property
    def corrupts_by_frequency(self) -> bool:
        """Whether replaced words are drawn by frequency."""
        return self.corruption == "frequency"

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return E*_sem(s|t) = max(0, E_sem(s|t) - E_sem(s|t') + margin) (Eq. 12); see `CoTrainingObjective`."""
        assert frozen.corrupted is not None
        right, wrong = semantic_error(predicted, frozen.positive), semantic_error(predicted, frozen.corrupted)
        return (right - wrong + self.margin).relu()


# exp(-2 / temperature), the smallest possible term, must not vanish in single precision.
_LOWEST_TEMPERATURE = 0.03


@dataclass(frozen=True)
class InBatch(JointObjective):
    """Cross-entropy over the phrases of a batch, as `--loss in-batch`.

    Attributes:
        temperature: divisor of the cosines.
        smoothing: label smoothing.
        correction: factor of log q; 1 for the optimum log p(t|s), 0 for pointwise mutual information.

    Raises:
        ValueError: an option is out of range.
    """

    temperature: float = option(0.05, "Divisor of the cosines; at least 0.03.", ge=_LOWEST_TEMPERATURE)
    smoothing: float = option(0.25, "Share of the target spread over the batch.", ge=0, le=1)
    correction: float = option(1.0, "Strength of the frequency correction.", ge=0, le=1)

    name: ClassVar[str] = "in-batch"
    summary: ClassVar[str] = (
        "distinguish the true partner from the other phrases of the batch, whatever their frequency"
    )
    # Chosen on the development sets of the pruning study.
    defaults: ClassVar[Mapping[str, Any]] = {"count_exponent": 0.7}

    def batch_losses(self, predicted: Tensor, other: Tensor, log_shares: tuple[Tensor, Tensor]) -> Tensor:
        """Return the cross-entropies of choosing the partner, in both directions; see `JointObjective`."""
        from phrasetool.nn.losses import cosines, in_batch_cross_entropy

        rows, columns = (self.correction * values for values in log_shares)
        return in_batch_cross_entropy(cosines(predicted, other), self.temperature, self.smoothing, (rows, columns))


@dataclass(frozen=True)
class Cosine(CoTrainingObjective):
    """1 - cos(p, u), as `--loss cosine` (a baseline of Kumar and Tsvetkov 2019)."""

    name: ClassVar[str] = "cosine"
    summary: ClassVar[str] = "have a high cosine with the partner, and nothing else"
    defaults: ClassVar[Mapping[str, Any]] = DIRECTIONAL_LOSS_DEFAULTS

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return 1 - cos(p, u), from 0 to 2; 1 where a vector is zero.  See `CoTrainingObjective`."""
        return 1 - (unit_vectors(predicted) * unit_vectors(frozen.positive)).sum(1)


@dataclass(frozen=True)
class VonMisesFisher(CoTrainingObjective):
    """Negative log-likelihood of the true vector, as `--loss vmf`.

    The components of a prediction are hyperbolic tangents (except those of the encoder `mean`), so its length is at
    most sqrt(n), while a good fit needs a length of some multiple of n.  It is therefore multiplied by `concentration`
    * sqrt(n): components of root mean square a give k = concentration * a * n.  With 2, that is r = 0.19 at a = 0.1,
    0.62 at a = 0.5 and 0.78 at most.

    Two regularisers keep predictions from becoming overconfident (Kumar and Tsvetkov 2019, section 3.3; 0.02 and 0.1
    there).  With both of them, the loss is

        -log C_n(||p||) + length_weight ||p|| - alignment_weight p.u

    Attributes:
        concentration: concentration per dimension if every component of the prediction is 1 or -1.
        length_weight: weight of the length of the prediction; 0 for none.
        alignment_weight: weight of p.u; 1 for the plain likelihood.

    Raises:
        ValueError: the concentration or the weight of p.u is not positive, or the weight of the length is negative.
    """

    concentration: float = option(2.0, "Concentration, per dimension, of the surest prediction there can be.", gt=0)
    length_weight: float = option(0.0, "Weight of the length of the prediction, a regulariser.", ge=0)
    alignment_weight: float = option(1.0, "Weight of the product with the partner; less than 1 regularises.", gt=0)

    name: ClassVar[str] = "vmf"
    summary: ClassVar[str] = "likelihood of the partner under a von Mises-Fisher distribution"
    defaults: ClassVar[Mapping[str, Any]] = DIRECTIONAL_LOSS_DEFAULTS
    # A density can be above one.
    bounded: ClassVar[bool] = False

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Return the regularised losses, below zero where the density is above one; see `CoTrainingObjective`."""
        from phrasetool.nn.losses import log_vmf_normaliser

        n = predicted.shape[1]
        scaled = predicted * (self.concentration * math.sqrt(n))
        lengths = scaled.norm(dim=1)
        along = (scaled * unit_vectors(frozen.positive)).sum(1)
        losses: Tensor = self.length_weight * lengths - log_vmf_normaliser(lengths, n) - self.alignment_weight * along
        return losses


# Name on the command line -> `module:class` of an `Objective`.
OBJECTIVES = {
    "in-batch": "phrasetool.phrase_encoder.losses:InBatch",
    "max-margin": "phrasetool.phrase_encoder.losses:MaxMargin",
    "sampled": "phrasetool.phrase_encoder.losses:Sampled",
    "most-informative": "phrasetool.phrase_encoder.losses:MostInformative",
    "syn-projection": "phrasetool.phrase_encoder.losses:SynProjection",
    "syn-difference": "phrasetool.phrase_encoder.losses:SynDifference",
    "cosine": "phrasetool.phrase_encoder.losses:Cosine",
    "vmf": "phrasetool.phrase_encoder.losses:VonMisesFisher",
}


def objective(name: str, options: Mapping[str, Any] | None = None) -> Objective:
    """Return a registered objective.

    Args:
        name: one of `OBJECTIVES`.
        options: values of some of its options.

    Raises:
        ValueError: an unknown name or option, or a value out of range.
    """
    return cast(Objective, with_options(registered(OBJECTIVES, name, "loss"), name, options or {}))
