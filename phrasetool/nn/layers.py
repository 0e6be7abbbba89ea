"""Layers that several networks share: seeded dropout, self-attention over texts grouped by length, pooling.

The words of a batch stand one after another, texts of one length together.  What works word by word (matrix products,
layer norms) sees one long list without padding; attention and pooling take the texts of one length at a time, so that
nothing is masked and the vector of a text does not depend on the other texts of its batch.
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


@dataclass(frozen=True)
class LengthGroups:
    """B texts, shortest first, their words one after another.

    Attributes:
        words: int64, shape (T,).
        groups: (texts, words of each) for every length, ascending; without words there may be a group too.
        order: int64, shape (B,): place i holds text `order[i]`.
    """

    words: Tensor
    groups: list[tuple[int, int]]
    order: Tensor

    @classmethod
    def from_phrases(cls, phrases: Phrases, device: torch.device | str = "cpu") -> LengthGroups:
        """Sort by length, stably.

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
        """Rows of the sorted texts in the order in which the texts came; shape (B, n)."""
        return rows.index_select(0, torch.argsort(self.order))

    def with_one_more(self) -> list[tuple[int, int]]:
        """The groups when every text has one more item: an end after it, or a beginning before it."""
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
    """Multi-head self-attention without residual and without output matrix (Eq. 1-5).

    Args:
        query, key, value: initial values, each of shape (m, w), head after head.
        heads: h, divides m.
        causal: no word attends to later ones.
    """

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, heads: int, causal: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Parameter(query), nn.Parameter(key), nn.Parameter(value)
        self.heads = heads
        self.causal = causal

    def project(self, inputs: Tensor) -> Tensor:
        """Queries, keys and values of inputs of shape (..., w): shape (..., 3, h, m / h)."""
        projected = functional.linear(inputs, torch.cat([self.query, self.key, self.value]))
        return projected.view(*inputs.shape[:-1], 3, self.heads, -1)

    def forward(self, inputs: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Attend within every text; inputs of shape (T, w) give shape (T, m)."""
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
        dropout: of what the attention and the feed-forward layer give.
        causal: no word attends to later ones.
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
        """Hidden vectors, shape (T, m), of inputs of shape (T, w)."""
        return self.after_attention(self.attention(inputs, groups))

    def after_attention(self, attended: Tensor) -> Tensor:
        """Eq. 9-11 for what the attention gives, shape (..., m)."""
        normed = layer_norm(self.dropout(attended), self.attention_gain, self.attention_bias)
        wide = functional.relu(functional.linear(normed, self.widen, self.widen_bias))
        narrow = functional.linear(wide, self.narrow, self.narrow_bias)
        return layer_norm(self.dropout(narrow) + normed, self.hidden_gain, self.hidden_bias)

    def arrays(self) -> dict[str, Tensor]:
        """The current values under the names of `MeanMaxParameters`."""
        return {name.rpartition(".")[2]: value.detach() for name, value in self.named_parameters()}


def layer_norm(values: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Layer normalisation over the last dimension (Ba, Kiros and Hinton 2016)."""
    return functional.layer_norm(values, gain.shape, gain, bias, NORM_EPSILON)


def max_pooled(hidden: Tensor, groups: list[tuple[int, int]]) -> Tensor:
    """The maximum of every component over the words of a text (Eq. 12); (T, m) -> (B, m)."""
    return torch.cat([part.max(1).values for part in split_groups(hidden, groups)])


def mean_pooled(hidden: Tensor, groups: list[tuple[int, int]]) -> Tensor:
    """The mean of every component over the words of a text (Eq. 13); (T, m) -> (B, m)."""
    return torch.cat([part.mean(1) for part in split_groups(hidden, groups)])


POOLINGS: dict[str, Callable[[Tensor, list[tuple[int, int]]], Tensor]] = {"max": max_pooled, "mean": mean_pooled}
