"""The flags of `phrasetool train`: its own, and those that settings, losses, encoders and other models declare."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from phrasetool_cli.command import SectionedCommand, give_title, sections
from phrasetool_cli.json_output import json_option
from phrasetool_cli.options import WHICH_MODEL, device_option, force_option, quiet_option, threads_option
from phrasetool_cli.parameter_types import FiniteRange
from phrasetool_cli.train.phrases import LOSS, MAX_LENGTH
from phrasetool_cli.train.run import ARGUMENTS

# Titles of sections.
_FIRST = "What is trained"
_TRAINING, _LOSS, _ENCODER = "Training", "Options of losses", "Options of encoders"
_AUTOENCODER, _NEURAL = "Options of --model autoencoder", "Options of --model continuous"
_MASKED, _PARALLEL, _TAGGER, _SYNTAX = (
    f"Options of --model {kind}" for kind in ("masked-lm", "parallel", "tagger", "syntax")
)
# Parameters that every kind of model takes.
_OF_ALL = {
    "inputs", "folder", "model", "seed", "device", "threads", "resume", "overwrite", "force", "json_file", "quiet",
    "verbose",
}  # fmt: skip
# Which kinds take the others that are not declared; brae where nothing is said.
_TAKERS = {
    "development": {"continuous", "masked-lm", "parallel", "tagger"},
    "treebanks": {"tagger"},
    "monolingual": {"masked-lm"},
    **{name: {"syntax"} for name in ("bitexts", "own_texts", "tagger", "start", "own_language")},
    "max_length": {"autoencoder", "brae", "continuous", "parallel", "syntax"},
    "encoder": {"brae", "parallel"},
    "min_pair_count": {"brae", "continuous", "parallel"},
    "tune_encoder": {"parallel"},
    **{name: {"brae", "continuous"} for name in ("loss", "target_text", "target_vectors")},
}
_KINDS = {
    _AUTOENCODER: {"autoencoder"}, _NEURAL: {"continuous"}, _MASKED: {"masked-lm"}, _PARALLEL: {"parallel"},
    _LOSS: {"brae", "continuous"}, _TAGGER: {"tagger"},
    _SYNTAX: {"syntax"},
}  # fmt: skip
# Kind -> what it takes as inputs, in words and by number.
_INPUTS = {
    "brae": ("one file of phrase pairs", (1,)),
    "autoencoder": ("one text", (1,)),
    "continuous": ("the source and the target side of a bitext, or one file of phrase pairs", (1, 2)),
    "masked-lm": ("one text, or the two sides of a bitext", (1, 2)),
    "parallel": ("the source and the target side of a bitext, or one file of phrase pairs", (1, 2)),
    "tagger": ("treebanks alone, --treebank LANG FILE", (0,)),
    "syntax": ("bitexts alone, --bitext LANG FILE LANG FILE, and --text LANG FILE", (0,)),
}
# What a classifier of sentence pairs reads, beside a folder.
_READ = {
    "words": "--model parallel alone: words and their parts, whose vectors are learnt from random ones",
    "word2vec": "--model parallel alone: the same, learnt from word2vec's",
    "hf:FOLDER": "--model parallel alone: pieces of a BERT in a folder, of any language it knows",
}
_BASELINES = {
    "cross-entropy": "--model continuous alone: a distribution over the target words, whose vectors learn",
    "cross-entropy-tied": "--model continuous alone: the same, with one table for words that are read and predicted",
}

train_options = sections(
    _FIRST,
    click.option("-o", "--output", "folder", metavar="FOLDER", help=f"Model folder to write.  {WHICH_MODEL}"),
    click.option("--model", type=click.Choice(list(_INPUTS)), default="brae",
                 help="What to train: bilingually-constrained encoders on pairs, an autoencoder on text, a "
                      "translator that predicts word vectors on a bitext or on pairs, a classifier that tells "
                      "parallel sentences from others on the same, an own BERT on text, a tagger on treebanks, or an "
                      "encoder of syntax on bitexts."),
    "How it is run",
    click.option("--seed", type=click.IntRange(0), default=1, help="Fixes everything."),
    device_option(),
    threads_option("CPU threads; on pairs, two are used at most."),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint in the model folder."),
    click.option("--overwrite", is_flag=True, help="Replace the model or the unfinished training in the folder."),
    force_option,
    "What it learns from",
    click.option("--treebank", "treebanks", nargs=2, multiple=True, metavar="LANG FILE",
                 help="Of --model tagger: a language and a treebank in CoNLL-U.  Again for another one."),
    click.option("--bitext", "bitexts", nargs=4, multiple=True, metavar="LANG FILE LANG FILE",
                 help="Of --model syntax: two languages, each with its side of a bitext.  Again for another one."),
    click.option("--text", "own_texts", nargs=2, multiple=True, metavar="LANG FILE",
                 help="Of --model syntax: a language that the tagger knows and sentences of it without translations, "
                      "learnt with their own parts of speech.  Again for another one."),
    click.option("--tagger", metavar="FOLDER",
                 help="Of --model syntax: gives the sentences of the languages that it knows their parts of speech."),
    click.option("--own-language/--no-own-language", default=None,
                 help="Of --model syntax: predict the parts of speech of a sentence itself, too, or only of its "
                      "translation.  [default: its own, too; only its translation with --preset paper]"),
    click.option("--dev", "development", nargs=2, multiple=True, metavar="SOURCE TARGET",
                 help="Of --model continuous, masked-lm and parallel: a bitext that says which epoch is the best; of "
                      "tagger: LANG FILE, again for another language.  [default: one in twenty is held out]"),
    click.option("--monolingual", multiple=True, metavar="FILE",
                 help="Of --model masked-lm: more text of either language."),
    click.option("--max-length", type=click.IntRange(1), metavar="N",
                 help=f"Leave out pairs with more words on a side.  [default: {MAX_LENGTH}; autoencoder 511; "
                      "continuous and parallel 100; syntax 60]"),
    click.option("--min-pair-count", type=FiniteRange(0), default=0, metavar="C",
                 help="Leave out pairs with a smaller count (of a table: the joint count)."),
    "What it starts from",
    click.option("--start", metavar="FOLDER",
                 help="Of --model syntax: a model to go on from, which may learn new languages."),
    click.option("--source-text", multiple=True, metavar="FILE",
                 help="Monolingual text to train word vectors on.  [default: the pairs]"),
    click.option("--target-text", multiple=True, metavar="FILE",
                 help="The same for the target language; of --model continuous: beside the target side."),
    click.option("--source-vectors", metavar="FILE",
                 help="Word vectors to start from: word2vec, GloVe or fastText, text or binary."),
    click.option("--target-vectors", metavar="FILE",
                 help="The same for the target language; of --model continuous: the vectors that are predicted."),
    click.option("--source-autoencoder", metavar="FOLDER",
                 help="Start from the encoder of an autoencoder, trained on the source language."),
    click.option("--target-autoencoder", metavar="FOLDER", help="The same for the target language."),
    click.option("--freeze-encoders", is_flag=True,
                 help="Train nothing but the transformations between the languages."),
    click.option("--tune-encoder", is_flag=True,
                 help="Of --encoder hf:FOLDER: its vectors learn, too."),
    None,
    json_option,
    quiet_option,
)  # fmt: skip


class _EncoderName(click.Choice[str]):
    """An encoder of phrases, or what a classifier of sentence pairs reads."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name as it stands."""
        if value in _READ or (isinstance(value, str) and value.startswith("hf:")):
            return value
        return super().convert(value, param, ctx)


