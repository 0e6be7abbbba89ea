"""The decoders of a translator without their attention: all steps at once to train, one after another to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from phrasetool.nn.decoders import AttentionDecoder, DecoderState
from phrasetool.nn.layers import AttentionBlock, SeededDropout
from phrasetool.nn.positions import LONGEST, positions
from phrasetool.phrases import FloatArray

_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


@dataclass
class CoreState:
    """What a decoder keeps of the words written so far, for B sentences.

    Attributes:
        done: steps done.
        parts: tensors whose first dimension is B.
    """

    done: int
    parts: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> CoreState:
        """The state of some of the sentences, each perhaps several times; rows int64, shape (K,)."""
        return CoreState(self.done, tuple(part.index_select(0, rows) for part in self.parts))


class DecoderCore(Protocol):
    """From the words before to hidden vectors that attention has not touched yet."""

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """Hidden vectors of all steps, shape (B, L, m).

        Args:
            inputs: vectors of the words before, shape (B, L, w).
            start: the last states of the encoder, shape (B, s); s = 0 for self-attention.
        """

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """The state before the first of at most so many steps."""

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """Hidden vectors of the next step, shape (B, m), from inputs of shape (B, w); the state moves on."""


class RecurrentCore(nn.Module):
    """Layers of LSTMs or GRUs, each of which starts from the last states of the encoder.

    Args:
        cell: `lstm` or `gru`.
        inputs: size of what is read at a step.
        units: m.
        layers: how many.
    """

    def __init__(self, cell: str, inputs: int, units: int, layers: int) -> None:
        super().__init__()
        self.cells = _CELLS[cell](inputs, units, layers, batch_first=True)
        self.number = layers
        self.has_cell = cell == "lstm"

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """See `DecoderCore`."""
        return self.cells(inputs, self._first(start))[0]  # type: ignore[no-any-return]

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """See `DecoderCore`."""
        return CoreState(0, tuple(part.transpose(0, 1) for part in self._parts(self._first(start))))

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """See `DecoderCore`."""
        before = tuple(part.transpose(0, 1).contiguous() for part in state.parts)
        hidden, after = self.cells(inputs[:, None], before if self.has_cell else before[0])
        state.parts = tuple(part.transpose(0, 1) for part in self._parts(after))
        state.done += 1
        return hidden[:, 0]  # type: ignore[no-any-return]

    def _first(self, start: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The same output (and cell) for each layer, as torch takes them."""
        parts = tuple(part.expand(self.number, -1, -1).contiguous() for part in start.chunk(1 + self.has_cell, 1))
        return (parts[0], parts[1]) if self.has_cell else parts[0]

    @staticmethod
    def _parts(state: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return state if isinstance(state, tuple) else (state,)


class AttentionCore(nn.Module):
    """Masked self-attention and feed-forward over words with their positions.

    Args:
        arrays: initial values, see `AttentionBlock`.
        heads: h.
        dropout: of what its layers give.
        word_units: w.
    """

    positions: Tensor

    def __init__(self, arrays: dict[str, FloatArray], heads: int, dropout: SeededDropout, word_units: int) -> None:
        super().__init__()
        self.block = AttentionDecoder(arrays, heads, dropout, causal=True)
        places = torch.from_numpy(positions(LONGEST + 1, word_units))
        self.register_buffer("positions", places, persistent=False)

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """See `DecoderCore`; there is no start state."""
        count, length, w = inputs.shape
        placed = inputs + self.positions[:length]
        return self.block.all_steps(placed.view(-1, w), start, [(count, length)]).view(count, length, -1)

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """See `DecoderCore`."""
        state = self.block.begin(start, steps)
        return CoreState(0, (state.first, state.second))

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """See `DecoderCore`."""
        inner = DecoderState(state.done, *state.parts)
        hidden = self.block.step(inner, inputs + self.positions[state.done])
        state.done = inner.done
        return hidden


class RecurrentEncoder(nn.Module):
    """One layer that reads in both directions.

    Args:
        cell: `lstm` or `gru`.
        word_units: w.
        units: m, of both directions together.
    """

    def __init__(self, cell: str, word_units: int, units: int) -> None:
        super().__init__()
        self.cells = _CELLS[cell](word_units, units // 2, batch_first=True, bidirectional=True)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """States (B, S, m) and the last states (B, m), or with cells (B, 2 m), of words (B, S, w)."""
        states, last = self.cells(words)
        parts = last if isinstance(last, tuple) else (last,)
        return states, torch.cat([torch.cat([*part], 1) for part in parts], 1)


class AttentionEncoder(nn.Module):
    """A block of self-attention over words with their positions; takes the arguments of `AttentionCore`."""

    positions: Tensor

    def __init__(self, arrays: dict[str, FloatArray], heads: int, dropout: SeededDropout, word_units: int) -> None:
        super().__init__()
        self.block = AttentionBlock(arrays, heads, dropout)
        places = torch.from_numpy(positions(LONGEST, word_units))
        self.register_buffer("positions", places, persistent=False)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """States (B, S, m) of words (B, S, w); the last states are none, (B, 0)."""
        count, length, w = words.shape
        placed = words + self.positions[:length]
        return self.block(placed.view(-1, w), [(count, length)]).view(count, length, -1), words.new_zeros(count, 0)
