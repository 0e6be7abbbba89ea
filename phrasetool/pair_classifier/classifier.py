"""Inputs and network of a classifier together, and what it says of many sentences and pairs.

The last bits of a product of matrices depend on its size, so batches depend on the sentences alone: distinct ones,
sorted by length and words.  One thread computes a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.network import SiameseNetwork
from phrasetool.pair_classifier.token_inputs import TokenInputs
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Phrases
from phrasetool.unique_phrases import distinct_phrases

# Sentences, and pairs, of a batch.
_SENTENCES, _PAIRS = 512, 4096


class SiameseClassifier(nn.Module):
    """A classifier.

    Args:
        inputs: reads words or pieces; a module.
        network: makes sentence vectors and logits.
    """

    def __init__(self, inputs: TokenInputs, network: SiameseNetwork) -> None:
        super().__init__()
        self.inputs: Any = inputs
        self.network = network

    def encode(self, side: int, texts: Phrases, lexicon: Any) -> Tensor:
        """The vectors of N sentences as one batch, shape (N, n); see `TokenInputs`."""
        return self.network.encode(*self.inputs.vectors(side, self.cut(texts), lexicon))

    def cut(self, texts: Phrases) -> Phrases:
        """The texts without what stands behind their longest part that is read."""
        longest = self.network.architecture.longest
        if not len(texts) or texts.lengths.max() <= longest:
            return texts
        lengths = np.minimum(texts.lengths, longest)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(texts.offsets[:-1] - offsets[:-1], lengths)
        return Phrases(offsets, texts.words[places])

    @torch.no_grad()
    def sentence_vectors(self, side: int, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """The vectors of N sentences, float32, shape (N, n); zeros where nothing is known.

        Args:
            side: 0 for source, 1 for target.
            texts: in numbers of the words.
            words: distinct, unescaped.
        """
        texts = self.cut(texts)
        lexicon = self.inputs.lexicon(side, words)
        numbers, distinct = distinct_phrases(texts)
        found = np.zeros((len(distinct), self.network.architecture.dimension), np.float32)
        order = _canonical(distinct, words)
        order = order[distinct.lengths[order] > 0]
        with one_torch_thread():
            for first in range(0, len(order), _SENTENCES):
                rows = order[first : first + _SENTENCES]
                batch = distinct.select(rows)
                known = self.inputs.known(side, batch, lexicon)
                found[rows] = self.encode(side, batch, lexicon).cpu().numpy() * known[:, None]
        result: FloatArray = found[numbers]
        return result

    @torch.no_grad()
    def pair_logits(
        self, sources: FloatArray, source_lengths: Int64Array, targets: FloatArray, target_lengths: Int64Array
    ) -> DoubleArray:
        """The logits of N pairs, float64, shape (N,); minus infinity where nothing is known of a side.

        Args:
            sources, targets: of `sentence_vectors`, float32, shape (N, n).
            source_lengths, target_lengths: words, int64, shape (N,).
        """
        found = np.empty(len(sources))
        device = self.network.output.weight.device
        with one_torch_thread():
            for first in range(0, len(found), _PAIRS):
                part = slice(first, first + _PAIRS)
                given = (torch.from_numpy(np.ascontiguousarray(array[part])).to(device)
                         for array in (sources, source_lengths, targets, target_lengths))  # fmt: skip
                found[part] = self.network.logits(*given).cpu().numpy()
        found[~(sources.any(1) & targets.any(1))] = -np.inf
        return found

    def arrays(self) -> dict[str, FloatArray]:
        """All parameters by name, but those of an encoder from elsewhere."""
        return {
            name: value.detach().cpu().numpy().copy()
            for name, value in self.state_dict().items()
            if not name.startswith("inputs.encoder.")
        }


def network_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Those of `SiameseClassifier.arrays` that are the network's, by its own names."""
    return {name.removeprefix("network."): array for name, array in arrays.items() if name.startswith("network.")}


def input_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Those of `SiameseClassifier.arrays` that are the inputs', by their own names."""
    return {name.removeprefix("inputs."): array for name, array in arrays.items() if name.startswith("inputs.")}


def _canonical(texts: Phrases, words: Sequence[bytes]) -> Int64Array:
    """Where each text stands when they are sorted by length, then by their words as they are written."""
    used = np.unique(texts.words)
    ranks = np.zeros(len(words), np.int64)
    ranks[sorted(used.tolist(), key=lambda word: words[word])] = np.arange(len(used))
    matrix = np.full((len(texts), int(texts.lengths.max(initial=0))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < texts.lengths[:, None]] = ranks[texts.words]
    return np.lexsort((*matrix.T[::-1], texts.lengths))
