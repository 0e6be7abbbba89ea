"""Training data: phrase pairs and pairs of texts, their vocabularies, batches, held-out sets and fingerprints."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.training.run import ProblemHandler
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

# Without a development set, one group of examples in this many is held out.
ONE_IN = 20
# Minimum number of distinct pairs for training; tables of twenty lines are still accepted.
_FEWEST_PAIRS = 15
# Minimum number of pairs, and the share of them that may have two equal sides.  In tables of real bitexts, at most
# 5.7 % of the pairs have equal sides (a manual, Spanish-English; 4.5 % Chinese-English); in Multi30k, 0.7 %
# (German-English) and 0.1 % (Czech-English).  But names and code are adjacent in a sorted table: among consecutive
# lines of manuals' tables, the share is up to 100 % of 50 lines, 95 % of 100, 80 % of 500, 59 % of 1,000 and 47 % of
# 2,000.
_MOST_EQUAL = ((2000, 0.5), (100, 0.98))


@dataclass(frozen=True)
class PhrasePairs:
    """N phrase pairs and their vocabularies.

    Attributes:
        sources, targets: N phrases each.
        counts: int64, shape (N,), how often each pair was used, at least 1; see `weights`.
        source_vocabulary, target_vocabulary: words of the ids.
    """

    sources: Phrases
    targets: Phrases
    counts: Int64Array
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, rows: Int64Array) -> PhrasePairs:
        """Return the pairs in the given rows.

        Args:
            rows: int64, shape (M,).
        """
        return replace(
            self, sources=self.sources.select(rows), targets=self.targets.select(rows), counts=self.counts[rows]
        )

    def merged(self) -> PhrasePairs:
        """Return every distinct pair once, in order of first occurrence, with the sum of its counts."""
        border = len(self.target_vocabulary) + len(self.source_vocabulary)
        numbers, firsts = number_distinct(_joined(self.sources, self.targets, border))
        counts = np.bincount(numbers, self.counts, len(firsts)).astype(np.int64)
        return replace(self.select(firsts), counts=counts)

    def weights(self, exponent: float) -> FloatArray:
        """Return the weights of the pairs in training: count^exponent, normalised to mean 1.

        Args:
            exponent: 0 weights all distinct pairs equally (the paper trains "after removing the duplicates"), 1 all
                occurrences.

        Returns:
            float32, shape (N,).
        """
        powers = np.maximum(self.counts, 1).astype(np.float64) ** exponent
        weights: FloatArray = (powers / powers.mean()).astype(np.float32)
        return weights

    @property
    def fingerprint(self) -> str:
        """Hash of the pairs, their counts and the vocabularies, in hexadecimal digits."""
        lexicons = self.source_vocabulary.words, self.target_vocabulary.words
        texts = fingerprint(text_parts((self.sources, self.targets), lexicons))
        return fingerprint((texts.encode(), self.counts))


def log_shares(phrases: Phrases) -> FloatArray:
    """Return the logarithm of the share of the phrases that are equal to each phrase.

    The share is the probability that a candidate drawn from the training pairs is that phrase.  It depends on the pairs
    alone, not on batches or threads.

    Args:
        phrases: one side of N pairs.

    Returns:
        float32, shape (N,), at most 0.
    """
    numbers, distinct = number_distinct(phrases)
    occurrences = np.bincount(numbers, minlength=len(distinct))
    shares: FloatArray = np.log(occurrences / max(len(numbers), 1))[numbers].astype(np.float32)
    return shares


def fingerprint(parts: Iterable[bytes | npt.NDArray[Any]]) -> str:
    """Return a hash of the concatenated bytes of the parts, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.tobytes())
    return digest.hexdigest()[:16]


def text_parts(
    texts: Iterable[Phrases], lexicons: Iterable[Sequence[bytes]] = ()
) -> Iterator[bytes | npt.NDArray[Any]]:
    """Yield the parts of texts for `fingerprint`.

    Args:
        texts: texts in word ids.
        lexicons: words of the ids.
    """
    for phrases in texts:
        yield phrases.offsets
        yield phrases.words
    for words in lexicons:
        yield b"\n".join(words)


