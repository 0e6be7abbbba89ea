"""Options that an encoder or an objective declares for itself: fields of a frozen dataclass, each with a help text.

The command line makes a flag of every declared option, so that a new encoder or objective needs no change there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any


def option(default: Any, help: str) -> Any:
    """A dataclass field that is an option.

    Args:
        default: its value if not given; its type is the option's type (int, float or str).
        help: one line for `--help`.
    """
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class OptionSpec:
    """What is known about an option.

    Attributes:
        name: of the field.
        default: its value if not given.
        help: one line for `--help`.
    """

    name: str
    default: Any
    help: str


def declared_options(cls: type) -> dict[str, OptionSpec]:
    """The options a class declares with `option`, by name, in order."""
    return {
        f.name: OptionSpec(f.name, f.default, f.metadata["help"])
        for f in fields(cls)
        if "help" in f.metadata and f.default is not MISSING
    }


def with_options(cls: type, name: str, values: Mapping[str, Any]) -> Any:
    """Make `cls(**values)`.

    Args:
        cls: declares its options with `option`.
        name: what users call it, for the message.
        values: some of its options.

    Raises:
        ValueError: a value belongs to no option, with the valid ones named; or is of the wrong type, or out of range.
    """
    known = declared_options(cls)
    unknown = sorted(set(values) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise ValueError(f"{name} has no option {unknown[0]}; {takes}")
    return cls(**{key: checked(key, value, known[key].default) for key, value in values.items()})


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
