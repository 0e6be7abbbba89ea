"""The ladder of an experiment: what columns, new entries and reranking add on top of each other, and pruning after all.

Unlike Tables 1 and 2, its tables are written: every step is what somebody would type.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from moses_compat.engine.model import MosesModel
from moses_compat.engine.n_best import NBestList
from moses_compat.experiments.build import BuildPlan, Makers, Place, as_options, forced, method_options, search_options
from moses_compat.experiments.build_commands import BuildCommand, BuildStore, Chain, CommandRunner
from moses_compat.experiments.results import LadderRuns, Scoreboard, ladder_frame
from moses_compat.experiments.settings import DEV, ExperimentConfig, LadderSettings, TextPair
from moses_compat.experiments.workbench import ExperimentTexts, Session, text_lines, write_pair
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
        name: in the names of files.
        path: it.
        ini: a moses.ini with it, whose weights are not tuned for it.
        makers: what makes both.
    """

    name: str
    path: str
    ini: str
    makers: Makers


@dataclass(frozen=True)
class Step:
    """A step: a table, and for each tuning seed where its translations will be.

    Attributes:
        label: its name.
        table: it.
        share: to which it was pruned; 1 if it was not.
        translations: of the test sets as one text, a file for each tuning seed.
        below: the label of the step it is compared with; None: the whole table with the most steps.
    """

    label: str
    table: LadderTable
    share: float
    translations: Sequence[str]
    below: str | None = None


@dataclass
class LadderPlan:
    """The steps, from the table as it is upwards, and what makes them, phase by phase."""

    steps: list[Step] = field(default_factory=list)
    phases: list[list[Chain]] = field(default_factory=list)


def plan_ladder(
    config: ExperimentConfig, asked: LadderSettings, built: BuildPlan, texts: Mapping[str, TextPair], place: Place
) -> LadderPlan:
    """Say what has to be made, and how.

    Args:
        config: the experiment.
        asked: its ladder.
        built: what was made before.
        texts: files of `dev` and `TESTS`.
        place: of a file of the build folder.
    """
    return _Planner(config, asked, built, texts, place).plan()


def _beyond(table: LadderTable, before: LadderTable) -> Chain:
    """What makes a table of one that is there."""
    return table.makers[len(before.makers) :]


