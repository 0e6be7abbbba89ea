"""`phrasetool filter-bitext`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.checks import check_inputs, check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    SENTENCE_ENCODER,
    allow_empty_option,
    dev_option,
    engine_options,
    force_option,
    json_document,
    json_option,
    refuse_encoder_options,
    sentence_encoder_options,
)
from phrasetool_cli.parameter_types import FiniteRange, Share
from phrasetool_cli.progress import TerminalWatch, say
from phrasetool_cli.summaries import say_kept

if TYPE_CHECKING:
    from moses_compat.jobs.filter_bitext import FilterReport, FilterRequest, Sample
    from phrasetool.pair_classifier.bitext_scores import PairScorer
    from phrasetool.watch import Watch

_BEST = "best"
# For source and target: parameters of the language models of good and of general text -> their options.
_LANGUAGE_MODELS = {
    ("source_model", "general_source_model"): ("--source-lm", "--general-source-lm"),
    ("target_model", "general_target_model"): ("--lm", "--general-lm"),
}


class _Threshold(FiniteRange):
    """A number, or `best` for the model's own threshold."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a number, or `best`."""
        return value if value == _BEST else super().convert(value, param, ctx)


scorer_options = sections(
    "Model",
    click.option("-m", "--model", "model_folder", metavar="FOLDER", help="Classifier of sentence pairs."),
    click.option("--cross-train", is_flag=True,
                 help="Train two classifiers, each on one half, to score the other half."),
    dev_option("True pairs, to choose the threshold of --cross-train.", "SOURCE TARGET"),
    sentence_encoder_options,
    click.option("--lm", "target_model", metavar="FILE", help="Language model of good target text."),
    click.option("--general-lm", "general_target_model", metavar="FILE",
                 help="Language model of general text, to compare --lm with."),
    click.option("--source-lm", "source_model", metavar="FILE", help="Language model of good source text."),
    click.option("--general-source-lm", "general_source_model", metavar="FILE",
                 help="Language model of general text, to compare --source-lm with."),
    "Selection",
    click.option("--threshold", type=_Threshold(-100, 100), metavar="P|best",
                 help="Minimum probability, cosine or fluency.  [default: best]"),
    click.option("--keep", "share", type=Share(min_open=True), metavar="SHARE",
                 help="Keep this share of the pairs, the most probable ones."),
)  # fmt: skip


@dataclass(frozen=True)
class ChosenScorer:
    """The chosen scorer of sentence pairs.

    Attributes:
        threshold: minimum score of a kept pair.
        holds_text: whether sentences must be UTF-8.
        probable: whether scores are probabilities.
        filter: filters a bitext by the scores.
    """

    threshold: float
    holds_text: bool
    probable: bool
    filter: Callable[[FilterRequest, Watch], FilterReport]


def chosen_scorer(values: dict[str, Any], explain: bool) -> ChosenScorer:
    """Return the requested scorer: a classifier, cross-training, an encoder or language models.

    Args:
        values: values of `scorer_options` by name.
        explain: whether probabilities without length are requested.

    Raises:
        click.UsageError: options contradict each other, or a language is unknown.
        ModelError: a model or encoder does not exist, or is refused.
    """
    model, encoder, threshold = values["model_folder"], values["encoder"], values["threshold"]
    for (good, general), flags in _LANGUAGE_MODELS.items():
        if values[general] and not values[good]:
            raise click.UsageError(f"{flags[1]} is compared with a model of good text: name one with {flags[0]}")
    language_models = values["source_model"], values["target_model"]
    if threshold is not None and values["share"] is not None:
        raise click.UsageError("give --threshold or --keep, not both")
    if (model is not None) + (encoder is not None) + values["cross_train"] + any(language_models) != 1:
        raise click.UsageError(
            "name a classifier with --model, a sentence encoder with --encoder, or language models with --lm and "
            "--source-lm, or train two classifiers with --cross-train"
        )
    if explain and model is None:
        raise click.UsageError("--explain needs a classifier; name one with --model")
    if encoder is None:
        refuse_encoder_options()
    if values["cross_train"]:
        return _by_cross_training(threshold, values["development"])
    refuse_unused({"development": "--cross-train: a classifier has its own best threshold"})
    if any(language_models):
        return _by_language_models(values)
    if encoder is not None and values["share"] is not None:
        threshold = -1.0
    if encoder is not None:
        return _by_encoder(encoder, threshold, {name: values[name] for name in SENTENCE_ENCODER})
    return _by_classifier(model, threshold, explain)


def _check_range(threshold: float | str | None, least: float, expected: str) -> None:
    if isinstance(threshold, float) and not least <= threshold <= 1:
        raise click.UsageError(f"--threshold is {threshold:g}, expected {expected}")


