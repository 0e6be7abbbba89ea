"""`phrasetool tune`."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.shared.click_options import (
    check_outputs,
    chosen_search,
    decoder_model_options,
    engine_options,
    search_options,
)
from phrasetool_cli.shared.progress import ItemProgress, say

if TYPE_CHECKING:
    from moses_compat.engine.model import MosesModel
    from phrasetool.phrases import Phrases
    from phrasetool.smt.tuning.candidates import NBest, Weights
    from phrasetool.smt.tuning.loop import TuningResult, TuningRun
    from phrasetool.smt.tuning.n_best_decoder import NBestDecoder

_EXAMPLE = """\b
Example:
  phrasetool tune --moses-ini moses.ini --source dev.de --reference dev.en -o tuned.ini
  phrasetool tune --moses-ini moses.ini --source dev.de --reference dev.en --search cube --restarts 3 -o tuned.ini
  phrasetool tune --moses-ini demo-output/engine/moses.ini --source demo-output/engine/dev.zh \
-r demo-output/engine/dev.en -o t.ini
"""


@dataclass(frozen=True)
class Plan:
    """How to tune."""

    algorithm: str
    iterations: int
    restarts: int
    patience: int
    seed: int
    n_best: int


@click.command(epilog=_EXAMPLE)
@decoder_model_options
@click.option("--source", required=True, metavar="FILE", help="The development set, a tokenised sentence a line.")
@click.option("-r", "--reference", "references", multiple=True, required=True, metavar="FILE",
              help="Its translation, a line for a line; again for another one.")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="FILE", help="The moses.ini with the tuned weights.")
@click.option("--log", metavar="FILE", help="Write a line of JSON for each run of the decoder.")
@click.option("--algorithm", type=click.Choice(["mira", "pro"]), default="mira", show_default=True,
              help="Batch MIRA (Cherry and Foster) or pairwise ranking (Hopkins and May).")  # fmt: skip
@click.option("--iterations", type=click.IntRange(1), default=25, show_default=True, metavar="N",
              help="Runs of the decoder, for each start.")  # fmt: skip
@click.option("--restarts", type=click.IntRange(1), default=1, show_default=True, metavar="N",
              help="Starts: one from the ini's weights, the others from random changes of them.")  # fmt: skip
@click.option("--patience", type=click.IntRange(1), default=5, show_default=True, metavar="N",
              help="Stop after so many runs without a better BLEU.")  # fmt: skip
@click.option("--nbest", "n_best", type=click.IntRange(2), default=100, show_default=True, metavar="N",
              help="Translations of each sentence to learn from.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of everything random.")
@search_options
@engine_options
def command(
    ini: str, table: str | None, reordering_table: str | None, source: str, references: tuple[str, ...], output: str,
    log: str | None, threads: int, quiet: bool, algorithm: str, iterations: int, restarts: int, patience: int,
    n_best: int, seed: int, **search: Any,
) -> None:  # fmt: skip
    """Find weights under which the model's translations of a development set have a high BLEU.

    The decoder translates the development set, an optimiser looks for better weights among the translations found so
    far, and so on.  The weights of the run with the best BLEU (of words as they are) are written; everything else in
    the ini stays as it was.  Weights with `tuneable=false` are left alone.
    """
    from moses_compat.engine.model import MosesModel
    from moses_compat.files.streams import Output
    from moses_compat.ini.editing import moved_to, with_weights
    from moses_compat.ini.moses_ini import ENCODING
    from phrasetool.errors import DataError

    check_outputs([ini, source, *references], [output, log])
    model = MosesModel.read(ini, table, reordering_table)
    if not model.weights[model.tuneable].any():
        raise DataError(ini, "no weight to tune: all are 0, or have tuneable=false")
    model = replace(model, search=chosen_search(model, **search))
    plan = Plan(algorithm, iterations, restarts, patience, seed, n_best)
    with Output(log) if log else contextlib.nullcontext() as journal, Output(output) as out:
        decoder, truth = _load(model, source, references, plan, threads, quiet)
        result = _tune(decoder, model, truth, plan, journal, quiet)
        weights = decoder.all_weights(result.weights)
        ini_there = moved_to(model.ini, os.path.dirname(output))
        text = with_weights(ini_there, model.named_weights(weights), _comment(result, plan, references))
        out.write(text.encode(*ENCODING))
    if not quiet:
        best = result.best
        say(f"best: run {_number(best, plan)}, BLEU {best.bleu:.2f} (at the start {result.runs[0].bleu:.2f})")
        for restart, reason in enumerate(result.reasons):
            say(f"  {f'start {restart + 1} ' if plan.restarts > 1 else ''}ended: {reason}")


def _load(
    model: MosesModel, source: str, references: tuple[str, ...], plan: Plan, threads: int, quiet: bool
) -> tuple[_Watched, list[Phrases]]:
    from moses_compat.engine.model import check_sides
    from phrasetool.errors import DataError
    from phrasetool.smt.corpus.symbols import Symbols
    from phrasetool.smt.tuning.n_best_decoder import NBestDecoder
    from phrasetool_cli.shared.loading import load_translator

    text = _read(source)
    if not text:
        raise DataError(source, "the file has no lines")
    texts = {path: _read(path) for path in references}
    for path, data in texts.items():
        check_sides(len(Symbols().read_lines(text)), len(Symbols().read_lines(data)), source, path)
    translator, sentences = load_translator(model, text, threads, quiet)
    # A word that no entry of the table has cannot be matched.
    truth = [translator.table.target_symbols.read_lines(data, add=False) for data in texts.values()]
    watched = _Watched(len(sentences.sentences), quiet)
    watched.decoder = NBestDecoder(
        translator, sentences.sentences, model.search, plan.n_best, model.tuneable, threads, watched.tick
    )
    return watched, truth


def _read(path: str) -> bytes:
    from moses_compat.files.streams import Input

    with Input(path) as stream:
        return stream.read_all()


class _Watched:
    """The decoder, with a progress bar for each run."""

    decoder: NBestDecoder

    def __init__(self, sentences: int, quiet: bool) -> None:
        self._sentences, self._quiet = sentences, quiet
        self._runs = 0
        self._progress: ItemProgress | None = None

    def tick(self) -> None:
        """A sentence is done."""
        if self._progress:
            self._progress.tick()

    def all_weights(self, weights: Weights) -> Weights:
        """See `NBestDecoder`."""
        return self.decoder.all_weights(weights)

    def __call__(self, weights: Weights) -> NBest:
        self._runs += 1
        with ItemProgress(f"run {self._runs}", self._sentences, "sentence", self._quiet) as self._progress:
            return self.decoder(weights)


def _tune(
    decoder: _Watched, model: MosesModel, truth: list[Phrases], plan: Plan, journal: Any, quiet: bool
) -> TuningResult:
    from phrasetool.smt.tuning.loop import tune

    def report(run: TuningRun) -> None:
        if journal:
            values = {
                "restart": run.restart,
                "run": run.run,
                "bleu": run.bleu,
                "best": run.best,
                "new": run.new,
                "candidates": run.candidates,
                "weights": model.named_weights(decoder.all_weights(run.weights)),
            }
            journal.write_text(json.dumps(values).encode() + b"\n")
        if not quiet:
            best = ", the best so far" if run.best else ""
            say(
                f"run {_number(run, plan)}: BLEU {run.bleu:.2f}{best}; "
                f"{run.new:,} new translations, {run.candidates:,} in all"
            )

    return tune(
        decoder, truth, model.weights[model.tuneable], plan.algorithm, iterations=plan.iterations,
        restarts=plan.restarts, patience=plan.patience, seed=plan.seed, report=report,
    )  # fmt: skip


def _number(run: TuningRun, plan: Plan) -> str:
    return f"{run.run} of start {run.restart + 1}" if plan.restarts > 1 else str(run.run)


def _comment(result: TuningResult, plan: Plan, references: tuple[str, ...]) -> str:
    from phrasetool import __version__

    names = ", ".join(os.path.basename(path) for path in references)
    return (
        f"tuned by phrasetool {__version__}: {plan.algorithm}, {plan.n_best}-best, seed {plan.seed}, "
        f"restarts {plan.restarts}, best run {_number(result.best, plan)}, BLEU {result.best.bleu:.2f} on {names}"
    )
