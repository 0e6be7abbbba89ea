"""The dimensions of a tagger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaggerShape:
    """Which tagger.

    Attributes:
        buckets: rows of the table of features, the one of no feature included.
        word_units: size of a feature's vector.
        units: size of a state, a direction.
        lstm_layers: of the LSTM.
        tags: that it tells apart.

    Raises:
        ValueError: a value is out of range.
    """

    buckets: int
    word_units: int
    units: int
    lstm_layers: int
    tags: int

    def __post_init__(self) -> None:
        for name, least in (("buckets", 2), ("word_units", 1), ("units", 1), ("lstm_layers", 1), ("tags", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} is {value!r}, expected at least {least}")

    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of every array that a tagger has."""
        found: dict[str, tuple[int, ...]] = {"features.weight": (self.buckets, self.word_units)}
        for layer in range(self.lstm_layers):
            size = self.word_units if layer == 0 else 2 * self.units
            for end in (f"l{layer}", f"l{layer}_reverse"):
                found[f"lstm.weight_ih_{end}"] = (4 * self.units, size)
                found[f"lstm.weight_hh_{end}"] = (4 * self.units, self.units)
                found[f"lstm.bias_ih_{end}"] = found[f"lstm.bias_hh_{end}"] = (4 * self.units,)
        return {**found, "output.weight": (self.tags, 2 * self.units), "output.bias": (self.tags,)}
