"""`phrasetool improve` on the German-English Moses run: BLEU after each step on all test sets, and minutes.

The first run keeps a tenth of the entries, measured with the reranker and, from the same translations, without it.  The
second run chooses the size by non-inferiority on the development set.  Intervals are of the gain over the given model,
by paired bootstrap.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from measuring import COMMAND, TESTS, WORK, reference, report

from moses_compat.corpora.texts import read_text_lines
from phrasetool.smt.evaluation.bleu import Bootstrap, sentence_statistics

RUNS = {"a tenth": ["--size", "10%"], "non-inferior on dev": []}
BARS = {"gain": 2.3, "gain without rerank": 1.3, "minutes": 60}


def improved(options: list[str], folder: Path, keep: bool) -> dict[str, Any]:
    """Run `improve`, and return its steps with the gain on each test set.

    Args:
        options: options that differ between runs.
        folder: output folder.
        keep: whether an earlier run is continued; its minutes are then the sum over its steps.
    """
    moses = reference()
    data = moses.parent
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    tests = [part for test in TESTS for part in ("--test", str(data / f"{test}.de"), str(data / f"{test}.en"))]
    began = time.monotonic()
    subprocess.run(
        [COMMAND, "improve", "--moses-ini", str(moses / "moses.ini"), "--train", str(data / "train.de.gz"),
         str(data / "train.en.gz"), "--dev", str(data / "dev.de"), str(data / "dev.en"), *tests, "--threads", "2",
         *options, "-o", str(folder)],
        check=True,
    )  # fmt: skip
    minutes = (time.monotonic() - began) / 60
    figures: dict[str, Any] = json.loads((folder / "improve.json").read_text())
    steps = figures["steps"]
    if keep:
        minutes = sum(step["seconds"] for step in steps) / 60
    names = [f"{number}.test" for number in range(len(steps) - 1)] + ["reranked.test"]
    for step, name in zip(steps, names, strict=True):
        step["tests"] = by_test(folder / "steps" / name, folder / "steps" / names[0], data)
    return {"minutes": round(minutes, 1), "sentences": figures["sentences"], "steps": {s.pop("step"): s for s in steps}}


def by_test(translations: Path, given: Path, data: Path) -> dict[str, dict[str, float]]:
    """Return BLEU and gain over the given model on each test set."""
    first, results = 0, {}
    lines, before = (read_text_lines(str(path)) for path in (translations, given))
    for test in TESTS:
        truth = read_text_lines(str(data / f"{test}.en"))
        part = slice(first, first + len(truth))
        first += len(truth)
        bootstrap = Bootstrap(len(truth))
        new, old = (bootstrap(sentence_statistics(texts[part], truth)) for texts in (lines, before))
        low, high = new.difference_interval(old)
        gain = {"bleu": new.bleu, "gain": new.bleu - old.bleu, "low": low, "high": high}
        results[test] = {name: round(value, 3) for name, value in gain.items()}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="continue earlier runs, as after an interruption")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = {
        name: improved(extra, WORK / f"improve-{number}", options.keep)
        for number, (name, extra) in enumerate(RUNS.items())
    }
    report("improve", {**runs, "bars": BARS})


if __name__ == "__main__":
    main()
