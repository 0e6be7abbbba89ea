"""Fisher's exact test of the pairs of a table, by where they occur in the bitext that the table was made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.corpora.corpus_index import CorpusIndex
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import skip_blanks, token_end
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array, Mask, Phrases
from phrasetool.pruning.significance import FisherExactTest, count_co_occurrences
from phrasetool.vocabulary import is_label

# If a side of more than half of so many entries does not occur in the corpora, they are not the table's.
_TRIAL = 10_000


class CorpusMismatchError(DataError):
    """The corpora are not those that the table was made from."""


@dataclass(frozen=True)
class Tested:
    """What the test says of M entries.

    Attributes:
        counts: int64, shape (M, 3): sentence pairs with both, sentences with the source, with the target.
        values: float64, shape (M,): -ln p.
        wordless: bool, shape (M,): a side has no word, so that there is nothing to test.
        absent_sources, absent_targets: bool, shape (M,): that side does not occur in its corpus.
    """

    counts: Int64Array
    values: DoubleArray
    wordless: Mask
    absent_sources: Mask
    absent_targets: Mask


class PairTest:
    """Tests pairs of phrases; may be called by several threads.

    Args:
        source, target: the corpora.
        hierarchical: look up the runs of words between labels such as `[X]`, not the labels, as filter-pt's `-h`.

    Raises:
        ValueError: the corpora have different numbers of sentences.
    """

    def __init__(self, source: CorpusIndex, target: CorpusIndex, hierarchical: bool = False) -> None:
        if source.sentences.sentences != target.sentences.sentences:
            raise ValueError("the corpora have different numbers of sentences")
        self.source, self.target = source, target
        self._hierarchical = hierarchical
        self._test = FisherExactTest(source.sentences.sentences)

    @property
    def alpha(self) -> float:
        """-ln p of a pair that occurs once, together."""
        return self._test.alpha

    def __call__(self, text: ByteArray, starts: Int64Array, source_ends: Int64Array, target_ends: Int64Array) -> Tested:
        """Test the pairs of M entries of a text.

        Args:
            text: uint8.
            starts, source_ends, target_ends: int64, shape (M,), where the lines begin, and their first two `|||`.
        """
        sides = [
            (self.source, starts, source_ends),
            (self.target, source_ends + 3, target_ends),
        ]
        phrases: list[Phrases] = []
        parts: list[Int64Array | None] = []
        wordless = np.zeros(len(starts), np.bool_)
        for corpus, firsts, ends in sides:
            borders = None
            if self._hierarchical:
                firsts, ends, borders = _terminal_runs(text, firsts, ends)
            found = corpus.symbols.read_fields(text, firsts, ends, add=False)
            phrases.append(found)
            parts.append(borders)
            wordless |= np.diff(borders) == 0 if borders is not None else found.lengths == 0
        indexes = self.source.sentences, self.target.sentences
        counts = count_co_occurrences(*indexes, phrases[0], phrases[1], parts[0], parts[1])
        values = self._test.negative_log_p(*counts)
        _, absent_sources, absent_targets = (counts == 0) & ~wordless
        return Tested(counts.T, values, wordless, absent_sources, absent_targets)


class CorpusCheck:
    """Watches whether the first entries of a table occur in the corpora at all.

    Args:
        table: its name in messages.
        test: of its pairs.
    """

    def __init__(self, table: str, test: PairTest) -> None:
        self._table = table
        self._test = test
        self._absent = np.zeros((0, 2), np.bool_)
        self.passed = False

    def add(self, tested: Tested) -> None:
        """Look at the next entries.

        Raises:
            CorpusMismatchError: enough were seen, and more than half have a side that does not occur.
        """
        if not self.passed:
            absent = np.column_stack([tested.absent_sources, tested.absent_targets])[~tested.wordless]
            self._absent = np.concatenate([self._absent, absent])[:_TRIAL]
            if len(self._absent) == _TRIAL:
                self.check()

    def check(self) -> None:
        """Decide, after the last entry at the latest.

        Raises:
            CorpusMismatchError: see `add`.
        """
        if 2 * int(self._absent.any(axis=1).sum()) > len(self._absent):
            sources, targets = self._absent.sum(axis=0).tolist()
            raise CorpusMismatchError(
                self._table,
                f"of its first {len(self._absent):,} entries, {sources:,} have a source that does not occur in "
                f"{self._test.source.name}, {targets:,} a target that does not occur in "
                f"{self._test.target.name}; another corpus, other tokens, or the two swapped?",
            )
        self.passed = True


@exact_kernel
def _find_runs(
    text: ByteArray, starts: Int64Array, ends: Int64Array, run_starts: Int64Array, run_ends: Int64Array,
    borders: Int64Array,
) -> None:  # fmt: skip
    """Split fields at labels: field i has the runs borders[i]..borders[i + 1] - 1."""
    count = 0
    for field in range(len(starts)):
        inside = False
        i = skip_blanks(text, starts[field], ends[field])
        while i < ends[field]:
            first = i
            i = token_end(text, i, ends[field])
            if is_label(text, first, i):
                inside = False
            else:
                if not inside:
                    run_starts[count] = first
                    count += 1
                    inside = True
                run_ends[count - 1] = i
            i = skip_blanks(text, i, ends[field])
        borders[field + 1] = count


def _terminal_runs(text: ByteArray, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The runs of words between the labels of N fields: starts, ends, and the first run of each field (N + 1)."""
    # Two runs have a label of three bytes or more and two blanks between them.
    room = int(((ends - starts) // 6 + 1).sum())
    run_starts, run_ends = np.empty((2, room), np.int64)
    borders = np.zeros(len(starts) + 1, np.int64)
    _find_runs(text, starts, ends, run_starts, run_ends, borders)
    return run_starts[: borders[-1]], run_ends[: borders[-1]], borders
