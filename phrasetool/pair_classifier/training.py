"""From sentence pairs to a saved classifier: training, calibration, threshold."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from phrasetool.pair_classifier.classifier_trainer import ParallelTrainer
from phrasetool.pair_classifier.fresh_classifier import FreshClassifier, fresh_classifier
from phrasetool.pair_classifier.labelled_pairs import encoded_logits
from phrasetool.pair_classifier.model import SEARCH_VECTORS, ParallelModel
from phrasetool.pair_classifier.pair_quality import (
    best_quality,
    calibrated_temperature,
    calibration_error,
    probabilities_of,
    quality_at,
)
from phrasetool.pair_classifier.search_trainer import BUCKETS, SearchTrainer
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.train.checks import DivergedError
from phrasetool.train.loop import train_epochs
from phrasetool.train.run import CHECKPOINT, TrainingRun
from phrasetool.train.text_pairs import TextPairs

# A parallel pair has the higher probability of it and another in half of all couples by chance.
_CHANCE = 0.55
# Within the model folder: the checkpoint of what is trained after the classifier, until the model is saved.
_SEARCH = "search"


def train_parallel(
    pairs: TextPairs,
    development: TextPairs,
    settings: ParallelSettings,
    run: TrainingRun,
) -> ParallelModel:
    """Train a classifier of sentence pairs and save it.

    Args:
        pairs: what to learn from; two different ones at least.
        development: decides which epoch is kept, the temperature and the threshold; two different pairs at least.
        settings: how.
        run: where and how; examples are pairs, `ParallelSettings.passes` times all of them.

    Raises:
        ModelError: there is a finished model or an unfinished training; the checkpoint is missing, damaged, or of
            other texts or settings; or the encoder's folder is refused.
        DivergedError: the learning rate is too large, and the last good checkpoint stays; or the classifier is no
            better than guessing, and its checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: there are fewer than two pairs to tell apart.
    """
    for name, texts in (("to learn from", pairs), ("in the development set", development)):
        if (count := distinct_targets(texts)) < 2:
            raise ValueError(f"{count} distinct pair {name}, expected two at least, to tell one from the other")
    run.check()
    fresh = fresh_classifier(pairs, settings)
    learnt = sum(value.numel() for value in fresh.classifier.parameters() if value.requires_grad)
    # A checkpoint with two moments of Adam and the best so far, and the one that takes its place; then the other one.
    run.check_space(2 * 4 * (4 * learnt + 3 * BUCKETS * settings.search_units))
    identity = {
        "texts": [text_identity(pairs), text_identity(development)],
        "encoder's weights": _encoder_identity(fresh),
        "settings": settings.as_dict(),
    }

    def start() -> ParallelTrainer:
        return ParallelTrainer(pairs, development, fresh.classifier, settings, run.device)

    trainer = train_epochs(run, identity, start)
    assert trainer.best is not None
    if trainer.best["auc"] < _CHANCE:
        message = (
            f"{run.folder}: the trained classifier is no better than chance: the area under its curve is "
            f"{trainer.best['auc']:.2f} on the development set, that of guessing is 0.50; train anew with more pairs, "
            "more epochs or another learning rate"
        )
        run.refuse(DivergedError(message, remedy="keep a poor model"))
    model = _finished(trainer, fresh, {**settings.as_dict(), "pairs": len(pairs), **run.record})
    if settings.search_units:
        _learn_to_search(model, pairs, settings, identity, run)
    run.save(model)
    shutil.rmtree(run.folder / _SEARCH, ignore_errors=True)
    return model


def _learn_to_search(
    model: ParallelModel, pairs: TextPairs, settings: ParallelSettings, identity: dict[str, Any], run: TrainingRun
) -> None:
    """Give a model vectors of units; see `train_parallel`."""
    folder = run.folder / _SEARCH
    within = replace(run, folder=folder, resume=run.resume and (folder / CHECKPOINT).is_file())
    trainer = train_epochs(within, identity, lambda: SearchTrainer(pairs, settings))
    model.arrays[SEARCH_VECTORS] = trainer.vectors()


def distinct_targets(texts: TextPairs) -> int:
    """How many targets can be told from each other."""
    return len({target.tobytes() for target in texts.targets})


def _finished(trainer: ParallelTrainer, fresh: FreshClassifier, training: dict[str, Any]) -> ParallelModel:
    """The best epoch's classifier with its temperature and its thresholds."""
    classifier = trainer.kept().to(torch.device("cpu"))
    logits, _ = encoded_logits(classifier, trainer.random)
    parallel = trainer.random.parallel
    finite = np.isfinite(logits)
    temperature = calibrated_temperature(logits[finite], parallel[finite])
    raw, found = probabilities_of(logits), probabilities_of(logits, temperature)
    best = best_quality(found, parallel)
    training |= {
        "epochs_done": trainer.epoch,
        "best_epoch": trainer.best["epoch"] if trainer.best else 0,
        "development": {
            "f1": quality_at(found, parallel, 0.5).f1, "best_f1": best.f1,
            "calibration_error_before": calibration_error(raw, parallel),
            "calibration_error": calibration_error(found, parallel),
        },
    }  # fmt: skip
    thresholds = {"half": 0.5, "best": best.threshold}
    return ParallelModel(
        fresh.vocabularies, fresh.architecture, classifier.arrays(), temperature, thresholds, training, fresh.encoder
    )


def text_identity(texts: TextPairs) -> str:
    """Hexadecimal digits that differ when a text differs."""
    digest = hashlib.sha256()
    for phrases in (texts.sources, texts.targets):
        digest.update(phrases.offsets.tobytes())
        digest.update(phrases.words.tobytes())
    for words in (texts.source_words, texts.target_words):
        digest.update(b"\n".join(words))
    return digest.hexdigest()[:16]


def _encoder_identity(fresh: FreshClassifier) -> str:
    """That of the encoder before it is tuned; empty for words."""
    if fresh.encoder is None:
        return ""
    digest = hashlib.sha256(fresh.encoder.tokenizer_text)
    for name, value in sorted(fresh.encoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
