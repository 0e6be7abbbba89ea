"""What `phrasetool train` does: encoders of the phrases of both languages, from pairs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.training.start import Start
    from phrasetool_cli.training.training_run import TrainingRun


def train_pairs(
    pairs: str, run: TrainingRun, chosen: dict[str, Any], starts: tuple[Start, Start], kept: tuple[int, float],
    record: dict[str, Any],
) -> BilingualModel:  # fmt: skip
    """Train encoders of both languages."""
    import torch

    from phrasetool.training.device import device_name
    from phrasetool.training.fixed_words import with_known_words
    from phrasetool.training.plausibility import doubting
    from phrasetool.training.settings import TrainingSettings
    from phrasetool.training.start import start_parameters
    from phrasetool.training.trainer import train_model
    from phrasetool_cli.shared.progress import TerminalWatch, TrainingProgress

    watch = TerminalWatch(run.quiet)
    tell, doubt = watch.say, doubting(watch, run.force)
    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    place = run.ready([pairs, *(file for start in starts for file in start.files)])
    data, starts = with_known_words(run.read_pairs(pairs, *kept, doubt), settings, starts)
    if chosen["batch_size"] is None:
        settings = settings.with_batches_for(len(data))
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1 if place.type == "cpu" else run.threads)
    tell(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
    tell(f"training on {device_name(place)}, loss {settings.loss}, n={settings.dimension}, "
         f"encoder {settings.encoder}, into {run.folder}")  # fmt: skip

    def known(side: str, share: float) -> None:
        tell(f"{side} word vectors: {share:.1%} of the words start from known vectors")

    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, run.quiet) as training:
        trained = train_model(
            data, settings, lambda: start_parameters(data, settings, starts, known, doubt), run.folder, device=place,
            resume=run.resume, overwrite=run.overwrite, record=record, on_report=training.report, tick=training.tick,
            doubt=doubt,
        )  # fmt: skip
    tell(f"saved {trained.signature} to {run.folder} after {time.monotonic() - began:.0f} s")
    return trained
