"""Priors for eflomal in the text form that its `eflomal-makepriors` writes: fields between tabs, a weight last."""

from __future__ import annotations

from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.smt.aligning.eflomal import Priors

# Kind of line -> number of fields.
_FIELDS = {"LEX": 4, "FERF": 4, "FERR": 4, "HMMF": 3, "HMMR": 3}


def read_priors(path: str) -> Priors:
    """Read a file of priors.

    Raises:
        DataError: a line is none of the five kinds, or a number is not one.
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
        except ValueError:
            expected = "LEX, FERF or FERR with two words or a word and a number, or HMMF or HMMR with a jump"
            raise DataError(name, f"not a prior: expected {expected}, and a weight", number) from None
    return priors


def _enter(priors: Priors, fields: list[str]) -> None:
    """Add a line to the priors; ValueError if it is not one."""
    kind, weight = fields[0], float(fields[-1])
    if len(fields) != _FIELDS.get(kind) or not 0 <= weight < float("inf"):
        raise ValueError
    if kind == "LEX":
        priors.lexical.append((fields[1], fields[2], weight))
    elif kind.startswith("FER"):
        priors.fertilities[kind == "FERR"].append((fields[1], int(fields[2]), weight))
    else:
        priors.jumps[kind == "HMMR"][int(fields[1])] = weight
