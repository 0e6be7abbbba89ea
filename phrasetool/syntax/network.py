"""The network for training: it reads a text in subword units and predicts the parts of speech of its translation.

The encoder is a bidirectional LSTM.  The vector of a text is the maximum of its outputs in each component,
z = max_t o_t; the decoder reads it at every step, in addition to the previous tag and the language of the translation.

On a CPU the decoder uses a custom LSTM layer: the products of constant inputs are computed once, and sequences of
unequal lengths need no padding, because a step is computed only for the sequences that have it.  An update takes two
thirds of the time that it takes with PyTorch's layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from phrasetool.nn.layers import SeededDropout
from phrasetool.nn.lstm import states_of_products
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.syntax.settings import END, TAGS, SyntaxShape

# Minimum number of texts of one length that form a separate batch.
_MIN_GROUP = 8


class SyntaxNetwork(nn.Module):
    """Encoder and decoder.

    Args:
        shape: dimensions of encoder and decoder.
        arrays: initial values; drawn with seed 1 if None.
        dropout: share of the components of layers' inputs and outputs that are dropped in training; the mask of the
            decoder's constant inputs is the same at all steps.
        decoder_dropout: whether components of the decoder are dropped, too.
    """

    def __init__(
        self,
        shape: SyntaxShape,
        arrays: Mapping[str, FloatArray] | None = None,
        dropout: float = 0.0,
        decoder_dropout: bool = True,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.pieces = nn.Embedding(shape.pieces, shape.piece_units, padding_idx=0)
        sizes = [shape.piece_units, *[shape.dimension] * (shape.layers - 1)]
        self.encoder = nn.ModuleList(nn.LSTM(n, shape.units, batch_first=True, bidirectional=True) for n in sizes)
        self.start = nn.Linear(4 * shape.layers * shape.units, 2 * shape.decoder_units)
        self.tags = nn.Embedding(TAGS + 1, shape.tag_units)
        self.languages = nn.Embedding(shape.languages, shape.language_units)
        read = shape.tag_units + shape.language_units + shape.dimension
        self.decoder = nn.LSTM(read, shape.decoder_units, batch_first=True)
        self.output = nn.Linear(shape.decoder_units, TAGS + 1)
        initial = shape.initial_arrays(1) if arrays is None else arrays
        self.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in initial.items()})
        self.dropout = SeededDropout(dropout)
        self._decoder_dropout: Callable[[Tensor], Tensor] = self.dropout if decoder_dropout else nn.Identity()

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the dropout masks of the following calls."""
        self.dropout.seed(seed)

    def encode(self, texts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vectors of B texts, shape (B, 2 units), and the last states and cells of all layers, concatenated.

        Args:
            texts: piece ids, int64, shape (B, length of the longest text), with any padding.
            lengths: number of pieces of each text, at least 1, int64, shape (B,), on the CPU.
        """
        inputs = self.dropout(self.pieces(texts))
        groups = _length_groups(lengths)
        parts = [self._encode(inputs.index_select(0, rows.to(texts.device)), lengths[rows]) for rows in groups]
        order = torch.argsort(torch.cat(groups)).to(texts.device)
        vectors, last = (torch.cat(outputs).index_select(0, order) for outputs in zip(*parts, strict=True))
        return vectors, last

    def _encode(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode texts given the vectors of their pieces, see `encode`."""
        longest = int(lengths.max())
        hidden, same_length = inputs[:, :longest], bool((lengths == longest).all())
        states, cells = [], []
        for layer in self.encoder:
            if same_length:
                hidden, (state, cell) = layer(hidden)
            else:
                packed = pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
                packed, (state, cell) = layer(packed)
                hidden, _ = pad_packed_sequence(packed, batch_first=True)
            states.extend(state)
            cells.extend(cell)
            hidden = self.dropout(hidden)
        if not same_length:
            outside = torch.arange(longest)[None] >= lengths[:, None]
            hidden = hidden.masked_fill(outside.to(hidden.device)[:, :, None], -torch.inf)
        return hidden.amax(1), torch.cat([*states, *cells], 1)

    def decode(self, vectors: Tensor, last: Tensor, languages: Tensor, tags: Tensor) -> Tensor:
        """Return the logits of B sequences of tags: of each tag given the previous ones, and of the end.

        Args:
            vectors, last: result of `encode`.
            languages: number of the language of each sequence, int64, shape (B,).
            tags: int64, shape (B, T), padded with `END`.

        Returns:
            Shape (B, T + 1, 18); undefined after the end of a sequence.
        """
        begin = torch.full_like(tags[:, :1], END)
        before = self._decoder_dropout(self.tags(torch.cat([begin, tags], 1)))
        constant = self._decoder_dropout(torch.cat([self.languages(languages), vectors], 1))
        first, cell = self.start(last).chunk(2, 1)
        if before.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
            lengths, order = ((tags != END).sum(1) + 1).sort(descending=True, stable=True)
            inputs = before.index_select(0, order).transpose(0, 1)
            start = first.index_select(0, order), cell.index_select(0, order)
            states = layer_states(self.decoder, inputs, constant.index_select(0, order), start, lengths.numpy())
            states = states.transpose(0, 1).index_select(0, torch.argsort(order))
        else:
            inputs = torch.cat([before, constant[:, None].expand(-1, before.shape[1], -1)], 2)
            states, _ = self.decoder(inputs, (first[None].contiguous(), cell[None].contiguous()))
        logits: Tensor = self.output(self._decoder_dropout(states))
        return logits

    def arrays(self) -> dict[str, FloatArray]:
        """Return the parameters by name, float32."""
        return {
            name: np.array(value.detach().cpu().numpy(), np.float32, order="C")
            for name, value in self.named_parameters()
        }


def _length_groups(lengths: Tensor) -> list[Tensor]:
    """Group texts into batches: one per frequent length, and one for all other texts; return the rows of each.

    Texts of equal length need no packing, which makes PyTorch slower.

    Args:
        lengths: length of each text, int64, shape (B,).
    """
    counts = torch.bincount(lengths)
    rare = counts[lengths] < _MIN_GROUP
    groups = [(lengths == length).nonzero()[:, 0] for length in (counts >= _MIN_GROUP).nonzero()[:, 0].tolist()]
    return [*groups, rare.nonzero()[:, 0]] if rare.any() else groups


def layer_states(
    layer: nn.LSTM, inputs: Tensor, constant: Tensor, start: tuple[Tensor, Tensor], lengths: Int64Array
) -> Tensor:
    """Return the states of an LSTM layer for B sequences, shape (T, B, H); zero after their ends.

    Args:
        layer: an LSTM with one layer in one direction.
        inputs: inputs that vary, shape (T, B, I).
        constant: inputs that are the same at every step, shape (B, C); I + C is the layer's input size.
        start: states and cells before the first step, shape (B, H).
        lengths: lengths of the sequences, from 1 to T, in descending order.
    """
    weight, recurrent, bias, recurrent_bias = (value for _, value in layer.named_parameters())
    steps, batch, units = inputs.shape
    active = lengths[None] > np.arange(steps)[:, None]
    positions = torch.from_numpy(np.flatnonzero(active))
    products = linear(inputs.flatten(0, 1).index_select(0, positions), weight[:, :units])
    products = products + linear(constant, weight[:, units:], bias + recurrent_bias).index_select(0, positions % batch)
    counts = [count for count in active.sum(1).tolist() if count]
    states = states_of_products(products, recurrent, *start, counts)
    padded = states.new_zeros(steps * batch, states.shape[1]).index_copy(0, positions, states)
    return padded.view(steps, batch, -1)
