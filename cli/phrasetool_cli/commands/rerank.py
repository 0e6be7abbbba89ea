"""`phrasetool rerank`."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs, check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    dev_option,
    engine_options,
    force_option,
    former_option,
    hint_at_dev,
    json_document,
    json_option,
    list_source_option,
    neural_column_options,
    output_option,
    reranking_language_models_option,
    translators_option,
)
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.rerank import RerankReport

_RENAMED = {"--n-best-list": "--reranked-list", "--length": "--length-normalisation"}
_EXAMPLE = """\b
Example:
  phrasetool rerank test.nbest.gz --source test.de -m de-en -m en-de --dev-list dev.nbest.gz \
--dev dev.de dev.en --save-weights w.json -o test.out
  phrasetool rerank other.nbest.gz --source other.de -m de-en --weights w.json -o other.out
  phrasetool rerank test.nbest.gz --source test.de --lm news.5.binary --dev-list dev.nbest.gz \
--dev dev.de dev.en -o test.out
"""
_DEVELOPMENT = ("dev_list", "development", "dev_source", "dev_references")
_EXCLUSIVE = (*(("weights", name) for name in (*_DEVELOPMENT, "save_weights")), ("development", "dev_source"))


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=_EXCLUSIVE, epilog=_EXAMPLE)
@click.argument("n_best", metavar="NBEST")
@sections(
    "Input",
    list_source_option,
    translators_option,
    reranking_language_models_option,
    click.option("-r", "--reference", "references", multiple=True, metavar="FILE",
                 help="Reference translation, to report BLEU; repeatable."),
    "Weights",
    click.option("--dev-list", metavar="FILE", help="N-best list of the development set, to tune on."),
    dev_option("Development set of --dev-list: source and reference."),
    click.option("--dev-reference", "dev_references", multiple=True, metavar="FILE",
                 help="Further reference of the development set; repeatable."),
    former_option("--dev-source"),
    click.option("--weights", metavar="FILE", help="Saved weights, instead of tuning."),
    click.option("--tune", "tuned_features", type=click.Choice(["new", "all"]), default="new",
                 help="Tune new features next to the old total score, or all features."),
    click.option("--seed", type=click.IntRange(0), default=1, help="Random seed of tuning."),
    "Output",
    output_option("The best translation of each sentence."),
    click.option("--reranked-list", "listing", metavar="FILE", help="Write the reranked list with new totals."),
    click.option("--save-weights", metavar="FILE", help="Write the weights as JSON, for other lists."),
    json_option,
    neural_column_options,
    None,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    n_best: str, source: str, folders: tuple[str, ...], language_models: tuple[str, ...], references: tuple[str, ...],
    dev_list: str | None, development: tuple[str, str] | None, dev_source: str | None, dev_references: tuple[str, ...],
    weights: str | None,
    tuned_features: str, seed: int, output: str, listing: str | None, save_weights: str | None, json_file: str | None,
    length: str, each: bool, force: bool, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Rerank an n-best list with further models.

    Translators and language models append features to NBEST and to the list of the development set (see `phrasetool
    rescore`).  MIRA tunes the weights on the development set, starting from those that its list was made with, and the
    best hypotheses of NBEST with these weights are written.  Rescored lists need no models: they can be rescored once
    and reranked often.
    """
    from moses_compat.engine.n_best import NBestList, read_n_best
    from moses_compat.files.streams import Output
    from moses_compat.jobs.rerank import (
        RerankWeights,
        SourceText,
        check_determined,
        check_references,
        check_same_features,
        chosen_text,
        featured_list,
        load_columns,
        read_references,
        reordered_lines,
        report_of,
        tune_weights,
        with_sparse_features_of,
    )

    if development is not None:
        if dev_source is not None:
            raise click.UsageError("--dev and --dev-source both name a development set; give --dev")
        dev_source, dev_references = development[0], (development[1], *dev_references)
    elif dev_source is not None:
        hint_at_dev("--dev-source and --dev-reference")
    dev = [dev_list, dev_source, *(dev_references or [None])]
    if (weights is None) == (None in dev) or (weights and any(dev)):
        raise click.UsageError("give --dev-list NBEST and --dev SOURCE REFERENCE to tune, or --weights FILE")
    if weights:
        reason = "tuning, and --weights tunes nothing"
        refuse_unused({"tuned_features": reason, "seed": reason, "save_weights": reason})
    inputs, outputs = [n_best, source, *language_models, *references, weights, *dev], [output, listing, save_weights]
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    check_inputs(inputs)
    watch = TerminalWatch(quiet)

    def prepared(path: str, text_path: str) -> tuple[SourceText, NBestList]:
        text, candidates = SourceText.read(text_path), read_n_best(path)
        text.check(candidates)
        return text, candidates

    # Errors in the files are found before the models run.
    text, candidates = prepared(n_best, source)
    truth = read_references(references, len(text.sentences), candidates)
    if truth:
        # Translations do not depend on the references: a wrong one makes only the reported BLEU meaningless.
        check_references(candidates, truth, source, references, force=True, watch=watch)
    columns = load_columns(folders, text, candidates, length, each, force, watch, language_models)
    record = columns.record() if folders or language_models else None
    dev_featured = None
    with contextlib.ExitStack() as files:
        out, listed, saved = (files.enter_context(Output(path)) if path else None for path in outputs)
        if weights is None:
            assert dev_list is not None
            assert dev_source is not None
            dev_text, dev_candidates = prepared(dev_list, dev_source)
            dev_truth = read_references(dev_references, len(dev_text.sentences), dev_candidates)
            check_references(dev_candidates, dev_truth, dev_source, dev_references, force, watch)
            candidates = with_sparse_features_of(candidates, dev_candidates.names, dev_candidates.name, watch)
            check_same_features(candidates, dev_candidates)
            dev_columns = load_columns(folders, dev_text, dev_candidates, length, each, force, watch, language_models)
            dev_featured = featured_list(dev_columns, dev_text, dev_candidates, threads, force, watch)
            tuned = tune_weights(dev_featured, dev_truth, columns.record(), seed, tuned_features == "all")
        else:
            tuned = RerankWeights.read(weights)
            candidates = with_sparse_features_of(candidates, tuned.names, weights, watch)
        featured = featured_list(columns, text, candidates, threads, force, watch)
        tuned.check(featured, record)
        if dev_featured is not None:
            check_determined(dev_featured, featured)
        report = report_of(featured, tuned.weights, truth)
        if out:
            out.write_text(chosen_text(featured, tuned.weights, len(text.sentences)))
        if listed:
            listed.write_text(b"".join(reordered_lines(featured, tuned.weights)))
        if saved:
            saved.write_text(tuned.as_json())
    document({**asdict(report), **tuned.origin, "neural": tuned.columns, "weights": tuned.named()})
    if not quiet:
        _show(report, tuned.origin.get("development_bleu"), watch)


def _show(report: RerankReport, development: dict[str, float] | None, watch: TerminalWatch) -> None:
    if development:
        watch.say(f"development set: BLEU {development['before']:.2f} -> {development['after']:.2f}")
    watch.say(f"{report.changed:,} of {report.sentences:,} sentences have another translation")
    if report.bleu_after is not None:
        watch.say(
            f"BLEU {report.bleu_before:.2f} -> {report.bleu_after:.2f} (p = {report.p_value:.3f}); the best "
            f"hypotheses of the list have {report.bleu_oracle:.2f}"
        )
