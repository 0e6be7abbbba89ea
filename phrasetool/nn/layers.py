"""Layers that several networks share: seeded dropout, self-attention over texts grouped by length, pooling.

The words of a batch are concatenated, with texts of equal length next to each other.  Operations on single words
(matrix products, layer norms) process one long list without padding; attention and pooling process the texts of one
length at a time, so that nothing is masked and the vector of a text does not depend on the other texts of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.nn.positions import NORM_EPSILON, check_lengths
from phrasetool.phrases import FloatArray, Phrases


class SeededDropout(nn.Module):
    """Dropout with its own random generator, so that modules trained by several threads are deterministic.

    Args:
        rate: share of the components that become zero; the others are multiplied by 1 / (1 - rate).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Set the seed, which determines all following draws."""
        self._seed = seed
        self._generator: torch.Generator | None = None

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, in training with some of them dropped; the shape is the same."""
        if not self.training or not self.rate:
            return values
        if self._generator is None or self._generator.device != values.device:
            self._generator = torch.Generator(values.device).manual_seed(self._seed)
        drawn = torch.rand(values.shape, generator=self._generator, device=values.device)
        return values * (drawn >= self.rate).to(values.dtype).mul_(1 / (1 - self.rate))


@dataclass(frozen=True)
class LengthGroups:
    """B texts, shortest first, with their words concatenated.

    Attributes:
        words: int64, shape (T,).
        groups: (number of texts, words of each) for every length, ascending, possibly from length 0.
        order: int64, shape (B,): position i holds text `order[i]`.
    """

    words: Tensor
    groups: list[tuple[int, int]]
    order: Tensor

    @classmethod
    def from_phrases(cls, phrases: Phrases, device: torch.device | str = "cpu") -> LengthGroups:
        """Sort phrases by length, stably.

        Raises:
            LengthError: a text has more words than `LONGEST`.
        """
        lengths = phrases.lengths
        check_lengths(lengths)
        order = np.argsort(lengths, kind="stable")
        sizes = np.bincount(lengths)
        return cls(
            torch.from_numpy(phrases.select(order).words.astype(np.int64)).to(device),
            [(int(sizes[length]), int(length)) for length in np.flatnonzero(sizes)],
            torch.from_numpy(order).to(device),
        )

    def restored(self, rows: Tensor) -> Tensor:
        """Return rows of the sorted texts in the original order of the texts, shape (B, n)."""
        return rows.index_select(0, torch.argsort(self.order))

    def with_one_more(self) -> list[tuple[int, int]]:
        """Return the groups of texts with one more item each, such as an end after the words or a beginning before."""
        return [(count, length + 1) for count, length in self.groups]


def split_groups(rows: Tensor, groups: list[tuple[int, int]]) -> Iterator[Tensor]:
    """Cut rows, shape (T, ...), into a view of shape (texts, length, ...) per group."""
    ends = np.cumsum([0, *(count * length for count, length in groups)]).tolist()
    for (count, length), (first, last) in zip(groups, pairwise(ends), strict=True):
        yield rows[first:last].view(count, length, *rows.shape[1:])


def joined_groups(parts: list[Tensor]) -> Tensor:
    """Undo `split_groups`."""
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])


class SelfAttention(nn.Module):
    """Multi-head self-attention without residual connection and without output matrix (Eq. 1-5).

    Args:
        query, key, value: initial values, each of shape (m, w), head after head.
        heads: h, divides m.
        causal: whether words do not attend to later ones.
    """

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, heads: int, causal: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Parameter(query), nn.Parameter(key), nn.Parameter(value)
        self.heads = heads
        self.causal = causal

    def project(self, inputs: Tensor) -> Tensor:
        """Return queries, keys and values of inputs of shape (..., w), shape (..., 3, h, m / h)."""
        projected = functional.linear(inputs, torch.cat([self.query, self.key, self.value]))
        return projected.view(*inputs.shape[:-1], 3, self.heads, -1)

    def forward(self, inputs: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Attend within every text, from inputs of shape (T, w) to shape (T, m)."""
        attended = []
        for part in split_groups(self.project(inputs), groups):
            queries, keys, values = part.permute(2, 0, 3, 1, 4)
            values_of_group = functional.scaled_dot_product_attention(queries, keys, values, is_causal=self.causal)
            attended.append(values_of_group.transpose(1, 2).flatten(2))
        return joined_groups(attended)


class AttentionBlock(nn.Module):
    """Self-attention, layer norm, feed-forward with residual, layer norm (Eq. 8-11, 15-18).

    Args:
        arrays: initial values under the names of `MeanMaxParameters`, `query` to `hidden_bias`.
        heads: h.
        dropout: dropout of the outputs of the attention and of the feed-forward layer.
        causal: whether words do not attend to later ones.
    """

    NAMES = (
        "query", "key", "value", "attention_gain", "attention_bias", "widen", "widen_bias", "narrow", "narrow_bias",
        "hidden_gain", "hidden_bias",
    )  # fmt: skip

    attention_gain: nn.Parameter
    attention_bias: nn.Parameter
    widen: nn.Parameter
    widen_bias: nn.Parameter
    narrow: nn.Parameter
    narrow_bias: nn.Parameter
    hidden_gain: nn.Parameter
    hidden_bias: nn.Parameter

    def __init__(self, arrays: dict[str, FloatArray], heads: int, dropout: SeededDropout, causal: bool = False) -> None:
        super().__init__()
        values = {name: torch.from_numpy(arrays[name].copy()) for name in self.NAMES}
        query, key, value = (values.pop(name) for name in ("query", "key", "value"))
        self.attention = SelfAttention(query, key, value, heads, causal)
        for name, initial in values.items():
            self.register_parameter(name, nn.Parameter(initial))
        self.dropout = dropout

    def forward(self, inputs: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Return the hidden vectors, shape (T, m), of inputs of shape (T, w)."""
        return self.after_attention(self.attention(inputs, groups))

    def after_attention(self, attended: Tensor) -> Tensor:
        """Apply Eq. 9-11 to the output of the attention, shape (..., m)."""
        normed = layer_norm(self.dropout(attended), self.attention_gain, self.attention_bias)
        wide = functional.relu(functional.linear(normed, self.widen, self.widen_bias))
        narrow = functional.linear(wide, self.narrow, self.narrow_bias)
        return layer_norm(self.dropout(narrow) + normed, self.hidden_gain, self.hidden_bias)

    def arrays(self) -> dict[str, Tensor]:
        """Return the current values under the names of `MeanMaxParameters`."""
        return {name.rpartition(".")[2]: value.detach() for name, value in self.named_parameters()}


def layer_norm(values: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Apply layer normalisation over the last dimension (Ba, Kiros and Hinton 2016)."""
    return functional.layer_norm(values, gain.shape, gain, bias, NORM_EPSILON)


def max_pooled(hidden: Tensor, groups: list[tuple[int, int]]) -> Tensor:
    """Return the maximum of every component over the words of a text (Eq. 12); (T, m) -> (B, m)."""
    return torch.cat([part.max(1).values for part in split_groups(hidden, groups)])


def mean_pooled(hidden: Tensor, groups: list[tuple[int, int]]) -> Tensor:
    """Return the mean of every component over the words of a text (Eq. 13); (T, m) -> (B, m)."""
    return torch.cat([part.mean(1) for part in split_groups(hidden, groups)])


POOLINGS: dict[str, Callable[[Tensor, list[tuple[int, int]]], Tensor]] = {"max": max_pooled, "mean": mean_pooled}
