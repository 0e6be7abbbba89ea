"""What tells trained models apart: a digest of all that they are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from phrasetool.vocabulary import Vocabulary


def model_identity(
    head: str, arrays: Mapping[str, npt.NDArray[Any]], vocabularies: tuple[Vocabulary, ...], tail: str = ""
) -> str:
    """Eight hexadecimal digits that differ when a weight, a word, or what stands before or behind them differs.

    Args:
        head: what else makes the model, such as its architecture.
        arrays: its weights by name, in any order.
        vocabularies: in order.
        tail: more of the same as the head.
    """
    digest = hashlib.sha256(head.encode())
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    for vocabulary in vocabularies:
        digest.update(b"\n".join(vocabulary.words))
    digest.update(tail.encode())
    return digest.hexdigest()[:8]
