"""An experiment from its configuration to its report: make what is missing, measure, translate, score, write."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pandas as pd

from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build import BuildPlan, plan_build
from moses_compat.experiments.build_commands import BuildStore, CommandRunner, commands_of
from moses_compat.experiments.ladder import check_translators, ladder_frames
from moses_compat.experiments.model_phrases import phrase_frames
from moses_compat.experiments.outputs import write_outputs
from moses_compat.experiments.pruned_tables import pruned_table_frames
from moses_compat.experiments.text_sets import overlaps, read_experiment_texts, write_pair
from moses_compat.experiments.tuned_tables import tuned_table_frame
from moses_compat.experiments.workbench import Cluster, Session, look_at_development_set, open_workbench
from moses_compat.files.streams import Input
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.model_sources import both_directions, dimension_of_model, model_source
from moses_compat.tables.blocks import raw_blocks
from phrasetool.disk.writable import check_folder
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.experiments.settings import DEV, ExperimentConfig, FinishedModel, TextPair
from phrasetool.watch import NOBODY, Watch


def run_experiment(
    config: ExperimentConfig,
    program: Sequence[str],
    threads: int = 1,
    processors: int = 1,
    watch: Watch = NOBODY,
    cluster: Cluster | None = None,
) -> dict[str, pd.DataFrame]:
    """Do what is not done yet, and write everything to the folder of the configuration.

    Args:
        config: see `read_experiment_config`.
        program: what runs phrasetool's commands, such as `["phrasetool"]`.
        threads: for everything.
        processors: of this machine; only the report says so.
        watch: is told how it goes.
        cluster: translates, and does the work of those commands that a cluster can do.

    Returns:
        The frames by their names: `pruning`, `contests`, `histogram`, `surprises`, `annotation`, `ladder`, `map`,
        `neighbours`, as far as they were asked for.

    Raises:
        PhraseToolError: a file cannot be read or written, or is damaged; a command failed; or, unless forced, the
            development set or a model of phrases has nothing to do with the table.
    """
    if config.moses:
        _check_model(config.moses)
        _check_similarities(config, config.moses, watch)
    check_folder(config.output)
    session = Session(config, read_experiment_texts(config), threads, watch, cluster)
    _warn_of_overlaps(session)
    if config.moses:
        _look_first(session)
    if config.ladder:
        check_translators(session, config.ladder)
    session.part("texts")
    try:
        os.makedirs(config.output, exist_ok=True)
    except OSError as error:
        raise PhraseToolError(f"{config.output}: cannot make the folder: {reason(error)}") from error
    plan, runner = _build(session, program)
    frames: dict[str, pd.DataFrame] = {}
    if config.prune or config.annotate:
        bench = open_workbench(session, plan)
        if config.prune:
            frames.update(pruned_table_frames(bench, config.prune))
            session.part("pruning")
        if config.annotate:
            frames["annotation"] = tuned_table_frame(bench, config.annotate)
            session.part("annotation")
    if config.ladder:
        frames.update(ladder_frames(session, config.ladder, plan, runner))
        session.part("ladder")
    if plan.models:
        frames.update(phrase_frames(session, plan))
        session.part("phrases")
    write_outputs(session, frames, processors)
    return frames


def _check_model(named: FinishedModel) -> None:
    """Refuse what the decoder would, before anything is done."""
    model = MosesModel.read(named.ini, named.table, named.reordering_table)
    for path in model.paths:
        Input(path).close()


def _check_similarities(config: ExperimentConfig, named: FinishedModel, watch: Watch) -> None:
    """Refuse a model of phrases that does not fit the table, where both are there."""
    folders = [folder for folder in (config.model.folder, config.model.second_folder) if folder]
    if folders and config.encodes:
        table = MosesModel.read(named.ini, named.table).table
        models = [model_source(FitCheck(folder, watch, config.force)) for folder in folders]
        with Input(table) as source:
            next(both_directions(models, folders).reader(table).look_at(raw_blocks(source)), None)
    if folders and config.neighbours and not dimension_of_model(folders[0]):
        raise ModelError(f"{folders[0]}: has no vectors of phrases, which [neighbours] in {config.path} asks for")


def _look_first(session: Session) -> None:
    """Refuse a development set that makes no sense, where something has to be made before it would be translated."""
    store = BuildStore(session.path("build"))
    plan = plan_build(session.config, session.config.dev, store.path)
    if not all(map(store.is_done, commands_of(plan.phases))):
        look_at_development_set(session, MosesModel.read(plan.ini, plan.table, plan.reordering_table))


def _warn_of_overlaps(session: Session) -> None:
    if session.config.bitext:
        for name, (shared, of) in overlaps(session.config.bitext, session.texts).items():
            text = "the development set" if name == DEV else f"test set {name}"
            session.watch.warn(f"{shared} of {of} sentence pairs of {text} are in the training set")


def _build(session: Session, program: Sequence[str]) -> tuple[BuildPlan, CommandRunner]:
    """Make what is missing; what made it can make more."""
    store = BuildStore(session.path("build"))
    os.makedirs(store.folder, exist_ok=True)
    plan = plan_build(session.config, _dev_files(session, store), store.path)
    engine = session.cluster.options if session.cluster else ()
    runner = CommandRunner(store, program, session.threads, session.watch.say, engine)
    for chains in plan.phases:
        runner.make(chains)
    session.part("build")
    session.note(plan.phases, store)
    return plan, runner


def _dev_files(session: Session, store: BuildStore) -> TextPair:
    """The development set as files: those of the configuration, or some of their lines."""
    config = session.config
    if config.sentences is None or config.moses:
        return config.dev
    files = TextPair(store.path("dev.source"), store.path("dev.target"))
    write_pair(session.texts, [DEV], files)
    return files
