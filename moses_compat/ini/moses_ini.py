"""A moses.ini in memory: its text, its sections, the features and weights it means."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property

from moses_compat.ini.lines import FeatureLine
from moses_compat.ini.path_base import PathBase, base_of
from phrasetool.errors import DataError

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# How text of an ini becomes bytes and the other way round: bytes that are no UTF-8 come back as they were.
ENCODING = ("utf-8", "surrogateescape")


@dataclass
class MosesIni:
    """A parsed moses.ini.

    Attributes:
        path: the file.
        lines: its text, cut at every LF: the last one is empty if the file ends as it should.
        version: 1 or 2.
        sections: section name -> its values, comments and blank lines left out.
        section_lines: section name -> the 1-based line numbers of its values.
        features: the feature functions, in order.
        weights: feature name -> numbers.
        weight_lines: feature name -> 1-based number of the line its weights stand in, or begin in.
        number_lines: version 1 only: feature name -> the line of each of its weights.
    """

    path: str
    lines: list[str]
    version: int = 2
    sections: dict[str, list[str]] = field(default_factory=dict)
    section_lines: dict[str, list[int]] = field(default_factory=dict)
    features: list[FeatureLine] = field(default_factory=list)
    weights: dict[str, list[float]] = field(default_factory=dict)
    weight_lines: dict[str, int] = field(default_factory=dict)
    number_lines: dict[str, list[int]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The ini as it is, byte for byte once written with `ENCODING`."""
        return "\n".join(self.lines)

    def error(self, message: str, line: int | None = None, *, remedy: str | None = None) -> DataError:
        """An error that names the file, and the line if there is one; see `DataError`."""
        return DataError(self.path, message, line, remedy=remedy)

    @cached_property
    def path_base(self) -> PathBase:
        """Where relative paths start from, see `base_of`.

        Raises:
            DataError: it cannot be told.
        """
        named = [path for feature in self.features if (path := feature.arguments.get("path"))]
        try:
            return base_of(self.path, named)
        except ValueError as error:
            raise self.error(str(error)) from error

    def resolve(self, path: str) -> str:
        """A path as the ini means it.

        Raises:
            DataError: see `path_base`.
        """
        if os.path.isabs(path) or not self.path_base.folder:
            return path
        return os.path.normpath(os.path.join(self.path_base.folder, path))

    @property
    def paths(self) -> list[str]:
        """The files its features name, resolved; some may not exist."""
        return [self.resolve(path) for feature in self.features if (path := feature.arguments.get("path"))]

    def values(self, section: str) -> list[tuple[str, int]]:
        """The values of a section and their 1-based line numbers."""
        return list(zip(self.sections.get(section, []), self.section_lines.get(section, []), strict=True))

    def number(self, section: str, default: int) -> int:
        """The integer a section holds."""
        values = self.sections.get(section)
        if not values:
            return default
        if not _WHOLE.fullmatch(values[0]):
            line = next(iter(self.section_lines.get(section, [])), None)
            raise self.error(f"[{section}]: expected a whole number, found {values[0]!r}", line)
        return int(values[0])

    def check_weights(self) -> None:
        """Refuse weights of no feature, as Moses does.

        Raises:
            DataError: there are some, or weights of a sparse feature, which the decoder does not have.
        """
        names = {feature.name for feature in self.features}
        for name, line in self.weight_lines.items():
            if name not in names and name.split("_")[0] in names:
                raise self.error(f"{name}= is a weight of a sparse feature; those are not supported", line)
            if name not in names:
                raise self.error(f"there is no feature {name} for these weights", line)
