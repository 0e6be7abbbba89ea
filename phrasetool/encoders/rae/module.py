"""The recursive auto-encoder for training: batched and differentiable, on CPU and GPU.

The greedy search already computes the vector and the reconstruction of every node it keeps, so it *is* the forward
pass; the backward pass is written out here (back-propagation through structure, Goller and Kuechler 1996) with the
tree held fixed, as the paper does (section 3.3.3).  A batch is sorted by length, so that the phrases still active at
a step are always the first ones, and every step is a handful of matrix operations on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.encoders.rae.cpu_training import GreedyComposeOnCpu, NodesPool, WordGradient
from phrasetool.encoders.rae.greedy_search import GreedySearch
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.phrases import Phrases


@dataclass(frozen=True)
class PhraseBatch:
    """B phrases as padded word ids, longest first.

    Attributes:
        words: int64, shape (B, m), padded with 0.
        active: how many phrases have more than 0, 1, .. m - 1 words; `active[0]` counts the phrases with any word.
        order: int64, shape (B,): row i holds phrase `order[i]`.
    """

    words: Tensor
    active: list[int]
    order: Tensor

    @classmethod
    def from_phrases(cls, phrases: Phrases, device: torch.device | str = "cpu") -> PhraseBatch:
        """Sort (stably) and pad."""
        lengths = phrases.lengths
        order = np.argsort(-lengths, kind="stable")
        longest = max(int(lengths.max(initial=0)), 1)
        words = phrases.padded(longest)[order].astype(np.int64)
        active = [int((lengths > k).sum()) for k in range(longest)]
        return cls(
            torch.from_numpy(words).to(device),
            active,
            torch.from_numpy(order).to(device),
        )


class _GreedyCompose(torch.autograd.Function):
    """Leaves and parameters -> roots (B, n) and reconstruction errors (B,), in the order of the batch's rows.

    Nodes live in one buffer: leaf j of phrase b is node j * B + b, its merge at step s is node (m + s) * B + b.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        context: Any, leaves: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, active: list[int]
    ) -> tuple[Tensor, Tensor]:
        context.steps = len(leaves) - 1
        if not context.steps:
            context.save_for_backward(leaves)
            return leaves[0].clone(), leaves.new_zeros(leaves.shape[1])
        search = GreedySearch(leaves, (w1, b1, w2, b2), active)
        search.run()
        context.save_for_backward(search.nodes, search.reconstructions, search.children, w1, w2)
        context.active = active
        context.shape = leaves.shape
        return search.roots(), search.errors

    @staticmethod
    def backward(context: Any, d_roots: Tensor, d_errors: Tensor) -> Any:  # type: ignore[override]
        if context.steps == 0:
            (leaves,) = context.saved_tensors
            return d_roots[None].expand_as(leaves), None, None, None, None, None
        nodes, reconstructions, children, w1, w2 = context.saved_tensors
        m, batch, n = context.shape
        steps, active = context.steps, context.active
        gradient = torch.zeros_like(nodes)
        gradient[: active[0]] = d_roots[: active[0]]
        gradient[: active[1]] = 0
        for s in range(steps):
            low, high = (active[s + 2] if s + 2 < m else 0), active[s + 1]
            gradient[(m + s) * batch + low : (m + s) * batch + high] = d_roots[low:high]

        # Reconstruction, all nodes at once.
        used = [(s, active[s + 1]) for s in range(steps) if active[s + 1]]
        flat = torch.cat([torch.arange(a, device=nodes.device) + s * batch for s, a in used])
        left, right = children[0].reshape(-1)[flat], children[1].reshape(-1)[flat]
        rebuilt = reconstructions.reshape(-1, 2 * n)[flat]
        parents = nodes[m * batch :][flat]
        pair = torch.cat([nodes[left], nodes[right]], 1)
        weight = d_errors[flat % batch, None]
        difference = (pair - rebuilt).mul_(weight)
        d_pre = difference.neg().mul_(1 - rebuilt * rebuilt)
        d_w2, d_b2 = d_pre.T @ parents, d_pre.sum(0)
        from_error = d_pre @ w2
        slope = 1 - parents * parents

        # Composition, from the last merge to the first.
        d_parent = torch.empty_like(parents)
        ends = np.cumsum([a for _, a in used])
        for (s, a), end in zip(reversed(used), reversed(ends.tolist()), strict=True):
            part = slice(end - a, end)
            first = (m + s) * batch
            d = (gradient[first : first + a] + from_error[part]).mul_(slope[part])
            d_parent[part] = d
            d_pair = torch.addmm(difference[part], d, w1)
            # Within a step every child belongs to another phrase, so no index occurs twice.
            gradient[left[part]] += d_pair[:, :n]
            gradient[right[part]] += d_pair[:, n:]
        d_w1, d_b1 = d_parent.T @ pair, d_parent.sum(0)
        return gradient[: m * batch].reshape(m, batch, n), d_w1, d_b1, d_w2, d_b2, None


