"""Similarities and probabilities as Moses score columns; writing lines unchanged or with appended scores or fields.

Moses takes the logarithm of every score of a table: 0 becomes -100, a negative number becomes NaN and poisons the
hypothesis.  Therefore, a similarity s in [-1, 1] is written as

    exp          exp(s - 1), in [0.135, 1]: the decoder sees s - 1, linear in the similarity (the default)
    probability  (1 + s) / 2, at least 1e-6: the decoder sees its logarithm
    raw          s itself, for programs other than Moses
    softmax      exp(s) / sum of exp(s') over all entries of the source: a probability, not a cosine

with up to six decimals.  A probability may be much smaller, so it is written as Moses writes its own: six significant
digits, `1.2e-05`.
"""

from __future__ import annotations

import numpy as np

from moses_compat.lines.fields import content_end, write_bars
from moses_compat.lines.numbers import MAX_WIDTH, MILLION, write_integer, write_millionths, write_number
from phrasetool.kernels.bytes import MINUS, SPACE, copy_bytes
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, FloatArray, Int64Array, Mask

SCALES = ("exp", "probability", "raw")
# The scale that cannot be inverted, because it depends on all entries of a source; see `candidate_probabilities`.
SOFTMAX = "softmax"
# Logarithms are clipped to this value; as a probability it is 2e-22.
LEAST_LOG = -50.0
_SMALLEST_PROBABILITY = 1e-6
# Width of a space and a number: a sign, one digit, a point and six digits, or six significant digits.
_WIDTH = max(10, 1 + MAX_WIDTH)
# Widths of ` |||`, and of a space, 19 digits and a point for each number of an appended field.
_SEPARATOR_WIDTH = 4
_NUMBER_WIDTH = 21


def scale_similarities(similarities: FloatArray, scale: str) -> DoubleArray:
    """Convert similarities to scores.

    Args:
        similarities: float32 in [-1, 1], any shape.
        scale: one of `SCALES`.

    Raises:
        ValueError: an unknown scale.
    """
    values = similarities.astype(np.float64)
    if scale == "exp":
        return np.exp(values - 1.0)
    if scale == "probability":
        return np.maximum((1.0 + values) / 2.0, _SMALLEST_PROBABILITY)
    if scale == "raw":
        return values
    raise ValueError(f"unknown scale {scale!r}; expected one of {', '.join(SCALES)}")


def scale_range(scale: str) -> tuple[float, float]:
    """Return the lowest and the highest score that a similarity in [-1, 1] has on a scale."""
    lowest, highest = scale_similarities(np.array([[-1.0, 1.0]], np.float32), scale)[0].tolist()
    return lowest, highest


def unscale_scores(scores: DoubleArray, scale: str) -> FloatArray:
    """Invert `scale_similarities`; the result is clipped to [-1, 1]."""
    if scale == "exp":
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(scores) + 1.0
    elif scale == "probability":
        with np.errstate(over="ignore"):
            values = 2.0 * scores - 1.0
    elif scale == "raw":
        values = scores
    else:
        raise ValueError(f"unknown scale {scale!r}; expected one of {', '.join(SCALES)}")
    return np.clip(np.nan_to_num(values, nan=-1.0), -1.0, 1.0).astype(np.float32)


def scale_logarithms(logs: FloatArray) -> DoubleArray:
    """Convert log probabilities, clipped to [-50, 0], to scores by exp; NaN (no score) becomes 1."""
    return np.exp(np.clip(np.nan_to_num(logs.astype(np.float64), nan=0.0), LEAST_LOG, 0.0))


def least_probability(probabilities: DoubleArray) -> DoubleArray:
    """Clip probabilities to at least the smallest that `scale_logarithms` returns."""
    return np.maximum(probabilities, np.exp(LEAST_LOG))


@borrowing_kernel
def _format(value: float, out: ByteArray, position: int) -> int:
    """Write ` value` with up to six decimals and no trailing zeros; return the new position.  |value| < 10."""
    out[position] = SPACE
    position += 1
    millionths = np.int64(np.floor(abs(value) * MILLION + 0.5))
    if value < 0 and millionths > 0:
        out[position] = MINUS
        position += 1
    return write_millionths(out, position, millionths)


