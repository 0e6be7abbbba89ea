"""Forced decoding: the best derivation of a given translation, and thus the phrase pairs that are actually used.

Stacks hold hypotheses by the number of reference words produced; the language model's score is the same for all
derivations and is left out.

A placement is an entry with a source span that has its source words and a position in the reference that has its target
words.  Entries without target words have no placements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.decoder.derivations import best_steps
from phrasetool.smt.decoder.features import FeatureSet, Vector
from phrasetool.smt.decoder.hypotheses import (
    NONE,
    SPAN_END,
    WHOLE_SPAN,
    WINDOW,
    Search,
    Stacks,
    add,
    best_complete,
    chart_costs,
    cover,
    future_after,
    is_covered,
    longest_jump,
    make_stacks,
    may_follow,
    sorted_stack,
    start_pool,
    step,
    with_room,
    write_extension,
)
from phrasetool.smt.decoder.stack_search import find_spans
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.smt.decoder.translation_options import static_scores, weigh_reordering

# Score per word of a placement without an entry: far below any entry's, so that it covers as few words as possible.
_GAP_SCORE = -1000.0
_LONGEST_GAP = 7
# Leave-one-out score per word of a pair that is only in this sentence (Wuebker, Mauser and Ney 2010, length-based).
_SINGLETON_SCORE = -5.0
REACHED, UNCOVERED_SOURCE, UNPRODUCED_TARGET, DISTORTION, NO_COMBINATION, EMPTY = range(6)
REASONS = (
    "reached",
    "a source word has no entry that fits the reference",
    "a reference word is produced by no entry",
    "only beyond the distortion limit",
    "no combination of entries covers both sides",
    "a side is empty",
)


class Placements(NamedTuple):
    """P placements, grouped by source span.

    Attributes:
        first: int64, shape (n, longest + 1): first placement of each span, by start and length - 1; the last column is
            the end of the placements of the start.
        entries: int32, shape (P,); -1 for a gap, which has no entry.
        places: int32, shape (P,): first reference word.
        sizes: int32, shape (P,): reference words.
        scores: float64, shape (P,): weighted, without reordering.
    """

    first: Int64Array
    entries: Int32Array
    places: Int32Array
    sizes: Int32Array
    scores: DoubleArray


@exact_kernel
def place_entries(
    spans: Int32Array,
    first: Int64Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    static: DoubleArray,
    reference: Int32Array,
    vocabulary: int,
) -> Placements:
    """Find all placements.

    Args:
        spans: int32, shape (n, longest), source phrase of each span, -1 for none.
        first: int64, the entries of each source phrase, as in `TranslationTable`.
        target_offsets, target_words: the target phrases of all entries.
        static: float64, the weighted scores of all entries.
        reference: int32, shape (m,), target words.
        vocabulary: one more than the largest word id.
    """
    n, longest = spans.shape
    m = len(reference)
    # The positions of each word in the reference, as linked lists.
    heads = np.full(vocabulary, NONE, np.int32)
    following = np.empty(m, np.int32)
    for q in range(m - 1, -1, -1):
        following[q] = heads[reference[q]]
        heads[reference[q]] = q
    offsets = np.zeros((n, longest + 1), np.int64)
    entries, positions = np.empty(1 << 8, np.int32), np.empty(1 << 8, np.int32)
    sizes, scores = np.empty(1 << 8, np.int32), np.empty(1 << 8, np.float64)
    used = 0
    for start in range(n):
        for size in range(longest):
            offsets[start, size] = used
            source = spans[start, size]
            if source < 0:
                continue
            for entry in range(first[source], first[source + 1]):
                begin = target_offsets[entry]
                length = target_offsets[entry + 1] - begin
                if length == 0 or length > m:
                    continue
                q = heads[target_words[begin]]
                while q >= 0:
                    k = 1
                    if q + length <= m:
                        while k < length and target_words[begin + k] == reference[q + k]:
                            k += 1
                        if k == length:
                            if used == len(entries):
                                entries, positions = with_room(entries, used, 1), with_room(positions, used, 1)
                                sizes, scores = with_room(sizes, used, 1), with_room(scores, used, 1)
                            entries[used], positions[used], sizes[used] = entry, q, length
                            scores[used] = static[entry]
                            used += 1
                    q = following[q]
        offsets[start, longest] = used
    return Placements(offsets, entries[:used], positions[:used], sizes[:used], scores[:used])


@exact_kernel
def with_gaps(n: int, m: int, known: Placements) -> Placements:
    """Return the placements, plus a placement without an entry for every pair of short spans."""
    longest = max(known.first.shape[1] - 1, min(_LONGEST_GAP, n))
    total = len(known.entries) + n * _LONGEST_GAP * m * _LONGEST_GAP
    offsets = np.zeros((n, longest + 1), np.int64)
    entries, positions = np.empty(total, np.int32), np.empty(total, np.int32)
    sizes, scores = np.empty(total, np.int32), np.empty(total, np.float64)
    used = 0
    for start in range(n):
        for size in range(longest):
            offsets[start, size] = used
            if size < known.first.shape[1] - 1:
                for p in range(known.first[start, size], known.first[start, size + 1]):
                    entries[used], positions[used] = known.entries[p], known.places[p]
                    sizes[used], scores[used] = known.sizes[p], known.scores[p]
                    used += 1
            if size < _LONGEST_GAP and start + size < n:
                for q in range(m):
                    for length in range(1, min(_LONGEST_GAP, m - q) + 1):
                        entries[used], positions[used], sizes[used] = NONE, q, length
                        scores[used] = _GAP_SCORE * (size + 1 + length)
                        used += 1
        offsets[start, longest] = used
    return Placements(offsets, entries[:used], positions[:used], sizes[:used], scores[:used])


@exact_kernel
def leave_out(
    placements: Placements,
    counts: FloatArray,
    table_scores: FloatArray,
    sizes: Int32Array,
    inverse: float,
    direct: float,
    inverse_column: int,
    direct_column: int,
) -> None:
    """Score placements as if no entry had been extracted from this sentence pair.

    The sentence pair's own occurrences are subtracted from the counts of relative frequencies; a phrase pair that
    occurs nowhere else gets a probability that decreases with its length.  The word alignment of the sentence pair is
    not known.  An occurrence pairs a source span with a position in the reference, so the number of occurrences is
    taken to be that of the source spans or of the positions, whichever is smaller.
    """
    for p in range(len(placements.entries)):
        entry = placements.entries[p]
        if entry < 0 or np.isnan(counts[entry, 2]):
            continue
        # The placements of an entry combine each of its source spans with each of its positions.
        combinations = spans = 0
        for q in range(len(placements.entries)):
            if placements.entries[q] == entry:
                combinations += 1
                spans += placements.places[q] == placements.places[p]
        own = min(spans, combinations // spans)
        joint = counts[entry, 2] - min(float(own), counts[entry, 2])
        if joint > 0.5:
            new_inverse = np.log(joint / max(counts[entry, 0] - own, joint))
            new_direct = np.log(joint / max(counts[entry, 1] - own, joint))
        else:
            new_inverse = new_direct = _SINGLETON_SCORE * (sizes[p] + placements.sizes[p])
        placements.scores[p] += inverse * (new_inverse - table_scores[entry, inverse_column])
        placements.scores[p] += direct * (new_direct - table_scores[entry, direct_column])


@exact_kernel
def uncovered_words(n: int, m: int, placements: Placements) -> tuple[int, int]:
    """Return the numbers of source words and of reference words that no placement covers."""
    source, target = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    for start in range(n):
        for size in range(placements.first.shape[1] - 1):
            for p in range(placements.first[start, size], placements.first[start, size + 1]):
                source[start : start + size + 1] = True
                target[placements.places[p] : placements.places[p] + placements.sizes[p]] = True
    return n - source.sum(), m - target.sum()


@exact_kernel
def _best_costs(n: int, placements: Placements) -> DoubleArray:
    """Return the best score of the words i..j-1 at any position in the reference; see `future_costs`."""
    longest = placements.first.shape[1] - 1
    best = np.full((n, longest), -np.inf)
    for start in range(n):
        for size in range(longest):
            for p in range(placements.first[start, size], placements.first[start, size + 1]):
                best[start, size] = max(best[start, size], placements.scores[p])
    return chart_costs(best)


@exact_kernel
def _forced_search(
    n: int,
    m: int,
    placements: Placements,
    backward: DoubleArray,
    forward: DoubleArray,
    classes: Int32Array,
    search: Search,
    stacks: Stacks,
) -> tuple[npt.NDArray[np.void], int]:
    """Return the pool, and the number of the best derivation of the whole reference, or -1."""
    longest = placements.first.shape[1] - 1
    future = _best_costs(n, placements)
    pool = start_pool(1 << 8, stacks, search, future[0, n])
    if future[0, n] == -np.inf:
        return pool[:0], NONE
    used = np.int64(1)
    for produced in range(m):
        for number in sorted_stack(stacks, pool, produced):
            h = pool[number]
            score, gap, mask, previous_start, previous_end = h.score, h.gap, h.mask, h.start, h.end
            previous = placements.entries[h.option] if h.option >= 0 else NONE
            before = h.total - score
            for start in range(gap, min(n, max(previous_end + 1, gap) + search.distortion_limit + 1)):
                if is_covered(gap, mask, start):
                    continue
                for end in range(start, min(start + longest, n)):
                    if is_covered(gap, mask, end) or not may_follow(search, previous_end, gap, start, end):
                        break
                    size = end - start
                    if placements.first[start, size] == placements.first[start, size + 1]:
                        continue
                    after = future_after(future, before, gap, mask, n, start, end)
                    if after == -np.inf:
                        continue
                    coverage = cover(gap, mask, start, end)
                    span = previous_start, previous_end
                    base, foreseen, orientation = step(search, forward, score, previous, span, start, end)
                    base += foreseen
                    for p in range(placements.first[start, size], placements.first[start, size + 1]):
                        new_produced = produced + placements.sizes[p]
                        # All source words must be covered exactly when all reference words are produced.
                        if placements.places[p] != produced or (coverage[0] == n) != (new_produced == m):
                            continue
                        entry = placements.entries[p]
                        if used == len(pool):
                            pool = with_room(pool, used, 1)
                        new_score = base + placements.scores[p]
                        if search.reordering >= 0 and entry >= 0:
                            new_score += backward[entry, orientation]
                        write_extension(
                            pool[used], search, number, p, start, end, new_score, after, coverage, 0,
                            classes[entry] if entry >= 0 else NONE,
                        )  # fmt: skip
                        used = add(stacks, pool, used, new_produced, search.keep_arcs)
    return pool[:used], best_complete(stacks, pool, search.keep_arcs)


@dataclass(frozen=True)
class ForcedOptions:
    """Options of forced decoding.

    Args:
        stack_size: hypotheses kept for each number of reference words.
        distortion_limit: words a jump may span; negative for the maximum, 63 words.
        leave_one_out: score entries as if they had not been extracted from the sentence pair.
        partial: if no derivation yields the reference, use the best that leaves as little as possible uncovered.  Each
            gap leaves out source words together with reference words, up to seven of each.  If only one side has words
            left over, entries next to them are left out, too.

    Raises:
        ValueError: the stack size is not positive.
    """

    stack_size: int = 500
    distortion_limit: int = 6
    leave_one_out: bool = False
    partial: bool = False

    def __post_init__(self) -> None:
        if self.stack_size < 1:
            raise ValueError("the stack size must be positive")


@dataclass(frozen=True)
class ForcedDerivation:
    """Result of forced decoding of one sentence pair.

    Attributes:
        outcome: REACHED, or the reason why the reference was not reached (an index of `REASONS`).
        entries: int32, shape (P,), entries used, in target order; those of a partial derivation if it was requested.
        starts, ends: int32, shape (P,), their source spans, inclusive.
        places: int32, shape (P,), positions in the reference at which their target words begin.
        score: weighted score without the language model; NaN if no derivation was found.
    """

    outcome: int
    entries: Int32Array
    starts: Int32Array
    ends: Int32Array
    places: Int32Array
    score: float


class ForcedDecoder:
    """Decoder that finds the best derivation of a reference.

    Args:
        table: all entries that may be used (no table limit applies).
        features, weights: of the model; the language model's weight is not used.
        options: options of the decoder.

    Raises:
        ValueError: leave-one-out is requested, but an entry has no counts or a table has fewer than 3 scores.
    """

    def __init__(self, table: TranslationTable, features: FeatureSet, weights: Vector, options: ForcedOptions) -> None:
        self.table = table
        self.options = options
        self._static = static_scores(table, features, weights)
        self._backward, self._forward, self._classes = weigh_reordering(table.reordering, features, weights)
        scores = weights[features.table_part]
        firsts = [features.table_columns(i).start for i in range(len(features.tables))]
        short = min(features.tables) < 3
        if options.leave_one_out and (short or np.isnan(table.counts[~table.copies]).any()):
            raise ValueError("leave-one-out needs p(f|e) and p(e|f) as scores 1 and 3, and counts c(t) c(s) c(s,t)")
        # For each table: the counts of its entries, and weights and columns of the two probabilities.
        self._left_out = [] if not options.leave_one_out else [
            (np.where((table.tables == i)[:, None], table.counts, np.float32(np.nan)), scores[k], scores[k + 2], k)
            for i, k in enumerate(firsts)
        ]  # fmt: skip
        kind = features.reordering.kind if features.reordering else -1
        distortion_weight = float(weights[features.slices["Distortion"]][0])
        span = WHOLE_SPAN if features.reordering else SPAN_END
        self._search = Search(0.0, distortion_weight, 0, kind, span, False, 0, 0, False)

    def decode(self, sentence: Int32Array, reference: Int32Array) -> ForcedDerivation:
        """Find the best derivation of a reference.

        Args:
            sentence: int32, shape (n,), ids of the table's source words.
            reference: int32, shape (m,), ids of its target words; -1 for words that the table lacks.
        """
        n, m = len(sentence), len(reference)
        if n == 0 or m == 0:
            return _nothing(EMPTY)
        spans = find_spans(self.table.index, np.ascontiguousarray(sentence, np.int32))
        targets = self.table.targets
        vocabulary = len(self.table.target_symbols)
        # All words that the table lacks become one word that no entry has.
        reference = np.where(reference < 0, vocabulary, reference).astype(np.int32)
        placements = place_entries(
            spans, self.table.first, targets.offsets, targets.words, self._static, reference, vocabulary + 1
        )
        for counts, inverse, direct, column in self._left_out:
            lengths = np.diff(self.table.index.offsets)[self.table.sources_of(placements.entries)].astype(np.int32)
            leave_out(placements, counts, self.table.scores, lengths, float(inverse), float(direct), column, column + 2)
        limit = longest_jump(self.options.distortion_limit)
        result = self._find(n, m, placements, limit)
        if result is not None:
            return self._derivation(REACHED, placements, *result)
        outcome = self._reason(n, m, placements, limit)
        if self.options.partial:
            placements = with_gaps(n, m, placements)
            result = self._find(n, m, placements, limit)
        return _nothing(outcome) if result is None else self._derivation(outcome, placements, *result)

    def _find(self, n: int, m: int, placements: Placements, limit: int) -> tuple[npt.NDArray[np.void], int] | None:
        stacks = make_stacks(m, self.options.stack_size, -np.inf)
        search = self._search._replace(distortion_limit=limit)
        pool, best = _forced_search(n, m, placements, self._backward, self._forward, self._classes, search, stacks)
        return (pool, best) if best >= 0 else None

    def _reason(self, n: int, m: int, placements: Placements, limit: int) -> int:
        source, target = uncovered_words(n, m, placements)
        if source:
            return UNCOVERED_SOURCE
        if target:
            return UNPRODUCED_TARGET
        if limit < WINDOW - 1 and self._find(n, m, placements, WINDOW - 1) is not None:
            return DISTORTION
        return NO_COMBINATION

    def _derivation(
        self, outcome: int, placements: Placements, pool: npt.NDArray[np.void], best: int
    ) -> ForcedDerivation:
        (options, starts, ends), score = best_steps(pool, best)
        entries, positions = placements.entries[options], placements.places[options]
        real = entries >= 0
        return ForcedDerivation(outcome, entries[real], starts[real], ends[real], positions[real], float(score))

    def decode_all(
        self, sentences: Phrases, references: Phrases, threads: int = 1, runner: Runner = run
    ) -> Iterator[ForcedDerivation]:
        """Decode sentence pairs on several threads; yield results in order.

        Raises:
            ValueError: the numbers of sentences and references differ.
        """
        if len(sentences) != len(references):
            raise ValueError(f"{len(sentences)} sentences but {len(references)} references")

        def work(chunk: range) -> list[ForcedDerivation]:
            return [self.decode(sentences[i], references[i]) for i in chunk]

        chunks = (range(i, min(i + _CHUNK, len(sentences))) for i in range(0, len(sentences), _CHUNK))
        for results in runner(chunks, work, threads):
            yield from results


_CHUNK = 16


def _nothing(outcome: int) -> ForcedDerivation:
    empty = np.zeros(0, np.int32)
    return ForcedDerivation(outcome, empty, empty, empty, empty, float("nan"))


def count_pairs(derivations: Iterable[ForcedDerivation], table: TranslationTable) -> npt.NDArray[np.int64]:
    """Count the uses of each entry, int64, shape (N,); copies of unknown words are not counted."""
    uses = np.zeros(len(table), np.int64)
    for derivation in derivations:
        np.add.at(uses, derivation.entries, 1)
    uses[table.copies] = 0
    return uses
