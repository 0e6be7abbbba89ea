"""Encoders: from a phrase, a sequence of word ids, to a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from phrasetool.encoders.protocols import EncoderKind
from phrasetool.options import registered, with_options

# What users type -> `module:class` of an `EncoderKind`.
ENCODERS = {
    "rae": "phrasetool.encoders.rae.kind:Rae",
    "mean-max": "phrasetool.encoders.mean_max.kind:MeanMax",
    "mean": "phrasetool.encoders.mean.kind:Mean",
}


def encoder_kind(name: str, options: Mapping[str, Any] | None = None) -> EncoderKind:
    """A registered encoder.

    Args:
        name: one of `ENCODERS`.
        options: some of its options.

    Raises:
        ValueError: an unknown name or option, or a value out of range.
    """
    return cast(EncoderKind, with_options(registered(ENCODERS, name, "encoder"), name, options or {}))
