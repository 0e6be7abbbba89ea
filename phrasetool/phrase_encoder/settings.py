"""Hyper-parameters of training on phrase pairs; with the loss `max-margin`, the BRAE paper's where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from phrasetool.options import (
    SCHEDULES,
    Options,
    declared_options,
    option,
    option_values,
    registered,
    require,
    seed_option,
)
from phrasetool.phrase_encoder.encoder import ENCODERS, EncoderKind, encoder_kind
from phrasetool.phrase_encoder.losses import OBJECTIVES, Objective, objective

OPTIMIZERS = ("adam", "sgd")
STARTS = ("averaging", "normal")
VECTORS = ("word2vec", "centred", "random")
PAIRS = "pairs"
CALIBRATIONS = (PAIRS, "none")
# Pairs per update, instead of one, if each update is a series of calls of torch.
_TORCH_BATCH = 64
# Settings that are neither numbers nor strings.
_COMPOSED = ("loss_options", "encoder_options")


@dataclass(frozen=True)
class TrainingSettings(Options):
    """All settings that determine the training.

    Attributes:
        loss: one of `OBJECTIVES`.
        encoder: one of `ENCODERS`.
        dimension: n.
        iterations: maximum number of passes over the pairs.
        patience: with a constant step size, training stops after this many consecutive iterations without a new minimum
            of the joint error, and keeps the parameters that reached the minimum.
        pretrain_iterations: passes that train each encoder alone first, on its reconstruction error.
        seed: random seed.
        alpha: weight of the reconstruction error; the semantic error has 1 - alpha (Eq. 10).
        learning_rate: step size (eta in Eq. 14); see `matrix_steps` for vectors larger than the encoder's default.
        schedule: `constant`, or `linear`: the step size falls to zero over the iterations.
        batch_size: pairs per update.
        optimizer: `adam`, or `sgd`, where the step of a batch is the sum of the steps of its pairs, and the L2 term of
            a pair includes only the vectors of its words.
        lambda_words, lambda_rec, lambda_sem: L2 weights of the word vectors, of the encoder, of the transformation.
        count_exponent: the weight of a pair is its count raised to this power: 0 counts every distinct pair once, 1
            every occurrence.
        unknown_rate: probability that a word seen once in training is read as unknown, which trains the unknown word.
        vectors: initial word vectors: `word2vec`; `centred`, the same without their first principal components, so
            that phrases point in all directions from the start; or `random`.
        vector_scale: initial root mean square of a word-vector component.
        start: `averaging` (a parent is about the mean of its children) or `normal` (the paper's), for encoders that
            support both.
        calibration: `pairs`: cosines are calibrated on the training pairs, see `phrasetool.phrase_encoder.scoring`; or
            `none`.
        held_out: share of the pairs that are held out to measure accuracy and AUC.
        freeze_encoders: whether only the transformations are trained.
        loss_options, encoder_options: options declared by the loss and by the encoder; defaults are filled in.
    """

    loss: str = "in-batch"
    encoder: str = "rae"
    dimension: int = option(50, "Size of a phrase vector.", ge=1)
    iterations: int = option(25, "Maximum passes over the pairs.", ge=0)
    patience: int = option(1, "Passes without a new minimum; for --schedule constant.", ge=1)
    pretrain_iterations: int = option(0, "Passes of each encoder alone.", ge=0)
    seed: int = seed_option()
    alpha: float = option(0.1, "Weight of the reconstruction error.", ge=0, le=1)
    learning_rate: float = option(0.006, "Step size.", gt=0)
    schedule: str = option("linear", "Step size: constant, linear.", choices=SCHEDULES)
    batch_size: int = option(512, "Maximum pairs per update.", ge=1)
    optimizer: str = option("adam", "Optimiser: adam, sgd.", choices=OPTIMIZERS)
    lambda_words: float = option(0.0, "L2 weight of the word vectors.", ge=0)
    lambda_rec: float = option(0.0, "L2 weight of the encoder.", ge=0)
    lambda_sem: float = option(0.0, "L2 weight of the transformations.", ge=0)
    count_exponent: float = option(0.0, "Exponent of counts.", ge=0, le=1)
    unknown_rate: float = option(0.1, "Share of rare words read as unknown.", ge=0, le=1)
    vectors: str = option("word2vec", "word2vec, centred or random.", choices=VECTORS)
    vector_scale: float = option(0.3, "Initial root mean square of components.", gt=0)
    start: str = option(
        "averaging", "Matrices at first: averaging (a parent is a mean; rae) or normal.", choices=STARTS
    )
    calibration: str = option(PAIRS, "Calibration: pairs, none.", choices=CALIBRATIONS)
    held_out: float = option(0.01, "Share of pairs held out for accuracy and AUC.", ge=0, le=0.5)
    freeze_encoders: bool = False
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    encoder_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "loss_options", option_values(objective(self.loss, self.loss_options)))
        object.__setattr__(self, "encoder_options", option_values(encoder_kind(self.encoder, self.encoder_options)))
        if not self.pretrain_iterations:
            require(self, self.iterations >= 1, "iterations", "at least 1")
        self.kind.word_dimension(self.dimension)
        for name, reason in _without_effect(self.kind, self.freeze_encoders).items():
            require(self, getattr(self, name) == 0, name, f"0: {reason}")
        trainable = not self.kind.fixed_words or self.kind.trains_layers
        require(
            self, trainable or not self.freeze_encoders, "freeze_encoders",
            f"False: the encoder {self.encoder} trains only the transformations anyway",
        )  # fmt: skip

    @cached_property
    def objective(self) -> Objective:
        """The loss with its options."""
        return objective(self.loss, self.loss_options)

    @property
    def matrix_steps(self) -> float:
        """Step size of matrices and biases, as a share of the learning rate.

        Adam changes every weight by the same amount, whatever the size of its matrix, so that the output of a matrix
        changes in proportion to the number of its inputs.  Step sizes are chosen at the encoder's default dimension;
        for larger vectors, the steps of matrices decrease in proportion, those of word vectors do not (Yang, Hu et al.
        2021, "Tensor Programs V", table 3).
        """
        usual = int(self.kind.defaults.get("dimension", type(self).dimension))
        return min(1.0, usual / self.dimension) if self.optimizer == "adam" else 1.0

    @cached_property
    def kind(self) -> EncoderKind:
        """The encoder with its options."""
        return encoder_kind(self.encoder, self.encoder_options)

    @classmethod
    def for_loss(cls, loss: str, encoder: str = "rae", **changes: Any) -> TrainingSettings:
        """Return the defaults of a loss and an encoder, with changes.

        Args:
            loss: one of `OBJECTIVES`.
            encoder: one of `ENCODERS`.
            changes: settings, options of the loss and options of the encoder, all by name; None values are ignored.

        Raises:
            ValueError: an unknown loss, encoder or setting; an option of another loss or encoder; a value out of range;
                an invalid combination.
        """
        changed = {name: value for name, value in changes.items() if value is not None}
        frozen = bool(changed.get("freeze_encoders", False))
        of_encoder = declared_options(registered(ENCODERS, encoder, "encoder"))
        encoder_values = {name: value for name, value in changed.items() if name in of_encoder}
        chosen: dict[str, Any] = preset(loss, encoder, frozen, encoder_values)
        known = {f.name for f in fields(cls)} - {"loss", "encoder", *_COMPOSED}
        options = {
            "loss_options": declared_options(registered(OBJECTIVES, loss, "loss")),
            "encoder_options": of_encoder,
        }
        for name, value in changed.items():
            owners = [owner for owner, declared in options.items() if name in declared]
            if not owners and name not in known:
                raise ValueError(_unknown_setting_message(name, loss, encoder))
            for owner in owners:
                chosen[owner] = {**chosen.get(owner, {}), name: value}
            if name in known:
                chosen[name] = value
        # The compiled updates support neither Adam nor weights of pairs.
        compiled = changed.get("optimizer") != "adam" and not chosen.get("count_exponent")
        if not compiled and "batch_size" not in changed:
            _enlarge_batches(chosen)
        return cls(loss=loss, encoder=encoder, **chosen)

    def with_batches_for(self, pairs: int) -> TrainingSettings:
        """Return the settings with a batch size for N pairs, unless the loss or the encoder has its own."""
        has_batch_size = "batch_size" in preset(self.loss, self.encoder)
        return self if has_batch_size else replace(self, batch_size=batch_size_for(pairs))

    def as_dict(self) -> dict[str, Any]:
        """Return settings and options in one table for `config.json`; ambiguous names are prefixed by their owner."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _COMPOSED}
        for owner, options, others in (
            ("loss", self.loss_options, self.encoder_options),
            ("encoder", self.encoder_options, self.loss_options),
        ):
            for name, value in options.items():
                values[f"{owner}_{name}" if name in values or name in others else name] = value
        return values


def _without_effect(kind: EncoderKind, frozen: bool) -> dict[str, str]:
    """Return the settings that have no effect, which must be 0, and the reasons.

    Args:
        kind: the encoder.
        frozen: whether encoders are frozen.
    """
    if frozen:
        return {
            **dict.fromkeys(("alpha", "pretrain_iterations"), "frozen encoders do not learn to reconstruct"),
            **dict.fromkeys(("lambda_words", "lambda_rec"), "frozen encoders are not trained"),
        }
    reasons: dict[str, str] = {}
    if not kind.reconstructs:
        reasons.update(dict.fromkeys(("alpha", "pretrain_iterations"), f"the encoder {kind.name} does not reconstruct"))
    if kind.fixed_words:
        reasons["lambda_words"] = f"the word vectors of the encoder {kind.name} are not trained"
    if not kind.trains_layers:
        reasons["lambda_rec"] = f"the layers of the encoder {kind.name} are not trained"
    return reasons


def preset(
    loss: str, encoder: str, frozen: bool = False, encoder_options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of a loss and an encoder that override the general defaults.

    Args:
        loss: one of `OBJECTIVES`.
        encoder: one of `ENCODERS`; its settings override those of the loss.
        frozen: whether encoders are frozen.
        encoder_options: options of the encoder that differ from its defaults.

    Raises:
        ValueError: an unknown loss or encoder, or an invalid option of the encoder.
    """
    kind = encoder_kind(encoder, encoder_options or {})
    overrides = {**registered(OBJECTIVES, loss, "loss").defaults, **kind.defaults}
    overrides.update(dict.fromkeys(_without_effect(kind, frozen), 0))
    if frozen or not kind.reconstructs:
        _enlarge_batches(overrides)
    return overrides


def _enlarge_batches(presets: dict[str, Any]) -> None:
    """Replace batches of one pair, which only the compiled updates of plain SGD are fast enough for."""
    if presets.get("batch_size") == 1:
        presets["batch_size"] = _TORCH_BATCH


def _unknown_setting_message(name: str, loss: str, encoder: str) -> str:
    """Return the message for a name that is neither a setting nor an option of this loss and this encoder."""
    owners, accepted = [], []
    for role, plural, registry, chosen in (
        ("loss", "losses", OBJECTIVES, loss),
        ("encoder", "encoders", ENCODERS, encoder),
    ):
        options = {owner: declared_options(registered(registry, owner, role)) for owner in registry}
        owners_of_name = [owner for owner in registry if name in options[owner]]
        if owners_of_name:
            owners.append(f"the {role if len(owners_of_name) == 1 else plural} {', '.join(owners_of_name)}")
        accepted.append(f"the {role} {chosen} takes {', '.join(options[chosen]) or 'no options'}")
    belongs = f"{name} belongs to {' and '.join(owners)}" if owners else f"unknown setting {name}"
    return f"{belongs}; {' and '.join(accepted)}"


def batch_size_for(pairs: int) -> int:
    """Return a batch size for at least about 32 updates per iteration: a power of two from 32 to 512."""
    size = 512
    while size > 32 and pairs < 32 * size:
        size //= 2
    return size
