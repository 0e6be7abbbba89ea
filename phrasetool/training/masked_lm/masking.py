"""What is hidden of a text: 15 % of its pieces, of which 80 % are masked, 10 % replaced and 10 % left as they are.

Devlin et al. (2019), section 3.1.  Special tokens, and what is unknown, are never chosen and never drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int64Array, Mask
from phrasetool.training.masked_lm.word_pieces import MASK, SPECIAL

_MASKED, _REPLACED = 0.8, 0.1


@dataclass(frozen=True)
class Hidden:
    """Texts with hidden pieces.

    Attributes:
        ids: int64, shape (B, T), what the network reads.
        chosen: bool, shape (B, T), the places to predict.
        wanted: int64, shape (K,), the pieces there, row by row.
    """

    ids: Int64Array
    chosen: Mask
    wanted: Int64Array


def hide(ids: Int64Array, share: float, pieces: int, rng: np.random.Generator) -> Hidden:
    """Choose places, at least one if there is a piece at all, and hide what stands there.

    Args:
        ids: int64, shape (B, T), with special tokens.
        share: of the pieces that are chosen.
        pieces: in the vocabulary, special tokens included.
        rng: draws the places, what is done there, and the pieces that replace others.
    """
    ordinary = ids >= len(SPECIAL)
    chosen = ordinary & (rng.random(ids.shape) < share)
    done = rng.random(ids.shape)
    drawn = rng.integers(len(SPECIAL), pieces, ids.shape)
    if not chosen.any() and ordinary.any():
        chosen.flat[rng.choice(np.flatnonzero(ordinary))] = True
    shown = np.where(done < _MASKED, MASK, np.where(done < _MASKED + _REPLACED, drawn, ids))
    return Hidden(np.where(chosen, shown, ids), chosen, ids[chosen])
