"""A sorted copy of a table, for what needs all entries of a source together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from moses_compat.files.names import STANDARD, scratch_place
from moses_compat.files.streams import Input, compress
from moses_compat.tables.blocks import Progress, TableScan
from moses_compat.tables.canonical import sort_lines
from moses_compat.tables.plausible import PHRASE_TABLE, check_plausible
from phrasetool.disk.scratch import scratch_folder
from phrasetool.errors import PhraseToolError, reason
from phrasetool.watch import Watch


def sorted_name(path: str) -> str:
    """What messages call the sorted copy, whose lines have other numbers."""
    return "standard input, sorted" if path == STANDARD else f"{path}, sorted"


@contextlib.contextmanager
def sorted_copy(path: str, beside: str, scan: TableScan, watch: Watch, expected: str = PHRASE_TABLE) -> Iterator[str]:
    """Sort the lines of a table bytewise, as Moses does (`LC_ALL=C sort`); they stay as they are otherwise.

    Memory does not grow with the table; the copy, compressed, and what sorting takes stand in a folder of their own
    until the context ends.

    Args:
        path: the table; `-` for standard input.
        beside: the folder is made beside this file if it is one, else where temporary files go.
        scan: how the table is read.
        watch: follows the work.
        expected: see `check_plausible`.

    Yields:
        The path of the copy.

    Raises:
        DataError: the table cannot be read, or is none.
        PhraseToolError: the disk is full, or sorting failed.
    """
    place = scratch_place(beside)
    with contextlib.ExitStack() as scratch:
        try:
            folder = scratch.enter_context(scratch_folder(place, ".phrasetool-"))
        except OSError as error:
            raise PhraseToolError(f"{place}: cannot write: {reason(error)}") from error
        copy = os.path.join(folder, "sorted.gz")
        with Input(path) as source, watch.file("sort", source.size()) as progress:
            check_plausible(source, scan, expected)
            _write_sorted(source, copy, scan.threads, progress)
        yield copy


@contextlib.contextmanager
def open_table(
    path: str, beside: str, scan: TableScan, watch: Watch, label: str, *, sort: bool = False,
    expected: str = PHRASE_TABLE,
) -> Iterator[tuple[Input, TableScan]]:  # fmt: skip
    """A table that can be meant, at its beginning, and the scan whose progress `watch` follows.

    Args:
        path, beside, scan, watch: see `sorted_copy`.
        label: what is done with it.
        sort: whether to sort it first.
        expected: see `check_plausible`.

    Raises:
        DataError: as `sorted_copy`, and `check_plausible`.
        PhraseToolError: as `sorted_copy`.
    """
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(sorted_copy(path, beside, scan, watch, expected)) if sort else None
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
