"""Options that classes declare for themselves, settings of model families, and registries of such classes.

An encoder, an objective or the settings of a model declare their options as fields of a frozen dataclass that derives
from `Options`, each with a help text and its valid values.  The command line makes a flag of every declared option, and
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
# Schedules of the step size.
SCHEDULES = ("constant", "linear")


@dataclass(frozen=True)
class _Limits:
    """The valid values of a field; a bound that is None does not limit them.

    Attributes:
        ge, gt: smallest value, or the value that all others exceed.
        le, lt: largest value, or the value that all others are below.
        choices: the valid names; empty for numbers and free text.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] = ()

    def allow(self, value: Any) -> bool:
        """Whether a value is valid."""
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
        choices: valid names of an option that is text; empty for free text.
    """
    return field(default=default, metadata={"help": help, _LIMITS: _Limits(ge, gt, le, lt, tuple(choices))})


def limited(
    default: Any, *, ge: float | None = None, gt: float | None = None, le: float | None = None,
    lt: float | None = None, choices: Iterable[str] = (),
) -> Any:  # fmt: skip
    """Declare a dataclass field that is checked, but that is not an option; see `option` for the arguments."""
    return field(default=default, metadata={_LIMITS: _Limits(ge, gt, le, lt, tuple(choices))})


def seed_option() -> Any:
    """Declare the seed of a training, which gensim restricts to 32 bits."""
    return limited(1, ge=0, le=(1 << 32) - 1)


@dataclass(frozen=True)
class Options:
    """Base of frozen dataclasses whose fields are declared by `option` and `limited`.

    Raises:
        ValueError: a value is of another type than its default, or not valid.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            if _LIMITS not in f.metadata:
                continue
            value = checked(f.name, getattr(self, f.name), f.default)
            object.__setattr__(self, f.name, value)
            limits = f.metadata[_LIMITS]
            require(self, limits.allow(value), f.name, str(limits))


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """The options that a class declares with `option`, by name, in order."""
    return {f.name: f for f in fields(cls) if "help" in f.metadata}


def with_options(cls: type, name: str, values: Mapping[str, Any]) -> Any:
    """Return `cls(**values)`.

    Args:
        cls: a class derived from `Options`.
        name: name of the class for users, for messages.
        values: values of some of its options.

    Raises:
        ValueError: a value belongs to no option (the message names the options), is of another type or not valid.
    """
    known = declared_options(cls)
    unknown = sorted(set(values) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise ValueError(f"{name} has no option {unknown[0]}; {takes}")
    return cls(**values)


def option_values(chosen: Any) -> dict[str, Any]:
    """The values of all options that the class of `chosen` declares, by name."""
    return {name: getattr(chosen, name) for name in declared_options(type(chosen))}


def checked(name: str, value: Any, default: Any) -> Any:
    """A value of the type of its default; a whole number will do for any number.

    Raises:
        ValueError: it is of another type, or not finite.
    """
    kind = type(default)
    # In Python, True is a number.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        expected = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}[kind]
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    return value


def require(chosen: Any, good: bool, name: str, expected: str) -> None:
    """Refuse what is out of range.

    Args:
        chosen: has an attribute of that name.
        good: whether it is in range.
        name: of the option.
        expected: what is in range, for the message.

    Raises:
        ValueError: it is not good.
    """
    if not good:
        raise ValueError(f"{name} is {getattr(chosen, name)!r}, expected {expected}")


def registered(registry: Mapping[str, str], name: str, what: str) -> Any:
    """The class registered under a name.

    Args:
        registry: name -> `module:class`.
        name: what the user typed.
        what: what the registry holds, for the message.

    Raises:
        ValueError: the name is not registered; the valid ones are named.
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
