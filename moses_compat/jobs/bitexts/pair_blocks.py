"""The pairs of a bitext, block by block: lines as they stand in the files, whatever they hold."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.bitexts import check_line_counts
from moses_compat.files.streams import Input
from phrasetool.text_splitting import lines_with_ends, tabs_as_spaces

# Pairs of a block.  What is said of a pair depends, in its last bits, on its block, so this is no option.
PAIRS = 8192


@dataclass(frozen=True)
class SentencePairs:
    """N pairs that follow each other.

    Attributes:
        first: number of the first one, from 0.
        sources, targets: N lines each, with their line ends.
        position: bytes of the source's file that were read by then.
    """

    first: int
    sources: Sequence[bytes]
    targets: Sequence[bytes]
    position: int = 0

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """A fingerprint of each pair, shape (N,)."""
        both = zip(self.sources, self.targets, strict=True)
        return np.array([zlib.crc32(target, zlib.crc32(source)) for source, target in both], np.uint32)

    @cached_property
    def written(self) -> tuple[list[bytes], list[bytes]]:
        """Both sides without line ends, tabs as spaces: tabs separate the fields of what is written."""
        sources, targets = (tabs_as_spaces(b"".join(side)) for side in (self.sources, self.targets))
        return sources, targets


def pair_blocks(
    source: Input, target: Input, progress: Callable[[int, int], None] = lambda position, pairs: None
) -> Iterator[SentencePairs]:
    """Read both sides in step.

    Args:
        source, target: at their beginning.
        progress: called with the bytes of the source consumed and the pairs read.

    Raises:
        DataError: a file cannot be read, or one has more lines than the other; known when the shorter one ends.
    """
    lines = _lines(source), _lines(target)
    first = 0
    while True:
        sources, targets = (list(itertools.islice(side, PAIRS)) for side in lines)
        if len(sources) != len(targets):
            counts = [
                first + len(part) + sum(1 for _ in side) for part, side in zip((sources, targets), lines, strict=True)
            ]
            check_line_counts(source.name, counts[0], target.name, counts[1])
        if not sources:
            return
        yield SentencePairs(first, sources, targets, source.position())
        first += len(sources)
        progress(source.position(), first)


def _lines(file: Input) -> Iterator[bytes]:
    for block in file.whole_lines():
        yield from lines_with_ends(block)
