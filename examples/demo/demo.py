"""The whole way in a minute: train, evaluate, prune, annotate, look at neighbours.

Runs the commands a user would type, on a small Chinese-English corpus written for this project, and says what each of
them shows.  Everything it makes goes to `demo-output/`.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(os.path.relpath(Path(__file__).parent))
OUT = Path("demo-output")
WORD = "经济"


def say(text: str) -> None:
    """Print an explanation."""
    print(f"\n{text}", flush=True)


def run(*arguments: str, show: int | None = None) -> str:
    """Print and run a phrasetool command; show its output (or its first lines)."""
    print("\n$ phrasetool " + " ".join(f'"{a}"' if " " in a else a for a in arguments), flush=True)
    command = [sys.executable, "-c", "from phrasetool_cli.main import main; main()", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    lines = done.stdout.splitlines()
    for line in lines[:show]:
        print(line)
    sys.stdout.flush()
    return done.stdout


def split_pairs() -> tuple[Path, Path]:
    """Hold out every tenth pair, so that the model is judged on pairs it has not seen."""
    with gzip.open(HERE / "pairs.gz", "rt", encoding="utf-8") as file:
        lines = file.readlines()
    train, held_out = OUT / "train.txt", OUT / "held-out.txt"
    train.write_text("".join(line for i, line in enumerate(lines) if i % 10), encoding="utf-8")
    held_out.write_text("".join(lines[::10]), encoding="utf-8")
    return train, held_out


def read_table(path: Path) -> list[list[str]]:
    """The fields of every line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split(" ||| ") for line in file]


def judged(path: Path, verdict: str) -> list[tuple[float, str, str]]:
    """Mean similarity, verdict and target of the entries of WORD in a table annotated with raw similarities."""
    found = []
    for fields in read_table(path):
        if fields[0] == WORD:
            st, ts = (float(score) for score in fields[2].split()[-2:])
            found.append(((st + ts) / 2, verdict, fields[1]))
    return found


def show_entries(entries: list[tuple[float, str, str]]) -> None:
    """Print entries, the most similar first."""
    for similarity, verdict, target in sorted(entries, reverse=True):
        print(f"  {similarity:+.2f}  {verdict:<6}  {target}")


def main() -> None:
    """Run the demo."""
    began = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    model, small, rejected = str(OUT / "model"), OUT / "small.gz", OUT / "rejected.gz"
    table = str(HERE / "phrase-table.gz")

    say("1. THE PROBLEM. A phrase table extracted from word-aligned text holds far more than translations:")
    run("inspect", table, "-q")

    say("2. LEARN what phrases mean, from phrase pairs that really explain the training sentences.")
    train, held_out = split_pairs()
    print("(So few pairs want more passes and softer targets than the defaults, which are made for real tables.)")
    run(
        "train", str(train), "-o", model, "--iterations", "60", "--temperature", "0.2", "--vector-scale", "0.1",
        "--quiet",
    )  # fmt: skip

    say("3. JUDGE the model on pairs it has not seen. (A few thousand pairs are very few; real tables give far more.)")
    run("evaluate-model", str(held_out), "-m", model, "--candidates", "200")

    say("4. HOW SMALL does the table get? One pass, many thresholds; every one-word source keeps its ten best entries.")
    scores = str(OUT / "scores.parquet")
    run("prune", table, "-m", model, "--scores", scores, "--sweep", "-0.2:0.8:0.2", "--protect", "words", "-q")

    say("5. PRUNE to a third. The similarities kept in step 4 are used again, so this takes no model.")
    run(
        "prune", table, "--scores", scores, "--target-size", "0.33", "--protect", "words", "-o", str(small),
        "--rejected", str(rejected), "--stats", str(OUT / "stats.json"),
    )  # fmt: skip

    say("6. ANNOTATE what is left: two more scores for the decoder to weigh.")
    annotated = OUT / "small.annotated.gz"
    run("annotate", str(small), "-m", model, "-o", str(annotated))
    for table_made in (small, rejected):
        raw = table_made.with_suffix("").with_suffix(".raw.gz")
        run("annotate", str(table_made), "-m", model, "-o", str(raw), "--scale", "raw", "-q")
    print("\nOne line before and after:")
    before, after = read_table(small), read_table(annotated)
    example = next(i for i, fields in enumerate(before) if fields[0] == WORD and fields[1] == "the economy")
    print("  " + " ||| ".join(before[example]))
    print("  " + " ||| ".join(after[example]))

    say(f"What became of {WORD} (economy): its entries by mean similarity.")
    show_entries(judged(OUT / "small.raw.gz", "kept") + judged(OUT / "rejected.raw.gz", "pruned"))

    say("7. NEIGHBOURS. Phrases near in meaning are near in space, in both languages.")
    for phrase in ("do not agree", "在 会议 上"):
        run("neighbours", phrase, "-m", model, "--pairs", str(train), "-k", "4")

    say(
        f"Done in {time.monotonic() - began:.0f} s. In {OUT}/: the model, small.gz (a Moses table, a third of the "
        "size), small.annotated.gz,\nrejected.gz (what was pruned), scores.parquet, stats.json."
    )


if __name__ == "__main__":
    main()
