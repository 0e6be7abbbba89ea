"""Tables in part files, and jobs that annotate or prune them part by part, on any machine.

    FOLDER/part-00000.gz ...   tables, in the order of their names; all entries of a source are in one part
    FOLDER/manifest.json       a description of each part; written last, so a folder without it may be incomplete
    FOLDER/.unfinished         exists while parts are written: the settings, then a line for each finished part

The concatenation of the parts is the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from moses_compat.files.finished_work import settings_of
from moses_compat.files.kinds import folder_kind
from moses_compat.files.streams import Input, Output, changes_as_start
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
_PART_NAME = re.compile(r"part-\d{5,}\.gz")
# Bytes of a block that decide whether it can begin a file.
_HEAD = 64
_FORMAT = 1


@dataclass(frozen=True)
class Part:
    """A part file, and the input part that it was made from.

    Attributes:
        name: name of both files.
        read: number of lines of the input part.
        entries: number of lines of the part.
        bytes: size of the part.
        sha256: SHA-256 digest of the part.
        first, last: sources of the first and last entry of the input part; empty without entries.
        occurrences: occurrences in a pruned part, see `OccurrenceCounts.as_dict`.
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
        """Describe a finished part.

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
    """Return the number of lines of a table, and its first and last source."""
    lines, first, last = 0, b"", b""
    with Input(path) as source:
        for block in raw_blocks(source, whole_groups=False):
            lines += block.lines
            if not first:
                first = _source(block.text[: block.line_offsets[1]].tobytes())
            last = _source(block.text[block.line_offsets[-2] :].tobytes()) or last
    # Different bytes must remain different, in any encoding.
    return lines, first.decode("utf-8", "backslashreplace"), last.decode("utf-8", "backslashreplace")


def _source(line: bytes) -> bytes:
    source, bar, _ = line.partition(b"|||")
    return single_spaced(source) if bar else b""


def part_names(folder: str) -> list[str]:
    """Return the part files of a folder, in order.

    Raises:
        DataError: there are none, or they differ from the manifest.
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
        raise DataError(folder, "is incomplete: the run that writes it has not finished")
    manifest = os.path.join(folder, MANIFEST)
    if os.path.exists(manifest):
        known = {part.name: part.bytes for part in read_manifest(manifest)}
        for name in sorted(known.keys() | set(names)):
            if name not in known or name not in names:
                raise DataError(manifest, f"{name} is {'not of the table' if name in names else 'missing'}")
            if os.path.getsize(os.path.join(folder, name)) != known[name]:
                raise DataError(
                    os.path.join(folder, name), f"does not have the {known[name]:,} bytes given in {MANIFEST}"
                )
    return names


def read_manifest(path: str) -> list[Part]:
    """Read the parts of a manifest.

    Raises:
        DataError: the manifest cannot be read, or is damaged.
    """
    try:
        manifest = json.loads(Path(path).read_text("utf-8"))
        if manifest["format"] != _FORMAT:
            raise DataError(path, f"has format {manifest['format']}; this program supports {_FORMAT}")
        return [Part(**part) for part in manifest["parts"]]
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(path, f"is not a manifest of part files ({error})") from error


