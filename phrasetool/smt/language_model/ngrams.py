"""A back-off language model as tables, one per order: what an ARPA file holds and what an estimator makes."""

from __future__ import annotations

from dataclasses import dataclass

from phrasetool.phrases import FloatArray, Int32Array

UNKNOWN_WORD = b"<unk>"
BEGIN_WORD = b"<s>"
END_WORD = b"</s>"
# Value that kenlm gives the unknown word of a model that has none.
UNKNOWN_LOG_PROBABILITY = -100.0
# Models hold decimal logarithms, a decoder's features are natural ones.
LN10 = 2.302585092994046


@dataclass(frozen=True)
class NgramTable:
    """All n-grams of one order n, N of them.

    Attributes:
        words: int32, shape (N, n), word ids, the predicted word last.
        log_probabilities: float32, shape (N,), log10 of the last word's probability after the others.
        backoffs: float32, shape (N,), log10 of the weight given to shorter contexts when no longer n-gram begins with
            this one; zeros in the table of the highest order.
    """

    words: Int32Array
    log_probabilities: FloatArray
    backoffs: FloatArray

    def __len__(self) -> int:
        return len(self.words)

    def part(self, first: int, last: int) -> NgramTable:
        """Rows first..last - 1."""
        rows = slice(first, last)
        return NgramTable(self.words[rows], self.log_probabilities[rows], self.backoffs[rows])


@dataclass(frozen=True)
class BackoffModel:
    """A back-off language model (Katz 1987, the form of an ARPA file).

    p(w | h) is that of the n-gram hw if there is one, else the back-off of h (1 if there is no such n-gram) times
    p(w | h without its first word).

    Attributes:
        words: V distinct words; `words[0]` is `<unk>`.
        tables: one per order, from 1.  The table of order 1 holds each word once, in id order.
    """

    words: list[bytes]
    tables: list[NgramTable]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.tables)
