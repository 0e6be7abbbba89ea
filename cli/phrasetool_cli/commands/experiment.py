"""`phrasetool experiment`."""

from __future__ import annotations

from dataclasses import replace

import click

from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.options import (
    PROGRAM,
    available_processors,
    chosen_runner,
    cluster_options,
    force_option,
    json_document,
    json_option,
    quiet_option,
    threads_option,
)

_EXAMPLE = """\b
Configuration:
  CONFIG is TOML; paths are relative to it, and values shown are defaults.
  Required: data.dev, data.tests; data.bitext or moses; and prune, annotate,
  ladder or neighbours.
  output = "experiment", name, seed = 1, samples = 1000
  [data.bitext]      source, target: the bitext of the table
  [data.dev]         source, target: tokenised, one sentence per line
  [data.tests.NAME]  source, target; as many as there are
  [moses]            a finished model instead of one built from the bitext:
                     ini, optionally table, reordering_table, pairs
  [build]            lm_order = 5, lm_text, max_phrase_length = 7,
                     leave_one_out = true
  [model]            folder of a model, second_folder of the other translator;
                     or encoder = "rae", dimension = 50, loss = "in-batch",
                     iterations, pretrain_iterations, min_pair_count,
                     source_text, target_text, options.NAME
  [model.text_encoder]  folder of a pretrained encoder instead of a model;
                     target_folder, detokenise, prefix
  [prune]            methods, sizes, thresholds.METHOD, combine = "product",
                     protect = "words", keep_top (10, or {"0.07" = 3} for
                     sizes up to 7 %; else as many as fit), seeds = 1
  [annotate]         dimensions, columns = ["semantic"] (also "forced",
                     "kneser-ney", "composition", "significance", or several,
                     joined by +), tuning_seeds = [1, 2, 3],
                     start = "default" (weights) or "ini", iterations = 25,
                     sizes = [1], method
  [ladder]           columns = "kneser-ney+forced+semantic", augment = true,
                     monolingual, rerank = translators, sizes = [0.1],
                     method = "composition+semantic", tuning_seeds,
                     iterations; "" or [] omits a step
  [neighbours]       phrases, count = 5, pretrain_iterations = 5
  [search]           algorithm = "cube", stack = 400, pop_limit, table_limit

\b
Example:
  phrasetool experiment examples/experiments/demo.toml -o demo-experiment
  phrasetool experiment examples/experiments/demo.toml -o demo-experiment --quick
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("-o", "--output", metavar="FOLDER", help="Output folder.  [default: from CONFIG, else "
                                                       "./experiment]")  # fmt: skip
@click.option("--quick", is_flag=True,
              help="Run fewer methods, sizes and iterations, into FOLDER/quick.")  # fmt: skip
@click.option("--seed", type=click.IntRange(1), metavar="N", help="Random seed, instead of that of CONFIG.")
@threads_option("Worker threads of all steps.")
@cluster_options
@force_option
@json_option
@quiet_option
def command(
    config: str, output: str | None, quick: bool, seed: int | None, threads: int, engine: str, address: str | None,
    force: bool, json_file: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Compare pruning and annotation methods, with a report.

    Starts from a bitext or a finished Moses model and builds what is missing, then prunes the table by many methods to
    many sizes, and scores the translations with each pruned table.  A ladder (cumulative ablation) adds columns, new
    entries and reranking one after another, and finally prunes.  FOLDER gets report.html and report.md, the tables as
    Parquet, build/ with the trained models and runs/ with the translations.  The same command continues an interrupted
    experiment, and repeats no finished work.
    """
    from moses_compat.experiments.config import read_experiment_config

    settings = replace(read_experiment_config(config, output), force=force)
    if seed is not None:
        settings = replace(settings, seed=seed)
    # Errors in the configuration are reported before the decoder and matplotlib are imported.
    from moses_compat.experiments.experiment import records_of, run_experiment
    from moses_compat.experiments.session import Cluster
    from phrasetool_cli.progress import TerminalWatch

    if quick:
        settings = settings.quick()
    document = json_document(json_file, [config])
    runner, cluster = chosen_runner(engine, address, threads), None
    if runner:
        # Commands join the cluster that was started here, too.
        cluster = Cluster(runner, ("--engine", engine, "--address", runner.address))
    frames = run_experiment(settings, PROGRAM, threads, available_processors(), TerminalWatch(quiet), cluster)
    document({"name": settings.name, "folder": settings.output, **records_of(frames)})
