"""Registries: names that users type -> classes, imported when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any


def registered(registry: Mapping[str, str], name: str, what: str) -> Any:
    """The class registered under a name.

    Args:
        registry: name -> `module:class`.
        name: what the user typed.
        what: what the registry holds, for the message.

    Raises:
        ValueError: the name is not registered; the valid ones are named.
    """
    if name not in registry:
        raise ValueError(f"unknown {what} {name!r}; expected one of {', '.join(registry)}")
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