def _by_classifier(folder: str, threshold: float | str | None, explain: bool) -> ChosenScorer:
    from phrasetool.pair_classifier.model import PairClassifierModel

    _check_range(threshold, 0, "a probability from 0 to 1")
    model = PairClassifierModel.load(folder)
    if not isinstance(threshold, float):
        threshold = model.thresholds[_BEST]

    def filter_pairs(request: FilterRequest, watch: Watch) -> FilterReport:
        from moses_compat.jobs.filter_bitext import classifier_scorer, filter_bitext

        return filter_bitext(request, classifier_scorer(model, folder, request, explain, watch), watch)

    return ChosenScorer(threshold, model.encoder is not None, True, filter_pairs)


def _by_cross_training(threshold: float | str | None, dev: tuple[str, str] | None) -> ChosenScorer:
    _check_range(threshold, 0, "a probability from 0 to 1")

    def filter_pairs(request: FilterRequest, watch: Watch) -> FilterReport:
        from moses_compat.jobs.cross_training import filter_by_cross_training

        best = not isinstance(threshold, float)
        return filter_by_cross_training(request, best_threshold=best, dev=dev, watch=watch)

    # The probabilities of true pairs are too low if a classifier was trained on wrong pairs, too.
    return ChosenScorer(threshold if isinstance(threshold, float) else 0.5, False, False, filter_pairs)


def _by_encoder(folder: str, threshold: float | str | None, more: dict[str, str | None]) -> ChosenScorer:
    from moses_compat.measures.similarities import EncoderRequest
    from phrasetool.pair_classifier.bitext_scores import EncoderScorer, find_pair_encoder

    if not isinstance(threshold, float):
        raise click.UsageError("--encoder needs --threshold, the minimum cosine of kept pairs")
    _check_range(threshold, -1, "a cosine from -1 to 1")
    try:
        ready = EncoderRequest(folder, more["target_encoder"], more["detokenise"], more["prefix"] or "").ready
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
    pair_encoder = find_pair_encoder(folder, more["target_encoder"])
    encoders = "+".join(dict.fromkeys(pair_encoder.identities))
    signature = f"encoder:{encoders}|texts:{more['detokenise']}|{more['prefix']!r}"
    scorer = EncoderScorer(pair_encoder.load(), ready, pair_encoder.name, signature)

    def filter_pairs(request: FilterRequest, watch: Watch) -> FilterReport:
        from moses_compat.jobs.filter_bitext import filter_bitext

        return filter_bitext(request, lambda sample, report: scorer, watch)

    return ChosenScorer(threshold, True, False, filter_pairs)


def _by_language_models(values: dict[str, Any]) -> ChosenScorer:
    from moses_compat.engine.language_models import open_kenlm_model
    from moses_compat.files.finished_work import fingerprint
    from phrasetool.pair_classifier.bitext_scores import FluencyScorer

    threshold = values["threshold"]
    if not isinstance(threshold, float) and values["share"] is None:
        raise click.UsageError("--lm and --source-lm need --keep, or --threshold, the minimum score of kept pairs")
    paths = [(values[good], values[general]) for good, general in _LANGUAGE_MODELS]
    names = [[fingerprint(path) if path else "" for path in pair] for pair in paths]
    for pair, (good, general) in zip(paths, names, strict=True):
        if good and good == general:
            raise PhraseToolError(f"{pair[0]} and {pair[1]} are the same model, so every score would be 0")
    source, target = ([open_kenlm_model(path) if path else None for path in pair] for pair in paths)
    scorer = FluencyScorer((source[0], target[0]), (source[1], target[1]), f"written-cross-entropies:{names}")

    def filter_pairs(request: FilterRequest, watch: Watch) -> FilterReport:
        from moses_compat.engine.language_models import check_known_words
        from moses_compat.files.paths import display_name
        from moses_compat.jobs.filter_bitext import filter_bitext
        from phrasetool.text_splitting import split_words

        def make(sample: Sample, report: FilterReport) -> PairScorer:
            sides = zip((source, target), sample, (request.source, request.target), strict=True)
            for models, lines, path in sides:
                counts = Counter(word for line in lines for word in split_words(line))
                for model in filter(None, models):
                    check_known_words(model, counts, display_name(path), request.force, watch)
            return scorer

        return filter_bitext(request, make, watch)

    return ChosenScorer(threshold if isinstance(threshold, float) else -math.inf, False, False, filter_pairs)


_EXAMPLE = """\b
Example:
  phrasetool filter-bitext crawled.de crawled.en -m classifier -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en --cross-train --keep 60% -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en --encoder LaBSE --threshold 0.7 -o kept.de kept.en
  phrasetool filter-bitext crawled.de crawled.en --lm news.arpa --general-lm crawled.arpa --keep 60% -o kept.de kept.en
  phrasetool train classifier demo-output/corpus.zh demo-output/corpus.en -o demo-output/classifier
  phrasetool filter-bitext demo-output/corpus.zh demo-output/corpus.en -m demo-output/classifier -o zh en
"""


