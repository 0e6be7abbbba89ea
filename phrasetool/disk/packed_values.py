"""Safe serialisation of arrays, texts, numbers, and dataclasses and named tuples of phrasetool and moses_compat.

A JSON header describes the values; the bytes of arrays follow.  Unpacking untrusted bytes calls nothing but the
constructors of dataclasses and named tuples of these packages.
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
    """Serialise a value to bytes.

    Supported are None, bools, numbers, texts, bytes, arrays of numbers, NumPy number types, and tuples, lists, dicts,
    dataclasses and named tuples of these.

    Raises:
        TypeError: the value has an unsupported type.
    """
    blobs: list[bytes] = []
    header = json.dumps(_tree(value, blobs)).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *blobs])


def unpacked(data: bytes) -> Any:
    """Restore a value from the bytes that `packed` returned.

    Raises:
        ValueError: the bytes are not packed values.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size
        tree = json.loads(data[start : start + length])
        return _Blobs(data, start + length).value(tree)
    except (struct.error, TypeError, KeyError, AttributeError, ImportError, IndexError, RecursionError) as error:
        raise ValueError(f"invalid packed values ({error})") from error


def _tree(value: Any, blobs: list[bytes]) -> Any:
    """Return a value in a form that JSON can represent; append the bytes of its arrays to `blobs`."""
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
    """Reader that restores values from the JSON tree, consuming the bytes of arrays in order.

    Args:
        data: all bytes.
        place: offset of the first array.
    """

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    def _take(self, size: int) -> bytes:
        data = self._data[self._place : self._place + size]
        if size < 0 or len(data) < size:
            raise ValueError("packed values are cut short")
        self._place += size
        return data

    def value(self, tree: Any) -> Any:
        """Return the value of a part of the tree; parts must be read in order."""
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
            raise ValueError(f"invalid shape {shape}")
        size = math.prod(shape)
        # Copy: kernels are compiled for writable arrays.
        array = np.frombuffer(self._take(size * dtype.itemsize), dtype).reshape(shape).copy()
        return array[()] if scalar else array


def _number_type(name: Any) -> np.dtype[Any]:
    """Return the dtype of a `dtype.str`; NumPy itself would accept many other names, some with a warning."""
    if not isinstance(name, str) or not _NUMBERS.fullmatch(name):
        raise ValueError(f"{name!r} is not a number type")
    return np.dtype(name)


def _class(name: str) -> Any:
    """Return the dataclass or named tuple with the given name."""
    if not name.startswith(_PACKAGES):
        raise ValueError(f"{name} is not an allowed class")
    module, _, attribute = name.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    if not (isinstance(value, type) and (is_dataclass(value) or issubclass(value, tuple))):
        raise ValueError(f"{name} is not an allowed class")
    return value
