"""What the hyper-parameters of most models have in common: options that they declare, and presets of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from phrasetool.options import declared_options, with_options


@dataclass(frozen=True)
class DeclaredSettings:
    """Base of frozen dataclasses, some of whose fields are options; see `phrasetool.options.option`.

    Attributes:
        kind: what users call the model.
        wishes: preset -> what it wants otherwise.
    """

    kind: ClassVar[str]
    wishes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **fixed: Any) -> Self:
        """The defaults, or what the preset wants otherwise, with some of them changed.

        Args:
            options: values of declared options.
            fixed: values of other fields; None where nothing is said.

        Raises:
            ValueError: an unknown option, or a value out of range.
        """
        wished = cls.wishes.get(options.get("preset", getattr(cls, "preset", None)), {})
        declared = declared_options(cls)
        made: Self = with_options(cls, cls.kind, {**{k: v for k, v in wished.items() if k in declared}, **options})
        others = {name: value for name, value in wished.items() if name not in declared}
        return replace(made, **{**others, **{name: value for name, value in fixed.items() if value is not None}})

    def as_dict(self) -> dict[str, Any]:
        """For `config.json`."""
        return asdict(self)
