"""Tuning from default weights with the reference table: BLEU on the development set, compared with Moses' weights."""

from __future__ import annotations

import argparse
import json

from measuring import COMMAND, WORK, bleu, reference, report, run

from moses_compat.engine.model import MosesModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--algorithms", nargs="+", default=["mira", "pro"])
    options = parser.parse_args()
    moses = reference()
    data = moses.parent
    folder = WORK / "tuning"
    folder.mkdir(parents=True, exist_ok=True)
    start = folder / "start.ini"
    run([
        COMMAND, "moses-ini", "--table", str(moses / "phrase-table.gz"), "--reordering-table",
        str(moses / "reordering-table.wbe-msd-bidirectional-fe.gz"), "--lm", str(moses / "lm5.pruned.arpa.gz"),
        "-o", str(start),
    ])  # fmt: skip
    results: dict = {
        "Moses' weights": dev_bleu(str(moses / "moses.ini"), data),
        "default weights": dev_bleu(str(start), data),
    }
    for algorithm in options.algorithms:
        for seed in range(1, options.seeds + 1):
            tuned = folder / f"{algorithm}.{seed}.ini"
            log = folder / f"{algorithm}.{seed}.jsonl"
            seconds, _ = run([
                COMMAND, "tune", "--moses-ini", str(start), "--dev", str(data / "dev.de"),
                str(data / "dev.en"), "--algorithm", algorithm, "--search", "cube", "--pop-limit", "400",
                "--seed", str(seed), "--log", str(log), "-o", str(tuned),
            ])  # fmt: skip
            runs = [json.loads(line) for line in log.read_text().splitlines()]
            results[f"{algorithm}, seed {seed}"] = {
                "BLEU": dev_bleu(str(tuned), data), "runs": len(runs), "seconds": round(seconds, 1),
            }  # fmt: skip
    report("tuning", results)


def dev_bleu(ini: str, data) -> float:
    """Return BLEU on the development set, with plain stacks of 200."""
    model = MosesModel.read(ini)
    translator, text = model.load((data / "dev.de").read_bytes(), threads=2)
    translations = translator.translate_all(text.sentences, model.search, threads=2)
    lines = [translator.text(translation).decode() for translation in translations]
    references = (data / "dev.en").read_text().splitlines()
    return bleu(lines, references)


if __name__ == "__main__":
    main()
