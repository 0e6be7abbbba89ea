"""Word alignments in files, and priors for eflomal.

Alignments have Pharaoh form, one sentence pair a line: `0-0 1-2 2-1`, source position first, both from 0.  Priors have
the text form that `eflomal-makepriors` writes: fields between tabs, a weight last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import LARGEST_COUNT
from moses_compat.lines.numbers import MAX_POSITION, point_fault, read_position, write_integer
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, MINUS, SPACE, is_blank
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array
from phrasetool.smt.aligning.alignments import Alignments
from phrasetool.smt.aligning.eflomal import Priors, PriorUse


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


class _TooLargeError(Exception):
    """A weight of more than any corpus has words."""


# Kind of line -> number of fields.
_FIELDS = {"LEX": 4, "FERF": 4, "FERR": 4, "HMMF": 3, "HMMR": 3}


def read_priors(path: str) -> Priors:
    """Read a file of priors.

    Raises:
        DataError: a line is none of the five kinds, or a number is not one; or there is no line.
    """
    priors = Priors()
    with Input(path) as file:
        lines = file.read_all().decode("utf-8", "surrogateescape").split("\n")
        name = file.name
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""] and number == len(lines):
            break
        try:
            _enter(priors, fields)
        except _TooLargeError:
            message = f"the weight {fields[-1]} is more than {LARGEST_COUNT:g}, with which eflomal may never end"
            raise DataError(name, f"{message}; expected a count", number) from None
        except ValueError:
            expected = "LEX, FERF or FERR with two words or a word and a number, or HMMF or HMMR with a jump"
            raise DataError(name, f"not a prior: expected {expected}, and a weight", number) from None
    if not len(priors):
        raise DataError(name, "there is no prior in it; expected counts as eflomal-makepriors writes them")
    return priors


def check_use(use: PriorUse, path: str, source: str, target: str) -> str:
    """Return how many priors are used, as a sentence.

    Args:
        use: of the priors of a file, in an alignment.
        path: the file.
        source, target: the sides of the bitext.

    Raises:
        DataError: no prior is used, or more pairs of words fit the bitext with its sides swapped.
    """
    sides = f"{display_name(source)} and {display_name(target)}"
    if use.swapped > use.lexical:
        message = (
            f"{use.swapped:,} of its word pairs are of words of {sides} with the sides swapped, {use.lexical:,} as "
            "they are; expected priors from the source to the target language"
        )
        raise DataError(display_name(path), message)
    if use.of_words and not use.lexical and not use.fertilities:
        message = f"none of its {use.of_words:,} word pairs and fertilities is of words of {sides} and of the model"
        raise DataError(display_name(path), message)
    if not use.used:
        raise DataError(display_name(path), f"the model uses none of its {use.total:,} priors, which are jumps")
    return (
        f"{use.used:,} of {use.total:,} priors are used: {use.lexical:,} word pairs, {use.fertilities:,} fertilities, "
        f"{use.jumps:,} jumps"
    )


def _enter(priors: Priors, fields: list[str]) -> None:
    """Add a line to the priors; ValueError if it is not one."""
    kind, weight = fields[0], float(fields[-1])
    if len(fields) != _FIELDS.get(kind) or not weight >= 0:
        raise ValueError
    if weight > LARGEST_COUNT:
        raise _TooLargeError
    if kind == "LEX":
        priors.lexical.append((fields[1], fields[2], weight))
    elif kind.startswith("FER"):
        if int(fields[2]) < 0:
            raise ValueError
        priors.fertilities[kind == "FERR"].append((fields[1], int(fields[2]), weight))
    else:
        priors.jumps[kind == "HMMR"][int(fields[1])] = weight
