"""Settings, and the tables of a TOML file that they are read from; all complaints name the file and the key.

Settings are dataclasses whose fields say how they are read: the keys of a table are the names of these fields.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from phrasetool.errors import DataError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Settings = TypeVar("_Settings", bound="DataclassInstance")
_READ = "read"


def asked(read: Callable[..., Any], default: Any = MISSING, **limits: Any) -> Any:
    """A field of settings that is read from the key of its name.

    Args:
        read: the method of `ConfigTable` that reads it, or a function of a table and a key.
        default: its value, or what makes it, where the key is left out; without one, the key must be there.
        limits: more arguments of `read`.
    """
    more: dict[str, Any] = {"default_factory" if isinstance(default, type) else "default": default}
    return field(metadata={_READ: partial(read, **limits)}, **more)


class ConfigTable:
    """Values by key.

    Args:
        path: the file, for messages; paths in the table are relative to it.
        name: of the table, empty for the top.
        values: what it holds.
        known: keys that it may have; None for any.

    Raises:
        DataError: it has another key.
    """

    def __init__(self, path: str, name: str, values: Mapping[str, Any], known: Sequence[str] | None) -> None:
        self.path, self.name, self.values = path, name, values
        for key in values:
            if known is not None and key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.4)
                meant = f"; did you mean {near[0]}?" if near else f"; expected {', '.join(known)}"
                raise DataError(path, f"unknown key {self._full(key)}{meant}")

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def error(self, key: str, message: str) -> DataError:
        """A complaint about a value."""
        return DataError(self.path, f"{self._full(key)}: {message}")

    def _typed(self, key: str, kinds: type | tuple[type, ...], expected: str, value: Any) -> Any:
        # In Python, True is a number.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise self.error(key, f"{value!r} is not {expected}")
        return value

    def table(self, key: str, known: Sequence[str] | None) -> ConfigTable:
        """A table in this one; empty if it is not there."""
        value = self._typed(key, Mapping, "a table of keys and values", self.values.get(key, {}))
        return ConfigTable(self.path, self._full(key), value, known)

    def section(self, key: str, cls: type[_Settings], **values: Any) -> _Settings:
        """The settings that a table in this one gives; see `settings`."""
        return self.table(key, [f.name for f in fields(cls) if _READ in f.metadata]).settings(cls, **values)

    def settings(self, cls: type[_Settings], **values: Any) -> _Settings:
        """Settings: a key for each field of a dataclass that `asked` made.

        Args:
            cls: the dataclass.
            values: of other fields, and of those that are asked for where their keys are left out.
        """
        for f in fields(cls):
            needed = f.name not in values and f.default is f.default_factory is MISSING
            if _READ in f.metadata and (needed or f.name in self):
                values[f.name] = f.metadata[_READ](self, f.name)
        return cls(**values)

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value: str = self._typed(key, str, "text between quotes", self.values[key])
        if not value:
            raise self.error(key, "is empty")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of these texts; where another stands, the nearest is named."""
        value = self.text(key)
        if value not in choices:
            near = difflib.get_close_matches(value, choices, 1, 0.4)
            meant = f"did you mean {near[0]}? " if near else ""
            raise self.error(key, f"is {value!r}; {meant}expected {', '.join(choices)}")
        return value

    def boolean(self, key: str) -> bool:
        """True or false."""
        value: bool = self._typed(key, bool, "true or false", self.values[key])
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        return self._finite(key, self.values[key])

    def _finite(self, key: str, value: Any) -> float:
        number = float(self._typed(key, (int, float), "a number", value))
        if not abs(number) < float("inf"):
            raise self.error(key, f"{value!r} is not a finite number")
        return number

    def integer(self, key: str, least: int) -> int:
        """A whole number, at least `least`."""
        value: int = self._typed(key, int, "a whole number", self.values[key])
        if value < least:
            raise self.error(key, f"is {value}; expected {least} or more")
        return value

    def _list(self, key: str) -> list[Any]:
        """The values of a list; a value that is no list is one of one."""
        value = self.values[key]
        return value if isinstance(value, list) else [value]

    def texts(self, key: str) -> tuple[str, ...]:
        """Texts, or one text."""
        return tuple(self._typed(key, str, "text between quotes", value) for value in self._list(key))

    def choices(self, key: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Some of these texts, or one."""
        found = self.texts(key)
        for text in found:
            if text not in choices:
                raise self.error(key, f"holds {text!r}; expected {', '.join(choices)}")
        return found

    def shares(self, key: str) -> tuple[float, ...]:
        """Shares of the entries, or one; each once, the largest first."""
        found = self.numbers(key)
        for share in found:
            if not 0 < share <= 1:
                raise self.error(key, f"holds {share:g}; a size is a share of the entries, above 0 and at most 1")
        return tuple(sorted(set(found), reverse=True))

    def numbers(self, key: str) -> tuple[float, ...]:
        """Finite numbers, or one number."""
        return tuple(self._finite(key, value) for value in self._list(key))

    def integers(self, key: str) -> tuple[int, ...]:
        """Some whole numbers from 0, or one; each once."""
        found = tuple(self._typed(key, int, "a whole number", value) for value in self._list(key))
        if any(value < 0 for value in found):
            raise self.error(key, f"holds {min(found)}; expected 0 or more")
        if not found:
            raise self.error(key, "is empty")
        return tuple(dict.fromkeys(found))

    def _path(self, name: str) -> str:
        return os.path.normpath(os.path.join(os.path.dirname(self.path), os.path.expanduser(name)))

    def output(self, key: str, default: str) -> str:
        """A path that need not be there."""
        return self._path(self.text(key) if key in self else default)

    def file(self, key: str) -> str:
        """A file that is there."""
        return self._existing(key, self._given(key), os.path.isfile, "file")

    def files(self, key: str) -> tuple[str, ...]:
        """Files that are there."""
        return tuple(self._existing(key, name, os.path.isfile, "file") for name in self.texts(key))

    def folder(self, key: str) -> str:
        """A folder that is there."""
        return self._existing(key, self._given(key), os.path.isdir, "folder")

    def folders(self, key: str) -> tuple[str, ...]:
        """Folders that are there."""
        return tuple(self._existing(key, name, os.path.isdir, "folder") for name in self.texts(key))

    def _given(self, key: str) -> str:
        if key not in self.values:
            raise DataError(self.path, f"the key {self._full(key)} is missing")
        return self.text(key)

    def _existing(self, key: str, name: str, exists: Any, what: str) -> str:
        path = self._path(name)
        if not exists(path):
            raise self.error(key, f"there is no {what} {path}")
        return path
