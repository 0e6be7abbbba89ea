"""The ladder of an experiment: what columns, new entries and reranking add on top of each other, and pruning after all.

Unlike Tables 1 and 2, its tables are written: every step is what somebody would type.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from moses_compat.engine.n_best_lists import NBestList
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.build_commands import BuildStore, CommandRunner
from moses_compat.experiments.ladder_plan import TESTS, plan_ladder
from moses_compat.experiments.text_sets import ExperimentTexts, text_lines, write_pair
from moses_compat.experiments.workbench import Session
from moses_compat.files.streams import Input
from moses_compat.jobs.rescore import SourceText, check_fit, load_directed
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import DataError
from phrasetool.experiments.results import LadderRuns, Scoreboard, ladder_frame
from phrasetool.experiments.settings import DEV, LadderSettings, TextPair


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
    of = {path: _entries(path) for path in dict.fromkeys(step.table.path for step in plan.steps)}
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


def _entries(path: str) -> int:
    """How many a table has."""
    with Input(path) as source:
        return sum(raw.lines for raw in raw_blocks(source, whole_groups=False))


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
