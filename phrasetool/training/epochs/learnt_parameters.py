"""What a network learns with: its parameters, the best of them so far, and the state of their optimisers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Optimizer

from phrasetool.training.resumable import optimizer_tensors, restore_optimizer

_BEST = "best."
# What the tensors of the one optimiser that most trainers have begin with in a checkpoint.
ADAM = "optimizer."


class LearntParameters:
    """Parameters that learn.

    Args:
        parameters: by name; optimisers change them in place.
        optimizers: by what their tensors in a checkpoint begin with; the first step size of each group is its full one.

    Attributes:
        optimizers: as given.
    """

    def __init__(self, parameters: Mapping[str, Tensor], optimizers: Mapping[str, Optimizer]) -> None:
        self._parameters, self.optimizers = dict(parameters), dict(optimizers)
        self._full = {name: [group["lr"] for group in one.param_groups] for name, one in self.optimizers.items()}
        self._best: dict[str, Tensor] = {}

    def scale_rates(self, share: float) -> None:
        """Go on with so much of the full step sizes."""
        for name, optimizer in self.optimizers.items():
            for group, full in zip(optimizer.param_groups, self._full[name], strict=True):
                group["lr"] = full * share

    def step(self, loss: Tensor, clip: float | None = None) -> None:
        """One step down the gradient of a loss.

        Args:
            loss: a scalar.
            clip: the greatest norm of all gradients together, but for sparse ones, which stay as they are.
        """
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if clip is not None:
            dense = [one for one in self._parameters.values() if one.grad is not None and not one.grad.is_sparse]
            torch.nn.utils.clip_grad_norm_(dense, clip)
        for optimizer in self.optimizers.values():
            optimizer.step()

    def keep(self) -> None:
        """Remember the parameters as the best so far."""
        self._best = {name: value.detach().clone() for name, value in self._parameters.items()}

    def take_best(self) -> None:
        """Give the parameters their best values; without `keep`, they stay as they are."""
        self._load(self._best)

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps, on the CPU."""
        found = {name: value.detach() for name, value in self._parameters.items()}
        found.update({_BEST + name: value for name, value in self._best.items()})
        for prefix, optimizer in self.optimizers.items():
            found.update(optimizer_tensors(optimizer, prefix))
        return {name: value.cpu().contiguous() for name, value in found.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take what `tensors` gave.

        Raises:
            KeyError, RuntimeError, ValueError: they are of other parameters.
        """
        self._load({name: tensors[name] for name in self._parameters})
        for prefix, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, tensors, prefix)
        if any(name.startswith(_BEST) for name in tensors):
            self._best = {name: tensors[_BEST + name].to(value.device) for name, value in self._parameters.items()}

    @torch.no_grad()
    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in tensors.items():
            self._parameters[name].copy_(value)
