"""Scoring on the CPU with the mean of word vectors and with the gated mean-max encoder: kernels and packed parameters.

The order of every sum depends only on the sizes of the encoder and the length of the phrase, so the vector of a phrase
is the same to the last bit whatever other phrases are encoded with it.

**Mean-max.**  Queries, keys and values are linear in word plus position, so they are the sum of two rows of products:
that of the word, computed at its first occurrence, and that of the position, computed once.  The remaining work per
phrase is small (attention) or a matrix product over the positions of many phrases, eight at a time.

A row of products holds q, k and v, m each.  In q and k the heads alternate (component c of head i is at c h + i), so
that one sum by halves gives the scores of all heads at once; q includes the factor 1 / sqrt(m / h).  In v the heads are
concatenated, as in the parameters.

The encoder caches the products of the words so far, within a bounded memory; the phrases of a table share few words.
Nothing else can be shared between phrases, because attention makes every position depend on all others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import kernel
from phrasetool.nn.positions import LONGEST, NORM_EPSILON, check_lengths, positions
from phrasetool.phrase_encoder.dense_kernels import (
    GROUP,
    PAD,
    affine,
    exp_all,
    normalise,
    pack,
    pack_bias,
    project,
    sum_buffer,
    total,
    transform,
)
from phrasetool.phrase_encoder.encoder import BatchedEncoder
from phrasetool.phrase_encoder.parameters import MeanMaxParameters, MeanParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.vocabulary import UNKNOWN

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_EPSILON = np.float32(NORM_EPSILON)
# Tokens of a phrase that are not words.
_END = np.int32(-1)
_NOTHING = np.int32(-2)


@kernel
def average(offsets: Int64Array, words: Int32Array, vectors: FloatArray, encoded: FloatArray) -> None:
    """Set encoded[i] to the mean of the vectors of the known words of phrase i, or to zero if there are none."""
    for phrase in range(len(encoded)):
        row = encoded[phrase]
        for i in range(len(row)):
            row[i] = _ZERO
        known = 0
        for k in range(offsets[phrase], offsets[phrase + 1]):
            word = words[k]
            if word == UNKNOWN:
                continue
            known += 1
            vector = vectors[word]
            for i in range(len(row)):
                row[i] += vector[i]
        if known > 1:
            count = np.float32(known)
            for i in range(len(row)):
                row[i] /= count


@kernel
def carry(weights: FloatArray, bias: FloatArray, unit: bool, encoded: FloatArray, transformed: FloatArray) -> None:
    """Compute transformed = W z + b; zero where z is zero.

    Args:
        weights, bias: W and b, packed.
        unit: scale both vectors of a phrase to length one.
        encoded: the phrase vectors z, shape (B, n).
        transformed: filled, shape (B, n).
    """
    n = encoded.shape[1]
    # Rows a power of two apart would map to the same cache sets.
    x = np.zeros((GROUP, n + PAD), np.float32)
    y = np.zeros((GROUP, weights.shape[1]), np.float32)
    buffer = sum_buffer(1, n)
    for first in range(0, len(encoded), GROUP):
        used = min(GROUP, len(encoded) - first)
        for g in range(used):
            x[g, :n] = encoded[first + g]
        affine(weights, bias, x, y)
        for g in range(used):
            phrase = first + g
            nonzero = False
            for i in range(n):
                nonzero = nonzero or encoded[phrase, i] != _ZERO
            if nonzero:
                transformed[phrase] = y[g, :n]
            else:
                transformed[phrase] = _ZERO
            if unit:
                normalise(encoded, phrase, phrase + 1, buffer)
                normalise(transformed, phrase, phrase + 1, buffer)


@kernel
def copy_unit(unit: bool, encoded: FloatArray, transformed: FloatArray) -> None:
    """Copy encoded to transformed, both scaled to length one if `unit`."""
    buffer = sum_buffer(1, encoded.shape[1])
    for phrase in range(len(encoded)):
        if unit:
            normalise(encoded, phrase, phrase + 1, buffer)
        transformed[phrase] = encoded[phrase]


class PackedMean:
    """Parameters laid out for the kernels; read-only, so any number of encoders (one per thread) can share them.

    Args:
        parameters: parameters of one language.
        carried: whether the transformation is applied; otherwise it is the identity.
    """

    def __init__(self, parameters: MeanParameters, carried: bool) -> None:
        self.dimension = parameters.dimension
        self.word_vectors = parameters.word_vectors
        self.carried = carried
        self.transform, self.transform_bias = pack(parameters.transform), pack_bias(parameters.transform_bias)

    def encoder(self, node_capacity: int) -> MeanPhraseEncoder:
        """Return an encoder, which keeps nothing between calls."""
        return MeanPhraseEncoder(self)


class MeanPhraseEncoder(BatchedEncoder):
    """Phrase encoder on CPU: the mean of word vectors.

    Args:
        packed: the parameters.
    """

    batch_positions = 1 << 14

    def __init__(self, packed: PackedMean) -> None:
        super().__init__(len(packed.word_vectors), packed.dimension)
        self.packed = packed

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        packed = self.packed
        average(offsets, words, packed.word_vectors, encoded)
        if packed.carried:
            carry(packed.transform, packed.transform_bias, unit, encoded, transformed)
        else:
            copy_unit(unit, encoded, transformed)


@kernel
def enter_words(
    words: npt.NDArray[np.int32],
    word_vectors: FloatArray,
    weights: FloatArray,
    products: FloatArray,
    word_rows: npt.NDArray[np.int32],
    state: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Return the row of products of each word; products of new words are computed, and counted in state[0]."""
    rows = np.empty(len(words), np.int32)
    new = np.empty(len(words), np.int32)
    first, count = state[0], np.int64(0)
    for position in range(len(words)):
        word = words[position]
        if word_rows[word] < 0:
            word_rows[word] = first + count
            new[count] = word
            count += 1
        rows[position] = word_rows[word]
    project(new[:count], word_vectors, weights, products, np.arange(first, first + count))
    state[0] = first + count
    return rows


