"""The whole way in some minutes: from 1,020 sentence pairs to a phrase table, a model, a pruned and an annotated
table, translations and BLEU.

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
ENGINE = OUT / "engine"
WORD = "经济"
SIZE = 0.9


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


def split_corpus() -> None:
    """Hold out a tenth of the corpus to test on, and a tenth for `phrasetool tune`."""
    for language in ("zh", "en"):
        lines = (HERE / f"corpus.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
        for name, digits in (("test", {3}), ("dev", {7}), ("train", {0, 1, 2, 4, 5, 6, 8, 9})):
            text = "".join(line for i, line in enumerate(lines) if i % 10 in digits)
            (ENGINE / f"{name}.{language}").write_text(text, encoding="utf-8")


def split_pairs(pairs: Path) -> tuple[Path, Path]:
    """Hold out every tenth pair, so that the model is judged on pairs it has not seen."""
    with gzip.open(pairs, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    train, held_out = OUT / "train.txt", OUT / "held-out.txt"
    train.write_text("".join(line for i, line in enumerate(lines) if i % 10), encoding="utf-8")
    held_out.write_text("".join(lines[::10]), encoding="utf-8")
    return train, held_out


def read_table(path: Path) -> list[list[str]]:
    """The fields of every line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split(" ||| ") for line in file]


def similarities(path: Path) -> list[tuple[float, str, str]]:
    """Mean similarity, source and target of a table annotated with raw similarities, the least similar first."""
    found = []
    for fields in read_table(path):
        st, ts = (float(score) for score in fields[2].split()[-2:])
        found.append(((st + ts) / 2, fields[0], fields[1]))
    return sorted(found)


def build_engine(table: Path, ini: Path) -> None:
    """From the corpus to a phrase table and a moses.ini."""
    train = [str(ENGINE / f"train.{language}") for language in ("zh", "en")]
    aligned, reordering, lm = str(ENGINE / "aligned.gz"), str(ENGINE / "reordering.gz"), str(ENGINE / "lm.arpa.gz")
    run("align", *train, "-o", aligned)
    run("extract", *train, aligned, "-o", str(table), "--reordering-table", reordering)
    run("lm", train[1], "--order", "3", "-o", lm)
    run("moses-ini", "--table", str(table), "--reordering-table", reordering, "--lm", lm, "-o", str(ini))


def translate(ini: Path, annotated_ini: Path, table: Path, small: Path, annotated: Path) -> None:
    """BLEU of the full, the pruned and the annotated table on sentences that nothing was learnt from."""
    test = str(ENGINE / "test.zh")
    full, pruned, richer = (str(OUT / f"{name}.en") for name in ("full", "pruned", "annotated"))
    run("decode", "--moses-ini", str(ini), test, "-o", full)
    run("decode", "--moses-ini", str(ini), "--table", str(small), test, "-o", pruned, "-q")
    run("moses-ini", str(ini), "--table", str(annotated), "--weight", "0.2", "-o", str(annotated_ini))
    run("decode", "--moses-ini", str(annotated_ini), test, "-o", richer, "-q")
    print(f"\nThe first sentences, the translation of each by {table.name}, and what a person wrote:")
    person = (ENGINE / "test.en").read_text(encoding="utf-8").splitlines()
    chinese = Path(test).read_text(encoding="utf-8").splitlines()
    for source, machine, right in list(zip(chinese, Path(full).read_text().splitlines(), person, strict=True))[:4]:
        print(f"  {source}\n    {machine}\n    {right}")
    run("evaluate", full, pruned, richer, "--reference", str(ENGINE / "test.en"), "--metrics", "bleu")


