"""`phrasetool train bert`: a BERT trained from scratch on text of one language or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.errors import DataError
from phrasetool_cli.checks import is_given
from phrasetool_cli.command import sections
from phrasetool_cli.progress import TableProgress, TerminalWatch
from phrasetool_cli.train.pair_files import dev_option
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.bert.data import PieceTexts, TextLines
    from phrasetool.bert.training import MaskedLmReport, TrainedBert


@dataclass(frozen=True)
class MaskedLmInputs:
    """The files that a BERT is trained on.

    Attributes:
        files: one text, or the two sides of a bitext.
        development: the two sides of a development set; None to hold out a part of the training text.
        monolingual: more text of either language.
    """

    files: tuple[str, ...]
    development: tuple[str, str] | None
    monolingual: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.files) > 2:
            raise click.UsageError(
                f"expected one text, or the two sides of a bitext; {len(self.files)} files were given"
            )
        if self.development and len(self.files) == 1:
            raise click.UsageError("--dev is a bitext; give both sides to learn from, or leave it out")

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [*self.files, *(self.development or ()), *self.monolingual]

    def record(self) -> dict[str, Any]:
        """Return the record of the inputs for `config.json`."""
        return {"text_files": list(self.files), "development_files": list(self.development or ()),
                "monolingual_files": list(self.monolingual)}  # fmt: skip


_EXAMPLE = """\b
Example:
  phrasetool train bert train.zh train.en --monolingual mono.en.gz -o bert
"""


@click.command(cls=SettingsCommand, declared=lambda: declarations(MaskedLmSettings), epilog=_EXAMPLE)
@click.argument("files", nargs=-1, required=True, metavar="TEXT | SOURCE TARGET")
@sections(
    "Input",
    dev_option,
    click.option("--monolingual", multiple=True, metavar="FILE", help="More text of either language; repeatable."),
    "Output",
    model_folder_option,
    None,
    run_options,
)
def command(
    files: tuple[str, ...], development: tuple[str, str] | None, monolingual: tuple[str, ...], **values: Any
) -> None:
    """Train a BERT from scratch on text of one language or two.

    Give one TEXT or the two sides of a bitext.  The model folder can be loaded by transformers and by
    `annotate --encoder`.  The extra `encoders` must be installed.
    """
    if len(files) == 1 and not is_given("development"):
        # A configured development set is for bitexts.
        development = None
    run, inputs = RunOptions.taken(values), MaskedLmInputs(files, development, monolingual)
    with run.document(inputs.all) as document:
        document(_train(inputs, run, values))


def _train(inputs: MaskedLmInputs, run: RunOptions, values: dict[str, Any]) -> TrainedBert:
    """Train a BERT and report progress.

    Args:
        inputs: files to learn from.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: an input cannot be read or is implausible, or the model cannot be written.
    """
    from phrasetool.bert.settings import MaskedLmSettings

    watch = TerminalWatch(run.quiet)
    settings = settings_of(MaskedLmSettings, values, seed=run.seed)
    device = run.ready(inputs.all, settings.precision)

    import torch

    from phrasetool.bert.training import train_masked_lm
    from phrasetool.nn.device import device_name

    torch.set_num_threads(run.threads)
    lines, development = _read(inputs, settings, watch, run.quiet)
    tokenizer, data, held = _in_pieces(inputs, lines, development, settings, watch)
    watch.say(
        f"training on {device_name(device)}, preset {settings.preset}, n={settings.units}, "
        f"{tokenizer.get_vocab_size():,} pieces, into {run.folder}"
    )

    def report(done: MaskedLmReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f} a hidden piece, {done.development_loss:.4f} "
            f"on the development set, of which {done.development_accuracy:.1%} are predicted"
        )

    with run.progress(settings.epochs, data.tokens, "token") as progress:
        training = run.training_run(device, watch, record=inputs.record(), on_report=report, tick=progress.tick)
        trained = train_masked_lm(data, held, tokenizer, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _read(
    inputs: MaskedLmInputs, settings: MaskedLmSettings, watch: TerminalWatch, quiet: bool
) -> tuple[TextLines, TextLines]:
    """Read the training texts and the development set."""
    from moses_compat.corpora.bitexts import read_line_pairs
    from moses_compat.corpora.texts import read_line_texts
    from phrasetool.bert.data import TextLines, held_out_lines

    with TableProgress("read texts", 0, quiet) as reading:
        others = [line for path in inputs.monolingual for line in read_line_texts(path, reading, whole=False)]
        if len(inputs.files) == 1:
            lines = TextLines(read_line_texts(inputs.files[0], reading, whole=False), (), others)
        else:
            lines = TextLines(*read_line_pairs(inputs.files[0], inputs.files[1], reading), others)
    if len(set(lines.sources)) < 2:
        raise DataError(inputs.files[0], "expected at least two different lines; there is nothing to learn from one")
    if inputs.development:
        with TableProgress("read the development set", 0, quiet) as reading:
            return lines, TextLines(*read_line_pairs(*inputs.development, reading))
    lines, development = held_out_lines(lines, settings.seed)
    watch.say(f"{len(development.sources):,} lines are held out as the development set")
    return lines, development


def _in_pieces(
    inputs: MaskedLmInputs, lines: TextLines, development: TextLines, settings: MaskedLmSettings, watch: TerminalWatch
) -> tuple[Any, PieceTexts, PieceTexts]:
    """Train the tokenizer; return it with the training texts and the development set in its subword units."""
    from phrasetool.bert.data import piece_texts, train_word_pieces

    try:
        tokenizer = train_word_pieces(lines.all, settings)
    except ValueError as error:
        raise DataError(inputs.files[0], str(error)) from error
    data, held = (piece_texts(part, tokenizer, settings.positions) for part in (lines, development))
    for part, name in ((data, inputs.files[0]), (held, (inputs.development or inputs.files)[0])):
        if not len(part.texts):
            raise DataError(name, "the text has only control characters")
    if (pieces := tokenizer.get_vocab_size()) < settings.vocabulary_size:
        watch.say(f"the text gives {pieces:,} subword units, fewer than the {settings.vocabulary_size:,} requested")
    if data.cut:
        watch.say(f"{data.cut:,} texts and joined pairs of more than {settings.positions} tokens are cut")
    watch.say(
        f"{len(data.texts):,} texts and {len(data.sources):,} joined pairs, {data.tokens:,} tokens; development set of "
        f"{len(held.texts):,} texts"
    )
    return tokenizer, data, held
