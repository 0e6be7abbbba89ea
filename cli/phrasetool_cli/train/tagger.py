"""What `phrasetool train --model tagger` does: one tagger for several languages, from treebanks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_compat.files.names import STANDARD
from phrasetool_cli.progress import ItemProgress, TerminalWatch
from phrasetool_cli.train.run import Given, RunOptions, Training

if TYPE_CHECKING:
    from phrasetool.tagger.data import TaggedSentence, Treebanks
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.tagger.training import TaggerReport
_Named = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaggerInputs:
    """What a tagger is trained on.

    Attributes:
        treebanks: languages and files; a language may have several.
        development: the same; none to hold out some of what is learnt from.
    """

    treebanks: _Named
    development: _Named

    def __post_init__(self) -> None:
        if not self.treebanks:
            raise click.UsageError("--model tagger learns from treebanks; name one with --treebank LANG FILE")
        if self.all.count(STANDARD) > 1:
            raise click.UsageError("standard input cannot be more than one of the treebanks")
        known = {language for language, _ in self.treebanks}
        for language in known:
            if not language or any(c in language for c in " ,\n\t"):
                raise click.UsageError(f"--treebank: {language!r} is no language, expected a code such as de, en or zh")
        for language, _ in self.development:
            if language not in known:
                raise click.UsageError(f"--dev: no --treebank of {language!r}; there are {', '.join(sorted(known))}")

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [file for _, file in (*self.treebanks, *self.development)]


def training(given: Given) -> Training:
    """Of a tagger."""
    inputs = TaggerInputs(given.flags["treebanks"], given.development)
    return Training(inputs.all, lambda run: train_tags(inputs, run, given))


def train_tags(inputs: TaggerInputs, run: RunOptions, given: Given) -> TaggerModel:
    """Train a tagger and say what is done.

    Args:
        inputs: what it learns from.
        run: how.
        given: options of `TaggerSettings` among its flags.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: an input cannot be read or makes no sense, or the model cannot be written.
    """
    import torch

    from phrasetool.errors import DataError
    from phrasetool.nn.device import device_name
    from phrasetool.tagger.settings import TaggerSettings
    from phrasetool.tagger.training import held_out_sentences, train_tagger

    watch = TerminalWatch(run.quiet)
    settings = given.settings(TaggerSettings)
    place = run.ready(inputs.all)
    torch.set_num_threads(run.threads)
    treebanks: Treebanks = _read(inputs.treebanks)
    development: Treebanks = _read(inputs.development)
    if not development:
        try:
            treebanks, development = held_out_sentences(treebanks, settings.seed)
        except ValueError as error:
            raise DataError(inputs.treebanks[0][1], str(error)) from error
        watch.say("one sentence in twenty of each language is held out as the development set")
    count = sum(map(len, treebanks.values()))
    words = sum(len(sentence.words) for sentences in treebanks.values() for sentence in sentences)
    watch.say(f"{words:,} words of {count:,} sentences in {', '.join(treebanks)}")
    watch.say(f"training on {device_name(place)} into {run.folder}")

    def report(done: TaggerReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f}; development set: "
            f"{done.accuracy:.1%} right, {done.lower_accuracy:.1%} without capitals"
        )

    record = {"treebanks": [list(one) for one in inputs.treebanks]}
    with ItemProgress("train", settings.epochs * count, "sentence", run.quiet) as progress:
        training = run.training_run(place, watch, record=record, on_report=report, tick=progress.tick)
        trained = train_tagger(treebanks, development, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _read(named: _Named) -> dict[str, list[TaggedSentence]]:
    """Sentences by language."""
    from moses_compat.corpora.conllu import read_conllu

    found: dict[str, list[TaggedSentence]] = {}
    for language, file in named:
        found.setdefault(language, []).extend(read_conllu(file))
    return found
