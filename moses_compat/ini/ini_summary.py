"""The contents of a moses.ini, as text for people and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from moses_compat.ini.lines import number_text
from moses_compat.ini.moses_ini import MosesIni


def ini_lines(ini: MosesIni) -> Iterator[str]:
    """Describe a moses.ini: a line for each feature, its file and its weights."""
    yield f"{ini.path}: a moses.ini of version {ini.version}, {len(ini.features)} features"
    for entry in _features(ini):
        weights = " ".join(map(number_text, entry["weights"])) or "none"
        yield f"  {entry['name']:<22} {entry['kind']}, weights: {weights}"
        if entry["path"] is not None:
            scores = f"{entry['scores']} scores, " if entry["scores"] else ""
            missing = "" if entry["exists"] else " (no such file)"
            yield f"  {'':<22} {scores}{entry['path']}{missing}"
    yield "  `phrasetool inspect FILE` describes a table; `phrasetool moses-ini` edits an ini"


def ini_document(ini: MosesIni) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {"file": ini.path, "kind": "moses.ini", "version": ini.version, "features": list(_features(ini))}


def _features(ini: MosesIni) -> Iterator[dict[str, Any]]:
    for feature in ini.features:
        path = feature.arguments.get("path")
        resolved = ini.resolve(path) if path else None
        scores = feature.arguments.get("num-features")
        yield {
            "name": feature.name,
            "kind": feature.kind,
            "scores": int(scores) if scores and scores.isdigit() else None,
            "path": resolved,
            "exists": resolved is not None and os.path.exists(resolved),
            "weights": list(ini.weights.get(feature.name, ())),
        }