@dataclass(frozen=True)
class _Declared:
    """An option as one of its owners declares it.

    Attributes:
        title: of the section of options of its kind.
        owner: what users call the owner.
        default: there.
        help: one line.
    """

    title: str
    owner: str
    default: Any
    help: str


class _DeclaredFlag(click.Option):
    """A flag made of declarations; None if it is not given."""

    def __init__(self, name: str, declared: list[_Declared]) -> None:
        self.titles = {d.title for d in declared}
        super().__init__(
            ["--" + name.replace("_", "-"), name],
            type=_type_of({type(d.default) for d in declared}), default=None, metavar="X", help=_help(name, declared),
        )  # fmt: skip
        give_title(self, declared[0].title)


class _NumberOrWord(click.ParamType):  # type: ignore[type-arg]  # older ones take none
    """Of a flag that is a number to one of its owners and a word to another; they say what they do not take."""

    name = "number or word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """A number, if it is written as one."""
        try:
            return int(value)
        except ValueError:
            return str(value)


def _type_of(kinds: set[type]) -> Any:
    """What a flag is read as, whose owners declare values of these types."""
    if kinds == {int, str}:
        return _NumberOrWord()
    (kind,) = kinds
    return kind


class TrainCommand(SectionedCommand):
    """A command whose flags are its own and those that are declared."""

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        """All parameters: what is to be trained first, those that are declared last."""
        from phrasetool.phrase_encoder.encoder import ENCODERS
        from phrasetool.phrase_encoder.losses import OBJECTIVES

        own = super().get_params(context)
        taken = frozenset(str(parameter.name) for parameter in own)
        chosen, declared = _made_flags(tuple(ENCODERS.items()), tuple(OBJECTIVES.items()), taken)
        place = [parameter.name for parameter in own].index("model") + 1
        return [*own[:place], *chosen, *own[place:], *declared]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the arguments as they were given."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """The flags, and what there is to choose from."""
        from phrasetool.options import registered
        from phrasetool.phrase_encoder.encoder import ENCODERS
        from phrasetool.phrase_encoder.losses import OBJECTIVES

        flags = super().sections(context)
        first = {_FIRST: flags.pop(_FIRST)}
        for title, what, registry in (("Losses", "loss", OBJECTIVES), ("Encoders", "encoder", ENCODERS)):
            first[title] = [(name, registered(registry, name, what).summary) for name in registry]
        first["Losses"] += _BASELINES.items()
        first["Encoders"] += _READ.items()
        return {**first, **flags}


def check_model(context: click.Context) -> None:
    """Refuse flags, a loss and a number of inputs that the kind of model does not take.

    Raises:
        click.UsageError: naming the kinds that take a flag, or what the kind takes.
    """
    model = context.params["model"]
    for parameter in context.command.get_params(context):
        name = str(parameter.name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in _OF_ALL:
            continue
        takes = _TAKERS.get(name, {"brae"})
        if isinstance(parameter, _DeclaredFlag):
            takes = set().union(*(_KINDS.get(title, {"brae"}) for title in parameter.titles))
        if model not in takes:
            raise click.UsageError(f"{parameter.opts[0]} is for --model {' or '.join(sorted(takes))}")
    if context.params["loss"] in _BASELINES and model != "continuous":
        raise click.UsageError(f"--loss {context.params['loss']} is for --model continuous")
    _check_encoder(context, model)
    what, counts = _INPUTS[model]
    if len(context.params["inputs"]) not in counts:
        raise click.UsageError(f"--model {model} takes {what}; {len(context.params['inputs'])} files were given")


def flags_of(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of the flags that a kind of model takes.

    Args:
        model: its name.
        values: of all flags, by name.
    """
    return {name: value for name, value in values.items() if model in _TAKERS.get(name, {model})}


