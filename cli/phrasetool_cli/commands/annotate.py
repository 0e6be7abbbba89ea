"""`phrasetool annotate`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_outputs, is_given, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import (
    checked_resume,
    chosen_encoder,
    chosen_runner,
    cluster_options,
    encoder_options,
    ini_edit,
    json_document,
    json_option,
    refuse_open_folder,
    relative_option,
    resume_option,
    scoring_device_option,
    standard_output,
    table_options,
    translator_score_option,
    weight_option,
)
from phrasetool_cli.summaries import tell_parts

if TYPE_CHECKING:
    from moses_compat.jobs.annotate import AnnotateCounts, AnnotateRequest
    from moses_compat.measures.similarities import LikelihoodRequest

syntax_options = sections(
    "Syntactic encoder",
    click.option("--syntax-columns", "columns", type=click.Choice(["cosine", "likelihood", "all"]), default="cosine",
                 help="Columns of a syntactic encoder: cosine, tag likelihoods, or all."),
    click.option("--tagger", metavar="FOLDER", help="Tagger of both languages, for likelihoods."),
    click.option("--languages", metavar="SOURCE,TARGET", help="Languages of TABLE as the tagger names them, for "
                                                              "likelihoods."),
)  # fmt: skip


def chosen_likelihood(values: dict[str, Any], models: Sequence[str]) -> LikelihoodRequest | None:
    """Take the options of syntactic encoders out of the option values; return None for the cosine alone.

    Args:
        values: values of all options by name.
        models: folders of models.

    Raises:
        click.UsageError: options contradict each other, or a language is unknown.
        ModelError: a folder holds no model, or that of the tagger is not a tagger.
    """
    columns, tagger, languages = (values.pop(name) for name in ("columns", "tagger", "languages"))
    if columns == "cosine":
        refuse_unused(dict.fromkeys(("tagger", "languages"), "--syntax-columns likelihood or all"))
        return None
    from moses_compat.measures.model_sources import is_syntax
    from moses_compat.measures.similarities import SYNTAX_COLUMNS, LikelihoodRequest
    from phrasetool.errors import ModelError
    from phrasetool.models.saved_model import read_model_config

    encoders = [folder for folder in models if is_syntax(folder)]
    if not encoders:
        if not any(map(is_given, ("columns", "tagger", "languages"))):
            # Configured options of syntactic encoders have no effect on other columns.
            return None
        raise click.UsageError(f"--syntax-columns {columns} is for a syntactic encoder; name one with -m")
    if tagger is None:
        raise click.UsageError(f"--syntax-columns {columns} needs a tagger; name one with --tagger FOLDER")
    named = tuple((languages or "").split(","))
    if len(named) != 2:
        raise click.UsageError(f"--syntax-columns {columns} needs --languages SOURCE,TARGET, such as de,en")
    config = read_model_config(Path(tagger))
    if config["model"] != "tagger":
        raise ModelError(f"{tagger}: not a tagger", remedy="train a tagger")
    known = [("tagger", config["languages"])]
    known += [("encoder", read_model_config(Path(folder))["targets"]) for folder in encoders]
    for kind, supported in known:
        for language in named:
            if language not in supported:
                raise click.UsageError(f"unknown language {language!r}; the {kind} knows {', '.join(supported)}")
    return LikelihoodRequest(SYNTAX_COLUMNS[columns], tagger, (named[0], named[1]))


# Recommended smoothing according to the results, and the value for no smoothed columns.
DEFAULT_SMOOTHING, NO_SMOOTHING = "kneser-ney", "none"
_RENAMED = {"--columns": "--syntax-columns", "--reading": "--translator-score"}
_EXAMPLE = """\b
Example:
  phrasetool annotate phrase-table.gz --forced-pairs forced-pairs.gz -o annotated.gz
  phrasetool annotate phrase-table.gz --moses-ini moses.ini --moses-ini-out annotated.ini
  phrasetool annotate phrase-table.gz -m phrasetool-model -o annotated.gz
  phrasetool annotate phrase-table.gz --encoder multilingual-MiniLM --detokenise de,en
  phrasetool annotate phrase-table.gz -m syntax --syntax-columns all --tagger tagger --languages de,en
  phrasetool annotate demo-output/engine/phrase-table.gz -m demo-output/model -o - | head -3
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, dependent=together("ini", "ini_output"), epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "Columns",
    click.option("-m", "--model", "model_folders", multiple=True, metavar="FOLDER",
                 help="Append the similarities of a model; repeatable."),
    click.option("--scale", type=click.Choice(["exp", "probability", "raw", "softmax"]), default="exp",
                 help="exp(s - 1), (1 + s)/2, s, or a softmax."),
    translator_score_option,
    scoring_device_option,
    click.option("--forced-pairs", metavar="PAIRS",
                 help="Append p(e|f) and p(f|e) from `force-decode --leave-one-out`."),
    click.option("--smoothing", type=click.Choice(["kneser-ney", "good-turing", NO_SMOOTHING]),
                 help="Append p(e|f) and p(f|e), smoothed by the counts of TABLE.  [default: kneser-ney; none with -m "
                      "or --encoder]"),
    None,
    syntax_options,
    encoder_options,
    "Output",
    click.option("-o", "--output", metavar="FILE", callback=standard_output,
                 help="Output file; `-` is standard output.  [default: TABLE.annotated.gz]"),
    "moses.ini",
    click.option("--moses-ini", "ini", metavar="INI",
                 help="moses.ini of TABLE, or of the table that it was pruned from."),
    click.option("--moses-ini-out", "ini_output", metavar="FILE",
                 help="Write INI here with the annotated table in place of TABLE."),
    weight_option,
    relative_option,
    None,
    json_option,
    resume_option,
    cluster_options,
    table_options,
)  # fmt: skip
def command(
    table: str, model_folders: tuple[str, ...], forced_pairs: str | None, smoothing: str | None, output: str | None,
    scale: str, reading: str, ini: str | None, ini_output: str | None, weight: float, threads: int,
    block_bytes: int, on_error: str, allow_empty: bool, force: bool, quiet: bool, json_file: str | None, relative: bool,
    resume: bool, max_line: int, engine: str, address: str | None, device: str, **encoders: Any,
) -> None:  # fmt: skip
    """Add score columns to a phrase table.

    Without options, appends smoothed probabilities to the scores of each entry; with --forced-pairs, also those of
    forced decoding.  Both improve translations on most tables.

    A phrase model appends two similarities: source-to-target, then target-to-source.  A translator appends p(target |
    source) or, in the other direction, p(source | target), at least e^-50; a syntactic encoder appends exp(cosine - 1).
    Columns are in the order of models, --encoder, --forced-pairs and --smoothing.  All other bytes of a line are
    unchanged.  Annotate before pruning, because counts of a pruned table are incomplete.

    TABLE is a Moses phrase table in text form, `-` is standard input; or a folder of part files (`convert
    --part-entries`); FILE is then a folder, too.

    """
    from moses_compat.files.packing import without_ending
    from moses_compat.files.paths import is_stream
    from moses_compat.jobs.annotate import AnnotateRequest, annotate
    from moses_compat.tables.blocks import TableScan
    from phrasetool_cli.progress import TerminalWatch

    parts = os.path.isdir(table)
    if parts:
        # Imported here, so that it does not delay other runs.
        from moses_compat.jobs.table_parts import annotate_parts, part_names

        # Options are refused for part files only if there are any.
        part_names(table)
    name = table.rstrip("/") + ".annotated" if parts else without_ending(table) + ".annotated.gz"
    output = output or ("-" if table == "-" else name)
    if parts:
        refuse_open_folder(output)
    likelihood = chosen_likelihood(encoders, model_folders)
    encoder = chosen_encoder(encoders, table)
    # Smoothed probabilities gain BLEU on most tables; they are left out if other columns are requested.
    if smoothing is None and not model_folders and not encoder:
        smoothing = DEFAULT_SMOOTHING
    elif smoothing == NO_SMOOTHING:
        smoothing = None
    if not (model_folders or encoder or forced_pairs or smoothing):
        raise click.UsageError("nothing to append; give -m, --encoder, --forced-pairs or a --smoothing")
    if not model_folders and not encoder:
        refuse_unused({"scale": "the similarities of a model; name one with -m"})
    if smoothing and is_stream(table):
        raise click.UsageError(
            f"--smoothing {smoothing} reads the table twice, so it cannot come from standard input or a pipe; give a "
            "file, or --smoothing none with other columns"
        )
    if parts and (ini or smoothing or encoder):
        option = "--moses-ini" if ini else "--encoder" if encoder else f"--smoothing {smoothing}"
        raise click.UsageError(f"part files take no {option}; -m and --forced-pairs with --smoothing none work")
    resume = checked_resume(resume, table, output)
    check_outputs([table, *([forced_pairs] if forced_pairs else [])], [output, ini_output], folders=parts)
    document = json_document(json_file, [table, forced_pairs, ini], [output, ini_output])
    if scale == "raw" and ini and not is_given("scale") and (is_given("ini") or is_given("ini_output")):
        # A configured scale that Moses cannot read gives way to a typed ini.
        scale = "exp"
    edit = ini_edit(table, output, ini, ini_output, weight, scale, relative)
    scan = TableScan(on_error, threads, block_bytes, allow_empty=allow_empty, force=force, max_line=max_line,
                     runner=chosen_runner(engine, address, threads))  # fmt: skip
    request = AnnotateRequest(
        table, output, model_folders, forced_pairs, smoothing, scale, edit, scan, reading, encoder, resume, likelihood,
        device,
    )  # fmt: skip
    watch = TerminalWatch(quiet)
    if parts:
        document(manifest := annotate_parts(request, watch))
        if not quiet:
            tell_parts(manifest, output)
        return
    counts = annotate(request, watch)
    statistics = dict(vars(counts))
    statistics["model_fits"] = [fit.as_dict() for fit in statistics.pop("fits")]
    document({**statistics, "columns": request.columns})
    for line in annotate_summary(counts, request):
        watch.say(line)


def annotate_summary(counts: AnnotateCounts, request: AnnotateRequest) -> Iterator[str]:
    """Yield the lines of the summary.

    Args:
        counts: result of `annotate`.
        request: the request.
    """
    columns, edit = request.columns, request.edit
    silent = f"; {counts.unscored:,} have only unknown words on a side" if counts.unscored else ""
    silent += f"; {counts.too_long:,} exceed the maximum length of a model" if counts.too_long else ""
    malformed = f"; {counts.malformed:,} malformed lines" if counts.malformed else ""
    yield f"annotated {counts.entries:,} entries{silent}{malformed}"
    if request.forced_pairs:
        yield f"forced decoding used {counts.used:,} of them"
    if edit:
        yield (
            f"{edit.output} names {edit.table} as {edit.feature.name}, with {edit.scores + columns} scores instead of "
            f"{edit.scores}; the new weights are {edit.weight:g}"
        )
    elif counts.scores >= 0:
        yield (
            f"entries now have {counts.scores + columns} scores instead of {counts.scores}: set "
            f"num-features={counts.scores + columns} in moses.ini and give the weight line {columns} more numbers"
        )
