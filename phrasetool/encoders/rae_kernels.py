"""Kernels of the recursive auto-encoder on CPU: nodes, trees, roots.

A *node* is a word or a pair of nodes.  Nodes are interned: the same pair of children is the same node, its vector, its
reconstruction error and its products with W1 are computed once, however many phrases use it.  Children always have
smaller numbers than their parents.  Nodes are computed in rounds (all missing candidates of a batch of phrases, then
one merge in each phrase, and so on), four at a time, which turns almost all arithmetic into small matrix products.

What a node holds depends on its children alone, and sums are always taken in the same order, so a phrase has the
same vector to the last bit whatever is encoded beside it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.jit import kernel
from phrasetool.phrases import FloatArray

_ONE = np.float32(1.0)
_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)
# tanh(x) = x P(x^2) / Q(x^2) on [-7.9, 7.9]: a minimax fit made for this file (weighted least squares on Chebyshev
# nodes).  Largest error 5e-9 in exact arithmetic, 3.3e-7 in float32; beyond 7.9 tanh is 1 to within 3e-7.
_LIMIT = np.float32(7.9)
_P1 = np.float32(1.344445204e-01)
_P2 = np.float32(3.571696393e-03)
_P3 = np.float32(2.190342390e-05)
_P4 = np.float32(1.525969262e-08)
_Q1 = np.float32(4.677777421e-01)
_Q2 = np.float32(2.616441426e-02)
_Q3 = np.float32(3.411743718e-04)
_Q4 = np.float32(8.530552096e-07)

# Rows of the packed matrices are padded to this many floats, so that vector loops have no scalar remainder.
PAD = 16
# Vectors that go through a matrix product together; they share the loads of the matrix.
GROUP = 4


@kernel
def _tanh(x: float) -> float:
    x = _LIMIT if x > _LIMIT else x
    x = -_LIMIT if x < -_LIMIT else x
    u = x * x
    p = (((_P4 * u + _P3) * u + _P2) * u + _P1) * u + _ONE
    q = (((_Q4 * u + _Q3) * u + _Q2) * u + _Q1) * u + _ONE
    return x * p / q


@kernel
def affine(weights: FloatArray, bias: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """y[g] = bias + weights^T x[g] for g in 0..3; weights (inputs, padded outputs), x (4, inputs)."""
    inputs, outputs = weights.shape
    for g in range(GROUP):
        for o in range(outputs):
            y[g, o] = bias[o]
    whole = inputs - inputs % 4
    for k in range(0, whole, 4):
        a0, a1, a2, a3 = x[0, k], x[0, k + 1], x[0, k + 2], x[0, k + 3]
        b0, b1, b2, b3 = x[1, k], x[1, k + 1], x[1, k + 2], x[1, k + 3]
        c0, c1, c2, c3 = x[2, k], x[2, k + 1], x[2, k + 2], x[2, k + 3]
        d0, d1, d2, d3 = x[3, k], x[3, k + 1], x[3, k + 2], x[3, k + 3]
        for o in range(outputs):
            w0, w1, w2, w3 = weights[k, o], weights[k + 1, o], weights[k + 2, o], weights[k + 3, o]
            y[0, o] = (((y[0, o] + a0 * w0) + a1 * w1) + a2 * w2) + a3 * w3
            y[1, o] = (((y[1, o] + b0 * w0) + b1 * w1) + b2 * w2) + b3 * w3
            y[2, o] = (((y[2, o] + c0 * w0) + c1 * w1) + c2 * w2) + c3 * w3
            y[3, o] = (((y[3, o] + d0 * w0) + d1 * w1) + d2 * w2) + d3 * w3
    for k in range(whole, inputs):
        a0, b0, c0, d0 = x[0, k], x[1, k], x[2, k], x[3, k]
        for o in range(outputs):
            w0 = weights[k, o]
            y[0, o] += a0 * w0
            y[1, o] += b0 * w0
            y[2, o] += c0 * w0
            y[3, o] += d0 * w0


@kernel
def tanh_all(x: FloatArray) -> None:
    """In place, on a contiguous matrix."""
    flat = x.reshape(x.size)
    for i in range(len(flat)):
        flat[i] = _tanh(flat[i])


@kernel
def _sum(buffer: FloatArray) -> float:
    """The sum of a buffer whose length is a power of two, by halves; destroys it."""
    half = len(buffer) // 2
    while half > 0:
        for i in range(half):
            buffer[i] += buffer[half + i]
        half //= 2
    return buffer[0]


@kernel
def compute_products(
    wanted: npt.NDArray[np.int64],
    count: int,
    vectors: FloatArray,
    products: FloatArray,
    packed_compose: FloatArray,
) -> None:
    """products[i] = [W1_left v; W1_right v] for the vectors v at wanted[:count], four at a time."""
    n = vectors.shape[1]
    outputs = packed_compose.shape[1]
    bias = np.zeros(outputs, np.float32)
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, outputs), np.float32)
    for first in range(0, count, GROUP):
        used = min(GROUP, count - first)
        for g in range(used):
            node = wanted[first + g]
            for i in range(n):
                x[g, i] = vectors[node, i]
        affine(packed_compose, bias, x, y)
        for g in range(used):
            node = wanted[first + g]
            for i in range(2 * n):
                products[node, i] = y[g, i]


@kernel
def _parent(left: int, right: int, products: FloatArray, bias: FloatArray, g: int, x: FloatArray) -> None:
    """Eq. 2 from the products of the children: x[g] = f(left + right + b1)."""
    n = x.shape[1]
    for i in range(n):
        x[g, i] = _tanh(products[left, i] + products[right, n + i] + bias[i])


@kernel
def compute_nodes(
    first: int,
    last: int,
    children: npt.NDArray[np.int32],
    vectors: FloatArray,
    products: FloatArray,
    errors: FloatArray,
    compose_bias: FloatArray,
    packed_reconstruct: FloatArray,
    packed_reconstruct_bias: FloatArray,
) -> None:
    """Vectors (Eq. 2) and reconstruction errors (Eq. 3, 4) of the nodes first..last-1 that have children."""
    n = vectors.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, packed_reconstruct.shape[1]), np.float32)
    length = 2
    while length < 2 * n:
        length *= 2
    squares = np.zeros(length, np.float32)
    group = np.zeros(GROUP, np.int64)
    start = first
    while start < last:
        used = 0
        while start < last and used < GROUP:
            if children[start, 0] >= 0:
                group[used] = start
                used += 1
            start += 1
        for g in range(used):
            node = group[g]
            _parent(children[node, 0], children[node, 1], products, compose_bias, g, x)
            for i in range(n):
                vectors[node, i] = x[g, i]
        affine(packed_reconstruct, packed_reconstruct_bias, x, y)
        tanh_all(y)
        for g in range(used):
            node = group[g]
            left, right = children[node, 0], children[node, 1]
            for i in range(n):
                d = vectors[left, i] - y[g, i]
                squares[i] = d * d
            for i in range(n):
                d = vectors[right, i] - y[g, n + i]
                squares[n + i] = d * d
            for i in range(2 * n, length):
                squares[i] = _ZERO
            errors[node] = _HALF * _sum(squares)


@kernel
def intern(
    left: int,
    right: int,
    children: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> int:
    """The node with these children; a new one is counted in state[0] and computed later."""
    mask = len(slots) - 1
    h = (np.uint64(left) << np.uint64(32) | np.uint64(right)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((h >> np.uint64(32)) & np.uint64(mask))
    while True:
        node = np.int64(slots[place])
        if node < 0:
            break
        if children[node, 0] == left and children[node, 1] == right:
            return node
        place = (place + 1) & mask
    node = state[0]
    state[0] = node + 1
    slots[place] = node
    children[node, 0] = left
    children[node, 1] = right
    return node


@kernel
def enter_words(
    words: npt.NDArray[np.int32],
    word_vectors: FloatArray,
    word_products: FloatArray,
    vectors: FloatArray,
    products: FloatArray,
    children: npt.NDArray[np.int32],
    has_products: npt.NDArray[np.uint8],
    word_nodes: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """The node of each word; a word met for the first time is copied in (its products too, if they are given)."""
    n = vectors.shape[1]
    items = np.empty(len(words), np.int32)
    for position in range(len(words)):
        word = words[position]
        node = np.int64(word_nodes[word])
        if node < 0:
            node = state[0]
            state[0] = node + 1
            word_nodes[word] = node
            children[node, 0] = -1
            children[node, 1] = -1
            has_products[node] = 1
            for i in range(n):
                vectors[node, i] = word_vectors[word, i]
            if len(word_products) > 0:
                for i in range(2 * n):
                    products[node, i] = word_products[word, i]
        items[position] = node
    return items


@kernel
def _first_candidates(
    offsets: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    candidates: npt.NDArray[np.int32],
    active: npt.NDArray[np.int64],
    children: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> int:
    """Intern the adjacent pairs of every phrase of three words or more; return how many such phrases there are."""
    count = 0
    previous, previous_end = np.int64(0), np.int64(0)
    for i in range(len(offsets) - 1):
        start, end = offsets[i], offsets[i + 1]
        if end - start < 3:
            continue
        active[count] = i
        count += 1
        # Neighbours in a table mostly begin with the same words, so their first pairs are the same.
        j = start
        limit = min(end, start + previous_end - previous)
        while j < limit and items[j] == items[previous + j - start]:
            j += 1
        shared = j
        for j in range(start, shared - 1):
            candidates[j] = candidates[previous + j - start]
        for j in range(max(start, shared - 1), end - 1):
            candidates[j] = intern(items[j], items[j + 1], children, slots, state)
        previous, previous_end = start, end
    return count


@kernel
def _merge_best(
    n_active: int,
    active: npt.NDArray[np.int64],
    best: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    candidates: npt.NDArray[np.int32],
    children: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> int:
    """Replace the chosen pair of each active phrase by its node; return how many phrases still have three items."""
    still = 0
    for a in range(n_active):
        i = active[a]
        j = best[a]
        start = offsets[i]
        lengths[i] -= 1
        end = start + lengths[i]
        items[j] = candidates[j]
        for m in range(j + 1, end):
            items[m] = items[m + 1]
        if lengths[i] > 2:
            for m in range(j, end - 1):
                candidates[m] = candidates[m + 1]
            if j > start:
                candidates[j - 1] = intern(items[j - 1], items[j], children, slots, state)
            if j < end - 1:
                candidates[j] = intern(items[j], items[j + 1], children, slots, state)
            active[still] = i
            still += 1
    return still


@kernel
def build_trees(
    offsets: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    computed: int,
    packed_reconstruct: FloatArray,
    packed_reconstruct_bias: FloatArray,
    packed_compose: FloatArray,
    compose_bias: FloatArray,
    vectors: FloatArray,
    products: FloatArray,
    errors: FloatArray,
    children: npt.NDArray[np.int32],
    has_products: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Merge greedily until every phrase has at most two items; return how many they are.

    `items` holds the word nodes of the phrases and is changed in place; nodes below `computed` are complete.
    """
    phrases = len(offsets) - 1
    lengths = offsets[1:] - offsets[:-1]
    candidates = np.empty(len(items), np.int32)
    active = np.empty(phrases, np.int64)
    best = np.empty(phrases, np.int64)
    wanted = np.empty(phrases, np.int64)
    n_active = _first_candidates(offsets, items, candidates, active, children, slots, state)
    while n_active > 0:
        compute_nodes(
            computed, state[0], children, vectors, products, errors, compose_bias,
            packed_reconstruct, packed_reconstruct_bias,
        )  # fmt: skip
        computed = state[0]
        n_wanted = 0
        for a in range(n_active):
            i = active[a]
            choice = offsets[i]
            lowest = errors[candidates[choice]]
            for j in range(choice + 1, offsets[i] + lengths[i] - 1):
                error = errors[candidates[j]]
                if error < lowest:
                    choice = j
                    lowest = error
            best[a] = choice
            node = candidates[choice]
            if has_products[node] == 0:
                has_products[node] = 1
                wanted[n_wanted] = node
                n_wanted += 1
        compute_products(wanted, n_wanted, vectors, products, packed_compose)
        n_active = _merge_best(n_active, active, best, offsets, lengths, items, candidates, children, slots, state)
    return lengths


