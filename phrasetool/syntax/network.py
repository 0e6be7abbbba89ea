"""The network as it is trained: it reads a text in pieces and writes the parts of speech of its translation.

The encoder is a bidirectional LSTM of some layers.  The vector of a text is the greatest of its outputs in each
component, z = max_t o_t; the decoder sees it at every step, beside the tag before and the language that is written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from phrasetool.nn.layers import SeededDropout
from phrasetool.phrases import FloatArray
from phrasetool.syntax.decoder_steps import layer_states
from phrasetool.syntax.syntax_shape import END, TAGS, SyntaxShape

# So many texts of one length are read by themselves.
_ALIKE = 8


class SyntaxNetwork(nn.Module):
    """Encoder and decoder.

    Args:
        shape: their dimensions.
        arrays: initial values; drawn with seed 1 if None.
        dropout: share of components of what layers read and give that are dropped in training; of what the decoder
            reads at every step, the same at all steps.
    """

    def __init__(
        self, shape: SyntaxShape, arrays: Mapping[str, FloatArray] | None = None, dropout: float = 0.0
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
        given = shape.initial_arrays(1) if arrays is None else arrays
        self.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in given.items()})
        self.dropout = SeededDropout(dropout)

    def seed_dropout(self, seed: int) -> None:
        """What follows drops what this seed says."""
        self.dropout.seed(seed)

    def encode(self, texts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors of B texts, shape (B, 2 units), and the last states and cells of all layers, joined.

        Args:
            texts: pieces, int64, shape (B, longest of them), filled up with anything.
            lengths: pieces of each text, at least 1, int64, shape (B,), on the CPU.
        """
        read = self.dropout(self.pieces(texts))
        groups = _of_one_length(lengths)
        parts = []
        for rows in groups:
            there = rows.to(texts.device)
            parts.append(self._encode(read.index_select(0, there), lengths[rows]))
        back = torch.argsort(torch.cat(groups)).to(texts.device)
        vectors, last = (torch.cat(found).index_select(0, back) for found in zip(*parts, strict=True))
        return vectors, last

    def _encode(self, found: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """See `encode`, of the vectors of pieces."""
        longest = int(lengths.max())
        found, alike = found[:, :longest], bool((lengths == longest).all())
        states, cells = [], []
        for layer in self.encoder:
            if alike:
                found, (state, cell) = layer(found)
            else:
                packed = pack_padded_sequence(found, lengths, batch_first=True, enforce_sorted=False)
                packed, (state, cell) = layer(packed)
                found, _ = pad_packed_sequence(packed, batch_first=True)
            states.extend(state)
            cells.extend(cell)
            found = self.dropout(found)
        if not alike:
            outside = torch.arange(longest)[None] >= lengths[:, None]
            found = found.masked_fill(outside.to(found.device)[:, :, None], -torch.inf)
        return found.amax(1), torch.cat([*states, *cells], 1)

    def decode(self, vectors: Tensor, last: Tensor, languages: Tensor, tags: Tensor) -> Tensor:
        """Logits of B sequences of tags, shape (B, T + 1, 18): of each tag given those before it, and of the end.

        Behind the end of a sequence they mean nothing.

        Args:
            vectors, last: of `encode`.
            languages: that are written, int64, shape (B,).
            tags: int64, shape (B, T), filled up with `END`.
        """
        begin = torch.full_like(tags[:, :1], END)
        before = self.dropout(self.tags(torch.cat([begin, tags], 1)))
        same = self.dropout(torch.cat([self.languages(languages), vectors], 1))
        first, cell = self.start(last).chunk(2, 1)
        if before.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
            lengths, order = ((tags != END).sum(1) + 1).sort(descending=True, stable=True)
            inputs = before.index_select(0, order).transpose(0, 1)
            given = (same.index_select(0, order), (first.index_select(0, order), cell.index_select(0, order)))
            states = layer_states(self.decoder, inputs, *given, lengths.numpy()).transpose(0, 1)
            states = states.index_select(0, torch.argsort(order))
        else:
            read = torch.cat([before, same[:, None].expand(-1, before.shape[1], -1)], 2)
            states, _ = self.decoder(read, (first[None].contiguous(), cell[None].contiguous()))
        found: Tensor = self.output(self.dropout(states))
        return found

    def arrays(self) -> dict[str, FloatArray]:
        """Parameters by name, float32."""
        return {
            name: np.array(value.detach().cpu().numpy(), np.float32, order="C")
            for name, value in self.named_parameters()
        }


def _of_one_length(lengths: Tensor) -> list[Tensor]:
    """The rows of texts that are read together: those of one length where there are some, and all others.

    Texts of one length need no packing, with which PyTorch takes longer.

    Args:
        lengths: int64, shape (B,).
    """
    counts = torch.bincount(lengths)
    rare = counts[lengths] < _ALIKE
    often = [(lengths == length).nonzero()[:, 0] for length in (counts >= _ALIKE).nonzero()[:, 0].tolist()]
    return [*often, rare.nonzero()[:, 0]] if rare.any() else often
