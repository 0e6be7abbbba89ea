"""The words of fields as numbers spread over 64 bits; no vocabulary is kept, so that threads need share none."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.bytes import skip_blanks, token_end
from phrasetool.kernels.hashing import fnv_bytes
from phrasetool.kernels.jit import exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.pruning.composition import HashArray, HashedPhrases

_HALF = np.uint64(32)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)


@inner_kernel
def _spread(h: np.uint64) -> np.uint64:
    """Every bit of a hash moves half of the bits: sums of FNV hashes of short words would meet."""
    h = (h ^ (h >> _HALF)) * _SPREAD
    h = (h ^ (h >> _HALF)) * _SPREAD
    return h ^ (h >> _HALF)


@exact_kernel
def _hash_words(text: ByteArray, starts: Int64Array, ends: Int64Array, offsets: Int64Array, words: HashArray) -> None:
    count = 0
    offsets[0] = 0
    for field in range(len(starts)):
        end = ends[field]
        i = skip_blanks(text, starts[field], end)
        while i < end:
            first = i
            i = token_end(text, i, end)
            words[count] = _spread(fnv_bytes(text, first, i))
            count += 1
            i = skip_blanks(text, i, end)
        offsets[field + 1] = count


def hash_words(text: ByteArray, starts: Int64Array, ends: Int64Array) -> HashedPhrases:
    """The phrases text[starts[i]:ends[i]], whose words stand between spaces and tabs.

    Args:
        text: uint8, shape (B,).
        starts, ends: int64, shape (N,).
    """
    offsets = np.zeros(len(starts) + 1, np.int64)
    words = np.empty(int(np.maximum((ends - starts + 1) // 2, 0).sum()), np.uint64)
    _hash_words(text, np.ascontiguousarray(starts), np.ascontiguousarray(ends), offsets, words)
    return HashedPhrases(offsets, words[: offsets[-1]].copy())
