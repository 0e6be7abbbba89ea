"""Run of an experiment from its configuration to its report: make missing files, measure, translate, score, write."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build import BuildPlan, open_build_store, plan_build
from moses_compat.experiments.build_commands import BuildStore, CommandRunner, commands_of, shown_path
from moses_compat.experiments.compared_tables import pruned_table_frames, tuned_table_frame
from moses_compat.experiments.ladder import check_translators, ladder_frames
from moses_compat.experiments.phrase_frames import choose_phrases, map_frame, neighbour_frame
from moses_compat.experiments.report.pages import write_report
from moses_compat.experiments.session import (
    Cluster,
    Session,
    check_development_set,
    open_run_context,
    overlaps,
    read_experiment_texts,
    write_pair,
)
from moses_compat.experiments.settings import DEV, ExperimentConfig, FinishedModel, TextPair
from moses_compat.files.streams import Input, Output
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.model_sources import both_directions, dimension_of_model, model_source
from moses_compat.tables.blocks import raw_blocks
from phrasetool import __version__
from phrasetool.disk.folders import check_folder
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.watch import SILENT, Watch


def phrase_frames(session: Session, plan: BuildPlan) -> dict[str, pd.DataFrame]:
    """Return the frames `map` and, if configured, `neighbours`; none without a phrase model of the plan's dimension."""
    folder = plan.models.get(plan.dimension)
    if folder is None:
        return {}
    models = {}
    for path in (plan.unsupervised, folder) if plan.unsupervised else (folder,):
        model = BilingualModel.load(path)
        # The label of a model that was trained on one language only is the name of its encoder.
        name = (model.kind.name if path == plan.unsupervised else model.label).upper()
        with Input(plan.pairs) as source, session.watch.file("read pairs", source.size()) as progress:
            vocabularies = (model.source_vocabulary, model.target_vocabulary)
            pairs = read_training_pairs(source, vocabularies=vocabularies, progress=progress)
        models[name] = model, pairs
    frames = {"map": map_frame(model, pairs, seed=session.config.seed)}
    if session.config.neighbours:
        settings = session.config.neighbours
        phrases = settings.phrases or (*choose_phrases(pairs, False), *choose_phrases(pairs, True))
        frame = frames["neighbours"] = neighbour_frame(models, phrases, settings.count)
        for phrase in phrases:
            if phrase not in set(frame["phrase"]):
                session.watch.warn(f"no model knows a word of {phrase!r}, so it has no neighbours")
    return frames


FRAMES = ("pruning", "contests", "annotation", "ladder", "neighbours", "histogram", "map", "surprises")
_PACKAGES = ("numpy", "numba", "pandas", "sacrebleu", "torch", "scikit-learn", "eflomal")


def write_outputs(session: Session, frames: Mapping[str, pd.DataFrame], processors: int) -> None:
    """Write the frames, the report and `experiment.json`, and delete other frames of an earlier experiment.

    Args:
        session: the finished experiment.
        frames: frames by their names, some of `FRAMES`.
        processors: number of processors of this machine.
    """
    facts = _facts(session, processors)
    files = {f"{name}.parquet": _parquet(frame) for name, frame in frames.items()}
    files.update(write_report(session.config.name, frames, facts))
    files["experiment.json"] = json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n"
    for name, data in files.items():
        with Output(session.path(name)) as out:
            out.write(data)
    for name in FRAMES:
        # A file of an earlier experiment in this folder with more sections.
        if name not in frames and os.path.exists(session.path(f"{name}.parquet")):
            os.remove(session.path(f"{name}.parquet"))
    session.watch.say(f"report: {session.path('report.html')}")


def records_of(frames: Mapping[str, pd.DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of frames as JSON values; missing numbers become None."""
    return {
        name: json.loads(frame.to_json(orient="records", double_precision=15, force_ascii=False))
        for name, frame in frames.items()
    }


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _facts(session: Session, processors: int) -> dict[str, Any]:
    """Return the facts for the report: configuration, machine, versions, commands and times of an experiment."""
    with open(session.config.path, encoding="utf-8") as file:
        text = file.read()
    return {
        "name": session.config.name,
        "config": {**_shown(asdict(session.config)), "text": text},
        "machine": f"{_processor()}, {processors} cores, Python {platform.python_version()}",
        "versions": {"phrasetool": __version__, "python": platform.python_version(),
                     **_installed_versions(_PACKAGES)},
        "commands": session.commands,
        "seconds": session.seconds,
    }  # fmt: skip


def _installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed; an experiment does not need all of them."""
    versions = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _shown(value: Any) -> Any:
    """Return settings with paths relative to the current folder, see `shown_path`."""
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner) for inner in value]
    return shown_path(value) if isinstance(value, str) else value


