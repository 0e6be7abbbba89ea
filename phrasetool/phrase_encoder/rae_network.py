"""The recursive auto-encoder for training: batched and differentiable, on CPU and GPU.

The greedy search already computes the vector and the reconstruction of every node it keeps, so it *is* the forward
pass; the backward pass is written out here (back-propagation through structure, Goller and Kuechler 1996) with the
tree held fixed, as the paper does (section 3.3.3).  A batch is sorted by length, so that the phrases still active at
a step are always the first ones, and every step is a handful of matrix operations on all of them.

On CPU the forward pass uses the scoring kernels.  Nodes that several phrases of a batch share are computed once in
both directions; their gradients add up.  The tests compare both backward passes with each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.phrase_encoder.dense_kernels import GROUP, pack, project
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrase_encoder.rae_kernels import (
    Nodes,
    TreeWeights,
    back_through_composition,
    back_through_errors,
    build_trees,
    collect_vectors_and_errors,
    compute_nodes,
    enter_words,
    find_roots,
    order_used,
    scatter_roots,
)
from phrasetool.phrases import FloatArray, Int64Array, Phrases


class NodesPool:
    """Pool of reusable nodes; a batch holds its nodes from the forward to the backward pass."""

    def __init__(self) -> None:
        self._free: list[Nodes] = []

    def take(self, words: int, vocabulary: int, n: int) -> Nodes:
        """Return an empty set of nodes, with room for a batch of `words` words."""
        needed = 4 * words + GROUP
        while self._free:
            nodes = self._free.pop()
            if len(nodes.vectors) >= needed:
                return nodes
        return Nodes.with_room(max(needed, 1 << 13), vocabulary, n)

    def give(self, nodes: Nodes) -> None:
        """Return nodes to the pool."""
        nodes.forget()
        self._free.append(nodes)


class WordGradient:
    """The gradient of the word vectors, in one tensor that is reused.

    A batch contains a small part of the vocabulary.  A new gradient for every batch, filled with zeros and then copied
    by autograd, would take a quarter of the training time.
    """

    def __init__(self) -> None:
        self._tensor = torch.zeros(0)
        self._rows: list[Int64Array] = []

    def add(self, parameter: Tensor, rows: Int64Array, values: FloatArray) -> None:
        """Add to `parameter.grad`, as autograd would.

        Args:
            parameter: the word vectors, shape (V, n).
            rows: int64, shape (R,), distinct.
            values: float32, shape (R, n).
        """
        if parameter.grad is None:
            if self._tensor.shape != parameter.shape:
                self._tensor, self._rows = torch.zeros_like(parameter), []
            for old in self._rows:
                self._tensor.numpy()[old] = 0
            self._rows = []
            parameter.grad = self._tensor
        parameter.grad.numpy()[rows] += values
        self._rows.append(rows)


class GreedyComposeOnCpu(torch.autograd.Function):
    """Greedy composition on CPU: word vectors and parameters -> roots (B, n) and reconstruction errors (B,).

    The gradient of the word vectors is added to a `WordGradient`, not passed through autograd.
    """

    @staticmethod
    def forward(
        context: Any,
        word_vectors: Tensor,
        w1: Tensor,
        b1: Tensor,
        w2: Tensor,
        b2: Tensor,
        phrases: Phrases,
        pool: NodesPool,
        word_gradient: WordGradient,
    ) -> tuple[Tensor, Tensor]:
        """Encode phrases, and keep the nodes for the backward pass."""
        table = word_vectors.detach().numpy()
        n = table.shape[1]
        weights = TreeWeights.packed(*(value.detach().numpy() for value in (w1, b1, w2, b2)))
        nodes = pool.take(len(phrases.words), len(table), n)
        items = enter_words(phrases.words, table, np.empty((0, 2 * n), np.float32), nodes)
        known = np.arange(nodes.state[0])
        project(known, nodes.vectors, weights.compose, nodes.products, known)
        words = np.empty(len(known), np.int64)
        words[items] = phrases.words
        lengths = build_trees(phrases.offsets, items, len(known), nodes, weights)
        before = int(nodes.state[0])
        roots = find_roots(phrases.offsets, items, lengths, nodes)
        compute_nodes(before, nodes.state[0], nodes, weights)
        vectors = np.zeros((len(phrases), n), np.float32)
        errors = np.zeros(len(phrases), np.float32)
        collect_vectors_and_errors(roots, nodes, vectors, errors)
        context.save_for_backward(w1, w2)
        context.word_vectors, context.word_gradient = word_vectors, word_gradient
        context.nodes, context.pool = nodes, pool
        context.words, context.roots, context.weights = words, roots, weights
        return torch.from_numpy(vectors), torch.from_numpy(errors)

    @staticmethod
    def backward(context: Any, d_roots: Tensor, d_errors: Tensor) -> Any:
        """Return the gradients of all arguments of `forward`, those of the word vectors through a `WordGradient`."""
        w1, w2 = context.saved_tensors
        nodes: Nodes = context.nodes
        roots, words = context.roots, context.words
        n = w1.shape[0]
        count = int(nodes.state[0])
        weights = np.zeros(count, np.float32)
        order, starts = order_used(roots, nodes.children, np.ascontiguousarray(d_errors.numpy(), np.float32), weights)
        pairs, parents = nodes.vectors[nodes.children[order]].reshape(-1, 2 * n), nodes.vectors[order]
        d_rebuilt, d_pairs, d_parents = np.empty_like(pairs), np.empty_like(pairs), np.empty_like(parents)
        back_through_errors(
            pairs, parents, weights[order], context.weights.reconstruct, context.weights.reconstruct_bias,
            pack(w2.detach().numpy().T), d_rebuilt, d_pairs, d_parents,
        )  # fmt: skip
        gradient = np.zeros((count, n), np.float32)
        scatter_roots(roots, np.ascontiguousarray(d_roots.numpy(), np.float32), gradient)
        back_through_composition(
            order, starts, nodes.children, parents, pack(w1.detach().numpy().T), gradient, d_pairs, d_parents
        )
        if context.word_vectors.requires_grad:
            context.word_gradient.add(context.word_vectors, words, gradient[: len(words)])
        d_w1 = torch.from_numpy(d_parents).T @ torch.from_numpy(pairs)
        d_w2 = torch.from_numpy(d_rebuilt).T @ torch.from_numpy(parents)
        d_b1, d_b2 = torch.from_numpy(d_parents.sum(0)), torch.from_numpy(d_rebuilt.sum(0))
        context.pool.give(nodes)
        context.nodes = None
        return None, d_w1, d_b1, d_w2, d_b2, None, None, None


# Parents, reconstructions and errors of pairs of nodes.
_Computed = tuple[Tensor, Tensor, Tensor]


class GreedySearch:
    """Greedy merges of B phrases of up to m words, by the smallest error at each step (section 3.3.2 of the paper).

    Nodes live in one buffer: leaf j of phrase b is node j * B + b, its merge at step s is node (m + s) * B + b.

    Args:
        leaves: vectors of words, shape (m, B, n), longest phrases first.
        weights: W1 (n, 2n), b1 (n,), W2 (2n, n) and b2 (2n,).
        active: number of phrases with more than 0, 1, .. m - 1 words.

    Attributes:
        nodes: shape ((2 m - 1) B, n).
        children: the two nodes merged in each step, int64, shape (2, m - 1, B).
        reconstructions: their reconstructions, shape (m - 1, B, 2 n).
        errors: sum of the errors of all steps of a phrase, shape (B,).
    """

    def __init__(self, leaves: Tensor, weights: tuple[Tensor, Tensor, Tensor, Tensor], active: list[int]) -> None:
        m, batch, n = leaves.shape
        w1, b1, w2, b2 = weights
        self._words, self._batch, self._steps, self._active = m, batch, m - 1, [*active, 0]
        self.nodes = leaves.new_zeros((m + self._steps) * batch, n)
        self.nodes[: m * batch] = leaves.reshape(m * batch, n)
        self.children = torch.zeros((2, self._steps, batch), dtype=torch.int64, device=leaves.device)
        self.reconstructions = leaves.new_zeros(self._steps, batch, 2 * n)
        self.errors = leaves.new_zeros(batch)
        # [W1_left c ; W1_right c] of every node, so that a parent is a sum of two gathered rows.
        self._split = torch.cat([w1[:, :n], w1[:, n:]])
        self._products = leaves.new_zeros((m + self._steps) * batch, 2 * n)
        torch.mm(self.nodes[: m * batch], self._split.T, out=self._products[: m * batch])
        self._candidates = _Candidates(self.nodes, self._products, b1, w2, b2)
        self._rows = torch.arange(batch, device=leaves.device)
        self._items = torch.arange(m, device=leaves.device)[:, None] * batch + self._rows
        self._all_neighbours()

    def _all_neighbours(self) -> None:
        """Compute the parents of all adjacent pairs: candidate k of a phrase is the pair of its items k and k + 1."""
        counts, device = self._active[1 : self._words], self._items.device
        left = torch.cat([self._items[k, :a] for k, a in enumerate(counts)])
        right = torch.cat([self._items[k + 1, :a] for k, a in enumerate(counts)])
        computed = self._candidates.compute(left, right)
        self._scores = self.nodes.new_full((self._steps, self._batch), torch.inf)
        self._places = torch.zeros((self._steps, self._batch), dtype=torch.int64, device=device)
        offset = 0
        for k, a in enumerate(counts):
            self._scores[k, :a] = computed[2][offset : offset + a]
            self._places[k, :a] = torch.arange(offset, offset + a, device=device)
            offset += a
        self._stores, self._bases = [computed], [0]

    def run(self) -> None:
        """Perform all steps."""
        for step in range(self._steps):
            if not (count := self._active[step + 1]):
                break
            best = self._merge(step, count)
            if still := self._active[step + 2]:
                self._close_gap(step, best[:still])

    def _merge(self, step: int, count: int) -> Tensor:
        """Merge the best pair of each of the first `count` phrases; return the chosen candidates."""
        best = self._scores[: self._steps - step, :count].argmin(0)
        rows = self._rows[:count]
        self.children[0, step, :count] = self._items[best, rows]
        self.children[1, step, :count] = self._items[best + 1, rows]
        parents, rebuilt, errors = _gather(self._stores, self._bases, self._places[best, rows])
        first = (self._words + step) * self._batch
        self.nodes[first : first + count] = parents
        self.reconstructions[step, :count] = rebuilt
        self.errors[:count] += errors
        return best

    def _close_gap(self, step: int, best: Tensor) -> None:
        """Replace item `best` of phrases by the parent, and move later items and candidates down by one."""
        still, width, device = len(best), self._steps - step, best.device
        rows, first = self._rows[:still], (self._words + step) * self._batch
        merged = slice(first, first + still)
        torch.mm(self.nodes[merged], self._split.T, out=self._products[merged])
        where = torch.arange(width, device=device)[:, None]
        items = self._items[: width + 1, :still].gather(0, where + (where > best).long())
        items[best, rows] = first + rows
        self._items = items
        moved = where[: width - 1] + (where[: width - 1] >= best).long()
        self._scores = self._scores[:width, :still].gather(0, moved)
        self._places = self._places[:width, :still].gather(0, moved)
        # The pairs around the parent are new: (best - 1, best) and (best, best + 1).
        before = (best > 0).nonzero(as_tuple=True)[0]
        after = (best < _pairs_left(self._active, step + 2, still, device)).nonzero(as_tuple=True)[0]
        column = torch.cat([before, after])
        row = torch.cat([best[before] - 1, best[after]])
        fresh = self._candidates.compute(items[row, column], items[row + 1, column])
        base = self._bases[-1] + len(self._stores[-1][2])
        self._scores[row, column] = fresh[2]
        self._places[row, column] = torch.arange(base, base + len(row), device=device)
        self._stores.append(fresh)
        self._bases.append(base)

    def roots(self) -> Tensor:
        """Return the last merge of each phrase, or its only word, shape (B, n)."""
        roots = self.nodes[: self._batch].clone()
        for step in range(self._steps):
            # Phrases of exactly step + 2 words end with this merge.
            low, high = self._active[step + 2], self._active[step + 1]
            first = (self._words + step) * self._batch
            roots[low:high] = self.nodes[first + low : first + high]
        return roots


@dataclass(frozen=True)
class _Candidates:
    """Computation of the candidates: parents of pairs of nodes that may be merged."""

    nodes: Tensor
    products: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor

    def compute(self, left: Tensor, right: Tensor) -> _Computed:
        """Return parents (K, n), reconstructions (K, 2n) and errors (K,) of K pairs of nodes (Eq. 2-4)."""
        n = self.nodes.shape[1]
        parents = self.products[:, :n].index_select(0, left)
        parents += self.products[:, n:].index_select(0, right)
        parents.add_(self.b1).tanh_()
        rebuilt = torch.addmm(self.b2, parents, self.w2.T).tanh_()
        errors = (self.nodes.index_select(0, left) - rebuilt[:, :n]).square_().sum(1)
        errors += (self.nodes.index_select(0, right) - rebuilt[:, n:]).square_().sum(1)
        return parents, rebuilt, errors.mul_(0.5)


def _gather(stores: list[_Computed], bases: list[int], place: Tensor) -> _Computed:
    """Return the rows `place` of the concatenated stores."""
    if len(stores) == 1:
        return tuple(part.index_select(0, place) for part in stores[0])  # type: ignore[return-value]
    outs = [part.new_empty((len(place), *part.shape[1:])) for part in stores[0]]
    for store, base in zip(stores, bases, strict=True):
        here = ((place >= base) & (place < base + len(store[2]))).nonzero(as_tuple=True)[0]
        for out, part in zip(outs, store, strict=True):
            out[here] = part.index_select(0, place[here] - base)
    return tuple(outs)  # type: ignore[return-value]


def _pairs_left(active: list[int], merges: int, count: int, device: torch.device) -> Tensor:
    """Return the number of adjacent pairs of the first `count` phrases after `merges` - 1 merges."""
    left = torch.zeros(count, dtype=torch.int64, device=device)
    for a in active[merges:]:
        left[:a] += 1
    return left


@dataclass(frozen=True)
class PhraseBatch:
    """B phrases as padded word ids, longest first.

    Attributes:
        words: int64, shape (B, m), padded with 0.
        active: number of phrases with more than 0, 1, .. m - 1 words; `active[0]` counts the phrases with any word.
        order: int64, shape (B,): row i holds phrase `order[i]`.
    """

    words: Tensor
    active: list[int]
    order: Tensor

    @classmethod
    def from_phrases(cls, phrases: Phrases, device: torch.device | str = "cpu") -> PhraseBatch:
        """Sort phrases (stably) and pad them."""
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
    """Greedy composition: leaves and parameters -> roots (B, n) and reconstruction errors (B,), by row of the batch.

    Nodes live in one buffer: leaf j of phrase b is node j * B + b, its merge at step s is node (m + s) * B + b.
    """

    @staticmethod
    def forward(
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
    def backward(context: Any, d_roots: Tensor, d_errors: Tensor) -> Any:
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
            # Within a step every child belongs to a different phrase, so no index occurs twice.
            gradient[left[part]] += d_pair[:, :n]
            gradient[right[part]] += d_pair[:, n:]
        d_w1, d_b1 = d_parent.T @ pair, d_parent.sum(0)
        return gradient[: m * batch].reshape(m, batch, n), d_w1, d_b1, d_w2, d_b2, None


def _apply(function: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
    """Call an autograd function, which torch leaves untyped."""
    return cast(tuple[Tensor, Tensor], function.apply(*arguments))


class RecursiveAutoencoder(nn.Module):
    """The RAE of one language with its transformation, as a trainable module.

    On CPU, in float32, phrases are encoded by the kernels of `rae_kernels`, otherwise by batched torch operations;
    `force_torch` enforces the latter.

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
        """Return f(Wl p + bl), shape (B, n): the vectors in the other language's space (Eq. 9)."""
        return torch.tanh(nn.functional.linear(vectors, self.transform, self.transform_bias))

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Return every parameter once: of the words, of the tree, of the transformation."""
        return {
            "words": [self.word_vectors],
            "rec": [self.compose, self.compose_bias, self.reconstruct, self.reconstruct_bias],
            "sem": [self.transform, self.transform_bias],
        }

    def seed_dropout(self, seed: int) -> None:
        """Do nothing, because nothing is dropped."""

    def numpy(self) -> RaeParameters:
        """Return the current values."""
        return RaeParameters(**{name: value.detach().cpu().numpy().copy() for name, value in self.named_parameters()})
