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

from phrasetool.phrases import FloatArray
from phrasetool.syntax.syntax_shape import END, TAGS, SyntaxShape


class SyntaxNetwork(nn.Module):
    """Encoder and decoder.

    Args:
        shape: their dimensions.
        arrays: initial values; drawn with seed 1 if None.
    """

    def __init__(self, shape: SyntaxShape, arrays: Mapping[str, FloatArray] | None = None) -> None:
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
        self._generator = torch.Generator()

    def seed_dropout(self, seed: int) -> None:
        """What follows drops what this seed says."""
        self._generator = torch.Generator().manual_seed(seed)

    def encode(self, texts: Tensor, lengths: Tensor, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """The vectors of B texts, shape (B, 2 units), and the last states and cells of all layers, joined.

        Args:
            texts: pieces, int64, shape (B, longest of them), filled up with anything.
            lengths: pieces of each text, at least 1, int64, shape (B,), on the CPU.
            dropout: share of components dropped before, between and behind the layers.
        """
        found = self._dropped(self.pieces(texts), dropout)
        states, cells = [], []
        for layer in self.encoder:
            packed = pack_padded_sequence(found, lengths, batch_first=True, enforce_sorted=False)
            packed, (state, cell) = layer(packed)
            states.extend(state)
            cells.extend(cell)
            found, _ = pad_packed_sequence(packed, batch_first=True)
            found = self._dropped(found, dropout)
        outside = torch.arange(found.shape[1])[None] >= lengths[:, None]
        vectors = found.masked_fill(outside.to(found.device)[:, :, None], -torch.inf).amax(1)
        return vectors, torch.cat([*states, *cells], 1)

    def decode(self, vectors: Tensor, last: Tensor, languages: Tensor, tags: Tensor, dropout: float = 0.0) -> Tensor:
        """Logits of B sequences of tags, shape (B, T + 1, 18): of each tag given those before it, and of the end.

        Args:
            vectors, last: of `encode`.
            languages: that are written, int64, shape (B,).
            tags: int64, shape (B, T), filled up with `END`.
            dropout: share of components of the inputs and the outputs that are dropped.
        """
        begin = torch.full_like(tags[:, :1], END)
        before = self.tags(torch.cat([begin, tags], 1))
        same = torch.cat([self.languages(languages), vectors], 1)[:, None].expand(-1, before.shape[1], -1)
        first, cell = self.start(last).chunk(2, 1)
        read = self._dropped(torch.cat([before, same], 2), dropout)
        states, _ = self.decoder(read, (first[None].contiguous(), cell[None].contiguous()))
        found: Tensor = self.output(self._dropped(states, dropout))
        return found

    def _dropped(self, values: Tensor, share: float) -> Tensor:
        if not share:
            return values
        kept = torch.rand(values.shape, generator=self._generator) >= share
        return values * kept.to(values.device) / (1 - share)

    def arrays(self) -> dict[str, FloatArray]:
        """Parameters by name, float32."""
        return {
            name: np.array(value.detach().cpu().numpy(), np.float32, order="C")
            for name, value in self.named_parameters()
        }
