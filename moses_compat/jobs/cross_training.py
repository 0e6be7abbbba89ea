"""Cross-training on a noisy bitext: each half is scored by a classifier that was trained on the other half."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from moses_compat.corpora.bitexts import read_parallel_texts
from moses_compat.files.paths import STANDARD, is_pipe
from moses_compat.files.streams import Input
from moses_compat.jobs.filter_bitext import FilterReport, FilterRequest, Sample, copies_in, filter_bitext, pair_blocks
from phrasetool.errors import DataError, ModelError, PhraseToolError
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer, CrossScorer, PairScorer
from phrasetool.training.data import TextPairs, held_out
from phrasetool.training.run import TrainingRun
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.pair_classifier.training import PairClassifierReport

# A classifier cannot be trained on a half with fewer pairs.
FEWEST_PAIRS = 100
# Share of copies that is worth a warning: seven corpora of 8,000 to 65,000 sentence pairs have none.
_MANY_COPIES = 0.01
_HALVES = ("even", "odd")
_SIDES = ("source", "target")
_BEST = "best"


def filter_by_cross_training(
    request: FilterRequest,
    *,
    best_threshold: bool = False,
    dev: tuple[str, str] | None = None,
    watch: Watch = SILENT,
) -> FilterReport:
    """Train a classifier on each half of a bitext, and keep the pairs that the classifier of the other half accepts.

    Models and halves are stored in a folder next to the first output, so that interrupted work can be resumed; the
    folder is removed when all outputs are complete.

    Args:
        request: the settings of the filter.
        best_threshold: use the mean of the thresholds that were best in training instead of that of the request.
        dev: a development set of correct pairs; if None, pairs of each half are held out, including incorrect ones.
        watch: progress listener.

    Raises:
        DataError: a half has too few pairs, or as in `filter_bitext`.
        PhraseToolError: a file is standard input, or the folder cannot be written; or as in `filter_bitext`.
        DivergedError: a classifier is not better than chance.
    """
    models = _cross_train(request, dev, watch)

    def make(sample: Sample, report: FilterReport) -> PairScorer:
        if best_threshold:
            report.threshold = sum(model.thresholds[_BEST] for model in models) / 2
        # Pairs at even positions are scored by the classifier of the odd positions.
        return CrossScorer((ClassifierScorer(models[1]), ClassifierScorer(models[0])))

    report = filter_bitext(request, make, watch)
    _remove_classifiers(request.kept[0])
    return report


def _cross_train(
    request: FilterRequest, dev: tuple[str, str] | None, watch: Watch
) -> tuple[PairClassifierModel, PairClassifierModel]:
    """Train a classifier on each half of a bitext: the pairs at even and at odd positions, counted from 0.

    Args:
        request: the settings of the filter; pairs with an empty side are skipped, and so are dropped copies.  The
            models are stored next to the first output file.
        dev: the development set of both classifiers, if any.
        watch: progress listener.

    Returns:
        The classifiers of the even and of the odd positions.

    Raises:
        DataError: a file cannot be read, or a half has too few pairs.
        PhraseToolError: a file is standard input, or the folder cannot be written.
        DivergedError: a classifier is not better than chance.
    """
    output = request.kept[0]
    for path, name in ((request.source, "input"), (request.target, "input"), (output, "output")):
        if path == STANDARD or is_pipe(path):
            shown = f"standard {name}" if path == STANDARD else path
            raise PhraseToolError(f"{shown}: two classifiers are trained before pairs are scored; name a file")
    development = read_parallel_texts(*dev) if dev else None
    folder = classifier_folder(output)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise PhraseToolError(f"{folder}: {error.strerror}") from error
    try:
        _write_halves(request, folder, watch)
    except DataError:
        # No classifier exists yet that a later run could use.
        if not any((folder / half).exists() for half in _HALVES):
            _remove_classifiers(output)
        raise
    first, second = (_classifier(folder, half, development, watch) for half in _HALVES)
    return first, second


def classifier_folder(output: str) -> Path:
    """Return the folder of the classifiers, which exists until the output is complete."""
    return Path(f"{output}.classifiers")


def _remove_classifiers(output: str) -> None:
    shutil.rmtree(classifier_folder(output), ignore_errors=True)


def _write_halves(request: FilterRequest, folder: Path, watch: Watch) -> None:
    """Write the pairs of each half, without pairs that have an empty side, and without dropped copies."""
    with contextlib.ExitStack() as stack:
        files = [
            [stack.enter_context(open(folder / f"{half}.{side}", "wb")) for side in _SIDES] for half in _HALVES
        ]  # fmt: skip
        sides = [stack.enter_context(Input(path)) for path in (request.source, request.target)]
        numbers, copies, row = [0, 0], 0, 0
        for block in pair_blocks(sides[0], sides[1]):
            for *pair, is_copy in zip(*block.written, copies_in(block).tolist(), strict=True):
                copies += is_copy
                if all(pair) and not (is_copy and request.drop_copies):
                    numbers[row % 2] += 1
                    for file, line in zip(files[row % 2], pair, strict=True):
                        file.write(line + b"\n")
                row += 1
    if min(numbers) < FEWEST_PAIRS:
        raise DataError(
            request.source, f"one half has only {min(numbers):,} pairs; expected {FEWEST_PAIRS} or more for training"
        )
    if copies > _MANY_COPIES * row and not request.drop_copies:
        watch.warn(
            f"{copies:,} of {row:,} pairs are two equal sentences; classifiers that learn from them keep them: drop "
            "copies if they are not translations"
        )


def _classifier(folder: Path, half: str, development: TextPairs | None, watch: Watch) -> PairClassifierModel:
    """Train on a half, or load the model of an interrupted run that had finished this half."""
    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.pair_classifier.settings import PairClassifierSettings
    from phrasetool.pair_classifier.training import train_pair_classifier
    from phrasetool.training.loop import finished_epochs
    from phrasetool.training.run import CHECKPOINT

    model_folder = folder / half
    settings = PairClassifierSettings(search_units=0)
    source, target = (os.fspath(folder / f"{half}.{side}") for side in _SIDES)
    everything = read_parallel_texts(source, target)
    try:
        pairs = everything.up_to(settings.max_length)
        record = {"text": everything.fingerprint}
        if development is None:
            pairs, development = held_out(pairs, settings.seed)
        else:
            development = development.up_to(settings.max_length)
            record["dev"] = development.fingerprint
        if (model_folder / "config.json").exists():
            model = PairClassifierModel.load(os.fspath(model_folder))
            if all(model.training.get(name) == record.get(name) for name in ("text", "dev")):
                return model
        watch.say(
            f"training a classifier on the pairs at {half} positions: {len(pairs):,} pairs, and "
            f"{len(development):,} as its development set"
        )
        unfinished = (model_folder / CHECKPOINT).exists()
        finished = finished_epochs(model_folder, unfinished) * len(pairs)
        with watch.items(f"train, {half}", settings.passes * len(pairs), "pair", finished) as tick:

            def report(epoch: PairClassifierReport) -> None:
                watch.say(
                    f"{half} positions, epoch {epoch.epoch}/{settings.epochs}: F1 {epoch.best_f1:.1%} on the "
                    "development set, with five random wrong pairs for each right one"
                )

            run = TrainingRun(
                model_folder, resume=unfinished, overwrite=not unfinished, record=record, on_report=report, tick=tick
            )
            return train_pair_classifier(pairs, development, settings, run)
    except ModelError as error:
        # The options that the error's remedy names are those of `train`.
        raise ModelError(f"{error}; delete {folder} to start again") from error
    except ValueError as error:
        raise DataError(source, str(error)) from error
