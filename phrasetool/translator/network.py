"""Network of a translator: an encoder-decoder with attention that predicts a vector at every step.

A source sentence x_1 .. x_S becomes states H; at step t the decoder reads the vector of the previous word (zeros at the
first step), returns h_t, and attends with softmax(h_t W H) for the context c_t.  From o_t = tanh(W2 [c_t; h_t]) one
linear layer predicts the vector of the next word, or of the end of the sentence.  A softmax translator multiplies the
output of that layer by its trained table of target vectors and adds a bias, which gives the logits of a distribution.

The encoder needs no padding: sentences of one length are read together.  Therefore the states of a sentence do not
depend on the other sentences of its batch, and attention is limited to its words.

The target vectors (`target_table`) have length one.  The end of a sentence has equal components; the unknown word has
the direction of the mean of words outside the vocabulary (Kumar and Tsvetkov 2019), or the opposite.  No target vector
is zero, because it would be the nearest whenever all cosines are negative (the decoder reads zeros at the beginning of
a sentence, but the beginning is never predicted).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.nn.decoders import AttentionDecoder, DecoderState
from phrasetool.nn.layers import AttentionBlock, LengthGroups, SeededDropout, split_groups
from phrasetool.nn.lstm import Product, StepProducts, lstm_step
from phrasetool.nn.positions import LONGEST, positions
from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases
from phrasetool.translator.settings import TranslatorArchitecture
from phrasetool.vocabulary import Vocabulary


def target_table(
    vocabulary: Vocabulary, known: Mapping[bytes, FloatArray], centring: str, unknown: str, seed: int
) -> FloatArray:
    """Return the table of target vectors, which the translator predicts.

    Args:
        vocabulary: V words, the unknown word first; all others must be known.
        known: word -> vector of shape (d,), also of words outside the vocabulary, which represent unknown words.
        centring: `plain` keeps vectors unchanged, `centred` subtracts the mean of the vocabulary, `random` draws a
            direction for every word (a control, in which nothing is learnt about words from other words).
        unknown: `mean` or `negated`; without words outside the vocabulary, its least frequent words represent unknown
            words, at least two (a single one could not be distinguished from the unknown word).
        seed: seed of the random directions.

    Returns:
        float32, shape (V + 1, d), rows of length one; the last is the vector of the end.

    Raises:
        KeyError: a word of the vocabulary is not known.
        ValueError: there are fewer than two words in addition to the unknown one; or a vector is zero, not finite, or
            equal to that of another word.
    """
    words = vocabulary.words[1:]
    if not words:
        raise ValueError("no target word has a vector")
    if len(words) == 1:
        word = words[0].decode("utf-8", "replace")
        raise ValueError(f"{word} is the only target word with a vector; expected at least two")
    inside = set(words)
    outside = [word for word in known if word not in inside] or words[-max(2, len(words) // 10) :]
    d = len(known[words[0]])
    rows = np.stack([known[word] for word in words])
    others = np.stack([known[word] for word in outside])
    _check(words, rows)
    _check_finite(outside, others)
    if centring == "random":
        rng = np.random.default_rng(seed)
        rows, others = rng.normal(size=rows.shape).astype(np.float32), rng.normal(size=(1, d)).astype(np.float32)
    elif centring == "centred":
        mean = rows.mean(0, dtype=np.float64).astype(np.float32)
        rows, others = rows - mean, others - mean
        _check_directions(words, rows)
    none = _unit(_unit(others).mean(0, dtype=np.float64)[None]) * (-1 if unknown == "negated" else 1)
    end = np.full((1, d), d**-0.5)
    table: FloatArray = np.concatenate([none, _unit(rows), end]).astype(np.float32)
    return table


def _unit(vectors: FloatArray) -> FloatArray:
    """Scale vectors to length one; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


def _check(words: list[bytes], rows: FloatArray) -> None:
    """Raise an error for vectors that have no direction, or for two words with the same vector.

    Raises:
        ValueError: see `target_table`.
    """
    _check_directions(words, rows)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    twins = np.flatnonzero(first[inverse.ravel()] != np.arange(len(rows)))
    if len(twins):
        word, twin = (words[int(i)].decode("utf-8", "replace") for i in (first[inverse.ravel()[twins[0]]], twins[0]))
        raise ValueError(f"the target words {word} and {twin} have the same vector")


