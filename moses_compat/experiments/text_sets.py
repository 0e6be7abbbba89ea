"""The texts of an experiment: what is translated, what it should be, and whether the training set knew it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moses_compat.corpora.bitexts import check_line_counts, shared_pairs
from moses_compat.experiments.settings import DEV, ExperimentConfig, TextPair
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError


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
        return {name: text_lines(text) for name, text in self.targets.items()}

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


def text_lines(text: bytes) -> list[str]:
    """The lines of a text, each of which ends with a line feed."""
    return text.decode(errors="replace").split("\n")[:-1]


def write_pair(texts: ExperimentTexts, names: Sequence[str], files: TextPair) -> None:
    """Write texts, one behind the other, to two files."""
    for path, side in ((files.source, texts.sources), (files.target, texts.targets)):
        with Output(path) as out:
            out.write_text(b"".join(side[name] for name in names))


def overlaps(bitext: TextPair, texts: ExperimentTexts) -> dict[str, tuple[int, int]]:
    """Which texts share sentence pairs with the training set: by name, how many do, and of how many.

    Texts that share none are left out; see `shared_pairs`.
    """
    sides = {name: (texts.sources[name], texts.targets[name]) for name in texts.sources}
    return shared_pairs((bitext.source, bitext.target), sides)