def _apply(function: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
    """Call an autograd function, which torch leaves untyped."""
    return cast(tuple[Tensor, Tensor], function.apply(*arguments))


class RecursiveAutoencoder(nn.Module):
    """The RAE of one language with its transformation, as a trainable module.

    On CPU, in float32, phrases are encoded by the kernels of `cpu_training`, elsewhere by batched torch
    operations; `force_torch` uses the latter everywhere.

    Args:
        parameters: initial values.
    """

    word_vectors: nn.Parameter
    compose: nn.Parameter
    compose_bias: nn.Parameter
    reconstruct: nn.Parameter
    reconstruct_bias: nn.Parameter
    transform: nn.Parameter
    transform_bias: nn.Parameter

    def __init__(self, parameters: RaeParameters) -> None:
        super().__init__()
        for name, array in parameters.arrays().items():
            self.register_parameter(name, nn.Parameter(torch.from_numpy(array.copy())))
        self.force_torch = False
        self._pool = NodesPool()
        self._word_gradient = WordGradient()

    def forward(self, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Encode B phrases.

        Returns:
            Phrase vectors, shape (B, n), and reconstruction errors, shape (B,).
        """
        table = self.word_vectors
        shared = (self.compose, self.compose_bias, self.reconstruct, self.reconstruct_bias)
        if table.device.type == "cpu" and table.dtype == torch.float32 and not self.force_torch:
            return _apply(GreedyComposeOnCpu, table, *shared, phrases, self._pool, self._word_gradient)
        batch = PhraseBatch.from_phrases(phrases, table.device)
        leaves = nn.functional.embedding(batch.words.T, table)
        roots, errors = _apply(_GreedyCompose, leaves, *shared, batch.active)
        rows = torch.arange(len(phrases), device=table.device)
        if batch.active[0] < len(phrases):
            roots = roots * (rows < batch.active[0])[:, None]
        back = torch.empty_like(rows)
        back[batch.order] = rows
        return roots.index_select(0, back), errors.index_select(0, back)

    def transformed(self, vectors: Tensor) -> Tensor:
        """f(Wl p + bl), shape (B, n): the vectors in the other language's space (Eq. 9)."""
        return torch.tanh(nn.functional.linear(vectors, self.transform, self.transform_bias))

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Every parameter once: of the words, of the tree, of the transformation."""
        return {
            "words": [self.word_vectors],
            "rec": [self.compose, self.compose_bias, self.reconstruct, self.reconstruct_bias],
            "sem": [self.transform, self.transform_bias],
        }

    def seed_dropout(self, seed: int) -> None:
        """Nothing is dropped here."""

    def numpy(self) -> RaeParameters:
        """The current values."""
        return RaeParameters(**{name: value.detach().cpu().numpy().copy() for name, value in self.named_parameters()})
