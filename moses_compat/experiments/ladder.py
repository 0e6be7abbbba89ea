"""The ladder of an experiment: cumulative gains of columns, new entries and reranking, and the effect of pruning.

Unlike those of Tables 1 and 2, its phrase tables are written: every step is a command of phrasetool.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from moses_compat.engine.model import MosesModel
from moses_compat.engine.n_best import NBestList
from moses_compat.experiments.build import (
    BuildPlan,
    Makers,
    Place,
    as_options,
    force_options,
    method_options,
    search_options,
)
from moses_compat.experiments.build_commands import BuildCommand, BuildStore, Chain, CommandRunner
from moses_compat.experiments.results import LadderRuns, Scoreboard, ladder_frame
from moses_compat.experiments.session import ExperimentTexts, Session, text_lines, write_pair
from moses_compat.experiments.settings import DEV, ExperimentConfig, LadderSettings, TextPair
from moses_compat.files.streams import Input
from moses_compat.jobs.rerank import SourceText, check_fit, load_directed
from moses_compat.tables.blocks import count_entries
from phrasetool.errors import DataError
from phrasetool.pruning.measures import SIMILARITIES
from phrasetool.pruning.methods import parse_method

# The test sets as one text.
TESTS = "tests"
_RERANKED = "reranked"
N_BEST = 100


@dataclass(frozen=True)
class LadderTable:
    """A table of the ladder.

    Attributes:
        name: its name, which is part of file names.
        path: its file.
        ini: a moses.ini with the table, whose weights are not tuned for it.
        makers: the commands that make both files.
    """

    name: str
    path: str
    ini: str
    makers: Makers


@dataclass(frozen=True)
class Step:
    """A step of the ladder: a table, and the files of its translations.

    Attributes:
        label: its name.
        table: its table.
        share: share of the entries that pruning kept; 1 for a table that is not pruned.
        translations: files with the translations of the test sets as one text, one for each tuning seed.
        below: label of the step that it is compared with; None for the unpruned table with the most steps.
    """

    label: str
    table: LadderTable
    share: float
    translations: Sequence[str]
    below: str | None = None


@dataclass
class LadderPlan:
    """The steps, the original table first, and the commands that make them, phase by phase."""

    steps: list[Step] = field(default_factory=list)
    phases: list[list[Chain]] = field(default_factory=list)


def plan_ladder(
    config: ExperimentConfig, settings: LadderSettings, built: BuildPlan, texts: Mapping[str, TextPair], place: Place
) -> LadderPlan:
    """Plan the steps of a ladder and the commands that make their files.

    Args:
        config: the experiment.
        settings: settings of the ladder.
        built: paths of the existing files.
        texts: files of `dev` and `TESTS`.
        place: returns the path of a file in the build folder.
    """
    return _Planner(config, settings, built, texts, place).plan()


def _beyond(table: LadderTable, before: LadderTable) -> Chain:
    """Return the commands that make a table from an existing one."""
    return table.makers[len(before.makers) :]


class _Planner:
    """Planner of the steps and commands of a ladder."""

    def __init__(
        self, config: ExperimentConfig, settings: LadderSettings, built: BuildPlan, texts: Mapping[str, TextPair],
        place: Place,
    ) -> None:  # fmt: skip
        self._config, self._settings, self._built, self._texts, self._place = config, settings, built, texts, place
        self._force = force_options(config)
        self._model = MosesModel.read(built.ini, built.table, built.reordering_table)

    def plan(self) -> LadderPlan:
        settings, plan = self._settings, LadderPlan()
        plain = self._plain()
        unpruned = [("table", plain)]
        if settings.columns:
            unpruned.append(("+ columns", self._annotated("columns", plain)))
        if settings.augment:
            words = self._augmented(plain)
            unpruned.append(("+ augment", self._annotated("all", words) if settings.columns else words))
        last = unpruned[-1][1]
        pruned = [(f"all, {100 * size:g} %", size, self._pruned(last, size)) for size in settings.sizes]
        tunings: list[Chain] = []
        for label, table in unpruned:
            listed = bool(settings.rerank) and table is last
            tunings += [self._tuned(table, seed, listed) for seed in settings.tuning_seeds]
            plan.steps.append(Step(label, table, 1.0, self._files(table, TESTS)))
            if listed:
                plan.steps.append(Step("+ rerank", table, 1.0, self._files(table, _RERANKED)))
        for label, size, table in pruned:
            tunings += [self._tuned(table, seed, bool(settings.rerank)) for seed in settings.tuning_seeds]
            if settings.rerank:
                # The decoder's best translations are also a step, because most systems do not rerank.
                unreranked = Step(
                    f"all but rerank, {100 * size:g} %", table, size, self._files(table, TESTS), unpruned[-1][0]
                )
                plan.steps.append(unreranked)
            plan.steps.append(Step(label, table, size, self._files(table, _RERANKED if settings.rerank else TESTS)))
        plan.phases = [
            [plain.makers], [_beyond(table, plain) for _, table in unpruned],
            [_beyond(table, last) for *_, table in pruned], tunings,
        ]  # fmt: skip
        return plan

    def _plain(self) -> LadderTable:
        """Return the original table; plan an ini if the configuration replaces a table of the given ini."""
        built, model = self._built, self._model
        if not (self._config.moses and (built.table or built.reordering_table)):
            return LadderTable("table", model.table, built.ini, ())
        ini, tables = self._place("ladder-table.ini"), as_options(
            ("--table", model.table), ("--reordering-table", built.reordering_table)
        )  # fmt: skip
        command = BuildCommand("ladder-table", ("moses-ini", built.ini, *tables, "-o", ini), ("ladder-table.ini",),
                               threads=False, anchored=True)  # fmt: skip
        return LadderTable("table", model.table, ini, (command,))

    def _next(self, name: str, before: LadderTable, *arguments: str, more: tuple[str, ...] = ()) -> LadderTable:
        """Return a table that a command makes from another one, with its ini; `more` are further outputs."""
        path, ini = self._place(f"ladder-{name}.gz"), self._place(f"ladder-{name}.ini")
        command = BuildCommand(
            f"ladder-{name}",
            (arguments[0], before.path, *arguments[1:], "--moses-ini", before.ini, "--moses-ini-out", ini, "-o", path,
             *self._force),
            (f"ladder-{name}.gz", f"ladder-{name}.ini", *more), before.makers, anchored=True,
        )  # fmt: skip
        return LadderTable(name, path, ini, (*before.makers, command))

    def _annotated(self, name: str, before: LadderTable) -> LadderTable:
        columns, built = self._settings.columns.split("+"), self._built
        options: list[str] = list(built.similarity_options) if "semantic" in columns else []
        if "forced" in columns:
            options += as_options(("--forced-pairs", built.forced_pairs))
        options += ["--smoothing", "kneser-ney" if "kneser-ney" in columns else "none"]
        return self._next(name, before, "annotate", *options)

    def _augmented(self, before: LadderTable) -> LadderTable:
        options: list[str] = []
        for text in self._texts.values():
            options += ["--text", text.source]
        for path in self._settings.monolingual:
            options += ["--monolingual", path]
        if self._model.reordering is None:
            return self._next("words", before, "augment", *options)
        reordering = "ladder-reordering.gz"
        options += ["--reordering-table", self._model.reordering, "--reordering-out", self._place(reordering)]
        return self._next("words", before, "augment", *options, more=(reordering,))

    def _pruned(self, before: LadderTable, size: float) -> LadderTable:
        name, method = f"pruned-{size:g}", self._settings.method
        parsed = parse_method(method, None)
        path, ini = self._place(f"ladder-{name}.gz"), self._place(f"ladder-{name}.ini")
        similarity = list(self._built.similarity_options) if SIMILARITIES in parsed.needs else []
        criteria = method_options(parsed, before.ini, self._config.bitext, self._built.forced_pairs)
        prune = BuildCommand(
            f"ladder-{name}",
            ("prune", before.path, *similarity, "--method", method, "--target-size", f"{size:g}", *criteria, "-o", path,
             *self._force),
            (f"ladder-{name}.gz",), before.makers,
        )  # fmt: skip
        named = BuildCommand(
            f"ladder-{name}-ini", ("moses-ini", before.ini, "--table", path, "-o", ini), (f"ladder-{name}.ini",),
            (prune,), threads=False, anchored=True,
        )  # fmt: skip
        return LadderTable(name, path, ini, (*before.makers, prune, named))

    def _files(self, table: LadderTable, end: str) -> list[str]:
        """Return the files of the test sets' translations, one for each tuning seed."""
        return [self._place(f"ladder-{table.name}-{seed}.{end}") for seed in self._settings.tuning_seeds]

    def _tuned(self, table: LadderTable, seed: int, listed: bool) -> Chain:
        """Return commands that tune and translate the test sets, and if `listed`, rerank n-best lists."""
        stem, search, dev = f"ladder-{table.name}-{seed}", search_options(self._config), self._texts[DEV]
        ini = self._place(f"{stem}.ini")
        tune = BuildCommand(
            f"{stem}-tune",
            ("tune", "--moses-ini", table.ini, "--dev", dev.source, dev.target, "--seed", str(seed),
             "--iterations", str(self._settings.iterations), *search, *self._force, "-o", ini),
            (f"{stem}.ini",), table.makers, keeps=ini, cluster=True,
        )  # fmt: skip
        chain = [tune]
        for name, text in self._texts.items():
            if name == DEV and not listed:
                continue
            path, lists = self._place(f"{stem}.{name}"), [f"{stem}.{name}.nbest.gz"] if listed else []
            list_options = ["--n-best-list", self._place(lists[0]), str(N_BEST)] if listed else []
            chain.append(BuildCommand(
                f"{stem}-{name}", ("decode", "--moses-ini", ini, text.source, *search, *list_options, "-o", path),
                (f"{stem}.{name}", *lists), (tune,), keeps=path, cluster=True,
            ))  # fmt: skip
        if listed:
            chain.append(self._reranked(stem, tuple(chain[1:])))
        return chain

    def _reranked(self, stem: str, lists: Makers) -> BuildCommand:
        """Return the command that reranks the list of the test sets, with weights tuned on the list of the dev set."""
        dev, listed = self._texts[DEV], {name: self._place(f"{stem}.{name}.nbest.gz") for name in self._texts}
        models = [part for folder in self._settings.rerank for part in ("-m", folder)]
        return BuildCommand(
            f"{stem}-rerank",
            ("rerank", listed[TESTS], "--source", self._texts[TESTS].source, *models, "--dev-list", listed[DEV],
             "--dev", dev.source, dev.target, *self._force, "-o",
             self._place(f"{stem}.{_RERANKED}")),
            (f"{stem}.{_RERANKED}",), lists,
        )  # fmt: skip


