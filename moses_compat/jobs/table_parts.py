"""Tables in part files, and jobs that annotate or prune them part by part, on any machine.

    FOLDER/part-00000.gz ...   tables, in the order of their names; all entries of a source are in one of them
    FOLDER/manifest.json       a description of each part; written last, so a folder without it may be incomplete
    FOLDER/.unfinished         while the folder is made: the settings, then a line for each finished part

The concatenation of the parts is the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from moses_compat.files.finished_work import settings_of
from moses_compat.files.kinds import folder_kind
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import AnnotateRequest, annotate, work_settings
from moses_compat.jobs.prune import PruneResult, prune
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.tables.blocks import BLOCK_BYTES, Progress, raw_blocks
from phrasetool import __version__
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.pipeline import run
from phrasetool.pruning.statistics import OccurrenceCounts
from phrasetool.text_splitting import single_spaced
from phrasetool.watch import SILENT, Watch

MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished"
_FORMAT = 1


@dataclass(frozen=True)
class Part:
    """A part file, and the part that it was made from.

    Attributes:
        name: of both files.
        read: lines of the one it was made from.
        entries: its own lines.
        bytes: its size.
        sha256: of the file.
        first, last: the sources of the first and last entry that were read; empty without entries.
        occurrences: of a pruned part, see `OccurrenceCounts.as_dict`.
    """

    name: str
    read: int
    entries: int
    bytes: int
    sha256: str
    first: str
    last: str
    occurrences: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the part for a manifest."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, path: str, made_from: str, occurrences: dict[str, Any] | None = None) -> Part:
        """Look at a finished part.

        Raises:
            DataError: one of the files cannot be read.
        """
        read, first, last = _borders(made_from)
        entries = read if path == made_from else _borders(path)[0]
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.path.getsize(path)
        except OSError as error:
            raise DataError(path, reason(error)) from error
        return cls(os.path.basename(path), read, entries, size, digest, first, last, occurrences)


def _borders(path: str) -> tuple[int, str, str]:
    """How many lines a table has, and its first and last source."""
    lines, first, last = 0, b"", b""
    with Input(path) as source:
        for block in raw_blocks(source, whole_groups=False):
            lines += block.lines
            if not first:
                first = _source(block.text[: block.line_offsets[1]].tobytes())
            last = _source(block.text[block.line_offsets[-2] :].tobytes()) or last
    return lines, first.decode("utf-8", "replace"), last.decode("utf-8", "replace")


def _source(line: bytes) -> bytes:
    source, bar, _ = line.partition(b"|||")
    return single_spaced(source) if bar else b""


def part_names(folder: str) -> list[str]:
    """The part files of a folder, in order.

    Raises:
        DataError: there is none, or they are not those of its manifest.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name != MANIFEST and not name.startswith("."))
    except OSError as error:
        raise DataError(folder, reason(error)) from error
    if kind := folder_kind(folder):
        raise DataError(folder, f"is a directory: {kind}", remedy=kind.remedy)
    if not names:
        raise DataError(folder, "has no part files")
    if os.path.exists(os.path.join(folder, _UNFINISHED)):
        raise DataError(folder, "is not finished: what was to make it has not ended well")
    manifest = os.path.join(folder, MANIFEST)
    if os.path.exists(manifest):
        known = {part.name: part.bytes for part in read_manifest(manifest)}
        for name in sorted(known.keys() | set(names)):
            if name not in known or name not in names:
                raise DataError(manifest, f"{name} is {'not of the table' if name in names else 'missing'}")
            if os.path.getsize(os.path.join(folder, name)) != known[name]:
                raise DataError(os.path.join(folder, name), f"has not the {known[name]:,} bytes that {MANIFEST} says")
    return names


def read_manifest(path: str) -> list[Part]:
    """What a manifest says.

    Raises:
        DataError: it is damaged.
    """
    try:
        found = json.loads(Path(path).read_text("utf-8"))
        if found["format"] != _FORMAT:
            raise DataError(path, f"is of format {found['format']}; this program knows {_FORMAT}")
        return [Part(**part) for part in found["parts"]]
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(path, f"is no manifest of part files ({error})") from error