def _check_directions(words: list[bytes], rows: FloatArray) -> None:
    """Raise an error for vectors that have no direction.

    Raises:
        ValueError: the message names the first such word.
    """
    _check_finite(words, rows)
    _refuse(words, np.linalg.norm(rows, axis=1) == 0, "is zero")


def _check_finite(words: list[bytes], rows: FloatArray) -> None:
    """Raise an error for vectors with a component that is not finite.

    Raises:
        ValueError: the message names the first such word.
    """
    malformed: Mask = ~np.isfinite(rows.sum(1, dtype=np.float64))
    _refuse(words, malformed, "is not finite")


def _refuse(words: list[bytes], malformed: Mask, what: str) -> None:
    if malformed.any():
        word = words[int(np.argmax(malformed))].decode("utf-8", "replace")
        raise ValueError(f"the vector of the target word {word} {what}")


_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


@dataclass
class CoreState:
    """State of a decoder core after some steps, for B sentences.

    Attributes:
        steps: number of steps so far.
        parts: tensors whose first dimension is B.
        product: computes the products of the steps; in training, it also collects their gradients.
    """

    steps: int
    parts: tuple[Tensor, ...]
    product: Product = functional.linear

    def select(self, rows: Tensor) -> CoreState:
        """Return the state of some of the sentences, which may be repeated; rows are int64, shape (K,)."""
        return CoreState(self.steps, tuple(part.index_select(0, rows) for part in self.parts), self.product)


class DecoderCore(Protocol):
    """Decoder without attention, from previous words to hidden vectors; all steps at once, or step by step."""

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """Return the hidden vectors of all steps, shape (B, L, m).

        Args:
            inputs: vectors of the previous words, shape (B, L, w).
            start: last states of the encoder, shape (B, s); s = 0 for self-attention.
        """

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """Return the state before the first step; steps is the maximum number of steps."""

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """Return the hidden vectors of the next step, shape (B, m), for inputs of shape (B, w); update the state."""


