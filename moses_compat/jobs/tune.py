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
    """Settings of tuning; see `phrasetool.smt.tuning.loop.tune`.

    Attributes:
        algorithm: `mira` or `pro`.
        iterations: number of decoder runs per start.
        restarts: number of starts.
        patience: number of runs without a better BLEU after which tuning stops.
        seed: random seed.
        n_best: number of translations of each sentence for training.
    """

    algorithm: str = "mira"
    iterations: int = 25
    restarts: int = 1
    patience: int = 5
    seed: int = 1
    n_best: int = 100

    def label(self, run: TuningRun) -> str:
        """Return the name of a run: its number, and that of its start if there are several."""
        return f"{run.run} of start {run.restart + 1}" if self.restarts > 1 else str(run.run)


def read_development_set(source: str, references: Sequence[str]) -> tuple[bytes, list[bytes]]:
    """Read a text and its translations.

    Args:
        source: the file of the text, one sentence per line; `-` for standard input.
        references: files with the same number of lines.

    Raises:
        DataError: a file cannot be read, the text is empty, or a translation has another number of lines.
    """
    text = surface_words(read_sentences(source), display_name(source))
    if not text:
        raise DataError(source, "the file has no lines")
    texts = [_read(path) for path in references]
    for path, data in zip(references, texts, strict=True):
        check_sides(len(Symbols().read_lines(text)), len(Symbols().read_lines(data)), source, path)
    return text, texts


def checked_start(
    check: DevelopmentCheck, translator: Translator, sentences: InputPhrases, text: bytes, references: Sequence[bytes]
) -> Callable[[NBest, Sequence[Phrases]], None]:
    """Check that a development set matches the table, and return a check of its BLEU, see `tune_model`.

    Args:
        check: check of the development set, after the check of its texts.
        translator, sentences: the translator of the model, and the sentences of the development set.
        text, references: result of `read_development_set`.

    Raises:
        PhraseToolError: see `DevelopmentCheck`.
    """
    fit = check.fit(translator.table, sentences.sentences, text, references)
    check.language_models(translator)
    return lambda n_best, truth: check.bleu(partial(first_best_statistics, n_best), truth, fit, tuned=False)


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
    check: Callable[[NBest, Sequence[Phrases]], None] = lambda n_best, truth: None,
    watch: Watch = SILENT,
    report: Callable[[TuningRun, NamedWeights], None] = lambda run, weights: None,
    finished: FinishedWork | None = None,
    runner: Runner | None = None,
) -> tuple[TuningResult, NamedWeights]:
    """Find weights that maximise BLEU of the model's translations of a development set.

    Args:
        model: the model, with the limits of the search.
        translator, source: the translator of the model, and the development set; see `MosesModel.load`.
        references: translations of the development set.
        options: the settings of tuning.
        threads: number of threads for decoding.
        check: called with the first run's translations and the references before the first update.
        watch: progress listener of the decoder runs.
        report: called with each run and its weights, by the ini's names.
        finished: stores translations, so that interrupted tuning can be resumed.
        runner: runner of the translation of sentences; threads if None.

    Returns:
        The result of tuning, and the best weights by the ini's names.
    """
    runs = 0
    bar: ItemTick

    def decode(weights: Weights) -> NBest:
        nonlocal bar, runs
        runs += 1
        with watch.items(f"run {runs}", len(source.sentences), "sentence") as bar:
            lists = decoder(weights, finished.runner(f"run-{runs}", weights, by=runner) if finished else runner or run)
        if runs == 1:
            check(lists, truth)
        return lists

    decoder = NBestDecoder(
        translator, source.sentences, model.search, options.n_best, model.tuneable, threads, lambda: bar(1)
    )

    def named(weights: Weights) -> NamedWeights:
        return model.named_weights(decoder.all_weights(weights))

    # A reference word that is not in the table can never be matched.
    truth = [translator.table.target_symbols.read_lines(text, add=False) for text in references]
    result = tune(
        decode, truth, model.weights[model.tuneable], options.algorithm, iterations=options.iterations,
        restarts=options.restarts, patience=options.patience, seed=options.seed, fixed=decoder.fixed,
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
    """Return the text of the model's ini with the tuned weights, and a comment that describes the tuning.

    Args:
        model, options: the model, and the settings of tuning.
        result, weights: result of `tune_model`.
        references: the files of the references.
        output: the file to which the ini will be written.
    """
    names = ", ".join(os.path.basename(path) for path in references)
    comment = (
        f"tuned by phrasetool {__version__}: {options.algorithm}, {options.n_best}-best, seed {options.seed}, "
        f"restarts {options.restarts}, best run {options.label(result.best)}, BLEU {result.best.bleu:.2f} on {names}"
    )
    return with_weights(moved_to(model.ini, os.path.dirname(output)), weights, comment)
