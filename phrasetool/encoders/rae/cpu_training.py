"""The recursive auto-encoder for training on CPU: forward with the scoring kernels, backward through their nodes.

Nodes that several phrases of a batch share are computed once in both directions; their gradients add up.  The
backward pass is that of `module` (trees held fixed), and the tests hold the two against each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from phrasetool.encoders.dense_kernels import GROUP, affine, pack, project, tanh_all
from phrasetool.encoders.rae.kernels import Nodes, TreeWeights, build_trees, compute_nodes, enter_words, intern
from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases

_ONE = np.float32(1.0)


@kernel
def _find_roots(offsets: Int64Array, items: Int32Array, lengths: Int64Array, nodes: Nodes) -> Int64Array:
    """The root node of every phrase, -1 for a phrase without words."""
    roots = np.full(len(lengths), -1, np.int64)
    for i in range(len(lengths)):
        start = offsets[i]
        if lengths[i] == 1:
            roots[i] = items[start]
        elif lengths[i] == 2:
            roots[i] = intern(items[start], items[start + 1], nodes)
    return roots


@kernel
def _collect_roots(roots: Int64Array, nodes: Nodes, out_vectors: FloatArray, out_errors: FloatArray) -> None:
    """Root vectors, and E_rec of every phrase: the sum over the nodes of its tree (Eq. 5)."""
    count, children = nodes.state[0], nodes.children
    totals = np.zeros(count, np.float32)
    for node in range(count):
        if children[node, 0] >= 0:
            totals[node] = nodes.errors[node] + totals[children[node, 0]] + totals[children[node, 1]]
    for i in range(len(roots)):
        if roots[i] >= 0:
            out_errors[i] = totals[roots[i]]
            out_vectors[i] = nodes.vectors[roots[i]]


@kernel
def _order_used(
    roots: Int64Array, children: Int32Array, d_errors: FloatArray, weights: FloatArray
) -> tuple[Int64Array, Int64Array]:
    """Parents used by some tree, highest first, and where each height begins; weights[node] = its share of dE_rec."""
    count = len(weights)
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
    pairs: FloatArray,
    parents: FloatArray,
    weights: FloatArray,
    reconstruct: FloatArray,
    reconstruct_bias: FloatArray,
    reconstruct_back: FloatArray,
    d_rebuilt: FloatArray,
    d_pairs: FloatArray,
    d_parents: FloatArray,
) -> None:
    """Gradients of E_rec (Eq. 3, 4) at every used parent; d_parents gets the part that flows through W2."""
    n = parents.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, reconstruct.shape[1]), np.float32)
    d = np.zeros((GROUP, 2 * n), np.float32)
    back = np.zeros((GROUP, reconstruct_back.shape[1]), np.float32)
    zero = np.zeros(reconstruct_back.shape[1], np.float32)
    for first in range(0, len(parents), GROUP):
        used = min(GROUP, len(parents) - first)
        for g in range(used):
            x[g] = parents[first + g]
        affine(reconstruct, reconstruct_bias, x, y)
        tanh_all(y)
        for g in range(used):
            k = first + g
            for i in range(2 * n):
                difference = (pairs[k, i] - y[g, i]) * weights[k]
                d_pairs[k, i] = difference
                d[g, i] = -difference * (_ONE - y[g, i] * y[g, i])
                d_rebuilt[k, i] = d[g, i]
        affine(reconstruct_back, zero, d, back)
        for g in range(used):
            d_parents[first + g] = back[g, :n]


@kernel
def _back_through_composition(
    order: Int64Array,
    starts: Int64Array,
    children: Int32Array,
    parents: FloatArray,
    compose_back: FloatArray,
    gradient: FloatArray,
    d_pairs: FloatArray,
    d_parents: FloatArray,
) -> None:
    """From the roots to the words (Eq. 2); nodes of one height do not depend on each other."""
    n = parents.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, compose_back.shape[1]), np.float32)
    zero = np.zeros(compose_back.shape[1], np.float32)
    for level in range(len(starts) - 1):
        for first in range(starts[level], starts[level + 1], GROUP):
            used = min(GROUP, starts[level + 1] - first)
            for g in range(used):
                k = first + g
                node = order[k]
                for i in range(n):
                    x[g, i] = (gradient[node, i] + d_parents[k, i]) * (_ONE - parents[k, i] * parents[k, i])
                    d_parents[k, i] = x[g, i]
            affine(compose_back, zero, x, y)
            for g in range(used):
                k = first + g
                left, right = children[order[k], 0], children[order[k], 1]
                for i in range(n):
                    gradient[left, i] += y[g, i] + d_pairs[k, i]
                for i in range(n):
                    gradient[right, i] += y[g, n + i] + d_pairs[k, n + i]


@kernel
def _scatter_roots(roots: Int64Array, d_roots: FloatArray, gradient: FloatArray) -> None:
    for i in range(len(roots)):
        if roots[i] >= 0:
            for k in range(d_roots.shape[1]):
                gradient[roots[i], k] += d_roots[i, k]


class NodesPool:
    """Nodes to use again; they are out between the forward and the backward pass of a batch."""

    def __init__(self) -> None:
        self._free: list[Nodes] = []

    def take(self, words: int, vocabulary: int, n: int) -> Nodes:
        """No nodes, with room for a batch of so many words."""
        needed = 4 * words + GROUP
        while self._free:
            nodes = self._free.pop()
            if len(nodes.vectors) >= needed:
                return nodes
        return Nodes.with_room(max(needed, 1 << 13), vocabulary, n)

    def give(self, nodes: Nodes) -> None:
        """Take nodes back."""
        nodes.forget()
        self._free.append(nodes)


class WordGradient:
    """The gradient of the word vectors, in one tensor used over and over.

    A batch has a small part of the vocabulary.  A new gradient for every batch, made of zeros and then copied by
    autograd, would take a quarter of the time of training.
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
        pool: NodesPool,
        word_gradient: WordGradient,
    ) -> tuple[Tensor, Tensor]:
        """Encode, keeping the nodes for the way back."""
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
        roots = _find_roots(phrases.offsets, items, lengths, nodes)
        compute_nodes(before, nodes.state[0], nodes, weights)
        vectors = np.zeros((len(phrases), n), np.float32)
        errors = np.zeros(len(phrases), np.float32)
        _collect_roots(roots, nodes, vectors, errors)
        context.save_for_backward(w1, w2)
        context.word_vectors, context.word_gradient = word_vectors, word_gradient
        context.nodes, context.pool = nodes, pool
        context.words, context.roots, context.weights = words, roots, weights
        return torch.from_numpy(vectors), torch.from_numpy(errors)

    @staticmethod
    def backward(context: Any, d_roots: Tensor, d_errors: Tensor) -> Any:  # type: ignore[override]
        """Gradients of everything that forward was given."""
        w1, w2 = context.saved_tensors
        nodes: Nodes = context.nodes
        roots, words = context.roots, context.words
        n = w1.shape[0]
        count = int(nodes.state[0])
        weights = np.zeros(count, np.float32)
        order, starts = _order_used(roots, nodes.children, np.ascontiguousarray(d_errors.numpy(), np.float32), weights)
        pairs, parents = nodes.vectors[nodes.children[order]].reshape(-1, 2 * n), nodes.vectors[order]
        d_rebuilt, d_pairs, d_parents = np.empty_like(pairs), np.empty_like(pairs), np.empty_like(parents)
        _back_through_errors(
            pairs, parents, weights[order], context.weights.reconstruct, context.weights.reconstruct_bias,
            pack(w2.detach().numpy().T), d_rebuilt, d_pairs, d_parents,
        )  # fmt: skip
        gradient = np.zeros((count, n), np.float32)
        _scatter_roots(roots, np.ascontiguousarray(d_roots.numpy(), np.float32), gradient)
        _back_through_composition(
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
