"""`phrasetool align`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs, check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, output_option, quiet_option, threads_option
from phrasetool_cli.parameter_types import FiniteRange
from phrasetool_cli.progress import TerminalWatch, say

if TYPE_CHECKING:
    from phrasetool.smt.aligning.alignments import Alignments
    from phrasetool.smt.aligning.eflomal import AlignerSettings

_RENAMED = {"--model": "--aligner-model", "--iterations": "--iteration-factor"}
_EXAMPLE = """\b
Example:
  phrasetool align train.de train.en -o aligned.gz
  phrasetool align forward.gz reverse.gz --only-symmetrise --symmetrise intersection -o aligned.gz
  phrasetool align demo-output/corpus.zh demo-output/corpus.en -o aligned.gz
"""

_METHODS = ["grow-diag-final-and", "grow-diag-final", "grow-diag", "grow", "intersection", "union"]


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=(("seed", "unseeded"),), epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@sections(
    "Output",
    output_option(),
    click.option("--forward", metavar="FILE",
                 help="Write the source-to-target alignment here."),
    click.option("--reverse", metavar="FILE", help="Write the target-to-source alignment here."),
    "Symmetrisation",
    click.option("--symmetrise", type=click.Choice(_METHODS), default=_METHODS[0], metavar="METHOD",
                 help=f"Symmetrisation as in Moses' symal: {', '.join(_METHODS)}."),
    click.option("--only-symmetrise", is_flag=True,
                 help="Symmetrise SOURCE and TARGET, which are alignments already."),
    "Alignment",
    click.option("--aligner-model", "model", type=click.IntRange(1, 3), default=3,
                 help="eflomal model: 1 IBM model 1, 2 with jumps, 3 with fertility, too."),
    click.option("--priors", metavar="FILE",
                 help="Priors written by eflomal-makepriors."),
    click.option("--iteration-factor", "iterations", type=FiniteRange(0, 1000, min_open=True), default=1.0, metavar="X",
                 help="Multiply the number of iterations that eflomal chooses."),
    click.option("--seed", type=int, metavar="N",
                 help="Random seed; one thread for each direction.  [default: 1]"),
    click.option("--unseeded", is_flag=True, help="Use all threads; results vary from run to run."),
    threads_option("Threads of --unseeded."),
    None,
    json_option,
    quiet_option,
)  # fmt: skip
def command(
    source: str, target: str, output: str, symmetrise: str, forward: str | None, reverse: str | None,
    only_symmetrise: bool, model: int, priors: str | None, iterations: float, seed: int | None, unseeded: bool,
    threads: int, quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Align the words of a bitext.

    Aligns SOURCE and TARGET, one tokenised sentence per line, in both directions with eflomal, and symmetrises the two
    alignments.  The output has a line of points `source-target`, both from 0, for each sentence pair.
    """
    from moses_compat.corpora.bitexts import read_directions, write_alignments
    from phrasetool.smt.aligning.alignments import symmetrise as symmetrised
    from phrasetool.smt.aligning.eflomal import AlignerSettings

    if only_symmetrise:
        names = ("forward", "reverse", "priors", "model", "iterations", "seed", "unseeded", "threads")
        refuse_unused(dict.fromkeys(names, "aligning, and --only-symmetrise aligns nothing"))
    if unseeded and seed is not None:
        raise click.UsageError("give --seed or --unseeded, not both")
    check_outputs([source, target, priors], [output, forward, reverse])
    check_inputs([source, target, priors])
    document = json_document(json_file, [source, target, priors], [output, forward, reverse])
    watch = TerminalWatch(quiet)
    if only_symmetrise:
        directions = read_directions(source, target)
    else:
        start = None if unseeded else 1 if seed is None else seed
        settings = AlignerSettings(model, relative_iterations=iterations, seed=start, threads=threads)
        directions = _align(source, target, settings, priors, seed is not None, watch)
    both = symmetrised(*directions, symmetrise)
    files = zip((forward, reverse, output), (*directions, both), strict=True)
    write_alignments([(path, alignments) for path, alignments in files if path])
    counts = [len(alignments.source) for alignments in (*directions, both)]
    document({"symmetrisation": symmetrise, **dict(zip(("forward", "reverse", "points"), counts, strict=True))})
    points = [f"{count:,}" for count in counts]
    watch.say(f"{points[0]} points forward, {points[1]} reverse, {points[2]} after {symmetrise}")


def _align(
    source: str, target: str, settings: AlignerSettings, priors: str | None, seed_matters: bool,
    watch: TerminalWatch,
) -> tuple[Alignments, Alignments]:  # fmt: skip
    """Align in both directions."""
    from moses_compat.corpora.bitexts import check_use, read_priors, read_sentence_pairs, warn_of_copies
    from phrasetool.errors import PhraseToolError
    from phrasetool.smt.aligning.eflomal import MAX_SENTENCE_WORDS, PriorUse, align, can_be_seeded

    if priors:
        settings = replace(settings, priors=read_priors(priors))
    sources, targets, source_symbols, target_symbols = bitext = read_sentence_pairs(source, target)
    if priors and settings.priors:
        use = PriorUse.of(settings.priors, source_symbols.words, target_symbols.words, settings.model)
        watch.say(check_use(use, priors, source, target))
    warn_of_copies((source, target), bitext, watch)
    if settings.seed is not None and not can_be_seeded():
        if seed_matters:
            raise PhraseToolError("eflomal cannot be seeded on this system; leave out --seed")
        say("eflomal cannot be seeded on this system: the alignment will differ a little from run to run")
    watch.say(f"aligning {len(sources):,} sentence pairs in both directions, eflomal model {settings.model}")
    if long := int(((sources.lengths > MAX_SENTENCE_WORDS) | (targets.lengths > MAX_SENTENCE_WORDS)).sum()):
        watch.say(f"{long:,} pairs have more than {MAX_SENTENCE_WORDS:,} words on a side and are not aligned")
    began = time.monotonic()
    directions = align(sources, targets, source_symbols, target_symbols, settings)
    watch.say(f"aligned after {time.monotonic() - began:.0f} s")
    return directions
