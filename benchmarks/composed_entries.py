"""Entries for n-grams without one in a table, composed from the entries of their parts; used by augmenting.py.

The decoder can compose the parts itself; an entry for the whole n-gram replaces two phrases by one, and has an
indicator feature whose weight is tuned.
"""

from __future__ import annotations

import gzip
import itertools
import math
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_compat.corpora.texts import read_text_lines

LONGEST, OFTEN, BEST = 4, 2, 5
_YES, _NO = f" {math.e:.6g}", " 1"


@dataclass(frozen=True)
class Entry:
    """Target, four scores and alignment points of an entry."""

    target: str
    scores: tuple[float, ...]
    points: tuple[tuple[int, int], ...]


def ngrams(lines: Iterable[str]) -> Iterator[str]:
    """Yield all n-grams of two to `LONGEST` words, with repetitions."""
    for line in lines:
        words = line.split()
        for n in range(2, LONGEST + 1):
            yield from (" ".join(words[i : i + n]) for i in range(len(words) - n + 1))


def read_lines(table: Path) -> Iterator[str]:
    """Yield the lines of a table."""
    with gzip.open(table, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        yield from lines


def lacking(table: Path, texts: Sequence[str | Path], bitext: str | Path) -> list[str]:
    """Return n-grams of the texts without an entry that occur at least `OFTEN` times in texts and bitext source."""
    often = Counter(ngrams(line for text in texts for line in read_text_lines(str(text))))
    often.update([gram for gram in ngrams(read_text_lines(str(bitext))) if gram in often])
    known = {line.split(" ||| ", 1)[0] for line in read_lines(table)}
    return sorted(gram for gram, count in often.items() if count >= OFTEN and gram not in known)


def splits(gram: str) -> list[tuple[str, str]]:
    """Return all splits of an n-gram into two parts."""
    words = gram.split()
    return [(" ".join(words[:end]), " ".join(words[end:])) for end in range(1, len(words))]


def parts_of(table: Path, grams: Iterable[str]) -> dict[str, list[Entry]]:
    """Return the best entries, by p(e|f), of each source phrase that is a part of an n-gram."""
    needed_parts = {part for gram in grams for split in splits(gram) for part in split}
    entries_by_source: dict[str, list[Entry]] = {}
    for line in read_lines(table):
        source, target, scores, points = line.rstrip("\n").split(" ||| ")[:4]
        if source in needed_parts:
            pairs = tuple((int(s), int(t)) for s, t in (point.split("-") for point in points.split()))
            entries_by_source.setdefault(source, []).append(Entry(target, tuple(map(float, scores.split())), pairs))
    return {source: sorted(entries, key=lambda e: -e.scores[2])[:BEST] for source, entries in entries_by_source.items()}


def composed(gram: str, parts: dict[str, list[Entry]]) -> list[tuple[str, Entry]]:
    """Return the best entries of an n-gram, from the split whose parts have the most probable entries."""
    best = [
        (parts[first][0].scores[2] * parts[second][0].scores[2], length, first, second)
        for length, (first, second) in enumerate(splits(gram), 1)
        if first in parts and second in parts
    ]
    if not best:
        return []
    _, length, first, second = max(best)
    entries_by_target: dict[str, Entry] = {}
    for left, right in itertools.product(parts[first], parts[second]):
        shift = len(left.target.split())
        points = (*left.points, *((s + length, t + shift) for s, t in right.points))
        scores = tuple(a * b for a, b in zip(left.scores, right.scores, strict=True))
        entry = Entry(f"{left.target} {right.target}", scores, points)
        if entry.target not in entries_by_target or entries_by_target[entry.target].scores[2] < scores[2]:
            entries_by_target[entry.target] = entry
    return [(gram, entry) for entry in sorted(entries_by_target.values(), key=lambda e: -e.scores[2])[:BEST]]


def line_of(gram: str, entry: Entry, flag: str = "") -> str:
    """Return an entry as a line of a table."""
    scores = " ".join(f"{max(score, 1e-30):.6g}" for score in entry.scores)
    points = " ".join(f"{s}-{t}" for s, t in entry.points)
    return f"{gram} ||| {entry.target} ||| {scores}{flag} ||| {points} ||| 1 1 1 ||| |||\n"


def with_entries(table: Path, added: Iterable[tuple[str, Entry]], path: Path) -> None:
    """Write a table with additional entries; an indicator column distinguishes them from the original ones."""
    sorting = subprocess.Popen(
        f"LC_ALL=C sort | gzip -1 > {path}", shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8",
        errors="surrogateescape",
    )  # fmt: skip
    assert sorting.stdin is not None
    for line in read_lines(table):
        source, target, scores, rest = line.split(" ||| ", 3)
        sorting.stdin.write(f"{source} ||| {target} ||| {scores}{_NO} ||| {rest}")
    for gram, entry in added:
        sorting.stdin.write(line_of(gram, entry, _YES))
    sorting.stdin.close()
    if sorting.wait():
        raise SystemExit(f"{path}: sorting failed")
