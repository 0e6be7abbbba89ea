"""Compiled stochastic gradient descent for the recursive auto-encoder with the max-margin loss (Eq. 10 to 16).

At the small batches that this method needs, calls of tensor operations would take most of the time; here a batch is a
single pass of plain loops.  Every matrix is kept in both layouts, so that each inner loop runs along a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phrasetool.kernels.jit import borrowing_float_kernel, kernel
from phrasetool.phrase_encoder.dense_kernels import tanh
from phrasetool.phrases import FloatArray, Int32Array, Int64Array

# Rows of a matrix that a product adds at a time: the sums are loaded and stored once for all of them.
_UNROLLED = 4
_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)


class SgdMatrices(NamedTuple):
    """The parameters that all phrases share, updated in place; n is the dimension.

    Attributes:
        compose, compose_turned: W1, shape (n, 2n), and its transpose, shape (2n, n).
        compose_bias: b1, shape (n,).
        reconstruct, reconstruct_turned: W2, shape (2n, n), and its transpose, shape (n, 2n).
        reconstruct_bias: b2, shape (2n,).
        transform, transform_turned: Wl and its transpose, shape (n, n).
        transform_bias: bl, shape (n,).
    """

    compose: FloatArray
    compose_turned: FloatArray
    compose_bias: FloatArray
    reconstruct: FloatArray
    reconstruct_turned: FloatArray
    reconstruct_bias: FloatArray
    transform: FloatArray
    transform_turned: FloatArray
    transform_bias: FloatArray


class PartnerVectors(NamedTuple):
    """Vectors of the other language, which are constants.

    Attributes:
        true, corrupted: vectors of distinct phrases, shape (P, n): partners, and partners with random words.
        true_rows, corrupted_rows: int64, shape (N,): the row of each pair; if empty, the encoder is trained alone, and
            its transformation does not change.
    """

    true: FloatArray
    true_rows: Int64Array
    corrupted: FloatArray
    corrupted_rows: Int64Array


class SgdRates(NamedTuple):
    """Scalars of an update, of the type of the parameters.

    Attributes:
        reconstruction: weight of E_rec in the objective.
        semantic: weight of the semantic error.
        margin: margin of the max-margin loss.
        word_step, matrix_step, transform_step: step sizes of a pair.
        word_decay, matrix_decay, transform_decay: step sizes times L2 weights.
    """

    reconstruction: np.float32
    semantic: np.float32
    margin: np.float32
    word_step: np.float32
    matrix_step: np.float32
    transform_step: np.float32
    word_decay: np.float32
    matrix_decay: np.float32
    transform_decay: np.float32


class _BatchRecord(NamedTuple):
    """Gradients of a batch as factors: a weight matrix has the gradient sum of outer(slopes[r], inputs[r]).

    Attributes:
        pairs, parents: children, shape (R, 2n), and vectors, shape (R, n), of the merged nodes.
        compose_slopes, reconstruct_slopes: gradients before the tanh, shapes (R, n) and (R, 2n).
        roots, transform_slopes: vectors, and gradients before the tanh of the transformation, of the phrases with a
            semantic gradient, shape (R, n).
        words: int64, shape (R,).
        word_gradients: shape (R, n).
        counts: int64, shape (3,): number of rows in use for nodes, roots and words.
    """

    pairs: FloatArray
    parents: FloatArray
    compose_slopes: FloatArray
    reconstruct_slopes: FloatArray
    roots: FloatArray
    transform_slopes: FloatArray
    words: Int64Array
    word_gradients: FloatArray
    counts: Int64Array


class _Tree(NamedTuple):
    """Nodes of one phrase: its words first, then every candidate for a merge.

    Attributes:
        vectors, rebuilt, errors: shapes (M, n), (M, 2n) and (M,).
        children: int64, shape (M, 2).
        gradients: gradients of the vectors, shape (M, n).
        items: int64, nodes that are not merged yet, in order.
        candidates: int64, the node that would replace items j and j + 1.
        merged: int64, nodes in the order of the merges.
    """

    vectors: FloatArray
    rebuilt: FloatArray
    errors: FloatArray
    children: Int64Array
    gradients: FloatArray
    items: Int64Array
    candidates: Int64Array
    merged: Int64Array


@borrowing_float_kernel
def _add_product(rows: FloatArray, weights: FloatArray, sums: FloatArray) -> None:
    """Add weights @ rows to sums, a few rows at a time, always in the same order."""
    whole = len(weights) - len(weights) % _UNROLLED
    for k in range(0, whole, _UNROLLED):
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in range(len(sums)):
            sums[i] = (((sums[i] + a * rows[k, i]) + b * rows[k + 1, i]) + c * rows[k + 2, i]) + d * rows[k + 3, i]
    for k in range(whole, len(weights)):
        for i in range(len(sums)):
            sums[i] += weights[k] * rows[k, i]


@borrowing_float_kernel
def _update_matrix(
    matrix: FloatArray, scale: float, step: float, outputs: FloatArray, inputs: FloatArray, count: int
) -> None:
    """Compute matrix = scale * matrix - step * sum of outer(outputs[r], inputs[r])."""
    for i in range(matrix.shape[0]):
        row = matrix[i]
        if count == 0:
            for k in range(len(row)):
                row[k] = scale * row[k]
        for r in range(count):
            weight = outputs[r, i]
            if r == 0:
                for k in range(len(row)):
                    row[k] = scale * row[k] - step * (weight * inputs[r, k])
            else:
                for k in range(len(row)):
                    row[k] -= step * (weight * inputs[r, k])


@borrowing_float_kernel
def _update_bias(bias: FloatArray, scale: float, step: float, slopes: FloatArray, count: int) -> None:
    for i in range(len(bias)):
        bias[i] *= scale
    for r in range(count):
        for i in range(len(bias)):
            bias[i] -= step * slopes[r, i]


@borrowing_float_kernel
def _compute_node(node: int, left: int, right: int, tree: _Tree, matrices: SgdMatrices) -> None:
    """Compute the parent of two nodes and its reconstruction error (Eq. 2 to 4)."""
    n = tree.vectors.shape[1]
    parent, rebuilt = tree.vectors[node], tree.rebuilt[node]
    tree.children[node, 0], tree.children[node, 1] = left, right
    for i in range(n):
        parent[i] = matrices.compose_bias[i]
    _add_product(matrices.compose_turned[:n], tree.vectors[left], parent)
    _add_product(matrices.compose_turned[n:], tree.vectors[right], parent)
    for i in range(n):
        parent[i] = tanh(parent[i])
    for i in range(2 * n):
        rebuilt[i] = matrices.reconstruct_bias[i]
    _add_product(matrices.reconstruct_turned, parent, rebuilt)
    for i in range(2 * n):
        rebuilt[i] = tanh(rebuilt[i])
    total = _ZERO * rebuilt[0]
    for i in range(n):
        difference = tree.vectors[left, i] - rebuilt[i]
        total += difference * difference
    for i in range(n):
        difference = tree.vectors[right, i] - rebuilt[n + i]
        total += difference * difference
    tree.errors[node] = _HALF * total


@borrowing_float_kernel
def _build_tree(words: Int32Array, vectors: FloatArray, tree: _Tree, matrices: SgdMatrices) -> int:
    """Repeatedly merge the adjacent pair with the smallest error, the leftmost on a tie; return the root."""
    n, count = vectors.shape[1], len(words)
    for j in range(count):
        tree.items[j] = j
        for i in range(n):
            tree.vectors[j, i] = vectors[words[j], i]
    if count == 0:
        # The vector of an empty phrase is zero.
        tree.items[0] = 0
        for i in range(n):
            tree.vectors[0, i] = _ZERO
    node = count
    for j in range(count - 1):
        _compute_node(node, j, j + 1, tree, matrices)
        tree.candidates[j] = node
        node += 1
    for step in range(len(words) - 1):
        best = 0
        for j in range(1, count - 1):
            if tree.errors[tree.candidates[j]] < tree.errors[tree.candidates[best]]:
                best = j
        tree.merged[step] = tree.candidates[best]
        tree.items[best] = tree.candidates[best]
        for j in range(best + 1, count - 1):
            tree.items[j] = tree.items[j + 1]
        for j in range(best, count - 2):
            tree.candidates[j] = tree.candidates[j + 1]
        count -= 1
        for j in range(max(best - 1, 0), min(best + 1, count - 1)):
            _compute_node(node, tree.items[j], tree.items[j + 1], tree, matrices)
            tree.candidates[j] = node
            node += 1
    root: int = tree.items[0]
    return root


@borrowing_float_kernel
def _semantic_gradient(
    root: int,
    pair: int,
    tree: _Tree,
    matrices: SgdMatrices,
    partners: PartnerVectors,
    rates: SgdRates,
    record: _BatchRecord,
) -> float:
    """Return the max-margin error of a phrase (Eq. 12), and add its gradient to that of the root."""
    n = tree.vectors.shape[1]
    row = record.counts[1]
    true, corrupted = partners.true[partners.true_rows[pair]], partners.corrupted[partners.corrupted_rows[pair]]
    slopes = record.transform_slopes[row]
    for i in range(n):
        slopes[i] = matrices.transform_bias[i]
    _add_product(matrices.transform_turned, tree.vectors[root], slopes)
    right, wrong = _ZERO * slopes[0], _ZERO * slopes[0]
    for i in range(n):
        slopes[i] = tanh(slopes[i])
        right += (true[i] - slopes[i]) * (true[i] - slopes[i])
        wrong += (corrupted[i] - slopes[i]) * (corrupted[i] - slopes[i])
    loss: float = _HALF * (right - wrong) + rates.margin
    if loss <= _ZERO:
        return 0.0
    for i in range(n):
        record.roots[row, i] = tree.vectors[root, i]
        slopes[i] = rates.semantic * (corrupted[i] - true[i]) * (_ONE - slopes[i] * slopes[i])
    _add_product(matrices.transform, slopes, tree.gradients[root])
    record.counts[1] += 1
    return loss


@borrowing_float_kernel
def _back_propagate(words: Int32Array, tree: _Tree, matrices: SgdMatrices, weight: float, record: _BatchRecord) -> None:
    """Compute the gradients of a phrase's nodes and words, with the tree held fixed."""
    n = tree.vectors.shape[1]
    for step in range(len(words) - 2, -1, -1):
        node = tree.merged[step]
        left, right = tree.children[node, 0], tree.children[node, 1]
        parent, rebuilt, gradient = tree.vectors[node], tree.rebuilt[node], tree.gradients[node]
        row = record.counts[0]
        record.counts[0] += 1
        pair, compose_slopes = record.pairs[row], record.compose_slopes[row]
        reconstruct_slopes = record.reconstruct_slopes[row]
        for i in range(n):
            pair[i], pair[n + i] = tree.vectors[left, i], tree.vectors[right, i]
            record.parents[row, i] = parent[i]
        for i in range(2 * n):
            difference = weight * (pair[i] - rebuilt[i])
            reconstruct_slopes[i] = -difference * (_ONE - rebuilt[i] * rebuilt[i])
            # From here on, only the difference is needed.
            rebuilt[i] = difference
        _add_product(matrices.reconstruct, reconstruct_slopes, gradient)
        for i in range(n):
            compose_slopes[i] = gradient[i] * (_ONE - parent[i] * parent[i])
        _add_product(matrices.compose, compose_slopes, rebuilt)
        for i in range(n):
            tree.gradients[left, i] += rebuilt[i]
            tree.gradients[right, i] += rebuilt[n + i]
    for j in range(len(words)):
        row = record.counts[2]
        record.counts[2] += 1
        record.words[row] = words[j]
        for i in range(n):
            record.word_gradients[row, i] = tree.gradients[j, i]


