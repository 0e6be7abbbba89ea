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

from phrasetool.encoders.dense_kernels import GROUP, affine, normalise, sum_buffer, tanh, tanh_all, total
from phrasetool.kernels.hashing import home
from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray

_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)


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
        x[g, i] = tanh(products[left, i] + products[right, n + i] + bias[i])


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
    squares = sum_buffer(2 * n)
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
            for i in range(2 * n, len(squares)):
                squares[i] = _ZERO
            errors[node] = _HALF * total(squares)


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
    place = home(np.uint64(left) << np.uint64(32) | np.uint64(right), len(slots))
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
    buffer = sum_buffer(n)
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
                normalise(encoded, i, buffer)
                normalise(transformed, i, buffer)
