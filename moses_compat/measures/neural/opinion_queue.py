"""What translators say of entries, on its way from the windows that were scored to the blocks of the table."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array, Mask


@dataclass(frozen=True)
class NeuralOpinions:
    """What a translator says of N entries.

    Attributes:
        logs: float32, shape (N,), its scores; NaN where it says nothing.
        words: int64, shape (N,), what it predicted for each: the words of its target, and the end.
        opinion: bool, shape (N,), False where a side has no known word, or too many words (or the entry is faulty).
    """

    logs: FloatArray
    words: Int64Array
    opinion: Mask


class OpinionQueue:
    """Opinions on their way from windows to blocks.

    Attributes:
        size: entries in it.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: deque[NeuralOpinions] = deque()

    def put(self, part: NeuralOpinions) -> None:
        """Add entries behind the last."""
        self._parts.append(part)
        self.size += len(part.logs)

    def take(self, count: int) -> NeuralOpinions:
        """Take so many entries, which are there, from the front."""
        self.size -= count
        taken = [NeuralOpinions(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.bool_))]
        while count:
            part = self._parts.popleft()
            taken.append(_slice(part, 0, count))
            if len(part.logs) > count:
                self._parts.appendleft(_slice(part, count, len(part.logs)))
            count -= len(taken[-1].logs)
        return NeuralOpinions(
            np.concatenate([part.logs for part in taken]),
            np.concatenate([part.words for part in taken]),
            np.concatenate([part.opinion for part in taken]),
        )

    def take_block(self, faulty: Mask) -> NeuralOpinions:
        """Take the good entries of a block from the front; what is said of all its N, where faulty is of shape (N,)."""
        part = self.take(len(faulty) - int(np.count_nonzero(faulty)))
        logs, words, opinion = (
            np.full(len(faulty), np.nan, np.float32),
            np.ones(len(faulty), np.int64),
            np.zeros_like(faulty),
        )
        logs[~faulty], words[~faulty], opinion[~faulty] = part.logs, part.words, part.opinion
        return NeuralOpinions(logs, words, opinion)


def _slice(part: NeuralOpinions, first: int, last: int) -> NeuralOpinions:
    return NeuralOpinions(part.logs[first:last], part.words[first:last], part.opinion[first:last])
