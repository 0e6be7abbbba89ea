"""`phrasetool decode`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import (
    check_inputs,
    check_outputs,
    refuse_two_standard_inputs,
    refuse_unused,
    refuse_unused_limits,
)
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    checked_resume,
    chosen_runner,
    cluster_options,
    decoder_model_options,
    engine_options,
    finished_work,
    force_option,
    json_document,
    json_option,
    output_option,
    resume_option,
    search_options,
)
from phrasetool_cli.progress import ItemProgress, TerminalWatch, say

if TYPE_CHECKING:
    from moses_compat.engine.decoder_tables import InputPhrases
    from moses_compat.engine.model import MosesModel
    from phrasetool.smt.decoder.translator import Translator

_EXAMPLE = """\b
Example:
  phrasetool decode --moses-ini moses.ini dev.de -o dev.out
  phrasetool decode --moses-ini moses.ini --search cube --n-best-list dev.nbest 100 dev.de -o dev.out
  phrasetool decode --moses-ini demo-output/engine/moses.ini --search cube demo-output/engine/test.zh
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("text", default="-")
@sections(
    None,
    decoder_model_options,
    "Output",
    output_option("Translations."),
    click.option("--n-best-list", "n_best", nargs=2, type=(str, click.IntRange(1)), metavar="FILE N",
                 help="Also write an n-best list in Moses' format."),
    click.option("--all-derivations", is_flag=True, help="Also list derivations that differ only in segmentation."),
    click.option("--segmentation", is_flag=True,
                 help="Add spans and word alignments to the n-best list."),
    json_option,
    resume_option,
    cluster_options,
    None,
    search_options,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    text: str, ini: str, table: str | None, reordering_table: str | None, output: str, n_best: tuple[str, int] | None,
    all_derivations: bool, segmentation: bool, threads: int, quiet: bool, json_file: str | None,
    resume: bool, force: bool, engine: str, address: str | None, **search: Any,
) -> None:  # fmt: skip
    """Translate text with a phrase-based model.

    TEXT has one tokenised sentence per line; `-` is standard input.  The model is a moses.ini with text phrase tables,
    language models (ARPA text or kenlm's binary files) and, optionally, a text reordering table.  With the same limits,
    the search finds what Moses finds, except for ties, and for n-best lists of the stack search where stacks were
    pruned: Moses breaks ties by memory addresses, and its stack search extends hypotheses in the order of their hashes.

    A text of twenty tokens or more is refused if less than 30 % of them are in the table; a language model is refused
    if it knows few of the table's target words.
    """
    from moses_compat.corpora.texts import read_sentences, surface_words
    from moses_compat.engine.development_check import check_language_models, report_coverage, warn_of_long_jumps
    from moses_compat.engine.model import MosesModel
    from moses_compat.engine.n_best import n_best_lines
    from moses_compat.files.paths import display_name
    from moses_compat.files.streams import Output
    from moses_compat.lines.fields import check_text
    from phrasetool.pipeline import run

    refuse_two_standard_inputs([text, ini, table, reordering_table])
    resume = checked_resume(resume, text, output)
    model = MosesModel.read(ini, table, reordering_table, printed=True)
    check_outputs([text, *model.kept_paths], [output, n_best[0] if n_best else None])
    check_inputs([text])
    model.check_files()
    document = json_document(json_file, [text, *model.kept_paths], [output, n_best[0] if n_best else None])
    model = model.searching(**search)
    refuse_unused_limits(model.search.algorithm == "cube")
    if n_best is None:
        refuse_unused(dict.fromkeys(("all_derivations", "segmentation"), "the list of --n-best-list"))
    source = surface_words(read_sentences(text), display_name(text))
    if n_best:
        check_text(display_name(text), source)
    translator, sentences = load_translator(model, source, threads, quiet)
    watch = TerminalWatch(quiet)
    report_coverage(translator.table, sentences.sentences, text, model.shown_tables, watch, force)
    warn_of_long_jumps(sentences.sentences, model.search.distortion_limit, text, watch)
    check_language_models(model, translator.language_model, translator.table, watch, force)
    by = chosen_runner(engine, address, threads)
    translations_each = n_best[1] if n_best else 1
    total = 0.0
    depends = {"search": model.search, "n best": translations_each, "all derivations": all_derivations}
    with (
        finished_work(resume, output, text, [ini, *model.paths], depends, watch) as finished,
        Output(output) as out,
        Output(n_best[0]) if n_best else contextlib.nullcontext() as listing,
        ItemProgress("translating", len(sentences.sentences), "sentence", quiet) as progress,
    ):
        translations = translator.translate_all(
            sentences.sentences, model.search, translations_each, not all_derivations, threads=threads,
            runner=finished.runner("translations", by=by) if finished else by or run,
        )  # fmt: skip
        for number, translation in enumerate(translations):
            out.write_text(model.printing.line(translator, translation))
            if listing:
                listing.write_text(n_best_lines(
                    translator, number, translation, model.listed, segmentation, segmentation, model.printing
                ))  # fmt: skip
            total += float(translation.steps.scores[0])
            progress.tick()
    table_words = {"entries": len(translator.table), "copied_words": int(translator.table.copies.sum())}
    document({"sentences": len(sentences.sentences), "model_score": total, **table_words})
    if not quiet:
        count = max(len(sentences.sentences), 1)
        seconds = progress.seconds
        say(
            f"{len(sentences.sentences):,} sentences translated in {seconds:.1f} s "
            f"({1000 * seconds * threads / count:.1f} ms a sentence and thread), mean model score {total / count:.3f}"
        )


def load_translator(model: MosesModel, text: bytes, threads: int, quiet: bool) -> tuple[Translator, InputPhrases]:
    """Load the translator and the phrases of a text; see `MosesModel.load`."""
    watch = TerminalWatch(quiet)
    with watch.reading(model.tables) as progress:
        translator, source = model.load(text, threads, progress)
    if not quiet:
        table = translator.table
        copies = int(table.copies.sum())
        without = "distinct words have" if copies != 1 else "word has"
        say(
            f"{len(source.sentences):,} sentences; {len(table) - copies:,} entries of {model.shown_tables} "
            f"can be used, {copies:,} {without} no translation and will be copied"
        )
    model.report_reading(translator.table.targets, translator.table.target_symbols, watch)
    return translator, source
