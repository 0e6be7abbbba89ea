"""`phrasetool train phrases`: encoders of the phrases of two languages, from phrase pairs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from phrasetool.options import declared_options, registered
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.phrase_encoder.settings import TrainingSettings, preset
from phrasetool_cli.checks import refuse_unused
from phrasetool_cli.command import sections, value_of
from phrasetool_cli.train.pair_files import min_pair_count_option
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import (
    Declaration,
    SettingsCommand,
    Shown,
    declarations,
    of_chosen,
    usage_error,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from moses_compat.lines.counts import CountTally
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.phrase_encoder.start import Start
    from phrasetool.training.data import PhrasePairs
    from phrasetool_cli.progress import TerminalWatch

# Default maximum words of the longer side of a pair.
_MAX_LENGTH = 7
_SIDES = ("source", "target")
# Settings whose options have other names, to match other kinds of models.
_FLAGS = {
    "iterations": "epochs", "pretrain_iterations": "pretrain-epochs", "smoothing": "label-smoothing",
    "layers": "attention-layers", "start": None,
}  # fmt: skip
_RENAMED = {
    "--encoder": "--architecture", "--iterations": "--epochs", "--pretrain-iterations": "--pretrain-epochs",
    "--smoothing": "--label-smoothing", "--layers": "--attention-layers",
}  # fmt: skip

_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz
  phrasetool train phrases pairs.gz --architecture mean-max --loss syn-projection
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --seed 2
"""


