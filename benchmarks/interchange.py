"""Time to inspect a table of 1.1 million entries and convert it to Parquet and back, compared with `zcat | gzip -6`.

The benchmark also checks that the converted text is byte-identical.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from pathlib import Path

from measuring import COMMAND, WORK, alternate, reference, report, run, summary


def digest(path: Path) -> str:
    digest = hashlib.sha256()
    with gzip.open(path) as file:
        while piece := file.read(1 << 24):
            digest.update(piece)
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    table, packed, back = reference() / "phrase-table.gz", WORK / "table.parquet", WORK / "back.gz"
    threads = ["--threads", str(options.threads), "-q"]
    commands: dict[str, list[str] | str] = {
        "zcat | gzip -6": f"zcat {table} | gzip -6 > /dev/null",
        "inspect": [COMMAND, "inspect", str(table), *threads],
        "convert to Parquet": [COMMAND, "convert", str(table), "-o", str(packed), *threads],
        "convert to text": [COMMAND, "convert", str(packed), "-o", str(back), *threads],
    }
    times = alternate(commands, options.rounds)
    peaks = {name: run(command)[1] for name, command in commands.items() if not isinstance(command, str)}
    report(
        "interchange",
        {
            "seconds": {name: summary(values) for name, values in times.items()},
            "peak memory, MB": {name: round(peak / 1e6) for name, peak in peaks.items()},
            "bytes": {"table.gz": table.stat().st_size, "table.parquet": packed.stat().st_size},
            "the text came back": digest(table) == digest(back),
            "bars": {"convert to Parquet": 20, "convert to text": 20},
        },
    )


if __name__ == "__main__":
    main()
