"""`phrasetool filter-bitext`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import allow_empty_option, engine_options, force_option
from phrasetool_cli.parameter_types import FiniteRange, Share
from phrasetool_cli.progress import TerminalWatch, say
from phrasetool_cli.summaries import say_kept

if TYPE_CHECKING:
    from moses_compat.jobs.bitexts.filter_bitext import FilterReport, FilterRequest
    from phrasetool.pair_classifier.bitext_scores import PairJudge
    from phrasetool.watch import Watch

_BEST = "best"
_FOR_ENCODERS = {"target_encoder": "--target-encoder", "detokenise": "--detokenise", "prefix": "--prefix"}


class _Threshold(FiniteRange):
    """A number, or the word for the model's own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click."""
        return value if value == _BEST else super().convert(value, param, ctx)


judge_options = sections(
    "What sentences mean",
    click.option("-m", "--model", "model_folder", metavar="FOLDER", help="A classifier of sentence pairs."),
    click.option("--cross-train", is_flag=True,
                 help="In its place, train two classifiers, each on one half of the bitext, and let each judge the "
                      "other half: for text with wrong pairs where no trusted pairs are at hand.  It takes as long as "
                      "two trainings."),
    click.option("--encoder", metavar="FOLDER",
                 help="In its place, a sentence encoder on this machine that knows both languages: of "
                      "sentence-transformers, of transformers (mean pooling), or static (model2vec).  NAME:PATH is for "
                      "the encoder NAME of another package."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Another encoder for the target side, of the same space.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Put tokens together by the rules of this language (de, zh, ...), or of two: SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Put this before every sentence, as in 'query: '."),
    "What stays",
    click.option("--threshold", type=_Threshold(-1, 1), metavar="P|best",
                 help="The least probability of a pair that stays, or `best`: what was best on the model's development "
                      "set.  Of --encoder, the least cosine.  [default: best; none with --encoder]"),
    click.option("--keep", "share", type=Share(min_open=True), metavar="SHARE",
                 help="In place of a threshold, keep this share of the pairs, as in 0.3 or 30%: the most probable "
                      "ones.  The bitext is read twice."),
)  # fmt: skip


@dataclass(frozen=True)
class ChosenJudge:
    """What judges.

    Attributes:
        threshold: the least score of a pair that stays.
        holds_text: sentences have to be UTF-8.
        probable: whether scores are probabilities.
        maker: given the request, what makes the judge; see `filter_bitext`.
    """

    threshold: float
    holds_text: bool
    probable: bool
    maker: Callable[[FilterRequest, Watch], Callable[[Any, FilterReport], PairJudge]]


def chosen_judge(given: dict[str, Any], explain: bool) -> ChosenJudge:
    """The model or encoder that was asked for.

    Args:
        given: values of `judge_options` by name.
        explain: whether probabilities without length are wanted.

    Raises:
        click.UsageError: options that do not go together, or a language that is none.
        ModelError: there is no such model or encoder, or it is refused.
    """
    model, encoder, threshold = given["model_folder"], given["encoder"], given["threshold"]
    if threshold is not None and given["share"] is not None:
        raise click.UsageError("give --threshold or --keep, not both")
    if (model is not None) + (encoder is not None) + given["cross_train"] != 1:
        raise click.UsageError(
            "name a classifier with --model, or a sentence encoder with --encoder, or train two with --cross-train"
        )
    if given["cross_train"]:
        return _by_cross_training(threshold, explain)
    if encoder is not None and given["share"] is not None:
        threshold = -1.0
    if encoder is not None:
        return _by_encoder(encoder, threshold, explain, {name: given[name] for name in _FOR_ENCODERS})
    for name, flag in _FOR_ENCODERS.items():
        if given[name] is not None:
            raise click.UsageError(f"{flag} is for a sentence encoder; name one with --encoder")
    return _by_classifier(model, threshold, explain)


def _by_classifier(folder: str, threshold: float | str | None, explain: bool) -> ChosenJudge:
    from phrasetool.pair_classifier.model import ParallelModel

    if isinstance(threshold, float) and threshold < 0:
        raise click.UsageError(f"--threshold is {threshold:g}, expected a probability from 0 to 1")
    model = ParallelModel.load(folder)
    if not isinstance(threshold, float):
        # A model may be older than its thresholds' names.
        threshold = model.thresholds.get(_BEST, 0.5)

    def maker(request: FilterRequest, watch: Watch) -> Callable[[Any, FilterReport], PairJudge]:
        from moses_compat.jobs.bitexts.filter_bitext import classifier_judge

        return classifier_judge(model, folder, request, explain, watch)

    return ChosenJudge(threshold, model.encoder is not None, True, maker)


def _by_cross_training(threshold: float | str | None, explain: bool) -> ChosenJudge:
    if explain:
        raise click.UsageError("--explain asks one classifier; name it with --model")
    if isinstance(threshold, float) and threshold < 0:
        raise click.UsageError(f"--threshold is {threshold:g}, expected a probability from 0 to 1")

    def maker(request: FilterRequest, watch: Watch) -> Callable[[Any, FilterReport], PairJudge]:
        from moses_compat.jobs.bitexts.cross_training import cross_train
        from phrasetool.pair_classifier.bitext_scores import ClassifierJudge, CrossJudge

        models = cross_train(request.source, request.target, request.kept[0], watch=watch)

        def make(sample: Any, report: FilterReport) -> PairJudge:
            if not isinstance(threshold, float):
                report.threshold = sum(model.thresholds[_BEST] for model in models) / 2
            # Pairs in even places are judged by what was learnt from those in odd places.
            return CrossJudge((ClassifierJudge(models[1]), ClassifierJudge(models[0])))

        return make

    return ChosenJudge(threshold if isinstance(threshold, float) else 0.5, False, True, maker)


def _by_encoder(
    folder: str, threshold: float | str | None, explain: bool, more: dict[str, str | None]
) -> ChosenJudge:  # fmt: skip
    from moses_compat.measures.encoder_request import EncoderRequest
    from phrasetool.pair_classifier.bitext_scores import EncoderJudge, find_pair_encoder

    if not isinstance(threshold, float):
        raise click.UsageError("--encoder needs --threshold: the least cosine of a pair that stays")
    if explain:
        raise click.UsageError("--explain asks a classifier; name one with --model")
    try:
        ready = EncoderRequest(folder, more["target_encoder"], more["detokenise"], more["prefix"] or "").ready
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
    found = find_pair_encoder(folder, more["target_encoder"])
    signature = f"encoder:{'+'.join(dict.fromkeys(found.identities))}|texts:{more['detokenise']}|{more['prefix']!r}"
    judge = EncoderJudge(found.load(), ready, found.name, signature)
    return ChosenJudge(threshold, True, False, lambda request, watch: lambda sample, report: judge)


_EXAMPLE = """\b
Example:
  phrasetool filter-bitext crawled.de crawled.en -m parallel -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en -m parallel -o kept.de.gz kept.en.gz --scores scores.tsv
  awk -F'\\t' '$1 >= 0.9 {print $4 > "sure.de"; print $5 > "sure.en"}' scores.tsv
  phrasetool filter-bitext crawled.de crawled.en --cross-train --keep 60% -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en --encoder LaBSE --threshold 0.7 -o kept.de kept.en
  phrasetool train classifier demo-output/corpus.zh demo-output/corpus.en -o demo-output/parallel
  phrasetool filter-bitext demo-output/corpus.zh demo-output/corpus.en -m demo-output/parallel  -o zh en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    judge_options,
    "What stays",
    click.option("--drop-copies", is_flag=True, help="Leave out pairs of two equal sentences."),
    "What is written",
    click.option("-o", "--output", "kept", nargs=2, required=True, metavar="SOURCE TARGET",
                 help="Where the pairs that stay are written, byte for byte as they were; `-` is standard output."),
    click.option("--scores", metavar="FILE",
                 help="Every pair, a line each: probability, kept or rejected, notes, source and target, with tabs "
                      "between."),
    click.option("--rejected", metavar="FILE",
                 help="The pairs that go: notes, probability, number of the line, source and target."),
    click.option("--explain", is_flag=True,
                 help="In --scores one more column: the probability without length, the mean over the lengths of other "
                      "pairs."),
    json_option,
    None,
    allow_empty_option,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    source: str, target: str, drop_copies: bool, kept: tuple[str, str],
    scores: str | None, rejected: str | None, explain: bool, json_file: str | None, allow_empty: bool, force: bool,
    threads: int, quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Keep the sentence pairs that are translations.

    SOURCE and TARGET are the two sides of a bitext, a sentence a line.  A classifier of sentence pairs (`train --model
    parallel`) says of each pair how probable it is that it is parallel; pairs below the threshold go, and those with an
    empty side or one of which the model knows no word.  If no pair stays, nothing is written, unless --force is given.

    Notes say why: `empty`, `unknown`, `probability`; `copy` is a pair of two equal sentences, which goes with
    --drop-copies alone; `long` is one of which the model saw the beginning.  The bitext streams through.  Finished
    scores are kept beside the first output, so that the same command goes on after an interruption.
    """
    from moses_compat.jobs.bitexts.cross_training import forget_classifiers
    from moses_compat.jobs.bitexts.filter_bitext import FilterRequest, filter_bitext

    inputs, outputs = [source, target], [*kept, scores, rejected]
    if inputs.count("-") > 1:
        raise click.UsageError("only one side can be standard input")
    if explain and scores is None:
        raise click.UsageError("--explain adds a column to --scores; name a file for it")
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    check_inputs(inputs)
    watch = TerminalWatch(quiet)
    judge = chosen_judge(given, explain)
    request = FilterRequest(
        source, target, kept, judge.threshold, given["share"], scores, rejected, drop_copies, allow_empty, force,
        threads, judge.holds_text,
    )  # fmt: skip
    report = filter_bitext(request, judge.maker(request, watch), watch)
    fit = {"model_fit": report.fit.as_dict()} if report.fit else {}
    if given["cross_train"]:
        forget_classifiers(kept[0])
    facts = {"threshold": report.threshold, "signature": report.signature, "resumed": report.resumed}
    document({**report.counts.as_dict(), **facts, **fit})
    if not quiet:
        _tell(report, request, judge.probable)


def _tell(report: FilterReport, request: FilterRequest, probable: bool) -> None:
    counts = report.counts
    reasons = counts.reasons
    notes = [
        (reasons["probability"], f"score less than {report.threshold:g}"),
        (reasons["empty"], "have an empty side"),
        (reasons["unknown"], "have a side of which nothing is known"),
        (counts.copies, "are two equal sentences, " + ("and went" if request.drop_copies else "marked `copy`")),
        (counts.over_long, "are longer than the model reads; their ends were not seen"),
        (report.resumed, "were judged by an earlier run"),
    ]
    say_kept(counts.kept, counts.pairs, "pairs", notes)
    if probable and counts.kept:
        say(f"  expected precision {counts.certainty / counts.kept:.1%}, the mean probability of the pairs kept")
