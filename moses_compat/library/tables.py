"""Phrase tables as frames, and pruned and annotated from Python."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moses_compat.files.streams import Input
from moses_compat.jobs.annotate import AnnotateCounts, AnnotateRequest, IniEdit, ini_beside
from moses_compat.jobs.annotate import annotate as annotate_files
from moses_compat.jobs.prune import prune as prune_files
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.sinks import Decisions
from moses_compat.library.paths import StrPath, text_path, text_paths
from moses_compat.measures.similarity_requests import EncoderRequest
from moses_compat.tables.blocks import BLOCK_BYTES, TableScan
from moses_compat.tables.orphans import OrphanCounts
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import NOBODY, Watch

if TYPE_CHECKING:
    import pandas as pd

# Fields of `PruneRequest` that `prune` calls by other names, or that are for sizes alone.
_OTHERWISE = {"ini", "corpora", "model_folder", "sweep", "sorted_table", "scan"}
# Options of `prune` that are fields of `TableScan`.
_SCAN_OPTIONS = ("threads", "block_bytes", "on_error", "allow_empty", "force", "max_line", "runner")
# Columns of a table in Parquet that are for writing it back to the byte.
_FOR_WRITING = ("extra", "scores_text", "counts_text", "tail", "raw")


def read_table(path: StrPath, *, threads: int = 1) -> pd.DataFrame:
    """A phrase table as one frame.

    Args:
        path: a Moses phrase table in text form, gzip or not.
        threads: worker threads.

    Returns:
        A row a line: `source`, `target`; `score_1` and so on, float32; `alignment`, `sparse`, `properties`, text;
        `count_target`, `count_source`, `count_joint`, float64.  Missing where a line ends before, or is no entry.

    Raises:
        DataError: the file is damaged or no table in text form.

    Examples:
        >>> table = read_table(demo_table)
        >>> bool(table.score_3.between(0, 1).all())
        True
    """
    import pandas as pd

    return pd.concat(list(table_blocks(path, threads=threads)), ignore_index=True)


def table_blocks(path: StrPath, *, block_bytes: int = BLOCK_BYTES, threads: int = 1) -> Iterator[pd.DataFrame]:
    """A phrase table as frames of whole source groups, in order, for tables that do not fit into memory.

    Args:
        path, threads: see `read_table`.
        block_bytes: about how much text makes a frame.

    Yields:
        Frames as `read_table` returns; their index is the number of the line, from 0.  One empty frame for a table
        without lines.

    Raises:
        DataError: the file is damaged or no table in text form.

    Examples:
        >>> sum(len(block) for block in table_blocks(demo_table)) == len(read_table(demo_table))
        True
    """
    from moses_compat.tables.parquet import TableBatches

    with Input(os.fspath(path)) as source:
        batches = TableBatches(source, block_bytes)
        columns = [name for name in batches.schema.names if name not in _FOR_WRITING]
        empty = True
        for raw, batch, _ in batches.read(threads):
            frame: pd.DataFrame = batch.select(columns).to_pandas()
            frame.index = frame.index + raw.first_entry
            empty = False
            yield frame
        if empty:
            yield batches.schema.empty_table().select(columns).to_pandas()


@dataclass(frozen=True)
class Pruned:
    """What `prune` did.

    Attributes:
        statistics: counts.
        signature: one line that says how it was done.
        entries: a row a line of the table, in its order: `keep`, `fails` (by what it deserves, it goes) and
            `protected` (it stays all the same), bool; where it was found out, what each criterion says of the entry,
            and the similarities.
        reordering: what happened to the reordering table, if there was one.
    """

    statistics: PruneStatistics
    signature: str
    entries: pd.DataFrame
    reordering: OrphanCounts | None = None


def prune(
    table: StrPath,
    output: StrPath,
    *,
    threshold: float | str | None = None,
    target_size: float | None = None,
    max_bleu_loss: float | None = None,
    model: StrPath | None = None,
    moses_ini: StrPath | None = None,
    corpus: tuple[StrPath, StrPath] | None = None,
    forced_pairs: StrPath | None = None,
    reordering_table: StrPath | None = None,
    reordering_out: StrPath | None = None,
    dev: tuple[StrPath, StrPath] | None = None,
    watch: Watch = NOBODY,
    **options: Any,
) -> Pruned:
    """Write a phrase table without the entries that are no translations, or that can be missed.

    The same as `phrasetool prune`, whose options these are; see its manual for what they mean.

    Args:
        table: a Moses phrase table in text form, gzip or not.
        output: where to write; gzip if its name ends so.
        threshold, target_size, max_bleu_loss: what goes; one of them, unless the method has thresholds of its own.
        model: folder of a model, for similarities.
        moses_ini: the model of the table: its weights, for criteria that need them.
        corpus: the two sides of the bitext that the table was made from.
        forced_pairs: what leave-one-out forced decoding wrote.
        reordering_table, reordering_out: a table to keep in step, and where to write it.
        dev: the two sides of a development set, for `max_bleu_loss`.
        watch: follows the work; nobody by default.
        options: any other field of `PruneRequest` or `TableScan`: `method`, `combine`, `keep_top`, `protect`,
            `threads`, `force`, ...

    Raises:
        DataError: a file is damaged, has a faulty line, or does not fit the others; or, unless forced, the model does
            not fit the table.
        PhraseToolError: a file cannot be written, or the wanted size cannot be had.
        UnusableRequest: a ValueError; options do not go together, or the method lacks one.
        TypeError: there is no such option.

    Examples:
        >>> done = prune(demo_table, "small.gz", model=demo_model, threshold=0.3, protect="words")
        >>> done.statistics.kept == int(done.entries.keep.sum()) == len(read_table("small.gz"))
        True
    """
    import pandas as pd

    if wrong := sorted(set(options) & _OTHERWISE):
        raise TypeError(f"prune() has no option {wrong[0]!r}")
    given: dict[str, Any] = {
        "ini": text_path(moses_ini), "forced_pairs": text_path(forced_pairs),
        "corpora": text_paths(corpus), "dev": text_paths(dev),
        "reordering_table": text_path(reordering_table), "reordering_out": text_path(reordering_out),
    }  # fmt: skip
    if model is not None:
        given["model_folder"] = text_path(model)
    if threshold is not None:
        given["threshold"] = Threshold(str(threshold))
    scan = TableScan(**{name: options.pop(name) for name in _SCAN_OPTIONS if name in options})
    request = PruneRequest(
        os.fspath(table), output=os.fspath(output), target_size=target_size, max_bleu_loss=max_bleu_loss, scan=scan,
        **given, **options,
    )  # fmt: skip
    decisions = Decisions()
    result = prune_files(request, watch, [decisions])
    return Pruned(result.statistics, result.signature, pd.DataFrame(decisions.joined()), result.orphans)


def annotate(
    table: StrPath,
    output: StrPath,
    models: Sequence[StrPath] = (),
    *,
    forced_pairs: StrPath | None = None,
    smoothing: str | None = None,
    scale: str = "exp",
    reading: str = "normalised",
    moses_ini: StrPath | None = None,
    moses_ini_out: StrPath | None = None,
    weight: float = 0.0,
    encoder: EncoderRequest | None = None,
    threads: int = 1,
    on_error: str = "fail",
    allow_empty: bool = False,
    force: bool = False,
    watch: Watch = NOBODY,
) -> AnnotateCounts:
    """Write a phrase table with more score columns; see `phrasetool annotate`.

    Args:
        table: a Moses phrase table in text form, gzip or not.
        output: where to write; gzip if its name ends so.
        models: folders of models: two columns of similarities each, one of a translator.
        forced_pairs: what leave-one-out forced decoding wrote: two columns of probabilities.
        smoothing: `kneser-ney` or `good-turing`: two columns of smoothed probabilities.
        scale: how a similarity s is written: `exp`, exp(s - 1); `probability`, (1 + s) / 2; `raw`; or
            `softmax`, exp(s) / sum of exp(s') over all entries of the source.
        reading: how a translator scores an entry, `normalised` or `density`.
        moses_ini, moses_ini_out: the moses.ini of the table, and where to write the one of the annotated table.
        weight: of each new column, in that ini.
        encoder: a sentence encoder from elsewhere: two columns behind those of the models.
        threads: worker threads.
        on_error: `fail`, `skip` or `keep`, for lines that are no entries.
        allow_empty: whether the table may be empty.
        force: go on, with a warning to `watch`, where a check says that the table makes no sense, that a model does not
            fit it, or annotated it before.
        watch: follows the work; nobody by default.

    Returns:
        Counts: entries, those without an opinion, those that forced decoding used; and how the models fit.

    Raises:
        DataError: a file is damaged, has a faulty line, or does not fit the others; or, unless forced, a model does not
            fit the table or annotated it before.
        ValueError: there is nothing to append, or only one of the two inis was given.

    Examples:
        >>> annotate(demo_table, "annotated.gz", [demo_model], smoothing="kneser-ney").scores
        4
        >>> [name for name in read_table("annotated.gz") if name.startswith("score_")][-1]
        'score_8'
    """
    if (moses_ini is None) != (moses_ini_out is None):
        raise ValueError("an ini to read and one to write need each other")
    edit = None
    if moses_ini is not None and moses_ini_out is not None:
        there = ini_beside(os.fspath(table), os.fspath(moses_ini))
        edit = IniEdit.of(there, os.fspath(table), os.fspath(output), os.fspath(moses_ini_out), weight)
    request = AnnotateRequest(
        os.fspath(table), os.fspath(output), [os.fspath(model) for model in models],
        text_path(forced_pairs), smoothing, scale, edit,
        TableScan(on_error, threads, allow_empty=allow_empty, force=force), reading, encoder,
    )  # fmt: skip
    return annotate_files(request, watch)
