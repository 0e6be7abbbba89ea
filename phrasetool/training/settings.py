"""Hyper-parameters of models: options that are declared with their valid values, and presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from phrasetool.options import Options, declared_options, with_options

# Schedules of the step size.
SCHEDULES = ("constant", "linear")


@dataclass(frozen=True)
class DeclaredSettings(Options):
    """Base of the settings of a model family; fields are declared by `phrasetool.options.option`.

    Attributes:
        kind: name of the model family.
        preset_overrides: preset -> values that replace the defaults.
    """

    kind: ClassVar[str]
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **fixed: Any) -> Self:
        """Return the defaults of the preset with some values changed.

        Args:
            options: values of declared options.
            fixed: values of other fields; None for the default.

        Raises:
            ValueError: an unknown option, or a value out of range.
        """
        overrides = cls.preset_overrides.get(options.get("preset", getattr(cls, "preset", None)), {})
        declared = declared_options(cls)
        made: Self = with_options(cls, cls.kind, {**{k: v for k, v in overrides.items() if k in declared}, **options})
        others = {name: value for name, value in overrides.items() if name not in declared}
        return replace(made, **{**others, **{name: value for name, value in fixed.items() if value is not None}})

    def as_dict(self) -> dict[str, Any]:
        """Return the values for `config.json`."""
        return asdict(self)
