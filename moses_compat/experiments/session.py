"""Data that all parts of an experiment share: texts, decoder, measures of the table, and finished runs."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from moses_compat.corpora.bitexts import read_text_pair, shared_pairs
from moses_compat.corpora.texts import surface_words
from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.development_check import DevelopmentCheck
from moses_compat.engine.model import LoadedModel, MosesModel
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.build_commands import BuildStore, Phases, RunStore, commands_of, decoder_identity
from moses_compat.experiments.settings import DEV, ExperimentConfig, TextPair
from moses_compat.files.streams import Output
from moses_compat.ini.tables import choose_table, weights_of
from moses_compat.measures.measure import MeasureRequest, measure_file
from moses_compat.measures.similarities import FileSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.phrases import Phrases
from phrasetool.pipeline import Runner
from phrasetool.pruning.measures import SIMILARITIES, Measures
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.watch import Watch


@dataclass(frozen=True)
class ExperimentTexts:
    """The development set, with the name `dev`, and the test sets, by their names.

    Attributes:
        sources: source texts, one tokenised sentence per line.
        targets: their reference translations.
    """

    sources: Mapping[str, bytes]
    targets: Mapping[str, bytes]

    @property
    def references(self) -> dict[str, list[str]]:
        """The reference translations as lines."""
        return {name: text_lines(text) for name, text in self.targets.items()}

    @property
    def sentences(self) -> int:
        """The number of sentences of all texts."""
        return sum(text.count(b"\n") for text in self.sources.values())


def read_experiment_texts(config: ExperimentConfig) -> ExperimentTexts:
    """Read the texts, or their first sentences if the configuration limits them.

    Raises:
        DataError: a file is empty or damaged, or the sides of a text differ in length.
    """
    pairs = {DEV: config.dev, **config.tests}
    read = {name: _pair(pair, config.sentences) for name, pair in pairs.items()}
    return ExperimentTexts(
        {name: source for name, (source, _) in read.items()}, {name: target for name, (_, target) in read.items()}
    )


def _pair(pair: TextPair, limit: int | None) -> tuple[bytes, bytes]:
    lines = [text.split(b"\n")[:-1] for text in read_text_pair(pair.source, pair.target)]
    first, second = (b"\n".join(side[:limit]) + b"\n" for side in lines)
    return first, second


def text_lines(text: bytes) -> list[str]:
    """Return the lines of a text, all of which end with a line feed."""
    return text.decode(errors="replace").split("\n")[:-1]


def write_pair(texts: ExperimentTexts, names: Sequence[str], files: TextPair) -> None:
    """Write the concatenated source and target sides of texts to two files."""
    for path, side in ((files.source, texts.sources), (files.target, texts.targets)):
        with Output(path) as out:
            out.write_text(b"".join(side[name] for name in names))


def overlaps(bitext: TextPair, texts: ExperimentTexts) -> dict[str, tuple[int, int]]:
    """Return the texts that share sentence pairs with the training set; see `shared_pairs`."""
    sides = {name: (texts.sources[name], texts.targets[name]) for name in texts.sources}
    return shared_pairs((bitext.source, bitext.target), sides)


@dataclass(frozen=True)
class Cluster:
    """A cluster of machines.

    Attributes:
        runner: runs work on the cluster.
        options: options for commands that run their work on the cluster.
    """

    runner: Runner
    options: tuple[str, ...]


@dataclass
class Session:
    """A running experiment.

    Attributes:
        config: its configuration.
        texts: the development set and the test sets.
        threads: total number of threads.
        watch: receives messages and progress.
        cluster: translates in place of threads; None without one.
        seconds: time of each part.
        commands: command lines that made files, by name.
        began: start time of the current part.
        dev_checked: whether the development set has been compared with the model's table.
    """

    config: ExperimentConfig
    texts: ExperimentTexts
    threads: int
    watch: Watch
    cluster: Cluster | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    dev_checked: bool = False

    def part(self, name: str) -> None:
        """Record the time of a part that has finished."""
        now = time.monotonic()
        self.seconds[name] = round(now - self.began, 3)
        self.began = now

    def note(self, phases: Phases, store: BuildStore) -> None:
        """Record commands that were run now or earlier, with their times from the store."""
        commands = commands_of(phases)
        self.commands.update((command.name, command.line) for command in commands)
        self.seconds.update((f"build: {name}", seconds) for name, seconds in store.seconds(commands).items())

    def path(self, *names: str) -> str:
        """Return the path of a file in the experiment's folder."""
        return os.path.join(self.config.output, *names)


