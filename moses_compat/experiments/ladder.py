"""The ladder of an experiment: what columns, new entries and reranking add on top of each other, and pruning after all.

Unlike Tables 1 and 2, its tables are written: every step is what somebody would type.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.build_commands import BuildStore, CommandRunner
from moses_compat.experiments.ladder_plan import TESTS, LadderPlan, plan_ladder
from moses_compat.experiments.text_sets import ExperimentTexts
from moses_compat.experiments.workbench import Session
from moses_compat.files.streams import Input, Output
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import DataError
from phrasetool.experiments.results import LadderRuns, Scoreboard, ladder_frame
from phrasetool.experiments.settings import DEV, LadderSettings, TextPair


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
    session.note(plan.commands, store)
    of = _entries(plan)
    runs = []
    for step in plan.steps:
        translations = [_read_translations(texts, files) for files in step.translations]
        runs.append(LadderRuns(step.label, of[step.table.path], step.share, translations))
    return {"ladder": ladder_frame(runs, Scoreboard(texts.references, session.config.samples))}


def write_ladder_texts(texts: ExperimentTexts, store: BuildStore) -> dict[str, TextPair]:
    """Write the development set, and the test sets as one text; a file that holds the same already stays as it is."""
    joined = {DEV: [DEV], TESTS: [name for name in texts.sources if name != DEV]}
    found = {}
    for text, names in joined.items():
        found[text] = TextPair(store.path(f"ladder.{text}.source"), store.path(f"ladder.{text}.target"))
        for path, side in ((found[text].source, texts.sources), (found[text].target, texts.targets)):
            with Output(path) as out:
                out.write_text(b"".join(side[name] for name in names))
    return found


def _entries(plan: LadderPlan) -> dict[str, int]:
    """How many entries each table has."""
    return {path: _count(path) for path in dict.fromkeys(step.table.path for step in plan.steps)}


def _count(path: str) -> int:
    with Input(path) as source:
        return sum(raw.lines for raw in raw_blocks(source, whole_groups=False))


def _read_translations(texts: ExperimentTexts, files: Mapping[str, str]) -> dict[str, list[str]]:
    """Translations by the name of the text.

    Raises:
        DataError: a file has not as many lines as its text.
    """
    lines = {name: _lines(path) for name, path in files.items()}
    counts = {name: source.count(b"\n") for name, source in texts.sources.items() if name != DEV}
    whole = len(lines[TESTS]) == sum(counts.values()) and len(lines[DEV]) == texts.sources[DEV].count(b"\n")
    if not whole:
        raise DataError(files[TESTS], "has another number of lines than its text; delete it, and begin again")
    ends = np.cumsum(list(counts.values())).tolist()
    found = {name: lines[TESTS][end - counts[name] : end] for name, end in zip(counts, ends, strict=True)}
    return {**found, DEV: lines[DEV]}


def _lines(path: str) -> list[str]:
    with Input(path) as source:
        return source.read_all().decode(errors="replace").split("\n")[:-1]
