"""The autoencoder network (see `settings` for its architectures): texts -> vectors -> texts, trained by cross-entropy.

The encoder reads x_1 .. x_N and the end of the sequence; the decoder reads the beginning of the sequence and
x_1 .. x_N, and predicts w_1 .. w_N and the end.  x_t is the word's vector, shared by both, with the sinusoidal
position t added for self-attention; the vector of the beginning is learnt and has no position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.autoencoder.settings import TextArchitecture
from phrasetool.nn.decoders import AttentionDecoder, Decoder, Gate, LstmDecoder
from phrasetool.nn.layers import (
    POOLINGS,
    AttentionBlock,
    LengthGroups,
    SeededDropout,
    joined_groups,
    layer_norm,
    split_groups,
)
from phrasetool.nn.losses import softmax_cross_entropy
from phrasetool.nn.positions import LONGEST, positions
from phrasetool.phrases import FloatArray, Int64Array, Phrases, prefix_sums


def max_output_lengths(lengths: Int64Array) -> Int64Array:
    """Return the maximum lengths of reconstructions: 1.5 times those of the texts, rounded down, without the end."""
    return lengths * 3 // 2


class Autoencoder(nn.Module):
    """A text autoencoder.

    Args:
        architecture: architecture and dimensions.
        arrays: initial values, see `TextArchitecture.initial`.
        dropout: share of components dropped in training from the inputs of encoder and decoder and from the outputs of
            their layers.
        precision: precision of the products with the output matrix in training; see `softmax_cross_entropy`.
    """

    positions: Tensor

    def __init__(
        self,
        architecture: TextArchitecture,
        arrays: Mapping[str, FloatArray],
        dropout: float = 0.0,
        precision: str = "float32",
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.precision = precision
        self.dropout = SeededDropout(dropout)
        values = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        self.words = nn.Parameter(values["words"])
        self.output, self.output_bias = nn.Parameter(values["output"]), nn.Parameter(values["output_bias"])
        self.end = len(self.output) - 1
        w, m, heads = architecture.word_units, architecture.hidden, architecture.heads
        if architecture.recurrent:
            self.encoder: nn.Module = nn.LSTM(w, m // 2, batch_first=True, bidirectional=True)
            self.decoder: nn.Module = LstmDecoder(w, m)
            for name, value in [*self.encoder.named_parameters("encoder"), *self.decoder.named_parameters("decoder")]:
                value.data = values[name]
        else:
            self.encoder = AttentionBlock(_of(arrays, "encoder"), heads, self.dropout)
            self.decoder = AttentionDecoder(_of(arrays, "decoder"), heads, self.dropout, causal=True)
            encodings = torch.from_numpy(positions(max_output_lengths(np.array([LONGEST]))[0] + 1, w))
            self.register_buffer("positions", encodings, persistent=False)
        self.gates = nn.ModuleDict(
            {
                name: Gate(*(values[f"gates.{name}.{part}"] for part in ("pooled", "hidden", "bias")))
                for name in architecture.pooled
            }
        )
        if architecture.pooled:
            self.gated_gain, self.gated_bias = nn.Parameter(values["gated_gain"]), nn.Parameter(values["gated_bias"])

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the dropout masks of the following calls."""
        self.dropout.seed(seed)

    def numpy(self) -> dict[str, FloatArray]:
        """Return the current parameters by name."""
        values = {name: value.detach().cpu().numpy().copy() for name, value in self.named_parameters()}
        return {name: values[name] for name in self.architecture.shapes(self.end)}

    def encode(self, phrases: Phrases) -> Tensor:
        """Return the vectors of B texts, shape (B, n).

        Raises:
            ValueError: a text has more words than `LONGEST`.
        """
        batch = LengthGroups.from_phrases(phrases, self.words.device)
        return batch.restored(self._encode(batch, functional.embedding(batch.words, self.words)))

    def loss(self, phrases: Phrases) -> tuple[Tensor, int]:
        """Return the sum of the cross-entropies of all words and ends (Eq. 23), and their number.

        Raises:
            ValueError: a text has more words than `LONGEST`.
        """
        batch = LengthGroups.from_phrases(phrases, self.words.device)
        words = functional.embedding(batch.words, self.words)
        vectors = self._encode(batch, words)
        inputs = []
        for part in split_groups(words, batch.groups):
            if not self.architecture.recurrent:
                part = part + self.positions[: part.shape[1]]
            inputs.append(torch.cat([self.words[-1].expand(len(part), 1, -1), part], 1))
        groups = batch.with_one_more()
        pooled, start = self._parts(vectors)
        decoded = self._decoder.all_steps(self.dropout(joined_groups(inputs)), start, groups)
        hidden = self._gated(self._dropped(decoded), pooled, groups)
        padded = [functional.pad(part, (0, 1), value=self.end) for part in split_groups(batch.words, batch.groups)]
        targets = torch.cat([part.flatten() for part in padded])
        loss = softmax_cross_entropy(hidden, self.output, self.output_bias, targets, self.precision)
        return loss, len(targets)

    @torch.no_grad()
    def reconstruct(self, vectors: Tensor, maxima: Int64Array) -> Phrases:
        """Decode B texts from their vectors greedily: the most probable word at every step, until the end.

        Args:
            vectors: result of `encode`, shape (B, n).
            maxima: maximum number of words of each text, shape (B,).
        """
        steps = int(maxima.max(initial=0))
        pooled, start = self._parts(vectors)
        fixed = {name: cast(Gate, self.gates[name]).from_pooled(pooled[name]) for name in pooled}
        state = self._decoder.begin(start, steps)
        limits = torch.from_numpy(maxima).to(vectors.device)
        ended = torch.zeros(len(maxima), dtype=torch.bool, device=vectors.device)
        inputs = self.words[-1].expand(len(maxima), -1)
        decoded = []
        for t in range(steps):
            ended |= limits <= t
            if ended.all():
                break
            hidden = self._gated_step(self._decoder.step(state, inputs), pooled, fixed)
            words = functional.linear(hidden, self.output, self.output_bias).argmax(1)
            ended |= words == self.end
            words = words.masked_fill(ended, self.end)
            decoded.append(words)
            inputs = functional.embedding(words, self.words)
            if not self.architecture.recurrent:
                inputs = inputs + self.positions[t]
        if not decoded:
            return Phrases.from_lists([[] for _ in maxima])
        matrix = torch.stack(decoded, 1).cpu().numpy().astype(np.int32)
        kept = matrix != self.end
        return Phrases(prefix_sums(kept.sum(1)), matrix[kept])

    @property
    def _decoder(self) -> Decoder:
        return cast(Decoder, self.decoder)

    def _dropped(self, hidden: Tensor) -> Tensor:
        """Apply dropout to the outputs of an LSTM; self-attention blocks apply their own."""
        return self.dropout(hidden) if self.architecture.recurrent else hidden

    def _encode(self, batch: LengthGroups, words: Tensor) -> Tensor:
        """Return the vectors of the sorted texts, given the vectors of their words, shape (T, w)."""
        inputs = []
        for part in split_groups(words, batch.groups):
            with_end = torch.cat([part, self.words[self.end].expand(len(part), 1, -1)], 1)
            if not self.architecture.recurrent:
                with_end = with_end + self.positions[: with_end.shape[1]]
            inputs.append(with_end)
        groups = batch.with_one_more()
        rows = self.dropout(joined_groups(inputs))
        if not self.architecture.recurrent:
            hidden = self.encoder(rows, groups)
            return torch.cat([POOLINGS[name](hidden, groups) for name in self.architecture.pooled], 1)
        encoded = [self.encoder(part) for part in split_groups(rows, groups)]
        hidden = self.dropout(joined_groups([outputs for outputs, _ in encoded]))
        # The last states, of shape (directions, texts, m / 2), are concatenated: outputs first, then cells.
        last = [torch.cat([*output, *cell], 1) for _, (output, cell) in encoded]
        return torch.cat([*(POOLINGS[name](hidden, groups) for name in self.architecture.pooled), torch.cat(last)], 1)

    def _parts(self, vectors: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return pooled vectors by name, of shape (B, m), and the decoder's initial state, shape (B, 0) or (B, 2 m)."""
        m, names = self.architecture.hidden, self.architecture.pooled
        pooled = {name: vectors[:, i * m : (i + 1) * m] for i, name in enumerate(names)}
        return pooled, vectors[:, len(names) * m :]

    def _gated(self, hidden: Tensor, pooled: dict[str, Tensor], groups: list[tuple[int, int]]) -> Tensor:
        """Compute Eq. 19-21 at all steps, shape (T, m); without gates, return the hidden vectors unchanged."""
        if not pooled:
            return hidden
        total = hidden
        counts = [count for count, _ in groups]
        for name, vectors in pooled.items():
            gate = cast(Gate, self.gates[name])
            parts = zip(
                torch.split(vectors, counts), torch.split(gate.from_pooled(vectors), counts),
                split_groups(functional.linear(hidden, gate.hidden), groups), strict=True,
            )  # fmt: skip
            total = total + joined_groups([gate.opened(*part) for part in parts])
        return layer_norm(total, self.gated_gain, self.gated_bias)

    def _gated_step(self, hidden: Tensor, pooled: dict[str, Tensor], fixed: dict[str, Tensor]) -> Tensor:
        """Compute Eq. 19-21 at one step, shape (B, m)."""
        if not pooled:
            return hidden
        total = hidden
        for name, vectors in pooled.items():
            gate = cast(Gate, self.gates[name])
            total = total + gate.opened(vectors, fixed[name], functional.linear(hidden, gate.hidden))
        return layer_norm(total, self.gated_gain, self.gated_bias)


def _of(arrays: Mapping[str, FloatArray], half: str) -> dict[str, FloatArray]:
    """Return the arrays of `encoder` or `decoder` by the last part of their names."""
    return {name.rpartition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{half}.")}