def _processor() -> str:
    """Return the name of the processor, or if it is unknown, its architecture."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.machine()


def run_experiment(
    config: ExperimentConfig,
    program: Sequence[str],
    threads: int = 1,
    processors: int = 1,
    watch: Watch = SILENT,
    cluster: Cluster | None = None,
) -> dict[str, pd.DataFrame]:
    """Run the unfinished parts of an experiment, and write all results to the folder of the configuration.

    Args:
        config: see `read_experiment_config`.
        program: the command line of phrasetool, such as `["phrasetool"]`.
        threads: total number of threads.
        processors: number of processors of this machine, for the report only.
        watch: receives messages and progress.
        cluster: cluster that translates, and runs the work of commands that support it.

    Returns:
        The frames of the configured sections by their names: `pruning`, `contests`, `histogram`, `surprises`,
        `annotation`, `ladder`, `map`, `neighbours`.

    Raises:
        PhraseToolError: a file cannot be read or written, or is damaged; a command failed; or, unless forced, the
            development set or a model of phrases is unrelated to the table.
    """
    if config.moses:
        _check_model(config.moses)
        _check_similarities(config, config.moses, watch)
    check_folder(config.output)
    session = Session(config, read_experiment_texts(config), threads, watch, cluster)
    _warn_of_overlaps(session)
    if config.moses:
        _check_dev_first(session)
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
        context = open_run_context(session, plan)
        if config.prune:
            frames.update(pruned_table_frames(context, config.prune))
            session.part("pruning")
        if config.annotate:
            frames["annotation"] = tuned_table_frame(context, config.annotate)
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
    """Raise the errors of the decoder before the work begins."""
    MosesModel.read(named.ini, named.table, named.reordering_table).check_files()


def _check_similarities(config: ExperimentConfig, named: FinishedModel, watch: Watch) -> None:
    """Raise an error if a phrase model and the table both exist already and are incompatible."""
    folders = [folder for folder in (config.model.folder, config.model.second_folder) if folder]
    if folders and config.encodes:
        table = MosesModel.read(named.ini, named.table).table
        models = [model_source(FitCheck(folder, watch, config.force)) for folder in folders]
        with Input(table) as source:
            next(both_directions(models, folders).reader(table).look_at(raw_blocks(source)), None)
    if folders and config.neighbours and not dimension_of_model(folders[0]):
        raise ModelError(f"{folders[0]}: has no vectors of phrases, which [neighbours] in {config.path} requires")


def _check_dev_first(session: Session) -> None:
    """Reject an implausible development set now if commands have to run before it is translated."""
    store = open_build_store(session.config, session.path("build"))
    plan = plan_build(session.config, session.config.dev, store.path)
    if not all(map(store.is_done, commands_of(plan.phases))):
        check_development_set(session, MosesModel.read(plan.ini, plan.table, plan.reordering_table))


def _warn_of_overlaps(session: Session) -> None:
    if session.config.bitext:
        for name, (shared, of) in overlaps(session.config.bitext, session.texts).items():
            text = "the development set" if name == DEV else f"test set {name}"
            session.watch.warn(f"{shared} of {of} sentence pairs of {text} are in the training set")


def _build(session: Session, program: Sequence[str]) -> tuple[BuildPlan, CommandRunner]:
    """Make missing files; return their plan, and the runner for further commands."""
    store = open_build_store(session.config, session.path("build"))
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
    """Return the files of the development set: those of the configuration, or new files with some of their lines."""
    config = session.config
    if config.sentences is None or config.moses:
        return config.dev
    files = TextPair(store.path("dev.source"), store.path("dev.target"))
    write_pair(session.texts, [DEV], files)
    return files
