"""Which columns are wanted of an encoder of syntax."""

from __future__ import annotations

from dataclasses import dataclass

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
