"""Similarities of the two sides of phrase pairs: encoding each distinct phrase once, cosines, calibration.

**Calibration of cosines.**  How large the cosine of a translation is depends on the loss, its temperature, the
dimension and the language pair: with one model most training pairs have a cosine above 0.7, with another model hardly
any.  A calibration is a piecewise linear, increasing map of [-1, 1] onto itself that is fitted to the training pairs:
the median cosine of random pairs becomes 0, and the cosine that all but a hundredth of the training pairs exceed
becomes 0.7.  The order of entries by either similarity does not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import borrowing_float_kernel, exact_kernel
from phrasetool.models.fit import Comparison
from phrasetool.phrase_encoder.encoder import PackedEncoder, PhraseEncoder
from phrasetool.phrases import EntryBlock, FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import UNKNOWN

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@borrowing_float_kernel
def _dot(a: FloatArray, i: int, b: FloatArray, j: int) -> float:
    """Return the dot product of the rows a[i] and b[j]: four running sums, in a fixed order."""
    n = a.shape[1]
    whole = n - n % 4
    s0, s1, s2, s3 = _ZERO, _ZERO, _ZERO, _ZERO
    for k in range(0, whole, 4):
        s0 += a[i, k] * b[j, k]
        s1 += a[i, k + 1] * b[j, k + 1]
        s2 += a[i, k + 2] * b[j, k + 2]
        s3 += a[i, k + 3] * b[j, k + 3]
    for k in range(whole, n):
        s0 += a[i, k] * b[j, k]
    return (s0 + s1) + (s2 + s3)


@borrowing_float_kernel
def _pair_cosines(
    source_index: Int64Array,
    target_index: Int64Array,
    source_encoded: FloatArray,
    source_transformed: FloatArray,
    target_encoded: FloatArray,
    target_transformed: FloatArray,
    similarities: FloatArray,
) -> None:
    for i in range(len(source_index)):
        s, t = source_index[i], target_index[i]
        st = _dot(source_transformed, s, target_encoded, t)
        ts = _dot(target_transformed, t, source_encoded, s)
        similarities[i, 0] = min(max(st, -_ONE), _ONE)
        similarities[i, 1] = min(max(ts, -_ONE), _ONE)


def pair_cosines(
    source_index: npt.NDArray[np.integer],
    target_index: npt.NDArray[np.integer],
    source_vectors: tuple[FloatArray, FloatArray],
    target_vectors: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return both similarities of N pairs: sim_st = cos(f(Wl_s p_s + bl_s), p_t) and sim_ts, its mirror image.

    Args:
        source_index, target_index: shape (N,), rows of the vectors.
        source_vectors: phrase vectors and their transformations, each float32 of shape (S, n), of length one or zero.
        target_vectors: likewise, shape (T, n).

    Returns:
        float32, shape (N, 2), in [-1, 1]; 0 where a vector is zero.

    Raises:
        ValueError: shapes or types do not agree, or an index is out of range.
    """
    arrays = [*source_vectors, *target_vectors]
    if any(a.dtype != np.float32 or a.ndim != 2 or a.shape[1] != arrays[0].shape[1] for a in arrays):
        raise ValueError("vectors must be float32 matrices of one dimension")
    if len(source_index) != len(target_index):
        raise ValueError(f"{len(source_index)} source and {len(target_index)} target indices")
    for index, (vectors, _) in ((source_index, source_vectors), (target_index, target_vectors)):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(vectors):
            raise ValueError("an index is outside the vectors")
    similarities = np.empty((len(source_index), 2), np.float32)
    _pair_cosines(
        source_index.astype(np.int64, copy=False), target_index.astype(np.int64, copy=False), *arrays, similarities
    )
    return similarities


# The similarity that all but a share `_SHARE` of the training pairs exceed: the threshold of Zhang et al. (2014).
LEVEL = 0.7
_SHARE = 0.01
# Maximum number of pairs that a calibration is fitted to.
_SAMPLE = 200_000
# Minimum difference between cosines that distinguish pairs from random pairs.
_LEAST_DISTANCE = 0.01


