"""What mining tells: counts for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from moses_compat.jobs.mining.mine import MinedTexts, MiningSettings, kept_pairs


def mining_statistics(found: MinedTexts, settings: MiningSettings, encoder: str) -> dict[str, Any]:
    """Counts and settings, for JSON."""
    names = ("source", "target")
    return {
        "encoder": encoder,
        **{
            name: {
                "file": side.name, "lines": side.lines, "empty": side.empty, "different": len(side),
                "without_vector": found.unknown[which],
            }
            for which, (name, side) in enumerate(zip(names, found.sides, strict=True))
        },
        "over_long": found.over_long,
        "search": "exact" if found.agreement is None else {"approximate": asdict(found.agreement)},
        "k": settings.k, "margin": settings.margin, "retrieval": settings.retrieval,
        "min_cosine": settings.min_cosine, "rerank": settings.rerank if found.judged else 0,
        "weight": settings.weight if found.judged else None,
        "copies": found.copies, "copies_dropped": settings.drop_copies,
        "found": len(found.pairs), "threshold": settings.threshold,
        "written": kept_pairs(found, settings.threshold),
    }  # fmt: skip


def mining_summary(statistics: dict[str, Any]) -> list[str]:
    """The same in a few lines."""
    lines = []
    for side in ("source", "target"):
        counts = statistics[side]
        line = f"{counts['file']}: {counts['lines']:,} lines, {counts['different']:,} different sentences"
        for name, text in (("empty", "empty"), ("without_vector", "of which the encoder knows nothing")):
            line += f", {counts[name]:,} {text}" if counts[name] else ""
        lines.append(line)
    if statistics["over_long"]:
        lines.append(
            f"{statistics['over_long']:,} sentences are longer than the encoder reads; their ends were not seen"
        )
    if statistics["copies"]:
        fate = "were left out" if statistics["copies_dropped"] else "are candidates, and marked `copy` where written"
        lines.append(f"{statistics['copies']:,} pairs of two equal sentences {fate}")
    threshold = statistics["threshold"]
    least = "" if threshold is None else f" that score at least {threshold:.6g}"
    lines.append(f"{statistics['written']:,} of {statistics['found']:,} pairs{least} written")
    return lines