def _check_encoder(context: click.Context, model: str) -> None:
    """Refuse what another kind of model reads."""
    encoder = context.params["encoder"]
    of_pairs = encoder in _READ or encoder.startswith("hf:")
    if of_pairs and model != "parallel":
        raise click.UsageError(f"--encoder {encoder} is for --model parallel")
    given = context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE
    if model == "parallel" and given and not of_pairs:
        raise click.UsageError(f"--encoder {encoder} is for --model brae; --model parallel reads {', '.join(_READ)}")
    if context.params["tune_encoder"] and not encoder.startswith("hf:"):
        raise click.UsageError("--tune-encoder is for --encoder hf:FOLDER; the vectors of words learn in any case")


@functools.cache
def _made_flags(
    encoders: tuple[tuple[str, str], ...], losses: tuple[tuple[str, str], ...], taken: frozenset[str]
) -> tuple[list[click.Option], list[click.Option]]:
    """`--encoder` and `--loss`; and a flag for every declared name that is not taken."""
    declared: dict[str, list[_Declared]] = {}
    for name, declaration in _declarations(dict(encoders), dict(losses)):
        declared.setdefault(name, []).append(declaration)
    chosen = [
        click.Option(["--encoder"], type=_EncoderName([name for name, _ in encoders]), default="rae",
                     help="How a phrase becomes a vector; of --model parallel, what it reads; see below."),
        click.Option(["--loss"], type=click.Choice([*(name for name, _ in losses), *_BASELINES]),
                     help=f"What training minimises; see below.  [default: {LOSS}; continuous syn-projection]"),
    ]  # fmt: skip
    for option in chosen:
        give_title(option, _FIRST)
    return chosen, [_DeclaredFlag(name, found) for name, found in declared.items() if name not in taken]


