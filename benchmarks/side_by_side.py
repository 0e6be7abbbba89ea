"""CPU time of the commands of two checkouts, run in turn on the reference run: how much slower is one of them?

    python benchmarks/side_by_side.py --before ../before --after .

Each checkout has its own `.venv`.  The commands are those of `table_speed.py`, `method_speed.py`, `training_speed.py`,
`decoder.py`, `extraction.py` and `startup.py`.  Ratios are of CPU seconds of consecutive runs, because machines drift
and have other load; the median is decisive.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import sys
from pathlib import Path

from measuring import WORK, compile_bytecode, model, reference, report, summary, usage

BAR = 1.03


def cases(folder: Path) -> dict[str, list[str]]:
    """Return arguments of `phrasetool` by the benchmark that they represent, and write their inputs."""
    moses = reference()
    data, table, ini = moses.parent, str(moses / "phrase-table.gz"), str(moses / "moses.ini")
    forced, scores, out = str(moses / "forced-pairs.gz"), str(folder / "scores.parquet"), str(folder / "out")
    train = [str(data / "train.de.gz"), str(data / "train.en.gz")]
    few = [first_lines(path, folder / f"few.{side}", 2000) for path, side in zip(train, ("de", "en"), strict=True)]
    size = ["--target-size", "0.1", "--scores", scores]
    test = str(data / "test_2016_flickr.de")
    return {
        "startup: --help": ["--help"],
        "startup: inspect of ten lines": ["inspect", first_lines(table, folder / "ten", 10), "-q"],
        "table_speed: annotate": ["annotate", table, "-m", model(), "-o", f"{out}.gz", "-q"],
        "table_speed: prune, keeps similarities": [
            "prune", table, "-m", model(), "-t", "0.7", "-o", f"{out}.gz", "--stats", f"{out}.json", "-q"],
        "table_speed: prune --scores": ["prune", table, "--scores", scores, "-t", "0.7", "-o", f"{out}.gz", "-q"],
        "method_speed: composition+semantic": ["prune", table, "--moses-ini", ini, *size, "-o", f"{out}.gz", "-q"],
        "method_speed: with usage": [
            "prune", table, "--moses-ini", ini, "--forced-pairs", forced, *size, "-o", f"{out}.gz", "-q"],
        "method_speed: count+semantic": ["prune", table, "--method", "count+semantic", *size, "-o", f"{out}.gz", "-q"],
        "method_speed: significance": [
            "prune", table, "--method", "significance", "--corpus", *train, "--target-size", "0.1", "-o", f"{out}.gz",
            "-q"],
        "training_speed: a pass": [
            "train", forced, "-o", f"{out}-model", "--iterations", "4", "--vectors", "random", "-q"],
        "decoder: cube": [
            "decode", "--moses-ini", ini, test, "--search", "cube", "--pop-limit", "400", "-o", out, "-q"],
        "decoder: stacks": ["decode", "--moses-ini", ini, test, "-o", out, "-q"],
        "decoder: forced": ["force-decode", "--moses-ini", ini, *few, "-o", out, "-q"],
        "extraction: tables": [
            "extract", *train, str(moses / "aligned.grow-diag-final-and.gz"), "-o", f"{out}.gz",
            "--reordering-table", f"{out}.r.gz", "-q"],
        "language_model: 5-gram": ["lm", train[1], "--order", "5", "-o", out, "-q"],
    }  # fmt: skip


def first_lines(path: str, place: Path, count: int) -> str:
    """Write the first lines of a compressed text to `place`; return its path."""
    with gzip.open(path, "rb") as source:
        place.write_bytes(b"".join(next(source) for _ in range(count)))
    return str(place)


def cpu_seconds(checkout: Path, arguments: list[str]) -> float:
    """Return the CPU seconds of a command of a checkout."""
    if arguments[0] == "train":
        # `train` does not overwrite a finished model.
        shutil.rmtree(arguments[arguments.index("-o") + 1], ignore_errors=True)
    return usage([checkout / ".venv/bin/phrasetool", *arguments]).cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    folder = WORK / "side-by-side"
    folder.mkdir(parents=True, exist_ok=True)
    for checkout in (options.before, options.after):
        compile_bytecode(checkout)
    scores = ["prune", str(reference() / "phrase-table.gz"), "-m", model(), "--sweep", "0:0:1", "-q", "--scores"]
    (folder / "scores.parquet").unlink(missing_ok=True)
    cpu_seconds(options.after, [*scores, str(folder / "scores.parquet")])
    # With --only, results of other cases are kept.
    kept = Path(__file__).parent / "results" / "side_by_side.json"
    figures = json.loads(kept.read_text())["CPU seconds"] if options.only and kept.exists() else {}
    for name, arguments in cases(folder).items():
        if options.only not in name:
            continue
        # A first run of each compiles kernels that are not compiled yet.
        for checkout in (options.before, options.after):
            cpu_seconds(checkout, arguments)
        rounds = options.rounds * (3 if name.startswith("startup") else 1)
        pairs = []
        for number in range(rounds):
            order = (options.before, options.after) if number % 2 else (options.after, options.before)
            seconds = {checkout: cpu_seconds(checkout, arguments) for checkout in order}
            pairs.append((seconds[options.before], seconds[options.after]))
        ratios = [after / before for before, after in pairs]
        least = min(after for _, after in pairs) / min(before for before, _ in pairs)
        figures[name] = {
            "before": summary([before for before, _ in pairs]), "after": summary([after for _, after in pairs]),
            "ratio": summary(ratios), "ratio of the fastest": round(least, 3),
        }  # fmt: skip
        median = statistics.median(ratios)
        mark = "" if min(median, least) <= BAR else "  <- slower"
        print(f"{name:40} {median:.3f} (fastest: {least:.3f}){mark}", file=sys.stderr)
    report("side_by_side", {"CPU seconds": figures, "bar": BAR})


if __name__ == "__main__":
    main()
