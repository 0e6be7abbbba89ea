"""The recursive auto-encoder for training on CPU: forward with the scoring kernels, backward through their nodes.

Nodes that several phrases of a batch share are computed once in both directions; their gradients add up.  The
backward pass is that of `rae_torch` (trees held fixed), and the tests hold the two against each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from phrasetool.encoders.dense_kernels import GROUP, affine, pack, pack_bias, tanh_all
from phrasetool.encoders.rae.kernels import build_trees, compute_nodes, compute_products, enter_words, intern
from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Phrases

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)


@kernel
def _find_roots(
    offsets: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    children: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The root node of every phrase, -1 for a phrase without words."""
    roots = np.full(len(lengths), -1, np.int64)
    for i in range(len(lengths)):
        start = offsets[i]
        if lengths[i] == 1:
            roots[i] = items[start]
        elif lengths[i] == 2:
            roots[i] = intern(items[start], items[start + 1], children, slots, state)
    return roots


@kernel
def _collect_roots(
    roots: npt.NDArray[np.int64],
    count: int,
    children: npt.NDArray[np.int32],
    vectors: FloatArray,
    errors: FloatArray,
    out_vectors: FloatArray,
    out_errors: FloatArray,
) -> None:
    """Root vectors, and E_rec of every phrase: the sum over the nodes of its tree (Eq. 5)."""
    totals = np.zeros(count, np.float32)
    for node in range(count):
        if children[node, 0] >= 0:
            totals[node] = errors[node] + totals[children[node, 0]] + totals[children[node, 1]]
    n = vectors.shape[1]
    for i in range(len(roots)):
        if roots[i] >= 0:
            out_errors[i] = totals[roots[i]]
            for k in range(n):
                out_vectors[i, k] = vectors[roots[i], k]


