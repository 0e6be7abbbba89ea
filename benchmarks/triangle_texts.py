"""Texts of language pairs that `pivoting.py` joins through English: two halves, and sentences of both corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from engines import Corpus
from measuring import DATA

from moses_compat.corpora.texts import read_text_lines

MIDDLE = "en"
SEED = 1
# Pairs of the direct bitexts.
DIRECT = (1000, 2000, 5000, 10000, 14500)


@dataclass(frozen=True)
class Triangle(Corpus):
    """A language pair without a bitext.

    Attributes:
        first, second: corpora of its source and target language with English.
        work: folder of its texts.
    """

    first: str = ""
    second: str = ""
    work: Path = field(default_factory=Path)

    def text(self, part: str, language: str) -> str:
        """Return the path of a text; parts are `first` and `second` (the halves), `dev`, `direct` and test sets."""
        return str(self.work / f"{part}.{language}")


def triangles(work: Path) -> dict[str, Triangle]:
    """Return the language pairs by name."""
    multi30k = ("test_2016_flickr", "test_2018_flickr")
    return {
        name: Triangle(name, *languages, tests, first, second, work / name)
        for name, languages, tests, first, second in (
            ("de-cs", ("de", "cs"), multi30k, "multi30k-de-en", "multi30k-cs-en"),
            ("cs-de", ("cs", "de"), multi30k, "multi30k-cs-en", "multi30k-de-en"),
            ("zh-es", ("zh", "es"), ("test",), "pydocs-zh-en", "pydocs-es-en"),
        )
    }


def write_lines(path: str, lines: Sequence[str]) -> None:
    """Write a text."""
    Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _read(name: str, part: str, language: str) -> list[str]:
    path = DATA / name / f"{part}.{language}"
    return read_text_lines(str(path if path.exists() else f"{path}.gz"))


def texts(pair: Triangle, sample: int | None) -> None:
    """Write the halves, development and test sets, and the direct bitext; only a part of each for a sample."""
    pair.work.mkdir(parents=True, exist_ok=True)
    if Path(pair.text("direct", pair.target)).exists():
        return
    ends = ((pair.first, pair.source), (pair.second, pair.target))
    joined = {part: _joined(pair, part) for part in ("train", "dev", *pair.tests)}
    held_out = {row[1] for part in ("dev", *pair.tests) for row in joined[part]}
    for part in ("dev", *pair.tests):
        rows = joined[part][: max(20, sample // 50) if sample else None]
        for language, side in ((pair.source, 0), (MIDDLE, 1), (pair.target, 2)):
            write_lines(pair.text(part, language), [row[side] for row in rows])
    trains = [dict(zip(_read(name, "train", MIDDLE), _read(name, "train", end), strict=True)) for name, end in ends]
    shared = sorted((trains[0].keys() & trains[1].keys()) - held_out)
    order = np.random.default_rng(SEED).permutation(len(shared))
    halves = [{shared[k] for k in part} for part in np.array_split(order, 2)]
    for number, (part, (_, language)) in enumerate(zip(("first", "second"), ends, strict=True)):
        other_half = halves[1 - number]
        rows = [(end, middle) for middle, end in trains[number].items() if middle not in other_half | held_out]
        rows = rows[: sample or None]
        write_lines(pair.text(part, language), [end for end, _ in rows])
        write_lines(pair.text(part, MIDDLE), [middle for _, middle in rows])
    # The direct bitext is written last, because its existence marks that all texts are complete.
    rows = [row for row in joined["train"] if row[1] not in held_out]
    rows = [rows[k] for k in np.random.default_rng(SEED).permutation(len(rows))[: max(DIRECT)]]
    write_lines(pair.text("direct", pair.source), [row[0] for row in rows])
    write_lines(pair.text("direct", pair.target), [row[2] for row in rows])


def _joined(pair: Triangle, part: str) -> list[tuple[str, str, str]]:
    """Return source, English and target of sentences translated in both corpora, each English sentence once."""
    source = dict(zip(_read(pair.first, part, MIDDLE), _read(pair.first, part, pair.source), strict=True))
    target = dict(zip(_read(pair.second, part, MIDDLE), _read(pair.second, part, pair.target), strict=True))
    return [(text, middle, target[middle]) for middle, text in source.items() if middle in target]
