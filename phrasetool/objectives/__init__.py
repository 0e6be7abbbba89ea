"""Objectives: what training minimises.  They know vectors, no files and no word ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from phrasetool.objectives.objective import Objective
from phrasetool.options import registered, with_options

# What users type -> `module:class` of an `Objective`.
OBJECTIVES = {
    "in-batch": "phrasetool.objectives.in_batch:InBatch",
    "max-margin": "phrasetool.objectives.max_semantic_margin:MaxMargin",
    "sampled": "phrasetool.objectives.margin:Sampled",
    "most-informative": "phrasetool.objectives.margin:MostInformative",
    "syn-projection": "phrasetool.objectives.margin:SynProjection",
    "syn-difference": "phrasetool.objectives.margin:SynDifference",
    "cosine": "phrasetool.objectives.cosine_loss:Cosine",
    "vmf": "phrasetool.objectives.von_mises_fisher:VonMisesFisher",
}


def objective(name: str, options: Mapping[str, Any] | None = None) -> Objective:
    """A registered objective.

    Args:
        name: one of `OBJECTIVES`.
        options: some of its options.

    Raises:
        ValueError: an unknown name or option, or a value out of range.
    """
    return cast(Objective, with_options(registered(OBJECTIVES, name, "loss"), name, options or {}))