class RecurrentCore(nn.Module):
    """Layers of LSTMs or GRUs, each of which starts from the last states of the encoder.

    Args:
        cell: `lstm` or `gru`.
        inputs: size of the input of a step.
        units: m.
        layers: number of layers.
    """

    def __init__(self, cell: str, inputs: int, units: int, layers: int) -> None:
        super().__init__()
        self.cells = _CELLS[cell](inputs, units, layers, batch_first=True)
        self.number = layers
        self.has_cell = cell == "lstm"

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """Return the hidden states of all steps."""
        return self.cells(inputs, self._first(start))[0]  # type: ignore[no-any-return]

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """Return the state before the first step."""
        return CoreState(0, tuple(part.transpose(0, 1) for part in self._parts(self._first(start))))

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """Return the hidden states of one step, and update the state."""
        if self.has_cell and inputs.device.type == "cpu":
            states, cells = (part.unbind(1) for part in state.parts)
            layers = lstm_step(cast(nn.LSTM, self.cells), inputs, states, cells, state.product)
            state.parts = tuple(torch.stack(part, 1) for part in zip(*layers, strict=True))
            state.steps += 1
            return layers[-1][0]
        before = tuple(part.transpose(0, 1).contiguous() for part in state.parts)
        hidden, after = self.cells(inputs[:, None], before if self.has_cell else before[0])
        state.parts = tuple(part.transpose(0, 1) for part in self._parts(after))
        state.steps += 1
        return hidden[:, 0]  # type: ignore[no-any-return]

    def _first(self, start: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the initial output (and cell), the same for each layer, in torch's format."""
        parts = tuple(part.expand(self.number, -1, -1).contiguous() for part in start.chunk(1 + self.has_cell, 1))
        return (parts[0], parts[1]) if self.has_cell else parts[0]

    @staticmethod
    def _parts(state: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return state if isinstance(state, tuple) else (state,)


class AttentionCore(nn.Module):
    """Masked self-attention and feed-forward over words with their positions.

    Args:
        arrays: initial values, see `AttentionBlock`.
        heads: h.
        dropout: dropout of the outputs of its layers.
        word_units: w.
    """

    positions: Tensor

    def __init__(self, arrays: dict[str, FloatArray], heads: int, dropout: SeededDropout, word_units: int) -> None:
        super().__init__()
        self.block = AttentionDecoder(arrays, heads, dropout, causal=True)
        encodings = torch.from_numpy(positions(LONGEST + 1, word_units))
        self.register_buffer("positions", encodings, persistent=False)

    def all_steps(self, inputs: Tensor, start: Tensor) -> Tensor:
        """Return the hidden states of all steps; the start state is not used."""
        count, length, w = inputs.shape
        placed = inputs + self.positions[:length]
        return self.block.all_steps(placed.view(-1, w), start, [(count, length)]).view(count, length, -1)

    def begin(self, start: Tensor, steps: int) -> CoreState:
        """Return the state before the first step."""
        state = self.block.begin(start, steps)
        return CoreState(0, (state.first, state.second))

    def step(self, state: CoreState, inputs: Tensor) -> Tensor:
        """Return the hidden states of one step, and update the state."""
        inner = DecoderState(state.steps, *state.parts)
        hidden = self.block.step(inner, inputs + self.positions[state.steps])
        state.steps = inner.steps
        return hidden


class RecurrentEncoder(nn.Module):
    """One bidirectional layer.

    Args:
        cell: `lstm` or `gru`.
        word_units: w.
        units: m, of both directions together.
    """

    def __init__(self, cell: str, word_units: int, units: int) -> None:
        super().__init__()
        self.cells = _CELLS[cell](word_units, units // 2, batch_first=True, bidirectional=True)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (B, S, m) and last states (B, m), or with cells (B, 2 m), of words (B, S, w)."""
        states, last = self.cells(words)
        parts = last if isinstance(last, tuple) else (last,)
        return states, torch.cat([torch.cat([*part], 1) for part in parts], 1)


class AttentionEncoder(nn.Module):
    """A block of self-attention over words with their positions; takes the arguments of `AttentionCore`."""

    positions: Tensor

    def __init__(self, arrays: dict[str, FloatArray], heads: int, dropout: SeededDropout, word_units: int) -> None:
        super().__init__()
        self.block = AttentionBlock(arrays, heads, dropout)
        encodings = torch.from_numpy(positions(LONGEST, word_units))
        self.register_buffer("positions", encodings, persistent=False)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (B, S, m) of words (B, S, w), and empty last states (B, 0)."""
        count, length, w = words.shape
        placed = words + self.positions[:length]
        return self.block(placed.view(-1, w), [(count, length)]).view(count, length, -1), words.new_zeros(count, 0)


# Id that stands for no word: before the first word, and after the end of a shorter sentence.
NOTHING = -1
# Initial parameters are uniform in [-_SPREAD, _SPREAD) (program of Kumar and Tsvetkov 2019).
_SPREAD = 0.1


@dataclass(frozen=True)
class Encoded:
    """B encoded source sentences.

    Attributes:
        states: H, shape (B, S, m), zeros after the end of a shorter sentence.
        keys: W H, compared with h_t, shape (B, S, m).
        absent: padding, which attention must ignore, bool, shape (B, S); None if all sentences have S words.
        start: last states, shape (B, s).
    """

    states: Tensor
    keys: Tensor
    absent: Tensor | None
    start: Tensor

    def select(self, rows: Tensor) -> Encoded:
        """Return some of the sentences, which may be repeated; rows are int64, shape (K,)."""
        absent = None if self.absent is None else self.absent[rows]
        return Encoded(self.states[rows], self.keys[rows], absent, self.start[rows])


@dataclass
class StepState:
    """State of the decoder after some steps, for B sentences.

    Attributes:
        core: state of the decoder core.
        fed: attention output of the previous step, shape (B, m); None without input feeding.
    """

    core: CoreState
    fed: Tensor | None

    def select(self, rows: Tensor) -> StepState:
        """Return the state of some of the sentences, which may be repeated; rows are int64, shape (K,)."""
        return StepState(self.core.select(rows), None if self.fed is None else self.fed[rows])


class TranslatorNetwork(nn.Module):
    """Network of a translator.

    Args:
        architecture: architecture with its dimensions.
        source_words: V_s, number of words of the source vocabulary, including the unknown word.
        targets: vectors of all words of the target vocabulary, including the unknown word, and of the end of the
            sentence, shape (V + 1, d).  They are fixed, or the initial values of a softmax.
        seed: random seed of the initial values of all other parameters.
        dropout: share of components of inputs and outputs of encoder and decoder dropped in training.
    """

    targets: Tensor
    read_targets: Tensor

    def __init__(
        self,
        architecture: TranslatorArchitecture,
        source_words: int,
        targets: FloatArray,
        seed: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        a = self.architecture = architecture
        w, m, d = a.word_units, a.units, a.dimension
        self.dropout = SeededDropout(dropout)
        self.words = nn.Parameter(torch.empty(source_words, w))
        self.read = nn.Linear(d, w)
        self.core: DecoderCore
        if a.recurrent:
            self.encoder: nn.Module = RecurrentEncoder(a.cell, w, m)
            self.core = RecurrentCore(a.cell, w + m * a.input_feeding, m, a.layers)
        else:
            rng = np.random.default_rng([seed, 1])
            self.encoder = AttentionEncoder(_block_arrays(a, rng), a.heads, self.dropout, w)
            self.core = AttentionCore(_block_arrays(a, rng), a.heads, self.dropout, w)
        self.compare = nn.Linear(m, m, bias=False)
        self.combine = nn.Linear(2 * m, m, bias=False)
        self.output = nn.Linear(m, d)
        rng = np.random.default_rng(seed)
        for name, parameter in self.named_parameters():
            if ".block." not in name:
                drawn = rng.uniform(-_SPREAD, _SPREAD, tuple(parameter.shape)).astype(np.float32)
                parameter.data = torch.from_numpy(drawn)
        table = torch.from_numpy(targets.copy())
        self.bias: nn.Parameter | None = None
        if a.continuous:
            self.register_buffer("targets", table)
        else:
            self.targets, self.bias = nn.Parameter(table), nn.Parameter(torch.zeros(len(table)))
            if a.output == "softmax":
                self.read_targets = nn.Parameter(table.clone())

    @classmethod
    def from_arrays(cls, architecture: TranslatorArchitecture, arrays: Mapping[str, FloatArray]) -> TranslatorNetwork:
        """Return a trained network in evaluation mode.

        Args:
            architecture: architecture with its dimensions.
            arrays: name -> array, as returned by `arrays`.

        Raises:
            RuntimeError: an array is missing, unexpected, or of another shape.
        """
        network = cls(architecture, len(arrays["words"]), arrays["targets"])
        network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
        return network.eval()

    @property
    def end(self) -> int:
        """Id of the end of a sentence: V."""
        return len(self.targets) - 1

    def seed_dropout(self, seed: int) -> None:
        """Seed dropout, so that its later draws depend on this seed only."""
        self.dropout.seed(seed)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all parameters and the target vectors by name."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.state_dict().items()}

    def encode(self, sources: Phrases) -> Encoded:
        """Encode B source sentences.

        Raises:
            LengthError: a sentence has more words than `LONGEST`.
            ValueError: a sentence has no words.
        """
        if not sources.lengths.all():
            raise ValueError("a source sentence has no word")
        batch = LengthGroups.from_phrases(sources, self.words.device)
        rows = self.dropout(functional.embedding(batch.words, self.words))
        encoded_groups = [self.encoder(part) for part in split_groups(rows, batch.groups)]
        longest = batch.groups[-1][1]
        states = torch.cat([functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part, _ in encoded_groups])
        states, start = self.dropout(states), torch.cat([last for _, last in encoded_groups])
        absent = None
        if len(batch.groups) > 1:
            states, start = batch.restored(states), batch.restored(start)
            lengths = torch.from_numpy(sources.lengths).to(states.device)
            absent = torch.arange(longest, device=states.device) >= lengths[:, None]
        return Encoded(states, self.compare(states), absent, start)

    def predict(self, encoded: Encoded, targets: Tensor) -> Tensor:
        """Return the prediction at every step, given the previous words; shape (T, d).

        Args:
            encoded: B source sentences.
            targets: ids of their translations, each with the end, padded with NOTHING, int64, shape (B, L).

        Returns:
            A row for each of the T ids, sentence by sentence.
        """
        before = functional.pad(targets[:, :-1], (1, 0), value=NOTHING)
        inputs = self.dropout(self._read(before))
        present = targets >= 0
        if self.architecture.input_feeding:
            state = self.begin(encoded, targets.shape[1])
            if torch.is_grad_enabled():
                state.core.product = StepProducts()
            attended = torch.stack([self._step(encoded, state, part)[0] for part in inputs.unbind(1)], 1)
            return cast(Tensor, self.output(self.dropout(attended[present])))
        hidden = self.dropout(self.core.all_steps(inputs, encoded.start))
        context, _ = self._contexts(encoded, hidden)
        both = torch.cat([context[present], hidden[present]], 1)
        return cast(Tensor, self.output(self.dropout(torch.tanh(self.combine(both)))))

    def begin(self, encoded: Encoded, steps: int) -> StepState:
        """Return the state before the first step.

        Args:
            encoded: B source sentences.
            steps: maximum number of steps.
        """
        fed = None
        if self.architecture.input_feeding:
            fed = encoded.states.new_zeros(len(encoded.states), self.architecture.units)
        return StepState(self.core.begin(encoded.start, steps), fed)

    def step(self, encoded: Encoded, state: StepState, words: Tensor) -> tuple[Tensor, Tensor]:
        """Predict the next word, and update the state.

        Args:
            encoded: B source sentences.
            state: state of the decoder.
            words: previous words, int64, shape (B,); NOTHING at the first step.

        Returns:
            Predictions, shape (B, d), and attention weights of the source words, shape (B, S).
        """
        attended, weights = self._step(encoded, state, self._read(words))
        return self.output(attended), weights

    def logits(self, predicted: Tensor) -> Tensor:
        """Return the logits of a softmax translator, shape (T, V + 1), from its predictions, shape (T, d)."""
        return functional.linear(predicted, self.targets, self.bias)

    def _step(self, encoded: Encoded, state: StepState, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return tanh(W2 [c; h]) of one step, shape (B, m), and the attention weights."""
        if state.fed is not None:
            inputs = torch.cat([inputs, state.fed], 1)
        hidden = self.dropout(self.core.step(state.core, inputs))
        context, weights = self._contexts(encoded, hidden[:, None])
        attended = torch.tanh(state.core.product(torch.cat([context[:, 0], hidden], 1), self.combine.weight, None))
        if state.fed is not None:
            state.fed = attended
        return attended, weights[:, 0]

    def _contexts(self, encoded: Encoded, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return contexts (B, L, m) and weights (B, L, S) of the attention of hidden vectors (B, L, m)."""
        scores = torch.bmm(hidden, encoded.keys.transpose(1, 2))
        if encoded.absent is not None:
            scores = scores.masked_fill(encoded.absent[:, None], -float("inf"))
        weights = scores.softmax(2)
        return torch.bmm(weights, encoded.states), weights

    def _read(self, words: Tensor) -> Tensor:
        """Return the vectors of words that the decoder reads, shape (..., w); zeros for NOTHING."""
        table = self.read_targets if self.architecture.output == "softmax" else self.targets
        vectors = functional.embedding(words.clamp_min(0), table) * (words >= 0)[..., None]
        return cast(Tensor, self.read(vectors))


def padded_targets(targets: Phrases, end: int) -> Tensor:
    """Return target sentences, each with its end, padded for `TranslatorNetwork.predict`; int64, shape (B, L)."""
    lengths: Int64Array = targets.lengths
    matrix = targets.padded(int(lengths.max(initial=0)) + 1, NOTHING).astype(np.int64)
    matrix[np.arange(len(matrix)), lengths] = end
    return torch.from_numpy(matrix)


def _block_arrays(a: TranslatorArchitecture, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return initial values of a self-attention block: matrices by Glorot and Bengio (2010), gains one, biases zero."""
    w, m, f = a.word_units, a.units, a.feed_forward
    shapes = {"query": (m, w), "key": (m, w), "value": (m, w), "widen": (f, m), "narrow": (m, f)}
    arrays = {}
    for name, shape in shapes.items():
        limit = (6 / sum(shape)) ** 0.5
        arrays[name] = rng.uniform(-limit, limit, shape).astype(np.float32)
    for name, size in (("attention", m), ("hidden", m)):
        arrays[f"{name}_gain"], arrays[f"{name}_bias"] = np.ones(size, np.float32), np.zeros(size, np.float32)
    return {**arrays, "widen_bias": np.zeros(f, np.float32), "narrow_bias": np.zeros(m, np.float32)}
