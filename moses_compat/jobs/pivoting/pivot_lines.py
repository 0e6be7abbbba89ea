"""Entries through a middle language as lines of Moses' tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.lines.insert_scores import scale_similarities
from moses_compat.lines.numbers import MAX_WIDTH, write_integer, write_numbers
from moses_compat.lines.separators import write_bars
from phrasetool.kernels.bytes import LF, MINUS, SPACE, copy_bytes
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, FloatArray, Int32Array, Int64Array
from phrasetool.pivot.batches import SourceBatch
from phrasetool.pivot.leg_rows import Ragged
from phrasetool.pivot.ways import (
    BEST,
    FIXED_SUMS,
    PAIR_COUNT,
    SCORES,
    SUM_ORIENTATIONS,
    SUM_SIMILARITIES,
    TARGET_COUNT,
    WayRules,
    WaySums,
)

WAYS, AGREEMENT = "ways", "agreement"
COLUMNS = (WAYS, AGREEMENT)
# Moses takes the logarithm of scores, and has no number for what is below this.
_LEAST_SCORE = 1e-30


@exact_kernel
def _format(
    source_text: ByteArray,
    source_offsets: Int64Array,
    sources: Int64Array,
    target_text: ByteArray,
    target_offsets: Int64Array,
    targets: Int64Array,
    scores: DoubleArray,
    with_more: bool,
    points: Int32Array,
    point_offsets: Int64Array,
    counts: DoubleArray,
    out: ByteArray,
) -> int:
    """Write a line an entry, phrases with their bars and scores, and `with_more` what follows in a phrase table.

    Where a count is not known, the field of the counts is empty.
    """
    place = 0
    for k in range(len(sources)):
        place = copy_bytes(source_text, source_offsets[sources[k]], source_offsets[sources[k] + 1], out, place)
        out[place] = SPACE
        place = copy_bytes(target_text, target_offsets[targets[k]], target_offsets[targets[k] + 1], out, place + 1)
        place = write_numbers(out, place, scores[k])
        if with_more:
            out[place] = SPACE
            place = write_bars(out, place + 1)
            for p in range(point_offsets[k], point_offsets[k + 1]):
                out[place] = SPACE
                place = write_integer(out, place + 1, points[p] & 0xFFFF)
                out[place] = MINUS
                place = write_integer(out, place + 1, points[p] >> 16)
            out[place] = SPACE
            place = write_bars(out, place + 1)
            if not np.isnan(counts[k].sum()):
                place = write_numbers(out, place, counts[k])
            for _ in range(2):
                out[place] = SPACE
                place = write_bars(out, place + 1)
        out[place] = LF
        place += 1
    return place


def _lines(
    batch: SourceBatch, found: WaySums, scores: DoubleArray, points: Ragged | None, counts: DoubleArray
) -> ByteArray:
    sources, targets = batch.first.sources, batch.second.targets
    size = np.diff(sources.offsets)[found.sources].sum() + np.diff(targets.offsets)[found.targets].sum()
    # A point takes a space, a minus, and two positions of up to five digits.
    room = int(size) + len(found) * ((scores.shape[1] + 3) * (MAX_WIDTH + 1) + 20)
    room += 12 * len(points.items) if points else 0
    out = np.empty(room, np.uint8)
    nothing = np.zeros(0, np.int32), np.zeros(1, np.int64)
    used = _format(
        sources.items, sources.offsets, found.sources, targets.items, targets.offsets, found.targets,
        np.ascontiguousarray(scores), points is not None, *((points.items, points.offsets) if points else nothing),
        counts, out,
    )  # fmt: skip
    return out[:used]


@dataclass(frozen=True)
class PivotLines:
    """How entries are written.

    Attributes:
        columns: of `COLUMNS`, behind the four scores: of `ways` the probability of the best way, and how many there
            are, of `agreement` the number of middle languages with the entry.
        rules: what was summed; similarities come last.
    """

    columns: tuple[str, ...]
    rules: WayRules

    def names(self) -> tuple[str, ...]:
        """What the columns behind the four scores say."""
        names: list[str] = []
        if WAYS in self.columns:
            names += ["probability of the best way", "ways"]
        if AGREEMENT in self.columns:
            names += ["middle languages"]
        if self.rules.similarities:
            names += [f"similarity {way}, {of}" for of in ("mean", "best way") for way in ("s→t", "t→s")]
        return tuple(names)

    def phrase_table(self, batch: SourceBatch, found: WaySums, points: Ragged) -> ByteArray:
        """Lines of a phrase table: scores, the composed alignment, counts c(t) c(s) c(s,t)."""
        sums = found.sums
        columns = [np.maximum(sums[:, :SCORES], _LEAST_SCORE)]
        if WAYS in self.columns:
            columns += [np.maximum(sums[:, BEST, None], _LEAST_SCORE), found.ways[:, None].astype(np.float64)]
        if AGREEMENT in self.columns:
            columns += [found.middles[:, None].astype(np.float64)]
        if self.rules.similarities:
            shares = sums[:, FIXED_SUMS : FIXED_SUMS + SUM_SIMILARITIES]
            similarities: FloatArray = np.clip(2.0 * shares - 1.0, -1.0, 1.0).astype(np.float32)
            columns += [scale_similarities(similarities, "exp")]
        counts = np.column_stack([sums[:, TARGET_COUNT], found.source_counts, sums[:, PAIR_COUNT]])
        return _lines(batch, found, np.concatenate(columns, axis=1), points, np.ascontiguousarray(counts))

    def reordering_table(self, batch: SourceBatch, found: WaySums) -> ByteArray:
        """Lines of a reordering table in step with the phrase table."""
        at = FIXED_SUMS + SUM_SIMILARITIES * self.rules.similarities
        return _lines(batch, found, found.sums[:, at : at + SUM_ORIENTATIONS], None, np.zeros((len(found), 3)))
