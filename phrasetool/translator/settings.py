"""Architecture of a translator, and hyper-parameters of its training.

The paper (Bhat, Kumar and Tsvetkov 2020, section 4; where it gives no details, the program of its predecessor, Kumar
and Tsvetkov 2019): a bidirectional LSTM of one layer, an LSTM decoder of two, both with 1024 states; global attention
softmax(h W H), tanh(W2 [c; h]), which is fed into the next step; and one linear layer to a vector of d components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from phrasetool.nn.device import PRECISIONS
from phrasetool.nn.positions import LONGEST
from phrasetool.options import (
    SCHEDULES,
    DeclaredSettings,
    declared_options,
    option,
    option_values,
    preset_sizes,
    registered,
    require,
    seed_option,
)
from phrasetool.phrase_encoder.losses import OBJECTIVES, CoTrainingObjective, objective

CELLS = ("lstm", "gru", "transformer")
OUTPUTS = ("vectors", "softmax", "softmax-tied")
# Vector of the unknown word, and treatment of all target vectors; see `network.target_table`.
UNKNOWN_VECTORS = ("mean", "negated")
CENTRINGS = ("centred", "plain", "random")
# Kinds of scores of phrase pairs, see `decoding.pair_scores`.
READINGS = ("normalised", "density")


@dataclass(frozen=True)
class TranslatorArchitecture:
    """Architecture of a translator with its dimensions.

    Attributes:
        cell: one of `CELLS`, for encoder and decoder; `transformer` is one block of self-attention each.
        word_units: w, size of a source word vector, and of a target word vector where the decoder reads it.
        units: m, size of a state of the decoder, and of both directions of the encoder together.
        layers: number of layers of a recurrent decoder.
        input_feeding: whether a step reads the attention output of the previous step in addition to the previous word.
        heads, feed_forward: number of heads, and units of the feed-forward layer, of self-attention.
        dimension: d, size of a target vector.
        output: `vectors` predicts the fixed vector of the next word; `softmax` a distribution over the words, with
            trained target vectors; `softmax-tied` the same, with one table for inputs and outputs.

    Raises:
        ValueError: an unknown name, a size that is not positive, an odd m of a recurrent encoder, heads that do not
            divide m, or self-attention with input feeding.
    """

    cell: str
    word_units: int
    units: int
    layers: int
    input_feeding: bool
    heads: int
    feed_forward: int
    dimension: int
    output: str = "vectors"

    def __post_init__(self) -> None:
        for name, choices in (("cell", CELLS), ("output", OUTPUTS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(choices)}")
        for name, least in (
            ("word_units", 2), ("units", 2), ("layers", 1), ("heads", 1), ("feed_forward", 1), ("dimension", 2),
        ):  # fmt: skip
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} is {value!r}, expected at least {least}")
        if type(self.input_feeding) is not bool:
            raise ValueError(f"input_feeding is {self.input_feeding!r}, expected true or false")
        if self.recurrent and self.units % 2:
            raise ValueError(f"units is {self.units}, expected an even number: the encoder reads in two directions")
        if not self.recurrent and self.units % self.heads:
            raise ValueError(f"units ({self.units}) must be divisible by heads ({self.heads})")
        if not self.recurrent and self.layers > 1:
            raise ValueError(f"layers is {self.layers}, expected 1: the transformer's decoder has one")
        if not self.recurrent and self.input_feeding:
            raise ValueError("self-attention computes all steps at once and does not support input feeding")

    @property
    def recurrent(self) -> bool:
        """Whether encoder and decoder are LSTMs or GRUs."""
        return self.cell != "transformer"

    @property
    def continuous(self) -> bool:
        """Whether vectors are predicted, not a distribution."""
        return self.output == "vectors"


# Name -> sizes.  `lstm` is the paper's; `gru` is for CPUs: without input feeding, one product computes all steps.
PRESETS: dict[str, dict[str, int | str | bool]] = {
    "lstm": {"cell": "lstm", "word_units": 512, "units": 1024, "layers": 2, "input_feeding": True},
    "gru": {"cell": "gru", "word_units": 256, "units": 256, "layers": 1, "input_feeding": False},
    "transformer": {"cell": "transformer", "word_units": 256, "units": 256, "layers": 1, "input_feeding": False},
}


# Losses of the baselines that predict a distribution -> output of their architecture.
SOFTMAX_LOSSES = {"cross-entropy": "softmax", "cross-entropy-tied": "softmax-tied"}
# Defaults of losses that differ for translators: the regularisers of Kumar and Tsvetkov (2019), and the margins that
# were best on a development set.
_LOSS_DEFAULTS: dict[str, dict[str, Any]] = {
    "vmf": {"length_weight": 0.02, "alignment_weight": 0.1},
    "syn-projection": {"margin": 0.25},
    "syn-difference": {"margin": 0.5},
    "sampled": {"margin": 0.75},
    "most-informative": {"margin": 0.75},
}
# Margins for target vectors that are not centred: their cosines with each other are larger.
_PLAIN_LOSS_DEFAULTS: dict[str, dict[str, Any]] = {
    "syn-projection": {"margin": 0.5},
    "syn-difference": {"margin": 0.75},
}
# Training of the paper's preset follows the paper.
_TRAINING_OF_THE_PAPER: dict[str, Any] = {
    "centring": "plain",
    "learning_rate": 0.0005,
    "schedule": "constant",
    "epochs": 20,
}
_PRESET_OVERRIDES = {"lstm": _TRAINING_OF_THE_PAPER}


def losses() -> list[str]:
    """Return the losses that a translator can be trained with: those that need only target vectors, and softmax."""
    kinds = {name: registered(OBJECTIVES, name, "loss") for name in OBJECTIVES}
    fitting = [
        name for name, kind in kinds.items() if issubclass(kind, CoTrainingObjective) and not kind.needs_corrupted
    ]
    return [*fitting, *SOFTMAX_LOSSES]


@dataclass(frozen=True)
class TranslatorSettings(DeclaredSettings):
    """Hyper-parameters of a translator.

    Values in brackets are those of Bhat, Kumar and Tsvetkov (2020), section 4, or of their predecessor; they are the
    defaults of the preset `lstm`.  Centred target vectors and larger steps that fall to 0 learn more in fewer passes.

    Attributes:
        loss: one of `losses()`.
        loss_options: options of the loss; defaults are filled in.
        preset: one of `PRESETS`, which defines the sizes that are 0 here (lstm).
        word_units, units, layers: see `TranslatorArchitecture`; 0 for those of the preset.
        heads, feed_forward: see `TranslatorArchitecture`; feed_forward 0 for the value of units.
        dimension: d, size of a target vector (300).
        centring, unknown_vector: see `target_table` (plain, mean).
        dropout: share of components dropped in training (0).
        learning_rate: step size of Adam (0.0005).
        schedule: `constant`, or `linear`: the step size falls to 0 over the epochs (constant).
        batch_size: sentence pairs per update (64).
        epochs: passes over the pairs; the epoch with the smallest loss on the development set is kept (20).
        clip: maximum norm of the gradient (5).
        min_count: rarer source and target words are read as unknown.
        vocabulary_size: maximum number of words, the most frequent ones; 0 for all (50000).
        max_length: pairs with more words on a side are left out.
        precision: float32, or bfloat16 for matrix products, which are most of the work: faster on CPUs that support it.
        seed: random seed.
    """

    kind: ClassVar[str] = "continuous"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESET_OVERRIDES

    loss: str = "syn-projection"
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    preset: str = option("gru", f"Sizes of the translator: {', '.join(PRESETS)}.", choices=PRESETS)
    word_units: int = option(0, f"Size of a source word vector; {preset_sizes(PRESETS, 'word_units')}.", ge=0)
    units: int = option(0, f"Size of a state; {preset_sizes(PRESETS, 'units')}.", ge=0)
    layers: int = option(0, f"Layers of the decoder; {preset_sizes(PRESETS, 'layers')}.", ge=0)
    heads: int = option(4, "Attention heads (transformer).", ge=1)
    feed_forward: int = option(0, "Feed-forward units (transformer).", ge=0)
    dimension: int = option(300, "Size of a target vector.")
    centring: str = option("centred", f"Target vectors: {', '.join(CENTRINGS)}.", choices=CENTRINGS)
    unknown_vector: str = option(
        "mean", f"Vector of unknown words: {', '.join(UNKNOWN_VECTORS)}.", choices=UNKNOWN_VECTORS
    )
    dropout: float = option(0.0, "Dropout.", ge=0, lt=1)
    learning_rate: float = option(0.002, "Step size.", gt=0)
    schedule: str = option("linear", "Step size: constant, linear.", choices=SCHEDULES)
    batch_size: int = option(64, "Sentence pairs per update.", ge=1)
    epochs: int = option(10, "Passes over the pairs.", ge=1)
    clip: float = option(5.0, "Maximum norm of the gradient.", gt=0)
    min_count: int = option(2, "Rarer words are unknown.", ge=1)
    vocabulary_size: int = option(50000, "Maximum number of words; 0: all.", ge=0)
    max_length: int = option(100, "Maximum words of a side.", ge=1, le=LONGEST)
    precision: str = option(
        "float32", "Precision of matrix products in training: float32 or bfloat16.", choices=PRECISIONS
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        if self.loss not in SOFTMAX_LOSSES:
            if self.loss not in losses():
                raise ValueError(f"unknown loss {self.loss!r} of a translator; expected one of {', '.join(losses())}")
            defaults = _LOSS_DEFAULTS.get(self.loss, {})
            if self.centring == "plain":
                defaults = {**defaults, **_PLAIN_LOSS_DEFAULTS.get(self.loss, {})}
            chosen = objective(self.loss, {**defaults, **self.loss_options})
            object.__setattr__(self, "loss_options", option_values(chosen))
        elif self.loss_options:
            raise ValueError(f"{self.loss} has no option {next(iter(self.loss_options))}; it takes no options")
        super().__post_init__()
        if self.architecture.recurrent:
            for name in ("heads", "feed_forward"):
                default = declared_options(type(self))[name].default
                require(self, getattr(self, name) == default, name, f"{default}: the preset {self.preset} has none")

    @cached_property
    def architecture(self) -> TranslatorArchitecture:
        """Architecture of the translator."""
        sizes: dict[str, Any] = dict(PRESETS[self.preset])
        sizes.update({name: getattr(self, name) for name in ("word_units", "units", "layers") if getattr(self, name)})
        return TranslatorArchitecture(
            **sizes, heads=self.heads, feed_forward=self.feed_forward or sizes["units"], dimension=self.dimension,
            output=SOFTMAX_LOSSES.get(self.loss, "vectors"),
        )  # fmt: skip

    @cached_property
    def objective(self) -> CoTrainingObjective | None:
        """Loss of vectors with its options; None for a softmax."""
        if self.loss in SOFTMAX_LOSSES:
            return None
        return cast(CoTrainingObjective, objective(self.loss, self.loss_options))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **fixed: Any) -> Self:
        """Return the defaults of the preset with some values changed; `options` may include options of the loss."""
        own = declared_options(cls)
        of_loss = {name: value for name, value in options.items() if name not in own}
        declared = {name: value for name, value in options.items() if name in own}
        return super().from_options(declared, loss_options=of_loss, **fixed)
