"""`phrasetool force-decode`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs, check_outputs, refuse_two_standard_inputs
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
    resume_option,
    standard_output,
)
from phrasetool_cli.progress import ItemProgress, TerminalWatch, say
from phrasetool_cli.summaries import tell_derivations

if TYPE_CHECKING:
    from moses_compat.files.finished_work import FinishedWork
    from phrasetool.smt.decoder.forced import ForcedDerivation

_EXAMPLE = """\b
Example:
  phrasetool force-decode --moses-ini moses.ini train.de train.en -o pairs.gz
  phrasetool train pairs.gz -o phrasetool-model
  phrasetool force-decode --moses-ini moses.ini train.de train.en --leave-one-out -o forced-pairs.gz
  phrasetool annotate phrase-table.gz --forced-pairs forced-pairs.gz
  phrasetool force-decode --moses-ini demo-output/engine/moses.ini demo-output/engine/train.{zh,en} -o pairs.gz
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    None,
    decoder_model_options,
    "Output",
    click.option("-o", "--output", required=True, metavar="FILE", callback=standard_output,
                 help="Output: `source ||| target ||| count`."),
    click.option("--leave-one-out", is_flag=True,
                 help="Score entries as if the sentence pair had not been extracted from."),
    click.option("--partial", is_flag=True,
                 help="Use the best partial derivation where no full one exists."),
    json_option,
    resume_option,
    cluster_options,
    "Search",
    click.option("--stack", "stack_size", type=click.IntRange(1), default=500, metavar="N",
                 help="Keep N hypotheses for each number of words."),
    click.option("--distortion-limit", type=int, metavar="N",
                 help="Maximum words of a jump; -1: 63.  [default: ini]"),
    None,
    force_option,
    engine_options,
)  # fmt: skip
def command(
    source: str, target: str, ini: str, table: str | None, reordering_table: str | None, output: str,
    leave_one_out: bool, partial: bool, stack_size: int, distortion_limit: int | None, threads: int, quiet: bool,
    json_file: str | None, resume: bool, force: bool, engine: str, address: str | None,
) -> None:  # fmt: skip
    """Find the phrase pairs that translate a bitext.

    Decodes every sentence of SOURCE to its translation in TARGET, and writes the phrase pairs used, with counts.
    `phrasetool train` learns from these pairs: a table holds all extracted pairs, a derivation only those that explain
    a sentence.  With --leave-one-out, counts show how often an entry explains sentences that it was not extracted from;
    `phrasetool annotate --forced-pairs` estimates probabilities from them.

    A partial derivation (--partial) leaves out spans of source words together with spans of target words, up to seven
    words of each.  If only one side has words left over, an entry that fits is left out with them.
    """
    from moses_compat.corpora.bitexts import check_two_sides
    from moses_compat.corpora.texts import read_sentences, surface_words
    from moses_compat.engine.decoder_tables import InputPhrases, used_pairs
    from moses_compat.engine.development_check import report_coverage, warn_of_long_jumps
    from moses_compat.engine.model import MosesModel, check_sides
    from moses_compat.files.finished_work import digest_of_bytes
    from moses_compat.files.paths import display_name
    from moses_compat.files.streams import Input, Output
    from phrasetool.errors import PhraseToolError
    from phrasetool.pipeline import run
    from phrasetool.smt.corpus.symbols import Symbols
    from phrasetool.smt.decoder.forced import REACHED, REASONS, ForcedDecoder, ForcedOptions, count_pairs
    from phrasetool.watch import raise_or_warn

    refuse_two_standard_inputs([source, target, ini, table, reordering_table])
    resume = checked_resume(resume, source, output)
    model = MosesModel.read(ini, table, reordering_table)
    check_outputs([source, target, *model.kept_paths], [output])
    check_two_sides(source, target)
    check_inputs([source, target])
    # The language model of the ini is not used.
    model.check_files(model.used_tables)
    document = json_document(json_file, [source, target, *model.kept_paths], [output])
    limit = model.search.distortion_limit if distortion_limit is None else distortion_limit
    text = InputPhrases.of(surface_words(read_sentences(source), display_name(source)), model.longest)
    symbols = Symbols()
    with Input(target) as stream:
        references = symbols.read_lines(stream.read_all())
    check_sides(len(text.sentences), len(references), source, target)
    with TerminalWatch(quiet).reading(model.tables) as progress:
        entries = model.load_table(text, symbols, threads, progress)
    try:
        options = ForcedOptions(stack_size, limit, leave_one_out, partial)
        decoder = ForcedDecoder(entries, model.features, model.weights, options)
    except ValueError as error:
        raise PhraseToolError(f"{model.shown_tables}: {error}") from error
    watch = TerminalWatch(quiet)
    model.report_reading(entries.targets, symbols, watch)
    report_coverage(entries, text.sentences, source, model.shown_tables, watch, force)
    warn_of_long_jumps(text.sentences, limit, source, watch)
    by = chosen_runner(engine, address, threads)
    outcomes: Counter[int] = Counter()

    def watched(finished: FinishedWork | None) -> Iterator[ForcedDerivation]:
        def digest(chunk: range) -> bytes:
            return digest_of_bytes(*(side[i] for side in (text.sentences, references) for i in chunk))

        runner = functools.partial(finished.run, "derivations", digest, runner=by) if finished else by or run
        with ItemProgress("forced decoding", len(references), "sentence", quiet) as progress:
            for derivation in decoder.decode_all(text.sentences, references, threads, runner):
                outcomes[derivation.outcome] += 1
                progress.tick()
                yield derivation

    files = [target, ini, *filter(None, model.tables.values())]
    with (
        finished_work(resume, output, source, files, vars(options), TerminalWatch(quiet)) as finished,
        Output(output) as out,
    ):
        uses = count_pairs(watched(finished), entries)
        if outcomes and not uses.any():
            (reason, count), *_ = ((REASONS[outcome], n) for outcome, n in outcomes.most_common())
            message = (
                f"{source}: none of its {len(references):,} sentences can be decoded to its translation "
                f"({count:,}: {reason}); expected the bitext of {model.shown_tables}"
            )
            raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)
        out.write_text(used_pairs(entries, uses))
    document(
        {
            "sentences": len(references), "reached": outcomes[REACHED], "pairs": int((uses > 0).sum()),
            "uses": int(uses.sum()), "not_reached": {REASONS[o]: n for o, n in outcomes.items() if o != REACHED},
        }
    )  # fmt: skip
    if not quiet:
        tell_derivations(outcomes, limit)
        say(f"{int((uses > 0).sum()):,} distinct phrase pairs, used {int(uses.sum()):,} times, written to {output}")