class PartFolder:
    """A folder of part files that is being made.

    Args:
        folder: where.
        settings: what the parts depend on.
        resume: whether to go on from what is there.

    Attributes:
        there: the parts that are finished, by their names.

    Raises:
        PhraseToolError: something else is there, it was made with other settings, or it cannot be written.
    """

    def __init__(self, folder: str, settings: Mapping[str, str], resume: bool = False) -> None:
        self.folder = folder
        self.there: dict[str, Part] = {}
        self._log = os.path.join(folder, _UNFINISHED)
        self._settings = {**settings, "version of phrasetool": __version__}
        try:
            os.makedirs(folder, exist_ok=True)
            self._begin(resume)
        except OSError as error:
            raise PhraseToolError(f"{folder}: cannot write: {reason(error)}") from error

    def _begin(self, resume: bool) -> None:
        if os.path.exists(self._log):
            if resume:
                self._read_log()
                return
        elif found := os.listdir(self.folder):
            there = "is whole" if MANIFEST in found else f"holds {min(found)}"
            raise PhraseToolError(f"{self.folder}: {there} already; choose another name")
        with open(self._log, "w", encoding="utf-8") as file:
            file.write(json.dumps(self._settings) + "\n")

    def _read_log(self) -> None:
        with open(self._log, encoding="utf-8") as file:
            lines = file.read().split("\n")
        try:
            head, *parts = map(json.loads, lines[:-1])
            settings = dict(head)
            found = [Part(**part) for part in parts]
        except (ValueError, TypeError) as error:
            raise DataError(self._log, f"is damaged ({error})", remedy="start again") from error
        for name, value in self._settings.items():
            if settings.get(name) != value:
                message = f"is of another run: {name} was {settings.get(name)}, and is {value}"
                raise DataError(self.folder, message, remedy="start again")
        # The last line may have been cut off.
        if lines[-1]:
            with open(self._log, "w", encoding="utf-8") as file:
                file.write("\n".join([*lines[:-1], ""]))
        for part in found:
            with contextlib.suppress(OSError):
                if os.path.getsize(self.path(part.name)) == part.bytes:
                    self.there[part.name] = part

    def path(self, name: str) -> str:
        """Of a part."""
        return os.path.join(self.folder, name)

    def add(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Note parts as they are finished, in their order, and write the manifest after the last.

        Raises:
            DataError: a source is in two parts.
            PhraseToolError: the folder cannot be written.
        """
        noted: list[Part] = []
        before: Part | None = None
        try:
            with open(self._log, "a", encoding="utf-8") as file:
                for part in parts:
                    if before and part.read and part.first == before.last:
                        message = f"begins with the source that {before.name} ends with, {part.first!r}; its entries"
                        raise DataError(part.name, f"{message} must be in one part")
                    if part.name not in self.there:
                        file.write(json.dumps(part.as_dict()) + "\n")
                        file.flush()
                        os.fsync(file.fileno())
                    noted.append(part)
                    before = part if part.read else before
                    yield part
            with Output(self.path(MANIFEST)) as out:
                out.write_text((json.dumps(document(noted), indent=1, ensure_ascii=False) + "\n").encode())
            os.unlink(self._log)
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error


def _occurrences(parts: Iterable[Part]) -> dict[str, Any]:
    """Return the occurrences of a pruned table, from those of its parts."""
    found = [part.occurrences for part in parts if part.occurrences is not None]
    return {"occurrences": OccurrenceCounts.merged(found).report()} if found else {}


def document(parts: Iterable[Part]) -> dict[str, Any]:
    """A manifest."""
    listed = list(parts)
    total = {name: sum(getattr(part, name) for part in listed) for name in ("read", "entries", "bytes")}
    return {
        "format": _FORMAT, "phrasetool_version": __version__, **total, **_occurrences(listed),
        "parts": [part.as_dict() for part in listed],
    }  # fmt: skip


def split_table(
    source: Input, folder: str, entries: int, progress: Progress = lambda position, entries: None
) -> list[Part]:
    """Write a table as part files, each of a little more entries than asked for: up to where a source ends.

    Args:
        source: the table, read from its beginning.
        folder: where the parts go.
        entries: of a part.
        progress: called with the bytes of the file consumed and the lines read so far.

    Raises:
        DataError: the table is damaged.
        PhraseToolError: the folder is there, or cannot be written.
        ValueError: `entries` is not positive.
    """
    if entries < 1:
        raise ValueError("a part has one entry at least")
    made = PartFolder(folder, {"table": source.name, "entries": str(entries)})
    # Blocks end where sources do, so small parts need small blocks.
    blocks = raw_blocks(source, min(BLOCK_BYTES, 32 * entries))

    def parts() -> Iterator[Part]:
        number, block = 0, next(blocks, None)
        while block is not None or number == 0:
            path = made.path(f"part-{number:05}.gz")
            lines = 0
            with Output(path) as out:
                while block is not None and lines < entries:
                    out.write(out.encode(block.text))
                    lines += block.lines
                    progress(block.position, block.first_entry + block.lines)
                    block = next(blocks, None)
            yield Part.of(path, path)
            number += 1

    return list(made.add(parts()))


@dataclass(frozen=True)
class _PartWork:
    """What is done to a part; a pure function of its file, for any machine that sees the folders.

    Attributes:
        make: `annotate` or `prune`.
        request: of it, for some table.
        source, output: folders.
    """

    make: Callable[[Any], object]
    request: AnnotateRequest | PruneRequest
    source: str
    output: str
    # A cluster hands such items out one by one.
    large = True

    def __call__(self, name: str) -> Part:
        source, output = (os.path.join(folder, name) for folder in (self.source, self.output))
        made = self.make(replace(self.request, table=source, output=output))
        occurrences = made.statistics.occurrences.as_dict() if isinstance(made, PruneResult) else None
        return Part.of(output, source, occurrences)


def annotate_parts(request: AnnotateRequest, watch: Watch = SILENT) -> dict[str, Any]:
    """Annotate all parts of a folder.

    Args:
        request: its table and output are folders; it has no ini, and nothing is smoothed.
        watch: follows the work.

    Returns: the manifest.

    Raises:
        DataError, ModelError, PhraseToolError: as `annotate`; or the folders are no place for parts.
        ValueError: what is asked for needs the whole table.
    """
    if request.edit or request.smoothing or request.encoder:
        raise ValueError("an ini, smoothing and sentence encoders need the table in one file")
    settings = work_settings(request)
    models = [*map(os.path.abspath, request.models)]
    request = replace(request, models=models, forced_pairs=_absolute(request.forced_pairs))
    return _work(annotate, request, settings, watch)


def prune_parts(request: PruneRequest, watch: Watch = SILENT) -> dict[str, Any]:
    """Prune all parts of a folder by a threshold.

    Args:
        request: its table and output are folders; the entries of a source are in one part.
        watch: follows the work.

    Returns: the manifest.

    Raises:
        DataError, ModelError, PhraseToolError: as `prune`; or the folders are no place for parts.
        ValueError: what is asked for needs the whole table, or is more than one file a part.
    """
    by_threshold = request.threshold is not None and request.streams
    if not by_threshold or request.scores or request.reordering_table or any(request.outputs):
        raise ValueError("part files are pruned by a threshold of similarity, and nothing else is written")
    settings = settings_of(request, ("table", "output", "scan", "resume", "ask_all")) | request.scan.settings
    more_models = tuple(map(os.path.abspath, request.more_models))
    request = replace(
        request, model_folder=os.path.abspath(request.model_folder), more_models=more_models, ask_all=False
    )
    return _work(prune, request, settings, watch)


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _work(
    make: Callable[[Any], object], request: AnnotateRequest | PruneRequest, settings: dict[str, str], watch: Watch
) -> dict[str, Any]:
    """Make all parts of the request's table that do not exist yet; return the manifest."""
    names = part_names(request.table)
    sizes = {name: os.path.getsize(os.path.join(request.table, name)) for name in names}
    made = PartFolder(request.output, {**settings, "sizes of the parts": str(sizes)}, request.resume)
    missing = [name for name in names if name not in made.there]
    if made.there:
        watch.say(f"going on from {request.output}: {len(made.there):,} of {len(names):,} parts are there")
    scan, folders = request.scan, (request.table, request.output)
    # Processes of a cluster have other working directories.
    source, output = folders if scan.runner is None else map(os.path.abspath, folders)
    alone = replace(request, scan=replace(scan, threads=1, runner=None), resume=False)
    results = (scan.runner or run)(missing, _PartWork(make, alone, source, output), scan.threads)
    parts = (made.there.get(name) or next(results) for name in names)
    done, entries, finished = 0, 0, []
    with watch.file("parts", sum(sizes.values())) as progress:
        for part in made.add(parts):
            finished.append(part)
            done, entries = done + sizes[part.name], entries + part.read
            progress(done, entries)
    return document(finished)
