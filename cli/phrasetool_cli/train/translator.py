"""`phrasetool train translator`: a neural translator from a bitext or from phrase pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool.options import registered
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.translator.settings import CENTRINGS, PRESETS, TranslatorSettings, losses
from phrasetool_cli.command import sections, value_of
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.train.pair_files import PairFiles, dev_option, min_pair_count_option
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import (
    Declaration,
    SettingsCommand,
    Shown,
    declarations,
    given_options,
    of_chosen,
    usage_error,
)

if TYPE_CHECKING:
    from phrasetool.phrases import FloatArray
    from phrasetool.training.data import TextPairs
    from phrasetool.translator.model import TranslatorModel
    from phrasetool.translator.training import TranslatorReport
    from phrasetool.vocabulary import Vocabulary
_SIDES = ("source", "target")


@dataclass(frozen=True)
class NeuralInputs(PairFiles):
    """The files that a translator is trained on.

    Attributes:
        texts: more target text to train word vectors on.
        vectors: word vectors of the target language; None to train them.
    """

    texts: tuple[str, ...]
    vectors: str | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vectors and self.texts:
            raise click.UsageError("--target-vectors brings word vectors; leave out --target-text")

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [*super().all, *self.texts, *filter(None, [self.vectors])]

    def record(self, escaped: bool) -> dict[str, Any]:
        """Return the record of the files, with the origin of the vectors of target words."""
        return {**super().record(escaped), "target_vectors": self.vectors or "fasttext"}


_EXAMPLE = """\b
Example:
  phrasetool train translator train.de train.en --dev dev.de dev.en -o translator
  phrasetool train translator pairs.gz --loss cross-entropy -o translator
