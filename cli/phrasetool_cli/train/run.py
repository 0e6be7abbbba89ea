"""Training of any model: options, checks before it starts, and the message when it is interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from phrasetool.nn.device import FLOAT32, check_precision
from phrasetool.text_splitting import split_lines
from phrasetool_cli.checks import check_inputs
from phrasetool_cli.command import sections
from phrasetool_cli.options import (
    WHICH_MODEL,
    default_model,
    device_option,
    force_option,
    json_document,
    json_option,
    quiet_option,
    seed_option,
    threads_option,
)
from phrasetool_cli.progress import ItemProgress, TerminalWatch
from phrasetool_cli.train.setting_options import ARGUMENTS

if TYPE_CHECKING:
    import torch

    from phrasetool.bert.training import TrainedBert
    from phrasetool.models.saved_model import SavedModel
    from phrasetool.training.run import TrainingRun
    from phrasetool.watch import ItemTick


model_folder_option = click.option("-o", "--output", "folder", metavar="FOLDER", help=f"Model folder.  {WHICH_MODEL}")

run_options = sections(
    "Run",
    seed_option,
    device_option(),
    threads_option(),
    click.option("--resume", is_flag=True, help="Continue from the checkpoint in the model folder."),
    click.option("--overwrite", is_flag=True, help="Replace the model or unfinished training in the folder."),
    force_option,
    None,
    json_option,
    quiet_option,
)


@dataclass(frozen=True)
class RunOptions:
    """Options of a training run: the values of `model_folder_option` and `run_options`.

    Attributes:
        folder: the model folder.
        seed: random seed.
        device, threads: device and number of threads.
        resume: whether to continue from the checkpoint in the folder.
        overwrite: whether a finished model or an unfinished training in the folder may be replaced.
        force: whether to continue if a check finds the input implausible.
        quiet: whether to show no progress.
        json_file: value of `--json`.
    """

    folder: Path
    seed: int
    device: str
    threads: int
    resume: bool
    overwrite: bool
    force: bool
    quiet: bool
    json_file: str | None = None

    @classmethod
    def taken(cls, values: dict[str, Any]) -> Self:
        """Take the options of a run out of the values of all options.

        Raises:
            click.UsageError: the options contradict each other.
        """
        if values["resume"] and values["overwrite"]:
            raise click.UsageError("give --resume or --overwrite, not both")
        folder = values.pop("folder") or default_model()
        return cls(
            Path(folder), **{option.name: values.pop(option.name) for option in fields(cls) if option.name != "folder"}
        )

    def ready(self, inputs: Iterable[str], precision: str = FLOAT32) -> torch.device:
        """Check that files and the device can be used, prepare PyTorch's threads, and return the device.

        Args:
            inputs: the files.
            precision: precision of matrix products on the device.

        Raises:
            PhraseToolError: a file cannot be read, or the device or precision cannot be used.
        """
        from phrasetool.nn.device import choose_device, subnormals_as_zero

        # For PyTorch's other threads, which are not started yet; `EpochTrainer` does it for the thread that it runs in.
        click.get_current_context().with_resource(subnormals_as_zero())
        check_inputs(inputs)
        device = choose_device(self.device)
        check_precision(precision, device)
        return device

    def progress(self, epochs: int, examples: int, unit: str) -> ItemProgress:
        """Return the progress of a training, which starts with the epochs that an interrupted one completed.

        Args:
            epochs: number of epochs of the whole training.
            examples: number of examples in an epoch.
            unit: name of an example, in the singular.

        Raises:
            ModelError: the checkpoint is missing or damaged.
        """
        return ItemProgress("train", epochs * examples, unit, self.quiet, self.finished_epochs() * examples)

    def finished_epochs(self) -> int:
        """Return the number of epochs that an interrupted training completed; see `finished_epochs` for errors."""
        from phrasetool.training.loop import finished_epochs

        return finished_epochs(self.folder, self.resume)

    def training_run(
        self, device: torch.device, watch: TerminalWatch, *, record: Mapping[str, Any],
        on_report: Callable[[Any], None], tick: ItemTick = lambda count: None,
    ) -> TrainingRun:  # fmt: skip
        """Return the training run for the library; see `phrasetool.training.run`."""
        from phrasetool.training.run import TrainingRun

        return TrainingRun(
            self.folder, device, self.resume, self.overwrite, self.force, record, watch.warn, on_report, tick
        )

    @contextlib.contextmanager
    def document(self, inputs: Iterable[str | None]) -> Iterator[Callable[[SavedModel | TrainedBert], None]]:
        """Check the folder; yield a function that reports the model for `--json`; if interrupted, print how to resume.

        Raises:
            click.Abort: the block was interrupted.
            PhraseToolError: the folder cannot be written to or holds data that would be lost, or the document would
                overwrite an input.
        """
        from phrasetool.training.run import check_model_folder

        write = json_document(self.json_file, inputs)
        # Here, not in `ready`: this error must not wait for the import of torch.
        check_model_folder(self.folder, resume=self.resume, overwrite=self.overwrite)

        def document(model: SavedModel | TrainedBert) -> None:
            from phrasetool.training.run import LOG

            path = self.folder / LOG
            log = [json.loads(line) for line in split_lines(path.read_text("utf-8"))] if path.exists() else []
            write({"model": str(self.folder), "signature": model.signature, "training": model.training, "log": log})

        with self._interruptible():
            yield document

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Print how to resume if the block is interrupted.

        Raises:
            click.Abort: the block was interrupted.
        """
        from phrasetool.training.run import CHECKPOINT

        checkpoint = self.folder / CHECKPOINT
        before = _stamp(checkpoint)
        try:
            yield
        except KeyboardInterrupt as error:
            now = _stamp(checkpoint)
            # An earlier checkpoint belongs to another training, unless this one resumed from it.
            if now is None or (now == before and not self.resume):
                raise click.Abort("interrupted before the first checkpoint: nothing is kept") from error
            raise click.Abort(f"interrupted; continue with: {_resuming()}") from error


def _resuming() -> str:
    """Return the command that resumes the running one."""
    context = click.get_current_context()
    kept = [argument for argument in context.meta[ARGUMENTS] if argument not in ("--resume", "--overwrite")]
    return f"{context.command_path} --resume {shlex.join(kept)}"


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return inode and modification time, which identify a version of a file; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
