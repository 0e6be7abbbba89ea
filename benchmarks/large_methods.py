"""Memory of pruning a very large table by composition, similarity and usage; no line may be lost.

    python benchmarks/large_methods.py --entries 10_000_000
    python benchmarks/large_methods.py --entries 100_000_000 --work /large/disk

The table consists of copies of the reference table.  Each copy has distinct source words, and distinct target words for
a part of the vocabulary that a seed chooses; so each copy has the compositions, similarities and usage of the
original, and all copies share target phrases.  Each copy and the whole table are sorted.  Similarities and pairs of
forced decoding are those of the reference run.  Memory is compared with that of a table of one copy and reported per
additional entry.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from isal import igzip
from measuring import COMMAND, WORK, model, reference, report, run

from moses_compat.measures.saved_scores import SavedScores, ScoreWriter
from moses_compat.tables.blocks import LineMarks, RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.phrase_encoder.scoring import Scores

METHOD = "composition+semantic+usage"
_BAR = b" ||| "
_LINES_PER_WRITE = 1 << 16


class Words:
    """The words of one copy.

    Args:
        copy: number of the copy; it precedes every source word, so that copies are sorted by it.
        seed: chooses the target words that are distinct in each copy.
    """

    def __init__(self, copy: int, seed: int) -> None:
        self._mark = b"%03d~" % copy
        self._key = b"%d %d" % (seed, copy)
        self._targets: dict[bytes, bytes] = {}

    def source(self, field: bytes) -> bytes:
        """Return a source phrase of this copy."""
        return b" ".join([self._mark + word for word in field.split()])

    def target(self, field: bytes) -> bytes:
        """Return a target phrase of this copy."""
        return b" ".join([self._targets.get(word) or self._new_target(word) for word in field.split()])

    def _new_target(self, word: bytes) -> bytes:
        is_distinct = hashlib.blake2b(word, key=self._key).digest()[0] % 2
        self._targets[word] = result = self._mark + word if is_distinct else word
        return result


def copied(lines: list[bytes], words: Words) -> tuple[list[bytes], np.ndarray]:
    """Return the sorted entries of a copy, and the index of the original line of each."""
    entries, last, source = [], b"", b""
    for line in lines:
        first, target, rest = line.split(_BAR, 2)
        if first != last:
            last, source = first, words.source(first)
        entries.append(b"%s ||| %s ||| %s" % (source, words.target(target), rest))
    order = sorted(range(len(entries)), key=entries.__getitem__)
    return [entries[i] for i in order], np.array(order)


def make_inputs(folder: Path, entries: int, seed: int, similarities: str) -> None:
    """Write a table, similarities and pairs of forced decoding; the last copy is cut at the requested size."""
    with gzip.open(reference() / "phrase-table.gz") as file:
        lines = file.readlines()
    with gzip.open(reference() / "forced-pairs.gz") as file:
        pairs = file.readlines()
    _, known = SavedScores(similarities).take(len(lines))
    parser, size, copy = TableParser(scores=4, fingerprints=True), 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    with (
        igzip.open(folder / "table.gz.part", "wb", compresslevel=1) as table,
        igzip.open(folder / "pairs.gz", "wb", compresslevel=1) as forced,
        ScoreWriter(str(folder / "scores.parquet"), "of the reference run") as scores,
    ):
        while size < entries:
            words = Words(copy, seed)
            copied_lines, order = copied(lines, words)
            copied_lines, order = copied_lines[: entries - size], order[: entries - size]
            for first in range(0, len(copied_lines), _LINES_PER_WRITE):
                data = b"".join(copied_lines[first : first + _LINES_PER_WRITE])
                rows = order[first : first + _LINES_PER_WRITE]
                block, _ = parser(0, np.frombuffer(data, np.uint8))
                # A block may begin within the entries of a source.
                raw = RawBlock(0, block.line_offsets, block.text, parser.scores, 0, continued=True)
                table.write(data)
                scores.write(LineMarks.of(raw, block), Scores(known.similarities[rows], known.scored[rows]))
            for pair in pairs:
                first_field, target, count = pair.split(_BAR, 2)
                forced.write(b"%s ||| %s ||| %s" % (words.source(first_field), words.target(target), count))
            size, copy = size + len(copied_lines), copy + 1
            print(f"made {size:,} entries", file=sys.stderr)
    os.replace(folder / "table.gz.part", folder / "table.gz")


def watched(command: list[str]) -> dict[str, float]:
    """Run a process; return its seconds, its peak resident memory, and the largest size of its unnamed files.

    The peak memory that the system reports for an ended process may be that of this process, which started it.
    """
    began, maxima = time.perf_counter(), [0, 0]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ended = threading.Event()

    def look() -> None:
        handles = Path(f"/proc/{process.pid}/fd")
        while not ended.wait(0.2):
            peak = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            maxima[1] = int(peak[1]) * 1024 if peak else maxima[1]
            unlinked_bytes = 0
            for handle in os.listdir(handles) if handles.is_dir() else ():
                try:
                    status = os.stat(handles / handle)
                except OSError:
                    continue
                unlinked_bytes += status.st_size if status.st_nlink == 0 else 0
            maxima[0] = max(maxima[0], unlinked_bytes)

    watcher = threading.Thread(target=look)
    watcher.start()
    _, status, resource_usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return {
        "seconds": round(seconds, 1), "cpu_seconds": round(resource_usage.ru_utime + resource_usage.ru_stime, 1),
        "peak_mb": round(maxima[1] / 1e6), "work_files_gb": round(maxima[0] / 1e9, 3),
    }  # fmt: skip


def split_in_order(table: Path, kept: Path, rejected: Path) -> dict[str, int]:
    """Count kept and rejected lines; exit with an error if a line is in neither file or out of order."""

    def lines(path: Path) -> Iterator[bytes]:
        with igzip.open(path, "rb") as file:
            yield from file

    counts = {"kept": 0, "rejected": 0}
    rests = {"kept": lines(kept), "rejected": lines(rejected)}
    following = {name: next(rest, b"") for name, rest in rests.items()}
    for number, line in enumerate(lines(table), 1):
        name = next((name for name, following_line in following.items() if following_line == line), None)
        if name is None:
            sys.exit(f"{table}:{number}: the line neither stayed nor went")
        counts[name] += 1
        following[name] = next(rests[name], b"")
    if any(following.values()):
        sys.exit(f"{table}: there are more lines than it had")
    return {"lines": sum(counts.values()), **counts}


def measured(folder: Path, entries: int, options: argparse.Namespace, similarities: str) -> dict[str, float]:
    """Write missing inputs, prune the table, and check every line of the outputs."""
    if not (folder / "table.gz").is_file():
        make_inputs(folder, entries, options.seed, similarities)
    kept, rejected = folder / "kept.gz", folder / "rejected.gz"
    command = [
        COMMAND, "prune", str(folder / "table.gz"), "--method", METHOD, "--moses-ini", str(reference() / "moses.ini"),
        "--forced-pairs", str(folder / "pairs.gz"), "--similarities", str(folder / "scores.parquet"),
        "--target-size", "0.1",
        "-o", str(kept), "--rejected", str(rejected), "--threads", str(options.threads), "-q",
    ]  # fmt: skip
    figures = watched(command)
    figures |= split_in_order(folder / "table.gz", kept, rejected)
    for path in (kept, rejected):
        path.unlink()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=WORK, help="where tables and work files go")
    parser.add_argument("--name", default="large_methods", help="of the results")
    options = parser.parse_args()
    similarities = str(WORK / "scores.parquet")
    table = str(reference() / "phrase-table.gz")
    run([COMMAND, "prune", table, "-m", model(), "--similarities", similarities, "--sweep", "0.7:0.7:0.1", "-q"])
    small = SavedScores(similarities).rows
    figures = {
        entries: measured(options.work / f"large-methods-{entries}", entries, options, similarities)
        for entries in (small, options.entries)
    }
    more = (figures[options.entries]["peak_mb"] - figures[small]["peak_mb"]) * 1e6
    bytes_an_entry = round(more / max(options.entries - small, 1), 1)
    bars = {"bytes an entry": 24, "peak_mb": 4000}
    report(options.name, {"method": METHOD, "tables": figures, "bytes an entry": bytes_an_entry, "bars": bars})


if __name__ == "__main__":
    main()
