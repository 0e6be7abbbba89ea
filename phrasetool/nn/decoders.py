"""Decoders of text autoencoders: all steps at once for training, step by step to generate a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.nn.layers import AttentionBlock, joined_groups, split_groups
from phrasetool.nn.lstm import lstm_step


@dataclass
class DecoderState:
    """State of a decoder after the words generated so far, for B texts.

    Attributes:
        steps: number of steps so far.
        first, second: keys and values of self-attention, shape (B, h, maximum steps, m / h); or output and cell of an
            LSTM, shape (B, m).
    """

    steps: int
    first: Tensor
    second: Tensor


class Decoder(Protocol):
    """Decoder from the previous words (and, for an LSTM, an initial state) to hidden vectors, before any gate."""

    def all_steps(self, inputs: Tensor, start: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Return the hidden vectors of all steps, shape (T, m).

        Args:
            inputs: vectors of the previous words, shape (T, w), grouped.
            start: initial state, shape (B, 2 m) or (B, 0).
            groups: (number of texts, steps of each).
        """

    def begin(self, start: Tensor, steps: int) -> DecoderState:
        """Return the state before the first step, with room for this number of steps."""

    def step(self, state: DecoderState, inputs: Tensor) -> Tensor:
        """Return the hidden vectors of the next step, shape (B, m), for inputs of shape (B, w); update the state."""


class AttentionDecoder(AttentionBlock):
    """Masked self-attention and feed-forward (Eq. 15-18); takes `AttentionBlock`'s arguments."""

    def all_steps(self, inputs: Tensor, start: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Return the hidden states of all steps; the initial state is not used."""
        return self(inputs, groups)  # type: ignore[no-any-return]

    def begin(self, start: Tensor, steps: int) -> DecoderState:
        """Return the state before the first step."""
        hidden, heads = len(self.widen.T), self.attention.heads
        empty = start.new_empty(2, len(start), heads, steps, hidden // heads)
        return DecoderState(0, empty[0], empty[1])

    def step(self, state: DecoderState, inputs: Tensor) -> Tensor:
        """Return the hidden states of the next step, with the stored keys and values of earlier words."""
        query, state.first[:, :, state.steps], state.second[:, :, state.steps] = self.attention.project(inputs).unbind(
            1
        )
        state.steps += 1
        keys, values = state.first[:, :, : state.steps], state.second[:, :, : state.steps]
        attended = functional.scaled_dot_product_attention(query[:, :, None], keys, values)
        return self.after_attention(attended.flatten(1))


class LstmDecoder(nn.LSTM):
    """An LSTM that starts from the last states of the encoder.

    Args:
        word_units: w.
        hidden: m.
    """

    def __init__(self, word_units: int, hidden: int) -> None:
        super().__init__(word_units, hidden, batch_first=True)

    def all_steps(self, inputs: Tensor, start: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Return the hidden states of all steps."""
        starts = torch.split(start, [count for count, _ in groups])
        parts = zip(split_groups(inputs, groups), starts, strict=True)
        return joined_groups([self(part, _as_state(first))[0] for part, first in parts])

    def begin(self, start: Tensor, steps: int) -> DecoderState:
        """Return the state before the first step."""
        first, second = start.chunk(2, 1)
        return DecoderState(0, first, second)

    def step(self, state: DecoderState, inputs: Tensor) -> Tensor:
        """Return the hidden states of the next step; update the state."""
        if inputs.device.type == "cpu":
            ((state.first, state.second),) = lstm_step(self, inputs, [state.first], [state.second])
            state.steps += 1
            return state.first
        now = _as_state(torch.cat([state.first, state.second], 1))
        hidden, (output, cell) = self(inputs[:, None], now)
        state.first, state.second = output[0], cell[0]
        state.steps += 1
        return hidden[:, 0]  # type: ignore[no-any-return]


def _as_state(start: Tensor) -> tuple[Tensor, Tensor]:
    """Convert output and cell side by side, shape (B, 2 m), to the state of torch's LSTM."""
    output, cell = start.chunk(2, 1)
    return output[None].contiguous(), cell[None].contiguous()


class Gate(nn.Module):
    """Gate z * sigmoid(W_z z + W_f f + b), element by element (Eq. 19, 20).

    Args:
        pooled, hidden: initial matrices W_z and W_f, shape (m, m).
        bias: initial b, shape (m,).
    """

    def __init__(self, pooled: Tensor, hidden: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.pooled, self.hidden, self.bias = nn.Parameter(pooled), nn.Parameter(hidden), nn.Parameter(bias)

    def from_pooled(self, pooled: Tensor) -> Tensor:
        """Return W_z z + b, which is the same at every step, shape (B, m)."""
        return functional.linear(pooled, self.pooled, self.bias)

    def opened(self, pooled: Tensor, from_pooled: Tensor, hidden: Tensor) -> Tensor:
        """Return the gated pooled vectors of one step, shape (B, m), or of several, shape (B, L, m).

        Args:
            pooled: shape (B, m).
            from_pooled: result of the method of that name, shape (B, m).
            hidden: W_f f, shape (B, m) or (B, L, m).
        """
        if hidden.dim() == 3:
            pooled, from_pooled = pooled[:, None], from_pooled[:, None]
        return pooled * torch.sigmoid(from_pooled + hidden)
