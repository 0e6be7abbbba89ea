"""The canonical form of a table that Moses' binarisers need: sorted bytewise, with one space between tokens.

Their requirements are known from their sources (mosesdecoder of February 2025): `PhraseTableCreator.cpp`,
`LexicalReorderingTableCreator.cpp` and `BlockHashIndex.cpp` need ascending keys `source ||| target ||| `;
`OnDiskPt/Main.cpp` splits at spaces only; `probingpt` splits scores at every single space and needs the lines of a
source to be adjacent.  A table in canonical form with sorted lines (`LC_ALL=C sort`) meets all requirements, because a
key is the beginning of its line.
"""

from __future__ import annotations

import heapq
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from moses_compat.files.streams import Input, compress
from moses_compat.lines.fields import find_separator
from moses_compat.tables.blocks import Progress, RawBlock, raw_blocks
from moses_compat.tables.inspect import Oddity, odd_lines
from moses_compat.tables.parser import LineScan, TableParser, scan_lines
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.kernels.bytes import CR, LF, PIPE, SPACE, TAB, common_prefix, is_blank, skip_blanks
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.text_splitting import split_words

# Deviations of lines from the canonical form; positions in the result of `_look`.
_ODD, _UNSORTED, _DUPLICATE, _UNALIGNED, _NO_SOURCE = range(5)
_FIELDS = 7
_PIECE = 1 << 22
# Bytes of text that the built-in sort processes at a time; it takes some three times as much memory.
_RUN_BYTES = 1 << 26
_SYSTEM_SORT_MEMORY = "512M"
_LABEL = re.compile(rb"\[[^][]+\]")
_REORDERING_PROPERTY = b"{{LexRO "


@exact_kernel
def _is_canonical(text: ByteArray, start: int, end: int, target_end: int) -> bool:
    """Return whether a line has the form that Moses writes, as far as this matters to its binarisers."""
    if text[start] == SPACE:
        return False
    bars = 0
    i = start
    while i < end:
        c = text[i]
        if c == TAB or c == CR:
            return False
        if c == PIPE and i + 2 < end and text[i + 1] == PIPE and text[i + 2] == PIPE:
            bars += 1
            if i == start or text[i - 1] != SPACE or (i + 3 < end and text[i + 3] != SPACE):
                return False
            i += 3
            continue
        if c == SPACE and i + 1 < end and text[i + 1] == SPACE:
            # Two spaces are allowed only in an empty target.
            after_bar = i > start and text[i - 1] == PIPE
            if not (after_bar and i + 2 == target_end):
                return False
        i += 1
    return bars < _FIELDS


@exact_kernel
def _look(text: ByteArray, scan: LineScan, first_lines: Int64Array) -> None:
    """Store the first line of kind k in first_lines[k] if that was -1; kinds as in the constants above."""
    before, before_end, before_key = np.int64(0), np.int64(-1), np.int64(-1)
    for line in range(len(scan.faults)):
        start, end = scan.line_offsets[line], scan.line_offsets[line + 1]
        if end > start and text[end - 1] == LF:
            end -= 1
        key = scan.target_ends[line] + 3
        if first_lines[_ODD] < 0 and not _is_canonical(text, start, end, scan.target_ends[line]):
            first_lines[_ODD] = line
        if skip_blanks(text, start, scan.source_ends[line]) == scan.source_ends[line] and first_lines[_NO_SOURCE] < 0:
            first_lines[_NO_SOURCE] = line
        if first_lines[_UNALIGNED] < 0:
            bar = find_separator(text, scan.score_ends[line], end)
            i = bar + 3 if bar >= 0 else end
            while i < end and (is_blank(text[i]) or text[i] == CR):
                i += 1
            if i == end or text[i] == PIPE:
                first_lines[_UNALIGNED] = line
        if before_end >= 0:
            shorter = min(end - start, before_end - before)
            k = common_prefix(text, start, text, before, shorter)
            if first_lines[_UNSORTED] < 0:
                if k < shorter:
                    if text[start + k] < text[before + k]:
                        first_lines[_UNSORTED] = line
                elif end - start < before_end - before:
                    first_lines[_UNSORTED] = line
            if first_lines[_DUPLICATE] < 0 and key - start == before_key and k >= before_key:
                first_lines[_DUPLICATE] = line
        before, before_end, before_key = start, end, key - start