@kernel
def _scores(query: FloatArray, key: FloatArray, buffer: FloatArray, scores: FloatArray) -> None:
    """Compute scores[i] = q_i k_i / sqrt(m / h) for every head i, with components i, h + i, 2 h + i and so on."""
    heads = len(scores)
    width = len(query)
    for c in range(width):
        buffer[c] = query[c] * key[c]
    while width % (2 * heads) == 0:
        width //= 2
        low, high = buffer[:width], buffer[width : 2 * width]
        for c in range(width):
            low[c] += high[c]
    for i in range(heads):
        scores[i] = buffer[i]
        for c in range(heads + i, width, heads):
            scores[i] += buffer[c]


@kernel
def _softmax(scores: FloatArray, weights: FloatArray, powers: FloatArray, bits: npt.NDArray[np.int32]) -> None:
    """Compute weights, the softmax of the scores over the positions for every head; both (positions, h).

    `powers` and `bits` are buffers for `exp_all`.
    """
    length, heads = scores.shape
    for i in range(heads):
        highest = scores[0, i]
        for j in range(1, length):
            highest = max(highest, scores[j, i])
        for j in range(length):
            weights[j, i] = scores[j, i] - highest
    exp_all(weights.reshape(weights.size), powers, bits)
    for i in range(heads):
        sum_of_all = _ZERO
        for j in range(length):
            sum_of_all += weights[j, i]
        scale = _ONE / sum_of_all
        for j in range(length):
            weights[j, i] *= scale


@kernel
def _weighted_values(values: FloatArray, weights: FloatArray, length: int, out: FloatArray) -> None:
    """Compute out, the weighted values of every head (Eq. 1); values (h, positions, m / h), out (h, m / h)."""
    heads, _, size = values.shape
    whole = length - length % 4
    for i in range(heads):
        head, value = out[i], values[i]
        for c in range(size):
            head[c] = _ZERO
        for j in range(0, whole, 4):
            w0, w1, w2, w3 = weights[j, i], weights[j + 1, i], weights[j + 2, i], weights[j + 3, i]
            v0, v1, v2, v3 = value[j], value[j + 1], value[j + 2], value[j + 3]
            for c in range(size):
                head[c] = (((head[c] + w0 * v0[c]) + w1 * v1[c]) + w2 * v2[c]) + w3 * v3[c]
        for j in range(whole, length):
            w0, v0 = weights[j, i], value[j]
            for c in range(size):
                head[c] += w0 * v0[c]


@kernel
def _layer_norm(row: FloatArray, gain: FloatArray, bias: FloatArray, buffer: FloatArray) -> None:
    """Normalise a row in place."""
    m = len(row)
    for i in range(m):
        buffer[0, i] = row[i]
    mean = total(buffer, 0) / np.float32(m)
    for i in range(m):
        row[i] -= mean
        buffer[0, i] = row[i] * row[i]
    scale = _ONE / np.sqrt(total(buffer, 0) / np.float32(m) + _EPSILON)
    for i in range(m):
        row[i] = row[i] * scale * gain[i] + bias[i]


