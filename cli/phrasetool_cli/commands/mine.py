"""`phrasetool mine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs, check_outputs, is_given
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import (
    SENTENCE_ENCODER,
    dev_option,
    engine_options,
    former_option,
    hint_at_dev,
    json_document,
    json_option,
    output_option,
    refuse_encoder_options,
    sentence_encoder_options,
)
from phrasetool_cli.parameter_types import FiniteRange, finite_number
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.mine import MinedTexts
    from moses_compat.measures.similarities import EncoderRequest
    from phrasetool.pair_classifier.bitext_scores import PairEncoder


mining_encoder_options = sections(
    "Model",
    click.option("-m", "--model", "model_folder", metavar="FOLDER",
                 help="Classifier of sentence pairs: vectors, and probabilities."),
    sentence_encoder_options,
    click.option("--encoder-store", metavar="FOLDER",
                 help="Folder of vectors that are kept between runs.  [default: OUTPUT.ID.vectors]"),
)  # fmt: skip

mining_search_options = sections(
    "Search",
    click.option("-k", "--neighbours", "k", type=click.IntRange(1), default=4, metavar="N",
                 help="Number of nearest neighbours."),
    click.option("--margin-type", "margin", type=click.Choice(["ratio", "distance", "absolute"]), default="ratio",
                 help="Score pairs by the cosine over (or minus) their neighbourhoods."),
    click.option("--retrieval", type=click.Choice(["max", "forward", "backward", "intersection"]), default="max",
                 help="Each sentence once (max), or best by direction."),
    click.option("--neighbour-search", "search", type=click.Choice(["auto", "exact", "approximate"]), default="auto",
                 help="Exact search up to 300,000 sentences a side (auto), or always."),
    click.option("--rerank", type=click.IntRange(0), metavar="N",
                 help="Candidates of a sentence that the classifier scores.  [default: 4 with --model]"),
    click.option("--probability-weight", "weight", type=FiniteRange(0, 100), metavar="X",
                 help="Weight of log-probabilities.  [default: best on --dev-gold, else 0.02]"),
    click.option("--block-rows", "block", type=click.IntRange(1), metavar="N",
                 help="Sentences that a thread processes at a time; the output stays the same."),
    "Output",
    click.option("--threshold", type=finite_number, metavar="X", help="Minimum score of a pair."),
    click.option("--dev-gold", metavar="FILE",
                 help="Choose the threshold with the best F1 on these true pairs."),
    dev_option("Texts of --dev-gold, which are searched first.", "SOURCE TARGET"),
    former_option("--dev-source"),
    former_option("--dev-target"),
    click.option("--min-cosine", type=FiniteRange(-1, 1), default=0.0, metavar="X",
                 help="Minimum cosine of a pair."),
    click.option("--drop-copies", is_flag=True, help="Remove pairs of two equal sentences."),
    click.option("--ids", is_flag=True,
                 help="Read a name and a tab before each sentence (BUCC); write names."),
    click.option("--explain", is_flag=True,
                 help="Also write margin, cosine and probabilities."),
)  # fmt: skip


def chosen_pair_encoder(values: dict[str, Any]) -> tuple[PairEncoder, EncoderRequest]:
    """Take the requested model or encoder, and the preparation of texts, out of the values of all options.

    Raises:
        click.UsageError: options contradict each other, or a language is unknown.
        ModelError: the model or encoder does not exist, or is refused.
    """
    from moses_compat.measures.similarities import EncoderRequest

    model, encoder, store = (values.pop(name) for name in ("model_folder", "encoder", "encoder_store"))
    more = {name: values.pop(name) for name in SENTENCE_ENCODER}
    if (model is None) == (encoder is None):
        raise click.UsageError("name a classifier with --model, or a sentence encoder with --encoder")
    if encoder is None:
        refuse_encoder_options()
        more = dict.fromkeys(more)
    else:
        for name, flag in (("rerank", "--rerank"), ("weight", "--probability-weight")):
            if values[name] and is_given(name):
                raise click.UsageError(f"{flag} needs a classifier; name one with --model")
            values[name] = None
    if values["rerank"] == 0 and values["weight"] is not None:
        if is_given("rerank") == is_given("weight"):
            message = "--probability-weight has no effect with --rerank 0, which asks for no probabilities"
            raise click.UsageError(message)
        values["rerank" if is_given("weight") else "weight"] = None
    try:
        request = EncoderRequest(encoder or model, more["target_encoder"], more["detokenise"], more["prefix"] or "",
                                 store=store)  # fmt: skip
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
    from phrasetool.pair_classifier.bitext_scores import find_pair_encoder, load_pair_model

    pair_encoder = load_pair_model(model) if model is not None else find_pair_encoder(encoder, more["target_encoder"])
    return pair_encoder, request


_RENAMED = {"--margin": "--margin-type", "--search": "--neighbour-search", "--weight": "--probability-weight"}
_EXAMPLE = """\b
Example:
  phrasetool mine crawled.zh crawled.en -m parallel --threshold 1.05 -o mined.tsv
  phrasetool mine crawled.zh crawled.en --encoder LaBSE --detokenise zh,en -o mined.tsv.gz
  phrasetool mine test.zh test.en -m parallel --dev dev.zh dev.en --dev-gold gold.tsv -o mined.tsv
  phrasetool train classifier demo-output/corpus.zh demo-output/corpus.en -o demo-output/parallel
  phrasetool mine demo-output/corpus.zh demo-output/corpus.en -m demo-output/parallel -o demo-output/mined.tsv
