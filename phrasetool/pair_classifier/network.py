"""Networks that compare sentences: the siamese classifier, and the sums of vectors that sentences are searched by.

The classifier (Mao et al. 2021, section 2.3): one recurrent layer reads the word vectors of both languages, h = [last
state forward; last state backward] (1).  With the length, h' (2, 3), the two sides meet in h1 = h'_s * h'_t, element by
element (4), and h2 = |h'_s - h'_t| (5); h3 = tanh(W1 h1 + W2 h2 + b) (6), and p = sigmoid(W3 h3 + c) (7).  Equation 8
of the paper, the loss, is misprinted (its first term has no sigmoid, and the sign is wrong); the binary cross-entropy
must be meant, which is computed from logits.  The sentences of a batch are packed, so no state depends on padding.

A classifier is not a metric, and the properties of a sentence that it needs (order, length) do not help to find its
translation among a hundred thousand others.  A sum of vectors of words and character n-grams (`SearchVectors`) does
that better and in a hundredth of the time.

The last bits of a product of matrices depend on its size, so batches depend on the sentences alone: distinct ones,
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

# Words of a sentence; longer ones have the vector of this length.
LONGEST_LENGTH = 100


class LengthEmbedding(nn.Module):
    """Joins sentence vectors with vectors of their lengths.

    Args:
        architecture: architecture of the classifier.
        rng: draws the initial vectors.
    """

    def __init__(self, architecture: PairClassifierArchitecture, rng: np.random.Generator) -> None:
        super().__init__()
        self.way = architecture.length
        size = architecture.dimension if self.way == "add" else architecture.length_units
        tables = {"none": 0, "shared": 1}.get(self.way, 2)
        drawn = rng.normal(0, 0.1, (tables, LONGEST_LENGTH + 1, size)).astype(np.float32)
        self.tables = nn.Parameter(torch.from_numpy(drawn)) if tables else None

    def forward(self, vectors: Tensor, lengths: Tensor, side: int) -> Tensor:
        """Sentence vectors (N, n) of one side (0 or 1) with their lengths in words, int64, shape (N,)."""
        if self.tables is None:
            return vectors
        embedded = functional.embedding(lengths.clamp(max=LONGEST_LENGTH), self.tables[min(side, len(self.tables) - 1)])
        return vectors + embedded if self.way == "add" else torch.cat([vectors, embedded], 1)


class SiameseNetwork(nn.Module):
    """From word vectors to sentence vectors, and from two of these to a logit.

    Args:
        architecture: which, and its dimensions.
        seed: of the initial values.
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
        if isinstance(self.cells, nn.LSTM):
            states = _last_states(packed_states(self.cells, words, sizes), sizes, counts[order], self.cells.hidden_size)
        else:
            states = torch.cat([*self.cells(PackedSequence(words, torch.from_numpy(sizes)))[1]], 1)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return states.index_select(0, torch.from_numpy(places).to(device))

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


def _last_states(states: Tensor, sizes: Int64Array, lengths: Int64Array, units: int) -> Tensor:
    """The states behind the last word of N sentences, and of the other direction behind the first, shape (N, n).

    Args:
        states: packed, of one direction or two, shape (T, n).
        sizes: see `packing`.
        lengths: words of each sentence, descending, shape (N,).
        units: of a direction.
    """
    ends = (np.cumsum(sizes) - sizes)[lengths - 1] + np.arange(len(lengths))
    forward = states[:, :units].index_select(0, torch.from_numpy(ends).to(states.device))
    return torch.cat([forward, states[: len(lengths), units:]], 1)


# Sentences, and pairs, of a batch.
_SENTENCES, _PAIRS = 512, 4096


