"""Open a table: reject files of another kind by their first lines, and sort the lines if requested."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from moses_compat.files.kinds import HEAD_BYTES, guess, refuse
from moses_compat.files.paths import STANDARD, scratch_place
from moses_compat.files.streams import Input, compress
from moses_compat.tables.blocks import Progress, TableScan, raw_blocks
from moses_compat.tables.canonical import sort_lines
from moses_compat.tables.parser import count_scores
from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.text_splitting import single_spaced, split_lines, split_words
from phrasetool.watch import Watch

PHRASE_TABLE = "a phrase table"
REORDERING_TABLE = "a reordering table"
_POINTS = re.compile(rb"(\d+-\d+ ?)+")
# Tolerance of sums: probabilities have six digits, and those of all orientations add up to 1.  In the reordering table
# of Multi30k (1,117,535 lines), no sum deviates by more than 3e-6.
_SUM = 1e-4
_PENALTY = (b"2.718", b"2.71828", b"2.718281828")
# Smallest number of different score fields for a decision; in a table of a few lines, sums may be 1 by chance.
_FEWEST_DIFFERENT = 3


def check_plausible(source: Input, scan: TableScan, expected: str = PHRASE_TABLE) -> None:
    """Reject a file of another kind by its first lines, which are not consumed.

    Args:
        source: the file, at its beginning.
        scan: with `allow_empty`, the table may have no lines; with `force`, a table that looks like one of the other
            kind only causes a warning.
        expected: `PHRASE_TABLE` or `REORDERING_TABLE`.

    Raises:
        DataError: the file has no line, or only blank ones; is of another kind; or looks like a table of the other
            kind.
    """
    head = source.peek(HEAD_BYTES)
    if not head.strip(b" \t\r\n"):
        if len(head) < HEAD_BYTES and not scan.allow_empty:
            nothing = "holds blank lines only" if head else "is empty"
            raise DataError(source.name, f"{nothing}; expected {expected}", remedy="allow an empty input")
        return
    refuse(source.name, head)
    whole = head[: head.rfind(b"\n") + 1] if len(head) == HEAD_BYTES else head
    if count_scores(np.frombuffer(whole or head, np.uint8)) < 0:
        if expected == PHRASE_TABLE and (kind := guess(head)) is not None:
            raise DataError(source.name, f"looks like {kind}")
        return
    apparent_kind = looks_like(whole)
    if apparent_kind is None or apparent_kind == expected:
        return
    scan.refuse(DataError(source.name, f"looks like {apparent_kind}; expected {expected}", remedy="go on"))


def scores_of_table(path: str, scan: TableScan | None = None, expected: str = PHRASE_TABLE) -> int:
    """Return the number of scores per entry of a table.

    Args:
        path: path of the table.
        scan: with `force`, a table that looks like one of the other kind only causes a warning.
        expected: `PHRASE_TABLE` or `REORDERING_TABLE`.

    Raises:
        DataError: the file cannot be read, is of another kind or holds no entry.
    """
    with Input(path) as source:
        check_plausible(source, replace(scan or TableScan(), allow_empty=True), expected)
        scores = next((block.scores for block in raw_blocks(source)), -1)
    if scores < 0:
        raise DataError(path, f"holds no {expected.removeprefix('a ').replace(' ', '-')} entry")
    return scores


def scores_of_source_table(path: str) -> int:
    """Return the number of scores per line of a reordering table conditioned on the source alone (type `f`).

    Raises:
        DataError: the file cannot be read, or its first line is not `source ||| scores`.
    """
    with Input(path) as source:
        head = source.peek(HEAD_BYTES)
        refuse(source.name, head)
    fields = head.split(b"\n", 1)[0].split(b"|||")
    if len(fields) != 2:
        message = "expected source ||| scores, a line of a reordering table conditioned on the source alone (type f)"
        raise DataError(path, message, 1)
    return len(split_words(fields[1]))


def looks_like(head: bytes) -> str | None:
    """Return the kind of table that these lines certainly belong to, or None if both kinds are possible.

    A reordering table has three fields, and in the third the probabilities of three or four orientations (two, for
    some), of one or two directions: each set adds up to 1.  A phrase table has alignments and counts, or ends with the
    phrase penalty; without these, it cannot be recognised.

    Args:
        head: the first lines of a table.
    """
    rows = [
        [single_spaced(field) for field in line.split(b"|||")] for line in split_lines(head) if line.count(b"|||") >= 2
    ]
    if not rows:
        return None
    if all(len(row) > 4 and row[4] for row in rows) or all(len(row) > 3 and _POINTS.fullmatch(row[3]) for row in rows):
        return PHRASE_TABLE
    scores = [split_words(row[2]) for row in rows]
    if all(len(row) > 3 and row[-1] in _PENALTY for row in scores):
        return PHRASE_TABLE
    if any(len(row) > 3 for row in rows) or len({tuple(row) for row in scores}) < _FEWEST_DIFFERENT:
        return None
    return REORDERING_TABLE if _orientations(scores) else None


def _orientations(scores: list[list[bytes]]) -> bool:
    """Return whether all scores are probabilities of orientations."""
    try:
        values = np.array([[float(score) for score in row] for row in scores])
    except ValueError:
        return False
    if values.ndim != 2 or (values < 0).any():
        return False
    sizes = {2: (2,), 3: (3,), 4: (4, 2), 6: (3,), 8: (4,)}.get(values.shape[1], ())
    return any(bool((np.abs(values.reshape(len(values), -1, size).sum(axis=2) - 1) < _SUM).all()) for size in sizes)


def sorted_name(path: str) -> str:
    """Return the name of a sorted copy in messages, because its line numbers differ from those of the table."""
    return "standard input, sorted" if path == STANDARD else f"{path}, sorted"


@contextlib.contextmanager
def sorted_copy(path: str, output: str, scan: TableScan, watch: Watch, expected: str = PHRASE_TABLE) -> Iterator[str]:
    """Sort the lines of a table bytewise, as Moses does (`LC_ALL=C sort`), without other changes.

    Memory does not grow with the table; the compressed copy and the temporary files of sorting are in a separate folder
    until the context ends.

    Args:
        path: the table; `-` for standard input.
        output: the folder is created next to this file; for a stream, in the system's folder for temporary files.
        scan: settings for reading the table.
        watch: progress listener.
        expected: see `check_plausible`.

    Yields:
        The path of the copy.

    Raises:
        DataError: the table cannot be read, or is not a table.
        PhraseToolError: the disk is full, or sorting failed.
    """
    parent = scratch_place(output)
    with contextlib.ExitStack() as scratch:
        try:
            folder = scratch.enter_context(scratch_folder(parent, ".phrasetool-"))
        except OSError as error:
            raise PhraseToolError(f"{parent}: cannot write: {reason(error)}") from error
        copy = os.path.join(folder, "sorted.gz")
        with Input(path) as source, watch.file("sort", source.size()) as progress:
            check_plausible(source, scan, expected)
            _write_sorted(source, copy, scan.threads, progress)
        yield copy


@contextlib.contextmanager
def open_table(
    path: str, output: str, scan: TableScan, watch: Watch, label: str, *, sort: bool = False,
    expected: str = PHRASE_TABLE,
) -> Iterator[tuple[Input, TableScan]]:  # fmt: skip
    """Open a table, check it, and yield it with a scan that reports progress to `watch`.

    Args:
        path, output, scan, watch: see `sorted_copy`.
        label: name of the work in progress reports.
        sort: whether to sort the table first.
        expected: see `check_plausible`.

    Raises:
        DataError: as `sorted_copy`, and `check_plausible`.
        PhraseToolError: as `sorted_copy`.
    """
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(sorted_copy(path, output, scan, watch, expected)) if sort else None
        source = stack.enter_context(Input(copy, sorted_name(path)) if copy else Input(path))
        if not copy:
            check_plausible(source, scan, expected)
        yield source, replace(scan, progress=stack.enter_context(watch.file(label, source.size())))


def _write_sorted(source: Input, copy: str, threads: int, progress: Progress) -> None:
    folder = os.path.dirname(copy)

    def lines() -> Iterator[bytes]:
        for piece in source.whole_lines(limited=False):
            progress(source.position(), 0)
            yield piece if piece.endswith(b"\n") else piece + b"\n"

    try:
        with open(copy, "wb") as file:
            for piece in sort_lines(lines(), folder, threads):
                file.write(compress(piece))
            if not file.tell():
                file.write(compress(b""))
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write a temporary file: {reason(error)}") from error
