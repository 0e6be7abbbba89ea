"""Networks that compare sentences: the siamese classifier, and sums of vectors for the search.

The classifier (Mao et al. 2021, section 2.3): one recurrent layer reads the word vectors of both languages, h = [last
state forward; last state backward] (1).  Joined with their lengths, h' (2, 3), the vectors of both sides are combined
in h1 = h'_s * h'_t, element by element (4), and h2 = |h'_s - h'_t| (5); h3 = tanh(W1 h1 + W2 h2 + b) (6), and p =
sigmoid(W3 h3 + c) (7).  Equation 8 of the paper, the loss, is misprinted (its first term has no sigmoid, and the sign
is wrong); it must mean the binary cross-entropy, which is computed from logits here.  The sentences of a batch are
packed, so no state depends on padding.

A classifier is not a metric, and the properties of a sentence that it needs (order, length) do not help to find its
translation among a hundred thousand others.  A sum of vectors of words and character n-grams (`SearchVectors`) does
that better and in a hundredth of the time.

The last bits of a matrix product depend on its size, so batches depend on the sentences only: distinct sentences,
sorted by length and words.  One thread computes a batch.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from phrasetool.nn.device import one_torch_thread
from phrasetool.nn.layers import SeededDropout
from phrasetool.nn.lstm import packed_states, packing
from phrasetool.pair_classifier.inputs import WORD_BEGIN, WORD_END, TokenInputs
from phrasetool.pair_classifier.settings import PairClassifierArchitecture
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Phrases, gathered_runs
from phrasetool.unique_phrases import distinct_phrases

# Greatest length in words that has a vector; longer sentences share this vector.
LONGEST_LENGTH = 100


class LengthEmbedding(nn.Module):
    """Module that joins sentence vectors with vectors of their lengths.

    Args:
        architecture: architecture of the classifier.
        rng: generator of the initial vectors.
    """

    def __init__(self, architecture: PairClassifierArchitecture, rng: np.random.Generator) -> None:
        super().__init__()
        self.way = architecture.length
        size = architecture.dimension if self.way == "add" else architecture.length_units
        tables = {"none": 0, "shared": 1}.get(self.way, 2)
        drawn = rng.normal(0, 0.1, (tables, LONGEST_LENGTH + 1, size)).astype(np.float32)
        self.tables = nn.Parameter(torch.from_numpy(drawn)) if tables else None

    def forward(self, vectors: Tensor, lengths: Tensor, side: int) -> Tensor:
        """Join sentence vectors (N, n) of one side (0 or 1) with their lengths in words, int64, shape (N,)."""
        if self.tables is None:
            return vectors
        embedded = functional.embedding(lengths.clamp(max=LONGEST_LENGTH), self.tables[min(side, len(self.tables) - 1)])
        return vectors + embedded if self.way == "add" else torch.cat([vectors, embedded], 1)


class SiameseNetwork(nn.Module):
    """Network that computes sentence vectors from word vectors, and a logit from two sentence vectors.

    Args:
        architecture: architecture and dimensions.
        seed: seed of the initial values.
        dropout: share of the components of word vectors dropped in training.
        output_dropout: the same of sentence vectors with their lengths, and of the hidden layer.
    """

    def __init__(
        self, architecture: PairClassifierArchitecture, seed: int = 1, dropout: float = 0.0, output_dropout: float = 0.0
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
    def from_arrays(cls, architecture: PairClassifierArchitecture, arrays: Mapping[str, FloatArray]) -> SiameseNetwork:
        """Return a trained network in evaluation mode.

        Raises:
            RuntimeError: an array is missing, unexpected, or of another shape.
        """
        network = cls(architecture)
        network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
        return network.eval()

    def seed_dropout(self, seed: int) -> None:
        """Make all later draws of dropout depend on this seed only."""
        self.dropout.seed(seed)
        self.output_dropout.seed(seed + 1)

    def encode(self, vectors: Tensor, counts: Int64Array) -> Tensor:
        """Return sentence vectors, shape (N, n).

        Args:
            vectors: vectors of the words of N sentences, one sentence after another, shape (T, w).
            counts: number of words of each sentence, at least 1, shape (N,).
        """
        order, sizes, rows = packing(counts)
        device = vectors.device
        words = self.dropout(vectors).index_select(0, torch.from_numpy(rows).to(device))
        if isinstance(self.cells, nn.LSTM):
            states = _last_states(packed_states(self.cells, words, sizes), sizes, counts[order], self.cells.hidden_size)
        else:
            states = torch.cat([*self.cells(PackedSequence(words, torch.from_numpy(sizes)))[1]], 1)
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        return states.index_select(0, torch.from_numpy(positions).to(device))

    def logits(self, sources: Tensor, source_lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        """Return the logits of N pairs, shape (N,).

        Args:
            sources, targets: sentence vectors, shape (N, n).
            source_lengths, target_lengths: lengths in words, int64, shape (N,).
        """
        first = self.output_dropout(self.length(sources, source_lengths, 0))
        second = self.output_dropout(self.length(targets, target_lengths, 1))
        hidden = torch.tanh(self.product(first * second) + self.difference((first - second).abs()))
        return cast(Tensor, self.output(self.output_dropout(hidden))[:, 0])


def _last_states(states: Tensor, sizes: Int64Array, lengths: Int64Array, units: int) -> Tensor:
    """Return the forward states after the last word of N sentences, and any backward ones after the first word.

    Args:
        states: packed states of one direction or two, shape (T, n).
        sizes: see `packing`.
        lengths: number of words of each sentence, descending, shape (N,).
        units: units per direction.

    Returns:
        shape (N, n).
    """
    ends = (np.cumsum(sizes) - sizes)[lengths - 1] + np.arange(len(lengths))
    forward = states[:, :units].index_select(0, torch.from_numpy(ends).to(states.device))
    return torch.cat([forward, states[: len(lengths), units:]], 1)


# Sentences per batch, and pairs per batch.
_SENTENCES, _PAIRS = 512, 4096


class PairClassifier(nn.Module):
    """Classifier of sentence pairs: inputs and network.

    Args:
        inputs: module that turns words or subword tokens into vectors.
        network: network that computes sentence vectors and logits.
    """

    def __init__(self, inputs: TokenInputs, network: SiameseNetwork) -> None:
        super().__init__()
        self.inputs: Any = inputs
        self.network = network

    def encode(self, side: int, texts: Phrases, lexicon: Any) -> Tensor:
        """Return the vectors of N sentences, computed as one batch, shape (N, n); see `TokenInputs`."""
        return self.network.encode(*self.inputs.vectors(side, self.cut(texts), lexicon))

    def cut(self, texts: Phrases) -> Phrases:
        """Truncate texts to the maximum number of words of the architecture."""
        longest = self.network.architecture.longest
        if not len(texts) or texts.lengths.max() <= longest:
            return texts
        offsets, positions = gathered_runs(texts.offsets[:-1], np.minimum(texts.lengths, longest))
        return Phrases(offsets, texts.words[positions])

    @torch.no_grad()
    def sentence_vectors(self, side: int, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """Return the vectors of N sentences, float32, shape (N, n); zeros for sentences without known words.

        Args:
            side: 0 for source, 1 for target.
            texts: sentences in indices of `words`.
            words: distinct words without escapes.
        """
        texts = self.cut(texts)
        lexicon = self.inputs.lexicon(side, words)
        numbers, distinct = distinct_phrases(texts)
        vectors = np.zeros((len(distinct), self.network.architecture.dimension), np.float32)
        order = _canonical(distinct, words)
        order = order[distinct.lengths[order] > 0]
        with one_torch_thread():
            for first in range(0, len(order), _SENTENCES):
                rows = order[first : first + _SENTENCES]
                batch = distinct.select(rows)
                known = self.inputs.known(side, batch, lexicon)
                vectors[rows] = self.encode(side, batch, lexicon).cpu().numpy() * known[:, None]
        result: FloatArray = vectors[numbers]
        return result

    @torch.no_grad()
    def pair_logits(
        self, sources: FloatArray, source_lengths: Int64Array, targets: FloatArray, target_lengths: Int64Array
    ) -> DoubleArray:
        """Return the logits of N pairs, float64, shape (N,); minus infinity where a side has no known words.

        Args:
            sources, targets: results of `sentence_vectors`, float32, shape (N, n).
            source_lengths, target_lengths: lengths in words, int64, shape (N,).
        """
        logits = np.empty(len(sources))
        device = self.network.output.weight.device
        with one_torch_thread():
            for first in range(0, len(logits), _PAIRS):
                part = slice(first, first + _PAIRS)
                arguments = (torch.from_numpy(np.ascontiguousarray(array[part])).to(device)
                         for array in (sources, source_lengths, targets, target_lengths))  # fmt: skip
                logits[part] = self.network.logits(*arguments).cpu().numpy()
        logits[~(sources.any(1) & targets.any(1))] = -np.inf
        return logits

    def arrays(self) -> dict[str, FloatArray]:
        """Return all parameters by name, except those of an external encoder."""
        return {
            name: value.detach().cpu().numpy().copy()
            for name, value in self.state_dict().items()
            if not name.startswith("inputs.encoder.")
        }


def network_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the arrays of `PairClassifier.arrays` that belong to the network, by their names in it."""
    return {name.removeprefix("network."): array for name, array in arrays.items() if name.startswith("network.")}


