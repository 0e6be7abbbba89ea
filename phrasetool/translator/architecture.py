"""What a translator is made of: dimensions, and presets of them.

The paper (Bhat, Kumar and Tsvetkov 2020, section 4; silent on details, so after the program of its predecessor, Kumar
and Tsvetkov 2019): a bidirectional LSTM of one layer, an LSTM decoder of two, both with 1024 states; global attention
softmax(h W H), tanh(W2 [c; h]), which is fed into the next step; and one linear layer to a vector of d components.
"""

from __future__ import annotations

from dataclasses import dataclass

CELLS = ("lstm", "gru", "transformer")
OUTPUTS = ("vectors", "softmax", "softmax-tied")
# Of target vectors, see `target_vectors.target_table`: that of unknown words, and what is done to the others.
UNKNOWN_VECTORS = ("mean", "negated")
CENTRINGS = ("centred", "plain", "random")
# How a translator scores phrase pairs, see `likelihood`.
READINGS = ("normalised", "density")


@dataclass(frozen=True)
class NeuralArchitecture:
    """Which translator, and its dimensions.

    Attributes:
        cell: one of `CELLS`, of encoder and decoder; `transformer` is a block of self-attention each.
        word_units: w, size of a source word vector, and of a target word vector where the decoder reads it.
        units: m, size of a state: of both directions of the encoder side by side, and of the decoder.
        layers: of a recurrent decoder.
        input_feeding: what attention gave is read by the next step, beside the word before.
        heads, feed_forward: of self-attention.
        dimension: d, size of a target vector.
        output: `vectors` predicts the fixed vector of the next word; `softmax` a distribution over the words, with
            target vectors that learn; `softmax-tied` the same, with one table for what is read and what is predicted.

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
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least {least}")
        if self.recurrent and self.units % 2:
            raise ValueError(f"units is {self.units}, expected an even number: the encoder reads in two directions")
        if not self.recurrent and self.units % self.heads:
            raise ValueError(f"{self.heads} heads cannot share {self.units} units")
        if not self.recurrent and self.layers > 1:
            raise ValueError(f"layers is {self.layers}, expected 1: the transformer's decoder has one")
        if not self.recurrent and self.input_feeding:
            raise ValueError("self-attention takes all steps at once, which input feeding does not allow")

    @property
    def recurrent(self) -> bool:
        """Whether encoder and decoder are LSTMs or GRUs."""
        return self.cell != "transformer"

    @property
    def continuous(self) -> bool:
        """Whether vectors are predicted, not a distribution."""
        return self.output == "vectors"


# Name -> sizes.  `lstm` is the paper's; `gru` is for a CPU: without input feeding all its steps are one product.
PRESETS: dict[str, dict[str, int | str | bool]] = {
    "lstm": {"cell": "lstm", "word_units": 512, "units": 1024, "layers": 2, "input_feeding": True},
    "gru": {"cell": "gru", "word_units": 256, "units": 256, "layers": 1, "input_feeding": False},
    "transformer": {"cell": "transformer", "word_units": 256, "units": 256, "layers": 1, "input_feeding": False},
}
