"""Training speed on a CPU with subnormal numbers and with 0 in place of them: texts per second during an epoch.

Two autoencoders are trained on the captions of `reconstruction.py`, with equal settings and seeds, in two simultaneous
processes of one thread each: for one epoch with the small settings, or for the first updates of an epoch with those of
the paper (`--paper`).  One of them computes with subnormal numbers: Adam's moments become subnormal for every word that
does not occur for a thousand updates, and for words whose probability is tiny.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import torch
from measuring import WORK, report
from reconstruction import CORPORA, PAPER, split

from moses_compat.corpora.texts import read_texts
from phrasetool.autoencoder.settings import AutoencoderSettings
from phrasetool.autoencoder.training import AutoencoderTrainer
from phrasetool.training.data import frequent_words, in_vocabulary

# The settings for captions in `reconstruction.py`.
SMALL = AutoencoderSettings(dropout=0, learning_rate=0.001, batch_size=16, epochs=1, min_count=5)
LARGE = replace(SMALL, **PAPER, batch_size=32, precision="bfloat16")
# Updates between two measurements of time, with the small settings and those of the paper.
WINDOWS = (1000, 400)


class _EnoughUpdatesError(Exception):
    """Ends an epoch early."""


def windows(
    text: Path, settings: AutoencoderSettings, window: int, updates: int | None, subnormal: bool
) -> list[float]:
    """Return texts per second for each window of updates."""
    torch.set_num_threads(1)
    everything, symbols = read_texts(str(text))
    vocabulary = frequent_words(everything, symbols.words, settings.min_count, settings.vocabulary_size)
    texts = in_vocabulary(everything, symbols.words, vocabulary)
    trainer = AutoencoderTrainer(texts, len(vocabulary), settings, torch.device("cpu"))
    times = [time.perf_counter()]
    text_counts = [0]
    update_count = 0

    def tick(examples: int) -> None:
        nonlocal update_count
        # The trainer treats them as 0 in each epoch.
        torch.set_flush_denormal(not subnormal)
        text_counts[-1] += examples
        update_count += 1
        if update_count % window == 0:
            times.append(time.perf_counter())
            text_counts.append(0)
        if update_count == updates:
            raise _EnoughUpdatesError

    with contextlib.suppress(_EnoughUpdatesError):
        trainer.run_epoch(tick)
    return [
        round(count / (end - begin), 1)
        for count, begin, end in zip(text_counts[:-1], times[:-1], times[1:], strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", action="store_true", help="dimensions and batches of the paper")
    parser.add_argument("--updates", type=int, help="updates to measure (default: a whole epoch)")
    options = parser.parse_args()
    name = "subnormals-paper" if options.paper else "subnormals"
    settings, window = (SMALL, LARGE)[options.paper], WINDOWS[options.paper]
    text, _ = split(WORK / "subnormals", CORPORA["captions"]("en"), None, 1, 0)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        runs = {
            treatment: pool.submit(windows, text, settings, window, options.updates, subnormal)
            for treatment, subnormal in (("calculated", True), ("zero", False))
        }
        speeds = {treatment: run.result() for treatment, run in runs.items()}
    last = {treatment: statistics.median(speed[-3:]) for treatment, speed in speeds.items()}
    figures = {
        "window": window,
        "texts_per_second": speeds,
        "times_as_fast_at_the_end": round(last["zero"] / last["calculated"], 2),
    }
    report(name, figures)


if __name__ == "__main__":
    main()
