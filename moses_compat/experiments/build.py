"""The commands that make the missing files of an experiment, with their inputs and order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build_commands import FORCE, BuildCommand, BuildStore, Chain
from moses_compat.experiments.settings import ExperimentConfig, TextPair
from moses_compat.measures.model_sources import dimension_of_model, gives_probabilities
from phrasetool.phrase_encoder.encoder import encoder_kind
from phrasetool.pruning.measures import LOSSES, MODEL_SCORES, SIGNIFICANCE, SIMILARITIES, USES
from phrasetool.pruning.methods import Method

# Function that returns the path of a file in the build folder.
Place = Callable[[str], str]
# The commands that make a file; empty for a file that exists before the experiment.
Makers = tuple[BuildCommand, ...]


@dataclass
class BuildPlan:
    """Paths of all files of an experiment, and the commands that make them.

    Attributes:
        ini: a moses.ini with tuned weights.
        table, reordering_table: files that replace those of the ini; None keeps them.
        pairs: file of the phrase pairs, empty if nothing needs them.
        models: folders of models of phrase pairs, by dimension.
        scores: files of saved similarities, by dimension.
        dimension: dimension of the model that is used for pruning; 0 if it is not a model of phrase pairs.
        probable: whether that model's similarities are probabilities, like those of a translator or a classifier.
        forced_pairs: file of the pairs of leave-one-out forced decoding, if their counts are needed.
        similarity_options: options that name the source of the similarities that are used for pruning.
        unsupervised: folder of the model that was only pre-trained, if the configuration has neighbours and the
            encoder can be trained without translations.
        phases: commands to run, phase by phase.  The chains of a phase can run in parallel.
    """

    ini: str
    table: str | None = None
    reordering_table: str | None = None
    pairs: str = ""
    models: dict[int, str] = field(default_factory=dict)
    scores: dict[int, str] = field(default_factory=dict)
    dimension: int = 0
    probable: bool = False
    forced_pairs: str | None = None
    similarity_options: Sequence[str] = ()
    unsupervised: str | None = None
    phases: list[list[Chain]] = field(default_factory=list)


def open_build_store(config: ExperimentConfig, folder: str) -> BuildStore:
    """Return the store of an experiment's commands, which run again if a file of its given moses.ini changes.

    Args:
        config: the experiment.
        folder: the build folder.
    """
    moses = config.moses
    if moses is None:
        return BuildStore(folder)
    return BuildStore(folder, {moses.ini: MosesModel.read(moses.ini, moses.table, moses.reordering_table).paths})


def plan_build(config: ExperimentConfig, dev: TextPair, place: Place) -> BuildPlan:
    """Plan the commands that make a decoder, training pairs, models of phrases, and counts in forced decoding.

    Forced decoding that makes training pairs runs alone, because training waits for it; forced decoding that only
    counts uses runs in parallel with training.

    Args:
        config: the experiment.
        dev: the development set to tune on.
        place: returns the path of a file in the build folder.
    """
    extracted: Makers = ()
    tuned: Makers = ()
    if config.moses:
        plan = BuildPlan(config.moses.ini, config.moses.table, config.moses.reordering_table)
    else:
        plan = BuildPlan(place("moses.ini"), place("table.gz"))
        extracted, tuned = _plan_decoder(config, dev, place, plan)
    last: list[Chain] = []
    if config.encodes:
        last += _plan_encoders(config, place, plan, extracted, tuned)
    if config.counts_uses and not plan.forced_pairs:
        plan.forced_pairs = place("forced.gz")
        last.append([_force_decode(config, place, "count-uses", "forced.gz", tuned, ("--leave-one-out",))])
    plan.phases.append(last)
    return plan


def _plan_decoder(config: ExperimentConfig, dev: TextPair, place: Place, plan: BuildPlan) -> tuple[Makers, Makers]:
    """Plan the commands from a bitext to a tuned model; return those that make the table and the ini."""
    assert config.bitext is not None
    seed, sides = str(config.seed), (config.bitext.source, config.bitext.target)
    lm = BuildCommand(
        "lm",
        ("lm", config.bitext.target, *config.build.lm_text, "--order", str(config.build.lm_order), "-o",
         place("lm.arpa.gz")),
        ("lm.arpa.gz",), threads=False,
    )  # fmt: skip
    align = BuildCommand(
        "align", ("align", *sides, "-o", place("aligned.gz"), "--seed", seed), ("aligned.gz",), threads=False
    )
    extract = BuildCommand(
        "extract",
        ("extract", *sides, place("aligned.gz"), "-o", place("table.gz"), "--reordering-out",
         place("reordering.gz"), "--max-length", str(config.build.max_phrase_length)),
        ("table.gz", "reordering.gz"), (align,),
    )  # fmt: skip
    start = BuildCommand(
        "moses-ini",
        ("moses-ini", "--table", place("table.gz"), "--reordering-table", place("reordering.gz"), "--lm",
         place("lm.arpa.gz"), "-o", place("start.ini")),
        ("start.ini",), (extract, lm), threads=False, anchored=True,
    )  # fmt: skip
    tune = BuildCommand(
        "tune",
        ("tune", "--moses-ini", place("start.ini"), "--dev", dev.source, dev.target, "--seed", seed,
         *search_options(config), *force_options(config), "-o", place("moses.ini")),
        ("moses.ini",), (start,), keeps=place("moses.ini"), cluster=True,
    )  # fmt: skip
    plan.phases += [[[lm], [align, extract]], [[start, tune]]]
    return (extract,), (tune,)


def as_options(*options: tuple[str, object]) -> list[str]:
    """Return options with their values, as in a command line; options whose value is None are left out."""
    return [part for option, value in options if value is not None for part in (option, str(value))]


def search_options(config: ExperimentConfig) -> list[str]:
    """Return the search options of `tune` and `decode`."""
    search = config.search
    return as_options(("--search", search.algorithm), ("--stack", search.stack), ("--pop-limit", search.pop_limit),
                   ("--table-limit", search.table_limit))  # fmt: skip


def method_options(method: Method, ini: str, bitext: TextPair | None, forced_pairs: str | None) -> list[str]:
    """Return the options that `prune --method` needs for a method, except those of similarities.

    Args:
        method: the method.
        ini: the moses.ini of the table.
        bitext: the bitext that the table was made from.
        forced_pairs: file of the pairs of forced decoding of the bitext.
    """
    options = ["--moses-ini", ini] if method.needs & {LOSSES, MODEL_SCORES} else []
    if SIGNIFICANCE in method.needs and bitext:
        options += ["--bitext", bitext.source, bitext.target]
    if USES in method.needs:
        options += as_options(("--forced-pairs", forced_pairs))
    return options


def force_options(config: ExperimentConfig) -> tuple[str, ...]:
    """Return the option that ignores failed sanity checks, if the configuration has it."""
    return (FORCE,) if config.force else ()


def _plan_encoders(
    config: ExperimentConfig, place: Place, plan: BuildPlan, extracted: Makers, tuned: Makers
) -> list[Chain]:
    """Plan the commands from a tuned model to pairs, phrase models and similarities; return a chain for each model."""
    own, pretrained = config.model.folder, config.model.exists
    plan.dimension = (dimension_of_model(own) if own else 0) if pretrained else config.model.dimension
    plan.probable = gives_probabilities(own) if own else False
    dimensions = {plan.dimension} if SIMILARITIES in config.all_needs or config.neighbours else set()
    if config.annotate and "semantic" in config.annotate.measured:
        dimensions |= {dimension or plan.dimension for dimension in config.annotate.dimensions}
    trained = dimensions - ({plan.dimension} if pretrained else set())
    table = plan.table or MosesModel.read(plan.ini).table
    paired = _plan_pairs(config, place, plan, (table, extracted), tuned, bool(trained or config.neighbours))
    chains: list[Chain] = []
    if config.neighbours and encoder_kind(config.model.encoder).reconstructs:
        plan.unsupervised = place("model-rae")
        unsupervised = replace(config.model, iterations=0, pretrain_iterations=config.neighbours.pretrain_iterations)
        chains.append([_train(replace(config, model=unsupervised), place, "rae", plan.pairs, plan.dimension, paired)])
    for dimension in sorted(dimensions):
        name = f"n{dimension}" if dimension else "given"
        scores = f"scores-{name}.parquet"
        plan.scores[dimension] = place(scores)
        training: Makers = ()
        model_options = _model_options(config, place)
        if dimension in trained:
            training = (_train(config, place, name, plan.pairs, dimension, paired),)
            model_options = ["-m", place(f"model-{name}")]
        if dimension:
            plan.models[dimension] = model_options[1]
        if dimension == plan.dimension:
            plan.similarity_options = model_options
        saved = ("--similarities", place(scores), "--sweep", "0:0:1")
        arguments = ("prune", table, *model_options, *saved, *force_options(config))
        chains.append([*training, BuildCommand(f"scores-{name}", arguments, (scores,), (*extracted, *training))])
    return chains


def _model_options(config: ExperimentConfig, place: Place) -> list[str]:
    """Return the options that name an existing model, two translators, or a pretrained encoder."""
    model, encoder = config.model, config.model.text_encoder
    if encoder is None:
        return as_options(("-m", model.folder), ("-m", model.second_folder))
    return as_options(
        ("--encoder", encoder.folder), ("--target-encoder", encoder.target_folder),
        ("--detokenise", encoder.detokenise), ("--prefix", encoder.prefix),
        ("--encoder-store", place("vectors")),
    )  # fmt: skip


def _plan_pairs(
    config: ExperimentConfig, place: Place, plan: BuildPlan, table: tuple[str, Makers], tuned: Makers, needed: bool
) -> Makers:
    """Plan the phrase pairs: an existing file, the table, or forced decoding of the bitext; return their commands."""
    if config.moses and config.moses.pairs:
        plan.pairs = config.moses.pairs
        return ()
    if config.bitext is None or not needed:
        plan.pairs, makers = table
        return makers
    plan.pairs = place("pairs.gz")
    options = ("--leave-one-out",) if config.build.leave_one_out else ()
    if config.build.leave_one_out and config.counts_uses:
        plan.forced_pairs = plan.pairs
    command = _force_decode(config, place, "force-decode", "pairs.gz", tuned, options)
    plan.phases.append([[command]])
    return (command,)


def _force_decode(
    config: ExperimentConfig, place: Place, name: str, output: str, tuned: Makers, options: tuple[str, ...]
) -> BuildCommand:
    assert config.bitext is not None
    ini, tables = place("moses.ini"), []
    if config.moses:
        ini = config.moses.ini
        tables = as_options(("--table", config.moses.table), ("--reordering-table", config.moses.reordering_table))
    return BuildCommand(
        name,
        ("force-decode", "--moses-ini", ini, *tables, config.bitext.source, config.bitext.target, *options, "-o",
         place(output)),
        (output,), tuned, keeps=place(output), cluster=True,
    )  # fmt: skip


# Setting of a model -> name of its option of `train`, where they differ.
_FLAGS = {"smoothing": "label_smoothing", "layers": "attention_layers"}


def _train(
    config: ExperimentConfig, place: Place, name: str, pairs: str, dimension: int, paired: Makers
) -> BuildCommand:
    model = config.model
    folder = place(f"model-{name}")
    options = as_options(
        # The default is left out, so that a model that was trained before the option existed is reused.
        ("--architecture", model.encoder if model.encoder != type(model).encoder else None),
        ("--epochs", model.iterations),
        ("--pretrain-epochs", model.pretrain_iterations),
        ("--min-pair-count", f"{model.min_pair_count:g}" if model.min_pair_count else None),
        *(("--source-text", path) for path in model.source_text),
        *(("--target-text", path) for path in model.target_text),
        *((f"--{_FLAGS.get(key, key).replace('_', '-')}", value) for key, value in model.options.items()),
    )
    return BuildCommand(
        f"train-{name}",
        ("train", pairs, "-o", folder, "--dimension", str(dimension), "--loss", model.loss, "--seed", str(config.seed),
         "--device", "cpu", *options, *force_options(config)),
        (os.path.join(f"model-{name}", "config.json"),), paired, resumes=folder,
    )  # fmt: skip