@dataclass(frozen=True)
class RunContext:
    """The model, measures and finished runs that the runs of an experiment share.

    Attributes:
        session: the experiment.
        plan: paths of its files.
        model: the model that translates.
        measures: measures of its table.
        store: finished runs.
        identity: identity of the model and the texts, see `decoder_identity`.
        load: returns the loaded model, which is loaded once, on the first call.  It rejects a development set that is
            unrelated to the table, see `DevelopmentCheck`.
    """

    session: Session
    plan: BuildPlan
    model: MosesModel
    measures: Measures
    store: RunStore
    identity: str
    load: Callable[[], LoadedModel]


def open_run_context(session: Session, plan: BuildPlan) -> RunContext:
    """Read the model, and the table once for all measures.

    Args:
        session: the experiment.
        plan: paths of its existing files.

    Raises:
        PhraseToolError: a file cannot be read, is damaged, or is inconsistent with the others.
    """
    model = MosesModel.read(plan.ini, plan.table, plan.reordering_table)
    search = session.config.search
    model = model.searching(
        algorithm=search.algorithm, stack_size=search.stack, pop_limit=search.pop_limit, table_limit=search.table_limit
    )
    measures = _measured(session, model, plan)
    session.part("measure")

    @functools.cache
    def load() -> LoadedModel:
        with session.watch.reading(model.tables) as progress:
            loaded = LoadedModel.load(model, session.texts.sources, session.threads, progress)
        model.report_reading(loaded.entries.targets, loaded.target_symbols, session.watch)
        if session.cluster:
            loaded = replace(loaded, runner=session.cluster.runner)
        _check_loaded(session, loaded)
        return loaded

    identity = decoder_identity(model, session.texts.sources)
    return RunContext(session, plan, model, measures, RunStore(session.path("runs")), identity, load)


def development_check(session: Session, model: MosesModel) -> DevelopmentCheck:
    """Return the check of the development set of a session."""
    files, force = session.config.dev, session.config.force
    return DevelopmentCheck(model, files.source, [files.target], force, session.watch)


def check_development_set(session: Session, model: MosesModel) -> None:
    """Compare the development set with the model's table, before commands run.

    Raises:
        PhraseToolError: the development set is not plausible, see `DevelopmentCheck`.
    """
    known = InputPhrases.of(surface_words(session.texts.sources[DEV], "the text dev"), model.longest)
    table = replace(model, reordering=None).load_table(known, Symbols(), session.threads)
    _compare_with_table(session, model, table, known.sentences)


def _check_loaded(session: Session, loaded: LoadedModel) -> None:
    translator = loaded.translator()
    if not session.dev_checked:
        _compare_with_table(session, loaded.model, translator.table, loaded.sentences[DEV])
    development_check(session, loaded.model).language_models(translator)


def _compare_with_table(session: Session, model: MosesModel, table: TranslationTable, sentences: Phrases) -> None:
    check = development_check(session, model)
    source, target = session.texts.sources[DEV], session.texts.targets[DEV]
    check.texts(source, [target])
    check.fit(table, sentences, source, [target])
    session.dev_checked = True


def _measured(session: Session, model: MosesModel, plan: BuildPlan) -> Measures:
    bitext, scores = session.config.bitext, plan.scores.get(plan.dimension)

    def request(scan: TableScan) -> MeasureRequest:
        return MeasureRequest.of(
            session.config.needs, scan,
            weights=lambda: weights_of(model.ini, choose_table(model.ini, model.table)),
            similarities={SIMILARITIES: FileSimilarities(scores)} if scores else None,
            corpora=(bitext.source, bitext.target) if bitext else None, forced_pairs=plan.forced_pairs,
        )  # fmt: skip

    return measure_file(model.table, TableScan(threads=session.threads), session.watch, request).whole()
