"""Dropout that a seed fixes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SeededDropout(nn.Module):
    """Dropout that draws from a generator of its own, so that modules trained by several threads are deterministic.

    Args:
        rate: share of the components that become zero; the others grow by 1 / (1 - rate).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Draw the same again from here on whenever the seed is the same."""
        self._seed = seed
        self._generator: torch.Generator | None = None

    def forward(self, values: Tensor) -> Tensor:
        """The values with some dropped, while training; the same shape."""
        if not self.training or not self.rate:
            return values
        if self._generator is None or self._generator.device != values.device:
            self._generator = torch.Generator(values.device).manual_seed(self._seed)
        drawn = torch.rand(values.shape, generator=self._generator, device=values.device)
        return values * (drawn >= self.rate).to(values.dtype).mul_(1 / (1 - self.rate))
