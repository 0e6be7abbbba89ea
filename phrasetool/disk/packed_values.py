"""Values as bytes and back: arrays, texts, numbers, and plain objects of this package made of them.

A header in JSON describes the values, the bytes of arrays follow.  Whoever wrote the bytes, nothing is called but the
constructors of dataclasses and named tuples of this package.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import struct
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<Q")
_NUMBERS = re.compile(r"[<>|](?:[iuf][1248]|b1)")
_PACKAGES = ("phrasetool.", "moses_compat.")


def packed(value: Any) -> bytes:
    """The bytes of a value: None, bools, numbers, texts, bytes, arrays of numbers, types of numbers, and tuples, lists,
    dicts, dataclasses and named tuples of such.

    Raises:
        TypeError: it is something else.
    """
    blobs: list[bytes] = []
    header = json.dumps(_tree(value, blobs)).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *blobs])


def unpacked(data: bytes) -> Any:
    """The value of such bytes.

    Raises:
        ValueError: they are none.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size
        tree = json.loads(data[start : start + length])
        return _Blobs(data, start + length).value(tree)
    except (struct.error, TypeError, KeyError, AttributeError, ImportError, IndexError, RecursionError) as error:
        raise ValueError(f"no packed values ({error})") from error


def _tree(value: Any, blobs: list[bytes]) -> Any:
    """Return a value as JSON can hold it; bytes are put aside."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, bytes):
        blobs.append(value)
        return {"bytes": len(value)}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value)
        blobs.append(array.tobytes())
        return {"array": array.dtype.str, "shape": list(value.shape), "scalar": isinstance(value, np.generic)}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": np.dtype(value).str}
    if isinstance(value, dict):
        return {"dict": [[_tree(key, blobs), _tree(item, blobs)] for key, item in value.items()]}
    if is_dataclass(value):
        parts = [_tree(getattr(value, field.name), blobs) for field in fields(value) if field.init]
        return {"object": _name(type(value)), "parts": parts}
    if isinstance(value, tuple) and type(value) is not tuple:
        return {"object": _name(type(value)), "parts": [_tree(item, blobs) for item in value]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_tree(item, blobs) for item in value]}
    raise TypeError(f"cannot pack a {type(value).__name__}")


def _name(kind: Any) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if not name.startswith(_PACKAGES):
        raise TypeError(f"cannot pack a {kind.__name__}")
    return name


class _Blobs:
    """Makes values of what JSON says, taking bytes one after another.

    Args:
        data: all bytes.
        place: where those of the first array begin.
    """

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    def _take(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        if size < 0 or len(taken) < size:
            raise ValueError("packed values are cut short")
        self._place += size
        return taken

    def value(self, tree: Any) -> Any:
        """The value of a part of the tree; parts have to be asked for in their order."""
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree), "")
        if kind == "bytes":
            return self._take(tree[kind])
        if kind == "array":
            return self._array(_number_type(tree[kind]), tuple(tree["shape"]), tree["scalar"])
        if kind == "type":
            return _number_type(tree[kind]).type
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in tree[kind]}
        if kind == "object":
            return _class(tree[kind])(*map(self.value, tree["parts"]))
        return {"tuple": tuple, "list": list}[kind](map(self.value, tree[kind]))

    def _array(self, dtype: np.dtype[Any], shape: tuple[int, ...], scalar: bool) -> Any:
        if any(type(length) is not int for length in shape):
            raise ValueError(f"{shape} is no shape")
        size = math.prod(shape)
        # A copy: kernels are compiled for arrays that can be written to.
        array = np.frombuffer(self._take(size * dtype.itemsize), dtype).reshape(shape).copy()
        return array[()] if scalar else array


def _number_type(name: Any) -> np.dtype[Any]:
    """The dtype of a name as `dtype.str` gives it; NumPy itself would take, and warn of, much more."""
    if not isinstance(name, str) or not _NUMBERS.fullmatch(name):
        raise ValueError(f"{name!r} is no type of numbers")
    return np.dtype(name)


def _class(name: str) -> Any:
    """The dataclass or named tuple of a name."""
    if not name.startswith(_PACKAGES):
        raise ValueError(f"{name} does not belong there")
    module, _, attribute = name.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    if not (isinstance(value, type) and (is_dataclass(value) or issubclass(value, tuple))):
        raise ValueError(f"{name} does not belong there")
    return value
