"""`phrasetool tune`."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_inputs, check_outputs, refuse_two_standard_inputs, refuse_unused_limits
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.commands.decode import load_translator
from phrasetool_cli.options import (
    checked_relative,
    checked_resume,
    chosen_runner,
    cluster_options,
    decoder_model_options,
    dev_option,
    engine_options,
    finished_work,
    force_option,
    former_option,
    hint_at_dev,
    json_document,
    json_option,
    relative_option,
    resume_option,
    search_options,
    standard_output,
)
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.jobs.tune import NamedWeights
    from phrasetool.smt.tuning.loop import TuningRun

_RENAMED = {"--nbest": "--n-best-size"}
_EXAMPLE = """\b
Example:
  phrasetool tune --moses-ini moses.ini --dev dev.de dev.en -o tuned.ini
  phrasetool tune --moses-ini moses.ini --dev dev.de dev.en --search cube --restarts 3 -o tuned.ini
  phrasetool tune --moses-ini demo-output/engine/moses.ini --dev demo-output/engine/dev.zh \
demo-output/engine/dev.en -o t.ini
"""


@click.command(cls=SectionedCommand, renamed=_RENAMED, exclusive=(("development", "source"),), epilog=_EXAMPLE)
@sections(
    None,
    decoder_model_options,
    "Development set",
    dev_option("Development set: source and reference, one tokenised sentence per line.  [required]"),
    click.option("-r", "--reference", "references", multiple=True, metavar="FILE",
                 help="Further reference translation; repeatable."),
    former_option("--source"),
    "Output",
    click.option("-o", "--output", required=True, metavar="FILE", callback=standard_output,
                 help="moses.ini with the tuned weights."),
    click.option("--log", metavar="FILE", help="Write a line of JSON for each run of the decoder."),
    json_option,
    resume_option,
    relative_option,
    "Tuning",
    click.option("--algorithm", "optimiser", type=click.Choice(["mira", "pro"]), default="mira",
                 help="Batch MIRA, or pairwise ranking (PRO)."),
    click.option("--iterations", type=click.IntRange(1), default=25, metavar="N",
                 help="Maximum runs of the decoder for each start."),
    click.option("--restarts", type=click.IntRange(1), default=1, metavar="N",
                 help="Number of starts, the first from the weights of the ini."),
    click.option("--patience", type=click.IntRange(1), default=5, metavar="N",
                 help="Stop after N runs without a better BLEU."),
    click.option("--n-best-size", "n_best", type=click.IntRange(2), default=100, metavar="N",
                 help="Translations of each sentence to learn from."),
    click.option("--seed", type=click.IntRange(0), default=1, help="Random seed."),
    None,
    search_options,
    force_option,
    cluster_options,
    engine_options,
)  # fmt: skip
def command(
    ini: str, table: str | None, reordering_table: str | None, development: tuple[str, str] | None,
    source: str | None, references: tuple[str, ...], output: str,
    log: str | None, threads: int, quiet: bool, optimiser: str, iterations: int, restarts: int, patience: int,
    n_best: int, seed: int, json_file: str | None, relative: bool, force: bool, resume: bool,
    engine: str, address: str | None, **search: Any,
) -> None:  # fmt: skip
    """Tune the weights of a model on a development set.

    The decoder translates the development set, an optimiser searches for weights with a higher BLEU on all translations
    so far, and so on.  The weights of the run with the best BLEU are written; everything else in the ini is unchanged.
    Weights with `tuneable=false` are not tuned; the others are tuned relative to them.

    A development set that is unrelated to the model is refused: out of vocabulary, in another form (lower-cased,
    tokenised), or with references that are unrelated or shifted by up to 5 lines.  Unrelated references of 10 lines
    or more are accepted in 1 % of the cases.

    """
    from moses_compat.engine.development_check import DevelopmentCheck
    from moses_compat.engine.model import MosesModel
    from moses_compat.files.streams import Output
    from moses_compat.ini.editing import with_relative_paths
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.ini.reading import parse_moses_ini
    from moses_compat.jobs.tune import TuningOptions, checked_start, read_development_set, tune_model, tuned_ini
    from phrasetool.errors import DataError

    source, references = _development_set(development, source, references)
    refuse_two_standard_inputs([source, *references, ini, table, reordering_table])
    resume = checked_resume(resume, source, output)
    relative = checked_relative(relative, output)
    model = MosesModel.read(ini, table, reordering_table)
    check_outputs([source, *references, *model.kept_paths], [output, log])
    document = json_document(json_file, [source, *references, *model.kept_paths], [output, log])
    check_inputs([source, *references])
    model.check_files()
    if not model.weights[model.tuneable].any():
        raise DataError(ini, "no weight to tune: all are 0, or have tuneable=false")
    model = model.searching(**search)
    refuse_unused_limits(model.search.algorithm == "cube")
    options = TuningOptions(optimiser, iterations, restarts, patience, seed, n_best)
    watch = TerminalWatch(quiet)
    depends = {**vars(options), "search": model.search}
    with (
        finished_work(resume, output, source, [ini, *references, *model.paths], depends, watch) as finished,
        Output(log) if log else contextlib.nullcontext() as journal,
        Output(output) as out,
    ):
        text, truth = read_development_set(source, references)
        checks = DevelopmentCheck(model, source, references, force, watch)
        checks.texts(text, truth)
        translator, sentences = load_translator(model, text, threads, quiet)
        check = checked_start(checks, translator, sentences, text, truth)

        def report(run: TuningRun, weights: NamedWeights) -> None:
            if journal:
                journal.write_text(_record(run, weights))
            watch.say(f"run {options.label(run)}: BLEU {run.bleu:.2f}{', the best so far' if run.best else ''}; "
                 f"{run.new:,} new translations, {run.candidates:,} in all")  # fmt: skip

        result, weights = tune_model(
            model, translator, sentences, truth, options, threads, check=check, watch=watch, report=report,
            finished=finished, runner=chosen_runner(engine, address, threads),
        )  # fmt: skip
        tuned = tuned_ini(model, result, weights, options, references, output)
        if relative:
            tuned = with_relative_paths(parse_moses_ini(output, tuned))
        out.write_text(tuned.encode(*ENCODING))
    document({
        "bleu": result.best.bleu, "bleu_at_start": result.runs[0].bleu, "weights": weights,
        "runs": [{**vars(run), "weights": run.weights.tolist()} for run in result.runs], "ended": result.reasons,
    })  # fmt: skip
    best, start = result.best, result.runs[0]
    unchanged = "; no run was better than the start, whose weights are kept" if best is start else ""
    watch.say(f"best: run {options.label(best)}, BLEU {best.bleu:.2f} (at the start {start.bleu:.2f}){unchanged}")
    for restart, reason in enumerate(result.reasons):
        watch.say(f"  {f'start {restart + 1} ' if restarts > 1 else ''}ended: {reason}")


def _development_set(
    development: tuple[str, str] | None, source: str | None, references: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return source and references, from `--dev` or the former `--source`.

    Raises:
        click.UsageError: there is no development set, or there are two.
    """
    if development is not None:
        if source is not None:
            raise click.UsageError("--dev and --source both name a development set; give --dev")
        return development[0], (development[1], *references)
    if source is None or not references:
        raise click.UsageError("expected a development set: --dev SOURCE REFERENCE")
    hint_at_dev("--source and --reference")
    return source, references


def _record(run: TuningRun, weights: NamedWeights) -> bytes:
    """Return a run as a line of JSON."""
    values = {
        "restart": run.restart, "run": run.run, "bleu": run.bleu, "best": run.best, "new": run.new,
        "candidates": run.candidates, "weights": weights,
    }  # fmt: skip
    return json.dumps(values).encode() + b"\n"