"""


def _declared() -> list[Declaration]:
    """Return the options of the settings and of the losses for vectors."""
    names = [name for name in losses() if name in OBJECTIVES]
    own = declarations(TranslatorSettings)
    return own + [
        declaration for name in names for declaration in declarations(registered(OBJECTIVES, name, "loss"), name)
    ]


def _shown(arguments: Sequence[str]) -> Shown:
    """Return the options to show for the loss in the arguments, with the defaults for their preset and centring."""
    loss = value_of(arguments, "--loss") or TranslatorSettings.loss
    known = {"preset": PRESETS, "centring": CENTRINGS}
    named = {name: value for name, names in known.items() if (value := value_of(arguments, f"--{name}")) in names}
    defaults = TranslatorSettings.from_options(named, loss=loss).loss_options if loss in losses() else {}
    return Shown(frozenset([loss]), defaults)


@click.command(
    cls=SettingsCommand, declared=_declared, shown=_shown, exclusive=(("target_text", "target_vectors"),),
    epilog=_EXAMPLE,
)  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="SOURCE TARGET | PAIRS")
@sections(
    "Input",
    dev_option,
    min_pair_count_option,
    click.option("--target-text", multiple=True, metavar="FILE",
                 help="More text for word vectors; repeatable."),
    click.option("--target-vectors", metavar="FILE",
                 help="Word vectors to predict.  [default: fastText]"),
    "Output",
    model_folder_option,
    "Settings",
    click.option("--loss", metavar="NAME", help=f"Training loss: {', '.join(losses())}.  "
                                                f"[default: {TranslatorSettings.loss}]"),
    None,
    run_options,
)  # fmt: skip
def command(
    files: tuple[str, ...], development: tuple[str, str] | None, min_pair_count: float, target_text: tuple[str, ...],
    target_vectors: str | None, **values: Any,
) -> None:  # fmt: skip
    """Train a neural translator on a bitext or on phrase pairs.

    SOURCE and TARGET are the two sides of a bitext, with one tokenised sentence per line; PAIRS has lines `source
    ||| target[ ||| count]`, or is a phrase table.  The translator learns to predict the vector of each target word;
    with the losses cross-entropy and cross-entropy-tied, a distribution over the target words.

    `phrasetool train translator --loss NAME --help` lists the options of another loss.
    """
    run = RunOptions.taken(values)
    inputs = NeuralInputs(files, development, min_pair_count, target_text, target_vectors)
    with run.document(inputs.all) as document:
        document(_train(inputs, run, values))


def _train(inputs: NeuralInputs, run: RunOptions, values: dict[str, Any]) -> TranslatorModel:
    """Train a translator and report progress.

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
    from phrasetool.training.data import check_pairs
    from phrasetool.training.run import problem_handler
    from phrasetool.translator.training import train_translator

    watch = TerminalWatch(run.quiet)
    report_problem = problem_handler(watch, run.force)
    loss = values["loss"] or TranslatorSettings.loss
    values = of_chosen(values, _declared(), loss)
    try:
        settings = TranslatorSettings.from_options({**given_options(TranslatorSettings, values), **_of_losses(values)},
                                               seed=run.seed, loss=loss)  # fmt: skip
    except ValueError as error:
        raise usage_error(error) from error
    device = run.ready(inputs.all, settings.precision)
    torch.set_num_threads(run.threads)
    texts, development = inputs.read(settings.max_length, settings.seed, watch, run.quiet)
    source, target, table = _vocabularies(inputs, texts, settings, run, watch)
    pairs, held = texts.in_ids(source, target), development.in_ids(source, target)
    check_pairs(" and ".join(inputs.files), pairs, report_problem)
    for which, vocabulary in enumerate((source, target)):
        if inputs.development and (mismatch := _foreign(which, development, set(vocabulary.words))):
            report_problem(f"{inputs.development[which]}: the vocabulary {mismatch}")
    unknown = [vocabulary.counts[0] / max(vocabulary.counts.sum(), 1) for vocabulary in (source, target)]
    watch.say(
        f"{len(pairs):,} pairs, {len(source) - 1:,} and {len(target) - 1:,} words; {unknown[0]:.1%} and "
        f"{unknown[1]:.1%} of the text unknown; development set of {len(held):,} pairs"
    )
    watch.say(
        f"training on {device_name(device)}, preset {settings.preset}, loss {settings.loss}, n={settings.dimension}, "
        f"into {run.folder}"
    )

    def report(done: TranslatorReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f} a word, {done.development_loss:.4f} on the "
            "development set"
        )

    with run.progress(settings.epochs, len(pairs), "pair") as progress:
        training = run.training_run(
            device, watch, record=inputs.record(texts.escaped), on_report=report, tick=progress.tick
        )
        trained = train_translator(pairs, held, table, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _of_losses(values: dict[str, Any]) -> dict[str, Any]:
    """Return the given options of all losses; `TranslatorSettings` refuses those of other losses."""
    options: dict[str, Any] = {}
    for name in OBJECTIVES:
        options |= given_options(registered(OBJECTIVES, name, "loss"), values)
    return options


def _vocabularies(
    inputs: NeuralInputs, texts: TextPairs, settings: TranslatorSettings, run: RunOptions, watch: TerminalWatch
) -> tuple[Vocabulary, Vocabulary, FloatArray]:
    """Return source and target vocabularies, and the table of target vectors."""
    from phrasetool.disk.folders import check_space
    from phrasetool.training.run import problem_handler
    from phrasetool.translator.network import target_table
    from phrasetool.translator.training import checkpoint_bytes

    limits = settings.min_count, settings.vocabulary_size
    source, target = texts.source_vocabulary(*limits), texts.target_vocabulary(*limits)
    # Before vectors are trained, which takes minutes.
    check_space(run.folder, checkpoint_bytes(settings, len(source), len(target)))
    known = _known_vectors(inputs, texts, settings, watch)
    if inputs.vectors:
        if mismatch := _foreign(1, texts, known):
            problem_handler(watch, run.force)(f"{inputs.vectors}: {mismatch}")
        target = texts.target_vocabulary(*limits, known)
    try:
        table = target_table(target, known, settings.centring, settings.unknown_vector, settings.seed)
    except ValueError as error:
        raise DataError(inputs.vectors or inputs.files[-1], str(error)) from error
    return source, target, table


def _known_vectors(
    inputs: NeuralInputs, texts: TextPairs, settings: TranslatorSettings, watch: TerminalWatch
) -> dict[bytes, FloatArray]:
    """Return vectors of target words, including rare ones."""
    from moses_compat.corpora.texts import unescaped_sentences
    from moses_compat.files.streams import open_bytes
    from phrasetool.embeddings.files import load_vectors
    from phrasetool.embeddings.training import train_fasttext

    words = texts.target_words
    if inputs.vectors:
        vectors = load_vectors(inputs.vectors, words, settings.dimension, open_bytes)
        known = {word: vectors[word] for word in words if word in vectors}
        watch.say(f"{len(known):,} of {len(words):,} target words have a vector in {inputs.vectors}")
        return known
    own = ([words[i] for i in text] for text in texts.targets)
    sentences = [*chain(own, unescaped_sentences(inputs.texts))]
    watch.say(f"training target vectors with fastText on {len(sentences):,} lines, n={settings.dimension}")
    return train_fasttext(sentences, settings.dimension, settings.seed)


def _foreign(which: int, texts: TextPairs, known: Collection[bytes]) -> str | None:
    """Return why known words cannot belong to a side of texts; None if they may."""
    from phrasetool.phrase_encoder.start import unfit

    sides: Sequence[Any] = [(texts.sources, texts.source_words), (texts.targets, texts.target_words)]
    return unfit(_SIDES[which], sides[which], sides[1 - which], known)
