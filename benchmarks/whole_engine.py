"""Times and BLEU of a whole system built with phrasetool only: align, extract, lm, tune, decode, evaluate.

Data and settings are those of the reference Moses run, so BLEU on the four test sets can be compared.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from measuring import COMMAND, TESTS, WORK, bleu, reference, report, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    moses = reference()
    data = moses.parent
    folder = WORK / "whole"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seconds: dict[str, float] = {}

    def step(name: str, *arguments: str | Path) -> None:
        elapsed, _ = run([COMMAND, *map(str, arguments)])
        seconds[name] = round(seconds.get(name, 0.0) + elapsed, 1)

    began = time.perf_counter()
    source, target = data / "train.de.gz", data / "train.en.gz"
    table, reordering = folder / "phrase-table.gz", folder / "reordering-table.gz"
    language_model, ini, tuned = folder / "lm.arpa.gz", folder / "moses.ini", folder / "tuned.ini"
    step("align", "align", source, target, "-o", folder / "aligned.gz", "--seed", str(options.seed))
    step("extract", "extract", source, target, folder / "aligned.gz", "-o", table, "--reordering-table", reordering)
    step(
        "lm", "lm", target, data / "mono" / "mono.en.gz", "--order", "5",
        *(word for threshold in "00112" for word in ("--prune", threshold)), "-o", language_model,
    )  # fmt: skip
    step(
        "moses-ini", "moses-ini", "--table", table, "--reordering-table", reordering, "--lm", language_model, "-o", ini
    )
    step(
        "tune", "tune", "--moses-ini", ini, "--dev", data / "dev.de", data / "dev.en",
        "--search", "cube", "--pop-limit", "400", "--seed", str(options.seed), "--log", folder / "tuning.jsonl",
        "-o", tuned,
    )  # fmt: skip
    for test in TESTS:
        step("decode", "decode", "--moses-ini", tuned, data / f"{test}.de", "-o", folder / f"{test}.en")
    total = time.perf_counter() - began
    scores = {
        test: {
            "phrasetool": bleu_of(folder / f"{test}.en", data / f"{test}.en"),
            "Moses": bleu_of(moses / f"{test}.moses.en", data / f"{test}.en"),
        }
        for test in TESTS
    }
    report(
        "whole_engine",
        {
            "seconds": seconds,
            "minutes": round(total / 60, 2),
            "BLEU": scores,
            "mean difference": round(sum(s["phrasetool"] - s["Moses"] for s in scores.values()) / len(TESTS), 2),
        },
    )


def bleu_of(hypothesis: Path, reference_text: Path) -> float:
    lines = [line.strip() for line in hypothesis.read_text().splitlines()]
    return bleu(lines, reference_text.read_text().splitlines())


if __name__ == "__main__":
    main()
