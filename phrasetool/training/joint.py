"""Joint training: both languages are updated together, in ordinary epochs, on vectors of one batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from phrasetool.objectives.objective import JointObjective
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.training.settings import TrainingSettings
from phrasetool.training.sides import Sides, parts


class JointTraining:
    """Iterations with an objective that sends gradients into both languages.

    Args:
        sides: both languages.
        settings: of training.
        objective: what to minimise.
    """

    def __init__(self, sides: Sides, settings: TrainingSettings, objective: JointObjective) -> None:
        self._sides = sides
        self._alpha = settings.alpha
        self._objective = objective

    def try_out(self, batch: Int64Array) -> None:
        """Compute the gradients of a batch, for both languages in turn, and forget them."""
        for side in self._sides:
            vectors, errors = side.forward(batch, side.phrases.select(batch))
            shares = side.log_shares[side.rows(batch)]
            losses = self._objective.batch_losses(side.module.transformed(vectors), vectors, (shares, shares))
            (losses.mean() + errors.mean()).backward()  # type: ignore[no-untyped-call]
            side.optimizer.zero_grad()

    def errors(self, batch: Int64Array) -> tuple[float, float]:
        """E_rec and semantic error of a batch under the current parameters, means, both sides added."""
        encoded = [side.measured(batch) for side in self._sides]
        weights, shares = self._of(batch)
        losses = 0.0
        with torch.no_grad():
            for which, side in enumerate(self._sides):
                predicted = side.module.transformed(encoded[which][0])
                own_and_other = shares[which], shares[1 - which]
                found = self._objective.batch_losses(predicted, encoded[1 - which][0], own_and_other)
                losses += float((weights * found).mean())
        return sum(float((weights * errors).mean()) for _, errors in encoded), losses

    def _of(self, batch: Int64Array) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Weights of the pairs of a batch, and log shares of their phrases, source first; shape (B,) each."""
        source, target = self._sides
        rows = source.rows(batch)
        return self._sides.weights[rows], (source.log_shares[rows], target.log_shares[rows])

    def iteration(
        self, rng: np.random.Generator, side_rngs: tuple[np.random.Generator, ...], tick: Callable[[int], None]
    ) -> tuple[float, float]:
        """Update both languages on all pairs.

        Args:
            rng: draws the batches.
            side_rngs: what one language draws on its own.
            tick: called with the number of pairs just seen.

        Returns:
            E_rec and semantic error, means over the pairs as they were met, both sides added.
        """
        inputs = [side.with_unknowns(rng) for side in self._sides]
        batches = self._sides.batches(rng)
        for side, side_rng in zip(self._sides, side_rngs, strict=True):
            side.begin(side_rng)
        reconstruction = semantic = 0.0
        for (batch, sources), (_, targets) in zip(*(parts(i, batches) for i in inputs), strict=True):
            r, e = self._step(batch, (sources, targets))
            reconstruction += r
            semantic += e
            tick(len(batch))
        pairs = len(self._sides[0].phrases)
        return reconstruction / pairs, semantic / pairs

    def _step(self, batch: Int64Array, phrases: tuple[Phrases, Phrases]) -> tuple[float, float]:
        """Update both sides on one batch; the sums of E_rec and of the losses over it.

        The graph is cut at the phrase vectors, so that encoding, the two directions of the objective, and the way back
        through the encoders each run for both languages at the same time.
        """
        sides = self._sides
        weights, shares = self._of(batch)
        encoded = sides.both(lambda which: sides[which].forward(batch, phrases[which]))

        def objective(which: int) -> tuple[float, Tensor, Tensor]:
            own = encoded[which][0].detach().requires_grad_()
            other = encoded[1 - which][0].detach().requires_grad_()
            sides[which].optimizer.zero_grad()
            predicted = sides[which].module.transformed(own)
            losses = weights * self._objective.batch_losses(predicted, other, (shares[which], shares[1 - which]))
            ((1 - self._alpha) * losses.mean()).backward()  # type: ignore[no-untyped-call]
            assert own.grad is not None
            assert other.grad is not None
            return float(losses.detach().sum()), own.grad, other.grad

        results = sides.both(objective)

        def back(which: int) -> None:
            vectors, errors = encoded[which]
            gradients = (results[which][1] + results[1 - which][2], weights * (self._alpha / len(errors)))
            # Frozen encoders send no gradient further, and some encoders have no reconstruction errors.
            roots = [pair for pair in zip((vectors, errors), gradients, strict=True) if pair[0].requires_grad]
            torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])
            sides[which].optimizer.step()

        sides.both(back)
        rec = float((weights * (encoded[0][1].detach() + encoded[1][1].detach())).sum())
        return rec, results[0][0] + results[1][0]