def held_out_groups(groups: Int64Array, rng: np.random.Generator, most: int = 2000) -> Mask:
    """Draw a development set: one group of examples in twenty.

    Args:
        groups: number of the group of each of N examples, from 0 without gaps; int64, shape (N,).
        rng: source of randomness.
        most: maximum number of examples to hold out, unless a single group has more.

    Returns:
        bool, shape (N,), the examples to hold out: at least one group, and more than half of the examples only if the
        first group drawn has more.
    """
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    fitting = int(np.searchsorted(np.cumsum(sizes[order]), min(most, len(groups) // 2), "right"))
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[order[: max(1, min(-(-len(sizes) // ONE_IN), fitting))]] = True
    held: Mask = chosen[groups]
    return held


# Minimum number of phrase pairs that are held out (else none are), and maximum.
_HELD_OUT_PAIRS = (50, 2000)


def held_out_rare_pairs(pairs: PhrasePairs, share: float, seed: int) -> Mask:
    """Draw phrase pairs on which a model is evaluated during training.

    The pairs have at most the median count, so that the model is trained on all frequent pairs, and each of their words
    also occurs in a pair that is not held out, so that the model is trained on all words.  Scores therefore refer to
    rare pairs.  They are lower on unseen text, because phrases of the same sentence contain each other.

    Args:
        pairs: N distinct pairs.
        share: share of the pairs to hold out, at most 2,000 pairs.
        seed: random seed.

    Returns:
        bool, shape (N,), the pairs to hold out; none if fewer than 50 qualify.
    """
    fewest, most = _HELD_OUT_PAIRS
    number = min(int(share * len(pairs)), most)
    held: Mask = np.zeros(len(pairs), np.bool_)
    if number < fewest:
        return held
    sides = pairs.sources, pairs.targets
    remaining = [np.bincount(side.words) for side in sides]
    rare = np.flatnonzero(pairs.counts <= np.median(pairs.counts))
    drawn = 0
    for row in np.random.default_rng(seed).permutation(rare)[: 20 * number].tolist():
        words = [np.unique(side[row], return_counts=True) for side in sides]
        if all((occurrences[ids] > counts).all() for occurrences, (ids, counts) in zip(remaining, words, strict=True)):
            for occurrences, (ids, counts) in zip(remaining, words, strict=True):
                occurrences[ids] -= counts
            held[row] = True
            drawn += 1
            if drawn == number:
                break
    return held if drawn >= fewest else np.zeros_like(held)


def _joined(first: Phrases, second: Phrases, border: int) -> Phrases:
    """Return first[i] + [border] + second[i] for every i."""
    offsets = first.offsets + second.offsets + np.arange(len(first) + 1)
    words = np.full(offsets[-1], border, np.int32)
    shift = np.repeat(offsets[:-1] - first.offsets[:-1], first.lengths)
    words[np.arange(len(first.words)) + shift] = first.words
    shift = np.repeat(offsets[:-1] + first.lengths + 1 - second.offsets[:-1], second.lengths)
    words[np.arange(len(second.words)) + shift] = second.words
    return Phrases(offsets, words)


def check_pairs(name: str, pairs: PhrasePairs, report_problem: ProblemHandler) -> None:
    """Report phrase pairs that are unsuitable for training.

    Args:
        name: name of the input, for messages.
        pairs: distinct pairs.
        report_problem: called with a message for each problem.
    """
    if len(pairs) < _FEWEST_PAIRS:
        plural = "s" if len(pairs) > 1 else ""
        report_problem(f"{name}: {len(pairs)} distinct phrase pair{plural} to learn from, expected at least about 20")
    equal = _equal_sides(pairs)
    most = next((share for enough, share in _MOST_EQUAL if len(pairs) >= enough), 1.0)
    if equal > most * len(pairs):
        report_problem(
            f"{name}: {equal:,} of {len(pairs):,} pairs have the same phrase on both sides, expected phrases and their "
            "translations"
        )


def _equal_sides(pairs: PhrasePairs) -> int:
    """Return the number of pairs with the same words on both sides."""
    # Maps target word ids to source word ids.
    ids = {word: i for i, word in enumerate(pairs.source_vocabulary.words)}
    table = np.array([ids.get(word, -1) for word in pairs.target_vocabulary.words], np.int64)
    same_length = np.flatnonzero(pairs.sources.lengths == pairs.targets.lengths)
    sources, targets = pairs.sources.select(same_length), pairs.targets.select(same_length)
    unlike = prefix_sums(table[targets.words] != sources.words)
    return int((unlike[sources.offsets[1:]] == unlike[sources.offsets[:-1]]).sum())


def frequent_words(texts: Phrases, words: Sequence[bytes], min_count: int, most: int) -> Vocabulary:
    """Return the frequent words, most frequent first; the count of the unknown word is the total of all others.

    Args:
        texts: texts in ids of `words`.
        words: distinct words, unescaped.
        min_count: minimum count of a word.
        most: maximum number of words; 0 for all.
    """
    counts = np.bincount(texts.words, minlength=len(words))
    kept = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i] >= min_count and words[i] != UNKNOWN_WORD]
    kept = kept[:most] if most else kept
    unknown = int(counts.sum() - counts[kept].sum())
    return Vocabulary([UNKNOWN_WORD, *(words[i] for i in kept)], [unknown, *counts[kept].tolist()])


def in_vocabulary(texts: Phrases, words: Sequence[bytes], vocabulary: Vocabulary) -> Phrases:
    """Convert texts from ids of `words` to ids of the vocabulary; missing words become unknown."""
    ids = {word: i for i, word in enumerate(vocabulary.words)}
    table = np.array([ids.get(word, UNKNOWN) for word in words], np.int32)
    return Phrases(texts.offsets, table[texts.words] if len(table) else texts.words)


def length_batches(
    order: Int64Array, lengths: Sequence[Int64Array], size: int, rng: np.random.Generator, pool: int | None = None
) -> list[Int64Array]:
    """Return batches of examples of similar lengths, in random order; each example occurs once.

    Args:
        order: numbers of the N examples; examples of equal lengths keep this order.
        lengths: lengths of all examples, shape (N,) each; the first is the primary sort key.
        size: number of examples per batch.
        rng: draws the order of the batches.
        pool: number of batches whose examples are sorted by length together; None for all.  Smaller pools give more
            diverse batches.
    """
    batches: list[Int64Array] = []
    step = size * pool if pool else max(1, len(order))
    for first in range(0, len(order), step):
        part = order[first : first + step]
        part = part[np.lexsort([key[part] for key in reversed(lengths)])]
        batches += [part[start : start + size] for start in range(0, len(part), size)]
    return [batches[number] for number in rng.permutation(len(batches))]


@dataclass(frozen=True)
class TextPairs:
    """N texts and their translations.

    Attributes:
        sources, targets: N texts each, in ids of the words.
        source_words, target_words: distinct words, unescaped.
        escaped: whether words were written with Moses' escapes.
    """

    sources: Phrases
    targets: Phrases
    source_words: Sequence[bytes]
    target_words: Sequence[bytes]
    escaped: bool = False

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, index: Int64Array) -> TextPairs:
        """Return the pairs in the rows `index`, int64, shape (K,)."""
        sides = self.sources.select(index), self.targets.select(index)
        return TextPairs(*sides, self.source_words, self.target_words, self.escaped)

    def up_to(self, max_length: int) -> TextPairs:
        """Return the pairs with at most `max_length` words per side.

        Raises:
            ValueError: there are none.
        """
        longest = np.maximum(self.sources.lengths, self.targets.lengths)
        if not (longest <= max_length).any():
            raise ValueError(f"no pair has {max_length} words or fewer a side")
        return self.select(np.flatnonzero(longest <= max_length))

    def in_ids(self, source: Vocabulary, target: Vocabulary) -> PhrasePairs:
        """Return the pairs in ids of the vocabularies; missing words become unknown."""
        sources = in_vocabulary(self.sources, self.source_words, source)
        targets = in_vocabulary(self.targets, self.target_words, target)
        return PhrasePairs(sources, targets, np.ones(len(self), np.int64), source, target)

    def source_vocabulary(self, min_count: int, max_words: int) -> Vocabulary:
        """Return the frequent source words, see `frequent_words`."""
        return frequent_words(self.sources, self.source_words, min_count, max_words)

    def target_vocabulary(self, min_count: int, max_words: int, known: Collection[bytes] | None = None) -> Vocabulary:
        """Return the frequent target words that have a vector.

        Args:
            min_count: minimum count of a word.
            max_words: maximum number of words; 0 for all.
            known: words with a vector; None for all.
        """
        frequent = frequent_words(self.targets, self.target_words, min_count, max_words)
        if known is None:
            return frequent
        ids = [i for i, word in enumerate(frequent.words) if i == UNKNOWN or word in known]
        counts = frequent.counts[ids]
        counts[UNKNOWN] += frequent.counts.sum() - counts.sum()
        return Vocabulary([frequent.words[i] for i in ids], counts.tolist())

    @property
    def fingerprint(self) -> str:
        """Hash of the texts and the words, in hexadecimal digits."""
        return fingerprint(text_parts((self.sources, self.targets), (self.source_words, self.target_words)))


def held_out(pairs: TextPairs, seed: int) -> tuple[TextPairs, TextPairs]:
    """Split into training pairs and a development set: all pairs of one source in twenty, at most 2,000 pairs.

    Args:
        pairs: pairs with at least two different sources.
        seed: seed of the choice of sources.

    Raises:
        ValueError: there is only one source.
    """
    numbers, firsts = number_distinct(pairs.sources)
    if len(firsts) < 2:
        raise ValueError("all pairs have the same source: none can be held out; name a development set")
    held = held_out_groups(numbers, np.random.default_rng(seed))
    return pairs.select(np.flatnonzero(~held)), pairs.select(np.flatnonzero(held))
