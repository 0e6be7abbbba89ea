"""How much of translations the candidates cover, read from the list as the decoder will read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.names import display_name
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.text_splitting import split_lines

# Below the first almost nothing fits, and it is refused; below the second another form may be meant, and one that is
# known so much better is named.
_LEAST, _DOUBTFUL, _GAIN = 0.1, 0.7, 0.1
_JOINER, _SPACE_MARK = b"@@", "\u2581".encode()
Line = Callable[[str], list[bytes]]


@dataclass(frozen=True)
class Coverage:
    """How much of a translation is covered.

    Attributes:
        sentences, tokens: of the translation.
        covered: tokens that are candidates of their sentences.
        whole: sentences of which all tokens are.
        reachable: tokens that are a candidate of anything.
        known: share of the source's tokens that the table knows.
        mean, median, percentile_95: candidates of a sentence.
    """

    sentences: int
    tokens: int
    covered: int
    whole: int
    reachable: int
    known: float
    mean: float
    median: float
    percentile_95: float


class CoverageMeter:
    """Sees the lines of a list, and then says how much they cover.

    Args:
        texts: a text, and its translation.
        source_line, target_line: make units of a line.

    Raises:
        DataError: a text cannot be read, is empty, or the texts have different numbers of lines.
    """

    def __init__(self, texts: Sequence[str], source_line: Line, target_line: Line) -> None:
        self._name = display_name(texts[0])
        sources, targets = read_text_lines(texts[0]), read_text_lines(texts[1])
        if len(sources) != len(targets):
            raise DataError(texts[1], f"{len(targets):,} lines, but {texts[0]} has {len(sources):,}")
        self._sources = [source_line(line) for line in sources]
        self._targets = [target_line(line) for line in targets]
        if not any(self._sources) or not any(self._targets):
            raise DataError(texts[0], "there is no word in the text or its translation")
        self._units = {unit for line in self._sources for unit in line}
        self._lists: dict[bytes, set[bytes]] = {}
        self._reachable: set[bytes] = set()

    def see(self, key: bytes, candidates: Sequence[bytes]) -> None:
        """A line of the list; more candidates of a key that was there before are added to it."""
        self._reachable.update(candidates)
        units = key.split(b" ") if key else []
        if self._units.issuperset(units):
            self._lists.setdefault(key, set()).update(candidates)

    def see_map(self, text: bytes) -> None:
        """Lines of a vocabulary map."""
        for line in split_lines(text):
            key, _, candidates = line.partition(b"\t")
            self.see(key, candidates.split(b" "))

    def coverage(self, known: Callable[[bytes], bool]) -> Coverage:
        """What all lines so far cover.

        Args:
            known: whether the table has a source unit.
        """
        longest = max((key.count(b" ") + 1 for key in self._lists if key), default=0)
        always = self._lists.get(b"", set())
        sizes, covered, whole = [], 0, 0
        for source, target in zip(self._sources, self._targets, strict=True):
            found = always.union(*(self._lists.get(key, ()) for key in _parts(source, longest)))
            hits = sum(unit in found for unit in target)
            covered, whole = covered + hits, whole + (hits == len(target))
            sizes.append(len(found))
        tokens = sum(map(len, self._targets))
        return Coverage(
            len(sizes), tokens, covered, whole, sum(unit in self._reachable for line in self._targets for unit in line),
            _share(self._tokens, known), float(np.mean(sizes)), float(np.median(sizes)),
            float(np.percentile(sizes, 95)),
        )  # fmt: skip

    @property
    def _tokens(self) -> list[bytes]:
        return [unit for line in self._sources for unit in line]

    def check(self, found: Coverage, known: Callable[[bytes], bool], scan: TableScan) -> None:
        """Refuse a text that does not fit the table, or warn of it.

        Raises:
            DataError: almost nothing of the text is known, and the scan does not say `force`.
        """
        if found.known >= _DOUBTFUL:
            return
        lowered = _share([unit.decode("utf-8", "replace").lower().encode() for unit in self._tokens], known)
        pieces = _share(self._tokens, lambda unit: unit.endswith(_JOINER) or unit.startswith(_SPACE_MARK))
        message = f"only {100 * found.known:.0f}% of its {len(self._tokens):,} tokens are in the table"
        if lowered > found.known + _GAIN:
            message += f"; in small letters, {100 * lowered:.0f}% would be: the table has no capitals"
        elif pieces > _GAIN:
            message += "; they are pieces of words, and a table of words needs the model that splits them"
        else:
            message += "; expected text of the table's source language, with its tokens and its capitals"
        error = DataError(self._name, message, remedy="go on")
        if found.known < _LEAST:
            scan.refuse(error)
        else:
            scan.warn(str(error))


def _share(units: Sequence[bytes], has: Callable[[bytes], bool]) -> float:
    return sum(map(has, units)) / max(1, len(units))


def _parts(units: Sequence[bytes], longest: int) -> Iterator[bytes]:
    """All runs of up to `longest` units, as keys."""
    for first in range(len(units)):
        for last in range(first + 1, min(first + longest, len(units)) + 1):
            yield b" ".join(units[first:last])
