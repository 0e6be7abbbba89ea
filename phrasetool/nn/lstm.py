"""LSTMs on a CPU (Hochreiter & Schmidhuber 1997): single steps, and packed sequences of unequal lengths.

PyTorch's own layer rearranges its weights for every call, and for packed sequences adds up the gradients of weights
step by step.  Here the products of inputs and weights are computed once for all steps where inputs are known, and so
are the gradients of weights, which takes less time.

Packed sequences are laid out as in `torch.nn.utils.rnn`: the first items of all sequences, the longest sequence first,
then the second items of those that have one, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import PackedSequence

from phrasetool.phrases import Int64Array

# Maps inputs (B, I), weights (O, I) and bias (O,) or None to (B, O), like `torch.nn.functional.linear`.
Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class StepProducts:
    """Products of one forward pass of a recurrent network, step by step; the gradient of a weight is a single product.

    PyTorch adds a gradient as large as the weights for every step.  Here each step keeps its inputs and the gradient of
    its outputs, and the first step, which is the last of the backward pass, multiplies those of all steps.

    The outputs of each step must depend on those of the previous step through every weight, as in a recurrent network.
    """

    def __init__(self) -> None:
        self._steps: dict[int, _StepsOfWeight] = {}

    def __call__(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return inputs, shape (B, I), times weights, shape (O, I), plus bias, shape (O,), if any."""
        device = inputs.device.type
        known = self._steps.get(id(weight))
        is_first = known is None
        if known is None:
            if torch.is_autocast_enabled(device):
                precision = torch.get_autocast_dtype(device)
                known = _StepsOfWeight(weight.to(precision), None if bias is None else bias.to(precision), [])
            else:
                known = _StepsOfWeight(weight, bias, [])
            self._steps[id(weight)] = known
        product: Tensor = _StepProduct.apply(  # type: ignore[no-untyped-call]
            inputs.to(known.weight.dtype), known.weight, known.bias, known.gradients, is_first
        )
        return product


@dataclass(frozen=True)
class _StepsOfWeight:
    """A weight and its bias in the precision of products; inputs and output gradients of the backward steps so far."""

    weight: Tensor
    bias: Tensor | None
    gradients: list[tuple[Tensor, Tensor]]


class _StepProduct(torch.autograd.Function):
    """Product of one step; its backward pass keeps inputs and gradients, or for the first step multiplies them all."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, gradients: list[tuple[Tensor, Tensor]],
        is_first: bool,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(inputs, weight)
        ctx.gradients, ctx.is_first, ctx.has_bias = gradients, is_first, bias is not None
        return linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, by_outputs: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        ctx.gradients.append((inputs, by_outputs))
        by_weight = by_bias = None
        if ctx.is_first:
            of_inputs, of_outputs = (torch.cat(parts) for parts in zip(*ctx.gradients, strict=True))
            ctx.gradients.clear()
            by_weight = of_outputs.t() @ of_inputs
            by_bias = of_outputs.sum(0) if ctx.has_bias else None
        return by_outputs @ weight, by_weight, by_bias, None, None


def lstm_step(
    lstm: nn.LSTM, inputs: Tensor, states: Sequence[Tensor], cells: Sequence[Tensor], product: Product = linear
) -> list[tuple[Tensor, Tensor]]:
    """Return state and cell of each layer after one step, as `nn.LSTM` does for sequences of length 1.

    Args:
        lstm: layers of one direction.
        inputs: shape (B, I).
        states, cells: states and cells of each layer before the step, shape (B, H).
        product: multiplies inputs and weights, such as a `StepProducts` of all steps.
    """
    after = []
    for layer, (state, cell) in enumerate(zip(states, cells, strict=True)):
        weight, recurrent, bias, recurrent_bias = _weights(lstm, f"_l{layer}")
        # With bfloat16 products, cells are still summed in single precision.
        gates = (product(inputs, weight, bias) + product(state, recurrent, recurrent_bias)).float()
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, 1)
        new_cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
        inputs = output_gate.sigmoid() * new_cell.tanh()
        after.append((inputs, new_cell))
    return after


def packing(counts: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Pack N sentences: the first words of all sentences, then the second words of those that have one, and so on.

    Args:
        counts: number of words of each sentence, shape (N,), all at least 1.

    Returns:
        The order of the sentences, the longest first, shape (N,); the number of sentences with a first word, a second
        word and so on; and the position of each packed word in the texts, shape (T,).
    """
    order = np.argsort(-counts, kind="stable")
    sizes = (counts[order][None] > np.arange(counts.max())[:, None]).sum(1)
    starts = (np.cumsum(counts) - counts)[order]
    rows = np.concatenate([starts[:size] + step for step, size in enumerate(sizes.tolist())])
    return order, sizes.astype(np.int64), rows.astype(np.int64)


