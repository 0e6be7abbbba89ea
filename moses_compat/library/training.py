"""Train a model of phrase pairs from Python."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moses_compat.corpora.training_pairs import UNCOUNTED, read_training_pairs
from moses_compat.files.streams import Input
from moses_compat.library.paths import StrPath
from moses_compat.lines.counts import CountTally
from phrasetool.disk.scratch import scratch_folder
from phrasetool.errors import DataError
from phrasetool.library.models import PhraseModel
from phrasetool.nn.device import one_torch_thread
from phrasetool.watch import NOBODY, Watch

if TYPE_CHECKING:
    from phrasetool.training.data import PhrasePairs

# A source phrase and a target phrase, and perhaps how often they were used.
Pair = tuple[str, str] | tuple[str, str, float]


def train(
    pairs: StrPath | Iterable[Pair],
    folder: StrPath,
    *,
    loss: str = "in-batch",
    encoder: str = "rae",
    max_length: int = 7,
    min_count: float = 0,
    device: str = "cpu",
    resume: bool = False,
    overwrite: bool = False,
    force: bool = False,
    watch: Watch = NOBODY,
    **settings: Any,
) -> PhraseModel:
    """Train a model of phrase pairs and save it, as `phrasetool train` does.

    Args:
        pairs: a file of `source ||| target[ ||| count]`, or any phrase table; or the pairs themselves, words between
            spaces.
        folder: where to save the model.
        loss, encoder: what is minimised, and what makes vectors of phrases; see the manual.
        max_length: pairs with a longer side, in words, are left out.
        min_count: so are pairs that were used less often.
        device: `cpu`, `cuda` or `auto`.
        resume: go on with an interrupted run in `folder`.
        overwrite: replace a finished model, or an unfinished training, in `folder`.
        force: go on, with a warning to who watches, although a check says that the pairs make no sense.
        watch: follows the work; nobody by default.
        settings: any other setting of training: `dimension`, `iterations`, `seed`, ...; see `TrainingSettings`.

    Returns:
        The model, which is saved.

    Raises:
        DataError: the file is damaged, or no pair is left.
        ModelError: there is a finished model or an unfinished training in `folder`, or no checkpoint to resume from, or
            one of other settings.
        ValueError: a setting is out of range; or a pair is none, or has a line feed or `|||` in it.
        DeviceError: there is no such device.
        PhraseToolError: the folder cannot be written; training diverged; or the pairs are very few, or most have two
            equal sides.

    Examples:
        >>> pairs = [(f"第 {number} 章", f"chapter {number}") for number in range(1, 31)]
        >>> model = train(pairs, "tiny-model", dimension=8, iterations=2, vectors="random")
        >>> model.dimension
        8
    """
    from phrasetool.nn.device import choose_device
    from phrasetool.phrase_encoder.settings import TrainingSettings
    from phrasetool.phrase_encoder.start import Start, start_parameters, with_known_words
    from phrasetool.phrase_encoder.trainer import choose_training_device, train_model
    from phrasetool.training.checks import doubting
    from phrasetool.training.data import check_pairs
    from phrasetool.training.run import TrainingRun, check_model_folder

    chosen = TrainingSettings.for_loss(loss=loss, encoder=encoder, **settings)
    check_model_folder(folder, resume=resume, overwrite=overwrite)
    choose_device(device)
    data = _read(pairs, max_length, min_count, watch)
    check_pairs(os.fspath(pairs) if isinstance(pairs, str | os.PathLike) else "the pairs", data, doubting(watch, force))
    data, starts = with_known_words(data, chosen, (Start(), Start()))
    if "batch_size" not in settings:
        chosen = chosen.with_batches_for(len(data))
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    with one_torch_thread():
        choice = choose_training_device(device, data, chosen)
        if choice.message:
            watch.say(choice.message)
        passes = chosen.pretrain_iterations + chosen.iterations
        with watch.items("train", passes * len(data), "pair") as tick:
            run = TrainingRun(Path(folder), choice.device, resume, overwrite, tick=tick)
            trained = train_model(data, chosen, lambda: start_parameters(data, chosen, starts), run)
    return PhraseModel(trained)


def _read(pairs: StrPath | Iterable[Pair], max_length: int, min_count: float, watch: Watch) -> PhrasePairs:
    if isinstance(pairs, str | os.PathLike):
        with Input(os.fspath(pairs)) as source, watch.file("read pairs", source.size()) as progress:

            def counted(tally: CountTally) -> None:
                for sentence in tally.sentences(UNCOUNTED):
                    watch.say(f"{source.name}: {sentence}")

            return read_training_pairs(
                source, max_length=max_length, min_count=min_count, progress=progress, counted=counted
            )
    with scratch_folder(None, "phrasetool-") as scratch:
        path = Path(scratch, "pairs")
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for pair in pairs:
                if len(pair) not in (2, 3):
                    raise ValueError(f"a pair is a source, a target and perhaps a count, not {pair}")
                if any("|||" in phrase or "\n" in phrase for phrase in pair[:2]):
                    raise ValueError(f"a phrase with a line feed or ||| in it: {pair[:2]}")
                file.write(" ||| ".join(map(str, pair)) + "\n")
        try:
            return _read(path, max_length, min_count, watch)
        except DataError as error:
            # The file is no business of who gave pairs.
            raise DataError("the pairs", str(error).removeprefix(f"{path}: ")) from error