class _Planner:
    """See `plan_ladder`."""

    def __init__(
        self, config: ExperimentConfig, asked: LadderSettings, built: BuildPlan, texts: Mapping[str, TextPair],
        place: Place,
    ) -> None:  # fmt: skip
        self._config, self._asked, self._built, self._texts, self._place = config, asked, built, texts, place
        self._force = forced(config)
        self._model = MosesModel.read(built.ini, built.table, built.reordering_table)

    def plan(self) -> LadderPlan:
        asked, found = self._asked, LadderPlan()
        plain = self._plain()
        whole = [("table", plain)]
        if asked.columns:
            whole.append(("+ columns", self._annotated("columns", plain)))
        if asked.augment:
            words = self._augmented(plain)
            whole.append(("+ augment", self._annotated("all", words) if asked.columns else words))
        last = whole[-1][1]
        pruned = [(f"all, {100 * size:g} %", size, self._pruned(last, size)) for size in asked.sizes]
        tunings: list[Chain] = []
        for label, table in whole:
            listed = bool(asked.rerank) and table is last
            tunings += [self._tuned(table, seed, listed) for seed in asked.tuning_seeds]
            found.steps.append(Step(label, table, 1.0, self._files(table, TESTS)))
            if listed:
                found.steps.append(Step("+ rerank", table, 1.0, self._files(table, _RERANKED)))
        for label, size, table in pruned:
            tunings += [self._tuned(table, seed, bool(asked.rerank)) for seed in asked.tuning_seeds]
            if asked.rerank:
                # What the decoder found best is there, too: no reranking is what most systems have.
                plainly = Step(
                    f"all but rerank, {100 * size:g} %", table, size, self._files(table, TESTS), whole[-1][0]
                )
                found.steps.append(plainly)
            found.steps.append(Step(label, table, size, self._files(table, _RERANKED if asked.rerank else TESTS)))
        found.phases = [
            [plain.makers], [_beyond(table, plain) for _, table in whole],
            [_beyond(table, last) for *_, table in pruned], tunings,
        ]  # fmt: skip
        return found

    def _plain(self) -> LadderTable:
        """The table as it is; an ini that names it is made if the configuration names another than the ini."""
        built, model = self._built, self._model
        if not (self._config.moses and (built.table or built.reordering_table)):
            return LadderTable("table", model.table, built.ini, ())
        ini, tables = self._place("ladder-table.ini"), as_options(
            ("--table", built.table), ("--reordering-table", built.reordering_table)
        )  # fmt: skip
        command = BuildCommand("ladder-table", ("moses-ini", built.ini, *tables, "-o", ini), ("ladder-table.ini",),
                               threads=False, anchored=True)  # fmt: skip
        return LadderTable("table", model.table, ini, (command,))

    def _next(self, name: str, before: LadderTable, *arguments: str, more: tuple[str, ...] = ()) -> LadderTable:
        """A table that a command makes of another, with its ini; `more` are further outputs."""
        path, ini = self._place(f"ladder-{name}.gz"), self._place(f"ladder-{name}.ini")
        command = BuildCommand(
            f"ladder-{name}",
            (arguments[0], before.path, *arguments[1:], "--moses-ini", before.ini, "--moses-ini-out", ini, "-o", path,
             *self._force),
            (f"ladder-{name}.gz", f"ladder-{name}.ini", *more), before.makers, anchored=True,
        )  # fmt: skip
        return LadderTable(name, path, ini, (*before.makers, command))

    def _annotated(self, name: str, before: LadderTable) -> LadderTable:
        columns, built = self._asked.columns.split("+"), self._built
        said: list[str] = list(built.said) if "semantic" in columns else []
        if "forced" in columns:
            said += as_options(("--forced-pairs", built.forced_pairs))
        said += ["--smoothing", "kneser-ney" if "kneser-ney" in columns else "none"]
        return self._next(name, before, "annotate", *said)

    def _augmented(self, before: LadderTable) -> LadderTable:
        given: list[str] = []
        for text in self._texts.values():
            given += ["--text", text.source]
        for path in self._asked.monolingual:
            given += ["--monolingual", path]
        if self._model.reordering is None:
            return self._next("words", before, "augment", *given)
        turned = "ladder-reordering.gz"
        given += ["--reordering-table", self._model.reordering, "--reordering-out", self._place(turned)]
        return self._next("words", before, "augment", *given, more=(turned,))

    def _pruned(self, before: LadderTable, size: float) -> LadderTable:
        name, method = f"pruned-{size:g}", self._asked.method
        parsed = parse_method(method, None)
        path, ini = self._place(f"ladder-{name}.gz"), self._place(f"ladder-{name}.ini")
        said = list(self._built.said) if SIMILARITIES in parsed.needs else []
        chosen = method_options(parsed, before.ini, self._config.bitext, self._built.forced_pairs)
        prune = BuildCommand(
            f"ladder-{name}",
            ("prune", before.path, *said, "--method", method, "--target-size", f"{size:g}", *chosen, "-o", path,
             *self._force),
            (f"ladder-{name}.gz",), before.makers,
        )  # fmt: skip
        named = BuildCommand(
            f"ladder-{name}-ini", ("moses-ini", before.ini, "--table", path, "-o", ini), (f"ladder-{name}.ini",),
            (prune,), threads=False, anchored=True,
        )  # fmt: skip
        return LadderTable(name, path, ini, (*before.makers, prune, named))

    def _files(self, table: LadderTable, end: str) -> list[str]:
        """Translations of the test sets with each tuning."""
        return [self._place(f"ladder-{table.name}-{seed}.{end}") for seed in self._asked.tuning_seeds]

    def _tuned(self, table: LadderTable, seed: int, listed: bool) -> Chain:
        """Tune and translate the test sets; where lists are wanted, choose from them, too."""
        stem, search, dev = f"ladder-{table.name}-{seed}", search_options(self._config), self._texts[DEV]
        ini = self._place(f"{stem}.ini")
        tune = BuildCommand(
            f"{stem}-tune",
            ("tune", "--moses-ini", table.ini, "--dev", dev.source, dev.target, "--seed", str(seed),
             "--iterations", str(self._asked.iterations), *search, *self._force, "-o", ini),
            (f"{stem}.ini",), table.makers, keeps=ini, cluster=True,
        )  # fmt: skip
        chain = [tune]
        for name, text in self._texts.items():
            if name == DEV and not listed:
                continue
            path, lists = self._place(f"{stem}.{name}"), [f"{stem}.{name}.nbest.gz"] if listed else []
            wanted = ["--n-best-list", self._place(lists[0]), str(N_BEST)] if listed else []
            chain.append(BuildCommand(
                f"{stem}-{name}", ("decode", "--moses-ini", ini, text.source, *search, *wanted, "-o", path),
                (f"{stem}.{name}", *lists), (tune,), keeps=path, cluster=True,
            ))  # fmt: skip
        if listed:
            chain.append(self._reranked(stem, tuple(chain[1:])))
        return chain

    def _reranked(self, stem: str, lists: Makers) -> BuildCommand:
        """Choose from the list of the test sets, by weights tuned on that of the development set."""
        dev, listed = self._texts[DEV], {name: self._place(f"{stem}.{name}.nbest.gz") for name in self._texts}
        models = [part for folder in self._asked.rerank for part in ("-m", folder)]
        return BuildCommand(
            f"{stem}-rerank",
            ("rerank", listed[TESTS], "--source", self._texts[TESTS].source, *models, "--dev-list", listed[DEV],
             "--dev", dev.source, dev.target, *self._force, "-o",
             self._place(f"{stem}.{_RERANKED}")),
            (f"{stem}.{_RERANKED}",), lists,
        )  # fmt: skip