@kernel
def _normalise(rows: FloatArray, row: int, buffer: FloatArray) -> None:
    """Scale a row to length one; a zero vector stays zero, so that its cosine is 0."""
    n = rows.shape[1]
    for i in range(n):
        buffer[i] = rows[row, i] * rows[row, i]
    for i in range(n, len(buffer)):
        buffer[i] = _ZERO
    square = _sum(buffer)
    if square > _ZERO:
        scale = _ONE / np.sqrt(square)
        for i in range(n):
            rows[row, i] *= scale


@kernel
def finish(
    offsets: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    vectors: FloatArray,
    products: FloatArray,
    compose_bias: FloatArray,
    packed_transform: FloatArray,
    packed_transform_bias: FloatArray,
    unit: bool,
    encoded: FloatArray,
    transformed: FloatArray,
) -> None:
    """The root of every phrase, and its transformation into the other language's space (Eq. 9)."""
    n = vectors.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, packed_transform.shape[1]), np.float32)
    length = 2
    while length < n:
        length *= 2
    buffer = np.zeros(length, np.float32)
    phrases = len(lengths)
    for first in range(0, phrases, GROUP):
        used = min(GROUP, phrases - first)
        for g in range(used):
            i = first + g
            start = offsets[i]
            if lengths[i] == 0:
                for k in range(n):
                    x[g, k] = _ZERO
            elif lengths[i] == 1:
                for k in range(n):
                    x[g, k] = vectors[items[start], k]
            else:
                _parent(items[start], items[start + 1], products, compose_bias, g, x)
            for k in range(n):
                encoded[i, k] = x[g, k]
        affine(packed_transform, packed_transform_bias, x, y)
        tanh_all(y)
        for g in range(used):
            i = first + g
            for k in range(n):
                transformed[i, k] = y[g, k] if lengths[i] > 0 else _ZERO
            if unit:
                _normalise(encoded, i, buffer)
                _normalise(transformed, i, buffer)
