"""How the numbers of a report came about: times, machine, versions, configuration, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from moses_compat.experiments.report.drawing import number_text, printable
from phrasetool.text_splitting import split_lines, split_words


@dataclass(frozen=True)
class FactList:
    """Facts of one kind: names and values, or lines as they are if `literal`."""

    name: str
    rows: tuple[tuple[str, str], ...]
    literal: bool = False


def fact_lists(facts: Mapping[str, Any]) -> Iterator[FactList]:
    """Facts for people: seconds as minutes, nested values with dotted names; commands and configuration texts as is."""
    if facts.get("seconds"):
        yield FactList("time", tuple((name, duration(float(value))) for name, value in _flat(facts["seconds"])))
    for name in ("machine", "versions", "config"):
        value = facts.get(name)
        text = value.get("text") if name == "config" and isinstance(value, Mapping) else None
        if isinstance(text, str):
            yield FactList(name, tuple(("", printable(line)) for line in split_lines(text)), literal=True)
        elif value:
            yield FactList(name, tuple((key or name, _shown(inner)) for key, inner in _flat(value)))
    commands = facts.get("commands")
    if commands:
        yield FactList("commands", tuple((key, _command(value)) for key, value in _flat(commands)), literal=True)


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple) and any(isinstance(inner, Mapping | list | tuple) for inner in value):
        return [pair for inner in value for pair in ([(name, inner)] if _is_words(inner) else _flat(inner, name))]
    if name == "" and isinstance(value, list | tuple):
        return [("", inner) for inner in value]
    return [(name, value)]


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable("" if value is None else f"{value:g}" if isinstance(value, float) else value)


def _command(value: Any) -> str:
    return printable(" ".join(value) if _is_words(value) else value)


def duration(seconds: float) -> str:
    """Seconds as people say them: `7.2 s`, `10 min 10 s`, `1 h 5 min`."""
    if seconds < 60:
        return f"{number_text(seconds, 1)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def pruning_commands(frames: Mapping[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """Each system and the command that writes its table."""
    if "pruning" not in frames:
        return []
    rows = frames["pruning"].drop_duplicates("system")
    shown = [
        (printable(row.system), printable(row.command)) for row in rows.itertuples() if isinstance(row.command, str)
    ]
    return [(system, command) for system, command in shown if split_words(command)]
