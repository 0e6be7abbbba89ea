"""Show the entries of a phrase: scores by name, counts, alignment, similarities, and the decision of pruning."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moses_compat.lines.numbers import DIRECT_COLUMN, MOSES_SCORES
from moses_compat.tables.phrase_index import SOURCE, TARGET, PhraseIndex, TableLine
from phrasetool.errors import DataError, reason
from phrasetool.phrases import Phrases
from phrasetool.pruning.decision import TOGETHER
from phrasetool.text_splitting import split_words

if TYPE_CHECKING:
    from phrasetool.phrase_encoder.model import BilingualModel

_COUNTS = ("count(e)", "count(f)", "count")
_POINT = re.compile(rb"(\d+)-(\d+)")
KEPT = "kept"


@dataclass(frozen=True)
class ShownEntry:
    """An entry of a table.

    Attributes:
        line: number of its line, from 1.
        source, target: phrases as in the table.
        scores: scores as text, in the order of the columns.
        counts: counts of the target, the source and the pair as text; as many as the table has.
        alignment: word alignment as in the table.
        similarities: similarities in both directions by a model; None without a model.
        decision: decision of pruning; None if unknown.
    """

    line: int
    source: bytes
    target: bytes
    scores: tuple[str, ...]
    counts: tuple[str, ...]
    alignment: bytes
    similarities: tuple[float, float] | None = None
    decision: str | None = None

    @classmethod
    def of(cls, line: TableLine) -> ShownEntry:
        """Return the entry of a line."""
        fields = [*line.fields, b"", b"", b"", b"", b""]
        scores, counts = (tuple(word.decode("utf-8", "replace") for word in split_words(fields[i])) for i in (2, 4))
        return cls(line.number, fields[0], fields[1], scores, counts, fields[3])

    @property
    def order(self) -> tuple[float, float, int]:
        """Key that sorts the best entry first: by direct probability, joint count and line."""
        # p(e|f) of tables with Moses' four scores, else the last score.
        column = DIRECT_COLUMN if len(self.scores) >= len(MOSES_SCORES) else -1
        probability = _number(self.scores[column]) if self.scores else -math.inf
        joint = _number(self.counts[2]) if len(self.counts) >= len(_COUNTS) else -math.inf
        return -probability, -joint, self.line

    @property
    def word_pairs(self) -> str:
        """The aligned words, such as `nicht=not`."""
        sides = split_words(self.source), split_words(self.target)
        points = [(int(a), int(b)) for a, b in _POINT.findall(self.alignment)]
        inside = [(a, b) for a, b in points if a < len(sides[0]) and b < len(sides[1])]
        return " ".join(f"{_text(sides[0][a])}={_text(sides[1][b])}" for a, b in inside)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry for `--json`."""
        names = score_names(len(self.scores))
        record: dict[str, Any] = {
            "line": self.line, "source": _text(self.source), "target": _text(self.target),
            "scores": dict(zip(names, map(_json_number, self.scores), strict=True)),
            "counts": dict(zip(_COUNTS, map(_json_number, self.counts), strict=False)),
            "alignment": _text(self.alignment),
        }  # fmt: skip
        if self.similarities is not None:
            record["similarities"] = [round(value, 6) for value in self.similarities]
        if self.decision is not None:
            record["decision"] = self.decision
        return record


def score_names(count: int) -> list[str]:
    """Return the names of the score columns of a table with this many scores."""
    known = MOSES_SCORES if count >= len(MOSES_SCORES) else ()
    return [*known, *(f"score {number}" for number in range(len(known) + 1, count + 1))]


def entries_of(
    index: PhraseIndex, phrase: bytes, side: str = SOURCE, contains: bool = False, threads: int = 1
) -> list[ShownEntry]:
    """Return the entries with a phrase, the best first.

    Args:
        index: index of the table.
        phrase: words separated by spaces; any text if `contains`.
        side: `source` or `target`.
        contains: whether the phrase of the table contains the text.
        threads: number of threads.
    """
    lines = index.containing(side, phrase, threads) if contains else index.entries(side, phrase)
    return sorted(map(ShownEntry.of, lines), key=lambda entry: entry.order)


def with_similarities(entries: Sequence[ShownEntry], model: BilingualModel) -> list[ShownEntry]:
    """Return entries with the similarities of a model."""
    sources = Phrases.from_lists([model.source_vocabulary.ids(entry.source) for entry in entries])
    targets = Phrases.from_lists([model.target_vocabulary.ids(entry.target) for entry in entries])
    pairs = model.scorer().score_pairs(sources, targets).tolist()
    return [replace(entry, similarities=(pair[0], pair[1])) for entry, pair in zip(entries, pairs, strict=True)]


