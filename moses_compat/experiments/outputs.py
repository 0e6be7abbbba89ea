"""What an experiment leaves in its folder: frames as Parquet, the report, and how the figures came about."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pandas as pd

from moses_compat.experiments.build_commands import shown_path
from moses_compat.experiments.workbench import Session
from moses_compat.files.streams import Output
from phrasetool import __version__
from phrasetool.experiments.report.pages import write_report

FRAMES = ("pruning", "contests", "annotation", "ladder", "neighbours", "histogram", "map", "surprises")
_PACKAGES = ("numpy", "numba", "pandas", "sacrebleu", "torch", "scikit-learn", "eflomal")


def write_outputs(session: Session, frames: Mapping[str, pd.DataFrame], processors: int) -> None:
    """Write the frames, the report and `experiment.json`; frames that an earlier experiment left go.

    Args:
        session: the experiment, at its end.
        frames: some of `FRAMES`.
        processors: of this machine.
    """
    facts = _facts(session, processors)
    files = {f"{name}.parquet": _parquet(frame) for name, frame in frames.items()}
    files.update(write_report(session.config.name, frames, facts))
    files["experiment.json"] = json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n"
    for name, data in files.items():
        with Output(session.path(name)) as out:
            out.write(data)
    for name in FRAMES:
        # Of an earlier experiment in this folder, that asked for more.
        if name not in frames and os.path.exists(session.path(f"{name}.parquet")):
            os.remove(session.path(f"{name}.parquet"))
    session.watch.say(f"report: {session.path('report.html')}")


def records_of(frames: Mapping[str, pd.DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """The rows of frames, as JSON values; None where there is no number."""
    return {
        name: json.loads(frame.to_json(orient="records", double_precision=15, force_ascii=False))
        for name, frame in frames.items()
    }


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _facts(session: Session, processors: int) -> dict[str, Any]:
    """How the figures came about; the same facts go to the report."""
    with open(session.config.path, encoding="utf-8") as file:
        text = file.read()
    return {
        "name": session.config.name,
        "config": {**_shown(asdict(session.config)), "text": text},
        "machine": f"{_processor()}, {processors} cores, Python {platform.python_version()}",
        "versions": {"phrasetool": __version__, "python": platform.python_version(),
                     **{name: version(name) for name in _PACKAGES}},
        "commands": session.commands,
        "seconds": session.seconds,
    }  # fmt: skip


def _shown(value: Any) -> Any:
    """Settings with paths as somebody in the current folder would write them."""
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner) for inner in value]
    return shown_path(value) if isinstance(value, str) else value


def _processor() -> str:
    """Its name, as far as it is known."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.machine()