def input_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the arrays of `PairClassifier.arrays` that belong to the inputs, by their names in them."""
    return {name.removeprefix("inputs."): array for name, array in arrays.items() if name.startswith("inputs.")}


def _canonical(texts: Phrases, words: Sequence[bytes]) -> Int64Array:
    """Return the indices that sort texts by length, then by the bytes of their words."""
    used = np.unique(texts.words)
    ranks = np.zeros(len(words), np.int64)
    ranks[sorted(used.tolist(), key=lambda word: words[word])] = np.arange(len(used))
    matrix = np.full((len(texts), int(texts.lengths.max(initial=0))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < texts.lengths[:, None]] = ranks[texts.words]
    return np.lexsort((*matrix.T[::-1], texts.lengths))


_UNIT_SIZES = (3, 4)


def word_units(word: bytes) -> list[bytes]:
    """Return the units of a word: the word itself, its wide characters, and its character n-grams, with a tag each.

    Args:
        word: UTF-8, without escapes; each invalid byte counts as a character.  Case is ignored.
    """
    plain = word.decode("utf-8", "surrogateescape").lower()
    text = f"{WORD_BEGIN}{plain}{WORD_END}"
    units = [f"w{plain}"]
    units += [f"c{character}" for character in plain if unicodedata.east_asian_width(character) in "WF"]
    for size in _UNIT_SIZES:
        units += [f"g{text[first : first + size]}" for first in range(len(text) - size + 1)]
    return [unit.encode("utf-8", "surrogateescape") for unit in units]


def lexicon_units(words: Sequence[bytes], buckets: int) -> Phrases:
    """Return the hash values of the units of distinct words, each below `buckets`, a power of two."""
    return Phrases.from_lists([[zlib.crc32(unit) & (buckets - 1) for unit in word_units(word)] for word in words])


def sentence_units(texts: Phrases, lexicon: Phrases) -> Phrases:
    """Return the units of N sentences, one word after another.

    Args:
        texts: sentences in indices of the words of the lexicon.
        lexicon: result of `lexicon_units`.
    """
    by_word = lexicon.select(texts.words)
    return Phrases(by_word.offsets[texts.offsets], by_word.words)


# Sentences per batch.
_SUM_BATCH = 4096


class SearchVectors:
    """Sentence vectors for the search: sums of the vectors of units, in one table for both languages.

    Args:
        table: float16, shape (B, d), B a power of two.

    Raises:
        ValueError: the table has another shape.
    """

    def __init__(self, table: npt.NDArray[np.float16]) -> None:
        if table.ndim != 2 or not len(table) or len(table) & (len(table) - 1):
            raise ValueError(f"the vectors of units have shape {table.shape}, expected a power of two of them")
        self._table = torch.from_numpy(table.astype(np.float32))

    @property
    def dimension(self) -> int:
        """d, size of a vector."""
        return self._table.shape[1]

    def encode(self, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """Return the vectors of N sentences, float32, shape (N, d), of norm 1; zeros for a sentence without words.

        Args:
            texts: sentences in indices of `words`.
            words: distinct words without escapes.
        """
        lexicon = lexicon_units(words, len(self._table))
        parts = [np.zeros((0, self.dimension), np.float32)]
        for first in range(0, len(texts), _SUM_BATCH):
            part = texts.part(first, min(first + _SUM_BATCH, len(texts)))
            parts.append(summed(sentence_units(part, lexicon), self._table).numpy())
        return np.concatenate(parts)


def summed(units: Phrases, table: Tensor, sparse: bool = False) -> Tensor:
    """Return the sum of the vectors of each sentence's units, scaled to norm 1; float32, shape (N, d).

    Args:
        units: units of N sentences.
        table: vectors of the units, shape (B, d).
        sparse: whether the gradient of the table is sparse.
    """
    numbers = torch.from_numpy(units.words.astype(np.int64)).to(table.device)
    offsets = torch.from_numpy(units.offsets[:-1].copy()).to(table.device)
    return functional.normalize(functional.embedding_bag(numbers, table, offsets, mode="sum", sparse=sparse), dim=1)