def with_decisions(entries: Sequence[ShownEntry], all_entries: Sequence[ShownEntry], reasons: str) -> list[ShownEntry]:
    """Return entries with the decisions that `prune --reasons` recorded.

    Args:
        entries: entries of the table that was pruned.
        all_entries: these entries and all others of the same pairs.
        reasons: the Parquet file.

    Raises:
        DataError: the file cannot be read, or belongs to another table.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["line", "source", "target", "failed", "kept"]
    try:
        chosen = (pc.field("line").isin([entry.line for entry in all_entries])) | (
            pc.field("source").isin(list({_text(entry.source) for entry in all_entries}))
        )
        rows = pq.read_table(reasons, columns=columns, filters=chosen).to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        message = reason(error) if isinstance(error, OSError) else "was not written by `prune --reasons`"
        raise DataError(reasons, message) from error
    recorded = {row["line"]: row for row in rows}
    _refuse_moved_lines(all_entries, rows, reasons)
    decided = []
    for entry in entries:
        row = recorded.get(entry.line)
        if row is None:
            decided.append(replace(entry, decision=KEPT))
            continue
        if (row["source"], row["target"]) != (_text(entry.source), _text(entry.target)):
            raise DataError(reasons, f"belongs to another table: its line {entry.line} has another entry")
        criteria = "all criteria together" if row["failed"] == TOGETHER else row["failed"].replace("+", ", ")
        protected = f"{KEPT} as one of the best, although it fails {criteria}"
        decided.append(replace(entry, decision=protected if row["kept"] else f"removed by {criteria}"))
    return decided


def _refuse_moved_lines(entries: Sequence[ShownEntry], rows: Sequence[Mapping[str, Any]], reasons: str) -> None:
    """Refuse recorded lines that are other lines of the table; an entry whose line is not recorded counts as kept.

    Raises:
        DataError: an entry is recorded as a line that it does not have.
    """
    lines: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        lines.setdefault((_text(entry.source), _text(entry.target)), []).append(entry.line)
    for row in rows:
        # Phrases of different bytes that are not UTF-8 have one text.
        is_unique = "\ufffd" not in row["source"] + row["target"]
        own_lines = lines.get((row["source"], row["target"])) if is_unique else None
        if own_lines and row["line"] not in own_lines:
            message = f"belongs to another table: the entry of line {own_lines[0]} is its line {row['line']}"
            raise DataError(reasons, message, remedy="show the sorted table")


def shown_lines(entries: Sequence[ShownEntry], side: str, contains: bool) -> Iterator[str]:
    """Yield the lines of a readable table of the entries.

    Args:
        entries: entries, the best first.
        side: side of the phrase that was searched; the other side is shown, or both if `contains`.
        contains: whether phrases contain the text that was searched.
    """
    scores = max((len(entry.scores) for entry in entries), default=0)
    counts = max((len(entry.counts) for entry in entries), default=0)
    phrases = [SOURCE, TARGET] if contains else [TARGET if side == SOURCE else SOURCE]
    head = [*phrases, *score_names(scores), *_COUNTS[:counts]]
    similar = any(entry.similarities is not None for entry in entries)
    head += ["sim(f,e)", "sim(e,f)"] if similar else []
    numbers = len(head)
    head += ["alignment"]
    decided = any(entry.decision is not None for entry in entries)
    head += ["pruning"] if decided else []
    rows = [head]
    for entry in entries:
        row = [_text(entry.source if name == SOURCE else entry.target) for name in phrases]
        row += [*map(_short, entry.scores), *[""] * (scores - len(entry.scores))]
        row += [*map(_short, entry.counts[: len(_COUNTS)]), *[""] * (counts - len(entry.counts))]
        row += [f"{value:.3f}" for value in entry.similarities or ()]
        row += [entry.word_pairs]
        row += [entry.decision or ""] if decided else []
        rows.append(row)
    widths = [max(_width(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        cells = [
            _padded(cell, width, right=len(phrases) <= column < numbers)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip(" ")


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -math.inf
    return -math.inf if math.isnan(value) else value


def _json_number(text: str) -> float | str:
    value = _number(text)
    return value if math.isfinite(value) else text


def _short(text: str) -> str:
    """Return a number with four significant digits; other text is unchanged."""
    value = _number(text)
    return f"{value:.4g}" if math.isfinite(value) else text


def _width(text: str) -> int:
    """Return the width in a terminal; wide characters, e.g. Chinese, take two columns, combining characters none."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
