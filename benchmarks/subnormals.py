"""Training speed on a CPU with subnormal numbers and with 0 in place of them: texts per second during one epoch.

Two autoencoders are trained on the captions of `reconstruction.py` for one epoch, with equal settings and seeds, in
two simultaneous processes of one thread each.  One of them computes with subnormal numbers: Adam's moments become
subnormal for every word that does not occur for a thousand updates.
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

# The settings for captions in `reconstruction.py`.
SETTINGS = AutoencoderSettings(dropout=0, learning_rate=0.001, batch_size=16, epochs=1, min_count=5)
# Updates between two measurements of time.
WINDOW = 1000


def windows(text: Path, subnormal: bool) -> tuple[list[float], float]:
    """Return texts per second for each thousand updates, and the cross-entropy of the epoch."""
    torch.set_num_threads(1)
    everything, symbols = read_texts(str(text))
    vocabulary = frequent_words(everything, symbols.words, SETTINGS.min_count, SETTINGS.vocabulary_size)
    texts = in_vocabulary(everything, symbols.words, vocabulary)
    trainer = AutoencoderTrainer(texts, len(vocabulary), SETTINGS, torch.device("cpu"))
    times = [time.perf_counter()]
    text_counts = [0]
    updates = 0

    def tick(examples: int) -> None:
        nonlocal updates
        # Set here, because the trainer flushes subnormal numbers to 0 in each epoch.
        torch.set_flush_denormal(not subnormal)
        text_counts[-1] += examples
        updates += 1
        if updates % WINDOW == 0:
            times.append(time.perf_counter())
            text_counts.append(0)

    report = trainer.run_epoch(tick)
    rates = [
        round(count / (end - begin), 1)
        for count, begin, end in zip(text_counts[:-1], times[:-1], times[1:], strict=True)
    ]
    return rates, report.cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="captions, for a trial; then no results are kept")
    options = parser.parse_args()
    folder = WORK / ("subnormals" + (f"-{options.limit}" if options.limit else ""))
    text, _ = split(folder, CORPORA["captions"]("en"), options.limit, 1, 0)
    modes = {"calculated": True, "zero": False}
    with ProcessPoolExecutor(len(modes), get_context("spawn")) as pool:
        running = {name: pool.submit(windows, text, subnormal) for name, subnormal in modes.items()}
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
