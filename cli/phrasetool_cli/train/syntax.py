"""`phrasetool train syntax`: one syntactic encoder for all languages, from bitexts and a tagger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool.syntax.settings import SIZES, SyntaxSettings
from phrasetool_cli.checks import is_given
from phrasetool_cli.command import sections
from phrasetool_cli.progress import TableProgress, TerminalWatch
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.syntax.data import NamedBitext
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.syntax.training import SyntaxReport
    from phrasetool.tagger.model import TaggerModel


@dataclass(frozen=True)
class SyntaxInputs:
    """Training data of a syntactic encoder.

    Attributes:
        bitexts: language and file of one side, then of the other.
        texts: languages and files of sentences without translations.
        tagger: folder of a tagger.
        start: folder of a model to continue from, if any.
        own_language: whether to predict the parts of speech of the sentence itself, too; None for the preset's value.
    """

    bitexts: tuple[tuple[str, str, str, str], ...]
    texts: tuple[tuple[str, str], ...]
    tagger: str
    start: str | None
    own_language: bool | None

    def __post_init__(self) -> None:
        if not self.bitexts and not self.texts:
            raise click.UsageError(
                "a syntactic encoder learns from bitexts; name one with --language-bitext LANG FILE LANG FILE"
            )
        if self.texts and self.own_language is False:
            raise click.UsageError(
                "--language-text is learnt with its own parts of speech; leave out --no-own-language"
            )
        named = [("--language-bitext", language) for bitext in self.bitexts for language in bitext[::2]]
        for flag, language in [*named, *(("--language-text", language) for language, _ in self.texts)]:
            if not language or any(c in language for c in " ,\n\t"):
                raise click.UsageError(f"{flag}: {language!r} is not a language code; expected one such as de or zh")
        for first, _, second, _ in self.bitexts:
            if first == second:
                raise click.UsageError(f"--language-bitext: both sides are {first!r}; expected two languages")

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [*(file for bitext in self.bitexts for file in bitext[1::2]), *(file for _, file in self.texts)]

    def check(self, tagger: TaggerModel) -> None:
        """Refuse a bitext if the tagger supports neither language, and a text if it does not support its language.

        Raises:
            click.UsageError: a language is not supported; the message names those that are.
        """
        known = ", ".join(tagger.languages)
        for language, _ in self.texts:
            if language not in tagger.languages:
                raise click.UsageError(f"--language-text: unknown language {language!r}; the tagger knows {known}")
        for first, _, second, _ in self.bitexts:
            if not {first, second} & set(tagger.languages):
                raise click.UsageError(
                    f"--language-bitext: unknown languages {first!r} and {second!r}; the tagger knows {known}"
                )


_RENAMED = {"--bitext": "--language-bitext", "--text": "--language-text"}

_EXAMPLE = """\b
Example:
  phrasetool train syntax --language-bitext de train.de en train.en --tagger tagger
