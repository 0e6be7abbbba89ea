"""`phrasetool experiment`."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared.click_options import available_processors, chosen_search, quiet_option, threads_option
from phrasetool_cli.shared.experiment_runs import Session, annotation, measured, pruning
from phrasetool_cli.shared.progress import TableProgress, say

if TYPE_CHECKING:
    import pandas as pd

    from moses_compat.engine.laboratory import Laboratory
    from moses_compat.engine.model import MosesModel
    from phrasetool.experiments.settings import ExperimentConfig
    from phrasetool_cli.shared.experiment_steps import Built

FRAMES = ("pruning", "contests", "annotation", "neighbours", "histogram", "map", "surprises")

_EXAMPLE = """\b
CONFIG is TOML; paths in it are relative to it; what has a value here may be left out:
  output = "experiment"          folder to write       name, seed = 1, samples = 1000
  [data.bitext]                  source, target: what the table was, or will be, made from
  [data.dev]                     source, target: tokenised, a sentence a line
  [data.tests.NAME]              source, target; as many as there are
  [moses]                        a finished model instead of one made from the bitext:
                                 ini, and if need be table, reordering_table, pairs
  [build]                        lm_order = 5, lm_text, max_phrase_length = 7, leave_one_out = false
  [model]                        folder; or dimension = 50, loss = "in-batch", iterations,
                                 min_pair_count, source_text, target_text, options.NAME
  [prune]                        methods, sizes, thresholds.METHOD, combine = "product",
                                 protect = "words", keep_top (10, or {"0.07" = 3} for sizes
                                 up to 7 %; else as many as fit), seeds = 1
  [annotate]                     dimensions, columns = ["semantic"] (also "forced",
                                 "kneser-ney", "composition", "significance", or several,
                                 "kneser-ney+forced+semantic"),
                                 tuning_seeds = [1, 2, 3], start = "default", iterations = 25;
                                 sizes = [1] and method of pruned tables that are tuned, too
  [neighbours]                   phrases, count = 5, pretrain_iterations = 5
  [search]                       algorithm = "cube", stack = 400, pop_limit = 400, table_limit

\b
Example:
  phrasetool experiment examples/experiments/demo.toml -o demo-experiment
  phrasetool experiment examples/experiments/demo.toml -o demo-experiment --quick