def packed_states(lstm: nn.LSTM, inputs: Tensor, sizes: Int64Array) -> Tensor:
    """Return the states of the last layer, packed, as `nn.LSTM` does for a `PackedSequence`.

    PyTorch computes them if no gradients are needed, and on devices other than the CPU.

    Args:
        lstm: L layers of one direction or two (D = 1 or 2), without dropout; states and cells start at zero.
        inputs: packed, shape (T, I).
        sizes: see `packing`; their sum is T.

    Returns:
        Shape (T, D H); with two directions, the states of the forward direction come first.
    """
    if inputs.device.type != "cpu" or not torch.is_grad_enabled():
        packed: Tensor = lstm(PackedSequence(inputs, torch.from_numpy(sizes)))[0].data
        return packed
    back = torch.from_numpy(_reversed_places(sizes))
    counts = sizes.tolist()
    for layer in range(lstm.num_layers):
        states = _direction(lstm, inputs, counts, f"_l{layer}")
        if lstm.bidirectional:
            backward_states = _direction(lstm, inputs.index_select(0, back), counts, f"_l{layer}_reverse")
            states = torch.cat([states, backward_states.index_select(0, back)], 1)
        inputs = states
    return inputs


def states_of_products(
    products: Tensor, recurrent: Tensor, state: Tensor, cell: Tensor, counts: Sequence[int]
) -> Tensor:
    """Return the states of one layer in one direction, packed, shape (T, H).

    Args:
        products: products of inputs and their weights, plus biases, packed, shape (T, 4 H): input gate, forget gate,
            candidate, output gate.
        recurrent: weights of states, shape (4 H, H).
        state, cell: state and cell before the first step, shape (B, H).
        counts: number of sequences with a first item, a second item and so on, descending, all above 0.
    """
    states: Tensor = _Steps.apply(products.float(), recurrent, state, cell, counts)  # type: ignore[no-untyped-call]
    return states


def _weights(lstm: nn.LSTM, end: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weight, recurrent, bias, recurrent_bias = (
        getattr(lstm, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    return weight, recurrent, bias, recurrent_bias


def _direction(lstm: nn.LSTM, inputs: Tensor, counts: Sequence[int], end: str) -> Tensor:
    weight, recurrent, bias, recurrent_bias = _weights(lstm, end)
    state, cell = inputs.new_zeros(2, counts[0], lstm.hidden_size)
    return states_of_products(linear(inputs, weight, bias + recurrent_bias), recurrent, state, cell, counts)


def _reversed_places(sizes: Int64Array) -> Int64Array:
    """Return the position of the item that replaces each item when every sequence is reversed, shape (T,)."""
    starts = np.cumsum(sizes) - sizes
    steps = np.repeat(np.arange(len(sizes)), sizes)
    sequences = np.arange(sizes.sum()) - starts[steps]
    lengths = np.bincount(sequences)
    positions: Int64Array = starts[lengths[sequences] - 1 - steps] + sequences
    return positions


class _Steps(torch.autograd.Function):
    """All steps of one layer in one direction, from packed products to packed states."""

    @staticmethod
    def forward(
        ctx: Any, products: Tensor, recurrent: Tensor, state: Tensor, cell: Tensor, counts: Sequence[int]
    ) -> Tensor:
        before, cells = products.new_empty(2, len(products), recurrent.shape[1])
        gates, bounded, states = torch.empty_like(products), torch.empty_like(cells), torch.empty_like(cells)
        weight = recurrent.t()
        for first, end in pairwise(np.cumsum([0, *counts]).tolist()):
            n, now = end - first, slice(first, end)
            before[now], cells[now] = state[:n], cell[:n]
            here = torch.addmm(products[now], before[now], weight, out=gates[now])
            input_gate, forget_gate, candidate, output_gate = here.chunk(4, 1)
            for gate in (input_gate, forget_gate, output_gate):
                gate.sigmoid_()
            candidate.tanh_()
            cell = forget_gate * cells[now]
            cell.addcmul_(input_gate, candidate)
            state = torch.mul(output_gate, torch.tanh(cell, out=bounded[now]), out=states[now])
        ctx.save_for_backward(recurrent, before, cells, gates, bounded)
        ctx.counts = counts
        return states

    @staticmethod
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, before, cells, gates, bounded = ctx.saved_tensors
        by_gates = torch.empty_like(gates)
        # Gradients of the sequences that have the current step; shorter ones join when their last step is reached.
        by_state, by_cell = before.new_zeros(2, ctx.counts[0], before.shape[1])
        end = len(gates)
        for n in reversed(ctx.counts):
            now = slice(end - n, end)
            input_gate, forget_gate, candidate, output_gate = gates[now].chunk(4, 1)
            by_input, by_forget, by_candidate, by_output = by_gates[now].chunk(4, 1)
            tanh, by, by_sum = bounded[now], by_state[:n].add_(by_states[now]), by_cell[:n]
            by_sum += by * output_gate * (1 - tanh * tanh)
            torch.mul(by * tanh, output_gate * (1 - output_gate), out=by_output)
            torch.mul(by_sum * candidate, input_gate * (1 - input_gate), out=by_input)
            torch.mul(by_sum * cells[now], forget_gate * (1 - forget_gate), out=by_forget)
            torch.mul(by_sum * input_gate, 1 - candidate * candidate, out=by_candidate)
            by_sum *= forget_gate
            torch.mm(by_gates[now], recurrent, out=by)
            end -= n
        # One product over all steps is faster than a sum of the products of each step.
        return by_gates, by_gates.t() @ before, by_state, by_cell, None
