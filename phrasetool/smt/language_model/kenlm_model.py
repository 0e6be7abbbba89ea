"""Language models read by kenlm itself: ARPA text and all of its binary formats, of any order.

The decoder has its own models, which score many hypotheses at a time; see `combination`.  Here kenlm (Heafield 2011)
scores sentences one after the other, for features of n-best lists and for the fluency of corpora.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray, Phrases

_LN_10 = math.log(10.0)
_UNKNOWN = "<unk>"
# The end of kenlm's messages, after the location in its source code.
_THROWN = re.compile(r"threw \w+(?: because `.*?`)?\. (.*)\)$", re.DOTALL)


class KenlmModel:
    """A language model that kenlm scores.

    Attributes:
        path: path of the file.
    """

    def __init__(self, path: str, model: Any) -> None:
        self.path = path
        self._model = model

    @classmethod
    def load(cls, path: str) -> KenlmModel:
        """Load a model; binary files are mapped into memory.

        Raises:
            DataError: the file cannot be read, or kenlm does not accept it as a language model.
            ModuleNotFoundError: the package kenlm is not installed.
        """
        import kenlm

        # kenlm's own message begins with a location in its source code.
        if not os.path.isfile(path):
            raise DataError(path, "No such file or directory" if not os.path.exists(path) else "is not a regular file")
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            with _quiet():
                return cls(path, kenlm.Model(path, config))
        except (OSError, RuntimeError) as error:
            raise DataError(path, f"kenlm cannot read it as a language model: {_plain(str(error))}") from error

    def __contains__(self, word: bytes) -> bool:
        # kenlm treats a zero byte as the end of a word.
        return b"\0" not in word and word in self._model

    def log_probabilities(
        self, sentences: Phrases, words: Sequence[bytes], tick: Callable[[int], object] = lambda count: None
    ) -> DoubleArray:
        """Score sentences as Moses' `KENLM` feature does, between `<s>` and `</s>`.

        Words are passed one by one, because kenlm would split text at characters other than spaces, too.

        Args:
            sentences: in ids of `words`.
            words: their bytes.
            tick: called with 1 after each sentence.

        Returns:
            Natural logarithms of their probabilities, shape (N,).

        Raises:
            DataError: the model has a word that is not UTF-8, which the package cannot look up, or gives a sentence an
                invalid probability, because its file is damaged.
        """
        import kenlm

        model, ids = self._model, sentences.words.tolist()
        texts = [self._text(word) if word in self else _UNKNOWN for word in words]
        begin, spare = kenlm.State(), (kenlm.State(), kenlm.State())
        model.BeginSentenceWrite(begin)
        totals = np.empty(len(sentences))
        offsets = sentences.offsets.tolist()
        for row in range(len(sentences)):
            state, scores = begin, []
            sentence = ids[offsets[row] : offsets[row + 1]]
            for position, word in enumerate(sentence):
                following = spare[position & 1]
                scores.append(model.BaseScore(state, texts[word], following))
                state = following
            scores.append(model.BaseScore(state, "</s>", spare[len(sentence) & 1]))
            # Summed one after the other in single precision, as in kenlm and Moses.
            totals[row] = np.cumsum(scores, dtype=np.float32)[-1]
            if not -math.inf < totals[row] <= 0:
                score = float(totals[row])
                raise DataError(self.path, f"gives a sentence the log probability {score:g}: is the file damaged?")
            tick(1)
        return totals * _LN_10

    def cross_entropies(self, sentences: Phrases, words: Sequence[bytes]) -> DoubleArray:
        """Return the negative log probability of each sentence per word, `</s>` included, in nats; shape (N,)."""
        entropies: DoubleArray = -self.log_probabilities(sentences, words) / (sentences.lengths + 1)
        return entropies

    def _text(self, word: bytes) -> str:
        try:
            return word.decode()
        except UnicodeDecodeError:
            raise DataError(self.path, f"has the word {word!r}, which is not UTF-8: convert model and text") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress kenlm's output to standard error: no setting disables its message about a missing `<unk>`."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _plain(message: str) -> str:
    """Return kenlm's message without the location in its source code."""
    match = _THROWN.search(message)
    return match[1] if match else message
