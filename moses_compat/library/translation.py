"""Translate with a model of Moses' kind, and tune its weights, from Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moses_compat.corpora.texts import surface_words
from moses_compat.engine.development_check import DevelopmentCheck, check_language_models, tell_coverage
from moses_compat.engine.model import MosesModel
from moses_compat.files.streams import Output
from moses_compat.ini.moses_ini import ENCODING
from moses_compat.jobs.tune import TuningOptions, checked_start, read_development_set, tune_model, tuned_ini
from moses_compat.library.paths import StrPath, text_path
from phrasetool.watch import NOBODY, Watch


def _model(
    moses_ini: StrPath, table: StrPath | None, search: Mapping[str, Any] | None, printed: bool = False
) -> MosesModel:
    model = MosesModel.read(os.fspath(moses_ini), text_path(table), printed=printed)
    return model.searching(**(search or {}))


def decode(
    sentences: Iterable[str],
    moses_ini: StrPath,
    *,
    table: StrPath | None = None,
    search: Mapping[str, Any] | None = None,
    threads: int = 1,
    force: bool = False,
    watch: Watch = NOBODY,
) -> list[str]:
    """Translate sentences with a phrase-based model, as `phrasetool decode` does.

    Args:
        sentences: tokenised, words between spaces.
        moses_ini: the model.
        table: this phrase table instead of the one that the ini names.
        search: other options of the search than the ini's; fields of `SearchOptions` such as `algorithm="cube"`.
        threads: worker threads.
        force: go on, with a warning, although the text or the language model seems to be of another language.
        watch: follows the work; nobody by default.

    Returns:
        The best translation of each sentence.

    Raises:
        DataError: the ini or a file that it names cannot be read, or asks for what this decoder does not have.
        PhraseToolError: less than 30 % of the tokens are in the table, or the language model knows few of its words.
        ValueError: a sentence has a line feed in it.

    Examples:
        >>> decode(["经济 发展"], demo_ini)[0].split() != []
        True
    """
    if isinstance(sentences, str):
        raise TypeError("expected several sentences, found one string")
    lines = list(sentences)
    if any("\n" in line for line in lines):
        raise ValueError("a sentence has a line feed in it")
    model = _model(moses_ini, table, search, printed=True)
    with watch.reading(model.tables) as progress:
        text = surface_words("".join(f"{line}\n" for line in lines).encode())
        translator, source = model.load(text, threads, progress)
    model.tell_paths(watch)
    tell_coverage(translator.table, source.sentences, "the text", model.shown_tables, watch, force)
    check_language_models(model, translator.language_model, translator.table, watch, force)
    found = []
    with watch.items("translate", len(lines), "sentence") as tick:
        for translation in translator.translate_all(source.sentences, model.search, threads=threads):
            found.append(model.printing.line(translator, translation)[:-1].decode(errors="replace"))
            tick(1)
    return found


@dataclass(frozen=True)
class Tuned:
    """What `tune` found.

    Attributes:
        bleu: of the development set, in the last step that was better than all before, in percent.
        weights: feature -> numbers, as in the ini.
        steps: BLEU of every run of the decoder.
    """

    bleu: float
    weights: Mapping[str, Sequence[float]]
    steps: Sequence[float]


def tune(
    moses_ini: StrPath,
    source: StrPath,
    references: Sequence[StrPath],
    output: StrPath,
    *,
    table: StrPath | None = None,
    search: Mapping[str, Any] | None = None,
    threads: int = 1,
    force: bool = False,
    watch: Watch = NOBODY,
    **options: Any,
) -> Tuned:
    """Tune the weights of a model on a development set, as `phrasetool tune` does, and write its moses.ini.

    Args:
        moses_ini: the model.
        source: the development set, a tokenised sentence a line.
        references: files of its translations.
        output: the ini with the weights that were found.
        table, search, threads, watch: see `decode`.
        force: go on, with a warning, although the development set seems to have nothing to do with the model.
        options: fields of `TuningOptions`: `algorithm`, `iterations`, `seed`, ...

    Raises:
        DataError: a file cannot be read, or the texts are of different lengths.
        PhraseToolError: the ini cannot be written; or the development set makes no sense, see `DevelopmentCheck`.

    Examples:
        >>> found = tune(demo_ini, "dev.zh", ["dev.en"], "tuned.ini", iterations=2)
        >>> found.bleu == max(found.steps)
        True
    """
    files = [os.fspath(path) for path in references]
    wanted = TuningOptions(**options)
    model = _model(moses_ini, table, search)
    text, truth = read_development_set(os.fspath(source), files)
    development = DevelopmentCheck(model, os.fspath(source), files, force, watch)
    development.texts(text, truth)
    with watch.reading(model.tables) as progress:
        translator, loaded = model.load(text, threads, progress)
    model.tell_paths(watch)
    check = checked_start(development, translator, loaded, text, truth)
    steps: list[float] = []
    result, weights = tune_model(
        model, translator, loaded, truth, wanted, threads, check=check, watch=watch,
        report=lambda run, weights: steps.append(run.bleu),
    )  # fmt: skip
    with Output(os.fspath(output)) as out:
        ini = tuned_ini(model, result, weights, wanted, files, os.fspath(output))
        out.write_text(ini.encode(*ENCODING))
    return Tuned(result.best.bleu, weights, steps)
