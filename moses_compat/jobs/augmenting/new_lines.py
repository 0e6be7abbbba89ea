"""How new entries are written in a phrase table, and in a reordering table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moses_compat.lines.trained_scores import TRAINED
from phrasetool.augment.augmenter import NewEntry
from phrasetool.phrases import DoubleArray
from phrasetool.text_splitting import split_words

TEXT = "utf-8", "surrogateescape"
BARS = b" ||| "
# What a column holds where its source of evidence has proposed an entry; the decoder sees 1, elsewhere 0.
FLAG = math.e


@dataclass(frozen=True)
class LineForm:
    """How the lines of a table look.

    Attributes:
        scores: how many an entry has.
        fields: how many a line has.
    """

    scores: int
    fields: int


# All lines of a word, sorted bytewise, for a table whose lines have a form.
NewLines = Callable[[bytes, LineForm], bytes]


def phrase_lines(new: Mapping[str, Sequence[NewEntry]], columns: int, appended: bool = True) -> NewLines:
    """Lines of a phrase table.

    Scores of the table beyond those of Moses' training are 1, which says nothing.  Every target word is aligned with
    the source; counts are those of a pair that was seen once.

    Args:
        new: word -> its entries.
        columns: sources of evidence, of which the last columns tell.
        appended: whether these columns come behind the scores of the table; otherwise it has them.
    """

    def lines(word: bytes, form: LineForm) -> bytes:
        others = form.scores - TRAINED - (0 if appended else columns)
        return b"".join(sorted(line(word, entry, others, form.fields) for entry in new[word.decode(*TEXT)]))

    def line(word: bytes, entry: NewEntry, others: int, fields: int) -> bytes:
        flags = [FLAG if number in entry.sources else 1.0 for number in range(columns)]
        target = entry.target.encode(*TEXT)
        points = " ".join(f"0-{place}" for place in range(len(split_words(target))))
        rest = [points.encode(), b"1 1 1"][: max(0, fields - 3)]
        written = BARS.join([word, target, _numbers([*entry.scores, *[1.0] * others, *flags]), *rest])
        return written + b" |||" * (fields - 3 - len(rest)) + b"\n"

    return lines


def reordering_lines(new: Mapping[str, Sequence[NewEntry]], orientations: DoubleArray) -> NewLines:
    """Lines of a reordering table, all with the same probabilities.

    Args:
        new: word -> its entries.
        orientations: probabilities of orientations, float64, shape (S,), see `word_orientations`.
    """
    written = _numbers(orientations.tolist())

    def lines(word: bytes, form: LineForm) -> bytes:
        targets = {entry.target.encode(*TEXT) for entry in new[word.decode(*TEXT)]}
        rest = b" |||" * (form.fields - 3) + b"\n"
        return b"".join(sorted(BARS.join([word, target, written]) + rest for target in targets))

    return lines


def _numbers(values: Sequence[float]) -> bytes:
    return " ".join(f"{value:.6g}" for value in values).encode()
