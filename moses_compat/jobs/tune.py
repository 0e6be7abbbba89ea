"""Tune the weights of a moses.ini on a development set."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from moses_compat.corpora.texts import read_sentences, surface_words
from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.development_check import DevelopmentCheck
from moses_compat.engine.model import MosesModel, check_sides
from moses_compat.files.finished_work import FinishedWork
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from moses_compat.ini.editing import moved_to, with_weights
from phrasetool import __version__
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.translator import Translator
from phrasetool.smt.tuning.candidates import NBest, Weights, first_best_statistics
from phrasetool.smt.tuning.loop import NBestDecoder, TuningResult, TuningRun, tune
from phrasetool.watch import SILENT, ItemTick, Watch

NamedWeights = dict[str, list[float]]


@dataclass(frozen=True)
class TuningOptions:
    """How to tune; see `phrasetool.smt.tuning.loop.tune`.

    Attributes:
        algorithm: `mira` or `pro`.
        iterations: runs of the decoder, for each start.
        restarts: how often to start.
        patience: stop after so many runs without a better BLEU.
        seed: of everything random.
        n_best: translations of each sentence to learn from.
    """

    algorithm: str = "mira"
    iterations: int = 25
    restarts: int = 1
    patience: int = 5
    seed: int = 1
    n_best: int = 100

    def label(self, run: TuningRun) -> str:
        """What to call a run: its number, and that of its start if there are several."""
        return f"{run.run} of start {run.restart + 1}" if self.restarts > 1 else str(run.run)


def read_development_set(source: str, references: Sequence[str]) -> tuple[bytes, list[bytes]]:
    """Read a text and its translations.

    Args:
        source: the file of the text, a sentence a line; `-` for standard input.
        references: files of as many lines.

    Raises:
        DataError: a file cannot be read, the text is empty, or a translation is of another length.
    """
    text = surface_words(read_sentences(source), display_name(source))
    if not text:
        raise DataError(source, "the file has no lines")
    texts = {path: _read(path) for path in references}
    for path, data in texts.items():
        check_sides(len(Symbols().read_lines(text)), len(Symbols().read_lines(data)), source, path)
    return text, list(texts.values())


def checked_start(
    check: DevelopmentCheck, translator: Translator, sentences: InputPhrases, text: bytes, references: Sequence[bytes]
) -> Callable[[NBest, Sequence[Phrases]], None]:
    """Check that a development set fits the table; what is returned checks its BLEU, see `tune_model`.

    Args:
        check: of the development set, whose texts were looked at.
        translator, sentences: of the model and the development set.
        text, references: of `read_development_set`.

    Raises:
        PhraseToolError: see `DevelopmentCheck`.
    """
    fit = check.fit(translator.table, sentences.sentences, text, references)
    check.language_models(translator)
    return lambda found, truth: check.bleu(partial(first_best_statistics, found), truth, fit, tuned=False)


def _read(path: str) -> bytes:
    with Input(path) as stream:
        return stream.read_all()


def tune_model(
    model: MosesModel,
    translator: Translator,
    source: InputPhrases,
    references: Sequence[bytes],
    options: TuningOptions,
    threads: int,
    *,
    check: Callable[[NBest, Sequence[Phrases]], None] = lambda found, truth: None,
    watch: Watch = SILENT,
    report: Callable[[TuningRun, NamedWeights], None] = lambda run, weights: None,
    finished: FinishedWork | None = None,
    runner: Runner | None = None,
) -> tuple[TuningResult, NamedWeights]:
    """Find weights under which the model's translations of a development set have a high BLEU.

    Args:
        model: what the ini describes, with the limits of the search.
        translator, source: of the model and the development set; see `MosesModel.load`.
        references: its translations.
        options: how to tune.
        threads: for decoding.
        check: given the first run's translations and the references before anything is learnt from them.
        watch: told how far each run of the decoder is.
        report: told of each run and its weights, by the ini's names.
        finished: keeps translations, so that interrupted tuning goes on.
        runner: has sentences translated; threads if None.

    Returns:
        What tuning found, and the best weights by the ini's names.
    """
    runs = 0
    bar: ItemTick

    def decode(weights: Weights) -> NBest:
        nonlocal bar, runs
        runs += 1
        with watch.items(f"run {runs}", len(source.sentences), "sentence") as bar:
            found = decoder(weights, finished.runner(f"run-{runs}", weights, by=runner) if finished else runner or run)
        if runs == 1:
            check(found, truth)
        return found

    decoder = NBestDecoder(
        translator, source.sentences, model.search, options.n_best, model.tuneable, threads, lambda: bar(1)
    )

    def named(weights: Weights) -> NamedWeights:
        return model.named_weights(decoder.all_weights(weights))

    # A word that no entry of the table has cannot be matched.
    truth = [translator.table.target_symbols.read_lines(text, add=False) for text in references]
    result = tune(
        decode, truth, model.weights[model.tuneable], options.algorithm, iterations=options.iterations,
        restarts=options.restarts, patience=options.patience, seed=options.seed,
        report=lambda run: report(run, named(run.weights)),
    )  # fmt: skip
    return result, named(result.weights)


def tuned_ini(
    model: MosesModel,
    result: TuningResult,
    weights: NamedWeights,
    options: TuningOptions,
    references: Sequence[str],
    output: str,
) -> str:
    """The text of the model's ini with the weights that were found, and a comment that says how they were.

    Args:
        model, options: that were tuned, and how.
        result, weights: of `tune_model`.
        references: the files that BLEU was measured on.
        output: the file that the ini will be.
    """
    names = ", ".join(os.path.basename(path) for path in references)
    comment = (
        f"tuned by phrasetool {__version__}: {options.algorithm}, {options.n_best}-best, seed {options.seed}, "
        f"restarts {options.restarts}, best run {options.label(result.best)}, BLEU {result.best.bleu:.2f} on {names}"
    )
    return with_weights(moved_to(model.ini, os.path.dirname(output)), weights, comment)
