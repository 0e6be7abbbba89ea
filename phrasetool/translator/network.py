"""An encoder-decoder with attention whose output at every step is a vector (see `architecture`).

A source sentence x_1 .. x_S becomes states H; at step t the decoder reads the vector of the word before (at the first
step zeros), gives h_t, and attends with softmax(h_t W H) for the context c_t.  From o_t = tanh(W2 [c_t; h_t]) one
linear layer predicts the vector of the next word, or of the end of the sentence.  A softmax translator multiplies what
that layer gives with its table of target vectors, which learns, and adds a bias, to the logits of a distribution.

Nothing is padded in the encoder: sentences of one length are read together.  So a sentence's states owe nothing to the
others in its batch, and attention sees its words alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.nn.layers import LengthGroups, SeededDropout, split_groups
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.translator.architecture import NeuralArchitecture
from phrasetool.translator.cores import (
    AttentionCore,
    AttentionEncoder,
    CoreState,
    DecoderCore,
    RecurrentCore,
    RecurrentEncoder,
)

# Of an id that stands for no word: before the first word, and after the end of a shorter sentence.
NOTHING = -1
# Parameters start evenly between minus this and this (Kumar and Tsvetkov 2019, their program).
_SPREAD = 0.1


@dataclass(frozen=True)
class Encoded:
    """B source sentences as the decoder sees them.

    Attributes:
        states: H, shape (B, S, m), zeros after the end of a shorter sentence.
        keys: W H, what is compared with h_t, shape (B, S, m).
        absent: bool, shape (B, S), what attention must not see; None if all sentences have S words.
        start: the last states, shape (B, s).
    """

    states: Tensor
    keys: Tensor
    absent: Tensor | None
    start: Tensor

    def select(self, rows: Tensor) -> Encoded:
        """Some of the sentences, each perhaps several times; rows int64, shape (K,)."""
        absent = None if self.absent is None else self.absent[rows]
        return Encoded(self.states[rows], self.keys[rows], absent, self.start[rows])


@dataclass
class StepState:
    """Where the decoder is in B sentences.

    Attributes:
        core: of the decoder without attention.
        fed: what attention gave at the step before, shape (B, m); None without input feeding.
    """

    core: CoreState
    fed: Tensor | None

    def select(self, rows: Tensor) -> StepState:
        """The state of some of the sentences, each perhaps several times; rows int64, shape (K,)."""
        return StepState(self.core.select(rows), None if self.fed is None else self.fed[rows])


class NeuralTranslator(nn.Module):
    """A translator.

    Args:
        architecture: which, and its dimensions.
        source_words: V_s, words of the source vocabulary, the unknown word included.
        targets: a vector for every word of the target vocabulary, the unknown word included, and for the end of the
            sentence, shape (V + 1, d).  They stay as they are, or are where a softmax starts from.
        seed: of the initial values of all other parameters.
        dropout: share of components dropped in training: of what encoder and decoder read and give.
    """

    targets: Tensor
    read_targets: Tensor

    def __init__(
        self,
        architecture: NeuralArchitecture,
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
    def from_arrays(cls, architecture: NeuralArchitecture, arrays: Mapping[str, FloatArray]) -> NeuralTranslator:
        """A trained translator, not in training.

        Args:
            architecture: which, and its dimensions.
            arrays: what `arrays` gave.

        Raises:
            RuntimeError: an array is missing, one too many, or of another shape.
        """
        made = cls(architecture, len(arrays["words"]), arrays["targets"])
        made.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
        return made.eval()

    @property
    def end(self) -> int:
        """The id of the end of a sentence: V."""
        return len(self.targets) - 1

    def seed_dropout(self, seed: int) -> None:
        """Make what dropout draws from here on a matter of this seed alone."""
        self.dropout.seed(seed)

    def arrays(self) -> dict[str, FloatArray]:
        """All parameters, and the target vectors, by name."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.state_dict().items()}

    def encode(self, sources: Phrases) -> Encoded:
        """Read B source sentences.

        Raises:
            LengthError: one has more words than `LONGEST`.
            ValueError: one has none.
        """
        if not sources.lengths.all():
            raise ValueError("a source sentence has no word")
        batch = LengthGroups.from_phrases(sources, self.words.device)
        rows = self.dropout(functional.embedding(batch.words, self.words))
        found = [self.encoder(part) for part in split_groups(rows, batch.groups)]
        longest = batch.groups[-1][1]
        states = torch.cat([functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part, _ in found])
        states, start = self.dropout(states), torch.cat([last for _, last in found])
        absent = None
        if len(batch.groups) > 1:
            states, start = batch.restored(states), batch.restored(start)
            lengths = torch.from_numpy(sources.lengths).to(states.device)
            absent = torch.arange(longest, device=states.device) >= lengths[:, None]
        return Encoded(states, self.compare(states), absent, start)

    def predict(self, encoded: Encoded, targets: Tensor) -> Tensor:
        """What is predicted at every step, given the words before; shape (T, d).

        Args:
            encoded: B source sentences.
            targets: int64, shape (B, L), ids of their translations and the end of each; NOTHING where none is.

        Returns:
            A row for each of the T ids, sentence by sentence.
        """
        before = functional.pad(targets[:, :-1], (1, 0), value=NOTHING)
        inputs = self.dropout(self._read(before))
        present = targets >= 0
        if self.architecture.input_feeding:
            state = self.begin(encoded, targets.shape[1])
            attended = torch.stack([self._step(encoded, state, part)[0] for part in inputs.unbind(1)], 1)
            return cast(Tensor, self.output(self.dropout(attended[present])))
        hidden = self.dropout(self.core.all_steps(inputs, encoded.start))
        context, _ = self._contexts(encoded, hidden)
        both = torch.cat([context[present], hidden[present]], 1)
        return cast(Tensor, self.output(self.dropout(torch.tanh(self.combine(both)))))

    def begin(self, encoded: Encoded, steps: int) -> StepState:
        """The state before the first of at most so many steps."""
        fed = None
        if self.architecture.input_feeding:
            fed = encoded.states.new_zeros(len(encoded.states), self.architecture.units)
        return StepState(self.core.begin(encoded.start, steps), fed)

    def step(self, encoded: Encoded, state: StepState, words: Tensor) -> tuple[Tensor, Tensor]:
        """Predict the next word; the state moves on.

        Args:
            encoded: B source sentences.
            state: where the decoder is.
            words: int64, shape (B,), the words before; NOTHING at the first step.

        Returns:
            What is predicted, shape (B, d), and how much of its attention each source word has, shape (B, S).
        """
        attended, weights = self._step(encoded, state, self._read(words))
        return self.output(attended), weights

    def logits(self, predicted: Tensor) -> Tensor:
        """Logits of a softmax translator, shape (T, V + 1), of what it predicts, shape (T, d)."""
        return functional.linear(predicted, self.targets, self.bias)

    def _step(self, encoded: Encoded, state: StepState, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """tanh(W2 [c; h]) of one step, shape (B, m), and the weights of attention."""
        if state.fed is not None:
            inputs = torch.cat([inputs, state.fed], 1)
        hidden = self.dropout(self.core.step(state.core, inputs))
        context, weights = self._contexts(encoded, hidden[:, None])
        attended = torch.tanh(self.combine(torch.cat([context[:, 0], hidden], 1)))
        if state.fed is not None:
            state.fed = attended
        return attended, weights[:, 0]

    def _contexts(self, encoded: Encoded, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Contexts (B, L, m) and weights (B, L, S) of the attention of hidden vectors (B, L, m)."""
        scores = torch.bmm(hidden, encoded.keys.transpose(1, 2))
        if encoded.absent is not None:
            scores = scores.masked_fill(encoded.absent[:, None], -float("inf"))
        weights = scores.softmax(2)
        return torch.bmm(weights, encoded.states), weights

    def _read(self, words: Tensor) -> Tensor:
        """Vectors of words as the decoder reads them, shape (..., w); zeros stand for NOTHING."""
        table = self.read_targets if self.architecture.output == "softmax" else self.targets
        vectors = functional.embedding(words.clamp_min(0), table) * (words >= 0)[..., None]
        return cast(Tensor, self.read(vectors))


def padded_targets(targets: Phrases, end: int) -> Tensor:
    """Target sentences, each with its end, as `NeuralTranslator.predict` takes them; int64, shape (B, L)."""
    lengths: Int64Array = targets.lengths
    matrix = targets.padded(int(lengths.max(initial=0)) + 1, NOTHING).astype(np.int64)
    matrix[np.arange(len(matrix)), lengths] = end
    return torch.from_numpy(matrix)


def _block_arrays(a: NeuralArchitecture, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Initial values of a block of self-attention: matrices by Glorot and Bengio (2010), gains one, biases zero."""
    w, m, f = a.word_units, a.units, a.feed_forward
    shapes = {"query": (m, w), "key": (m, w), "value": (m, w), "widen": (f, m), "narrow": (m, f)}
    found = {}
    for name, shape in shapes.items():
        limit = (6 / sum(shape)) ** 0.5
        found[name] = rng.uniform(-limit, limit, shape).astype(np.float32)
    for name, size in (("attention", m), ("hidden", m)):
        found[f"{name}_gain"], found[f"{name}_bias"] = np.ones(size, np.float32), np.zeros(size, np.float32)
    return {**found, "widen_bias": np.zeros(f, np.float32), "narrow_bias": np.zeros(m, np.float32)}
