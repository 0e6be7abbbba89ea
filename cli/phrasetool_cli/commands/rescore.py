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
    translators_option,
)
from phrasetool_cli.progress import TerminalWatch

_RENAMED = {"--length": "--length-normalisation"}
_EXAMPLE = """\b
Example:
  phrasetool rescore dev.nbest.gz --source dev.de -m de-en -m en-de -o dev.rescored.gz
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, epilog=_EXAMPLE)
@click.argument("n_best", metavar="NBEST")
@sections(
    "Input",
    list_source_option,
    translators_option(required=True),
    "Output",
    output_option("The list with the features."),
    json_option,
    neural_column_options,
    None,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    n_best: str, source: str, folders: tuple[str, ...], output: str, json_file: str | None, length: str, each: bool,
    force: bool, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Add neural model scores to an n-best list.

    NBEST is a list as Moses or `phrasetool decode` writes it.  Each line gets `NeuralForward0=`, log p(hypothesis |
    source), and `NeuralBackward0=`, log p(source | hypothesis), as far as there are models of that direction; all else
    stays byte for byte.  `phrasetool rerank` does this itself if it is given models, and takes such lists without.

    A list that does not translate the source is refused: if its hypotheses are as likely next to other sentences.
    """
    from moses_compat.engine.n_best import read_n_best
    from moses_compat.files.streams import Output
    from moses_compat.jobs.rerank import SourceText, featured_list, load_columns

    check_outputs([n_best, source], [output])
    document = json_document(json_file, [n_best, source], [output])
    check_inputs([n_best, source])
    watch = TerminalWatch(quiet)
    text, found = SourceText.read(source), read_n_best(n_best)
    text.check(found)
    columns = load_columns(folders, text, found, length, each, force, watch)
    with Output(output) as out:
        featured = featured_list(columns, text, found, threads, force, watch)
        out.write_text(b"".join(featured.lines()))
    counts = {"hypotheses": len(found), "sentences": len(set(found.sentences.tolist()))}
    document({**counts, "features": list(columns.groups), "neural": columns.record()})
    appended = ", ".join(columns.groups)
    watch.say(f"{counts['hypotheses']:,} hypotheses of {counts['sentences']:,} sentences: {appended} appended")
