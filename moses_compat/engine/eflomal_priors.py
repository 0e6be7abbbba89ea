"""Priors for eflomal in the text form that its `eflomal-makepriors` writes: fields between tabs, a weight last."""

from __future__ import annotations

from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from moses_compat.lines.counts import LARGEST_COUNT
from phrasetool.errors import DataError
from phrasetool.smt.aligning.alignment_priors import Priors, PriorUse


class _TooLargeError(Exception):
    """A weight of more than any corpus has words."""


# Kind of line -> number of fields.
_FIELDS = {"LEX": 4, "FERF": 4, "FERR": 4, "HMMF": 3, "HMMR": 3}


def read_priors(path: str) -> Priors:
    """Read a file of priors.

    Raises:
        DataError: a line is none of the five kinds, or a number is not one; or there is no line.
    """
    priors = Priors()
    with Input(path) as file:
        lines = file.read_all().decode("utf-8", "surrogateescape").split("\n")
        name = file.name
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""] and number == len(lines):
            break
        try:
            _enter(priors, fields)
        except _TooLargeError:
            message = f"the weight {fields[-1]} is more than {LARGEST_COUNT:g}, with which eflomal may never end"
            raise DataError(name, f"{message}; expected a count", number) from None
        except ValueError:
            expected = "LEX, FERF or FERR with two words or a word and a number, or HMMF or HMMR with a jump"
            raise DataError(name, f"not a prior: expected {expected}, and a weight", number) from None
    if not len(priors):
        raise DataError(name, "there is no prior in it; expected counts as eflomal-makepriors writes them")
    return priors


def check_use(use: PriorUse, path: str, source: str, target: str) -> str:
    """Return how many priors are used, as a sentence.

    Args:
        use: of the priors of a file, in an alignment.
        path: the file.
        source, target: the sides of the bitext.

    Raises:
        DataError: no prior is used, or more pairs of words fit the bitext with its sides swapped.
    """
    sides = f"{display_name(source)} and {display_name(target)}"
    if use.swapped > use.lexical:
        message = (
            f"{use.swapped:,} of its word pairs are of words of {sides} with the sides swapped, {use.lexical:,} as "
            "they are; expected priors from the source to the target language"
        )
        raise DataError(display_name(path), message)
    if use.of_words and not use.lexical and not use.fertilities:
        message = f"none of its {use.of_words:,} word pairs and fertilities is of words of {sides} and of the model"
        raise DataError(display_name(path), message)
    if not use.used:
        raise DataError(display_name(path), f"the model uses none of its {use.total:,} priors, which are jumps")
    return (
        f"{use.used:,} of {use.total:,} priors are used: {use.lexical:,} word pairs, {use.fertilities:,} fertilities, "
        f"{use.jumps:,} jumps"
    )


def _enter(priors: Priors, fields: list[str]) -> None:
    """Add a line to the priors; ValueError if it is not one."""
    kind, weight = fields[0], float(fields[-1])
    if len(fields) != _FIELDS.get(kind) or not weight >= 0:
        raise ValueError
    if weight > LARGEST_COUNT:
        raise _TooLargeError
    if kind == "LEX":
        priors.lexical.append((fields[1], fields[2], weight))
    elif kind.startswith("FER"):
        if int(fields[2]) < 0:
            raise ValueError
        priors.fertilities[kind == "FERR"].append((fields[1], int(fields[2]), weight))
    else:
        priors.jumps[kind == "HMMR"][int(fields[1])] = weight