@borrowing_kernel
def _annotate(
    text: ByteArray,
    line_offsets: Int64Array,
    score_ends: Int64Array,
    keep: Mask,
    malformed: Mask,
    scores: DoubleArray,
    significant: Mask,
    out: ByteArray,
) -> int:
    """Write the kept lines; return their size in bytes."""
    position = 0
    for line in range(len(keep)):
        if not keep[line]:
            continue
        middle = score_ends[line]
        start, end = line_offsets[line], line_offsets[line + 1]
        if malformed[line]:
            middle = end
        position = copy_bytes(text, start, middle, out, position)
        if not malformed[line]:
            for c in range(scores.shape[1]):
                if significant[c]:
                    out[position] = SPACE
                    position = write_number(out, position + 1, scores[line, c])
                else:
                    position = _format(scores[line, c], out, position)
            position = copy_bytes(text, middle, end, out, position)
    return position


@exact_kernel
def _select(text: ByteArray, line_offsets: Int64Array, keep: Mask, out: ByteArray) -> int:
    position = 0
    lines = len(keep)
    line = 0
    while line < lines:
        if not keep[line]:
            line += 1
            continue
        first = line
        while line < lines and keep[line]:
            line += 1
        start, end = line_offsets[first], line_offsets[line]
        out[position : position + end - start] = text[start:end]
        position += end - start
    return position


def annotated_lines(block: EntryBlock, scores: DoubleArray, keep: Mask, significant: Mask | None = None) -> ByteArray:
    """Return the kept lines with scores appended to their score field; malformed lines are unchanged.

    Args:
        block: N entries.
        scores: shape (N, C), finite; those with six decimals must be smaller than 10.
        keep: bool, shape (N,).
        significant: bool, shape (C,), columns with six significant digits instead of six decimals; none if None.

    Raises:
        ValueError: a score is not finite, or `significant` is of another shape.
    """
    if not np.isfinite(scores[~block.malformed]).all():
        raise ValueError("a score is not finite")
    if significant is None:
        significant = np.zeros(scores.shape[1], np.bool_)
    if len(significant) != scores.shape[1]:
        raise ValueError(f"{len(significant)} scores cannot be written in one way or the other, but {scores.shape[1]}")
    out = np.empty(len(block.text) + _WIDTH * scores.size, np.uint8)
    size = _annotate(block.text, block.line_offsets, block.score_ends, keep, block.malformed, scores, significant, out)
    return out[:size]


def selected_lines(text: ByteArray, line_offsets: Int64Array, keep: Mask) -> ByteArray:
    """Return the kept lines, byte for byte, in their order.

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
        keep: bool, shape (N,).
    """
    if keep.all():
        return text
    out = np.empty(len(text), np.uint8)
    return out[: _select(text, line_offsets, keep, out)]


@borrowing_kernel
def _append(
    text: ByteArray,
    line_offsets: Int64Array,
    keep: Mask,
    malformed: Mask,
    counts: Int64Array,
    millionths: Int64Array,
    out: ByteArray,
) -> int:
    """Copy the kept lines with counts[line, :] and millionths[line, :] appended; return the size in bytes."""
    position = 0
    for line in range(len(keep)):
        if not keep[line]:
            continue
        start, end = line_offsets[line], line_offsets[line + 1]
        content = end if malformed[line] else content_end(text, start, end)
        position = copy_bytes(text, start, content, out, position)
        if not malformed[line]:
            if counts.shape[1] > 0:
                out[position] = SPACE
                position = write_bars(out, position + 1)
                for c in range(counts.shape[1]):
                    out[position] = SPACE
                    position = write_integer(out, position + 1, counts[line, c])
            for c in range(millionths.shape[1]):
                out[position] = SPACE
                position = write_bars(out, position + 1)
                out[position] = SPACE
                position = write_millionths(out, position + 1, millionths[line, c])
        position = copy_bytes(text, content, end, out, position)
    return position


def lines_with_fields(
    text: ByteArray, line_offsets: Int64Array, malformed: Mask, keep: Mask, counts: Int64Array, values: DoubleArray
) -> ByteArray:
    """Return the kept lines with appended fields, such as ` ||| cfe cf ce` and ` ||| -ln p` of Moses' filter-pt.

    Malformed lines are unchanged.

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
        malformed, keep: bool, shape (N,).
        counts: int64, shape (N, C), not negative, written as one field, ` ||| c c c`; no field if C is 0.
        values: float64, shape (N, V), in [0, 10^12), each written as a field, ` ||| v`, with up to six decimals and no
            trailing zeros.
    """
    millionths = np.floor(values * MILLION + 0.5).astype(np.int64)
    width = 2 * _SEPARATOR_WIDTH + _NUMBER_WIDTH * (counts.shape[1] + values.shape[1])
    out = np.empty(len(text) + width * len(keep), np.uint8)
    size = _append(text, line_offsets, keep, malformed, np.ascontiguousarray(counts), millionths, out)
    return out[:size]