@borrowing_float_kernel
def _update_words(
    offsets: Int64Array,
    words: Int32Array,
    first: int,
    last: int,
    vectors: FloatArray,
    rates: SgdRates,
    record: _BatchRecord,
    uses: Int64Array,
) -> None:
    """Shrink the vectors of each pair's distinct words, then subtract gradients; `uses` is zero before and after."""
    for pair in range(first, last):
        for k in range(offsets[pair], offsets[pair + 1]):
            new = 1
            for j in range(offsets[pair], k):
                if words[j] == words[k]:
                    new = 0
            uses[words[k]] += new
    for k in range(offsets[first], offsets[last]):
        if uses[words[k]]:
            scale = _ONE - np.float32(uses[words[k]]) * rates.word_decay
            uses[words[k]] = 0
            row = vectors[words[k]]
            for i in range(len(row)):
                row[i] *= scale
    for r in range(record.counts[2]):
        row = vectors[record.words[r]]
        for i in range(len(row)):
            row[i] -= rates.word_step * record.word_gradients[r, i]


@borrowing_float_kernel
def _update_all(pairs: int, matrices: SgdMatrices, rates: SgdRates, semantic: bool, record: _BatchRecord) -> None:
    """Update matrices and biases, in both layouts."""
    nodes, roots = record.counts[0], record.counts[1]
    scale, step = _ONE - np.float32(pairs) * rates.matrix_decay, rates.matrix_step
    _update_matrix(matrices.compose, scale, step, record.compose_slopes, record.pairs, nodes)
    _update_matrix(matrices.compose_turned, scale, step, record.pairs, record.compose_slopes, nodes)
    _update_bias(matrices.compose_bias, scale, step, record.compose_slopes, nodes)
    _update_matrix(matrices.reconstruct, scale, step, record.reconstruct_slopes, record.parents, nodes)
    _update_matrix(matrices.reconstruct_turned, scale, step, record.parents, record.reconstruct_slopes, nodes)
    _update_bias(matrices.reconstruct_bias, scale, step, record.reconstruct_slopes, nodes)
    if semantic:
        scale, step = _ONE - np.float32(pairs) * rates.transform_decay, rates.transform_step
        _update_matrix(matrices.transform, scale, step, record.transform_slopes, record.roots, roots)
        _update_matrix(matrices.transform_turned, scale, step, record.roots, record.transform_slopes, roots)
        _update_bias(matrices.transform_bias, scale, step, record.transform_slopes, roots)


