"""BLEU of many candidates (Papineni et al., ACL 2002), its confidence intervals and paired tests between systems.

Statistics are additive: those of a corpus are the sums of those of its sentences.  A row has nine numbers: the matches
of orders 1 to 4, the n-grams of orders 1 to 4 in the candidate, and the length of the reference that is closest to it.
Scores run from 0 to 100, as sacrebleu's do.

Intervals and tests equal those of sacrebleu (Post, WMT 2018; `--tokenize none`), and so do the samples for the same
seed.  To save time, all systems share the samples, which are sums of sentence statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import NO_KEY, find_key
from phrasetool.kernels.jit import exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.evaluation.metrics import (
    DEFAULT_SEED,
    SAMPLES,
    bootstrap_counts,
    means_of_drawn_runs,
    middle_interval,
)

ORDER = 4
COLUMNS = 2 * ORDER + 1
MATCHES = slice(0, ORDER)
TOTALS = slice(ORDER, 2 * ORDER)
REFERENCE_LENGTH = 2 * ORDER
# The first total is the number of words.
LENGTH = ORDER


@inner_kernel
def _key(node: int, word: int) -> int:
    """Return the hash key of the n-gram `word` after `node`; never 0."""
    return np.uint64((node << 32 | word) + 1)


@exact_kernel
def _count(
    sentences: Int32Array,
    offsets: Int64Array,
    words: Int32Array,
    reference_offsets: Int64Array,
    reference_words: Int32Array,
    keys: npt.NDArray[np.uint64],
    nodes: Int32Array,
    limits: Int32Array,
    counts: Int32Array,
    out: Int32Array,
) -> None:
    """Compute the statistics of each candidate.

    The n-grams of a sentence's references form a trie: a node is an n-gram, stored in the table under its prefix's node
    and its last word, so different n-grams are never confused.  limits[node] is the maximum number of its matches.
    """
    current = -1
    size = 1
    for i in range(len(sentences)):
        s = sentences[i]
        if s != current:
            current = s
            size = _enter_references(s, reference_offsets, reference_words, keys, nodes, limits, counts)
        counts[:size] = 0
        start, end = offsets[i], offsets[i + 1]
        for first in range(start, end):
            node = np.int64(0)
            for k in range(first, min(first + ORDER, end)):
                if words[k] < 0:
                    break
                slot = find_key(keys, _key(node, words[k]))
                if keys[slot] == NO_KEY:
                    break
                node = np.int64(nodes[slot])
                if counts[node] < limits[node]:
                    counts[node] += 1
                    out[i, k - first] += 1
        length = end - start
        for n in range(ORDER):
            out[i, ORDER + n] = max(length - n, 0)
        out[i, 2 * ORDER] = _closest(reference_offsets, s, length)


@exact_kernel
def _enter_references(
    sentence: int,
    offsets: Int64Array,
    words: Int32Array,
    keys: npt.NDArray[np.uint64],
    nodes: Int32Array,
    limits: Int32Array,
    counts: Int32Array,
) -> int:
    """Build the trie of a sentence's references and return its number of nodes; counts are overwritten."""
    keys[:] = NO_KEY
    size = 1
    for r in range(len(offsets)):
        counts[:size] = 0
        end = offsets[r, sentence + 1]
        for first in range(offsets[r, sentence], end):
            node = np.int64(0)
            for k in range(first, min(first + ORDER, end)):
                word = words[k]
                if word < 0:
                    break
                key = _key(node, word)
                slot = find_key(keys, key)
                if keys[slot] == NO_KEY:
                    keys[slot] = key
                    nodes[slot] = size
                    limits[size] = 0
                    counts[size] = 0
                    size += 1
                node = np.int64(nodes[slot])
                counts[node] += 1
        for node in range(1, size):
            limits[node] = max(limits[node], counts[node])
    return size


@exact_kernel
def _closest(offsets: Int64Array, sentence: int, length: int) -> int:
    """Return the reference length that is closest to a length; the shorter one on a tie."""
    closest = offsets[0, sentence + 1] - offsets[0, sentence]
    for r in range(1, len(offsets)):
        reference_length = offsets[r, sentence + 1] - offsets[r, sentence]
        nearer = abs(reference_length - length) - abs(closest - length)
        if nearer < 0 or (nearer == 0 and reference_length < closest):
            closest = reference_length
    return closest


def check_references(references: Sequence[Phrases]) -> int:
    """Return the number of sentences of the references.

    Raises:
        ValueError: no references, or references with different numbers of sentences.
    """
    sizes = {len(reference) for reference in references}
    if len(sizes) != 1:
        raise ValueError(f"references must have the same number of sentences, got {sorted(sizes) or 'none'}")
    return sizes.pop()