@borrowing_float_kernel
def _calibrate(similarities: FloatArray, random: float, pair: float) -> None:
    one = np.float32(1.0)
    level = np.float32(LEVEL)
    below = one / (one + random)
    between = level / (pair - random)
    above = (one - level) / (one - pair)
    for i in range(similarities.shape[0]):
        for k in range(similarities.shape[1]):
            x = similarities[i, k]
            if x < random:
                x = max((x - random) * below, -one)
            elif x < pair:
                x = (x - random) * between
            else:
                x = one - (one - x) * above
            similarities[i, k] = x


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear map through (-1, -1), (random, 0), (pair, 0.7) and (1, 1).

    Attributes:
        random: the median cosine of random pairs.
        pair: the cosine that all but a hundredth of the training pairs exceed in one direction at least.

    Raises:
        ValueError: not -1 < random < pair < 1.
    """

    random: float
    pair: float

    def __post_init__(self) -> None:
        if not -1 < self.random < self.pair < 1:
            raise ValueError(f"expected -1 < random < pair < 1, not {self.random!r} and {self.pair!r}")

    def apply(self, similarities: FloatArray) -> None:
        """Calibrate cosines in place.

        Args:
            similarities: float32, shape (N, C), C-contiguous, in [-1, 1].

        Raises:
            ValueError: the array has another type or shape.
        """
        if similarities.dtype != np.float32 or similarities.ndim != 2 or not similarities.flags.c_contiguous:
            raise ValueError("similarities must be a contiguous float32 matrix")
        _calibrate(similarities, np.float32(self.random), np.float32(self.pair))

    def as_dict(self) -> dict[str, float]:
        """Return the calibration for `config.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `as_dict` described.

        Raises:
            ValueError: a value is missing, is not a number, or is out of range.
        """
        try:
            return cls(float(values["random"]), float(values["pair"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"`calibration` needs the numbers `random` and `pair` ({error})") from error

    @classmethod
    def fit(
        cls, score_pairs: Callable[[Phrases, Phrases], FloatArray], sources: Phrases, targets: Phrases, seed: int
    ) -> Calibration | None:
        """Fit a calibration to training pairs.

        Args:
            score_pairs: scoring by the trained model, without calibration; see `BilingualScorer.score_pairs`.
            sources, targets: the sides of the N training pairs.
            seed: seed of the random pairs.

        Returns:
            None if the model does not distinguish the pairs from random pairs, so that there is nothing to calibrate.
        """
        rng = np.random.default_rng([seed, 7])
        rows = np.sort(rng.permutation(len(sources))[:_SAMPLE])
        sources, targets = sources.select(rows), targets.select(rows)
        if not len(rows):
            return None
        pairs = score_pairs(sources, targets).max(axis=1)
        shuffled = score_pairs(sources, targets.select(rng.permutation(len(targets)))).max(axis=1)
        # Rounded, so that the last bits of a sum have no influence.
        pair, random = round(float(np.quantile(pairs, _SHARE)), 4), round(float(np.median(shuffled)), 4)
        return cls(random, pair) if random > -1 and random + _LEAST_DISTANCE < pair < 1 else None


@dataclass(frozen=True)
class Scores:
    """Similarities of N entries.

    Attributes:
        similarities: float32, shape (N, 2), source-to-target first, in [-1, 1]; 0 for a malformed entry.
        scored: bool, shape (N,); False where the source or the target has no known word (or the entry is malformed):
            its similarity is meaningless, and no rule may prune by it.
        logarithms: whether there is one column instead, shape (N, 1), of natural logarithms of probabilities, NaN where
            there is no score.
    """

    similarities: FloatArray
    scored: npt.NDArray[np.bool_]
    logarithms: bool = False


@exact_kernel
def _any_known(offsets: Int64Array, words: Int32Array, known: npt.NDArray[np.bool_]) -> None:
    for i in range(len(known)):
        known[i] = False
        for k in range(offsets[i], offsets[i + 1]):
            if words[k] != UNKNOWN:
                known[i] = True
                break


def has_known_word(phrases: Phrases) -> npt.NDArray[np.bool_]:
    """Return for each phrase whether at least one of its words is in the vocabulary; shape (N,)."""
    known = np.empty(len(phrases), np.bool_)
    _any_known(phrases.offsets, phrases.words, known)
    return known


class BilingualScorer:
    """Scorer of entries, with an encoder and a transformation per language.

    It is thread-safe: each thread gets its own encoders, the parameters are shared.

    Args:
        source, target: the parameters of the two languages, laid out for scoring.
        node_capacity: number of intermediate vectors that an encoder keeps at a time; bounds the memory.
        calibration: maps cosines to similarities; None for cosines.
    """

    def __init__(
        self,
        source: PackedEncoder,
        target: PackedEncoder,
        node_capacity: int = 1 << 16,
        calibration: Calibration | None = None,
    ) -> None:
        if source.dimension != target.dimension:
            raise ValueError(f"dimensions differ: {source.dimension} and {target.dimension}")
        self._packed = (source, target)
        self._capacity = node_capacity
        self._calibration = calibration
        self._local = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        # Encoders belong to threads, and are not pickled.
        return BilingualScorer, (*self._packed, self._capacity, self._calibration)

    def _encoders(self) -> tuple[PhraseEncoder, PhraseEncoder]:
        if not hasattr(self._local, "encoders"):
            source, target = self._packed
            self._local.encoders = source.encoder(self._capacity), target.encoder(self._capacity)
        encoders: tuple[PhraseEncoder, PhraseEncoder] = self._local.encoders
        return encoders

    def encode_sources(self, phrases: Phrases) -> tuple[FloatArray, FloatArray]:
        """Encode source phrases, and transform them into the target space: float32 (N, n), of length one or zero."""
        return self._encoders()[0].encode(phrases)

    def encode_targets(self, phrases: Phrases) -> tuple[FloatArray, FloatArray]:
        """Encode target phrases, and transform them into the source space: float32 (N, n), of length one or zero."""
        return self._encoders()[1].encode(phrases)

    def score_pairs(self, sources: Phrases, targets: Phrases) -> FloatArray:
        """Return the similarities of the pairs (sources[i], targets[i]); float32, shape (N, 2)."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets")
        numbers, distinct = distinct_phrases(sources)
        return self._score(distinct, numbers, targets)

    def _score(self, sources: Phrases, source_index: Int64Array, targets: Phrases) -> FloatArray:
        target_index, distinct = distinct_phrases(targets)
        similarities = pair_cosines(
            source_index, target_index, self.encode_sources(sources), self.encode_targets(distinct)
        )
        self.calibrate(similarities)
        return similarities

    def calibrate(self, cosines: FloatArray) -> None:
        """Turn cosines of one direction into similarities, in place.

        Args:
            cosines: float32, two dimensions, C-contiguous.
        """
        if self._calibration is not None:
            self._calibration.apply(cosines)

    def score(self, block: EntryBlock) -> Scores:
        """Score a block of N entries."""
        group = np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))
        similarities = self._score(block.sources, group, block.targets)
        similarities[block.malformed] = 0
        scored = has_known_word(block.sources)[group] & has_known_word(block.targets) & ~block.malformed
        return Scores(similarities, scored)


def by_cosine(scorer: BilingualScorer) -> Comparison:
    """Return a comparison by the mean of both similarities."""

    def compare(sources: Phrases, targets: Phrases) -> Callable[[Int64Array, Int64Array], FloatArray]:
        vectors = scorer.encode_sources(sources), scorer.encode_targets(targets)
        return lambda rows, numbers: np.asarray(pair_cosines(rows, numbers, *vectors).mean(1))

    return compare
