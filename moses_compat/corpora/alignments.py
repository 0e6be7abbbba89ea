"""Word alignments in Pharaoh form, one sentence pair a line: `0-0 1-2 2-1`, source position first, both from 0."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.numbers import MAX_POSITION, point_fault, read_position, write_integer
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, MINUS, SPACE, is_blank
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array
from phrasetool.smt.aligning.alignments import Alignments


@exact_kernel
def _parse(
    text: ByteArray, offsets: Int64Array, source: Int32Array, target: Int32Array, fault: Int64Array
) -> tuple[int, int]:
    """Fill the arrays; return the lines and points read.  fault = (start and end of the first bad token) or -1."""
    fault[0] = fault[1] = -1
    lines, points = 0, 0
    i = 0
    while i < len(text):
        while i < len(text) and text[i] != LF:
            if is_blank(text[i]) or (text[i] == CR and (i + 1 == len(text) or text[i + 1] == LF)):
                i += 1
                continue
            first = i
            while i < len(text) and text[i] != LF and text[i] != CR and not is_blank(text[i]):
                i += 1
            s, k = read_position(text, first, i)
            t, k = read_position(text, k + 1, i) if k < i and text[k] == MINUS else (-1, k)
            if s < 0 or t < 0 or k < i or max(s, t) > MAX_POSITION:
                fault[0], fault[1] = first, max(i, first + 1)
                return lines, points
            source[points], target[points] = s, t
            points += 1
        i += 1
        lines += 1
        offsets[lines] = points
    return lines, points


def parse_alignments(text: bytes, name: str) -> Alignments:
    """Read alignments from text; points may stand in any order, and count once however often they are named.

    Args:
        text: one sentence pair a line; an empty line is a pair without a point.
        name: what to call the text in messages.

    Raises:
        DataError: a token is not `source-target`, or a position is beyond `MAX_POSITION`.
    """
    array = np.frombuffer(text, np.uint8)
    lines = int(np.count_nonzero(array == LF)) + 1
    limit = int(np.count_nonzero(array == MINUS)) + 1
    offsets = np.zeros(lines + 1, np.int64)
    source, target = np.empty(limit, np.int32), np.empty(limit, np.int32)
    fault = np.empty(2, np.int64)
    lines, points = _parse(array, offsets, source, target, fault)
    if fault[0] >= 0:
        raise DataError(name, point_fault(text[fault[0] : fault[1]]), lines + 1)
    return Alignments.from_points(offsets[: lines + 1], source[:points], target[:points])


def read_alignments(
    path: str, source_lengths: Int64Array | None = None, target_lengths: Int64Array | None = None
) -> Alignments:
    """Read a file of alignments, and check it against the bitext if its sentence lengths are given.

    Args:
        path: the file, compressed or not; `-` for standard input.
        source_lengths, target_lengths: int64, shape (N,), words per sentence.

    Raises:
        DataError: a bad token, another number of lines than sentences, a point outside its sentence pair.
    """
    with Input(path) as file:
        alignments = parse_alignments(file.read_all(), file.name)
        name = file.name
    if source_lengths is None or target_lengths is None:
        return alignments
    if len(alignments) != len(source_lengths):
        raise DataError(name, f"{len(alignments)} lines for a bitext of {len(source_lengths)} sentence pairs")
    outside = alignments.first_outside(source_lengths, target_lengths)
    if outside >= 0:
        lengths = int(source_lengths[outside]), int(target_lengths[outside])
        point = next(p for p in alignments[outside] if p[0] >= lengths[0] or p[1] >= lengths[1])
        raise DataError(
            name,
            f"the point {point[0]}-{point[1]} is outside of its sentence pair of {lengths[0]} and {lengths[1]} words",
            outside + 1,
        )
    return alignments


@exact_kernel
def _format(offsets: Int64Array, source: Int32Array, target: Int32Array, out: ByteArray) -> int:
    place = 0
    for pair in range(len(offsets) - 1):
        for p in range(offsets[pair], offsets[pair + 1]):
            if p > offsets[pair]:
                out[place] = SPACE
                place += 1
            place = write_integer(out, place, source[p])
            out[place] = MINUS
            place = write_integer(out, place + 1, target[p])
        out[place] = LF
        place += 1
    return place


def format_alignments(alignments: Alignments) -> bytes:
    """The text of alignments, one line a sentence pair, points ascending by source, then target position."""
    # Two numbers of at most ten digits, a minus and a space.
    out = np.empty(22 * len(alignments.source) + len(alignments), np.uint8)
    size = _format(alignments.offsets, alignments.source, alignments.target, out)
    return out[:size].tobytes()


def write_alignments(files: Sequence[tuple[str, Alignments]]) -> None:
    """Write alignments to a file each; all files are complete before the last one appears, then the one before it.

    Raises:
        PhraseToolError: a file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        outputs = [(stack.enter_context(Output(path)), alignments) for path, alignments in reversed(files)]
        for output, alignments in outputs:
            output.write_text(format_alignments(alignments))
