"""The folder that the relative paths of a moses.ini start from.

Moses starts them from its working directory.  If a file that exists next to the ini does not exist there, Moses would
stop; then all relative paths start from the ini's folder, so that a folder with a model can be used from anywhere.
Files of one ini never come from both folders: what is in the working directory by chance is another model's.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Sequence
from dataclasses import dataclass

# Endings that Moses adds to the names of tables itself; `.gz` may also be an ending that the file has lost.
_ENDINGS = ("", ".gz", ".minphr", ".minlexr", ".binphr.idx", ".binlexr.idx")


@dataclass(frozen=True)
class PathBase:
    """A folder, and what should be known about the choice.

    Attributes:
        folder: the folder; empty for the working directory.
        note: how the paths are read if it is not as Moses reads them, or if another reading is possible; may be empty.
        doubtful: whether a file of the same name and with another content exists in the other folder.
    """

    folder: str
    note: str = ""
    doubtful: bool = False


def base_of(ini: str, paths: Sequence[str]) -> PathBase:
    """The folder that relative paths of an ini start from.

    Args:
        ini: the path of the ini.
        paths: all paths that it names; some may not exist.

    Raises:
        ValueError: some exist in the working directory alone, and others next to the ini alone.
    """
    own = os.path.dirname(ini)
    relative = [path for path in paths if not os.path.isabs(path)]
    here = {path: place for path in relative if (place := _existing(path))}
    beside = {path: place for path in relative if (place := _existing(os.path.join(own, path)))}
    if not own or os.path.realpath(own) == os.path.realpath("."):
        return PathBase(own)
    missing_here, missing_beside = ([path for path in one if path not in other] for one, other in
                                    ((beside, here), (here, beside)))  # fmt: skip
    if missing_here and missing_beside:
        raise ValueError(
            f"{missing_beside[0]} exists in the working directory alone and {missing_here[0]} in {own} alone; "
            "relative paths start from one folder"
        )
    doubtful = [path for path in here if path in beside and _differ(here[path], beside[path])]
    if here and not missing_here:
        if not doubtful:
            return PathBase("")
        note = f"{doubtful[0]} of the working directory is used, as by Moses, and not that in {own}, which differs"
        return PathBase("", note, True)
    if not beside:
        return PathBase(own)
    note = f"its paths start from {own}: {missing_here[0]} does not exist in the working directory, where Moses looks"
    if doubtful:
        note += f"; {doubtful[0]} of the working directory, which differs from that in {own}, is not used"
    return PathBase(own, note, bool(doubtful))


def _existing(path: str) -> str:
    names = [*(path + ending for ending in _ENDINGS), path.removesuffix(".gz")]
    return next(filter(os.path.exists, names), "")


def _differ(first: str, second: str) -> bool:
    if os.path.samefile(first, second):
        return False
    if not (os.path.isfile(first) and os.path.isfile(second)):
        return True
    return os.path.getsize(first) != os.path.getsize(second) or not filecmp.cmp(first, second, shallow=False)