_SCORERS = ("model_folder", "encoder", "cross_train")
# Language models can be combined with each other, but not with another scorer.
_EXCLUSIVE = (_SCORERS, ("threshold", "share"), *product(_SCORERS, chain.from_iterable(_LANGUAGE_MODELS)))
_DEPENDENT = (
    *((general, good) for good, general in _LANGUAGE_MODELS),
    ("explain", "scores"),
    ("explain", "model_folder"),
)


@click.command(cls=SectionedCommand, exclusive=_EXCLUSIVE, dependent=_DEPENDENT, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    scorer_options,
    "Selection",
    click.option("--drop-copies", is_flag=True, help="Remove pairs of two equal sentences."),
    "Output",
    click.option("-o", "--output", "kept", nargs=2, required=True, metavar="SOURCE TARGET",
                 help="Output files; `-` is standard output."),
    click.option("--scores", metavar="FILE",
                 help="Write all pairs: probability, kept or rejected, notes, source, target."),
    click.option("--rejected", metavar="FILE",
                 help="Write the removed pairs: notes, probability, line, source, target."),
    click.option("--explain", is_flag=True,
                 help="Also write the probability without length to --scores."),
    json_option,
    None,
    allow_empty_option,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    source: str, target: str, drop_copies: bool, kept: tuple[str, str],
    scores: str | None, rejected: str | None, explain: bool, json_file: str | None, allow_empty: bool, force: bool,
    threads: int, quiet: bool, **values: Any,
) -> None:  # fmt: skip
    """Keep the sentence pairs that are translations.

    SOURCE and TARGET are the two sides of a bitext, with one sentence per line.  A classifier (`train classifier`)
    gives each pair a probability; pairs below the threshold, with an empty side, or with a side of unknown words only
    are removed.  Language models (--lm) select fluent sentences instead: the score is then the log probability per
    word, including </s>; with --general-lm, minus that of the model of general text.  --encoder requires --threshold,
    and --lm and --source-lm require --threshold or --keep.

    If no pair is kept, nothing is written, unless --force is given.

    In --scores and --rejected, the notes `empty`, `unknown`, `probability` and `tie` (beyond the share of --keep) are
    reasons for removal; `copy` is a reason only with --drop-copies, and `long` (truncated) never.
    Finished scores are stored next to the first output, so that the same command continues an interrupted run.

    """
    from moses_compat.jobs.filter_bitext import FilterRequest

    inputs, outputs = [source, target], [*kept, scores, rejected]
    if explain and scores is None:
        raise click.UsageError("--explain adds a column to --scores; name a file for it")
    inputs += [values[name] for name in chain.from_iterable(_LANGUAGE_MODELS) if values[name]]
    inputs += values["development"] or []
    check_outputs(inputs, outputs)
    document = json_document(json_file, inputs, outputs)
    check_inputs(inputs)
    watch = TerminalWatch(quiet)
    scorer = chosen_scorer(values, explain)
    request = FilterRequest(
        source, target, kept, scorer.threshold, values["share"], scores, rejected, drop_copies, allow_empty, force,
        threads, scorer.holds_text,
    )  # fmt: skip
    report = scorer.filter(request, watch)
    fit = {"model_fit": report.fit.as_dict()} if report.fit else {}
    facts = {"threshold": report.threshold, "signature": report.signature, "resumed": report.resumed}
    document({**report.counts.as_dict(), **facts, **fit})
    if not quiet:
        _tell(report, request, scorer.probable)


# Treatment of copies, without and with `--drop-copies`.
_COPIES = ("scored like others: --drop-copies removes them", "always removed")


def _tell(report: FilterReport, request: FilterRequest, probable: bool) -> None:
    counts = report.counts
    reasons = counts.reasons
    notes = [
        (reasons["probability"], f"score less than {report.threshold:g}"),
        (reasons["tie"], f"score {report.threshold:g} like earlier pairs, but exceed the share to keep"),
        (reasons["empty"], "have an empty side"),
        (reasons["unknown"], "have a side with unknown words only"),
        (counts.copies, "are two equal sentences, " + _COPIES[request.drop_copies]),
        (counts.over_long, "exceed the maximum length of the model and were truncated"),
        (report.resumed, "were scored by an earlier run"),
    ]
    say_kept(counts.kept, counts.pairs, "pairs", notes)
    if reasons.total() > counts.pairs - counts.kept:
        say("  (a pair with several reasons counts for each)")
    if probable and counts.kept:
        say(f"  expected precision {counts.certainty / counts.kept:.1%}, the mean probability of the pairs kept")
