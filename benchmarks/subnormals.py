"""Training on a CPU with subnormal numbers, and with 0 in place of them: texts per second in the course of one epoch.

Two autoencoders learn the captions of `reconstruction.py` for one epoch, with equal settings and random numbers, each
by one thread of its own process, both at the same time.  In one of them subnormal numbers are calculated with: moments
of Adam become such numbers for every word that does not occur for a thousand updates.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from measuring import WORK, report
from reconstruction import CORPORA, split

from moses_compat.corpora.texts import read_texts
from phrasetool.autoencoder.settings import AutoencoderSettings
from phrasetool.autoencoder.training import AutoencoderTrainer
from phrasetool.training.data import frequent_words, in_vocabulary

# Those of the captions in `reconstruction.py`.
SETTINGS = AutoencoderSettings(dropout=0, learning_rate=0.001, batch_size=16, epochs=1, min_count=5)
# Updates from one time to the next.
WINDOW = 1000


def windows(text: Path, subnormal: bool) -> tuple[list[float], float]:
    """Texts per second of each thousand updates, and the cross-entropy of the epoch."""
    torch.set_num_threads(1)
    everything, symbols = read_texts(str(text))
    vocabulary = frequent_words(everything, symbols.words, SETTINGS.min_count, SETTINGS.vocabulary_size)
    texts = in_vocabulary(everything, symbols.words, vocabulary)
    trainer = AutoencoderTrainer(texts, len(vocabulary), SETTINGS, torch.device("cpu"))
    times = [time.perf_counter()]
    seen = [0]
    updates = 0

    def tick(examples: int) -> None:
        nonlocal updates
        # The trainer takes them for 0 in each epoch.
        torch.set_flush_denormal(not subnormal)
        seen[-1] += examples
        updates += 1
        if updates % WINDOW == 0:
            times.append(time.perf_counter())
            seen.append(0)

    report = trainer.run_epoch(tick)
    rates = [
        round(count / (end - begin), 1) for count, begin, end in zip(seen[:-1], times[:-1], times[1:], strict=True)
    ]
    return rates, report.cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="captions, for a trial; then no results are kept")
    options = parser.parse_args()
    folder = WORK / ("subnormals" + (f"-{options.limit}" if options.limit else ""))
    text, _ = split(folder, CORPORA["captions"]("en"), options.limit, 1, 0)
    ways = {"calculated": True, "zero": False}
    with ProcessPoolExecutor(len(ways), get_context("spawn")) as pool:
        running = {name: pool.submit(windows, text, subnormal) for name, subnormal in ways.items()}
        measured = {name: future.result() for name, future in running.items()}
    figures = {
        "window": WINDOW,
        **{
            name: {"texts_per_second": rates, "cross_entropy": round(loss, 4)}
            for name, (rates, loss) in measured.items()
        },
        "times_as_fast_in_the_second_half": round(
            statistics.median(measured["zero"][0][len(measured["zero"][0]) // 2 :])
            / statistics.median(measured["calculated"][0][len(measured["calculated"][0]) // 2 :]),
            2,
        ),
    }
    if options.limit:
        print(figures)
    else:
        report("subnormals", figures)


if __name__ == "__main__":
    main()