def main() -> None:
    """Run the demo."""
    began = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    ENGINE.mkdir(parents=True)
    model, small, rejected = str(OUT / "model"), OUT / "small.gz", OUT / "rejected.gz"
    table, ini = ENGINE / "phrase-table.gz", ENGINE / "moses.ini"

    say("1. FROM TEXT TO A PHRASE TABLE: align the words of 816 sentence pairs, extract and count all phrase pairs.")
    split_corpus()
    build_engine(table, ini)

    say("2. THE PROBLEM. A phrase table extracted from word-aligned text holds far more than translations:")
    run("inspect", str(table), "-q")

    say("3. PHRASE PAIRS THAT ARE REALLY USED: decode every training sentence to its own translation.")
    pairs = OUT / "pairs.gz"
    run(
        "force-decode", "--moses-ini", str(ini), str(ENGINE / "train.zh"), str(ENGINE / "train.en"),
        "--leave-one-out", "-o", str(pairs),
    )  # fmt: skip

    say("4. LEARN from them what phrases mean, in both languages.")
    train, held_out = split_pairs(pairs)
    print("(So few pairs want more passes and softer targets than the defaults, which are made for real tables.)")
    run(
        "train", str(train), "-o", model, "--iterations", "60", "--temperature", "0.2", "--vector-scale", "0.1",
        "--quiet",
    )  # fmt: skip

    say("5. JUDGE the model on pairs it has not seen. (Two thousand pairs are very few; real tables give far more.)")
    run("evaluate-model", str(held_out), "-m", model, "--candidates", "200")

    say("6. HOW SMALL does the table get? One pass, many thresholds; every one-word source keeps its ten best entries.")
    scores = str(OUT / "scores.parquet")
    run("prune", str(table), "-m", model, "--scores", scores, "--sweep", "-0.2:0.8:0.2", "--protect", "words", "-q")

    say(f"7. PRUNE to {SIZE:.0%}. The similarities kept in step 6 are used again, so this takes no model.")
    run(
        "prune", str(table), "--scores", scores, "--target-size", str(SIZE), "--protect", "words", "-o", str(small),
        "--rejected", str(rejected), "--stats", str(OUT / "stats.json"),
    )  # fmt: skip

    say("8. ANNOTATE: two more scores for the decoder to weigh.")
    annotated = OUT / "annotated.gz"
    run("annotate", str(table), "-m", model, "-o", str(annotated))
    for table_made in (small, rejected):
        raw = table_made.with_suffix("").with_suffix(".raw.gz")
        run("annotate", str(table_made), "-m", model, "-o", str(raw), "--scale", "raw", "-q")
    print("\nOne line before and after:")
    before, after = read_table(table), read_table(annotated)
    example = next(i for i, fields in enumerate(before) if fields[0] == WORD and fields[1] == "the economy")
    print("  " + " ||| ".join(before[example]))
    print("  " + " ||| ".join(after[example]))

    print("\nBy mean similarity, the best entries that were kept and the worst that were pruned:")
    kept, pruned = similarities(OUT / "small.raw.gz"), similarities(OUT / "rejected.raw.gz")
    for verdict, entries in (("kept", kept[-6:]), ("pruned", pruned[:8][::-1])):
        for similarity, source, target in reversed(entries) if verdict == "kept" else entries:
            print(f"  {similarity:+.2f}  {verdict:<6}  {source} ||| {target}")

    say("9. NEIGHBOURS. Phrases near in meaning are near in space, in both languages.")
    for phrase in ("do not agree", "在 会议 上"):
        run("neighbours", phrase, "-m", model, "--pairs", str(train), "-k", "4")

    say("10. TRANSLATE 102 sentences that nothing was learnt from, with the full, the pruned and the annotated table.")
    translate(ini, OUT / "annotated.ini", table, small, annotated)
    print(
        "\n(± is half a 95 % interval: with 102 sentences only large differences mean anything. The weights are the\n"
        "default ones; `phrasetool tune` finds better ones on a real development set.)"
    )

    say(
        f"Done in {time.monotonic() - began:.0f} s. In {OUT}/: engine/ (tables, language model, moses.ini), the model, "
        "small.gz, annotated.gz,\nrejected.gz (what was pruned), pairs.gz, scores.parquet, stats.json, translations."
    )


if __name__ == "__main__":
    main()
