"""Annotate or prune a table in part files: whoever works, on whatever machine, reads and writes a part by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moses_compat.files.finished_work import settings_of
from moses_compat.jobs.annotate_tables import AnnotateRequest, annotate, work_settings
from moses_compat.jobs.parts.part_folder import Part, PartFolder, document, part_names
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_tables import PruneResult, prune
from phrasetool.pipeline import Runner, run
from phrasetool.watch import NOBODY, Watch


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


def annotate_parts(request: AnnotateRequest, watch: Watch = NOBODY) -> dict[str, Any]:
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
    alone = replace(
        request, models=[*map(os.path.abspath, request.models)], forced_pairs=_absolute(request.forced_pairs),
        scan=replace(request.scan, threads=1, runner=None), resume=False,
    )  # fmt: skip
    scan, settings = request.scan, work_settings(request)
    return _work(annotate, alone, settings, request.resume, scan.threads, scan.runner, watch)


def prune_parts(request: PruneRequest, watch: Watch = NOBODY) -> dict[str, Any]:
    """Prune all parts of a folder by a threshold.

    Args:
        request: its table and output are folders; the entries of a source are in one part.
        watch: follows the work.

    Returns: the manifest.

    Raises:
        DataError, ModelError, PhraseToolError: as `prune`; or the folders are no place for parts.
        ValueError: what is asked for needs the whole table, or is more than one file a part.
    """
    whole = request.threshold is None or not request.streams(request.parsed_method())
    if whole or request.scores or request.reordering_table or any(request.outputs):
        raise ValueError("part files are pruned by a threshold of similarity, and nothing else is written")
    left_out = ("table", "output", "threads", "resume", "runner", "finished", "ask_all")
    more_models = tuple(map(os.path.abspath, request.more_models))
    alone = replace(
        request, model_folder=os.path.abspath(request.model_folder), more_models=more_models, threads=1, runner=None,
        resume=False, ask_all=False,
    )  # fmt: skip
    settings = settings_of(request, left_out)
    return _work(prune, alone, settings, request.resume, request.threads, request.runner, watch)


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _work(
    make: Callable[[Any], object],
    request: AnnotateRequest | PruneRequest,
    settings: dict[str, str],
    resume: bool,
    threads: int,
    runner: Runner | None,
    watch: Watch,
) -> dict[str, Any]:
    """Have all parts of the request's table made, those that are not there; the manifest."""
    names = part_names(request.table)
    sizes = {name: os.path.getsize(os.path.join(request.table, name)) for name in names}
    made = PartFolder(request.output, {**settings, "sizes of the parts": str(sizes)}, resume)
    rest = [name for name in names if name not in made.there]
    if made.there:
        watch.say(f"going on from {request.output}: {len(made.there):,} of {len(names):,} parts are there")
    folders = request.table, request.output
    # Processes of a cluster stand elsewhere.
    source, output = folders if runner is None else map(os.path.abspath, folders)
    results = (runner or run)(rest, _PartWork(make, request, source, output), threads)
    parts = (made.there.get(name) or next(results) for name in names)
    done, entries, finished = 0, 0, []
    with watch.file("parts", sum(sizes.values())) as progress:
        for part in made.add(parts):
            finished.append(part)
            done, entries = done + sizes[part.name], entries + part.read
            progress(done, entries)
    return document(finished)
