"""Checked version of numba's cache of compiled code, robust to damaged files and folders that are not writable.

Numba trusts its cache files: a truncated file makes every command fail, and modified machine code is executed.  Here
each file has a checksum; a file whose checksum does not match is ignored, so the kernel is compiled again and the file
replaced.  Numba also invalidates compiled code only when the kernel's own source file changes, although code of other
kernels is compiled into it; here the key of compiled code covers all kernels that it calls.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
from numba.core import caching

from phrasetool.kernels.processors import compiled_for, this_processor

_CHECKSUM_BYTES = 4


def with_checked_cache(dispatcher: Any) -> Any:
    """Enable the checked cache for a compiled function, if numba's cache folder is writable."""
    # If numba is disabled, this is a plain function; without a cache folder, it is compiled for this process only.
    with contextlib.suppress(RuntimeError):
        if hasattr(dispatcher, "enable_caching"):
            dispatcher._cache = CheckedCache(dispatcher.py_func)
    return dispatcher


class CheckedCache(caching.FunctionCache):
    """Compiled code of one function on disk."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Load compiled code, unless compiling for another processor than this machine's."""
        return super().load_overload(signature, target_context) if compiled_for() == this_processor() else None

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        """Return the key of compiled code."""
        return super()._index_key(signature, codegen), _contents(self._py_func)

    def save_overload(self, signature: Any, data: Any) -> None:
        """Save code compiled for this machine's processor; if saving fails, the next process compiles it again."""
        if compiled_for() == this_processor():
            with contextlib.suppress(OSError):
                super().save_overload(signature, data)


class CheckedFiles(caching.IndexDataCacheFile):
    """Files of one function: its index (.nbi) and the code for each signature (.nbc).

    A checksum is appended to the data that numba writes; numba itself ignores trailing bytes.
    """

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        written = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            yield written
            data = written.getvalue()
            file.write(data + _checksum(data))

    def _load_index(self) -> dict[Any, str]:
        index: dict[Any, str] = super()._load_index() if _is_whole(self._index_path) else {}
        return index

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):
            raise OSError(f"{name}: damaged")
        return super()._load_data(name)


def _contents(function: Any) -> int:
    """Return a checksum of a function's code, of the constants that it uses, and of all kernels that it calls."""
    parts: list[str] = []
    visited = {function}
    waiting = [function]
    while waiting:
        function = waiting.pop()
        codes = [function.__code__]
        for code in codes:
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
            parts.append(f"{function.__module__}.{code.co_qualname} {code.co_code.hex()} {constants} {code.co_names}")
            for name in code.co_names:
                value = function.__globals__.get(name)
                called = getattr(value, "py_func", None)
                if called is None:
                    parts.append(f"{name} {_as_constant(value)}")
                elif called not in visited:
                    visited.add(called)
                    waiting.append(called)
    return zlib.crc32("\n".join(parts).encode())


def _as_constant(value: Any) -> str:
    """Return a global name's value as numba compiles it, if the name is not a kernel."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {zlib.crc32(value.tobytes())}"
    return (
        repr(value) if isinstance(value, (bool, int, float, complex, str, bytes, tuple, np.generic, np.dtype)) else ""
    )


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")


def _is_whole(path: str) -> bool:
    """Return whether a file can be read and its checksum is correct."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return data[-_CHECKSUM_BYTES:] == _checksum(data[:-_CHECKSUM_BYTES])