@kernel
def _add(a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    for i in range(len(out)):
        out[i] = a[i] + b[i]


@kernel
def _enter_token(
    token: FloatArray, position: FloatArray, t: int, queries: FloatArray, keys: FloatArray, values: FloatArray
) -> None:
    """Set query, key and value at position t: the products of a word, or of the end, plus those of the position."""
    m = queries.shape[1]
    heads, _, size = values.shape
    _add(token[:m], position[:m], queries[t])
    _add(token[m : 2 * m], position[m : 2 * m], keys[t])
    for i in range(heads):
        begin, end = 2 * m + i * size, 2 * m + (i + 1) * size
        _add(token[begin:end], position[begin:end], values[i, t])


@kernel
def attend(
    offsets: npt.NDArray[np.int64],
    word_rows: npt.NDArray[np.int32],
    products: FloatArray,
    end_products: FloatArray,
    position_products: FloatArray,
    heads: int,
    gain: FloatArray,
    bias: FloatArray,
    out: FloatArray,
) -> int:
    """Compute b_t (Eq. 8, 9) of every position of every phrase, including its end, one after another.

    Args:
        offsets: offsets of the phrases in `word_rows`.
        word_rows: the row of `products` of every word.
        out: filled, shape (at least the number of positions, m).

    Returns:
        The number of positions.
    """
    m = out.shape[1]
    longest = np.int64(1)
    for phrase in range(len(offsets) - 1):
        longest = max(longest, offsets[phrase + 1] - offsets[phrase] + 1)
    queries, keys = np.empty((longest, m), np.float32), np.empty((longest, m), np.float32)
    values = np.empty((heads, longest, m // heads), np.float32)
    # Successive phrases of a table mostly have the same words at the same positions, so values of the previous phrase
    # are reused.  held[t]: the row of the word at position t, or the end.
    held = np.full(longest, _NOTHING)
    changed = np.empty(longest, np.bool_)
    previous = np.int64(0)
    scores = np.empty((longest, longest, heads), np.float32)
    weights = np.empty((longest, heads), np.float32)
    powers = np.empty(longest * heads, np.float32)
    bits = powers.view(np.int32)
    buffer = sum_buffer(1, m)
    row = 0
    for phrase in range(len(offsets) - 1):
        start = offsets[phrase]
        length = offsets[phrase + 1] - start + 1
        if length == 1:
            continue
        for t in range(length):
            token = word_rows[start + t] if t < length - 1 else _END
            changed[t] = token != held[t]
            if changed[t]:
                held[t] = token
                product = products[token] if token != _END else end_products
                _enter_token(product, position_products[t], t, queries, keys, values)
        held[length:previous] = _NOTHING
        previous = length
        for t in range(length):
            for j in range(length):
                if changed[t] or changed[j]:
                    _scores(queries[t], keys[j], buffer[0], scores[t, j])
            _softmax(scores[t, :length], weights[:length], powers, bits)
            _weighted_values(values, weights, length, out[row].reshape(heads, m // heads))
            _layer_norm(out[row], gain, bias, buffer)
            row += 1
    return row


@kernel
def feed_forward(
    rows: FloatArray,
    count: int,
    widen: FloatArray,
    widen_bias: FloatArray,
    narrow: FloatArray,
    narrow_bias: FloatArray,
    gain: FloatArray,
    bias: FloatArray,
) -> None:
    """Replace b_t by h_t (Eq. 10, 11) in the first `count` rows; `rows` has room for whole groups of eight."""
    m = rows.shape[1]
    wide = np.zeros((GROUP, widen.shape[1]), np.float32)
    y = np.zeros((GROUP, narrow.shape[1]), np.float32)
    buffer = sum_buffer(1, m)
    for first in range(0, count, GROUP):
        affine(widen, widen_bias, rows[first : first + GROUP], wide)
        for g in range(GROUP):
            for i in range(wide.shape[1]):
                wide[g, i] = max(wide[g, i], _ZERO)
        affine(narrow, narrow_bias, wide, y)
        for g in range(min(GROUP, count - first)):
            for i in range(m):
                rows[first + g, i] += y[g, i]
            _layer_norm(rows[first + g], gain, bias, buffer)


@kernel
def pool(offsets: npt.NDArray[np.int64], rows: FloatArray, encoded: FloatArray) -> None:
    """Compute z = [max; mean] over the positions of every phrase (Eq. 12-14); zero for a phrase without words."""
    m = rows.shape[1]
    row = 0
    for phrase in range(len(encoded)):
        highest, mean = encoded[phrase, :m], encoded[phrase, m:]
        length = offsets[phrase + 1] - offsets[phrase] + 1
        if length == 1:
            encoded[phrase] = _ZERO
            continue
        highest[:] = rows[row]
        mean[:] = rows[row]
        for t in range(row + 1, row + length):
            hidden = rows[t]
            for i in range(m):
                highest[i] = max(highest[i], hidden[i])
                mean[i] += hidden[i]
        scale = _ONE / np.float32(length)
        for i in range(m):
            mean[i] *= scale
        row += length


class PackedMeanMax:
    """Parameters laid out for the kernels, with the products of the positions and of the end.

    Read-only after construction, so any number of encoders (one per thread) can share it.

    Args:
        parameters: parameters of one language.
        heads: h.

    Raises:
        ValueError: the heads do not divide the hidden units.
    """

    def __init__(self, parameters: MeanMaxParameters, heads: int) -> None:
        m = parameters.hidden
        if heads < 1 or m % heads:
            raise ValueError(f"{heads} heads cannot share {m} hidden units")
        size = m // heads

        def alternate(matrix: FloatArray) -> FloatArray:
            return matrix.reshape(heads, size, -1).transpose(1, 0, 2).reshape(m, -1)

        query = parameters.query / np.float32(size**0.5)
        self.dimension = parameters.dimension
        self.heads = heads
        self.word_vectors = np.ascontiguousarray(parameters.word_vectors)
        self.project = pack(np.vstack([alternate(query), alternate(parameters.key), parameters.value]))
        self.end_products = self._products(parameters.end[None])[0]
        self.position_products = self._products(positions(LONGEST + 1, len(parameters.end)))
        self.attention_norm = parameters.attention_gain, parameters.attention_bias
        self.widen, self.widen_bias = pack(parameters.widen), pack_bias(parameters.widen_bias)
        self.narrow, self.narrow_bias = pack(parameters.narrow), pack_bias(parameters.narrow_bias)
        self.hidden_norm = parameters.hidden_gain, parameters.hidden_bias
        self.transform, self.transform_bias = pack(parameters.transform), pack_bias(parameters.transform_bias)

    def _products(self, vectors: FloatArray) -> FloatArray:
        products = np.empty((len(vectors), 3 * self.dimension // 2), np.float32)
        all_rows = np.arange(len(vectors))
        project(all_rows, vectors, self.project, products, all_rows)
        return products

    def encoder(self, node_capacity: int) -> MeanMaxPhraseEncoder:
        """Return an encoder for one thread; see `MeanMaxPhraseEncoder`."""
        return MeanMaxPhraseEncoder(self, node_capacity)


class MeanMaxPhraseEncoder(BatchedEncoder):
    """Mean-max phrase encoder on CPU, not thread-safe; threads share a `PackedMeanMax` instead.

    Args:
        packed: the parameters.
        node_capacity: maximum number of cached vectors of m units (a word has three: query, key and value).  If the
            words of the next batch might not fit, the cache is cleared, which costs time but never changes a result.
    """

    # Room for the longest phrase; every phrase has an end in addition to its words.
    batch_positions = 1 << 10
    more_positions = 1

    def __init__(self, packed: PackedMeanMax, node_capacity: int = 1 << 16) -> None:
        super().__init__(len(packed.word_vectors), packed.dimension)
        m = packed.dimension // 2
        self.packed = packed
        capacity = max(min(node_capacity // 3, len(packed.word_vectors)), self.batch_positions)
        self._products = np.empty((capacity, 3 * m), np.float32)
        self._word_rows = np.full(len(packed.word_vectors), -1, np.int32)
        self._state = np.zeros(1, np.int64)
        self._rows = np.zeros((self.batch_positions + GROUP, m), np.float32)

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Encode phrases; see `BatchedEncoder.encode`.

        Raises:
            ValueError: a word id is outside the vocabulary, or a phrase has more than `LONGEST` words.
        """
        check_lengths(phrases.lengths)
        return super().encode(phrases, unit)

    def _make_room(self, words: int) -> None:
        if self._state[0] + words > len(self._products):
            self._word_rows.fill(-1)
            self._state[0] = 0

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        packed = self.packed
        self._make_room(len(words))
        rows = enter_words(words, packed.word_vectors, packed.project, self._products, self._word_rows, self._state)
        count = attend(
            offsets, rows, self._products, packed.end_products, packed.position_products, packed.heads,
            *packed.attention_norm, self._rows,
        )  # fmt: skip
        feed_forward(
            self._rows, count, packed.widen, packed.widen_bias, packed.narrow, packed.narrow_bias, *packed.hidden_norm
        )
        pool(offsets, self._rows, encoded)
        transform(offsets, packed.transform, packed.transform_bias, unit, encoded, transformed)
