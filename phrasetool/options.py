"""Options declared by classes, settings of model families, and registries of such classes.

An encoder, an objective or the settings of a model declare their options as fields of a frozen dataclass that derives
from `Options`, each with a help text and its valid values.  The command line adds a flag for every declared option, and
`Options` checks the values, so that a new encoder, objective or model needs no change elsewhere.

A registry maps names that users type to classes, which are imported on first use.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self

# Key in the metadata of a field.
_LIMITS = "limits"
# Schedules of the learning rate.
SCHEDULES = ("constant", "linear")


@dataclass(frozen=True)
class _Limits:
    """Valid values of a field.

    Attributes:
        ge, gt: inclusive and exclusive lower bound; None for no bound.
        le, lt: inclusive and exclusive upper bound; None for no bound.
        choices: the valid names; empty for numbers and free text.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] = ()

    def allow(self, value: Any) -> bool:
        """Return whether a value is valid."""
        return (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
            and (self.lt is None or value < self.lt)
            and (not self.choices or value in self.choices)
        )

    def __str__(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.ge is not None and self.le is not None:
            return f"from {self.ge} to {self.le}"
        bounds = (("at least", self.ge), ("more than", self.gt), ("at most", self.le), ("less than", self.lt))
        return " and ".join(f"{text} {bound}" for text, bound in bounds if bound is not None)


def option(
    default: Any, help: str, *, ge: float | None = None, gt: float | None = None, le: float | None = None,
    lt: float | None = None, choices: Iterable[str] = (),
) -> Any:  # fmt: skip
    """Declare a dataclass field that is an option of the command line.

    Args:
        default: value if the option is not given; its type (int, float or str) is the option's type.
        help: one line for `--help`.
        ge, gt, le, lt: bounds of valid numbers (>=, >, <=, <); None for no bound.
        choices: valid names of a text option; empty for free text.
    """
    return field(default=default, metadata={"help": help, _LIMITS: _Limits(ge, gt, le, lt, tuple(choices))})


def limited(
    default: Any, *, ge: float | None = None, gt: float | None = None, le: float | None = None,
    lt: float | None = None, choices: Iterable[str] = (),
) -> Any:  # fmt: skip
    """Declare a dataclass field that is checked but is not an option; see `option` for the arguments."""
    return field(default=default, metadata={_LIMITS: _Limits(ge, gt, le, lt, tuple(choices))})


def seed_option() -> Any:
    """Declare the random seed of a training, which gensim restricts to 32 bits."""
    return limited(1, ge=0, le=(1 << 32) - 1)


@dataclass(frozen=True)
class Options:
    """Base class of frozen dataclasses whose fields are declared by `option` and `limited`.

    Raises:
        ValueError: a value is invalid or has a different type from its default.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            if _LIMITS not in f.metadata:
                continue
            value = checked(f.name, getattr(self, f.name), f.default)
            object.__setattr__(self, f.name, value)
            limits = f.metadata[_LIMITS]
            require(self, limits.allow(value), f.name, str(limits))


def preset_sizes(presets: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """Return the end of the help of an option whose value 0 stands for that of the preset.

    Args:
        presets: preset -> values.
        name: name of the option.
    """
    return f"0: preset ({', '.join(f'{preset}: {values[name]}' for preset, values in presets.items())})"


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """Return the options that a class declares with `option`, by name, in order."""
    return {f.name: f for f in fields(cls) if "help" in f.metadata}


def with_options(cls: type, name: str, values: Mapping[str, Any]) -> Any:
    """Return `cls(**values)`.

    Args:
        cls: a class derived from `Options`.
        name: name of the class in messages.
        values: values of some of its options.

    Raises:
        ValueError: an option is unknown (the message lists the options), or a value is invalid or of the wrong type.
    """
    known = declared_options(cls)
    unknown = sorted(set(values) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise ValueError(f"{name} has no option {unknown[0]}; {takes}")
    return cls(**values)


def option_values(chosen: Any) -> dict[str, Any]:
    """Return the values of all options that the class of `chosen` declares, by name."""
    return {name: getattr(chosen, name) for name in declared_options(type(chosen))}


def checked(name: str, value: Any, default: Any) -> Any:
    """Return a value converted to the type of its default; an int is accepted for a float.

    Raises:
        ValueError: the value has a different type or is not finite.
    """
    kind = type(default)
    # In Python, bool is a subclass of int.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        expected = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}[kind]
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    return value


def require(chosen: Any, good: bool, name: str, expected: str) -> None:
    """Raise an error if a value is out of range.

    Args:
        chosen: object with the value as an attribute.
        good: whether the value is in range.
        name: name of the attribute.
        expected: description of valid values, for the message.

    Raises:
        ValueError: `good` is false.
    """
    if not good:
        raise ValueError(f"{name} is {getattr(chosen, name)!r}, expected {expected}")


def registered(registry: Mapping[str, str], name: str, what: str) -> Any:
    """Return the class registered under a name.

    Args:
        registry: name -> `module:class`.
        name: the name that the user gave.
        what: kind of the registered classes, for the message.

    Raises:
        ValueError: the name is not registered; the message lists the valid names.
    """
    if name not in registry:
        raise ValueError(f"unknown {what} {name!r}; expected one of {', '.join(registry)}")
    return imported(registry[name])


def imported(path: str) -> Any:
    """Return the object `module:attribute`, importing its module on first use."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class DeclaredSettings(Options):
    """Base class of the settings of a model family; fields are declared by `phrasetool.options.option`.

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
            ValueError: an option is unknown, or a value is out of range.
        """
        overrides = cls.preset_overrides.get(options.get("preset", getattr(cls, "preset", None)), {})
        declared = declared_options(cls)
        preset: Self = with_options(cls, cls.kind, {**{k: v for k, v in overrides.items() if k in declared}, **options})
        others = {name: value for name, value in overrides.items() if name not in declared}
        return replace(preset, **{**others, **{name: value for name, value in fixed.items() if value is not None}})

    def as_dict(self) -> dict[str, Any]:
        """Return the values for `config.json`."""
        return asdict(self)
