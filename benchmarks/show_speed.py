"""Seconds of `phrasetool show` on the reference table: the first call, which writes the index, and later calls."""

from __future__ import annotations

from measuring import COMMAND, WORK, compile_kernels, model, reference, report, summary, usage

ROUNDS = 9
QUERIES = {
    "source phrase": ["nicht"], "frequent source phrase": ["in"], "target phrase": ["--target", "the"],
    "text within target phrases": ["--target", "--contains", "friend"],
    "source phrase with similarities": ["nicht", "-m"],
}  # fmt: skip
BARS = {"first": 3.0, "later": 0.3}


def main() -> None:
    compile_kernels()
    WORK.mkdir(exist_ok=True)
    table, index = reference() / "phrase-table.gz", WORK / "show.index"
    command = [COMMAND, "show", table, "--index", index, "--threads", "2", "-q"]
    first = []
    for _ in range(3):
        index.unlink(missing_ok=True)
        first.append(usage([*command, "nicht"]).wall)
    figures: dict[str, object] = {"first call, s": summary(first), "index, bytes": index.stat().st_size}
    for name, words in QUERIES.items():
        arguments = [*words, model()] if words[-1] == "-m" else words
        figures[f"{name}, s"] = summary([usage([*command, *arguments]).wall for _ in range(ROUNDS)])
    report("show_speed", {**figures, "table, bytes": table.stat().st_size, "bars": BARS})


if __name__ == "__main__":
    main()
