"""Train a model from pairs to a model folder, with a checkpoint after every iteration."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from phrasetool.encoders.kind import EncoderParameters
from phrasetool.errors import ModelError
from phrasetool.models.bilingual import BilingualModel
from phrasetool.models.storage import save_model
from phrasetool.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from phrasetool.training.log import write_log
from phrasetool.training.pairs import PhrasePairs
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
    history: list[dict[str, Any]] = []
    if resume:
        tensors, state = load_checkpoint(folder)
        if state["identity"] != identity:
            raise ModelError(f"{folder / CHECKPOINT}: made from other pairs or with other settings; cannot resume")
        history = state["history"]
        try:
            trainer = Trainer.resumed(pairs, settings, tensors, state["progress"], device)
        except (KeyError, RuntimeError, ValueError) as error:
            raise ModelError(f"{folder / CHECKPOINT}: does not fit these pairs and settings ({error})") from error
    else:
        trainer = Trainer(pairs, settings, *initial(), device)
    write_log(folder, history)
    for report in trainer.run(tick):
        history.append(asdict(report))
        write_log(folder, history)
        save_checkpoint(
            folder, trainer.tensors(), {"identity": identity, "progress": trainer.progress(), "history": history}
        )
        on_report(report)
    training = {**settings.as_dict(), "pairs": len(pairs), "iterations_done": trainer.iteration, **(record or {})}
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    model = BilingualModel(*vocabularies, *trainer.parameters(), settings.kind, training)
    save_model(model, folder)
    with contextlib.suppress(FileNotFoundError):
        (folder / CHECKPOINT).unlink()
    return model
