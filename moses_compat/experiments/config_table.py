"""Reading of settings from the tables of a TOML file; all errors name the file and the key.

Settings are dataclasses.  Each field defines how it is read from the key of the same name.
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


def setting(read: Callable[..., Any], default: Any = MISSING, **limits: Any) -> Any:
    """Return a dataclass field that is read from the key of its name.

    Args:
        read: the method of `ConfigTable` that reads it, or a function of a table and a key.
        default: the value of a missing key, or a type whose instance is this value; without it, the key is required.
        limits: further arguments of `read`.
    """
    more: dict[str, Any] = {"default_factory" if isinstance(default, type) else "default": default}
    return field(metadata={_READ: partial(read, **limits)}, **more)


class ConfigTable:
    """A table of a TOML file.

    Args:
        path: the file, for messages; paths in the table are relative to it.
        name: name of the table, empty for the top level.
        values: values of the table by key.
        known: keys that are allowed; None for any.

    Raises:
        DataError: the table has an unknown key.
    """

    def __init__(self, path: str, name: str, values: Mapping[str, Any], known: Sequence[str] | None) -> None:
        self.path, self.name, self.values = path, name, values
        for key in values:
            if known is not None and key not in known:
                similar = difflib.get_close_matches(key, known, 1, 0.4)
                suggestion = f"; did you mean {similar[0]}?" if similar else f"; expected {', '.join(known)}"
                raise DataError(path, f"unknown key {self._full(key)}{suggestion}")

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def error(self, key: str, message: str) -> DataError:
        """Return an error about the value of a key."""
        return DataError(self.path, f"{self._full(key)}: {message}")

    def _typed(self, key: str, kinds: type | tuple[type, ...], expected: str, value: Any) -> Any:
        # In Python, True is an instance of int.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise self.error(key, f"{value!r} is not {expected}")
        return value

    def table(self, key: str, known: Sequence[str] | None) -> ConfigTable:
        """Return a table in this one; empty if the key is missing."""
        value = self._typed(key, Mapping, "a table of keys and values", self.values.get(key, {}))
        return ConfigTable(self.path, self._full(key), value, known)

    def section(self, key: str, cls: type[_Settings], **values: Any) -> _Settings:
        """Read settings from a table in this one; see `settings`."""
        return self.table(key, [f.name for f in fields(cls) if _READ in f.metadata]).settings(cls, **values)

    def settings(self, cls: type[_Settings], **values: Any) -> _Settings:
        """Read settings: a key for each field of a dataclass that `setting` made.

        Args:
            cls: the dataclass.
            values: values of other fields, and of those whose keys are missing.
        """
        for f in fields(cls):
            needed = f.name not in values and f.default is f.default_factory is MISSING
            if _READ in f.metadata and (needed or f.name in self):
                values[f.name] = f.metadata[_READ](self, f.name)
        return cls(**values)

    def text(self, key: str) -> str:
        """Return a non-empty text."""
        value: str = self._typed(key, str, "text between quotes", self.values[key])
        if not value:
            raise self.error(key, "is empty")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return one of the choices; the error for any other text names the most similar choice."""
        value = self.text(key)
        if value not in choices:
            similar = difflib.get_close_matches(value, choices, 1, 0.4)
            suggestion = f"did you mean {similar[0]}? " if similar else ""
            raise self.error(key, f"is {value!r}; {suggestion}expected {', '.join(choices)}")
        return value

    def boolean(self, key: str) -> bool:
        """Return a truth value."""
        value: bool = self._typed(key, bool, "true or false", self.values[key])
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        return self._finite(key, self.values[key])

    def _finite(self, key: str, value: Any) -> float:
        number = float(self._typed(key, (int, float), "a number", value))
        if not abs(number) < float("inf"):
            raise self.error(key, f"{value!r} is not a finite number")
        return number

    def integer(self, key: str, least: int, most: int | None = None) -> int:
        """Return an integer between `least` and `most`; None sets no upper limit."""
        value: int = self._typed(key, int, "a whole number", self.values[key])
        if value < least:
            raise self.error(key, f"is {value}; expected {least} or more")
        if most is not None and value > most:
            raise self.error(key, f"is {value}; expected {most} or less")
        return value

    def _list(self, key: str) -> list[Any]:
        """Return the values of a list; a single value stands for a list of one."""
        value = self.values[key]
        return value if isinstance(value, list) else [value]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, or a single text as a list."""
        return tuple(self._typed(key, str, "text between quotes", value) for value in self._list(key))

    def choices(self, key: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Return a list of texts, or a single text, that are all among the choices."""
        texts = self.texts(key)
        for text in texts:
            if text not in choices:
                raise self.error(key, f"holds {text!r}; expected {', '.join(choices)}")
        return texts

    def shares(self, key: str) -> tuple[float, ...]:
        """Return distinct shares of the entries, or a single one, the largest first."""
        shares = self.numbers(key)
        for share in shares:
            if not 0 < share <= 1:
                raise self.error(key, f"holds {share:g}; a size is a share of the entries, above 0 and at most 1")
        return tuple(sorted(set(shares), reverse=True))

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return a list of finite numbers, or a single number as a list."""
        return tuple(self._finite(key, value) for value in self._list(key))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return distinct integers, 0 or more, or a single one as a list."""
        numbers = tuple(self._typed(key, int, "a whole number", value) for value in self._list(key))
        if any(value < 0 for value in numbers):
            raise self.error(key, f"holds {min(numbers)}; expected 0 or more")
        if not numbers:
            raise self.error(key, "is empty")
        return tuple(dict.fromkeys(numbers))

    def _path(self, name: str) -> str:
        return os.path.normpath(os.path.join(os.path.dirname(self.path), os.path.expanduser(name)))

    def output(self, key: str, default: str) -> str:
        """Return a path that need not exist."""
        return self._path(self.text(key) if key in self else default)

    def file(self, key: str) -> str:
        """Return the path of an existing file."""
        return self._existing(key, self._required(key), os.path.isfile, "file")

    def files(self, key: str) -> tuple[str, ...]:
        """Return paths of existing files."""
        return tuple(self._existing(key, name, os.path.isfile, "file") for name in self.texts(key))

    def folder(self, key: str) -> str:
        """Return the path of an existing folder."""
        return self._existing(key, self._required(key), os.path.isdir, "folder")

    def folders(self, key: str) -> tuple[str, ...]:
        """Return paths of existing folders."""
        return tuple(self._existing(key, name, os.path.isdir, "folder") for name in self.texts(key))

    def _required(self, key: str) -> str:
        if key not in self.values:
            raise DataError(self.path, f"the key {self._full(key)} is missing")
        return self.text(key)

    def _existing(self, key: str, name: str, exists: Any, kind: str) -> str:
        path = self._path(name)
        if not exists(path):
            raise self.error(key, f"there is no {kind} {path}")
        return path