def bleu_statistics(
    sentences: npt.NDArray[np.integer], candidates: Phrases, references: Sequence[Phrases]
) -> Int32Array:
    """Return BLEU statistics of candidates against the references of their sentences.

    N-gram matches are clipped at the largest count in any one reference; the reference length is the one closest to the
    candidate's, the shorter one on a tie (both as in sacrebleu).  Equal ids are equal words, so different words that a
    vocabulary lacks need different ids; a negative id matches nothing.

    Args:
        sentences: integers, shape (N,), the sentence of each candidate; those of a sentence should be adjacent.
        candidates: N candidates, word ids.
        references: R references of S sentences each.

    Returns:
        int32, shape (N, 9); the columns are described in the module docstring.

    Raises:
        ValueError: numbers of sentences differ, a sentence is not in the references, or there are no references.
    """
    count = check_references(references)
    sentences = np.asarray(sentences)
    if sentences.shape != (len(candidates),):
        raise ValueError(f"{len(candidates)} candidates, but sentence numbers of shape {sentences.shape}")
    if len(sentences) and not (sentences.min() >= 0 and sentences.max() < count):
        raise ValueError(f"sentence numbers from {sentences.min()} to {sentences.max()}, but {count} references")
    starts = np.cumsum([0] + [len(reference.words) for reference in references[:-1]])
    offsets = np.stack([reference.offsets + start for reference, start in zip(references, starts, strict=True)])
    most = int(np.diff(offsets).sum(0).max(initial=0)) * ORDER + 1
    slots = 1 << (2 * most).bit_length()
    out = np.zeros((len(candidates), COLUMNS), np.int32)
    _count(
        np.ascontiguousarray(sentences, np.int32),
        np.ascontiguousarray(candidates.offsets, np.int64),
        np.ascontiguousarray(candidates.words, np.int32),
        np.ascontiguousarray(offsets, np.int64),
        np.concatenate([reference.words for reference in references]).astype(np.int32, copy=False),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        out,
    )
    return out


def corpus_bleu(statistics: npt.NDArray[np.integer | np.floating]) -> float:
    """Return BLEU of a corpus, 0 to 100, without smoothing: 0 if some order has no match.

    Args:
        statistics: shape (9,), or (N, 9), which are summed.
    """
    total = np.asarray(statistics, np.float64).reshape(-1, COLUMNS).sum(0)
    matches, totals = total[MATCHES], total[TOTALS]
    if not matches.all():
        return 0.0
    brevity = min(0.0, 1 - total[REFERENCE_LENGTH] / total[LENGTH])
    return float(100 * np.exp(np.log(matches / totals).mean() + brevity))


def corpus_bleu_plus_half(statistics: npt.NDArray[np.integer]) -> float:
    """Return BLEU of a corpus, 0 to 100, with half a match and half an n-gram added to each order.

    A few sentences without a match of some order, which are too few to judge, do not get 0, as they do from
    `corpus_bleu`.  For many sentences the effect is negligible.

    Args:
        statistics: shape (N, 9), which are summed.
    """
    total = np.asarray(statistics, np.float64).sum(0)
    matches, totals = total[MATCHES] + 0.5, total[TOTALS] + 0.5
    brevity = min(0.0, 1 - total[REFERENCE_LENGTH] / max(total[LENGTH], 0.5))
    return float(100 * np.exp(np.log(matches / totals).mean() + brevity))


def sentence_bleu_plus_one(
    statistics: npt.NDArray[np.integer], smooth_brevity: bool = False
) -> npt.NDArray[np.float64]:
    """Return BLEU+1 of single sentences, 0 to 100: one match and one n-gram are added to the orders 2 to 4.

    Lin and Och, ORANGE (COLING 2004); sacrebleu calls it add-k with k = 1.  A candidate without any match gets 0.

    Args:
        statistics: shape (N, 9).
        smooth_brevity: treat the reference as one word longer (Nakov et al., COLING 2012).

    Returns:
        float64, shape (N,).
    """
    rows = np.asarray(statistics, np.float64)
    added = np.array([0.0] + [1.0] * (ORDER - 1))
    matched = rows[:, 0] > 0
    matches, totals = rows[matched, MATCHES] + added, rows[matched, TOTALS] + added
    brevity = np.minimum(0.0, 1 - (rows[matched, REFERENCE_LENGTH] + smooth_brevity) / rows[matched, LENGTH])
    scores = np.zeros(len(rows))
    scores[matched] = 100 * np.exp(np.log(matches / totals).mean(1) + brevity)
    return scores


