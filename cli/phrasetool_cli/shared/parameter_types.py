"""Values of options that click has no type for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import click


class NamesOf(click.ParamType[tuple[str, ...]]):
    """Some of given names, with commas between.

    Args:
        names: which there are.
    """

    name = "a,b"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names, each once."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip().lower() for part in value.split(",")))
        for name in names:
            if name not in self._names:
                self.fail(f"{name!r} is not one of {', '.join(self._names)}", param, context)
        return names


class Size(click.ParamType[int]):
    """A number of bytes: 500M, 2G."""

    name = "bytes"

    def convert(self, value: str | int, param: click.Parameter | None, context: click.Context | None) -> int:
        """Return bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,15})([KMGT]?)B?", value.upper())
        if not match:
            self.fail(f"{value!r} is not a number of bytes, as in 500M or 2G", param, context)
        return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


class Factors(click.ParamType[tuple[int, int]]):
    """Two counts."""

    name = "n,m"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, int]:
        """Return the counts of both sides."""
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not two counts of factors, as in 1,2", param, context)
        return int(parts[0]), int(parts[1])


class FiniteNumber(click.ParamType[float]):
    """A number that is not infinite and not NaN."""

    name = "number"

    def convert(self, value: str | float, param: click.Parameter | None, context: click.Context | None) -> float:
        """Return it."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, context)
        return number
