"""Peak memory of `lm` and `extract` with and without a limit, on copies of the reference corpus, with equal output.

Each copy has distinct words, so that n-grams and phrase pairs grow with the corpus as in real ones.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from pathlib import Path

from measuring import COMMAND, WORK, reference, report, usage

_NO_LIMIT = "1T"


def copies_of(path: Path, name: str, copies: int, mark: bool) -> str:
    """Write concatenated copies of a file, with the copy's number in each word if `mark`; return the path."""
    copies_file = WORK / f"{name}-{copies}"
    if not copies_file.is_file():
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        with copies_file.open("wb") as out:
            for number in range(copies):
                end = b"_%d" % number
                out.writelines(
                    b" ".join(word + end for word in line.split()) + b"\n" if mark else line for line in lines
                )
    return str(copies_file)


def measure(command: list[str], limits: list[str], outputs: list[str]) -> dict:
    """Return peak memory and CPU seconds for each limit, and whether all outputs are equal."""
    figures, digests = {}, set()
    for limit in limits:
        process = usage([COMMAND, *command, "--memory", limit, "-q"])
        whole = hashlib.sha256()
        for name in outputs:
            whole.update(Path(name).read_bytes())
            Path(name).unlink()
        digests.add(whole.hexdigest())
        label = "none" if limit == _NO_LIMIT else limit
        figures[label] = {"peak_mb": round(process.peak / 1e6), "cpu_seconds": round(process.cpu, 1)}
    return {"limits": figures, "same_bytes": len(digests) == 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--limits", nargs="+", default=["200M", "50M"])
    options = parser.parse_args()
    folder = reference()
    WORK.mkdir(parents=True, exist_ok=True)
    source, target = (
        copies_of(folder.parent / f"train.{side}.gz", f"train.{side}", options.copies, True) for side in ("de", "en")
    )
    links = copies_of(folder / "aligned.grow-diag-final-and.gz", "aligned", options.copies, False)
    limits = [_NO_LIMIT, *options.limits]
    output = str(WORK / "out")
    lm = ["lm", target, "--order", "5", "--estimator", "built-in", "-o", output, "--temporary", str(WORK)]
    extract = ["extract", source, target, links, "-o", output, "--threads", "2", "--temporary", str(WORK)]
    with open(target, "rb") as file:
        words = sum(len(line.split()) for line in file)
    report(
        "outside_memory",
        {
            "copies": options.copies,
            "words": words,
            "lm": measure(lm, limits, [output]),
            "extract": measure(extract, limits, [output]),
        },
    )


if __name__ == "__main__":
    main()