"""


@click.command(cls=SettingsCommand, declared=lambda: declarations(SyntaxSettings), renamed=_RENAMED, epilog=_EXAMPLE)
@sections(
    "Input",
    click.option("--language-bitext", "bitexts", nargs=4, multiple=True, metavar="LANG FILE LANG FILE",
                 help="Two languages, each with its side of a bitext; repeatable."),
    click.option("--language-text", "own_texts", nargs=2, multiple=True, metavar="LANG FILE",
                 help="Language and sentences without translations; repeatable."),
    click.option("--tagger", required=True, metavar="FOLDER", help="Tagger of the languages to predict."),
    click.option("--start", metavar="FOLDER", help="Continue from this model, also with new languages."),
    "Output",
    model_folder_option,
    "Settings",
    click.option("--own-language/--no-own-language", default=None,
                 help="Predict the tags of the sentence itself, too.  [default: yes; no with --preset paper]"),
    click.option("--decoder-dropout/--no-decoder-dropout", default=None,
                 help="Apply dropout in the decoder, too.  [default: yes; no with --preset paper]"),
    click.option("--max-length", type=click.IntRange(1), metavar="N",
                 help=f"Leave out sentences with more words.  [default: {SyntaxSettings.max_length}]"),
    None,
    run_options,
)  # fmt: skip
def command(
    bitexts: tuple[tuple[str, str, str, str], ...], own_texts: tuple[tuple[str, str], ...], tagger: str,
    start: str | None, own_language: bool | None, **values: Any,
) -> None:  # fmt: skip
    """Train a syntactic encoder on bitexts and a tagger.

    One encoder reads all languages and learns to predict the parts of speech of the translation, which the tagger
    provides for the languages that it supports.
    """
    # A configured option has no effect if a typed one excludes it.
    if own_language is False and is_given("own_texts") and not is_given("own_language"):
        own_language = None
    elif own_language is False and is_given("own_language") and not is_given("own_texts"):
        own_texts = ()
    run, inputs = RunOptions.taken(values), SyntaxInputs(bitexts, own_texts, tagger, start, own_language)
    with run.document(inputs.all) as document:
        document(_train(inputs, run, values))


def _train(inputs: SyntaxInputs, run: RunOptions, values: dict[str, Any]) -> SyntaxModel:
    """Train a syntactic encoder and report progress.

    Args:
        inputs: files to learn from.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is out of range, or determined by the model of --start.
        PhraseToolError: an input cannot be read or is implausible, or the model cannot be written.
    """
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.syntax.training import train_syntax
    from phrasetool.tagger.model import TaggerModel

    watch = TerminalWatch(run.quiet)
    settings = _settings(inputs, run.seed, values)
    device = run.ready(inputs.all, settings.precision)
    torch.set_num_threads(run.threads)
    tagger = TaggerModel.load(inputs.tagger)
    inputs.check(tagger)
    start = SyntaxModel.load(inputs.start) if inputs.start else None
    bitexts = _read(inputs, run.quiet)
    watch.say(f"training on {device_name(device)}, preset {settings.preset}, into {run.folder}")

    def report(done: SyntaxReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f}; development set: loss "
            f"{done.development_loss:.4f}, {done.development_accuracy:.1%} of the tags right"
        )

    files = {"bitexts": [list(item) for item in inputs.bitexts], "texts": [list(item) for item in inputs.texts]}
    record = {**files, "tagger_folder": inputs.tagger}
    try:
        training = run.training_run(device, watch, record=record, on_report=report)
        trained = train_syntax(bitexts, tagger, settings, training, start=start, watch=watch)
    except ValueError as error:
        raise DataError(inputs.all[0], str(error)) from error
    watch.say(f"saved {trained.signature} to {run.folder}")
    return trained


def _settings(inputs: SyntaxInputs, seed: int, values: dict[str, Any]) -> SyntaxSettings:
    """Return the settings from options.

    Raises:
        click.UsageError: an option is out of range, or is a size that the model of --start determines.
    """
    if inputs.start:
        if fixed := [name for name in SIZES if is_given(name)]:
            raise click.UsageError(f"the model of --start decides --{fixed[0].replace('_', '-')}; leave it out")
        # Configured sizes are those of new models.
        values = {name: value for name, value in values.items() if name not in SIZES}
    return settings_of(
        SyntaxSettings, values, seed=seed, own_language=inputs.own_language, max_length=values["max_length"],
        decoder_dropout=values["decoder_dropout"],
    )  # fmt: skip


def _read(inputs: SyntaxInputs, quiet: bool) -> list[NamedBitext]:
    from moses_compat.corpora.bitexts import read_own_texts, read_parallel_texts
    from phrasetool.syntax.data import NamedBitext

    bitexts = []
    with TableProgress("read texts", 0, quiet) as reading:
        for first, source, second, target in inputs.bitexts:
            bitexts.append(NamedBitext((first, second), read_parallel_texts(source, target, reading)))
        # A sentence is its own translation.
        bitexts += [NamedBitext((language,) * 2, read_own_texts(file, reading)) for language, file in inputs.texts]
    return bitexts