"""


@click.command(epilog=_EXAMPLE)
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("-o", "--output", metavar="FOLDER", help="Where to write.  [default: as CONFIG says, else ./experiment "
              "beside it]")  # fmt: skip
@click.option("--quick", is_flag=True,
              help="Fewer methods, sizes, sentences and iterations: some minutes, in FOLDER/quick.")  # fmt: skip
@threads_option("Worker threads, for everything.")
@quiet_option
def command(config: str, output: str | None, quick: bool, threads: int, quiet: bool) -> None:
    """Make what is missing, prune by many methods to many sizes, translate and score: tables, figures, a report.

    From a bitext or a finished Moses model.  FOLDER gets report.html and report.md, the tables as Parquet, build/ with
    what was trained and runs/ with the translations.  An experiment that was interrupted goes on where it was: the same
    command does only what is not done.
    """
    from moses_compat.experiments.texts import overlaps, read_experiment_texts
    from phrasetool.experiments.config import read_experiment_config

    wanted = read_experiment_config(config, output)
    if quick:
        wanted = wanted.quick()
    if wanted.moses:
        _check_model(wanted)
    texts = read_experiment_texts(wanted)
    session = Session(wanted, texts, threads, quiet)
    if wanted.bitext:
        for name, (shared, of) in overlaps(wanted.bitext, texts).items():
            text = "the development set" if name == "dev" else f"test set {name}"
            # Shown even to who wants no progress.
            say(f"warning: {shared} of {of} sentence pairs of {text} are in the training set")
    session.part("texts")
    try:
        os.makedirs(wanted.output, exist_ok=True)
    except OSError as error:
        raise PhraseToolError(f"{wanted.output}: cannot make the folder: {error.strerror}") from error
    frames = _run(session)
    _write(session, frames)


def _check_model(config: ExperimentConfig) -> None:
    """Refuse what the decoder would, before anything is done."""
    from moses_compat.engine.model import MosesModel
    from moses_compat.files.streams import Input

    assert config.moses
    model = MosesModel.read(config.moses.ini, config.moses.table, config.moses.reordering_table)
    for path in model.paths:
        Input(path).close()


def _run(session: Session) -> dict[str, pd.DataFrame]:
    from moses_compat.engine.model import MosesModel
    from moses_compat.experiments.runs import RunStore, decoder_identity
    from phrasetool_cli.shared.experiment_build import Builder
    from phrasetool_cli.shared.experiment_steps import build

    config = session.config
    builder = Builder(session.path("build"), session.threads, session.quiet)
    built = build(config, _dev_files(session), builder)
    session.commands.update(built.commands)
    session.part("build")
    session.seconds.update({f"build: {name}": seconds for name, seconds in built.seconds.items()})
    model = MosesModel.read(built.ini, built.table, built.reordering_table)
    search = config.search
    model = replace(model, search=chosen_search(
        model, search=search.algorithm, stack_size=search.stack, pop_limit=search.pop_limit,
        table_limit=search.table_limit,
    ))  # fmt: skip
    frames: dict[str, pd.DataFrame] = {}
    if config.prune or config.annotate:
        measures = measured(session, model, built)
        session.part("measure")
        load = functools.cache(lambda: _laboratory(session, model))
        store = RunStore(session.path("runs"))
        identity = decoder_identity(model, session.texts.sources)
        if config.prune:
            frames.update(pruning(session, model, built, measures, load, store, identity))
            session.part("pruning")
        if config.annotate:
            frames["annotation"] = annotation(session, model, built, measures, load, store, identity)
            session.part("annotation")
    if built.models:
        frames.update(_phrases(session, built))
        session.part("phrases")
    return frames


def _laboratory(session: Session, model: MosesModel) -> Laboratory:
    """The decoder, which is loaded when something is to be translated."""
    from moses_compat.engine.laboratory import Laboratory
    from phrasetool_cli.shared.progress import TerminalWatch

    with TerminalWatch(session.quiet).reading(model.tables) as progress:
        return Laboratory.load(model, session.texts.sources, session.threads, progress)


def _dev_files(session: Session) -> tuple[str, str]:
    """The development set as files: those of the configuration, or some of their lines."""
    from moses_compat.experiments.texts import write_pair

    config = session.config
    if config.sentences is None or config.moses:
        return config.dev.source, config.dev.target
    os.makedirs(session.path("build"), exist_ok=True)
    source, target = (session.path("build", f"dev.{side}") for side in ("source", "target"))
    write_pair(session.texts, "dev", source, target)
    return source, target


def _phrases(session: Session, built: Built) -> dict[str, pd.DataFrame]:
    """Neighbours, and the map."""
    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.experiments.phrase_frames import choose_phrases, map_frame, neighbour_frame
    from phrasetool.models.storage import load_bilingual_model

    folder = built.models.get(built.dimension)
    if folder is None:
        return {}
    models = {}
    for path in (built.unsupervised, folder) if built.unsupervised else (folder,):
        model = load_bilingual_model(path)
        # An encoder goes by its own name as long as it has learned from one language alone.
        name = (model.kind.name if path == built.unsupervised else model.kind.label).upper()
        with Input(built.pairs) as source, TableProgress("read pairs", source.size(), session.quiet) as progress:
            vocabularies = (model.source_vocabulary, model.target_vocabulary)
            pairs = read_training_pairs(source, vocabularies=vocabularies, progress=progress)
        models[name] = model, pairs
    frames = {"map": map_frame(model, pairs, seed=session.config.seed)}
    if session.config.neighbours:
        asked = session.config.neighbours
        phrases = asked.phrases or (*choose_phrases(pairs, False), *choose_phrases(pairs, True))
        frame = frames["neighbours"] = neighbour_frame(models, phrases, asked.count)
        for phrase in phrases:
            if phrase not in set(frame["phrase"]):
                say(f"warning: no model knows a word of {phrase!r}, so it has no neighbours")
    return frames


def _write(session: Session, frames: Mapping[str, pd.DataFrame]) -> None:
    """The frames, the report, and what there is to say about how they came about."""
    from moses_compat.files.streams import Output
    from phrasetool.experiments.report import write_report

    facts = _facts(session)
    files = {f"{name}.parquet": _parquet(frame) for name, frame in frames.items()}
    files.update(write_report(session.config.name, frames, facts))
    files["experiment.json"] = json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n"
    for name, data in files.items():
        with Output(session.path(name)) as out:
            out.write(data)
    for name in FRAMES:
        # Of an earlier experiment in this folder, that asked for more.
        if name not in frames and os.path.exists(session.path(f"{name}.parquet")):
            os.remove(session.path(f"{name}.parquet"))
    session.say(f"report: {session.path('report.html')}")


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _facts(session: Session) -> dict[str, Any]:
    """How the figures came about; the same facts go to the report."""
    import platform
    from dataclasses import asdict
    from importlib.metadata import version

    packages = ("numpy", "numba", "pandas", "sacrebleu", "torch", "scikit-learn", "eflomal")
    with open(session.config.path, encoding="utf-8") as file:
        text = file.read()
    return {
        "name": session.config.name,
        "config": {**_shown(asdict(session.config)), "text": text},
        "machine": _machine(platform.machine(), platform.python_version()),
        "versions": {"phrasetool": _version(), "python": platform.python_version(),
                     **{name: version(name) for name in packages}},
        "commands": session.commands,
        "seconds": session.seconds,
    }  # fmt: skip


def _shown(value: Any) -> Any:
    """Settings with paths as somebody in the current folder would write them."""
    from phrasetool_cli.shared.experiment_build import shown

    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner) for inner in value]
    return shown(value) if isinstance(value, str) else value


def _version() -> str:
    from phrasetool import __version__

    return __version__


def _machine(kind: str, python: str) -> str:
    """Processor, processors this process may use, Python."""
    name = kind
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            name = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), kind)
    return f"{name}, {available_processors()} cores, Python {python}"
