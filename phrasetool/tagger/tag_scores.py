"""A trained tagger at work, without torch: the sentences of a block, longest first, a word of each at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.kernels.lstm_states import LstmWeights, lstm_states
from phrasetool.phrases import FloatArray, Int32Array, Phrases
from phrasetool.tagger.tagger_shape import TaggerShape


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
        ends = [LstmWeights.of(arrays, f"lstm.{{}}_l{layer}{end}") for end in ("", "_reverse")]
        sides = [lstm_states(w.products(found), numbers, w.recurrent, sentences, w is ends[1]) for w in ends]
        found, numbers = np.concatenate(sides, axis=1), np.arange(len(sentences.words), dtype=np.int32)
    logits: FloatArray = found @ arrays["output.weight"].T + arrays["output.bias"]
    return logits
