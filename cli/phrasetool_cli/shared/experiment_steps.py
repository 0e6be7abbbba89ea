"""What an experiment needs and does not have: which steps make it, from which files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phrasetool_cli.shared.experiment_build import Builder, Step

if TYPE_CHECKING:
    from phrasetool.experiments.settings import ExperimentConfig


@dataclass
class Built:
    """Where everything is.

    Attributes:
        ini: a moses.ini with tuned weights.
        table, reordering_table: instead of those the ini names, if the configuration says so.
        pairs: phrase pairs, empty if nothing needs them.
        models: model folders, by dimension.
        scores: saved similarities, by dimension.
        dimension: of the model that prunes.
        forced_pairs: pairs of leave-one-out forced decoding, if their counts are needed.
        unsupervised: the folder of the model that was only pre-trained, if neighbours are asked for and the encoder
            can be trained alone.
        commands: the command line of each step.
        seconds: how long each took.
    """

    ini: str
    table: str | None = None
    reordering_table: str | None = None
    pairs: str = ""
    models: dict[int, str] = field(default_factory=dict)
    scores: dict[int, str] = field(default_factory=dict)
    dimension: int = 0
    forced_pairs: str | None = None
    unsupervised: str | None = None
    commands: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def build(config: ExperimentConfig, dev: tuple[str, str], builder: Builder) -> Built:
    """Make what the experiment needs.

    Args:
        config: what there is, and what is wanted.
        dev: files of the development set to tune on.
        builder: runs the commands.
    """
    steps: list[Step] = []
    built = _decoder(config, dev, builder, steps)
    if config.encodes:
        _encoders(config, built, builder, steps)
    if config.counts_uses:
        _uses(config, built, builder, steps)
    built.commands, built.seconds = builder.run(steps)
    if not config.moses:
        # What the ini names, so that commands can be told.
        built.table = builder.path("table.gz")
    return built


def _decoder(config: ExperimentConfig, dev: tuple[str, str], builder: Builder, steps: list[Step]) -> Built:
    """The steps from a bitext to a tuned model."""
    if config.moses:
        return Built(config.moses.ini, config.moses.table, config.moses.reordering_table)
    assert config.bitext is not None
    path, seed = builder.path, str(config.seed)
    sides = (config.bitext.source, config.bitext.target)
    lm_text = (config.bitext.target, *config.build.lm_text)
    search = _search_options(config)
    steps += [
        Step("align", ("align", *sides, "-o", path("aligned.gz"), "--seed", seed), ("aligned.gz",), threads=False),
        Step(
            "extract",
            ("extract", *sides, path("aligned.gz"), "-o", path("table.gz"), "--reordering-table",
             path("reordering.gz"), "--max-length", str(config.build.max_phrase_length)),
            ("table.gz", "reordering.gz"), ("align",),
        ),
        Step(
            "lm", ("lm", *lm_text, "--order", str(config.build.lm_order), "-o", path("lm.arpa.gz")), ("lm.arpa.gz",),
            threads=False,
        ),
        Step(
            "moses-ini",
            ("moses-ini", "--table", path("table.gz"), "--reordering-table", path("reordering.gz"), "--lm",
             path("lm.arpa.gz"), "-o", path("start.ini")),
            ("start.ini",), ("extract", "lm"), threads=False, anchored=True,
        ),
        Step(
            "tune",
            ("tune", "--moses-ini", path("start.ini"), "--source", dev[0], "--reference", dev[1], "--seed", seed,
             *search, "-o", path("moses.ini")),
            ("moses.ini",), ("moses-ini",),
        ),
    ]  # fmt: skip
    # `lm` can run beside `align` only if it stands before what waits for that.
    steps.sort(key=lambda step: step.name != "lm")
    return Built(path("moses.ini"))


def _search_options(config: ExperimentConfig) -> list[str]:
    search = config.search
    given = {"--search": search.algorithm, "--stack": search.stack, "--pop-limit": search.pop_limit,
             "--table-limit": search.table_limit}  # fmt: skip
    return [part for option, value in given.items() if value is not None for part in (option, str(value))]


def _encoders(config: ExperimentConfig, built: Built, builder: Builder, steps: list[Step]) -> None:
    """The steps from a tuned model to pairs, models of phrases, and saved similarities."""
    from moses_compat.engine.model import MosesModel
    from phrasetool.encoders import encoder_kind
    from phrasetool.pruning.measures import SIMILARITIES

    own = config.model.folder
    built.dimension = _dimension_of(own) if own else config.model.dimension
    dimensions = {built.dimension} if SIMILARITIES in config.needs or config.neighbours else set()
    if config.annotate and "semantic" in config.annotate.measured:
        dimensions |= set(config.annotate.dimensions)
    trained = dimensions - ({built.dimension} if own else set())
    table = builder.path("table.gz")
    if config.moses:
        table = built.table or MosesModel.read(config.moses.ini).table
    built.pairs, before = _pairs(config, built, builder, steps, table, bool(trained or config.neighbours))
    if config.neighbours and encoder_kind(config.model.encoder).reconstructs:
        built.unsupervised = builder.path("model-rae")
        iterations = ("--iterations", "0", "--pretrain-iterations", str(config.neighbours.pretrain_iterations))
        steps.append(_train_step(config, "rae", built.pairs, built.dimension, iterations, before, builder))
    made = ("extract",) if not config.moses else ()
    for dimension in sorted(dimensions):
        model = own if own and dimension == built.dimension else builder.path(f"model-n{dimension}")
        built.models[dimension] = model
        built.scores[dimension] = builder.path(f"scores-n{dimension}.parquet")
        if dimension in trained:
            passes = tuple(
                part
                for option, value in (
                    ("--iterations", config.model.iterations),
                    ("--pretrain-iterations", config.model.pretrain_iterations),
                )
                if value is not None
                for part in (option, str(value))
            )
            steps.append(_train_step(config, f"n{dimension}", built.pairs, dimension, passes, before, builder))
        steps.append(
            Step(
                f"scores-n{dimension}",
                ("prune", table, "-m", model, "--scores", built.scores[dimension], "--sweep", "0:0:1"),
                (os.path.basename(built.scores[dimension]),),
                (*made, *((f"train-n{dimension}",) if dimension in trained else ())),
            )
        )


def _dimension_of(folder: str) -> int:
    from phrasetool.models.storage import load_bilingual_model

    return load_bilingual_model(folder).dimension


def _pairs(
    config: ExperimentConfig, built: Built, builder: Builder, steps: list[Step], table: str, needed: bool
) -> tuple[str, tuple[str, ...]]:
    """Where the phrase pairs come from, and the steps after which they are there."""
    if config.moses and config.moses.pairs:
        return config.moses.pairs, ()
    if config.bitext is None or not needed:
        return table, ("extract",) if not config.moses else ()
    options = ("--leave-one-out",) if config.build.leave_one_out else ()
    step = _force_decode(config, built, builder, "force-decode", "pairs.gz", options)
    steps.append(step)
    return builder.path("pairs.gz"), (step.name,)


def _uses(config: ExperimentConfig, built: Built, builder: Builder, steps: list[Step]) -> None:
    """The step that counts how often entries are used, unless the training pairs are such counts."""
    if config.build.leave_one_out and any("pairs.gz" in step.outputs for step in steps):
        built.forced_pairs = builder.path("pairs.gz")
        return
    built.forced_pairs = builder.path("forced.gz")
    steps.append(_force_decode(config, built, builder, "count-uses", "forced.gz", ("--leave-one-out",)))


def _force_decode(
    config: ExperimentConfig, built: Built, builder: Builder, name: str, output: str, options: tuple[str, ...]
) -> Step:
    assert config.bitext is not None
    instead = [part for option, value in (("--table", built.table), ("--reordering-table", built.reordering_table))
               if value for part in (option, value)]  # fmt: skip
    return Step(
        name,
        ("force-decode", "--moses-ini", built.ini, *instead, config.bitext.source, config.bitext.target, *options,
         "-o", builder.path(output)),
        (output,), () if config.moses else ("tune",),
    )  # fmt: skip


def _train_step(
    config: ExperimentConfig, name: str, pairs: str, dimension: int, iterations: tuple[str, ...],
    after: tuple[str, ...], builder: Builder,
) -> Step:  # fmt: skip
    model = config.model
    folder = builder.path(f"model-{name}")
    texts = [part for option, paths in (("--source-text", model.source_text), ("--target-text", model.target_text))
             for path in paths for part in (option, path)]  # fmt: skip
    options = [part for key, value in model.options.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    # What is the default goes unsaid, so that a model trained before there was a choice is known again.
    encoder = ("--encoder", model.encoder) if model.encoder != type(model).encoder else ()
    count = ("--min-pair-count", f"{model.min_pair_count:g}") if model.min_pair_count else ()
    return Step(
        f"train-{name}",
        ("train", pairs, "-o", folder, "--dimension", str(dimension), "--loss", model.loss, "--seed", str(config.seed),
         "--device", "cpu", *encoder, *iterations, *count, *texts, *options),
        (os.path.join(f"model-{name}", "config.json"),), after, resumes=folder,
    )  # fmt: skip
