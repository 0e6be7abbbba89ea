"""Log probabilities of the hypotheses of n-best lists, by a translator of either direction.

A batch is one sentence with its distinct hypotheses, sorted, whatever else is asked for and whatever the number of
threads: so a score is a matter of the sentence's list alone.  Hypotheses of a sentence share their beginnings, which
`likelihood` reads once.  In the other direction each hypothesis is a source of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from phrasetool.nn.device import one_torch_thread
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.pipeline import run
from phrasetool.translator.likelihood import pair_order, pair_scores
from phrasetool.translator.network import NeuralTranslator
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import UNKNOWN

# What a text without words is read as.
_NO_WORDS = Phrases.from_lists([[UNKNOWN]])


def list_scores(
    module: NeuralTranslator,
    temperature: float,
    sources: Phrases,
    hypotheses: Phrases,
    sentences: Int64Array,
    *,
    backward: bool,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> DoubleArray:
    """log p(hypothesis | source), or log p(source | hypothesis) if backward; float64, shape (N,).

    A text that is to be translated from and has no words is read as one unknown word.

    Args:
        module: not in training.
        temperature: of the translator.
        sources: S sentences, in ids of the module's source words, or of its target words if backward.
        hypotheses: N, in ids of the other side.
        sentences: of each hypothesis, int64, shape (N,), ascending.
        backward: whether the translator reads hypotheses and writes sources.
        threads: sentences that are worked on at a time, each by one thread.
        tick: called with the number of sentences just done.

    Raises:
        LengthError: a text is too long.
        ValueError: sentences do not ascend, or one is not there.
    """
    if len(sentences) and (np.diff(sentences).min(initial=0) < 0 or sentences[0] < 0 or sentences[-1] >= len(sources)):
        raise ValueError(f"expected ascending sentence numbers below {len(sources)}")
    scores = np.zeros(len(hypotheses))
    numbers, firsts = np.unique(sentences, return_index=True)
    ends = [*firsts[1:].tolist(), len(sentences)]

    def work(part: tuple[int, int, int]) -> tuple[int, int, DoubleArray]:
        sentence, first, last = part
        source = sources.part(sentence, sentence + 1)
        with one_torch_thread():
            found = _sentence_scores(module, temperature, source, hypotheses.part(first, last), backward)
        return first, last, found

    with one_torch_thread():
        parts = zip(numbers.tolist(), firsts.tolist(), ends, strict=True)
        for first, last, found in run(parts, work, threads):
            scores[first:last] = found
            tick(1)
    return scores


def _sentence_scores(
    module: NeuralTranslator, temperature: float, source: Phrases, hypotheses: Phrases, backward: bool
) -> DoubleArray:
    """Scores of the hypotheses of one sentence, float64, shape (N,)."""
    numbers, firsts = number_distinct(hypotheses)
    distinct = hypotheses.select(firsts)
    order = pair_order(np.zeros(len(distinct), np.int64), distinct)
    ordered = distinct.select(order)
    one = np.zeros(len(ordered), np.int64)
    found = np.empty(len(ordered))
    if backward:
        read = Phrases.concatenate([part if len(part.words) else _NO_WORDS for part in _singles(ordered)])
        targets = source.select(one)
        scores = pair_scores(module, read, targets, np.arange(len(read)), "normalised", temperature)
    else:
        read = source if len(source.words) else _NO_WORDS
        scores = pair_scores(module, read, ordered, one, "normalised", temperature)
    found[order] = scores
    return found[numbers]


def _singles(phrases: Phrases) -> Iterator[Phrases]:
    return (phrases.part(i, i + 1) for i in range(len(phrases)))