def check_translators(session: Session, settings: LadderSettings) -> None:
    """Reject translators that do not prefer the translations of the development set, before hours of work.

    Raises:
        PhraseToolError: a folder contains no translator, or one of other languages, or a translator does not score
            translations higher than other sentences.
    """
    if settings.rerank:
        files, texts, force = session.config.dev, session.texts, session.config.force
        source = SourceText.of_text(files.source, texts.sources[DEV])
        target = NBestList.of_text(files.target, texts.targets[DEV])
        translators = [load_directed(folder, source, target, force, session.watch) for folder in settings.rerank]
        check_fit(translators, source, target, session.threads, force, session.watch)


def ladder_frames(
    session: Session, settings: LadderSettings, built: BuildPlan, runner: CommandRunner
) -> dict[str, pd.DataFrame]:
    """Return the frame `ladder`, with a row for each step and text.

    Args:
        session: the experiment.
        settings: settings of the ladder.
        built: paths of the existing files.
        runner: runs the commands that make missing files.

    Raises:
        PhraseToolError: a command failed; the error has its last message.
    """
    store, texts = runner.store, session.texts
    plan = plan_ladder(session.config, settings, built, write_ladder_texts(texts, store), store.path)
    for chains in plan.phases:
        runner.make(chains)
    session.note(plan.phases, store)
    references = {name: lines for name, lines in texts.references.items() if name != DEV}
    of = {path: count_entries(path) for path in dict.fromkeys(step.table.path for step in plan.steps)}
    runs = []
    for step in plan.steps:
        translations = [_read_translations(references, path) for path in step.translations]
        runs.append(LadderRuns(step.label, of[step.table.path], step.share, translations, step.below))
    return {"ladder": ladder_frame(runs, Scoreboard(references, session.config.samples))}


def write_ladder_texts(texts: ExperimentTexts, store: BuildStore) -> dict[str, TextPair]:
    """Write the development set, and the test sets as one text; return their files."""
    joined = {DEV: [DEV], TESTS: [name for name in texts.sources if name != DEV]}
    pairs = {}
    for text, names in joined.items():
        pairs[text] = TextPair(store.path(f"ladder.{text}.source"), store.path(f"ladder.{text}.target"))
        write_pair(texts, names, pairs[text])
    return pairs


def _read_translations(references: Mapping[str, Sequence[str]], path: str) -> dict[str, list[str]]:
    """Read translations, by the name of the test set.

    Raises:
        DataError: the file and the test sets have different numbers of lines.
    """
    with Input(path) as source:
        lines = text_lines(source.read_all())
    if len(lines) != sum(map(len, references.values())):
        raise DataError(path, "the number of lines differs from that of the test sets; delete the file and start again")
    ends = list(itertools.accumulate(map(len, references.values())))
    return {name: lines[end - len(references[name]) : end] for name, end in zip(references, ends, strict=True)}
