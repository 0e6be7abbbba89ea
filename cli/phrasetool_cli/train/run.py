"""How `phrasetool train` runs, whatever it trains: what is checked before, and what is said when it is interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from phrasetool.nn.device import FINE, check_precision
from phrasetool.text_splitting import split_lines
from phrasetool_cli.checks import check_inputs
from phrasetool_cli.json_output import json_document

if TYPE_CHECKING:
    import torch

    from phrasetool.models.saved_model import SavedModel
    from phrasetool.train.run import TrainingRun
    from phrasetool.train.settings import DeclaredSettings
    from phrasetool.training.masked_lm.bert_folder import TrainedBert
    from phrasetool.watch import ItemTick
    from phrasetool_cli.progress import TerminalWatch

Kind = TypeVar("Kind", bound="DeclaredSettings")
# Where `TrainCommand` leaves the arguments as they were given.
ARGUMENTS = "phrasetool.train.arguments"


@dataclass(frozen=True)
class Given:
    """What there is to train with.

    Attributes:
        inputs: files.
        development: pairs of files, or of a language and a file.
        max_length: of `--max-length`.
        min_pair_count: of `--min-pair-count`.
        seed: fixes everything.
        flags: all others that this kind of model takes, by name; None where nothing was said.
        named: the flags among them that the command line has.
    """

    inputs: tuple[str, ...]
    development: tuple[tuple[str, str], ...]
    max_length: int | None
    min_pair_count: float
    seed: int
    flags: Mapping[str, Any]
    named: Collection[str]

    @property
    def one_development(self) -> tuple[str, str] | None:
        """The one development set, if there is one.

        Raises:
            click.UsageError: there are several.
        """
        if len(self.development) > 1:
            raise click.UsageError("--dev names one development set; several are for --model tagger")
        return self.development[0] if self.development else None

    def settings(self, kind: type[Kind], more: Mapping[str, Any] | None = None, **fixed: Any) -> Kind:
        """Settings with what was said of them.

        Args:
            kind: their class.
            more: options that something else declares.
            fixed: values of other fields; None where nothing is said.

        Raises:
            click.UsageError: an option is unknown or out of range.
        """
        try:
            return kind.from_options({**self.options_of(kind), **(more or {})}, seed=self.seed, **fixed)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def options_of(self, settings: type) -> dict[str, Any]:
        """What was said of the options that some settings declare, by name."""
        from phrasetool.options import declared_options

        known, said = declared_options(settings), {**self.flags, "max_length": self.max_length}
        return {name: value for name, value in said.items() if name in known and value is not None}


@dataclass(frozen=True)
class Training:
    """What a kind of model does with what it was given.

    Attributes:
        files: all that are read, for messages and for what is told of them.
        train: gives the model.
    """

    files: Collection[str | None]
    train: Callable[[RunOptions], SavedModel | TrainedBert]


@dataclass(frozen=True)
class RunOptions:
    """How a training runs.

    Attributes:
        folder: the model folder.
        device, threads: where and with how many threads.
        resume: go on from the checkpoint there.
        overwrite: a finished model, or an unfinished training, there may be replaced.
        force: go on where a check says that the input makes no sense.
        quiet: no progress.
        json_file: of `--json`.
    """

    folder: Path
    device: str
    threads: int
    resume: bool
    overwrite: bool
    force: bool
    quiet: bool
    json_file: str | None = None

    def ready(self, inputs: Iterable[str], precision: str = FINE) -> torch.device:
        """Check that files are there, and the device; returns the device.

        Args:
            inputs: the files.
            precision: of products of matrices there.

        Raises:
            PhraseToolError: what cannot be used or read.
        """
        from phrasetool.nn.device import choose_device

        check_inputs(inputs)
        device = choose_device(self.device)
        check_precision(precision, device)
        return device

    def training_run(
        self, device: torch.device, watch: TerminalWatch, *, record: Mapping[str, Any],
        on_report: Callable[[Any], None], tick: ItemTick = lambda count: None,
    ) -> TrainingRun:  # fmt: skip
        """The run that the library is given; see `phrasetool.train.run`."""
        from phrasetool.train.run import TrainingRun

        return TrainingRun(
            self.folder, device, self.resume, self.overwrite, self.force, record, watch.warn, on_report, tick
        )

    @contextlib.contextmanager
    def told(self, inputs: Iterable[str | None]) -> Iterator[Callable[[SavedModel | TrainedBert], None]]:
        """Say how to go on when the block is interrupted; gives what takes the model that was trained, for `--json`.

        Raises:
            click.Abort: it was interrupted.
            PhraseToolError: the folder cannot be written to or holds what would be lost, or the document would take
                the place of an input.
        """
        from phrasetool.train.run import check_model_folder

        document = json_document(self.json_file, inputs)
        # Here, and not in `ready`: nobody waits for torch to hear of it.
        check_model_folder(self.folder, resume=self.resume, overwrite=self.overwrite)

        def tell(model: SavedModel | TrainedBert) -> None:
            from phrasetool.train.checkpoint import LOG

            log = [json.loads(line) for line in split_lines((self.folder / LOG).read_text("utf-8"))]
            document({"model": str(self.folder), "signature": model.signature, "training": model.training, "log": log})

        with self._interruptible():
            yield tell

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Say how to go on when the block is interrupted.

        Raises:
            click.Abort: it was.
        """
        from phrasetool.train.run import CHECKPOINT

        checkpoint = self.folder / CHECKPOINT
        before = _stamp(checkpoint)
        try:
            yield
        except KeyboardInterrupt as error:
            now = _stamp(checkpoint)
            # One that was there before is of another training, unless this one went on from it.
            if now is None or (now == before and not self.resume):
                raise click.Abort("interrupted before the first checkpoint: nothing is kept") from error
            raise click.Abort(f"interrupted; go on with: {_resuming()}") from error


def _resuming() -> str:
    """The command that resumes the one that is running."""
    given = click.get_current_context().meta[ARGUMENTS]
    kept = [argument for argument in given if argument not in ("--resume", "--overwrite")]
    return shlex.join(["phrasetool", "train", "--resume", *kept])


def _stamp(path: Path) -> tuple[int, int] | None:
    """What tells a file from one that takes its place; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
