"""`phrasetool mine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import engine_options, output_option
from phrasetool_cli.parameter_types import FiniteRange, finite_number
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.mine import MinedTexts
    from moses_compat.measures.encoder_request import EncoderRequest
    from phrasetool.pair_classifier.bitext_scores import PairEncoder

_FOR_ENCODERS = {"target_encoder": "--target-encoder", "detokenise": "--detokenise", "prefix": "--prefix"}

mining_encoder_options = sections(
    "What sentences mean",
    click.option("-m", "--model", "model_folder", metavar="FOLDER",
                 help="A classifier of sentence pairs: it gives vectors, and the probability that a pair is parallel."),
    click.option("--encoder", metavar="FOLDER",
                 help="In its place, a sentence encoder on this machine that knows both languages: of "
                      "sentence-transformers, of transformers (mean pooling), or static (model2vec).  NAME:PATH is for "
                      "the encoder NAME of another package."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Another encoder for the target side, of the same space.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Put tokens together by the rules of this language (de, zh, ...), or of two: SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Put this before every sentence, as in 'query: '."),
    click.option("--encoder-store", metavar="FOLDER",
                 help="Where vectors are kept: an interrupted run goes on there, and another one takes them.  "
                      "[default: OUTPUT.ID.vectors, with the ID of the encoder; none for standard output]"),
)  # fmt: skip

mining_search_options = sections(
    "How pairs are found",
    click.option("-k", "--neighbours", "k", type=click.IntRange(1), default=4, metavar="N",
                 help="Nearest sentences of the other side that are looked at."),
    click.option("--margin", type=click.Choice(["ratio", "distance", "absolute"]), default="ratio",
                 help="The cosine of a pair over, or minus, what both reach with their neighbours; or the cosine."),
    click.option("--retrieval", type=click.Choice(["max", "forward", "backward", "intersection"]), default="max",
                 help="Each sentence once, best pairs first; or the best target of each source, the best source of "
                      "each target, or what both say."),
    click.option("--search", type=click.Choice(["auto", "exact", "approximate"]), default="auto",
                 help="Compare all with all, or look into some of many cells, as many as 98 % of a sample need to find "
                      "their nearest; auto: exact up to 300,000 sentences a side."),
    click.option("--rerank", type=click.IntRange(0), metavar="N",
                 help="Candidates of a sentence that the classifier sees: the logarithm of the probability that they "
                      "are parallel, times --weight, is added to their margin; 0: none.  [default: 4 with --model]"),
    click.option("--weight", type=FiniteRange(0, 100), metavar="X",
                 help="Of probabilities, beside margins.  [default: what is best by --dev-gold of 0, 0.01, 0.02, 0.05, "
                      "0.1 and 0.2; without it 0.02]"),
    click.option("--block-rows", "block", type=click.IntRange(1), metavar="N",
                 help="Sentences that a thread takes at a time.  Changes speed and memory, never the output."),
    "What is written",
    click.option("--threshold", type=finite_number, metavar="X", help="Leave out pairs with lower scores."),
    click.option("--dev-gold", metavar="FILE",
                 help="Take the threshold with the best F1 on these pairs: all right ones of both texts."),
    click.option("--dev-source", metavar="FILE", help="The pairs of --dev-gold are of this text,"),
    click.option("--dev-target", metavar="FILE", help="and of this one, which are searched first, in the same way."),
    click.option("--min-cosine", type=FiniteRange(-1, 1), default=0.0, metavar="X",
                 help="Leave out pairs with a lower cosine, whatever their margin."),
    click.option("--drop-copies", is_flag=True, help="Leave out pairs of two equal sentences."),
    click.option("--ids", is_flag=True,
                 help="A name and a tab stand before each sentence, as in BUCC's files; names are written."),
    click.option("--explain", is_flag=True,
                 help="Columns more: margin, cosine, and with a classifier its probability, with and without length."),
)  # fmt: skip


def chosen_pair_encoder(given: dict[str, Any]) -> tuple[PairEncoder, EncoderRequest]:
    """The model or encoder that was asked for, taken out of the values of all options; and how texts are made ready.

    Raises:
        click.UsageError: options that do not go together, or a language that is none.
        ModelError: there is no such model or encoder, or it is refused.
    """
    from moses_compat.measures.encoder_request import EncoderRequest

    model, encoder, store = (given.pop(name) for name in ("model_folder", "encoder", "encoder_store"))
    more = {name: given.pop(name) for name in _FOR_ENCODERS}
    if (model is None) == (encoder is None):
        raise click.UsageError("name a classifier with --model, or a sentence encoder with --encoder")
    if named := [flag for name, flag in _FOR_ENCODERS.items() if encoder is None and more[name] is not None]:
        raise click.UsageError(f"{named[0]} is for a sentence encoder; name one with --encoder")
    if encoder is not None:
        for name, flag in (("rerank", "--rerank"), ("weight", "--weight")):
            if given[name]:
                raise click.UsageError(f"{flag} asks a classifier; name one with --model")
    try:
        request = EncoderRequest(encoder or model, more["target_encoder"], more["detokenise"], more["prefix"] or "",
                                 store=store)  # fmt: skip
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
    from phrasetool.pair_classifier.bitext_scores import find_pair_encoder, load_pair_model

    found = load_pair_model(model) if model is not None else find_pair_encoder(encoder, more["target_encoder"])
    return found, request


_EXAMPLE = """\b
Example:
  phrasetool mine crawled.zh crawled.en -m parallel --threshold 1.05 -o mined.tsv
  phrasetool mine crawled.zh crawled.en --encoder LaBSE --detokenise zh,en -o mined.tsv.gz
  phrasetool mine test.zh test.en -m parallel --dev-source dev.zh --dev-target dev.en --dev-gold gold.tsv -o mined.tsv
  phrasetool train classifier demo-output/corpus.zh demo-output/corpus.en -o demo-output/parallel
  phrasetool mine demo-output/corpus.zh demo-output/corpus.en -m demo-output/parallel -o demo-output/mined.tsv
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
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
    dev_source: str | None, dev_target: str | None, **given: Any,
) -> None:  # fmt: skip
    """Find sentence pairs that are translations in two texts.

    SOURCE and TARGET hold a sentence a line, in any order; most may have no translation.  Each different sentence
    becomes a vector, for each the nearest of the other side are found, and a pair is scored by its cosine over what
    both sides reach with their neighbours on average (--margin ratio): a sentence that is near to everything is a
    translation of nothing.  Then the best pairs are taken first, each sentence once.

    A pair of two equal sentences has `copy` as its last field.  Tabs within a sentence become spaces.  The texts are in
    memory, their vectors on disk.
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
        store_beside,
    )

    if dev_gold is not None and given["threshold"] is not None:
        raise click.UsageError("--threshold and --dev-gold both set the threshold; leave one out")
    if (dev_source is None) != (dev_target is None) or (dev_source is not None and dev_gold is None):
        raise click.UsageError("--dev-source and --dev-target go together, and with --dev-gold")
    inputs = [source, target, dev_source, dev_target, dev_gold]
    if inputs.count("-") > 1:
        raise click.UsageError("only one file can be standard input")
    check_outputs(inputs, [output])
    document = json_document(json_file, inputs, [output])
    check_inputs(inputs)
    encoder, request = chosen_pair_encoder(given)
    rerank = given.pop("rerank")
    rerank = (4 if encoder.model else 0) if rerank is None else rerank
    weight = given.pop("weight")
    weights = WEIGHTS if weight is None else (weight,)
    weight = MiningSettings.weight if weight is None else weight
    settings = MiningSettings(rerank=rerank, weight=weight, threads=threads, **given)
    watch, ready, store = TerminalWatch(quiet), request.ready, request.store or store_beside(output, encoder)
    texts = f"detokenise={request.detokenise or 'none'}|prefix={request.prefix!r}"

    def search(sides: tuple[str, str], place: str | None) -> MinedTexts:
        return mine_texts(*sides, encoder, ready, texts, place, settings, watch)

    with Output(output) as out:
        development = None
        if dev_source is not None and dev_target is not None:
            development = search((dev_source, dev_target), store and f"{store}.dev")
        found = search((source, target), store)
        if dev_gold is not None:
            settings = settings_from_gold(development or found, dev_gold, settings, weights)
            found = found.weighted(settings.weight, settings, watch)
            chosen = f", weight of probabilities {settings.weight:g}" if found.judged else ""
            watch.say(f"threshold {settings.threshold:.6g}{chosen}, from {dev_gold}")
        for line in mined_lines(found, settings):
            out.write_text(line)
        _tell(document, mining_statistics(found, settings, encoder.name), watch, mining_summary)


def _tell(document: Any, statistics: dict[str, Any], watch: TerminalWatch, summary: Any) -> None:
    document(statistics)
    for line in summary(statistics):
        watch.say(line)
