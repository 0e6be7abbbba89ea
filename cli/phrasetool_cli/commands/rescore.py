"""`phrasetool rescore`."""

from __future__ import annotations

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    engine_options,
    force_option,
    json_document,
    json_option,
    list_source_option,
    neural_column_options,
    output_option,
    reranking_language_models_option,
    translators_option,
)
from phrasetool_cli.progress import TerminalWatch

_RENAMED = {"--length": "--length-normalisation"}
_EXAMPLE = """\b
Example:
  phrasetool rescore dev.nbest.gz --source dev.de -m de-en -m en-de -o dev.rescored.gz
  phrasetool rescore dev.nbest.gz --source dev.de --lm news.5.binary -o dev.rescored.gz
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("n_best", metavar="NBEST")
@sections(
    "Input",
    list_source_option,
    translators_option,
    reranking_language_models_option,
    "Output",
    output_option("The list with the features."),
    json_option,
    neural_column_options,
    None,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    n_best: str, source: str, folders: tuple[str, ...], language_models: tuple[str, ...], output: str,
    json_file: str | None, length: str, each: bool, force: bool, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Add model scores to an n-best list.

    NBEST is a list as Moses or `phrasetool decode` writes it.  Translators append `NeuralForward0=`, log p(hypothesis |
    source), and `NeuralBackward0=`, log p(source | hypothesis).  The language models of --lm append `ExtraLM0=` and so
    on: the natural logarithm of p(hypothesis) between <s> and </s>, not divided by its length, as Moses' own language
    models do.  Everything else is unchanged.  `phrasetool rerank` does this itself if it is given models, and accepts
    rescored lists without models.

    With translators, a list that does not translate the source is refused: its hypotheses are as likely for other
    sentences; --lm alone does not read the words of the source.  A language model that knows less than 60% of the
    tokens is refused.
    """
    from moses_compat.engine.n_best import read_n_best
    from moses_compat.files.streams import Output
    from moses_compat.jobs.rerank import SourceText, featured_list, load_columns

    if not folders and not language_models:
        raise click.UsageError("name a translator with --model, or a language model with --lm")
    inputs = [n_best, source, *language_models]
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])
    check_inputs(inputs)
    watch = TerminalWatch(quiet)
    text, candidates = SourceText.read(source), read_n_best(n_best)
    text.check(candidates)
    columns = load_columns(folders, text, candidates, length, each, force, watch, language_models)
    with Output(output) as out:
        featured = featured_list(columns, text, candidates, threads, force, watch)
        out.write_text(b"".join(featured.lines()))
    counts = {"hypotheses": len(candidates), "sentences": len(set(candidates.sentences.tolist()))}
    document({**counts, "features": list(columns.names), "neural": columns.record()})
    appended = ", ".join(columns.names)
    watch.say(f"{counts['hypotheses']:,} hypotheses of {counts['sentences']:,} sentences: {appended} appended")
