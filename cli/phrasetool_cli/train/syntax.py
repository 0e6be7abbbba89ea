"""What `phrasetool train --model syntax` does: one encoder for all languages, from bitexts and a tagger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_compat.files.names import STANDARD
from phrasetool.errors import DataError
from phrasetool_cli.progress import TableProgress, TerminalWatch
from phrasetool_cli.train.run import Given, RunOptions, Training

if TYPE_CHECKING:
    from phrasetool.syntax.data import NamedBitext
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.syntax.settings import SyntaxSettings
    from phrasetool.syntax.training import SyntaxReport
    from phrasetool.tagger.model import TaggerModel


@dataclass(frozen=True)
class SyntaxInputs:
    """What a syntactic encoder is trained on.

    Attributes:
        bitexts: language and file of one side, then of the other.
        texts: languages and files of sentences without translations.
        tagger: folder of a tagger.
        start: folder of a model to go on from, if any.
        own_language: predict a sentence's own parts of speech, too; None where the preset decides.
    """

    bitexts: tuple[tuple[str, str, str, str], ...]
    texts: tuple[tuple[str, str], ...]
    tagger: str | None
    start: str | None
    own_language: bool | None

    def __post_init__(self) -> None:
        if not self.bitexts and not self.texts:
            raise click.UsageError("--model syntax learns from bitexts; name one with --bitext LANG FILE LANG FILE")
        if self.texts and self.own_language is False:
            raise click.UsageError("--text is learnt with its own parts of speech; leave out --no-own-language")
        if self.tagger is None:
            raise click.UsageError("--model syntax needs a tagger; name one with --tagger FOLDER")
        if self.all.count(STANDARD) > 1:
            raise click.UsageError("standard input cannot be more than one of the texts")
        named = [("--bitext", language) for one in self.bitexts for language in one[::2]]
        for flag, language in [*named, *(("--text", language) for language, _ in self.texts)]:
            if not language or any(c in language for c in " ,\n\t"):
                raise click.UsageError(f"{flag}: {language!r} is no language, expected a code such as de or zh")
        for first, _, second, _ in self.bitexts:
            if first == second:
                raise click.UsageError(f"--bitext: both sides are {first!r}; expected two languages")

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [*(file for one in self.bitexts for file in one[1::2]), *(file for _, file in self.texts)]

    def check(self, tagger: TaggerModel) -> None:
        """Refuse a bitext of which the tagger knows neither language, and a text of a language that it does not know.

        Raises:
            click.UsageError: the languages that it knows are named.
        """
        known = ", ".join(tagger.languages)
        for language, _ in self.texts:
            if language not in tagger.languages:
                raise click.UsageError(f"--text: unknown language {language!r}; the tagger knows {known}")
        for first, _, second, _ in self.bitexts:
            if not {first, second} & set(tagger.languages):
                raise click.UsageError(
                    f"--bitext: unknown languages {first!r} and {second!r}; the tagger knows {known}"
                )


def training(given: Given) -> Training:
    """Of a syntactic encoder."""
    inputs = SyntaxInputs(*(given.flags[name] for name in ("bitexts", "own_texts", "tagger", "start", "own_language")))
    return Training(inputs.all, lambda run: train_encoder(inputs, run, given))


def train_encoder(inputs: SyntaxInputs, run: RunOptions, given: Given) -> SyntaxModel:
    """Train a syntactic encoder and say what is done.

    Args:
        inputs: what it learns from.
        run: how.
        given: options of `SyntaxSettings` among its flags.

    Raises:
        click.UsageError: an option is out of range, or a model to start from decides it.
        PhraseToolError: an input cannot be read or makes no sense, or the model cannot be written.
    """
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.syntax.train_syntax import train_syntax
    from phrasetool.tagger.model import TaggerModel

    watch = TerminalWatch(run.quiet)
    settings = _settings(inputs, given)
    place = run.ready(inputs.all, settings.precision)
    torch.set_num_threads(run.threads)
    assert inputs.tagger is not None
    tagger = TaggerModel.load(inputs.tagger)
    inputs.check(tagger)
    start = SyntaxModel.load(inputs.start) if inputs.start else None
    bitexts = _read(inputs, run.quiet)
    watch.say(f"training on {device_name(place)}, preset {settings.preset}, into {run.folder}")

    def report(done: SyntaxReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f}; development set: loss "
            f"{done.development_loss:.4f}, {done.development_accuracy:.1%} of the tags right"
        )

    files = {"bitexts": [list(one) for one in inputs.bitexts], "texts": [list(one) for one in inputs.texts]}
    record = {**files, "tagger_folder": inputs.tagger}
    try:
        training = run.training_run(place, watch, record=record, on_report=report)
        trained = train_syntax(bitexts, tagger, settings, training, start=start, watch=watch)
    except ValueError as error:
        raise DataError(inputs.all[0], str(error)) from error
    watch.say(f"saved {trained.signature} to {run.folder}")
    return trained


def _settings(inputs: SyntaxInputs, given: Given) -> SyntaxSettings:
    """From options.

    Raises:
        click.UsageError: one is out of range, or is one of the sizes that a model to start from decides.
    """
    from phrasetool.syntax.settings import SIZES, SyntaxSettings

    if inputs.start and (fixed := [name for name in SIZES if name in given.options_of(SyntaxSettings)]):
        flag = "--" + fixed[0].replace("_", "-")
        raise click.UsageError(f"the model of --start decides {flag}; leave it out")
    return given.settings(SyntaxSettings, own_language=inputs.own_language, max_length=given.max_length)


def _read(inputs: SyntaxInputs, quiet: bool) -> list[NamedBitext]:
    from moses_compat.corpora.parallel_texts import read_own_texts, read_parallel_texts
    from phrasetool.syntax.data import NamedBitext

    found = []
    with TableProgress("read texts", 0, quiet) as reading:
        for first, source, second, target in inputs.bitexts:
            found.append(NamedBitext((first, second), read_parallel_texts(source, target, reading)))
        # A sentence is its own translation.
        found += [NamedBitext((language,) * 2, read_own_texts(file, reading)) for language, file in inputs.texts]
    return found
