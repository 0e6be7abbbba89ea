"""`phrasetool train tagger`: one part-of-speech tagger for several languages, from treebanks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.tagger.settings import TaggerSettings
from phrasetool_cli.command import sections
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.tagger.data import TaggedSentence, Treebanks
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.tagger.training import TaggerReport
_Named = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaggerInputs:
    """Training data of a tagger.

    Attributes:
        treebanks: languages and files; a language may have several files.
        development: the same for the development set; if empty, training sentences are held out.
    """

    treebanks: _Named
    development: _Named

    def __post_init__(self) -> None:
        known = {language for language, _ in self.treebanks}
        for language in known:
            if not language or any(c in language for c in " ,\n\t"):
                raise click.UsageError(
                    f"--treebank: {language!r} is not a language code; expected one such as de, en or zh"
                )
        for language, _ in self.development:
            if language not in known:
                raise click.UsageError(
                    f"--dev-treebank: no --treebank of {language!r}; there are {', '.join(sorted(known))}"
                )

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [file for _, file in (*self.treebanks, *self.development)]


_RENAMED = {"--dev": "--dev-treebank"}

_EXAMPLE = """\b
Example:
  phrasetool train tagger --treebank de de-train.conllu --dev-treebank de de-dev.conllu
  phrasetool train tagger --treebank de de.conllu --treebank en en.conllu -o tagger
"""


@click.command(cls=SettingsCommand, declared=lambda: declarations(TaggerSettings), renamed=_RENAMED, epilog=_EXAMPLE)
@sections(
    "Input",
    click.option("--treebank", "treebanks", nargs=2, multiple=True, required=True, metavar="LANG FILE",
                 help="Language and treebank in CoNLL-U; repeatable."),
    click.option("--dev-treebank", "development", nargs=2, multiple=True, metavar="LANG FILE",
                 help="Language and development treebank; repeatable.  [default: 5 % held out]"),
    "Output",
    model_folder_option,
    None,
    run_options,
)  # fmt: skip
def command(treebanks: _Named, development: _Named, **values: Any) -> None:
    """Train a part-of-speech tagger on treebanks.

    One tagger learns the universal parts of speech of all given languages.
    """
    run, inputs = RunOptions.taken(values), TaggerInputs(treebanks, development)
    with run.document(inputs.all) as document:
        document(_train(inputs, run, values))


def _train(inputs: TaggerInputs, run: RunOptions, values: dict[str, Any]) -> TaggerModel:
    """Train a tagger and report progress.

    Args:
        inputs: files to learn from.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: an input cannot be read or is implausible, or the model cannot be written.
    """
    import torch

    from phrasetool.errors import DataError
    from phrasetool.nn.device import device_name
    from phrasetool.tagger.data import count_examples
    from phrasetool.tagger.training import held_out_sentences, train_tagger

    watch = TerminalWatch(run.quiet)
    settings = settings_of(TaggerSettings, values, seed=run.seed)
    device = run.ready(inputs.all)
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
    watch.say(f"training on {device_name(device)} into {run.folder}")

    def report(done: TaggerReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f}; development set: "
            f"{done.accuracy:.1%} right, {done.lower_accuracy:.1%} without capitals"
        )

    record = {"treebanks": [list(treebank) for treebank in inputs.treebanks]}
    with run.progress(settings.epochs, count_examples(treebanks), "example") as progress:
        training = run.training_run(device, watch, record=record, on_report=report, tick=progress.tick)
        trained = train_tagger(treebanks, development, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _read(named: _Named) -> dict[str, list[TaggedSentence]]:
    """Read the sentences of each language."""
    from moses_compat.corpora.treebanks import read_conllu

    treebanks: dict[str, list[TaggedSentence]] = {}
    for language, file in named:
        treebanks.setdefault(language, []).extend(read_conllu(file))
    return treebanks