@kernel
def run_sgd(
    offsets: Int64Array,
    words: Int32Array,
    batch_size: int,
    vectors: FloatArray,
    matrices: SgdMatrices,
    partners: PartnerVectors,
    rates: SgdRates,
) -> tuple[float, float]:
    """Update the parameters of one language on N phrases, batch by batch.

    Args:
        offsets, words: the phrases, as in `Phrases`.
        batch_size: pairs per update; their gradients are summed.
        vectors: word vectors, shape (V, n), updated in place.
        matrices: updated in place.
        partners: vectors of the other language.
        rates: step sizes and weights.

    Returns:
        The sums of E_rec and of the max-margin error, under the parameters that each batch was computed with.
    """
    count, n = len(offsets) - 1, vectors.shape[1]
    longest, most = 0, 0
    for pair in range(count):
        longest = max(longest, offsets[pair + 1] - offsets[pair])
    for pair in range(0, count, batch_size):
        most = max(most, offsets[min(pair + batch_size, count)] - offsets[pair])
    # Words, first candidates, and at most two new candidates after a merge.
    room = 4 * longest + 1
    tree = _Tree(
        np.zeros((room, n), vectors.dtype), np.zeros((room, 2 * n), vectors.dtype), np.zeros(room, vectors.dtype),
        np.zeros((room, 2), np.int64), np.zeros((room, n), vectors.dtype), np.zeros(room, np.int64),
        np.zeros(room, np.int64), np.zeros(room, np.int64),
    )  # fmt: skip
    record = _BatchRecord(
        np.zeros((most, 2 * n), vectors.dtype), np.zeros((most, n), vectors.dtype),
        np.zeros((most, n), vectors.dtype), np.zeros((most, 2 * n), vectors.dtype),
        np.zeros((batch_size, n), vectors.dtype), np.zeros((batch_size, n), vectors.dtype),
        np.zeros(most, np.int64), np.zeros((most, n), vectors.dtype), np.zeros(3, np.int64),
    )  # fmt: skip
    uses = np.zeros(len(vectors), np.int64)
    with_partners = len(partners.true_rows) > 0
    reconstruction, semantic = 0.0, 0.0
    for first in range(0, count, batch_size):
        last = min(first + batch_size, count)
        record.counts[:] = 0
        for pair in range(first, last):
            phrase = words[offsets[pair] : offsets[pair + 1]]
            root = _build_tree(phrase, vectors, tree, matrices)
            tree.gradients[: 4 * len(phrase) + 1] = 0
            for step in range(len(phrase) - 1):
                reconstruction += tree.errors[tree.merged[step]]
            if with_partners:
                semantic += _semantic_gradient(root, pair, tree, matrices, partners, rates, record)
            _back_propagate(phrase, tree, matrices, rates.reconstruction, record)
        _update_words(offsets, words, first, last, vectors, rates, record, uses)
        _update_all(last - first, matrices, rates, with_partners, record)
    return reconstruction, semantic
