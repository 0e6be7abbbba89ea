"""A trained tagger at work, without torch: the sentences of a block, longest first, a word of each at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.tagging.tagger_shape import TaggerShape


def tag_scores(
    arrays: Mapping[str, FloatArray], shape: TaggerShape, sentences: Phrases, rows: Int32Array
) -> FloatArray:
    """Logits of the words of B sentences, float32, shape (words, tags).

    Args:
        arrays: of `TaggerNetwork.arrays`.
        shape: the dimensions of the tagger.
        sentences: in numbers of distinct words.
        rows: of features of each of N distinct words, shape (N, F).
    """
    table = arrays["features.weight"]
    # In this order, so that a word's vector owes nothing to the other words.
    words = np.zeros((len(rows), shape.word_units), np.float32)
    for column in rows.T:
        words += table[column]
    # The products of the first layer are made once for a word, however often it occurs.
    found, numbers = words, sentences.words
    for layer in range(shape.lstm_layers):
        ends = (f"l{layer}", f"l{layer}_reverse")
        ahead, back = (_states(arrays, end, found, numbers, sentences, end.endswith("reverse")) for end in ends)
        found, numbers = np.concatenate([ahead, back], axis=1), np.arange(len(sentences.words), dtype=np.int32)
    logits: FloatArray = found @ arrays["output.weight"].T + arrays["output.bias"]
    return logits


def _states(
    arrays: Mapping[str, FloatArray], end: str, inputs: FloatArray, numbers: Int32Array, sentences: Phrases, back: bool
) -> FloatArray:
    """The states of one direction of a layer, shape (words, units).

    Args:
        arrays: all.
        end: of the names of those of this direction.
        inputs: vectors, shape (N, size).
        numbers: which of them each word has, shape (words,).
        sentences: for their lengths.
        back: from the last word to the first.
    """
    bias = arrays[f"lstm.bias_ih_{end}"] + arrays[f"lstm.bias_hh_{end}"]
    products = inputs @ arrays[f"lstm.weight_ih_{end}"].T + bias
    recurrent = np.ascontiguousarray(arrays[f"lstm.weight_hh_{end}"].T)
    units = len(recurrent)
    lengths = sentences.lengths
    order = np.argsort(-lengths, kind="stable")
    sizes = lengths[order]
    firsts = sentences.offsets[:-1][order]
    found = np.zeros((len(numbers), units), np.float32)
    state, cell = (np.zeros((len(order), units), np.float32) for _ in range(2))
    for time in range(int(sizes[0]) if len(sizes) else 0):
        active = int(np.searchsorted(-sizes, -time, "left"))
        places: Int64Array = firsts[:active] + (sizes[:active] - 1 - time if back else time)
        gates = products[numbers[places]] + state[:active] @ recurrent
        # Input, forget, cell, output, as torch has them.
        half = 0.5 * np.tanh(0.5 * gates[:, : 2 * units]) + 0.5
        last = 0.5 * np.tanh(0.5 * gates[:, 3 * units :]) + 0.5
        cell = half[:, units:] * cell[:active] + half[:, :units] * np.tanh(gates[:, 2 * units : 3 * units])
        state = last * np.tanh(cell)
        found[places] = state
    return found
