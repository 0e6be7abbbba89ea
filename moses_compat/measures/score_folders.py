"""Where scores that are long in coming are kept until what is made of them is complete."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from moses_compat.files.paths import scratch_place

_LONGEST = 230


def parts_beside(output: str, number: int) -> str | None:
    """The folder for the finished scores of a translator; None where there is no place, or no Parquet.

    Args:
        output: the file that is made of them.
        number: of the model, from 1.
    """
    if scratch_place(output) is None or not importlib.util.find_spec("pyarrow"):
        return None
    place, name = os.path.split(output)
    # Room for what is added to the 255 bytes of a name.
    return os.path.join(place, f"{os.fsdecode(os.fsencode(name)[:_LONGEST])}.scores-{number}")


@contextlib.contextmanager
def finishing(folders: Sequence[str | None]) -> Iterator[None]:
    """Work whose finished scores are kept in some folders until it ends well."""
    yield
    if there := [folder for folder in folders if folder and Path(folder).is_dir()]:
        from moses_compat.measures.score_parts import remove_parts

        remove_parts(there)
