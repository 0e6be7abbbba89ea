"""`phrasetool tag`."""

from __future__ import annotations

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    allow_empty_option,
    default_model,
    engine_options,
    json_document,
    json_option,
    model_option,
    output_option,
)
from phrasetool_cli.progress import TerminalWatch

_FORMATS = ("tags", "factored", "conllu")
_EXAMPLE = """\b
Example:
  phrasetool tag train.de -m tagger --language de -o train.de.upos
  phrasetool train tagger --treebank de de-train.conllu.gz --treebank en en-train.conllu.gz -o tagger
  phrasetool tag train.de -m tagger --language de --format factored -o factored.de
  phrasetool tag demo-output/corpus.en -m tagger --language en --format conllu -o demo-output/tagged.conllu
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("text")
@sections(
    "Model",
    model_option,
    click.option("--language", required=True, metavar="CODE", help="Language of TEXT, as in training."),
    "Output",
    click.option("--format", "form", type=click.Choice(_FORMATS), default="tags",
                 help="Output tags, words with tags (`word|TAG`), or CoNLL-U."),
    output_option(),
    json_option,
    None,
    allow_empty_option,
    engine_options,
)  # fmt: skip
def command(
    text: str, model_folder: str | None, language: str, form: str, output: str, json_file: str | None,
    allow_empty: bool, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Tag the words of a text with parts of speech.

    TEXT has one tokenised sentence per line (plain or gzip, - is standard input) and no empty lines, with or without
    Moses' escapes; the model is a tagger (`phrasetool train tagger`).  The tags are the 17 universal ones; a
    contraction of two words has both tags, as in `ADP+DET` for German `im`.  The text is processed as a stream.
    """
    from moses_compat.jobs.tag_text import tag_text
    from phrasetool.tagger.model import TaggerModel

    check_outputs([text], [output])
    document = json_document(json_file, [text], [output])
    check_inputs([text])
    model = TaggerModel.load(model_folder or default_model())
    watch = TerminalWatch(quiet)
    try:
        model.check_language(language)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    report = tag_text(model, language, text, output, form, threads, allow_empty, watch)
    document({"signature": model.signature, "language": language, **vars(report)})
    watch.say(f"{report.words:,} words of {report.sentences:,} sentences, {report.joined:,} with joined tags")