class _Registered(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    """A name in a registry, which may grow.

    Args:
        registry: name -> class.
    """

    name = "name"

    def __init__(self, registry: Mapping[str, str]) -> None:
        self._registry = registry

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a registered name."""
        return str(click.Choice(list(self._registry)).convert(value, param, ctx))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete a registered name."""
        return click.Choice(list(self._registry)).shell_complete(ctx, param, incomplete)


def _declared() -> list[Declaration]:
    """Return the options of the settings, of all losses and of all architectures."""
    declared = declarations(TrainingSettings)
    for registry, kind in ((OBJECTIVES, "loss"), (ENCODERS, "encoder")):
        for name in registry:
            declared += declarations(registered(registry, name, kind), name)
    return declared


def _shown(arguments: Sequence[str]) -> Shown:
    """Return the options and defaults to show for the loss and the architecture in the arguments."""
    loss = value_of(arguments, "--loss") or TrainingSettings.loss
    architecture = value_of(arguments, "--architecture") or TrainingSettings.encoder
    if loss not in OBJECTIVES or architecture not in ENCODERS:
        return Shown()
    return Shown(frozenset([loss, architecture]), preset(loss, architecture))


_EXCLUSIVE = tuple((f"{side}_autoencoder", f"{side}_{kind}") for side in _SIDES for kind in ("text", "vectors"))


@click.command(
    cls=SettingsCommand, declared=_declared, shown=_shown, flags=_FLAGS, renamed=_RENAMED, exclusive=_EXCLUSIVE,
    epilog=_EXAMPLE,
)  # fmt: skip
@click.argument("pairs")
@sections(
    "Input",
    click.option("--max-length", type=click.IntRange(1), default=_MAX_LENGTH, metavar="N",
                 help="Maximum words of a side."),
    min_pair_count_option,
    click.option("--source-text", multiple=True, metavar="FILE",
                 help="Text for word vectors; repeatable."),
    click.option("--target-text", multiple=True, metavar="FILE",
                 help="Target text for word vectors; repeatable."),
    click.option("--source-vectors", metavar="FILE", help="Initial word vectors (word2vec, GloVe)."),
    click.option("--target-vectors", metavar="FILE", help="Initial target word vectors."),
    click.option("--source-autoencoder", metavar="FOLDER", help="Autoencoder whose encoder is the initial one."),
    click.option("--target-autoencoder", metavar="FOLDER", help="Initial target encoder."),
    "Output",
    model_folder_option,
    "Settings",
    click.option("--architecture", "encoder", type=_Registered(ENCODERS), metavar="NAME",
                 help=f"Phrase encoder: {', '.join(ENCODERS)}.  [default: {TrainingSettings.encoder}]"),
    click.option("--loss", type=_Registered(OBJECTIVES), metavar="NAME",
                 help=f"Training loss: {', '.join(OBJECTIVES)}.  [default: {TrainingSettings.loss}]"),
    click.option("--freeze-encoders", is_flag=True, help="Train the transformations only."),
    None,
    run_options,
)  # fmt: skip
def command(pairs: str, max_length: int, min_pair_count: float, **values: Any) -> None:
    """Train encoders of phrases of two languages on phrase pairs.

    PAIRS has lines `source ||| target[ ||| count]`, ideally from leave-one-out forced decoding, or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs.

    `phrasetool train phrases --loss NAME --architecture NAME --help` lists the options and defaults of another loss
    and architecture.
    """
    run = RunOptions.taken(values)
    record = {"pairs_file": pairs}
    record |= {key: values[key] for key in ("source_autoencoder", "target_autoencoder") if values[key]}
    chosen = {**values, "seed": run.seed, "loss": values["loss"] or TrainingSettings.loss}
    starts = _chosen_starts(chosen)
    # If no architecture was given, an autoencoder may prescribe it.
    chosen["encoder"] = chosen["encoder"] or TrainingSettings.encoder
    chosen = of_chosen(chosen, _declared(), chosen["loss"], chosen["encoder"])
    with run.document([pairs, *(file for start in starts for file in start.files)]) as document:
        document(_train(pairs, run, chosen, starts, (max_length, min_pair_count), record))


def _train(
    pairs: str, run: RunOptions, chosen: dict[str, Any], starts: tuple[Start, Start], kept: tuple[int, float],
    record: dict[str, Any],
) -> BilingualModel:  # fmt: skip
    """Train encoders of both languages and report progress."""
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.phrase_encoder.start import start_parameters, with_known_words
    from phrasetool.phrase_encoder.trainer import choose_training_device, train_model
    from phrasetool.training.run import problem_handler
    from phrasetool_cli.progress import TerminalWatch, TrainingProgress

    watch = TerminalWatch(run.quiet)
    tell, report_problem = watch.say, problem_handler(watch, run.force)
    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise usage_error(error) from error
    refuse_unused(_without_effect(settings, starts))
    run.ready([pairs, *(file for start in starts for file in start.files)])
    data, starts = with_known_words(_read(pairs, kept, watch, report_problem), settings, starts)
    if chosen["batch_size"] is None:
        settings = settings.with_batches_for(len(data))
    # Both languages are trained in parallel; within a language, one thread is fastest at these sizes.
    torch.set_num_threads(1)
    choice = choose_training_device(run.device, data, settings)
    device = choice.device
    if choice.message:
        tell(choice.message)
    torch.set_num_threads(1 if device.type == "cpu" else run.threads)
    tell(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
    tell(f"training on {device_name(device)}, loss {settings.loss}, n={settings.dimension}, "
         f"encoder {settings.encoder}, into {run.folder}")  # fmt: skip

    def known(side: str, share: float) -> None:
        tell(f"{side} word vectors: {share:.1%} of the words start from known vectors")

    began = time.monotonic()
    phases = settings.pretrain_iterations, settings.iterations
    with TrainingProgress(len(data), *phases, run.quiet, run.finished_epochs()) as progress:
        training = run.training_run(device, watch, record=record, on_report=progress.report, tick=progress.tick)
        trained = train_model(
            data,
            settings,
            lambda: start_parameters(data, settings, starts, known, report_problem),
            training,
            start=_contents(starts),
            report_problem=report_problem,
        )
    tell(f"saved {trained.signature} to {run.folder} after {time.monotonic() - began:.0f} s")
    return trained


def _without_effect(settings: TrainingSettings, starts: Sequence[Start]) -> dict[str, str]:
    """Return the options that have no effect together with the others, and what each of them is for."""
    reasons: dict[str, str] = {}
    if not settings.kind.learns:
        used = {"dimension", "vectors", "vector_scale", "calibration"}
        names = {"loss", *settings.loss_options, *declared_options(TrainingSettings)} - used
        reasons.update(dict.fromkeys(names, "training; with --transformation identity, nothing is trained"))
    if settings.schedule != "constant":
        reasons.setdefault("patience", "--schedule constant")
    if settings.freeze_encoders:
        reasons["unknown_rate"] = "encoders that are trained; with --freeze-encoders, they are not"
    if all(start.autoencoder for start in starts):
        reasons["vector_scale"] = "new word vectors; autoencoders bring theirs"
    return reasons


def _read(
    pairs: str, kept: tuple[int, float], watch: TerminalWatch, report_problem: Callable[[str], None]
) -> PhrasePairs:
    """Read the pairs of a file up to a maximum length and with a minimum count."""
    from moses_compat.corpora.training_pairs import UNCOUNTED, read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.training.data import check_pairs
    from phrasetool_cli.progress import TableProgress

    max_length, min_count = kept
    with Input(pairs) as source, TableProgress("read pairs", source.size(), watch.quiet) as progress:

        def counted(tally: CountTally) -> None:
            for sentence in tally.sentences(UNCOUNTED):
                watch.say(f"{source.name}: {sentence}")

        data = read_training_pairs(
            source, max_length=max_length, min_count=min_count, progress=progress, counted=counted
        )
        check_pairs(source.name, data, report_problem)
    return data


def _contents(starts: Sequence[Start]) -> list[list[str]] | None:
    """Return strings that identify the content of the files of each start; None without files."""
    from moses_compat.files.finished_work import described
    from moses_compat.files.paths import is_stream

    # The content of a stream is unknown until it is read, and a resumed training does not read it.
    contents = [
        [start.autoencoder.identity]
        if start.autoencoder
        else [described(file) for file in start.files if not is_stream(file)]
        for start in starts
    ]
    return contents if any(contents) else None


def _chosen_starts(chosen: dict[str, Any]) -> tuple[Start, Start]:
    """Take the start of both languages out of the options; add the settings that autoencoders prescribe.

    Raises:
        click.UsageError: options contradict each other, or settings that an autoencoder prescribes.
        ModelError: a folder does not hold an autoencoder that can serve as the encoder of phrases.
    """
    from moses_compat.corpora.texts import unescaped_sentences
    from moses_compat.files.streams import open_bytes
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.phrase_encoder.start import Start, prescribed_settings

    files_of = {side: {kind: chosen.pop(f"{side}_{kind}") for kind in ("text", "vectors", "autoencoder")}
             for side in _SIDES}  # fmt: skip
    for side in _SIDES:
        for kind in ("text", "vectors"):
            if files_of[side]["autoencoder"] and files_of[side][kind]:
                raise click.UsageError(f"--{side}-autoencoder brings word vectors; leave out --{side}-{kind}")
            if chosen["vectors"] == "random" and files_of[side][kind]:
                raise click.UsageError(f"--vectors random draws all word vectors; leave out --{side}-{kind}")
    folders = [files_of[side]["autoencoder"] for side in _SIDES]
    if chosen["vectors"] and all(folders):
        raise click.UsageError("autoencoders bring word vectors; leave out --vectors")
    models = [AutoencoderModel.load(folder) if folder else None for folder in folders]
    for folder, model in zip(folders, models, strict=True):
        if model is not None:
            try:
                chosen.update(prescribed_settings(model, folder, chosen))
            except ValueError as error:
                raise usage_error(error) from error
    if chosen.get("transformation") == "identity" and not all(files_of[side]["vectors"] for side in _SIDES):
        raise click.UsageError("--transformation identity is for word vectors of one space; name them with "
                               "--source-vectors and --target-vectors")  # fmt: skip
    named = [tuple(filter(None, (*files_of[side]["text"], files_of[side]["vectors"]))) for side in _SIDES]
    source, target = (
        Start(functools.partial(unescaped_sentences, files_of[side]["text"]) if files_of[side]["text"] else None,
              files_of[side]["vectors"], model, folder or ", ".join(files), files, open_bytes)
        for side, folder, model, files in zip(_SIDES, folders, models, named, strict=True)
    )  # fmt: skip
    return source, target