def bleu_of_sums(sums: npt.NDArray[np.integer | np.floating]) -> DoubleArray:
    """Return BLEU of corpora with these statistics, 0 to 100, smoothed as in sacrebleu.

    The k-th order without a match counts as having 1 / 2^k matches (NIST's mteval-v13a); BLEU is 0 without any match.

    Args:
        sums: shape (..., 9), see `phrasetool.smt.evaluation.bleu`.

    Returns:
        float64, shape (...).
    """
    sums = np.asarray(sums, np.float64)
    matches, totals = sums[..., MATCHES], sums[..., TOTALS]
    missing = matches == 0
    smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    possible = (totals > 0).all(-1) & ~missing.all(-1)
    safe = np.where(totals > 0, totals, 1.0)
    length = np.where(sums[..., LENGTH] > 0, sums[..., LENGTH], 1.0)
    brevity = np.minimum(0.0, 1 - sums[..., REFERENCE_LENGTH] / length)
    score = 100 * np.exp(np.log(smoothed / safe).sum(-1) / ORDER + brevity)
    return np.where(possible, score, 0.0)


def sentence_statistics(hypothesis: Sequence[str], reference: Sequence[str]) -> Int32Array:
    """Return BLEU statistics of each sentence, whose words are separated by white space.

    Returns:
        int32, shape (S, 9), see `phrasetool.smt.evaluation.bleu`.

    Raises:
        ValueError: the numbers of lines differ.
    """
    if len(hypothesis) != len(reference):
        raise ValueError(f"{len(hypothesis)} translations of {len(reference)} sentences")
    words: dict[str, int] = {}
    candidates, truth = (
        Phrases.from_lists([[words.setdefault(word, len(words)) for word in line.split()] for line in lines])
        for lines in (hypothesis, reference)
    )
    return bleu_statistics(np.arange(len(candidates)), candidates, [truth])


@dataclass(frozen=True)
class BleuSamples:
    """BLEU of a system on a text and on bootstrap samples of it.

    Attributes:
        bleu: BLEU of the whole text.
        samples: float64, shape (B,), BLEU of each bootstrap sample.
    """

    bleu: float
    samples: DoubleArray

    @classmethod
    def mean_of(cls, runs: Sequence[BleuSamples]) -> BleuSamples:
        """Return mean BLEU over runs of a system, trained or tuned with different seeds; samples draw runs, too.

        Several runs are needed because one may be better than another by chance (Clark et al., ACL 2011).

        Args:
            runs: at least one, all on the same samples, in the order of their seeds.
        """
        mean = float(np.mean([run.bleu for run in runs]))
        return cls(mean, means_of_drawn_runs(np.stack([run.samples for run in runs])))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval: the range of the samples without a fortieth at either end."""
        return middle_interval(self.samples)

    def difference_interval(self, other: BleuSamples) -> tuple[float, float]:
        """Return the 95 % interval of this BLEU minus the other's, both from the same samples."""
        return middle_interval(self.samples - other.samples)

    def p_value(self, other: BleuSamples) -> float:
        """Return the probability of so large a difference between equally good systems, both from the same samples.

        Paired bootstrap resampling (Koehn, EMNLP 2004), as in sacrebleu; 1 if there is no difference.
        """
        difference = abs(self.bleu - other.bleu)
        if difference == 0:
            return 1.0
        differences = np.abs(self.samples - other.samples)
        beyond = int((differences - differences.mean() > difference).sum())
        return (beyond + 1) / (len(differences) + 1)


class Bootstrap:
    """Bootstrap samples of a text of S sentences, the same for all its systems.

    Args:
        sentences: S, at least 1.
        samples: number of samples.
        seed: random seed; with sacrebleu's seed, the samples are those of sacrebleu.

    Raises:
        ValueError: the number of sentences is below 1.
    """

    def __init__(self, sentences: int, samples: int = SAMPLES, seed: int = DEFAULT_SEED) -> None:
        self._counts = bootstrap_counts(sentences, samples, seed)

    def __call__(self, statistics: npt.NDArray[np.integer]) -> BleuSamples:
        """Score a system by the statistics of its sentences, shape (S, 9).

        Raises:
            ValueError: the statistics have a different number of sentences.
        """
        if statistics.shape != (self._counts.shape[1], COLUMNS):
            raise ValueError(f"statistics of shape {statistics.shape} for {self._counts.shape[1]} sentences")
        # Sums of integers below 2^24: exact in single precision, whatever the order of addition.
        sums = self._counts @ statistics.astype(np.float32)
        return BleuSamples(float(bleu_of_sums(statistics.sum(0, dtype=np.int64))), bleu_of_sums(sums))
