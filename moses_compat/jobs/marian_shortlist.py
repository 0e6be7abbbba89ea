"""The lexical shortlist of Marian, and of the translator in Firefox, which is made of it.

Text (marian-dev, src/data/shortlist.h, `LexicalShortlistGenerator::load`) has lines `target source probability`.
Binary (`BinaryShortlistGenerator`) is, with numbers of eight bytes, the smallest byte first:

    magic  checksum  first  best  S + 1  N      the first units of the target vocabulary that are always candidates, the
                                                most candidates of a unit, S source units, N candidates
    where the candidates of each source unit begin, and the end
    the candidates: numbers of target units in four bytes, ascending for each source unit

The checksum is over all whole eight bytes behind it, as `util::hashMem` does it.  Marian refuses a file in which the
last source unit has no candidate; it gets the first target unit, which ends a sentence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Output
from moses_compat.jobs.candidate_lists import CandidateReport, Collected, CoverageMeter
from phrasetool.errors import DataError
from phrasetool.export.candidates import Selector, TargetCandidates, unit_candidates
from phrasetool.kernels.jit import exact_kernel

MAGIC = 0xF11A48D5013417F5
_GOLDEN, _LEFT, _RIGHT = np.uint64(0x9E3779B9), np.uint64(6), np.uint64(2)


class ShortlistWriter:
    """Writes a shortlist."""

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """See `ListWriter`."""
        request, targets = collected.request, len(collected.targets.units)
        all_of_them = unit_candidates(collected.store.pieces(), collected.sources.expand, targets, request.least)
        selector = Selector(request.most, np.zeros(0, np.int32), targets)
        found = next(iter(selector.select([all_of_them])))
        sources, words = collected.sources.units.words, collected.targets.units.words
        if request.binary:
            output.write(output.encode(self._binary(collected, found)))
        else:
            units = found.sources.words[found.groups]
            rows = zip(found.words.tolist(), units.tolist(), found.scores.tolist(), strict=True)
            lines = (b"%s %s %.6g\n" % (words[target], sources[source], score) for target, source, score in rows)
            output.write_text(b"".join(lines))
        always = self._always(collected)
        if meter:
            meter.see(b"", always)
            for number, source in enumerate(found.sources.words.tolist()):
                listed = found.words[found.offsets[number] : found.offsets[number + 1]]
                meter.see(sources[source], [words[target] for target in listed.tolist()])
        phrases = int(np.count_nonzero(np.diff(found.offsets)))
        return CandidateReport(phrases=phrases, candidates=len(found.words), always=len(always))

    @staticmethod
    def _always(collected: Collected) -> list[bytes]:
        """What Marian always takes: the first units of its vocabulary; the most frequent where that is not known."""
        numbers, count = collected.target_vocabulary.numbers, collected.request.always
        if numbers is None:
            words = collected.targets.units.words
            return [words[unit] for unit in collected.always.tolist()]
        return [unit.encode() for unit, number in numbers.items() if number < count]

    @staticmethod
    def _binary(collected: Collected, found: TargetCandidates) -> bytes:
        request = collected.request
        numbers = []
        for side, path, vocabulary in (
            (collected.sources, request.source_vocabulary, collected.source_vocabulary),
            (collected.targets, request.target_vocabulary, collected.target_vocabulary),
        ):
            if vocabulary.numbers is None:
                raise DataError(path, "does not number its units, which a binary shortlist is made of")
            known = vocabulary.numbers
            found_here = [known[unit.decode("utf-8", "surrogateescape")] for unit in side.units.words]
            numbers.append((np.array(found_here, np.int64), max(known.values())))
        (source_numbers, last_source), (target_numbers, _) = numbers
        sources, targets = source_numbers[found.sources.words[found.groups]], target_numbers[found.words]
        if last_source not in sources:
            sources, targets = np.append(sources, last_source), np.append(targets, 0)
        order = np.lexsort((targets, sources))
        offsets = np.searchsorted(sources[order], np.arange(last_source + 2))
        return binary_shortlist(offsets, targets[order], request.always, request.most)


def binary_shortlist(offsets: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], first: int, best: int) -> bytes:
    """A binary shortlist.

    Args:
        offsets: int64, shape (S + 1,), where the candidates of each source unit begin, and the end.
        targets: int64, shape (N,), numbers of target units.
        first, best: what Marian is told.
    """
    body = np.array([first, best, len(offsets), len(targets)], "<u8").tobytes()
    body += offsets.astype("<u8").tobytes() + targets.astype("<u4").tobytes()
    checksum = int(_checksum(np.frombuffer(body, "<u8", len(body) // 8).astype(np.uint64)))
    return np.array([MAGIC, checksum], "<u8").tobytes() + body


@exact_kernel
def _checksum(words: npt.NDArray[np.uint64]) -> np.uint64:
    seed = np.uint64(0)
    for word in words:
        seed ^= word + _GOLDEN + (seed << _LEFT) + (seed >> _RIGHT)
    return seed