"""


_FORMER_DEVELOPMENT = ("dev_source", "dev_target")
_EXCLUSIVE = (
    ("model_folder", "encoder"), ("threshold", "dev_gold"), *(("development", name) for name in _FORMER_DEVELOPMENT),
)  # fmt: skip
_DEPENDENT = (
    *together(*_FORMER_DEVELOPMENT), *((name, "dev_gold") for name in ("development", *_FORMER_DEVELOPMENT)),
)  # fmt: skip


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=_EXCLUSIVE, dependent=_DEPENDENT, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    mining_encoder_options,
    mining_search_options,
    None,
    output_option("The pairs, best first: score, source and target, with tabs between."),
    json_option,
    engine_options,
)
def command(
    source: str, target: str, output: str, json_file: str | None, threads: int, quiet: bool, dev_gold: str | None,
    development: tuple[str, str] | None, dev_source: str | None, dev_target: str | None, **values: Any,
) -> None:  # fmt: skip
    """Find sentence pairs that are translations in two texts.

    SOURCE and TARGET have one sentence per line, in any order; most may have no translation.  Each distinct sentence is
    encoded as a vector, and paired with its nearest neighbours on the other side.  The score of a pair is its cosine
    divided by the mean cosine of both sentences with their neighbours (--margin-type ratio): a sentence that is near to
    everything is a translation of nothing.  The best pairs are taken first, each sentence once.

    A pair of two equal sentences has `copy` as its last field.  Tabs within a sentence become spaces.  The texts are
    kept in memory, their vectors on disk.
    """
    from moses_compat.files.streams import Output
    from moses_compat.jobs.mine import (
        WEIGHTS,
        MiningSettings,
        mine_texts,
        mined_lines,
        mining_statistics,
        mining_summary,
        settings_from_gold,
        store_for_output,
    )

    if dev_gold is not None and values["threshold"] is not None:
        raise click.UsageError("--threshold and --dev-gold both set the threshold; leave one out")
    if (dev_source is None) != (dev_target is None):
        raise click.UsageError("--dev-source and --dev-target must be given together; use --dev SOURCE TARGET")
    if dev_source is not None and dev_target is not None:
        hint_at_dev("--dev-source and --dev-target")
        development = dev_source, dev_target
    if development is not None and dev_gold is None:
        raise click.UsageError("--dev is for --dev-gold")
    inputs = [source, target, *(development or ()), dev_gold]
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])
    check_inputs(inputs)
    encoder, request = chosen_pair_encoder(values)
    rerank = values.pop("rerank")
    rerank = (4 if encoder.model else 0) if rerank is None else rerank
    weight = values.pop("weight")
    weights = WEIGHTS if weight is None else (weight,)
    weight = MiningSettings.weight if weight is None else weight
    settings = MiningSettings(rerank=rerank, weight=weight, threads=threads, **values)
    watch, ready, store = TerminalWatch(quiet), request.ready, request.store or store_for_output(output, encoder)
    texts = f"detokenise={request.detokenise or 'none'}|prefix={request.prefix!r}"

    def search(sides: tuple[str, str], place: str | None) -> MinedTexts:
        return mine_texts(*sides, encoder, ready, texts, place, settings, watch)

    with Output(output) as out:
        searched = search(development, store and f"{store}.dev") if development is not None else None
        mined = search((source, target), store)
        if dev_gold is not None:
            settings = settings_from_gold(searched or mined, dev_gold, settings, weights)
            mined = mined.weighted(settings.weight, settings)
            chosen = f", weight of probabilities {settings.weight:g}" if mined.judged else ""
            watch.say(f"threshold {settings.threshold:.6g}{chosen}, from {dev_gold}")
        for line in mined_lines(mined, settings):
            out.write_text(line)
        _tell(document, mining_statistics(mined, settings, encoder.name), watch, mining_summary)


def _tell(document: Any, statistics: dict[str, Any], watch: TerminalWatch, summary: Any) -> None:
    document(statistics)
    for line in summary(statistics):
        watch.say(line)