@kernel
def _order_used(
    roots: npt.NDArray[np.int64],
    count: int,
    children: npt.NDArray[np.int32],
    d_errors: FloatArray,
    weights: FloatArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Parents used by some tree, highest first, and where each height begins; weights[node] = its share of dE_rec."""
    used = np.zeros(count, np.bool_)
    for i in range(len(roots)):
        if roots[i] >= 0:
            used[roots[i]] = True
            weights[roots[i]] += d_errors[i]
    for node in range(count - 1, -1, -1):
        if used[node] and children[node, 0] >= 0:
            for side in range(2):
                child = children[node, side]
                used[child] = True
                weights[child] += weights[node]
    heights = np.zeros(count, np.int64)
    highest = 0
    for node in range(count):
        if used[node] and children[node, 0] >= 0:
            heights[node] = 1 + max(heights[children[node, 0]], heights[children[node, 1]])
            highest = max(highest, heights[node])
    starts = np.zeros(highest + 1, np.int64)
    for node in range(count):
        if heights[node] > 0:
            starts[highest - heights[node] + 1] += 1
    for level in range(highest):
        starts[level + 1] += starts[level]
    order = np.empty(starts[highest], np.int64)
    places = starts.copy()
    for node in range(count):
        if heights[node] > 0:
            level = highest - heights[node]
            order[places[level]] = node
            places[level] += 1
    return order, starts


@kernel
def _back_through_errors(
    order: npt.NDArray[np.int64],
    children: npt.NDArray[np.int32],
    vectors: FloatArray,
    weights: FloatArray,
    packed_reconstruct: FloatArray,
    packed_reconstruct_bias: FloatArray,
    packed_reconstruct_back: FloatArray,
    pairs: FloatArray,
    parents: FloatArray,
    d_rebuilt: FloatArray,
    d_pairs: FloatArray,
    d_parents: FloatArray,
) -> None:
    """Gradients of E_rec (Eq. 3, 4) at every used parent; d_parents gets the part that flows through W2."""
    n = vectors.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, packed_reconstruct.shape[1]), np.float32)
    d = np.zeros((GROUP, 2 * n), np.float32)
    back = np.zeros((GROUP, packed_reconstruct_back.shape[1]), np.float32)
    zero = np.zeros(packed_reconstruct_back.shape[1], np.float32)
    for first in range(0, len(order), GROUP):
        used = min(GROUP, len(order) - first)
        for g in range(used):
            node = order[first + g]
            left, right = children[node, 0], children[node, 1]
            for i in range(n):
                x[g, i] = vectors[node, i]
                parents[first + g, i] = vectors[node, i]
                pairs[first + g, i] = vectors[left, i]
                pairs[first + g, n + i] = vectors[right, i]
        affine(packed_reconstruct, packed_reconstruct_bias, x, y)
        tanh_all(y)
        for g in range(used):
            k = first + g
            weight = weights[order[k]]
            for i in range(2 * n):
                difference = (pairs[k, i] - y[g, i]) * weight
                d_pairs[k, i] = difference
                d[g, i] = -difference * (_ONE - y[g, i] * y[g, i])
                d_rebuilt[k, i] = d[g, i]
        affine(packed_reconstruct_back, zero, d, back)
        for g in range(used):
            for i in range(n):
                d_parents[first + g, i] = back[g, i]


@kernel
def _back_through_composition(
    order: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    children: npt.NDArray[np.int32],
    parents: FloatArray,
    packed_compose_back: FloatArray,
    gradient: FloatArray,
    d_pairs: FloatArray,
    d_parents: FloatArray,
) -> None:
    """From the roots to the words (Eq. 2); nodes of one height do not depend on each other."""
    n = parents.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, packed_compose_back.shape[1]), np.float32)
    zero = np.zeros(packed_compose_back.shape[1], np.float32)
    for level in range(len(starts) - 1):
        for first in range(starts[level], starts[level + 1], GROUP):
            used = min(GROUP, starts[level + 1] - first)
            for g in range(used):
                k = first + g
                node = order[k]
                for i in range(n):
                    x[g, i] = (gradient[node, i] + d_parents[k, i]) * (_ONE - parents[k, i] * parents[k, i])
                    d_parents[k, i] = x[g, i]
            affine(packed_compose_back, zero, x, y)
            for g in range(used):
                k = first + g
                left, right = children[order[k], 0], children[order[k], 1]
                for i in range(n):
                    gradient[left, i] += y[g, i] + d_pairs[k, i]
                for i in range(n):
                    gradient[right, i] += y[g, n + i] + d_pairs[k, n + i]


@kernel
def _scatter_roots(roots: npt.NDArray[np.int64], d_roots: FloatArray, gradient: FloatArray) -> None:
    for i in range(len(roots)):
        if roots[i] >= 0:
            for k in range(d_roots.shape[1]):
                gradient[roots[i], k] += d_roots[i, k]


class _Workspace:
    """The nodes of one batch."""

    def __init__(self, capacity: int, vocabulary: int, n: int) -> None:
        self.capacity = capacity
        self.vectors = np.empty((capacity, n), np.float32)
        self.products = np.empty((capacity, 2 * n), np.float32)
        self.errors = np.empty(capacity, np.float32)
        self.children = np.empty((capacity, 2), np.int32)
        self.has_products = np.zeros(capacity, np.uint8)
        self.slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        self.word_nodes = np.full(vocabulary, -1, np.int32)
        self.state = np.zeros(1, np.int64)
        self.words = np.zeros(0, np.int64)
        self.roots = np.zeros(0, np.int64)

    def clear(self) -> None:
        """Forget all nodes."""
        self.slots.fill(-1)
        self.has_products.fill(0)
        self.word_nodes[self.words] = -1
        self.state[0] = 0


class WorkspacePool:
    """Workspaces to use again; a workspace is out between the forward and the backward pass of a batch."""

    def __init__(self) -> None:
        self._free: list[_Workspace] = []

    def take(self, words: int, vocabulary: int, n: int) -> _Workspace:
        """A workspace with room for a batch of so many words."""
        needed = 4 * words + GROUP
        while self._free:
            workspace = self._free.pop()
            if workspace.capacity >= needed:
                return workspace
        return _Workspace(max(needed, 1 << 13), vocabulary, n)

    def give(self, workspace: _Workspace) -> None:
        """Take a workspace back."""
        workspace.clear()
        self._free.append(workspace)


class WordGradient:
    """The gradient of the word vectors, in one tensor used over and over.

    A batch has a small part of the vocabulary.  A new gradient for every batch, made of zeros and then copied by
    autograd, would take a quarter of the time of training.
    """

    def __init__(self) -> None:
        self._tensor = torch.zeros(0)
        self._rows: list[npt.NDArray[np.int64]] = []

    def add(self, parameter: Tensor, rows: npt.NDArray[np.int64], values: FloatArray) -> None:
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
    """Word vectors and parameters -> roots (B, n) and reconstruction errors (B,).

    The gradient of the word vectors goes through a `WordGradient`, not through autograd.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        context: Any,
        word_vectors: Tensor,
        w1: Tensor,
        b1: Tensor,
        w2: Tensor,
        b2: Tensor,
        phrases: Phrases,
        pool: WorkspacePool,
        word_gradient: WordGradient,
    ) -> tuple[Tensor, Tensor]:
        """Encode, keeping the nodes for the way back."""
        table = word_vectors.detach().numpy()
        n = table.shape[1]
        compose, reconstruct = w1.detach().numpy(), w2.detach().numpy()
        packed_reconstruct = pack(reconstruct)
        packed_bias = pack_bias(b2.detach().numpy())
        packed_compose = pack(np.vstack([compose[:, :n], compose[:, n:]]))
        bias = b1.detach().numpy()
        space = pool.take(len(phrases.words), len(table), n)
        items = enter_words(
            phrases.words, table, np.empty((0, 2 * n), np.float32), space.vectors, space.products, space.children,
            space.has_products, space.word_nodes, space.state,
        )  # fmt: skip
        count = int(space.state[0])
        compute_products(np.arange(count), count, space.vectors, space.products, packed_compose)
        space.words = np.empty(count, np.int64)
        space.words[items] = phrases.words
        lengths = build_trees(
            phrases.offsets, items, count, packed_reconstruct, packed_bias, packed_compose, bias,
            space.vectors, space.products, space.errors, space.children, space.has_products, space.slots, space.state,
        )  # fmt: skip
        before = int(space.state[0])
        space.roots = _find_roots(phrases.offsets, items, lengths, space.children, space.slots, space.state)
        compute_nodes(
            before, space.state[0], space.children, space.vectors, space.products, space.errors, bias,
            packed_reconstruct, packed_bias,
        )  # fmt: skip
        vectors = np.zeros((len(phrases), n), np.float32)
        errors = np.zeros(len(phrases), np.float32)
        _collect_roots(space.roots, int(space.state[0]), space.children, space.vectors, space.errors, vectors, errors)
        context.save_for_backward(w1, w2)
        context.word_vectors, context.word_gradient = word_vectors, word_gradient
        context.space, context.pool = space, pool
        context.packed = packed_reconstruct, packed_bias
        return torch.from_numpy(vectors), torch.from_numpy(errors)

    @staticmethod
    def backward(context: Any, d_roots: Tensor, d_errors: Tensor) -> Any:  # type: ignore[override]
        """Gradients of everything that forward was given."""
        w1, w2 = context.saved_tensors
        space: _Workspace = context.space
        n = w1.shape[0]
        nodes = int(space.state[0])
        weights = np.zeros(nodes, np.float32)
        order, starts = _order_used(
            space.roots, nodes, space.children, np.ascontiguousarray(d_errors.numpy(), np.float32), weights
        )
        used = len(order)
        pairs, parents = np.empty((used, 2 * n), np.float32), np.empty((used, n), np.float32)
        d_rebuilt, d_pairs = np.empty((used, 2 * n), np.float32), np.empty((used, 2 * n), np.float32)
        d_parents = np.empty((used, n), np.float32)
        _back_through_errors(
            order, space.children, space.vectors, weights, *context.packed, pack(w2.detach().numpy().T),
            pairs, parents, d_rebuilt, d_pairs, d_parents,
        )  # fmt: skip
        gradient = np.zeros((nodes, n), np.float32)
        _scatter_roots(space.roots, np.ascontiguousarray(d_roots.numpy(), np.float32), gradient)
        _back_through_composition(
            order, starts, space.children, parents, pack(w1.detach().numpy().T), gradient, d_pairs, d_parents
        )
        if context.word_vectors.requires_grad:
            context.word_gradient.add(context.word_vectors, space.words, gradient[: len(space.words)])
        d_w1 = torch.from_numpy(d_parents).T @ torch.from_numpy(pairs)
        d_w2 = torch.from_numpy(d_rebuilt).T @ torch.from_numpy(parents)
        d_b1, d_b2 = torch.from_numpy(d_parents.sum(0)), torch.from_numpy(d_rebuilt.sum(0))
        context.pool.give(space)
        context.space = None
        return None, d_w1, d_b1, d_w2, d_b2, None, None, None
