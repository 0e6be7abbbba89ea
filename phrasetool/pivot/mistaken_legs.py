"""Diagnosis of two legs that hardly meet: one of them is reversed, or capitals differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from phrasetool.pivot.leg_rows import Ragged, hash_phrases
from phrasetool.pivot.leg_store import LegStore

# Phrases that are looked at, of all those of a side.
_SAMPLE = 1 << 18
# As much has to be found otherwise, and so many times as much as there is.
_LEAST_SHARE, _LEAST_GAIN = 0.1, 2.0
_CASE = np.uint8(0x20)

FIRST, SECOND, ORDER, CAPITALS = "first", "second", "order", "capitals"
_Side = Callable[[LegStore], Iterator[Ragged]]


def mistake(first: LegStore, second: LegStore, share: float) -> str | None:
    """Find the change that would make the legs meet.

    Args:
        first, second: the legs.
        share: of the first one's middle phrases that the second has.

    Returns:
        `FIRST` or `SECOND`: that leg turned round; `ORDER`: both, or one in the place of the other; `CAPITALS`: small
        letters in both; None where nothing helps.
    """
    rate = max(1, max(len(first), len(second)) // _SAMPLE)
    outer, middle = _sample(first, _sources, rate), _sample(first, _targets, rate)
    other_middle, other_outer = _sample(second, _sources, rate), _sample(second, _targets, rate)
    shares = {
        FIRST: _share(outer, other_middle),
        SECOND: _share(middle, other_outer),
        ORDER: _share(outer, other_outer),
        CAPITALS: _share(_sample(first, _small(_targets), rate), _sample(second, _small(_sources), rate)),
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= max(_LEAST_SHARE, _LEAST_GAIN * share) else None


def _sources(leg: LegStore) -> Iterator[Ragged]:
    return (block.sources for block in leg.blocks())


def _targets(leg: LegStore) -> Iterator[Ragged]:
    return (block.targets for block in leg.blocks())


def _small(side: _Side) -> _Side:
    """The phrases of a side with small letters of ASCII."""

    def phrases(leg: LegStore) -> Iterator[Ragged]:
        for block in side(leg):
            capital = (block.items >= ord("A")) & (block.items <= ord("Z"))
            yield Ragged(np.where(capital, block.items | _CASE, block.items), block.offsets)

    return phrases


def _sample(leg: LegStore, side: _Side, rate: int) -> npt.NDArray[np.uint64]:
    """Hashes of distinct phrases, one of so many; the same phrases of every side."""
    samples = [np.zeros(0, np.uint64)]
    for phrases in side(leg):
        hashes = np.unique(hash_phrases(phrases)[:, 0])
        samples.append(hashes[(hashes >> np.uint64(20)) % np.uint64(rate) == 0])
    return np.unique(np.concatenate(samples))


def _share(sample: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> float:
    return float(np.isin(sample, other, assume_unique=True).mean()) if len(sample) else 0.0
