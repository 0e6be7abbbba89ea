"""Peak memory on a table and on one 20 times as large; it must hardly grow.

The large table repeats the entries of the small one 20 times, with an additional one-letter word in the sources of each
copy, so that groups remain distinct and unknown words occur as in real tables.
"""

from __future__ import annotations

import argparse
import gzip

from isal import igzip
from measuring import COMMAND, WORK, model, reference, report, run

LETTERS = "abcdefghijklmnopqrst"


def make_large(table: str, path: str, copies: int) -> None:
    """Write the large table; the sources of each copy start with an additional word."""
    with igzip.open(path, "wb", compresslevel=1) as out:
        for letter in LETTERS[:copies]:
            mark = letter.encode()
            with gzip.open(table, "rb") as source:
                while lines := source.readlines(1 << 22):
                    out.write(b"".join([mark + b" " + line for line in lines]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table, folder = str(reference() / "phrase-table.gz"), model()
    large = WORK / f"large-{options.copies}.gz"
    if not large.is_file():
        make_large(table, str(large), options.copies)
    figures: dict = {"copies": options.copies}
    for name, extra in (("annotate", []), ("prune", ["--threshold", "0.7"])):
        peaks, seconds = [], []
        for path in (table, str(large)):
            command = [COMMAND, name, path, "-m", folder, "-o", str(WORK / "out.gz"), "-q", *extra]
            wall, peak = run([*command, "--threads", str(options.threads)])
            peaks.append(peak)
            seconds.append(wall)
        figures[name] = {
            "peak_mb": [round(peak / 1e6) for peak in peaks],
            "ratio": round(peaks[1] / peaks[0], 3),
            "seconds": [round(wall, 2) for wall in seconds],
        }
    (WORK / "out.gz").unlink()
    report("memory", {**figures, "bars": {"ratio": 1.2, "peak_mb": 1500}})


if __name__ == "__main__":
    main()
