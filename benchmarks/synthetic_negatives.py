"""Words nearest to predictions and to synthetic negatives: section 5 of Bhat, Kumar and Tsvetkov (2020).

A translator of `translators.py` (`syn-projection`, its best margin, seed 1) predicts the words of the first test set
given the preceding words of the reference.  Where the nearest word of a prediction is wrong, the results count how
often the nearest word of the loss's synthetic negative is that of the prediction or the correct word, with examples of
other words.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np
import torch
from measuring import WORK, report
from torch.nn import functional
from translators import EPOCHS, forced_predictions, margin, target_vectors, texts

from phrasetool.phrase_encoder.losses import FrozenBatch, SynProjection
from phrasetool.training.run import CHECKPOINT, TrainingRun
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.settings import TranslatorSettings
from phrasetool.translator.training import train_translator

CORPUS, EXAMPLES = "multi30k-de-en", 12


def trained(epochs: int) -> TranslatorModel:
    """Return the translator, trained if it is missing; interrupted training is resumed."""
    folder = WORK / "synthetic-negatives" / str(epochs)
    if (folder / "config.json").is_file():
        return TranslatorModel.load(folder)
    settings = TranslatorSettings(loss="syn-projection", loss_options=margin("syn-projection"), epochs=epochs, seed=1)
    pairs, development, _ = texts(CORPUS)
    interrupted = (folder / CHECKPOINT).exists()
    run = TrainingRun(folder, resume=interrupted, overwrite=not interrupted)
    return train_translator(pairs, development, target_vectors(CORPUS, settings.centring), settings, run)


def nearest_words(model: TranslatorModel) -> np.ndarray:
    """Return the correct word and those nearest to the prediction and its negative, shape (T, 3)."""
    vectors, loss = model.network.targets, SynProjection()
    rows = []
    for predicted, right in forced_predictions(model, CORPUS):
        unit, positive = functional.normalize(predicted, dim=1), vectors[right]
        negatives = loss.negative(unit, positive, FrozenBatch(positive, None, positive, np.random.default_rng(1)))
        rows.append(torch.stack([right, *((directions @ vectors.T).argmax(1) for directions in (unit, negatives))], 1))
    result: np.ndarray = torch.cat(rows).numpy()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="fewer for a trial, whose results are not kept")
    epochs = parser.parse_args().epochs
    torch.set_num_threads(1)
    model = trained(epochs)
    words = [word.decode("utf-8", "replace") for word in model.target_vocabulary.words]
    names = dict(enumerate(words)) | {model.network.end: "</s>"}
    rows = nearest_words(model)
    wrong = rows[rows[:, 0] != rows[:, 1]]
    right, predicted, negative = wrong.T
    others = Counter(map(tuple, wrong[(negative != predicted) & (negative != right)].tolist()))
    figures: dict[str, Any] = {
        "words": len(rows),
        "wrong": len(wrong),
        "negative nearest to the predicted word": round(float((negative == predicted).mean()), 4),
        "negative nearest to the right word": round(float((negative == right).mean()), 4),
        "negative nearest to a third word": round(float(((negative != predicted) & (negative != right)).mean()), 4),
        "examples": [
            {
                "right": names[right],
                "predicted": names[predicted],
                "negative": names[negative],
                "times": times,
            }
            for (right, predicted, negative), times in others.most_common(EXAMPLES)
        ],
    }
    if epochs == EPOCHS:
        report("synthetic_negatives", figures)
    else:
        print(figures)


if __name__ == "__main__":
    main()