def _declarations(encoders: Mapping[str, str], losses: Mapping[str, str]) -> Iterable[tuple[str, _Declared]]:
    from phrasetool.options import declared_options, registered
    from phrasetool.pair_classifier.settings import ParallelSettings
    from phrasetool.phrase_encoder.settings import TrainingSettings
    from phrasetool.syntax.settings import SyntaxSettings
    from phrasetool.tagger.settings import TaggerSettings
    from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
    from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings
    from phrasetool.translator.settings import NeuralSettings

    classes: list[tuple[str, str, type]] = [(_TRAINING, "", TrainingSettings)]
    classes += [(_LOSS, name, registered(losses, name, "loss")) for name in losses]
    classes += [(_ENCODER, name, registered(encoders, name, "encoder")) for name in encoders]
    classes += [(_AUTOENCODER, "autoencoder", AutoencoderSettings), (_NEURAL, "continuous", NeuralSettings)]
    classes += [(_MASKED, "masked-lm", MaskedLmSettings), (_PARALLEL, "parallel", ParallelSettings)]
    classes += [(_TAGGER, "tagger", TaggerSettings), (_SYNTAX, "syntax", SyntaxSettings)]
    for title, owner, cls in classes:
        for name, spec in declared_options(cls).items():
            yield name, _Declared(title, owner, spec.default, spec.metadata["help"])


def _help(name: str, declared: list[_Declared]) -> str:
    """What the flag does and its default, for each of its owners."""
    if declared[0].title != _TRAINING:
        texts: dict[str, list[str]] = {}
        for d in declared:
            texts.setdefault(d.help, []).append(f"{d.owner} {_shown(d.default)}")
        return "  ".join(f"{text}  [default: {'; '.join(defaults)}]" for text, defaults in texts.items())
    general = declared[0].default
    defaults = [_shown(general), *_wishes(name, general)]
    defaults += [f"{d.owner} {_shown(d.default)}" for d in declared[1:]]
    return f"{declared[0].help}  [default: {'; '.join(defaults)}]"


def _wishes(name: str, general: Any) -> Iterable[str]:
    """Defaults of a setting that losses and encoders want different."""
    from phrasetool.options import registered
    from phrasetool.phrase_encoder.encoder import ENCODERS
    from phrasetool.phrase_encoder.losses import OBJECTIVES

    for what, registry in (("loss", OBJECTIVES), ("encoder", ENCODERS)):
        for owner in registry:
            wish = registered(registry, owner, what).defaults.get(name, general)
            if wish != general:
                yield f"{owner} {_shown(wish)}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