def check_translators(session: Session, asked: LadderSettings) -> None:
    """Refuse translators that can not tell the translations of the development set from others, before hours go by.

    Raises:
        PhraseToolError: there is no translator in a folder, it is of other languages, or it finds sentences beside
            their translations no likelier than beside others.
    """
    if asked.rerank:
        files, texts, force = session.config.dev, session.texts, session.config.force
        source = SourceText.of_text(files.source, texts.sources[DEV])
        target = NBestList.of_text(files.target, texts.targets[DEV])
        judges = [load_directed(folder, source, target, force, session.watch) for folder in asked.rerank]
        check_fit(judges, source, target, session.threads, force, session.watch)


def ladder_frames(
    session: Session, asked: LadderSettings, built: BuildPlan, runner: CommandRunner
) -> dict[str, pd.DataFrame]:
    """`ladder`, a row for each step and text.

    Args:
        session: the experiment.
        asked: its steps.
        built: what was made before.
        runner: makes what is missing.

    Raises:
        PhraseToolError: a command failed; it says what the command said.
    """
    store, texts = runner.store, session.texts
    plan = plan_ladder(session.config, asked, built, write_ladder_texts(texts, store), store.path)
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
    """Write the development set, and the test sets as one text."""
    joined = {DEV: [DEV], TESTS: [name for name in texts.sources if name != DEV]}
    found = {}
    for text, names in joined.items():
        found[text] = TextPair(store.path(f"ladder.{text}.source"), store.path(f"ladder.{text}.target"))
        write_pair(texts, names, found[text])
    return found


def _read_translations(references: Mapping[str, Sequence[str]], path: str) -> dict[str, list[str]]:
    """Translations by the name of the test set.

    Raises:
        DataError: the file has not as many lines as the test sets.
    """
    with Input(path) as source:
        lines = text_lines(source.read_all())
    if len(lines) != sum(map(len, references.values())):
        raise DataError(path, "has not as many lines as the test sets; delete it, and begin again")
    ends = list(itertools.accumulate(map(len, references.values())))
    return {name: lines[end - len(references[name]) : end] for name, end in zip(references, ends, strict=True)}
