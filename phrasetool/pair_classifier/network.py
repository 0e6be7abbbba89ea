"""The siamese network: whether two sentences are translations of each other (Mao et al. 2021, section 2.3).

One recurrent layer reads the word vectors of both languages, h = [last state forward; last state backward] (1).  With
the length, h' (2, 3), the two sides meet in h1 = h'_s * h'_t, element by element (4), and h2 = |h'_s - h'_t| (5);
h3 = tanh(W1 h1 + W2 h2 + b) (6), and p = sigmoid(W3 h3 + c) (7).  Equation 8 of the paper, the loss, is misprinted (its
first term has no sigmoid, and the sign is wrong); what is meant is the binary cross-entropy, which is taken of logits.

Sentences of a batch are packed: no state ever sees what another sentence, or nothing, stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from phrasetool.nn.layers import SeededDropout
from phrasetool.pair_classifier.architecture import SiameseArchitecture
from phrasetool.pair_classifier.length import LengthEmbedding
from phrasetool.phrases import FloatArray, Int64Array


class SiameseNetwork(nn.Module):
    """From word vectors to sentence vectors, and from two of these to a logit.

    Args:
        architecture: which, and its dimensions.
        seed: of the initial values.
        dropout: share of the components of word vectors dropped in training.
        output_dropout: the same of sentence vectors with their lengths, and of the hidden layer.
    """

    def __init__(
        self, architecture: SiameseArchitecture, seed: int = 1, dropout: float = 0.0, output_dropout: float = 0.0
    ) -> None:
        super().__init__()
        a = self.architecture = architecture
        rng = np.random.default_rng([seed, 2])
        cell = nn.GRU if a.cell == "gru" else nn.LSTM
        self.cells = cell(a.word_units, a.units, bidirectional=a.cell != "lstm")
        self.length = LengthEmbedding(a, rng)
        self.product = nn.Linear(a.joined, a.hidden)
        self.difference = nn.Linear(a.joined, a.hidden, bias=False)
        self.output = nn.Linear(a.hidden, 1)
        for name, parameter in self.named_parameters():
            if not name.startswith("length."):
                limit = (a.units if name.startswith("cells.") else parameter.shape[-1]) ** -0.5
                drawn = rng.uniform(-limit, limit, tuple(parameter.shape)).astype(np.float32)
                parameter.data = torch.from_numpy(drawn)
        self.dropout, self.output_dropout = SeededDropout(dropout), SeededDropout(output_dropout)

    @classmethod
    def from_arrays(cls, architecture: SiameseArchitecture, arrays: Mapping[str, FloatArray]) -> SiameseNetwork:
        """A trained network, not in training.

        Raises:
            RuntimeError: an array is missing, one too many, or of another shape.
        """
        made = cls(architecture)
        made.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
        return made.eval()

    def seed_dropout(self, seed: int) -> None:
        """Make what dropout draws from here on a matter of this seed alone."""
        self.dropout.seed(seed)
        self.output_dropout.seed(seed + 1)

    def encode(self, vectors: Tensor, counts: Int64Array) -> Tensor:
        """Sentence vectors, shape (N, n).

        Args:
            vectors: of the words of N sentences, one sentence after another, shape (T, w).
            counts: words of each sentence, at least 1, shape (N,).
        """
        order, sizes, rows = packing(counts)
        device = vectors.device
        words = self.dropout(vectors).index_select(0, torch.from_numpy(rows).to(device))
        _, last = self.cells(PackedSequence(words, torch.from_numpy(sizes)))
        states = last[0] if isinstance(last, tuple) else last
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return torch.cat([*states], 1).index_select(0, torch.from_numpy(places).to(device))

    def logits(self, sources: Tensor, source_lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        """The logits of N pairs, shape (N,).

        Args:
            sources, targets: sentence vectors, shape (N, n).
            source_lengths, target_lengths: words, int64, shape (N,).
        """
        first = self.output_dropout(self.length(sources, source_lengths, 0))
        second = self.output_dropout(self.length(targets, target_lengths, 1))
        hidden = torch.tanh(self.product(first * second) + self.difference((first - second).abs()))
        return cast(Tensor, self.output(self.output_dropout(hidden))[:, 0])


def packing(counts: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """How N sentences are packed: first the first words of all, then the second words of those that have one.

    Args:
        counts: words of each, shape (N,), all at least 1.

    Returns:
        The order of the sentences, the longest first, shape (N,); how many have a first, a second word and so on; and
        for each packed word its place in the texts, shape (T,).
    """
    order = np.argsort(-counts, kind="stable")
    sizes = (counts[order][None] > np.arange(counts.max())[:, None]).sum(1)
    starts = (np.cumsum(counts) - counts)[order]
    rows = np.concatenate([starts[:size] + step for step, size in enumerate(sizes.tolist())])
    return order, sizes.astype(np.int64), rows.astype(np.int64)
