"""Vectors of target words that a translator was not trained on, in the space that it predicts in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phrasetool.phrases import FloatArray
from phrasetool.translator.model import NeuralModel

# Vectors of the file that a model was trained with are its own up to rounding.
_LEAST_COSINE = 0.999


def new_target_vectors(
    model: NeuralModel, words: Sequence[bytes], known: Mapping[bytes, FloatArray]
) -> dict[bytes, FloatArray]:
    """Vectors of those of some words that the model lacks, as its target vectors are: centred, if these are.

    Args:
        model: a translator.
        words: distinct ones.
        known: word -> vector of shape (d,), of all words of the model's target vocabulary and of the new words, as it
            was when the model was trained.

    Raises:
        ValueError: a word has no vector, or one that is not finite; or the vectors are not those of the training.
    """
    own = model.target_vocabulary.words[1:]
    lacking = [word for word in (*own, *words) if word not in known]
    if lacking:
        raise ValueError(f"{lacking[0].decode('utf-8', 'replace')} has no vector there")
    rows = np.stack([known[word] for word in own])
    centring = model.training.get("centring", "plain")
    if centring == "random":
        raise ValueError("the model was trained with random vectors, which no new word has")
    mean = rows.mean(0, dtype=np.float64).astype(np.float32) if centring == "centred" else np.float32(0)
    lengths = np.linalg.norm(rows - mean, axis=1)
    cosines = ((rows - mean) * model.arrays["targets"][1:-1]).sum(1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    if not float(cosines.min(initial=1.0)) >= _LEAST_COSINE:
        other = own[int(np.argmin(cosines))].decode("utf-8", "replace")
        raise ValueError(f"these are not the vectors that the model was trained with: that of {other} differs")
    found = {word: known[word] - mean for word in words if not model.target_vocabulary.id(word)}
    for word, vector in found.items():
        if not np.isfinite(vector).all():
            raise ValueError(f"the vector of {word.decode('utf-8', 'replace')} is not finite")
    return found
