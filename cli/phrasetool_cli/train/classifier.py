"""`phrasetool train classifier`: a classifier of sentence pairs from a bitext or from phrase pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool.pair_classifier.settings import FOLDER, WORD2VEC, WORDS, PairClassifierSettings
from phrasetool_cli.checks import is_given, refuse_unused
from phrasetool_cli.command import sections
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.train.pair_files import PairFiles, dev_option, min_pair_count_option
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.pair_classifier.training import PairClassifierReport
    from phrasetool.training.data import TextPairs


@dataclass(frozen=True)
class ParallelInputs(PairFiles):
    """Training data of a classifier.

    Attributes:
        encoder: its word vectors: `words`, `word2vec` or `hf:FOLDER`.
        tuned: whether the vectors of a folder are trained, too.
    """

    encoder: str
    tuned: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tuned and not self.encoder.startswith(FOLDER):
            raise click.UsageError("--tune-embeddings is for --embeddings hf:FOLDER; word vectors are trained anyway")


_RENAMED = {"--encoder": "--embeddings", "--tune-encoder": "--tune-embeddings"}

_EXAMPLE = """\b
Example:
  phrasetool train classifier train.de train.en --dev dev.de dev.en -o model
  phrasetool train classifier train.de train.en --embeddings hf:bert -o model
"""


@click.command(
    cls=SettingsCommand, declared=lambda: declarations(PairClassifierSettings), renamed=_RENAMED, epilog=_EXAMPLE
)
@click.argument("files", nargs=-1, required=True, metavar="SOURCE TARGET | PAIRS")
@sections(
    "Input",
    dev_option,
    min_pair_count_option,
    "Output",
    model_folder_option,
    "Settings",
    click.option("--embeddings", "encoder", default=WORDS, metavar="NAME",
                 help=f"Word vectors: {WORDS} (random at first), {WORD2VEC}, or {FOLDER}FOLDER, a BERT."),
    click.option("--tune-embeddings", "tune_encoder", is_flag=True,
                 help="Train the vectors of hf:FOLDER, too."),
    None,
    run_options,
)  # fmt: skip
def command(
    files: tuple[str, ...], development: tuple[str, str] | None, min_pair_count: float, encoder: str,
    tune_encoder: bool, **values: Any,
) -> None:  # fmt: skip
    """Train a classifier of parallel sentence pairs.

    SOURCE and TARGET are the two sides of a bitext, with one sentence per line; PAIRS has lines `source ||| target[ |||
    count]`, or is a phrase table.  The classifier learns to separate translations from other pairs, among them pairs
    in which one side contains the translation of the other.
    """
    # A configured --tune-embeddings has no effect on other embeddings.
    tuned = tune_encoder and (encoder.startswith(FOLDER) or is_given("tune_encoder"))
    run, inputs = RunOptions.taken(values), ParallelInputs(files, development, min_pair_count, encoder, tuned)
    with run.document(inputs.all) as document:
        document(_train(inputs, run, values))


def _train(inputs: ParallelInputs, run: RunOptions, values: dict[str, Any]) -> PairClassifierModel:
    """Train a classifier of sentence pairs and report progress.

    Args:
        inputs: files to learn from.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is unknown or out of range.
        PhraseToolError: an input cannot be read or is implausible, or the model cannot be written.
    """
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.pair_classifier.training import SearchReport, train_pair_classifier

    watch = TerminalWatch(run.quiet)
    settings = settings_of(PairClassifierSettings, values, seed=run.seed, encoder=inputs.encoder, tuned=inputs.tuned)
    refuse_unused(_without_effect(settings))
    device = run.ready(inputs.all, settings.precision)
    torch.set_num_threads(run.threads)
    check = None if settings.folder is None else _check_text
    pairs, development = inputs.read(settings.max_length, settings.seed, watch, run.quiet, check)
    watch.say(f"{len(pairs):,} pairs; development set of {len(development):,} pairs")
    watch.say(f"training on {device_name(device)}, preset {settings.preset}, reads {inputs.encoder}, into {run.folder}")

    def report(done: PairClassifierReport | SearchReport) -> None:
        if isinstance(done, SearchReport):
            watch.say(f"vectors to search by, epoch {done.epoch}/{settings.search_epochs}: loss {done.loss:.4f}")
            return
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f}; development set: P {done.precision:.1%}, "
            f"R {done.recall:.1%}, F1 {done.f1:.1%}, at best {done.best_f1:.1%}; containment F1 {done.contained_f1:.1%}"
        )

    with run.progress(settings.passes, len(pairs), "pair") as progress:
        try:
            training = run.training_run(
                device, watch, record=inputs.record(pairs.escaped), on_report=report, tick=progress.tick
            )
            trained = train_pair_classifier(pairs, development, settings, training)
        except ValueError as error:
            raise DataError(inputs.files[0], str(error)) from error
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _without_effect(settings: PairClassifierSettings) -> dict[str, str]:
    """Return the settings that have no effect together with the others, and what each of them is for."""
    reasons: dict[str, str] = {}
    if not settings.characters:
        reasons["parts"] = "character n-grams; --characters is 0"
    if settings.folder is None:
        reasons["layer"] = f"--embeddings {FOLDER}FOLDER"
    else:
        names = ("word_units", "characters", "parts", "hidden_words", "min_count", "vocabulary_size")
        reasons.update(dict.fromkeys(names, f"word vectors; {settings.encoder} has its own subword units"))
    if not settings.tuned or settings.layer == "static":
        reason = "tuned layers of an encoder, which --tune-embeddings trains"
        reasons.update({"layers_learning_rate": reason, "precision": reason})
    if settings.length not in ("concat", "shared"):
        reasons["length_units"] = "--length concat or shared"
    if not settings.contrast:
        reasons["contrast_temperature"] = "the contrastive loss; --contrast is 0"
    if not settings.search_units:
        reasons["search_epochs"] = "search vectors; --search-units is 0"
    return reasons


def _check_text(texts: TextPairs, files: tuple[str, ...]) -> None:
    """Refuse text that an encoder of subword units cannot read.

    Raises:
        DataError: a word is not UTF-8; for a bitext, the line is named.
    """
    import numpy as np

    sides = (texts.sources, texts.source_words), (texts.targets, texts.target_words)
    for file, (phrases, words) in zip((files[0], files[-1]), sides, strict=True):
        wrong = [number for number, word in enumerate(words) if not _is_text(word)]
        if positions := np.flatnonzero(np.isin(phrases.words, wrong)).tolist():
            line = int(np.searchsorted(phrases.offsets, positions[0], "right"))
            raise DataError(
                file, "not UTF-8, which an encoder of subword units requires", line if len(files) > 1 else None
            )


def _is_text(word: bytes) -> bool:
    try:
        word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
