"""What the header of a store of vectors has to be, see `vector_store`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phrasetool.text_encoders.encoder_fit import EncoderFit
from phrasetool.text_encoders.text_encoder import SIDES


def header_fault(header: Mapping[str, Any]) -> str | None:
    """What a header lacks, or has of another type; nothing if it is as it was written."""
    counts, dimension, encoders = header.get("phrases"), header.get("dimension"), header.get("encoders")
    if not (isinstance(encoders, list) and len(encoders) == len(SIDES)):
        return "`encoders` are not two"
    if not (isinstance(counts, list) and len(counts) == len(SIDES) and all(map(_is_count, counts))):
        return "`phrases` are no two numbers"
    if not (_is_count(dimension) and dimension):
        return "`dimension` is no number"
    if not _is_count(header.get("over_long", 0)):
        return "`over_long` is no number"
    if not isinstance(header.get("made", []), list) or not isinstance(header.get("fits", {}), dict):
        return "`made` is no list, or `fits` is no object"
    try:
        for fit in header.get("fits", {}).values():
            EncoderFit.from_dict(fit)
    except (KeyError, TypeError, AttributeError):
        return "`fits` are none"
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
