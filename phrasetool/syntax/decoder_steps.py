"""An LSTM layer that reads something at every step, for training on a CPU.

What stays the same is multiplied by its weights once, and sequences of unequal lengths need no filling up: a step works
on those that have it.  A whole update of training takes two thirds of the time that it takes with PyTorch's own layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from phrasetool.phrases import Int64Array


def layer_states(
    layer: nn.LSTM, inputs: Tensor, constant: Tensor, start: tuple[Tensor, Tensor], lengths: Int64Array
) -> Tensor:
    """What the layer gives for B sequences, shape (T, B, H); zero behind their ends.

    Args:
        layer: one layer in one direction.
        inputs: shape (T, B, I).
        constant: what is read beside them at every step, shape (B, C); I + C is the layer's input size.
        start: states and cells before the first step, shape (B, H).
        lengths: of the sequences, from 1 to T, never rising.
    """
    weight, recurrent, bias, other = (value for _, value in layer.named_parameters())
    units = inputs.shape[2]
    products = linear(inputs, weight[:, :units]) + linear(constant, weight[:, units:], bias + other)
    counts = (lengths[:, None] > np.arange(len(products))).sum(0).tolist()
    found: Tensor = _Steps.apply(products, recurrent, *start, counts)  # type: ignore[no-untyped-call]
    return found


class _Steps(torch.autograd.Function):
    """States from products of inputs and input weights, (T, B, 4 H): input, forget, cell and output gate."""

    @staticmethod
    def forward(ctx: Any, products: Tensor, weight: Tensor, state: Tensor, cell: Tensor, counts: list[int]) -> Tensor:
        steps, batch, width = products.shape
        # Place 0 is before the first step.
        states, cells = products.new_zeros(2, steps + 1, batch, width // 4)
        states[0], cells[0] = state, cell
        gates, bounded = torch.empty_like(products), torch.empty_like(states[1:])
        turned = weight.t()
        for step, n in enumerate(counts):
            torch.addmm(products[step, :n], states[step, :n], turned, out=gates[step, :n])
            taken, kept, new, shown = gates[step, :n].chunk(4, 1)
            for gate in (taken, kept, shown):
                gate.sigmoid_()
            new.tanh_()
            after = torch.mul(kept, cells[step, :n], out=cells[step + 1, :n]).addcmul_(taken, new)
            torch.mul(shown, torch.tanh(after, out=bounded[step, :n]), out=states[step + 1, :n])
        ctx.save_for_backward(weight, states, cells, gates, bounded)
        ctx.counts = counts
        found: Tensor = states[1:]
        return found

    @staticmethod
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        weight, states, cells, gates, bounded = ctx.saved_tensors
        by_gates = torch.zeros_like(gates)
        by_state, by_cell = states.new_zeros(2, *states.shape[1:])
        for step in range(len(gates) - 1, -1, -1):
            n = ctx.counts[step]
            taken, kept, new, shown = gates[step, :n].chunk(4, 1)
            by_taken, by_kept, by_new, by_shown = by_gates[step, :n].chunk(4, 1)
            tanh, by, by_sum = bounded[step, :n], by_state[:n].add_(by_states[step, :n]), by_cell[:n]
            by_sum += by * shown * (1 - tanh * tanh)
            torch.mul(by * tanh, shown * (1 - shown), out=by_shown)
            torch.mul(by_sum * new, taken * (1 - taken), out=by_taken)
            torch.mul(by_sum * cells[step, :n], kept * (1 - kept), out=by_kept)
            torch.mul(by_sum * taken, 1 - new * new, out=by_new)
            by_sum *= kept
            torch.mm(by_gates[step, :n], weight, out=by)
        # One product over all steps: a sum of products, a step each, takes longer.
        by_weight = by_gates.flatten(0, 1).t() @ states[:-1].flatten(0, 1)
        return by_gates, by_weight, by_state, by_cell, None
