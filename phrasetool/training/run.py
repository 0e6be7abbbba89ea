"""Train a model from pairs to a model folder, with a checkpoint after every iteration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from phrasetool.encoders.protocols import EncoderParameters
from phrasetool.models.bilingual import BilingualModel
from phrasetool.models.storage import save_model
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.resumable import forget_checkpoint, train_resumably
from phrasetool.training.settings import TrainingSettings
from phrasetool.training.trainer import IterationReport, Trainer


def train_model(
    pairs: PhrasePairs,
    settings: TrainingSettings,
    initial: Callable[[], tuple[EncoderParameters, EncoderParameters]],
    folder: Path,
    *,
    device: torch.device | None = None,
    resume: bool = False,
    record: dict[str, Any] | None = None,
    on_report: Callable[[IterationReport], None] = lambda report: None,
    tick: Callable[[int], None] = lambda pairs: None,
) -> BilingualModel:
    """Train a model and save it.

    An interrupted run goes on with `resume` and ends with the same weights as one that was not.

    Args:
        pairs: what to learn from.
        settings: how.
        initial: makes the start parameters, source first; not called when resuming.
        folder: the model folder; gets `training.jsonl` and a checkpoint on the way, which goes when all is done.
        device: where to train; CPU by default.
        resume: go on from the checkpoint in `folder`.
        record: more to remember in `config.json`, under `training`.
        on_report: called after every iteration.
        tick: called with the number of pairs just seen.

    Raises:
        ModelError: the checkpoint is missing, damaged, or of other pairs or settings.
        PhraseToolError: the folder cannot be written; or training diverged.
    """
    identity = {"pairs": pairs.fingerprint, "settings": settings.as_dict()}
    trainer = train_resumably(
        folder, identity, lambda: Trainer(pairs, settings, *initial(), device),
        lambda tensors, progress: Trainer.resumed(pairs, settings, tensors, progress, device),
        resume=resume, on_report=on_report, tick=tick,
    )  # fmt: skip
    training = {**settings.as_dict(), "pairs": len(pairs), "iterations_done": trainer.iteration, **(record or {})}
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    model = BilingualModel(*vocabularies, *trainer.parameters(), settings.kind, training)
    save_model(model, folder)
    forget_checkpoint(folder)
    return model
