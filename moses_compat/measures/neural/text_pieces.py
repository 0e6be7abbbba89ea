"""Entries of a table as text, for models that read words or pieces of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.lines.phrase_text import phrase_text
from phrasetool.phrases import EntryBlock


@dataclass(frozen=True)
class TextPiece:
    """N entries without faults.

    Attributes:
        sources, targets: what N phrases each say.
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    sources: list[bytes]
    targets: list[bytes]
    hashes: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, block: EntryBlock) -> TextPiece:
        """The good entries of a block with fingerprints."""
        good = np.flatnonzero(~block.faulty)
        data = block.text.tobytes()
        starts, middles, ends = (
            places[good].tolist() for places in (block.line_offsets[:-1], block.source_ends, block.target_ends)
        )
        said: dict[bytes, bytes] = {}

        def text(phrase: bytes) -> bytes:
            # Entries of a source stand together.
            if phrase not in said:
                said[phrase] = phrase_text(phrase).encode()
            return said[phrase]

        sources = [text(data[start:end]) for start, end in zip(starts, middles, strict=True)]
        targets = [text(data[start + 3 : end]) for start, end in zip(middles, ends, strict=True)]
        return cls(sources, targets, block.fingerprints[good])

    def part(self, first: int, last: int) -> TextPiece:
        """See `EntryPiece`."""
        return TextPiece(self.sources[first:last], self.targets[first:last], self.hashes[first:last])

    @classmethod
    def joined(cls, pieces: list[TextPiece]) -> TextPiece:
        """See `EntryPiece`."""
        sources = [text for piece in pieces for text in piece.sources]
        targets = [text for piece in pieces for text in piece.targets]
        return cls(sources, targets, np.concatenate([piece.hashes for piece in pieces]))
