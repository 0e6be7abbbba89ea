"""Registries, and the options that what is registered declares for itself.

A registry maps names that users type to classes, which are imported when asked for.  An encoder or an objective
declares its options as fields of a frozen dataclass, each with a help text.  The command line makes a flag of every
declared option, so that a new encoder or objective needs no change there.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any


def option(default: Any, help: str) -> Any:
    """A dataclass field that is an option.

    Args:
        default: its value if not given; its type is the option's type (int, float or str).
        help: one line for `--help`.
    """
    return field(default=default, metadata={"help": help})


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """The options a class declares with `option`, by name, in order: fields with a default and `metadata["help"]`."""
    return {f.name: f for f in fields(cls) if "help" in f.metadata and f.default is not MISSING}


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
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
