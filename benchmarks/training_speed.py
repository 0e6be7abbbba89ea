"""Training time at the paper's size: 1.12 million pairs, n = 50, 25 iterations, extrapolated from one iteration.

The pairs are all entries of the reference table, almost as many as in the paper (1.12 million).  One thread is used.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from measuring import reference, report

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.streams import Input
from phrasetool.nn.device import choose_device
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer

PAPER_PAIRS = 1_120_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = choose_device(options.device)
    torch.set_num_threads(1)
    start = time.perf_counter()
    with Input(str(reference() / "phrase-table.gz")) as source:
        pairs = read_training_pairs(source)
    reading = time.perf_counter() - start
    figures: dict = {"pairs": len(pairs), "device": str(device), "reading_seconds": round(reading, 1)}
    for loss in OBJECTIVES:
        settings = TrainingSettings.for_loss(loss, iterations=1, pretrain_iterations=0)
        rng = np.random.default_rng(1)
        initial = [
            RaeParameters.random(rng.normal(0, 0.1, (len(vocabulary), 50)).astype(np.float32), rng)
            for vocabulary in (pairs.source_vocabulary, pairs.target_vocabulary)
        ]
        trainer = PhraseTrainer(pairs, settings, initial[0], initial[1], device)
        seconds = []
        start = time.perf_counter()
        for _ in trainer.run():
            seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
        rate = len(pairs) / min(seconds)
        figures[loss] = {
            "pairs_per_second": round(rate),
            "minutes_for_25_iterations_of_the_papers_pairs": round(25 * PAPER_PAIRS / rate / 60, 1),
        }
    report("training_speed", {**figures, "bars": {"pairs_per_second": 47000, "minutes": 10}})


if __name__ == "__main__":
    main()