@dataclass
class TableForm:
    """The properties of a table that matter to a binariser.

    Attributes:
        path: the file.
        gzip: whether it is compressed with gzip.
        packed_otherwise: name of another compression format, such as `xz`; empty if there is none.
        entries, sources: numbers of lines, and of runs of lines with one source.
        scores: number of scores per entry; -1 if there is none.
        odd_line: first line (from 1) that is not in canonical form, or follows a byte order mark; 0 if all are.
        unsorted_line: first line that sorts bytewise before its predecessor; 0 if sorted.
        duplicate_line: first line with the pair of its predecessor; 0 if there is none.
        unaligned_line: first line without a word alignment; 0 if all have one.
        source_factors, target_factors: numbers of factors of a token, from the first lines.
        rules: whether the table is a rule table (hierarchical, syntax), from the first lines.
        reordering_scores: number of scores in the `{{LexRO ..}}` property of the first line; 0 without one.
        other_reordering_line: first line with another number of reordering scores; 0 if all agree.
        oddities: further unusual properties of lines, see `tables.inspect`.
    """

    path: str
    gzip: bool = False
    packed_otherwise: str = ""
    entries: int = 0
    sources: int = 0
    scores: int = -1
    odd_line: int = 0
    unsorted_line: int = 0
    duplicate_line: int = 0
    unaligned_line: int = 0
    source_factors: int = 1
    target_factors: int = 1
    rules: bool = False
    reordering_scores: int = 0
    other_reordering_line: int = 0
    oddities: dict[str, Oddity] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether a binariser can read the text without changes."""
        return not (self.odd_line or self.unsorted_line or self.packed_otherwise)


def examine(path: str, progress: Progress = lambda position, entries: None) -> TableForm:
    """Read a phrase table or reordering table once.

    Raises:
        DataError: the file cannot be read, has no entry, or has a line that no binariser supports: malformed, without a
            source, or with a negative score, whose logarithm does not exist.
    """
    form = TableForm(path)
    first_lines = np.full(5, -1, np.int64)
    previous = np.zeros(0, np.uint8)
    with Input(path) as source:
        form.gzip = source.gzip
        form.packed_otherwise = source.packing.name if source.packing and not source.gzip else ""
        for raw in raw_blocks(source):
            if not form.entries:
                form.scores = raw.scores
                _look_at_head(form, raw.text)
            # The line before the block is included, so that the border is also checked.
            text = np.concatenate([previous, raw.text])
            ahead = np.zeros(min(len(previous), 1), np.int64)
            offsets = np.concatenate([ahead, raw.line_offsets + len(previous)])
            shift = raw.first_entry - (1 if len(previous) else 0)
            scan = _scan(form, text, offsets, shift)
            here = first_lines.copy()
            _look(text, scan, here)
            first_lines = np.where(first_lines >= 0, first_lines, np.where(here >= 0, here + shift, -1))
            if first_lines[_NO_SOURCE] >= 0:
                raise DataError(
                    path, "the source is empty, which Moses cannot look up", int(first_lines[_NO_SOURCE]) + 1
                )
            _look_at_properties(form, raw)
            for name, oddity in odd_lines(raw.text, raw.line_offsets).items():
                form.oddities.setdefault(name, Oddity(0, oddity.first + raw.first_entry)).lines += oddity.lines
            form.entries = int(raw.first_entry + raw.lines)
            # Blocks end at source groups, so the included line is a separate group that has already been counted.
            form.sources += len(scan.group_offsets) - 1 - (1 if len(previous) else 0)
            previous = text[scan.line_offsets[-2] :].copy()
            if previous[-1] != LF:
                previous = np.append(previous, LF)
            progress(raw.position, form.entries)
    if not form.entries:
        raise DataError(path, "holds no entry")
    lines = (first_lines + 1).tolist()
    form.odd_line, form.unsorted_line, form.duplicate_line, form.unaligned_line = lines[:4]
    if source.has_mark:
        # Moses' programs take a byte order mark for a part of the first word.
        form.odd_line = 1
    return form


def _scan(form: TableForm, text: ByteArray, line_offsets: Int64Array, shift: int) -> LineScan:
    scan = scan_lines(text, form.scores, range(max(form.scores, 0)), line_offsets)
    faults = TableParser(scores=form.scores).faults(scan, shift)
    if faults:
        raise DataError(form.path, faults[0].message, faults[0].entry + 1)
    negative = np.flatnonzero((scan.columns < 0).any(axis=1))
    if len(negative):
        raise DataError(
            form.path, "a negative score, of which Moses would take the logarithm", shift + int(negative[0]) + 1
        )
    return scan


def _look_at_head(form: TableForm, text: ByteArray) -> None:
    """Determine factors, labels and properties from the first lines."""
    head = text[: 1 << 16].tobytes()
    lines = head.split(b"\n")[: -1 if b"\n" in head else None]
    rows = [line.split(b"|||") for line in lines if line.count(b"|||") >= 2]
    form.source_factors = _factors(row[0] for row in rows)
    form.target_factors = _factors(row[1] for row in rows)
    form.rules = bool(rows) and all(_LABEL.fullmatch(words[-1]) for row in rows if (words := split_words(row[0])))
    form.reordering_scores = _reordering_scores(lines[0]) if lines else 0


def _reordering_scores(line: bytes) -> int:
    """Return the number of scores in the `{{LexRO ..}}` property of a line."""
    fields = line.split(b"|||", _FIELDS)
    if len(fields) < _FIELDS:
        return 0
    return len(split_words(fields[_FIELDS - 1].partition(_REORDERING_PROPERTY)[2].partition(b"}}")[0]))


def _look_at_properties(form: TableForm, raw: RawBlock) -> None:
    """Check that all lines have equally many reordering scores, because CreateProbingPT appends them to the scores."""
    data = raw.text.tobytes()
    if form.other_reordering_line or not (form.reordering_scores or _REORDERING_PROPERTY in data):
        return
    for number, (start, end) in enumerate(pairwise(raw.line_offsets.tolist()), raw.first_entry + 1):
        if _reordering_scores(data[start:end]) != form.reordering_scores:
            form.other_reordering_line = number
            return


def _factors(fields: Iterable[bytes]) -> int:
    """Return the number of factors of all tokens; 1 if they differ, because a stray bar does not separate factors."""
    counts = {token.count(b"|") + 1 for field in fields for token in split_words(field) if not _LABEL.search(token)}
    return counts.pop() if len(counts) == 1 else 1


def canonical_line(line: bytes) -> bytes:
    """Return a line of a table with one space between tokens and around bars, and at most seven fields.

    Moses reads the same entry from the result.  `line` has no line feed.
    """
    fields = [
        b" ".join(token for token in field.split(b" ") if token)
        for field in line.removesuffix(b"\r").replace(b"\t", b" ").split(b"|||")[:_FIELDS]
    ]
    # As in Moses, an empty target has a space on each side, and later empty fields have a single space.
    text = b" ||| ".join(fields[:3])
    return text + b"".join(b" ||| " + field if field else b" |||" for field in fields[3:])


def write_copy(form: TableForm, path: str, threads: int = 1) -> None:
    """Write a table gzipped, in canonical form and sorted.

    Args:
        form: result of `examine`.
        path: the copy; temporary files go into its folder.
        threads: number of threads for sorting.

    Raises:
        PhraseToolError: the disk is full, or sorting failed.
    """
    with Input(form.path) as source, open(path, "wb") as file:
        pieces: Iterator[bytes] = (
            piece if piece.endswith(b"\n") else piece + b"\n" for piece in source.whole_lines(limited=False)
        )
        if form.odd_line:
            pieces = map(_canonical_lines, pieces)
        if form.unsorted_line or form.odd_line:
            pieces = sort_lines(pieces, os.path.dirname(path), threads)
        try:
            for piece in pieces:
                file.write(compress(piece))
        except OSError as error:
            raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error


def _canonical_lines(piece: bytes) -> bytes:
    return b"".join(canonical_line(line) + b"\n" for line in piece.split(b"\n")[:-1])


def sort_lines(pieces: Iterable[bytes], folder: str, threads: int = 1) -> Iterator[bytes]:
    """Sort lines bytewise, as `LC_ALL=C sort` does, on disk if there are many.

    Args:
        pieces: whole lines, each with its line feed.
        folder: folder for temporary files.
        threads: number of threads of the system's `sort`, if it is installed.

    Yields:
        Pieces of the sorted text.

    Raises:
        PhraseToolError: the disk is full.
    """
    program = _system_sort()
    return _sort_by(program, pieces, folder, threads) if program else _sort_here(pieces, folder)


def _system_sort() -> str | None:
    """Return the path of GNU sort, if it is installed; other programs do not have its options."""
    program = shutil.which("sort")
    if program is None:
        return None
    try:
        version = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if b"GNU coreutils" in version else None


def _sort_by(program: str, pieces: Iterable[bytes], folder: str, threads: int) -> Iterator[bytes]:
    command = [program, f"--parallel={threads}", "-S", _SYSTEM_SORT_MEMORY, "-T", folder]
    with tempfile.TemporaryFile(dir=folder) as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "LC_ALL": "C"}
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # `sort` writes nothing until it has read everything, so reading and writing need not be concurrent.
            try:
                for piece in pieces:
                    process.stdin.write(piece)
                process.stdin.close()
            except BrokenPipeError:
                pass
            else:
                yield from iter(lambda: process.stdout.read(_PIECE), b"")  # type: ignore[union-attr]
            if process.wait() != 0:
                errors.seek(0)
                message = errors.read().decode(errors="replace").strip() or f"code {process.returncode}"
                raise PhraseToolError(f"cannot sort: {message}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _sort_here(pieces: Iterable[bytes], folder: str) -> Iterator[bytes]:
    """Sort runs of lines into temporary files, and merge them."""
    with ExitStack() as stack:
        runs: list[BinaryIO] = []
        lines: list[bytes] = []
        size = 0
        for piece in pieces:
            lines += piece.split(b"\n")[:-1]
            size += len(piece)
            if size >= _RUN_BYTES:
                runs.append(stack.enter_context(_run(lines, folder)))
                lines, size = [], 0
        lines.sort()
        merged = heapq.merge(*map(_lines_of, runs), lines) if runs else iter(lines)
        pending: list[bytes] = []
        size = 0
        for line in merged:
            pending.append(line)
            size += len(line) + 1
            if size >= _PIECE:
                yield b"\n".join(pending) + b"\n"
                pending, size = [], 0
        if pending:
            yield b"\n".join(pending) + b"\n"


def _run(lines: list[bytes], folder: str) -> BinaryIO:
    """Sort lines, and write them to a temporary file."""
    lines.sort()
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        file.writelines(line + b"\n" for line in lines)
        file.seek(0)
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write a temporary file: {reason(error)}") from error
    return file


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    # Line feeds are removed, because some bytes sort before them.
    return (line[:-1] for line in file)
