"""`phrasetool mine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.json_output import json_document, json_option
from phrasetool_cli.options import engine_options, output_option
from phrasetool_cli.progress import TerminalWatch
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.similarity.mining_options import (
    chosen_pair_encoder,
    mining_encoder_options,
    mining_search_options,
)

if TYPE_CHECKING:
    from moses_compat.jobs.mine import MinedTexts

_EXAMPLE = """\b
Example:
  phrasetool mine crawled.zh crawled.en -m parallel --threshold 1.05 -o mined.tsv
  phrasetool mine crawled.zh crawled.en --encoder LaBSE --detokenise zh,en -o mined.tsv.gz
  phrasetool mine test.zh test.en -m parallel --dev-source dev.zh --dev-target dev.en --dev-gold gold.tsv -o mined.tsv
  phrasetool train --model parallel demo-output/corpus.zh demo-output/corpus.en -o demo-output/parallel
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
