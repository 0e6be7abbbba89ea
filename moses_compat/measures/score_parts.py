"""Scores that are long in coming, kept in Parquet part by part, so that interrupted work can go on.

A folder holds a file for each finished window of a table: a fingerprint of each pair (so that no part is ever applied
to another table) and its score.  The metadata of a file name what made it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from moses_compat.files.arrow import DAMAGED, number_array, numbers_of
from phrasetool.disk.scratch import scratch_file
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.phrases import FloatArray

_VERSION = "1"
_SCHEMA = pa.schema([("pair_hash", pa.uint32()), ("score", pa.float32())])
_ENDING, _BEGUN = ".parquet", ".part-"


class ScoreParts:
    """The parts of one table's scores.  Threads may read and write different parts at the same time.

    Args:
        folder: where they are; made with the first part.
        signature: of what makes the scores.
        holder: what messages call that which the pairs are of.
    """

    def __init__(self, folder: str, signature: str, holder: str = "table") -> None:
        self.folder, self._signature, self._holder = folder, signature, holder

    def read(self, number: int, hashes: npt.NDArray[np.uint32]) -> FloatArray | None:
        """The scores of a part, float32, shape (N,); None if it is not there.

        Args:
            number: of the part, from 0.
            hashes: shape (N,), fingerprints of its pairs.

        Raises:
            DataError: it was made by something else, from another table, or is damaged.
        """
        path = self._path(number)
        if not os.path.exists(path):
            return None
        remedy = "delete the folder to begin anew"
        try:
            table = pq.read_table(path, use_threads=False, page_checksum_verification=True)
        except DAMAGED as error:
            raise DataError(path, f"the file is damaged ({error}); {remedy}") from error
        metadata = table.schema.metadata or {}
        if metadata.get(b"phrasetool_parts") != _VERSION.encode() or table.schema.names != _SCHEMA.names:
            raise DataError(self.folder, f"holds no scores of version {_VERSION}; {remedy}")
        if metadata.get(b"signature") != self._signature.encode():
            raise DataError(self.folder, f"holds scores of another model or another way to score; {remedy}")
        found, scores = (
            np.concatenate([np.zeros(0, kind), *(numbers_of(chunk, kind) for chunk in table.column(name).chunks)])
            for name, kind in (("pair_hash", np.uint32), ("score", np.float32))
        )
        if not np.array_equal(found, hashes):
            raise DataError(self.folder, f"holds scores of another {self._holder}; {remedy}")
        return np.asarray(scores, np.float32)

    def write(self, number: int, hashes: npt.NDArray[np.uint32], scores: FloatArray) -> None:
        """Keep a part; it is there as a whole or not at all.

        Args:
            number: of the part, from 0.
            hashes: shape (N,), fingerprints of its pairs.
            scores: float32, shape (N,).

        Raises:
            PhraseToolError: it cannot be written; parts that are there stay.
        """
        schema = _SCHEMA.with_metadata({"phrasetool_parts": _VERSION, "signature": self._signature})
        arrays = [number_array(values, field.type) for values, field in zip((hashes, scores), schema, strict=True)]
        handle = temporary = None
        try:
            os.makedirs(self.folder, exist_ok=True)
            handle, temporary = scratch_file(self.folder, _BEGUN)
            pq.write_table(
                pa.table(arrays, schema=schema), temporary, compression="NONE", use_dictionary=False,
                write_page_checksum=True,
            )  # fmt: skip
            os.chmod(temporary, 0o644)
            os.replace(temporary, self._path(number))
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        finally:
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)
            if handle is not None:
                os.close(handle)

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, f"part-{number:06}{_ENDING}")


def remove_parts(folders: Iterable[str]) -> None:
    """Remove folders that hold nothing but parts."""
    for folder in map(Path, folders):
        if all(file.suffix == _ENDING or file.name.startswith(_BEGUN) for file in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
