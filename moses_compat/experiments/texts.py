"""The texts of an experiment: what is translated, what it should be, and whether the training set knew it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from moses_compat.corpora.bitext import check_line_counts
from moses_compat.corpora.sentences import line_blocks
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError
from phrasetool.experiments.settings import DEV, ExperimentConfig, TextPair


@dataclass(frozen=True)
class ExperimentTexts:
    """The development set, as `dev`, and the test sets, by name.

    Attributes:
        sources: a tokenised sentence a line.
        targets: their translations by a person.
    """

    sources: Mapping[str, bytes]
    targets: Mapping[str, bytes]

    @property
    def references(self) -> dict[str, list[str]]:
        """The translations as lines."""
        return {name: _lines(text) for name, text in self.targets.items()}

    @property
    def sentences(self) -> int:
        """Of all texts together."""
        return sum(text.count(b"\n") for text in self.sources.values())


def read_experiment_texts(config: ExperimentConfig) -> ExperimentTexts:
    """Read the texts, or as much of them as the configuration wants.

    Raises:
        DataError: a file is empty or damaged, or the sides of a text differ in length.
    """
    pairs = {DEV: config.dev, **config.tests}
    read = {name: _pair(pair, config.sentences) for name, pair in pairs.items()}
    return ExperimentTexts(
        {name: source for name, (source, _) in read.items()}, {name: target for name, (_, target) in read.items()}
    )


def _pair(pair: TextPair, limit: int | None) -> tuple[bytes, bytes]:
    sides = [_read(path) for path in (pair.source, pair.target)]
    lines = [text.split(b"\n")[:-1] for text in sides]
    if not lines[0]:
        raise DataError(pair.source, "the file has no lines")
    check_line_counts(pair.source, len(lines[0]), pair.target, len(lines[1]))
    first, second = (b"\n".join(side[:limit]) + b"\n" for side in lines)
    return first, second


def _read(path: str) -> bytes:
    with Input(path) as stream:
        text = stream.read_all()
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _lines(text: bytes) -> list[str]:
    return text.decode(errors="replace").split("\n")[:-1]


def write_pair(texts: ExperimentTexts, name: str, source: str, target: str) -> None:
    """Write a text to two files."""
    for path, text in ((source, texts.sources[name]), (target, texts.targets[name])):
        with Output(path) as out:
            out.write_text(text)


def overlaps(bitext: TextPair, texts: ExperimentTexts) -> dict[str, tuple[int, int]]:
    """Which texts share sentence pairs with the training set: by name, how many do, and of how many.

    Texts that share none are left out; see `shared_pairs`.
    """
    return shared_pairs(bitext, {name: (texts.sources[name], texts.targets[name]) for name in texts.sources})


def shared_pairs(bitext: TextPair, texts: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[int, int]]:
    """The same for the two sides of any texts.

    Sentences are the same if their words are; pairs of two sentences without words do not count.
    """
    pairs = {name: [pair for pair in zip(*map(_words, sides), strict=True) if any(pair)]
             for name, sides in texts.items()}  # fmt: skip
    wanted = {pair for found in pairs.values() for pair in found}
    sides = (chain.from_iterable(map(_words, line_blocks(path))) for path in (bitext.source, bitext.target))
    seen = wanted.intersection(zip(*sides, strict=False))
    counts = {name: (sum(pair in seen for pair in found), len(found)) for name, found in pairs.items()}
    return {name: (shared, of) for name, (shared, of) in counts.items() if shared}


def _words(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return [b" ".join(line.split()) for line in (lines if lines[-1] else lines[:-1])]
