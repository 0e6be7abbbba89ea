"""`phrasetool align`."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.click_options import check_outputs, quiet_option, threads_option

if TYPE_CHECKING:
    from phrasetool.smt.aligning.alignments import Alignments
    from phrasetool.smt.aligning.eflomal import AlignerSettings

_EXAMPLE = """\b
Example:
  phrasetool align train.de train.en -o aligned.gz
  phrasetool align forward.gz reverse.gz --only-symmetrise --symmetrise intersection -o aligned.gz
  phrasetool align examples/demo/corpus.zh examples/demo/corpus.en -o aligned.gz
"""

_METHODS = ["grow-diag-final-and", "grow-diag-final", "grow-diag", "grow", "intersection", "union"]


@click.command(epilog=_EXAMPLE)
@click.argument("source")
@click.argument("target")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write.  [default: standard output]")
@click.option("--symmetrise", type=click.Choice(_METHODS), default=_METHODS[0], show_default=True,
              help="How one alignment is made of those of both directions, as Moses' symal does it.")  # fmt: skip
@click.option("--forward", metavar="FILE",
              help="Keep the alignment in which a target word has at most one source word.")  # fmt: skip
@click.option("--reverse", metavar="FILE", help="Keep the alignment of the other direction.")
@click.option("--only-symmetrise", is_flag=True,
              help="SOURCE and TARGET are alignments already, forward and reverse.")  # fmt: skip
@click.option("--model", type=click.IntRange(1, 3), default=3, show_default=True,
              help="Of eflomal: 1 IBM model 1, 2 with jumps, 3 with jumps and fertility.")  # fmt: skip
@click.option("--priors", metavar="FILE", help="Counts from an earlier alignment, as eflomal-makepriors writes them.")
@click.option("--iterations", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, metavar="X",
              help="X times as many iterations as eflomal would choose.")  # fmt: skip
@click.option("--seed", type=int, metavar="N",
              help="Makes the result repeatable, with one thread a direction.  [default: 1]")  # fmt: skip
@click.option("--unseeded", is_flag=True, help="Let chance decide, and use all threads.")
@threads_option("Threads of --unseeded.")
@quiet_option
def command(
    source: str,
    target: str,
    output: str,
    symmetrise: str,
    forward: str | None,
    reverse: str | None,
    only_symmetrise: bool,
    model: int,
    priors: str | None,
    iterations: float,
    seed: int | None,
    unseeded: bool,
    threads: int,
    quiet: bool,
) -> None:
    """Align the words of SOURCE and TARGET, one tokenised sentence a line, with eflomal.

    The result has a line of points `source-target`, both from 0, for every sentence pair.
    """
    from moses_compat.files.streams import Output

    if only_symmetrise and (forward or reverse or priors):
        raise click.UsageError("--only-symmetrise aligns nothing; leave out --forward, --reverse and --priors")
    if unseeded and seed is not None:
        raise click.UsageError("give --seed or --unseeded, not both")
    check_outputs([source, target] + ([priors] if priors else []), [output, forward, reverse])
    if only_symmetrise:
        directions = _read_directions(source, target)
    else:
        from phrasetool.smt.aligning.eflomal import AlignerSettings

        start = None if unseeded else 1 if seed is None else seed
        settings = AlignerSettings(model, relative_iterations=iterations, seed=start, threads=threads)
        directions = _align(source, target, settings, priors, seed is not None, quiet)
    _write(directions, symmetrise, output, forward, reverse, quiet, Output)


def _read_directions(forward: str, reverse: str) -> tuple[Alignments, Alignments]:
    from moses_compat.corpora.alignments import read_alignments
    from moses_compat.corpora.bitext import check_line_counts
    from moses_compat.files.streams import STANDARD
    from phrasetool.errors import PhraseToolError

    if forward == reverse == STANDARD:
        raise PhraseToolError("standard input: cannot be both directions")
    first, second = read_alignments(forward), read_alignments(reverse)
    check_line_counts(forward, len(first), reverse, len(second))
    return first, second


def _align(
    source: str, target: str, settings: AlignerSettings, priors: str | None, seed_matters: bool, quiet: bool
) -> tuple[Alignments, Alignments]:
    from dataclasses import replace

    from moses_compat.corpora.bitext import read_sentence_pairs
    from moses_compat.engine.eflomal_priors import read_priors
    from phrasetool.errors import PhraseToolError
    from phrasetool.smt.aligning.eflomal import MAX_SENTENCE_WORDS, align, can_be_seeded
    from phrasetool_cli.shared.progress import say

    if priors:
        settings = replace(settings, priors=read_priors(priors))
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(source, target)
    if settings.seed is not None and not can_be_seeded():
        if seed_matters:
            raise PhraseToolError("eflomal cannot be seeded on this system; leave out --seed")
        say("eflomal cannot be seeded on this system: the alignment will differ a little from run to run")
    if not quiet:
        say(f"aligning {len(sources):,} sentence pairs in both directions, eflomal model {settings.model}")
        long = int(((sources.lengths > MAX_SENTENCE_WORDS) | (targets.lengths > MAX_SENTENCE_WORDS)).sum())
        if long:
            say(f"{long:,} pairs have more than {MAX_SENTENCE_WORDS:,} words on a side and stay without points")
    began = time.monotonic()
    directions = align(sources, targets, source_symbols, target_symbols, settings)
    if not quiet:
        say(f"aligned after {time.monotonic() - began:.0f} s")
    return directions


def _write(
    directions: tuple[Alignments, Alignments],
    method: str,
    output: str,
    forward: str | None,
    reverse: str | None,
    quiet: bool,
    output_kind: type,
) -> None:
    from moses_compat.corpora.alignments import format_alignments
    from phrasetool.smt.aligning.alignments import symmetrise
    from phrasetool_cli.shared.progress import say

    both = symmetrise(*directions, method)
    wanted = [
        (path, which) for path, which in zip((forward, reverse, output), (*directions, both), strict=True) if path
    ]
    with contextlib.ExitStack() as stack:
        # All files are complete before the first one appears.
        files = [(stack.enter_context(output_kind(path)), which) for path, which in reversed(wanted)]
        for file, which in files:
            file.write_text(format_alignments(which))
    if not quiet:
        points = [len(alignments.source) for alignments in (*directions, both)]
        say(f"{points[0]:,} points forward, {points[1]:,} reverse, {points[2]:,} after {method}")
