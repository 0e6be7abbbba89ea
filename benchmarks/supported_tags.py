"""Entries whose part-of-speech tags occur in no sentence pair, in the reference table, whole and pruned to a tenth.

Requires the tagger of `tagger.py`.  The tags are searched for in the bitext from which the table was extracted, but a
phrase alone is not always tagged as in its sentence.  The share with targets of other entries is the value by chance.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engines import CORPORA, command
from measuring import COMMAND, WORK, reference, report, usage

METHODS = ("count", "significance", "composition", "composition+count")


def looked_at(table: Path, tagger: Path, found: Path) -> dict[str, Any]:
    """Return the result of `inspect` for a table, and the CPU seconds beyond those of `inspect` alone."""
    corpus = CORPORA["multi30k-de-en"]
    texts = [part for language, text in zip(("de", "en"), corpus.train, strict=True) for part in (language, text)]
    threads = ["--threads", "1", "-q"]
    alone = usage([COMMAND, "inspect", str(table), *threads])
    arguments = ["--tagger", str(tagger), "--bitext", *texts, "--json", str(found)]
    spent = usage([COMMAND, "inspect", str(table), *arguments, *threads])
    kept = json.loads(found.read_text("utf-8"))["parts_of_speech"]
    return {**kept, "cpu_seconds": round(spent.cpu - alone.cpu, 1), "peak_bytes": spent.peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tagger", type=Path, default=WORK / "tagger" / "model")
    options = parser.parse_args()
    work = WORK / "supported_tags"
    work.mkdir(parents=True, exist_ok=True)
    whole = reference() / "phrase-table.gz"
    results = {"whole": looked_at(whole, options.tagger, work / "found.json")}
    for method in METHODS:
        pruned = work / f"{method}.gz"
        if not pruned.exists():
            arguments: list[str | Path] = []
            if method == "significance":
                arguments = ["--bitext", *CORPORA["multi30k-de-en"].train]
            elif "composition" in method:
                arguments = ["--moses-ini", reference() / "moses.ini"]
            command("prune", whole, "--method", method, *arguments, "--target-size", "10%", "-o", pruned)
        results[method] = looked_at(pruned, options.tagger, work / "found.json")
    report("supported_tags", {"tables": results})


if __name__ == "__main__":
    main()