class PartFolder:
    """A folder of part files while it is being written.

    Args:
        folder: the folder.
        settings: the settings that affect the parts.
        resume: whether to continue an interrupted run.

    Attributes:
        finished: the finished parts, by name.

    Raises:
        PhraseToolError: the folder has other content, was made with other settings, or cannot be written.
    """

    def __init__(self, folder: str, settings: Mapping[str, str], resume: bool = False) -> None:
        self.folder = folder
        self.finished: dict[str, Part] = {}
        self._log = os.path.join(folder, _UNFINISHED)
        self._settings = {**settings, "version of phrasetool": __version__}
        self._is_new = not os.path.exists(folder)
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
        elif names := os.listdir(self.folder):
            state = "is complete" if MANIFEST in names else f"holds {min(names)}"
            raise PhraseToolError(f"{self.folder}: {state} already; choose another name")
        for name in os.listdir(self.folder):
            # Parts of an interrupted run: this one may have fewer.
            if _PART_NAME.fullmatch(name) or name in self._names_in_log():
                os.unlink(self.path(name))
        with open(self._log, "w", encoding="utf-8") as file:
            file.write(json.dumps(self._settings) + "\n")

    def _names_in_log(self) -> set[str]:
        """Return the parts that an interrupted run had finished, as far as its log can be read."""
        names = set()
        with contextlib.suppress(OSError), open(self._log, "rb") as file:
            for line in file:
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    names.add(str(json.loads(line)["name"]))
        return names

    def _read_log(self) -> None:
        with open(self._log, encoding="utf-8") as file:
            lines = file.read().split("\n")
        try:
            head, *parts = map(json.loads, lines[:-1])
            settings = dict(head)
            finished_parts = [Part(**part) for part in parts]
        except (ValueError, TypeError) as error:
            raise DataError(self._log, f"is damaged ({error})", remedy="start again") from error
        for name, value in self._settings.items():
            if settings.get(name) != value:
                message = f"belongs to another run: {name} was {settings.get(name)} and is now {value}"
                raise DataError(self.folder, message, remedy="start again")
        # The last line may have been cut off.
        if lines[-1]:
            with open(self._log, "w", encoding="utf-8") as file:
                file.write("\n".join([*lines[:-1], ""]))
        for part in finished_parts:
            with contextlib.suppress(OSError):
                if os.path.getsize(self.path(part.name)) == part.bytes:
                    self.finished[part.name] = part

    def path(self, name: str) -> str:
        """Return the path of a part."""
        return os.path.join(self.folder, name)

    def add(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Record finished parts, in their order, and write the manifest after the last.

        If the first part fails, a folder that was created for the parts is removed.

        Raises:
            DataError: a source is in two parts.
            PhraseToolError: the folder cannot be written.
        """
        recorded: list[Part] = []
        before: Part | None = None
        try:
            with open(self._log, "a", encoding="utf-8") as file:
                for part in parts:
                    if before and part.read and part.first == before.last:
                        message = f"begins with the source that {before.name} ends with, {part.first!r}; its entries"
                        raise DataError(part.name, f"{message} must be in one part")
                    if part.name not in self.finished:
                        file.write(json.dumps(part.as_dict()) + "\n")
                        file.flush()
                        os.fsync(file.fileno())
                    recorded.append(part)
                    before = part if part.read else before
                    yield part
            with Output(self.path(MANIFEST)) as out:
                out.write_text((json.dumps(document(recorded), indent=1, ensure_ascii=False) + "\n").encode())
            os.unlink(self._log)
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        finally:
            if not recorded:
                self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        """Remove the log if no part was written, and the folder if it was created for the parts."""
        with contextlib.suppress(OSError):
            if os.listdir(self.folder) == [_UNFINISHED]:
                os.unlink(self._log)
                if self._is_new:
                    os.rmdir(self.folder)


def _occurrences(parts: Iterable[Part]) -> dict[str, Any]:
    """Return the occurrences of a pruned table, from those of its parts."""
    occurrences = [part.occurrences for part in parts if part.occurrences is not None]
    return {"occurrences": OccurrenceCounts.merged(occurrences).report()} if occurrences else {}


def document(parts: Iterable[Part]) -> dict[str, Any]:
    """Return a manifest as JSON values."""
    listed = list(parts)
    total = {name: sum(getattr(part, name) for part in listed) for name in ("read", "entries", "bytes")}
    return {
        "format": _FORMAT, "phrasetool_version": __version__, **total, **_occurrences(listed),
        "parts": [part.as_dict() for part in listed],
    }  # fmt: skip


def split_table(
    source: Input, folder: str, entries: int, progress: Progress = lambda position, entries: None
) -> list[Part]:
    """Write a table as part files, each with at least `entries` entries, up to the end of a source.

    No part but the first begins with bytes that mean something at the start of a file, such as a byte order mark.

    Args:
        source: the table, read from its beginning.
        folder: folder of the parts.
        entries: smallest number of entries of a part.
        progress: called with the bytes of the file and the lines read so far.

    Raises:
        DataError: the table is damaged.
        PhraseToolError: the folder exists, or cannot be written.
        ValueError: `entries` is not positive.
    """
    if entries < 1:
        raise ValueError("a part must have at least one entry")
    part_folder = PartFolder(folder, {"table": source.name, "entries": str(entries)})
    # Blocks end at the end of a source, so small parts need small blocks.
    blocks = raw_blocks(source, min(BLOCK_BYTES, 32 * entries))

    def parts() -> Iterator[Part]:
        number, block = 0, next(blocks, None)
        while block is not None or number == 0:
            path = part_folder.path(f"part-{number:05}.gz")
            lines = 0
            with Output(path) as out:
                while block is not None and (lines < entries or changes_as_start(block.text[:_HEAD].tobytes())):
                    out.write(out.encode(block.text))
                    lines += block.lines
                    progress(block.position, block.first_entry + block.lines)
                    block = next(blocks, None)
            yield Part.of(path, path)
            number += 1

    return list(part_folder.add(parts()))


@dataclass(frozen=True)
class _PartWork:
    """The work on a part; a pure function of its file, for any machine that can access the folders.

    Attributes:
        make: `annotate` or `prune`.
        request: its request, whose files are replaced by those of the part.
        source, output: folders of the input and output parts.
    """

    make: Callable[[Any], object]
    request: AnnotateRequest | PruneRequest
    source: str
    output: str
    # Items are distributed one by one to a cluster.
    large = True

    def __call__(self, name: str) -> Part:
        source, output = (os.path.join(folder, name) for folder in (self.source, self.output))
        result = self.make(replace(self.request, table=source, output=output))
        occurrences = result.statistics.occurrences.as_dict() if isinstance(result, PruneResult) else None
        return Part.of(output, source, occurrences)


def annotate_parts(request: AnnotateRequest, watch: Watch = SILENT) -> dict[str, Any]:
    """Annotate all parts of a folder.

    Args:
        request: the annotation run; its table and output are folders; it has no ini, no smoothing and no encoder.
        watch: progress listener.

    Returns:
        The manifest.

    Raises:
        DataError, ModelError, PhraseToolError: as `annotate`; or a folder is not usable for parts.
        ValueError: the request needs the whole table.
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
        request: the pruning run; its table and output are folders; the entries of a source are in one part.
        watch: progress listener.

    Returns:
        The manifest.

    Raises:
        DataError, ModelError, PhraseToolError: as `prune`; or a folder is not usable for parts.
        ValueError: the request needs the whole table, or writes more than one file per part.
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
    part_folder = PartFolder(request.output, {**settings, "sizes of the parts": str(sizes)}, request.resume)
    missing = [name for name in names if name not in part_folder.finished]
    if part_folder.finished:
        watch.say(f"resuming {request.output}: {len(part_folder.finished):,} of {len(names):,} parts are finished")
    scan, folders = request.scan, (request.table, request.output)
    # Processes of a cluster have other working directories.
    source, output = folders if scan.runner is None else map(os.path.abspath, folders)
    alone = replace(request, scan=replace(scan, threads=1, runner=None), resume=False)
    results = (scan.runner or run)(missing, _PartWork(make, alone, source, output), scan.threads)
    parts = (part_folder.finished.get(name) or next(results) for name in names)
    bytes_read, entries, finished = 0, 0, []
    with watch.file("parts", sum(sizes.values())) as progress:
        for part in part_folder.add(parts):
            finished.append(part)
            bytes_read, entries = bytes_read + sizes[part.name], entries + part.read
            progress(bytes_read, entries)
    return document(finished)
