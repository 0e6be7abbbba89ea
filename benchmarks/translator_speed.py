"""Training speed of a translator by loss and size of the target vocabulary (figure 2 of Bhat, Kumar, Tsvetkov 2020).

The preset `gru` is trained on sentence pairs of Multi30k German-English on one thread.  Updates of all losses are timed
in turn; the results are pairs per CPU second, as medians over rounds.  Vocabularies larger than that of the corpus are
filled up with words that never occur, which does not affect the speed.  The most informative negative is searched for
among all words, as in the paper.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from measuring import DATA, report, turns

from moses_compat.corpora.bitexts import read_sentence_pairs
from phrasetool.phrases import FloatArray
from phrasetool.training.data import PhrasePairs, frequent_words, in_vocabulary
from phrasetool.translator.settings import TranslatorSettings
from phrasetool.translator.training import TranslatorTrainer
from phrasetool.vocabulary import Vocabulary

SIZES = (6_000, 12_500, 25_000, 50_000)
LOSSES: dict[str, dict[str, Any]] = {
    "syn-projection": {}, "syn-difference": {}, "cosine": {}, "vmf": {}, "sampled": {},
    "most-informative": {"pool_size": 0}, "cross-entropy": {}, "cross-entropy-tied": {},
}  # fmt: skip
# Pairs of a timed step.
PAIRS = 320
CORPUS = DATA / "multi30k-de-en"


def corpus(size: int) -> PhrasePairs:
    """Return sentence pairs with a target vocabulary of `size` words."""
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(
        str(CORPUS / "train.de.gz"), str(CORPUS / "train.en.gz")
    )
    chosen = np.sort(np.random.default_rng(1).permutation(len(sources))[:PAIRS])
    words = frequent_words(targets, target_symbols.words, 2, size)
    others = [b"other-word-%d" % i for i in range(size - len(words))]
    source_words = frequent_words(sources, source_symbols.words, 2, 0)
    return PhrasePairs(
        in_vocabulary(sources.select(chosen), source_symbols.words, source_words),
        in_vocabulary(targets.select(chosen), target_symbols.words, words),
        np.ones(PAIRS, np.int64), source_words, Vocabulary([*words.words, *others]),
    )  # fmt: skip


def steps(pairs: PhrasePairs, table: FloatArray, loss: str, options: dict[str, Any]) -> Iterator[Any]:
    """Return a training run whose epochs are the timed steps."""
    settings = TranslatorSettings(loss=loss, loss_options=options, epochs=10_000)
    return TranslatorTrainer(pairs, None, table, settings).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, Any] = {}
    for size in SIZES:
        pairs = corpus(size)
        table = np.random.default_rng(1).normal(size=(size + 1, 300)).astype(np.float32)
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        runs = {loss: steps(pairs, table, loss, loss_options) for loss, loss_options in LOSSES.items()}
        seconds = turns(runs, options.rounds, time.process_time)
        base = np.array(seconds["syn-projection"])
        figures[str(size)] = {
            loss: {
                "pairs_per_cpu_second": round(PAIRS / statistics.median(values)),
                "syn-projection is faster by": round(float(np.median(np.array(values) / base)), 3),
            }
            for loss, values in seconds.items()
        }
    report("translator_speed", {"rounds": options.rounds, "sizes": figures})


if __name__ == "__main__":
    main()
