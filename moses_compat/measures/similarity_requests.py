"""Requests for sentence encoders and columns of syntactic encoders, and the folders of unfinished scores.

Imports no encoder and no Parquet, as most commands need none.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_compat.files.packing import without_ending
from moses_compat.files.paths import scratch_place

_LONGEST = 230


@dataclass(frozen=True)
class EncoderRequest:
    """Which encoder is wanted, and how.

    Attributes:
        folder: of the encoder.
        target_folder: of that of the target side, if it is another.
        detokenise: a language, or two with a comma between them, source first; tokens are put together by its rules.
        prefix: stands before every text.
        normalise: one of `NORMALISATIONS`.
        store: the folder of vectors; beside the table if None.

    Raises:
        ValueError: there is no such language or normalisation.
    """

    folder: str
    target_folder: str | None = None
    detokenise: str | None = None
    prefix: str = ""
    normalise: str = "centred-margin"
    store: str | None = None

    def __post_init__(self) -> None:
        from phrasetool.text_encoders.margins import NORMALISATIONS

        if self.normalise not in NORMALISATIONS:
            raise ValueError(f"unknown normalisation {self.normalise!r}; expected one of {', '.join(NORMALISATIONS)}")
        _ = self.ready

    @property
    def ready(self) -> Callable[[str, int], str]:
        """From the words of a phrase and its side to the text that is encoded."""
        from phrasetool.text_encoders.text_encoder import detokeniser

        languages = (self.detokenise or "").split(",")
        if len(languages) > 2:
            raise ValueError(f"expected a language, or one for each side, not {self.detokenise!r}")
        joined = [detokeniser(language) if self.detokenise else str for language in languages]
        prefix = self.prefix
        return lambda text, side: prefix + joined[min(side, len(joined) - 1)](text)

    def store_for(self, table: str, identities: tuple[str, str]) -> str:
        """The folder of vectors: as asked for, or beside the table, with a name of its own for each encoder."""
        names = [identity.rpartition("-")[2][:8] for identity in dict.fromkeys(identities)]
        return self.store or f"{without_ending(table)}.{'-'.join(names)}.vectors"


# Name of a choice -> its columns: the cosine, and how probable the parts of speech of a side are given the other.
COSINE, FORWARD, BACKWARD = "cosine", "forward", "backward"
SYNTAX_COLUMNS = {"cosine": (COSINE,), "likelihood": (FORWARD, BACKWARD), "all": (COSINE, FORWARD, BACKWARD)}


@dataclass(frozen=True)
class LikelihoodRequest:
    """What is wanted.

    Attributes:
        kinds: columns in order.
        tagger: folder of a tagger that knows both languages.
        languages: of the table's sources and targets.
    """

    kinds: tuple[str, ...]
    tagger: str
    languages: tuple[str, str]


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
        from moses_compat.measures.saved_scores import remove_parts

        remove_parts(there)
