"""Results of many runs of a study in two files of results/runs/: `NAME.npz` with arrays, `NAME.json` with records.

Arrays are mostly BLEU statistics of the sentences of a test set, which differ little between systems.  An integer array
is therefore stored as the difference to the first array of the same shape and name, if there is one.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "runs"
# Name of the array of a run with a single array.
_ONLY = "ALL"
# Separator of the names of run and array, and suffix of differences.
_OF, _DIFFERENCE = "|", "|-"


class StoredStudy:
    """The runs of a study.

    Args:
        name: name of the study.
        folder: directory of its files.
    """

    def __init__(self, name: str, folder: Path = RESULTS) -> None:
        self._arrays_path, self._records_path = folder / f"{name}.npz", folder / f"{name}.json"
        self._read: tuple[tuple[int, ...], dict[str, dict[str, np.ndarray]], dict[str, Any]] | None = None

    def _current(self) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
        """Return arrays and records by run, read again if a file has changed."""
        paths = (self._arrays_path, self._records_path)
        stamp = tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in paths)
        if self._read is None or self._read[0] != stamp:
            arrays = _decoded(self._arrays_path) if stamp[0] else {}
            records = json.loads(self._records_path.read_text("utf-8")) if stamp[1] else {}
            self._read = stamp, arrays, records
        return self._read[1], self._read[2]

    def runs(self) -> list[str]:
        """Return the names of all runs, sorted."""
        arrays, records = self._current()
        return sorted(arrays.keys() | records.keys())

    def run(self, name: str) -> StoredRun:
        """Return a run, which may not have results yet."""
        return StoredRun(self, name)

    def arrays(self, run: str) -> dict[str, np.ndarray]:
        """Return the arrays of a run, empty if it has none."""
        return self._current()[0].get(run, {})

    def record(self, run: str) -> Any:
        """Return the record of a run, or None."""
        return self._current()[1].get(run)

    def put(self, run: str, arrays: Mapping[str, np.ndarray] | None = None, record: Any = None) -> None:
        """Store results of a run; other processes may write other runs concurrently."""
        self._arrays_path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._arrays_path.parent):
            all_arrays, records = self._current()
            if arrays is not None:
                _write_arrays(self._arrays_path, {**all_arrays, run: dict(arrays)})
            if record is not None:
                lines = (
                    f"{json.dumps(name)}: {json.dumps(run_record)}"
                    for name, run_record in sorted({**records, run: record}.items())
                )
                text = "{\n" + ",\n".join(lines) + "\n}\n"
                with _replaced(self._records_path) as new:
                    new.write_text(text, "utf-8")


@dataclass(frozen=True)
class StoredRun:
    """A run of a study."""

    study: StoredStudy
    name: str

    def exists(self) -> bool:
        """Return whether the run has results."""
        return bool(self.study.arrays(self.name)) or self.study.record(self.name) is not None

    def read(self) -> np.ndarray:
        """Return the only array of the run as int64."""
        return self.study.arrays(self.name)[_ONLY].astype(np.int64)

    def write(self, statistics: np.ndarray) -> None:
        """Store the only array of the run, as int16."""
        self.study.put(self.name, {_ONLY: statistics.astype(np.int16)})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Provide a temporary file that replaces `path` when it is complete."""
    new = path.with_name(f".{path.name}.new")
    yield new
    new.replace(path)


def _write_arrays(path: Path, arrays: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    first: dict[tuple[Any, ...], np.ndarray] = {}
    stored = {}
    for run in sorted(arrays):
        for name, array in arrays[run].items():
            base = first.setdefault((name, array.shape, array.dtype.str), array)
            if base is array or array.dtype.kind != "i":
                stored[f"{run}{_OF}{name}"] = array
            else:
                stored[f"{run}{_OF}{name}{_DIFFERENCE}"] = array - base
    save_compactly(path, stored)


def save_compactly(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays in the format of `np.load`, compressed by LZMA, without timestamps."""
    with _replaced(path) as new, zipfile.ZipFile(new, "w") as out:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, allow_pickle=False)
            out.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_LZMA)


def _decoded(path: Path) -> dict[str, dict[str, np.ndarray]]:
    first: dict[tuple[Any, ...], np.ndarray] = {}
    arrays: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path) as stored:
        for key in stored.files:
            array = stored[key]
            run, _, name = key.removesuffix(_DIFFERENCE).partition(_OF)
            if key.endswith(_DIFFERENCE):
                array = array + first[name, array.shape, array.dtype.str]
            else:
                first.setdefault((name, array.shape, array.dtype.str), array)
            arrays.setdefault(run, {})[name] = array
    return arrays
