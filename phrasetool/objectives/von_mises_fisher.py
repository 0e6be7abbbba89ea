"""The von Mises-Fisher negative log-likelihood (Kumar and Tsvetkov 2019; Bhat et al. 2020, section 2).

    L = -log C_n(||p||) - p.u,     C_n(k) = k^(n/2 - 1) / ((2 pi)^(n/2) I_{n/2-1}(k))

with p the prediction, at its length, and u the true vector at length one.  The direction of p is where u is expected,
its length how surely.  Its minimum for vectors u whose mean has the length r is at I_{n/2}(k) / I_{n/2-1}(k) = r, where
k is about n r / (1 - r^2) (Sra 2012): 5 n for r = 0.9, so k must grow with n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.margin import unit_vectors
from phrasetool.objectives.objective import SPREAD, CoTrainingObjective
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch


@dataclass(frozen=True)
class VonMisesFisher(CoTrainingObjective):
    """Negative log-likelihood of the true vector, as `--loss vmf`.

    A prediction is made of hyperbolic tangents, so its length is at most sqrt(n), while a good fit needs a length of
    some multiple of n.  It is therefore multiplied by `concentration` * sqrt(n): components of root mean square a give
    k = concentration * a * n.  With 2, that is r = 0.19 at a = 0.1, 0.62 at a = 0.5 and 0.78 at most.

    Two regularisers keep predictions from becoming surer than they are right (Kumar and Tsvetkov 2019, section 3.3;
    0.02 and 0.1 there), with both of which the loss is

        -log C_n(||p||) + length_weight ||p|| - alignment_weight p.u

    Attributes:
        concentration: of the distribution, per dimension, where every component of the prediction is 1 or -1.
        length_weight: of the length of the prediction, 0 for none.
        alignment_weight: of p.u, 1 for the likelihood as it is.

    Raises:
        ValueError: the concentration or the weight of p.u is not positive, or the weight of the length is negative.
    """

    concentration: float = option(2.0, "Concentration, per dimension, of the surest prediction there can be.", gt=0)
    length_weight: float = option(0.0, "Weight of the length of the prediction, a regulariser.", ge=0)
    alignment_weight: float = option(1.0, "Weight of the product with the partner; less than 1 regularises.", gt=0)

    name: ClassVar[str] = "vmf"
    summary: ClassVar[str] = "likelihood of the partner under a von Mises-Fisher distribution"
    defaults: ClassVar[Mapping[str, Any]] = SPREAD
    # A density can be above one.
    bounded: ClassVar[bool] = False

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """-log C_n(||p||) - p.u, below zero where the density is above one; see `CoTrainingObjective`."""
        from phrasetool.objectives.vmf_normaliser import log_vmf_normaliser

        n = predicted.shape[1]
        scaled = predicted * (self.concentration * math.sqrt(n))
        lengths = scaled.norm(dim=1)
        along = (scaled * unit_vectors(frozen.positive)).sum(1)
        losses: Tensor = self.length_weight * lengths - log_vmf_normaliser(lengths, n) - self.alignment_weight * along
        return losses