class PairClassifier(nn.Module):
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
        offsets, places = gathered_runs(texts.offsets[:-1], np.minimum(texts.lengths, longest))
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
        """The logits of N pairs, float64, shape (N,); minus infinity where nothing is known of a side.

        Args:
            sources, targets: of `sentence_vectors`, float32, shape (N, n).
            source_lengths, target_lengths: words, int64, shape (N,).
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
        """All parameters by name, but those of an external encoder."""
        return {
            name: value.detach().cpu().numpy().copy()
            for name, value in self.state_dict().items()
            if not name.startswith("inputs.encoder.")
        }


def network_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Those of `PairClassifier.arrays` that are the network's, by its own names."""
    return {name.removeprefix("network."): array for name, array in arrays.items() if name.startswith("network.")}


def input_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Those of `PairClassifier.arrays` that are the inputs', by their own names."""
    return {name.removeprefix("inputs."): array for name, array in arrays.items() if name.startswith("inputs.")}


def _canonical(texts: Phrases, words: Sequence[bytes]) -> Int64Array:
    """Where each text stands when they are sorted by length, then by their words as they are written."""
    used = np.unique(texts.words)
    ranks = np.zeros(len(words), np.int64)
    ranks[sorted(used.tolist(), key=lambda word: words[word])] = np.arange(len(used))
    matrix = np.full((len(texts), int(texts.lengths.max(initial=0))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < texts.lengths[:, None]] = ranks[texts.words]
    return np.lexsort((*matrix.T[::-1], texts.lengths))


_UNIT_SIZES = (3, 4)


def word_units(word: bytes) -> list[bytes]:
    """The units of a word, as bytes that differ where units do.

    Args:
        word: unescaped, in UTF-8; other bytes count as characters.  Upper and lower case are alike.
    """
    plain = word.decode("utf-8", "surrogateescape").lower()
    text = f"{WORD_BEGIN}{plain}{WORD_END}"
    units = [f"w{plain}"]
    units += [f"c{character}" for character in plain if unicodedata.east_asian_width(character) in "WF"]
    for size in _UNIT_SIZES:
        units += [f"g{text[first : first + size]}" for first in range(len(text) - size + 1)]
    return [unit.encode("utf-8", "surrogateescape") for unit in units]


def lexicon_units(words: Sequence[bytes], buckets: int) -> Phrases:
    """The numbers of the units of distinct words, each below `buckets`, a power of two."""
    return Phrases.from_lists([[zlib.crc32(unit) & (buckets - 1) for unit in word_units(word)] for word in words])


def sentence_units(texts: Phrases, lexicon: Phrases) -> Phrases:
    """The units of N sentences, one word's after another's.

    Args:
        texts: in numbers of the lexicon's words.
        lexicon: of `lexicon_units`.
    """
    by_word = lexicon.select(texts.words)
    return Phrases(by_word.offsets[texts.offsets], by_word.words)


# Sentences at a time.
_SUMMED_AT_ONCE = 4096


class SearchVectors:
    """A vector for each unit of both languages.

    Args:
        table: float16, shape (B, d), B a power of two.

    Raises:
        ValueError: it has another shape.
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
        """The vectors of N sentences, float32, shape (N, d), of length 1; zeros for a sentence without words.

        Args:
            texts: in numbers of the words.
            words: distinct, unescaped.
        """
        lexicon = lexicon_units(words, len(self._table))
        parts = [np.zeros((0, self.dimension), np.float32)]
        for first in range(0, len(texts), _SUMMED_AT_ONCE):
            part = texts.part(first, min(first + _SUMMED_AT_ONCE, len(texts)))
            parts.append(summed(sentence_units(part, lexicon), self._table).numpy())
        return np.concatenate(parts)


def summed(units: Phrases, table: Tensor, sparse: bool = False) -> Tensor:
    """The sum of the vectors of each sentence's units, divided by its length; float32, shape (N, d).

    Args:
        units: of N sentences.
        table: a vector for each unit, shape (B, d).
        sparse: its gradient is sparse.
    """
    numbers = torch.from_numpy(units.words.astype(np.int64)).to(table.device)
    offsets = torch.from_numpy(units.offsets[:-1].copy()).to(table.device)
    return functional.normalize(functional.embedding_bag(numbers, table, offsets, mode="sum", sparse=sparse), dim=1)
