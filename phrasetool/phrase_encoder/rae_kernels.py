"""The recursive auto-encoder on CPU: kernels of nodes, trees, roots and their gradients, and the packed parameters.

A *node* is a word or a pair of nodes.  Nodes are interned: the same pair of children is the same node, its vector, its
reconstruction error and its products with W1 are computed once, however many phrases use it.  Children always have
smaller numbers than their parents.  Nodes are computed in rounds (all missing candidates of a batch of phrases, then
one merge in each phrase, and so on), eight at a time, which turns almost all arithmetic into small matrix products.

The values of a node depend only on its children, and sums are always computed in the same order, so the vector of a
phrase is the same to the last bit whatever other phrases are encoded with it.

Phrases of a table overlap: `of the`, or the tree `(of the) house`, occurs in thousands of them.  Phrases are encoded in
batches of some thousand words, whose nodes are shared.  Keeping nodes for the next batch would save computing a third
of them, but no time: they would not stay in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import home
from phrasetool.kernels.instructions import prefetch
from phrasetool.kernels.jit import borrowing_float_kernel, borrowing_kernel, inner_kernel, kernel
from phrasetool.phrase_encoder.dense_kernels import (
    GROUP,
    affine,
    pack,
    pack_bias,
    project,
    tanh,
    tanh_all,
    total,
    transform,
)
from phrasetool.phrase_encoder.encoder import BatchedEncoder
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array

# Values per cache line, and the number of nodes or phrases that lines are prefetched ahead.
_LINE = 16
_AHEAD = 8

_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


class TreeWeights(NamedTuple):
    """W1, b1, W2 and b2, laid out for the kernels.

    Attributes:
        compose: [W1_left; W1_right], packed.
        compose_bias: b1.
        reconstruct, reconstruct_bias: W2 and b2, packed.
    """

    compose: FloatArray
    compose_bias: FloatArray
    reconstruct: FloatArray
    reconstruct_bias: FloatArray

    @classmethod
    def packed(cls, w1: FloatArray, b1: FloatArray, w2: FloatArray, b2: FloatArray) -> TreeWeights:
        """Pack the matrices and biases of the definition."""
        n = len(w1)
        return cls(pack(np.vstack([w1[:, :n], w1[:, n:]])), b1, pack(w2), pack_bias(b2))


class ScoringWeights(NamedTuple):
    """Further weights that scoring needs.

    Attributes:
        word_vectors: shape (V, n).
        word_products: [W1_left v; W1_right v] of each word vector v, shape (V, 2n).
        transform, transform_bias: transformation into the other language's space, packed.
    """

    word_vectors: FloatArray
    word_products: FloatArray
    transform: FloatArray
    transform_bias: FloatArray


class Nodes(NamedTuple):
    """Values of the nodes so far, in arrays with room for more.

    Attributes:
        vectors: shape (capacity, n).
        products: [W1_left v; W1_right v] of a vector v, shape (capacity, 2n), where `has_products` is 1.
        errors: reconstruction errors, shape (capacity,).
        children: shape (capacity, 2); -1 where the node is a word.
        has_products: shape (capacity,).
        slots: the hash table of the pairs.
        word_nodes: the node of every word of the vocabulary, or -1.
        state: number of nodes, shape (1,).
    """

    vectors: FloatArray
    products: FloatArray
    errors: FloatArray
    children: Int32Array
    has_products: npt.NDArray[np.uint8]
    slots: Int32Array
    word_nodes: Int32Array
    state: Int64Array

    @classmethod
    def with_room(cls, capacity: int, vocabulary: int, n: int) -> Nodes:
        """Return an empty set of nodes."""
        return cls(
            vectors=np.empty((capacity, n), np.float32),
            products=np.empty((capacity, 2 * n), np.float32),
            errors=np.empty(capacity, np.float32),
            children=np.empty((capacity, 2), np.int32),
            has_products=np.zeros(capacity, np.uint8),
            slots=np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32),
            word_nodes=np.full(vocabulary, -1, np.int32),
            state=np.zeros(1, np.int64),
        )

    def forget(self) -> None:
        """Forget all nodes."""
        self.slots.fill(-1)
        self.has_products.fill(0)
        self.word_nodes.fill(-1)
        self.state[0] = 0


@borrowing_float_kernel
def _parent(left: int, right: int, products: FloatArray, bias: FloatArray, row: int, out: FloatArray) -> None:
    """Compute Eq. 2 from the products of the children: out[row] = f(left + right + b1)."""
    n = out.shape[1]
    for i in range(n):
        out[row, i] = tanh(products[left, i] + products[right, n + i] + bias[i])


@borrowing_float_kernel
def _prefetch_children(left: int, right: int, products: FloatArray) -> None:
    """Prefetch what `_parent` reads of two children."""
    n = products.shape[1] // 2
    for i in range(0, n + _LINE, _LINE):
        prefetch(products, (left, i))
        prefetch(products, (right, n + i))


@borrowing_float_kernel
def _prefetch_vector(node: int, vectors: FloatArray) -> None:
    for i in range(0, vectors.shape[1] + _LINE, _LINE):
        prefetch(vectors, (node, i))


@kernel
def compute_nodes(first: int, last: int, nodes: Nodes, weights: TreeWeights) -> None:
    """Compute vectors (Eq. 2) and reconstruction errors (Eq. 3, 4) of the nodes first..last-1 that have children."""
    vectors, products, errors, children = nodes.vectors, nodes.products, nodes.errors, nodes.children
    reconstruct, reconstruct_bias, bias = weights.reconstruct, weights.reconstruct_bias, weights.compose_bias
    n = vectors.shape[1]
    outputs = reconstruct.shape[1]
    x = np.zeros((GROUP, n), np.float32)
    y = np.zeros((GROUP, outputs), np.float32)
    # The vectors of the children, concatenated and padded like their reconstructions.
    originals = np.zeros((GROUP, outputs), np.float32)
    group = np.zeros(GROUP, np.int64)
    start = first
    while start < last:
        used = 0
        while start < last and used < GROUP:
            if children[start, 0] >= 0:
                group[used] = start
                used += 1
            later = min(start + _AHEAD, last - 1)
            if children[later, 0] >= 0:
                left, right = children[later, 0], children[later, 1]
                _prefetch_children(left, right, products)
                _prefetch_vector(left, vectors)
                _prefetch_vector(right, vectors)
            start += 1
        for g in range(used):
            node = group[g]
            left, right = children[node, 0], children[node, 1]
            _parent(left, right, products, bias, g, x)
            for i in range(n):
                vectors[node, i] = x[g, i]
                originals[g, i] = vectors[left, i]
            for i in range(n):
                originals[g, n + i] = vectors[right, i]
        affine(reconstruct, reconstruct_bias, x, y)
        for g in range(used):
            for i in range(outputs):
                d = originals[g, i] - tanh(y[g, i])
                y[g, i] = d * d
        for g in range(used):
            errors[group[g]] = _HALF * total(y, g)


@inner_kernel
def _first_slot(left: int, right: int, slots: Int32Array) -> int:
    """Return the slot at which the search for a pair begins."""
    return home(np.uint64(left) << np.uint64(32) | np.uint64(right), len(slots))


@borrowing_kernel
def intern(left: int, right: int, nodes: Nodes) -> int:
    """Return the node with these children; a new node is counted, and computed later."""
    slots, children, state = nodes.slots, nodes.children, nodes.state
    mask = len(slots) - 1
    slot = _first_slot(left, right, slots)
    while True:
        node = np.int64(slots[slot])
        if node < 0:
            break
        if children[node, 0] == left and children[node, 1] == right:
            return node
        slot = (slot + 1) & mask
    node = state[0]
    state[0] = node + 1
    slots[slot] = node
    children[node, 0] = left
    children[node, 1] = right
    return node


@kernel
def enter_words(words: Int32Array, word_vectors: FloatArray, word_products: FloatArray, nodes: Nodes) -> Int32Array:
    """Return the node of each word; a new word is copied in (its products too, if they are given)."""
    children, state, word_nodes = nodes.children, nodes.state, nodes.word_nodes
    vectors, products, has_products = nodes.vectors, nodes.products, nodes.has_products
    n = word_vectors.shape[1]
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


@borrowing_kernel
def _first_candidates(
    offsets: Int64Array, items: Int32Array, candidates: Int32Array, active: Int64Array, nodes: Nodes
) -> int:
    """Intern the adjacent pairs of every phrase of three words or more; return the number of such phrases."""
    slots = nodes.slots
    count = 0
    previous, previous_end = np.int64(0), np.int64(0)
    for i in range(len(offsets) - 1):
        start, end = offsets[i], offsets[i + 1]
        if end - start < 3:
            continue
        active[count] = i
        count += 1
        # Successive phrases of a table mostly begin with the same words, so their first pairs are the same.
        j = start
        limit = min(end, start + previous_end - previous)
        while j < limit and items[j] == items[previous + j - start]:
            j += 1
        shared = j
        for j in range(start, shared - 1):
            candidates[j] = candidates[previous + j - start]
        for j in range(max(start, shared - 1), end - 1):
            later = min(j + _AHEAD, len(items) - 2)
            prefetch(slots, _first_slot(items[later], items[later + 1], slots))
            candidates[j] = intern(items[j], items[j + 1], nodes)
        previous, previous_end = start, end
    return count


@borrowing_kernel
def _merge_best(
    n_active: int,
    active: Int64Array,
    best: Int64Array,
    offsets: Int64Array,
    lengths: Int64Array,
    items: Int32Array,
    candidates: Int32Array,
    nodes: Nodes,
) -> int:
    """Replace the chosen pair of each active phrase by its node; return the number of phrases still active."""
    slots = nodes.slots
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
                prefetch(slots, _first_slot(items[j - 1], items[j], slots))
            if j < end - 1:
                prefetch(slots, _first_slot(items[j], items[j + 1], slots))
            active[still] = i
            best[still] = j
            still += 1
    for a in range(still):
        i, j = active[a], best[a]
        if j > offsets[i]:
            candidates[j - 1] = intern(items[j - 1], items[j], nodes)
        if j < offsets[i] + lengths[i] - 1:
            candidates[j] = intern(items[j], items[j + 1], nodes)
    return still


@kernel
def build_trees(
    offsets: Int64Array, items: Int32Array, computed: int, nodes: Nodes, weights: TreeWeights
) -> Int64Array:
    """Merge greedily until every phrase has at most two items; return the number of items of each phrase.

    `items` holds the word nodes of the phrases and is changed in place; nodes below `computed` are complete.
    """
    phrases = len(offsets) - 1
    lengths = offsets[1:] - offsets[:-1]
    candidates = np.empty(len(items), np.int32)
    active = np.empty(phrases, np.int64)
    best = np.empty(phrases, np.int64)
    without_products = np.empty(phrases, np.int64)
    errors, has_products = nodes.errors, nodes.has_products
    n_active = _first_candidates(offsets, items, candidates, active, nodes)
    while n_active > 0:
        compute_nodes(computed, nodes.state[0], nodes, weights)
        computed = nodes.state[0]
        n_without = 0
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
                without_products[n_without] = node
                n_without += 1
        chosen = without_products[:n_without]
        project(chosen, nodes.vectors, weights.compose, nodes.products, chosen)
        n_active = _merge_best(n_active, active, best, offsets, lengths, items, candidates, nodes)
    return lengths


@kernel
def collect_roots(
    offsets: Int64Array, items: Int32Array, lengths: Int64Array, nodes: Nodes, compose_bias: FloatArray, out: FloatArray
) -> None:
    """Compute the root vector of every phrase with at most two items left; zero for a phrase without words."""
    vectors, products = nodes.vectors, nodes.products
    for i in range(len(lengths)):
        later = min(i + _AHEAD, len(lengths) - 1)
        if lengths[later] > 1:
            _prefetch_children(items[offsets[later]], items[offsets[later] + 1], products)
        start = offsets[i]
        if lengths[i] == 0:
            out[i] = _ZERO
        elif lengths[i] == 1:
            out[i] = vectors[items[start]]
        else:
            _parent(items[start], items[start + 1], products, compose_bias, i, out)


@kernel
def encode_batch(
    offsets: Int64Array,
    words: Int32Array,
    unit: bool,
    tree: TreeWeights,
    weights: ScoringWeights,
    nodes: Nodes,
    encoded: FloatArray,
    transformed: FloatArray,
) -> None:
    """Compute the vectors of phrases and their transformations; `nodes` must have room for their nodes."""
    computed = nodes.state[0]
    items = enter_words(words, weights.word_vectors, weights.word_products, nodes)
    lengths = build_trees(offsets, items, computed, nodes, tree)
    collect_roots(offsets, items, lengths, nodes, tree.compose_bias, encoded)
    transform(offsets, weights.transform, weights.transform_bias, unit, encoded, transformed)


# A phrase of m words has m nodes for them, m - 1 pairs at first and at most two more after each of m - 3 merges.
_NODES_OF_WORD = 4


class PackedRae:
    """Parameters laid out for the kernels, with the products W1 x of every vocabulary word.

    Read-only after construction, so any number of encoders (one per thread) can share it.
    """

    def __init__(self, parameters: RaeParameters) -> None:
        n = parameters.dimension
        self.dimension = n
        word_vectors = np.ascontiguousarray(parameters.word_vectors)
        self.tree = tree = TreeWeights.packed(
            parameters.compose, parameters.compose_bias, parameters.reconstruct, parameters.reconstruct_bias
        )
        all_words = np.arange(len(word_vectors))
        word_products = np.empty((len(all_words), 2 * n), np.float32)
        project(all_words, word_vectors, tree.compose, word_products, all_words)
        self.weights = ScoringWeights(
            word_vectors, word_products, pack(parameters.transform), pack_bias(parameters.transform_bias)
        )

    def encoder(self, node_capacity: int) -> RaeEncoder:
        """Return an encoder for one thread; see `RaeEncoder`."""
        return RaeEncoder(self, node_capacity)


class RaeEncoder(BatchedEncoder):
    """Recursive auto-encoder of phrases on CPU, not thread-safe; threads share a `PackedRae` instead.

    Args:
        packed: the parameters.
        node_capacity: number of nodes (words and interned pairs) to allocate, unless one phrase needs more; a node
            takes about 12 n + 30 bytes.  Less than 2^15 makes batches smaller, which never changes a result.
    """

    batch_positions = 1 << 13

    def __init__(self, packed: PackedRae, node_capacity: int = 1 << 16) -> None:
        super().__init__(len(packed.weights.word_vectors), packed.dimension)
        self.packed = packed
        self.batch_positions = min(self.batch_positions, max(node_capacity // _NODES_OF_WORD, 1))
        self._nodes = self._room(self.batch_positions)

    def _room(self, words: int) -> Nodes:
        return Nodes.with_room(_NODES_OF_WORD * words, len(self.packed.weights.word_vectors), self.packed.dimension)

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        if _NODES_OF_WORD * len(words) > len(self._nodes.vectors):
            self._nodes = self._room(len(words))
        packed = self.packed
        encode_batch(offsets, words, unit, packed.tree, packed.weights, self._nodes, encoded, transformed)
        self._nodes.forget()


@kernel
def find_roots(offsets: Int64Array, items: Int32Array, lengths: Int64Array, nodes: Nodes) -> Int64Array:
    """Return the root node of every phrase, -1 for a phrase without words."""
    roots = np.full(len(lengths), -1, np.int64)
    for i in range(len(lengths)):
        start = offsets[i]
        if lengths[i] == 1:
            roots[i] = items[start]
        elif lengths[i] == 2:
            roots[i] = intern(items[start], items[start + 1], nodes)
    return roots


@kernel
def collect_vectors_and_errors(
    roots: Int64Array, nodes: Nodes, out_vectors: FloatArray, out_errors: FloatArray
) -> None:
    """Compute root vectors, and E_rec of every phrase: the sum over the nodes of its tree (Eq. 5)."""
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
def order_used(
    roots: Int64Array, children: Int32Array, d_errors: FloatArray, weights: FloatArray
) -> tuple[Int64Array, Int64Array]:
    """Return the parents used by any tree, highest first, and the start of each height; sum dE_rec in weights[node]."""
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
    positions = starts.copy()
    for node in range(count):
        if heights[node] > 0:
            level = highest - heights[node]
            order[positions[level]] = node
            positions[level] += 1
    return order, starts


@kernel
def back_through_errors(
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
    """Compute gradients of E_rec (Eq. 3, 4) at every used parent; d_parents gets the part that flows through W2."""
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
def back_through_composition(
    order: Int64Array,
    starts: Int64Array,
    children: Int32Array,
    parents: FloatArray,
    compose_back: FloatArray,
    gradient: FloatArray,
    d_pairs: FloatArray,
    d_parents: FloatArray,
) -> None:
    """Propagate gradients from the roots to the words (Eq. 2); nodes of one height do not depend on each other."""
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
def scatter_roots(roots: Int64Array, d_roots: FloatArray, gradient: FloatArray) -> None:
    """Add the gradients of the roots of phrases to those of their nodes."""
    for i in range(len(roots)):
        if roots[i] >= 0:
            for k in range(d_roots.shape[1]):
                gradient[roots[i], k] += d_roots[i, k]
