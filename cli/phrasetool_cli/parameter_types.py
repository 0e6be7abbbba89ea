"""Option types that click lacks; each converts the typed text to a value, or refuses it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from phrasetool.pruning.thresholds import Threshold


# Maximum number of digits of a count.
_MOST_DIGITS = 15


class Share(click.FloatRange):
    """A share of a whole: 0.3 or 30%.

    Args:
        min_open: whether 0 is refused.
        max_open: whether 1 is refused.
    """

    name = "share"

    def __init__(self, min_open: bool = False, max_open: bool = False) -> None:
        super().__init__(0, 1, min_open=min_open, max_open=max_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a share."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a share; expected a number as in 0.3, or 30%", param, ctx)
        if 1 < number <= 100 and not text.endswith("%"):
            self.fail(f"{value} is not in the range {self._describe_range()}; for {number:g} in a hundred write "
                      f"{number:g}%", param, ctx)  # fmt: skip
        return float(super().convert(number, param, ctx))


def names_of(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated names, which must be among these; duplicates are removed."""

    def convert(value: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(part.strip().lower() for part in value.split(",")))
        for name in chosen:
            if name not in names:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(names)}")
        return chosen

    return convert


def size_in_bytes(value: str) -> int:
    """Parse a number of bytes, as in 500M or 2G."""
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)B?", value.upper())
    if not match or not int(match[1]):
        raise click.BadParameter(f"{value!r} is not a number of bytes, as in 500M or 2G")
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def _two_numbers(value: str, expected: str) -> tuple[int, int]:
    parts = value.split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{value!r} is not {expected}")
    return int(parts[0]), int(parts[1])


def factor_counts(value: str) -> tuple[int, int]:
    """Parse the numbers of factors of a source and a target token."""
    return _two_numbers(value, "two counts of factors, as in 1,2")


def column_pair(value: str) -> tuple[int, int]:
    """Parse two column numbers, counted from 1; return them counted from 0."""
    first, second = _two_numbers(value, "two column numbers from 1, as in 5,6")
    return first - 1, second - 1


def finite_number(value: str | float) -> float:
    """Parse a number; infinity and NaN are refused."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise click.BadParameter(f"{value!r} is not a finite number")
    return number


class FiniteRange(click.FloatRange):
    """A range of numbers that excludes infinity, and NaN, which no bound excludes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a finite number in the range."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def threshold_sweep(value: str) -> list[float]:
    """Parse FIRST:LAST:STEP; return the thresholds, including the last one."""
    try:
        first, last, step = (float(part) for part in value.split(":"))
        count = round((last - first) / step)
        if step <= 0 or last < first or count > 10_000:
            raise ValueError
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise click.BadParameter(f"{value!r} is not FIRST:LAST:STEP, as in 0.4:0.8:0.1") from error
    return [round(first + i * step, 10) for i in range(count + 1) if first + i * step <= last + step * 1e-6]


def frequency_limit(value: str | int) -> int | str:
    """Parse a count of at least 0, or `none`."""
    text = str(value).strip()
    if text.lower() == "none":
        return "none"
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise click.BadParameter(f"{value!r} is neither a count, as in 100, nor none")
    return int(text)


def score_threshold(value: str) -> Threshold:
    """Parse a threshold: a number, a+e or a-e."""
    from phrasetool.pruning.thresholds import Threshold

    try:
        return Threshold(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def significance_threshold(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check a significance threshold: a+e, a-e or a number."""
    from phrasetool.pruning.thresholds import Threshold

    try:
        good = value is None or Threshold(value).value(1.0) >= 0
    except ValueError:
        good = False
    if not good:
        raise click.BadParameter(f"{value!r} is not a+e, a-e or a number of 0 or more")
    return value
