"""Functions of `import phrasetool` that read and write Moses' files: tables, training pairs, models of a moses.ini."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moses_compat.corpora.training_pairs import UNCOUNTED, read_training_pairs
from moses_compat.files.paths import refuse_overwriting
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import AnnotateCounts, AnnotateRequest, IniEdit, ini_of_table
from moses_compat.jobs.annotate import annotate as annotate_files
from moses_compat.jobs.prune import prune as prune_files
from moses_compat.jobs.prune_request import PruneRequest, UnusableRequest
from moses_compat.jobs.remove_orphans import OrphanCounts
from moses_compat.jobs.sinks import Decisions
from moses_compat.lines.counts import CountTally
from moses_compat.measures.similarities import EncoderRequest
from moses_compat.tables.blocks import BLOCK_BYTES, TableScan
from moses_compat.tables.opening import check_plausible
from phrasetool.disk.folders import scratch_folder
from phrasetool.library.models import PhraseModel
from phrasetool.nn.device import choose_device, one_torch_thread
from phrasetool.phrase_encoder.model import CPU
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    import pandas as pd

    from moses_compat.engine.model import MosesModel
    from phrasetool.training.data import PhrasePairs

StrPath = str | os.PathLike[str]
# Fields of `PruneRequest` that have other names in `prune`, that are only for pruning to several sizes, or with which
# `Pruned.entries` would not be in the order of the table.
_UNSUPPORTED_OPTIONS = {"ini", "corpora", "model_folder", "sweep", "sort", "sorted_table", "scan"}
# Options of `prune` that are fields of `TableScan`.
_SCAN_OPTIONS = ("threads", "block_bytes", "on_error", "allow_empty", "force", "max_line", "runner")
# Columns of a table in Parquet that are needed only to write a byte-identical text table.
_FOR_WRITING = ("extra", "scores_text", "counts_text", "tail", "raw")
# A source phrase and a target phrase, and optionally their count.
Pair = tuple[str, str] | tuple[str, str, float]


def _text_path(path: StrPath | None) -> str | None:
    """Return a path as text, or None."""
    return None if path is None else os.fspath(path)


def _text_paths(pair: tuple[StrPath, StrPath] | None) -> tuple[str, str] | None:
    """Return two paths as text, or None."""
    return None if pair is None else (os.fspath(pair[0]), os.fspath(pair[1]))


def _refuse_below_one(numbers: Mapping[str, int]) -> None:
    """Refuse sizes with which reading a table would never end."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}, expected at least 1")


def read_table(path: StrPath, *, threads: int = 1) -> pd.DataFrame:
    """Read a phrase table into one data frame.

    Args:
        path: a Moses phrase table in text form, compressed or not.
        threads: worker threads.

    Returns:
        One row per line: `source`, `target`; `score_1` and so on, float32; `alignment`, `sparse`, `properties`, text;
        `count_target`, `count_source`, `count_joint`, float64.  Fields that a line lacks are missing values, as are the
        scores of a malformed line.  Bytes that are not UTF-8 become `?`.

    Raises:
        DataError: the file is damaged, or is certainly not a table in text form.

    Examples:
        >>> table = read_table(demo_table)
        >>> bool(table.score_3.between(0, 1).all())
        True
    """
    import pandas as pd

    return pd.concat(list(table_blocks(path, threads=threads)), ignore_index=True)


def table_blocks(path: StrPath, *, block_bytes: int = BLOCK_BYTES, threads: int = 1) -> Iterator[pd.DataFrame]:
    """Read a phrase table as data frames of whole source groups, in order, for tables that do not fit into memory.

    Args:
        path, threads: see `read_table`.
        block_bytes: approximate size of the text of a frame.

    Yields:
        Frames as `read_table` returns; their index is the number of the line, from 0.  One empty frame for a table
        without lines.

    Raises:
        DataError: the file is damaged, or is certainly not a table in text form.
        ValueError: `block_bytes` or `threads` is below 1.

    Examples:
        >>> sum(len(block) for block in table_blocks(demo_table)) == len(read_table(demo_table))
        True
    """
    from moses_compat.tables.parquet import TableBatches

    _refuse_below_one({"block_bytes": block_bytes})
    with Input(os.fspath(path)) as source:
        # Reordering tables have the same columns.
        check_plausible(source, TableScan(allow_empty=True, force=True))
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
    """Result of `prune`.

    Attributes:
        statistics: numbers of kept and removed entries.
        signature: one line that describes the settings.
        entries: one row per line of the table, in order: `keep`, `fails` (the criteria reject the entry) and
            `protected` (it is kept anyway), bool; and where computed, the result of each criterion, and the
            similarities.
        reordering: counts of the reordering table, if one was given.
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
    watch: Watch = SILENT,
    **options: Any,
) -> Pruned:
    """Write a phrase table without its bad or redundant entries.

    Does the same as `phrasetool prune`; its manual describes the options.

    Args:
        table: a Moses phrase table in text form, compressed or not.
        output: the pruned table; its ending selects the compression.
        threshold, target_size, max_bleu_loss: pruning criterion; exactly one, unless the method has its own thresholds.
        model: folder of a model, for similarities.
        moses_ini: moses.ini of the table, for criteria that need its weights.
        corpus: the two sides of the bitext that the table was made from.
        forced_pairs: output of leave-one-out forced decoding.
        reordering_table, reordering_out: a reordering table to prune with the phrase table, and its output file.
        dev: the two sides of a development set, for `max_bleu_loss`.
        watch: progress listener; silent by default.
        options: any other field of `PruneRequest` or `TableScan`: `method`, `combine`, `keep_top`, `protect`,
            `threads`, `force`, ...

    Raises:
        DataError: a file is damaged, has a malformed line, or does not match the others; or, unless forced, the model
            does not match the table.
        PhraseToolError: a file cannot be written; an output is an input or another output; or the target size cannot be
            reached.
        UnusableRequest: a ValueError; options conflict, the method needs another one, or does not use one.
        DeviceError: `device` is unknown or does not exist.
        TypeError: an option is unknown.

    Examples:
        >>> result = prune(demo_table, "small.gz", model=demo_model, threshold=0.3, protect="words")
        >>> result.statistics.kept == int(result.entries.keep.sum()) == len(read_table("small.gz"))
        True
    """
    import pandas as pd

    if wrong := sorted(set(options) & _UNSUPPORTED_OPTIONS):
        raise TypeError(f"prune() has no option {wrong[0]!r}")
    options = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in options.items()}
    # The CPU does not need torch.
    if options.get("device", CPU) != CPU:
        options["device"] = str(choose_device(options["device"]))
    request_fields: dict[str, Any] = {
        "ini": _text_path(moses_ini), "forced_pairs": _text_path(forced_pairs),
        "corpora": _text_paths(corpus), "dev": _text_paths(dev),
        "reordering_table": _text_path(reordering_table), "reordering_out": _text_path(reordering_out),
    }  # fmt: skip
    if model is not None:
        request_fields["model_folder"] = _text_path(model)
    if threshold is not None:
        request_fields["threshold"] = Threshold(str(threshold))
    scan_options = {name: options.pop(name) for name in _SCAN_OPTIONS if name in options}
    scan = TableScan(**scan_options)
    _refuse_below_one({"block_bytes": scan.block_bytes, "max_line": scan.max_line})
    request = PruneRequest(
        os.fspath(table), output=os.fspath(output), target_size=target_size, max_bleu_loss=max_bleu_loss, scan=scan,
        **request_fields, **options,
    )  # fmt: skip
    arguments = {**request_fields, **scan_options, **options}
    for name, use in request.without_effect().items():
        if arguments.get(name) is not None:
            raise UnusableRequest(f"{{{name}}} is for {use}")
    refuse_overwriting(*request.checked_files())
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
    watch: Watch = SILENT,
) -> AnnotateCounts:
    """Write a phrase table with additional score columns; see `phrasetool annotate`.

    Args:
        table: a Moses phrase table in text form, compressed or not.
        output: the annotated table; its ending selects the compression.
        models: folders of models; each adds two columns of similarities, a translator one column.
        forced_pairs: output of leave-one-out forced decoding; adds two columns of probabilities.
        smoothing: `kneser-ney` or `good-turing`; adds two columns of smoothed probabilities.
        scale: conversion of a similarity s to a score: `exp`, exp(s - 1); `probability`, (1 + s) / 2; `raw`; or
            `softmax`, exp(s) / sum of exp(s') over all entries of the source.
        reading: scoring method of translators, `normalised` or `density`.
        moses_ini, moses_ini_out: the moses.ini of the table, and the output file for that of the annotated table.
        weight: weight of each new column in that ini.
        encoder: an external sentence encoder; adds two columns after those of the models.
        threads: worker threads.
        on_error: `fail`, `skip` or `keep`, for malformed lines.
        allow_empty: whether the table may be empty.
        force: only warn if a check of the table fails, or if a model does not match the table or annotated it before.
        watch: progress listener; silent by default.

    Returns:
        Counts: all entries, entries without a score, entries used in forced decoding; and how well the models match.

    Raises:
        DataError: a file is damaged, has a malformed line, or does not match the others; or, unless forced, a model
            does not match the table or annotated it before.
        PhraseToolError: a file cannot be written, or an output is an input or another output.
        ValueError: there is nothing to append; only one of the two inis was given; a weight was given without them, or
            the scale `raw` with them; or `scale`, `reading` or `weight` is invalid.
        TypeError: `models` is a single path.

    Examples:
        >>> annotate(demo_table, "annotated.gz", [demo_model], smoothing="kneser-ney").scores
        4
        >>> [name for name in read_table("annotated.gz") if name.startswith("score_")][-1]
        'score_8'
    """
    if (moses_ini is None) != (moses_ini_out is None):
        raise ValueError("moses_ini and moses_ini_out must be given together")
    if moses_ini is None and weight != 0:
        raise ValueError("the weight is for a new moses.ini; moses_ini and moses_ini_out were not given")
    if moses_ini is not None and scale == "raw":
        raise ValueError(
            "the scale 'raw' is not for Moses: the logarithm of a negative score is not a number, even at weight 0"
        )
    if isinstance(models, str | os.PathLike):
        raise TypeError("expected several models, found one path")
    edit, outputs = None, [os.fspath(output), _text_path(moses_ini_out)]
    refuse_overwriting([os.fspath(table), _text_path(forced_pairs), _text_path(moses_ini)], outputs)
    if moses_ini is not None and moses_ini_out is not None:
        ini = ini_of_table(os.fspath(table), os.fspath(moses_ini))
        refuse_overwriting(ini.paths, outputs)
        edit = IniEdit.of(ini, os.fspath(table), os.fspath(output), os.fspath(moses_ini_out), weight)
    request = AnnotateRequest(
        os.fspath(table), os.fspath(output), [os.fspath(model) for model in models],
        _text_path(forced_pairs), smoothing, scale, edit,
        TableScan(on_error, threads, allow_empty=allow_empty, force=force), reading, encoder,
    )  # fmt: skip
    return annotate_files(request, watch)


def train(
    pairs: StrPath | Iterable[Pair],
    folder: StrPath,
    *,
    loss: str = "in-batch",
    encoder: str = "rae",
    max_length: int = 7,
    min_count: float = 0,
    device: str = "cpu",
    resume: bool = False,
    overwrite: bool = False,
    force: bool = False,
    watch: Watch = SILENT,
    **settings: Any,
) -> PhraseModel:
    """Train a model of phrase pairs and save it, as `phrasetool train` does.

    Args:
        pairs: a file of `source ||| target[ ||| count]`, or any phrase table; or the pairs themselves, with words
            separated by spaces.
        folder: the folder for the model.
        loss, encoder: loss function and phrase encoder; see the manual.
        max_length: skip pairs with a side of more words.
        min_count: skip pairs with a lower count.
        device: `cpu`, `cuda` or `auto`.
        resume: continue an interrupted run in `folder`.
        overwrite: replace a finished model, or an unfinished training, in `folder`.
        force: only warn if a check of the pairs fails.
        watch: progress listener; silent by default.
        settings: any other setting of training: `dimension`, `iterations`, `seed`, ...; see `TrainingSettings`.

    Returns:
        The trained model, which is also saved.

    Raises:
        DataError: the file is damaged, or no pair is left.
        ModelError: `folder` has a finished model or an unfinished training, or no checkpoint to resume from, or one
            with other settings.
        ValueError: a setting is out of range; a pair is malformed, or has a line feed or `|||`; or both `resume` and
            `overwrite` are set.
        DeviceError: the device does not exist.
        PhraseToolError: the folder cannot be written; training diverged; or the pairs are very few, or most have two
            equal sides.

    Examples:
        >>> pairs = [(f"第 {number} 章", f"chapter {number}") for number in range(1, 31)]
        >>> model = train(pairs, "tiny-model", dimension=8, iterations=2, vectors="random")
        >>> model.dimension
        8
    """
    from phrasetool.phrase_encoder.settings import TrainingSettings
    from phrasetool.phrase_encoder.start import Start, start_parameters, with_known_words
    from phrasetool.phrase_encoder.trainer import choose_training_device, train_model
    from phrasetool.training.data import check_pairs
    from phrasetool.training.loop import finished_epochs
    from phrasetool.training.run import TrainingRun, check_model_folder, problem_handler

    if resume and overwrite:
        raise ValueError("give resume or overwrite, not both")
    chosen = TrainingSettings.for_loss(loss=loss, encoder=encoder, **settings)
    check_model_folder(folder, resume=resume, overwrite=overwrite)
    choose_device(device)
    data = _read(pairs, max_length, min_count, watch)
    check_pairs(
        os.fspath(pairs) if isinstance(pairs, str | os.PathLike) else "the pairs", data, problem_handler(watch, force)
    )
    data, starts = with_known_words(data, chosen, (Start(), Start()))
    if "batch_size" not in settings:
        chosen = chosen.with_batches_for(len(data))
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    with one_torch_thread():
        choice = choose_training_device(device, data, chosen)
        if choice.message:
            watch.say(choice.message)
        passes = chosen.pretrain_iterations + chosen.iterations
        finished = finished_epochs(Path(folder), resume) * len(data)
        with watch.items("train", passes * len(data), "pair", finished) as tick:
            run = TrainingRun(Path(folder), choice.device, resume, overwrite, tick=tick)
            trained = train_model(data, chosen, lambda: start_parameters(data, chosen, starts), run)
    return PhraseModel(trained)


def _read(
    pairs: StrPath | Iterable[Pair], max_length: int, min_count: float, watch: Watch, name: str | None = None
) -> PhrasePairs:
    if isinstance(pairs, str | os.PathLike):
        with Input(os.fspath(pairs), name) as source, watch.file("read pairs", source.size()) as progress:

            def counted(tally: CountTally) -> None:
                for sentence in tally.sentences(UNCOUNTED):
                    watch.say(f"{source.name}: {sentence}")

            return read_training_pairs(
                source, max_length=max_length, min_count=min_count, progress=progress, counted=counted
            )
    with scratch_folder(None, "phrasetool-") as scratch:
        path = Path(scratch, "pairs")
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for pair in pairs:
                if len(pair) not in (2, 3):
                    raise ValueError(f"expected a source, a target and optionally a count, found {pair}")
                if any("|||" in phrase or "\n" in phrase for phrase in pair[:2]):
                    raise ValueError(f"a phrase with a line feed or ||| in it: {pair[:2]}")
                file.write(" ||| ".join(map(str, pair)) + "\n")
        # The temporary file is an internal detail; the caller passed pairs.
        return _read(path, max_length, min_count, watch, "the pairs")


def _model(
    moses_ini: StrPath, table: StrPath | None, search: Mapping[str, Any] | None, printed: bool = False
) -> MosesModel:
    # The decoder is imported here, because reading and pruning tables do not need it.
    from moses_compat.engine.model import MosesModel

    model = MosesModel.read(os.fspath(moses_ini), _text_path(table), printed=printed)
    return model.searching(**(search or {}))


def decode(
    sentences: Iterable[str],
    moses_ini: StrPath,
    *,
    table: StrPath | None = None,
    search: Mapping[str, Any] | None = None,
    threads: int = 1,
    force: bool = False,
    watch: Watch = SILENT,
) -> list[str]:
    """Translate sentences with a phrase-based model, as `phrasetool decode` does.

    Args:
        sentences: tokenised sentences, with words separated by spaces.
        moses_ini: the model.
        table: phrase table to use instead of the one that the ini names.
        search: search options that override the ini's; fields of `SearchOptions` such as `algorithm="cube"`.
        threads: worker threads.
        force: only warn if the text or the language model seems to be in another language.
        watch: progress listener; silent by default.

    Returns:
        The best translation of each sentence.

    Raises:
        DataError: the ini or a file that it names cannot be read, or uses an unsupported feature.
        PhraseToolError: less than 30 % of the tokens are in the table, or few of its words in the language model.
        ValueError: a sentence has a line feed or a carriage return in it.
        TypeError: `sentences` is a single string.

    Examples:
        >>> decode(["经济 发展"], demo_ini)[0].split() != []
        True
    """
    from moses_compat.corpora.texts import surface_words
    from moses_compat.engine.development_check import check_language_models, report_coverage

    if isinstance(sentences, str):
        raise TypeError("expected several sentences, found one string")
    lines = list(sentences)
    if any("\n" in line or "\r" in line for line in lines):
        raise ValueError("a sentence has a line feed or a carriage return in it")
    model = _model(moses_ini, table, search, printed=True)
    with watch.reading(model.tables) as progress:
        text = surface_words("".join(f"{line}\n" for line in lines).encode())
        translator, source = model.load(text, threads, progress)
    model.report_reading(translator.table.targets, translator.table.target_symbols, watch)
    report_coverage(translator.table, source.sentences, "the text", model.shown_tables, watch, force)
    check_language_models(model, translator.language_model, translator.table, watch, force)
    translations = []
    with watch.items("translate", len(lines), "sentence") as tick:
        for translation in translator.translate_all(source.sentences, model.search, threads=threads):
            translations.append(model.printing.line(translator, translation)[:-1].decode(errors="replace"))
            tick(1)
    return translations


@dataclass(frozen=True)
class Tuned:
    """Result of `tune`.

    Attributes:
        bleu: highest BLEU on the development set, in percent.
        weights: feature -> numbers, as in the ini.
        steps: BLEU of each run of the decoder.
    """

    bleu: float
    weights: Mapping[str, Sequence[float]]
    steps: Sequence[float]


def tune(
    moses_ini: StrPath,
    source: StrPath,
    references: Sequence[StrPath],
    output: StrPath,
    *,
    table: StrPath | None = None,
    search: Mapping[str, Any] | None = None,
    threads: int = 1,
    force: bool = False,
    watch: Watch = SILENT,
    **options: Any,
) -> Tuned:
    """Tune the weights of a model on a development set, as `phrasetool tune` does, and write its moses.ini.

    Args:
        moses_ini: the model.
        source: the development set, one tokenised sentence per line.
        references: files of its translations.
        output: file for the ini with the tuned weights.
        table, search, threads, watch: see `decode`.
        force: only warn if the development set does not seem to match the model.
        options: fields of `TuningOptions`: `algorithm`, `iterations`, `seed`, ...

    Raises:
        DataError: a file cannot be read, or the texts are of different lengths.
        PhraseToolError: the ini cannot be written, or is an input; or a check of the development set fails, see
            `DevelopmentCheck`.
        ValueError: `references` is empty.
        TypeError: `references` is a single path.

    Examples:
        >>> tuned = tune(demo_ini, "dev.zh", ["dev.en"], "tuned.ini", iterations=2)
        >>> tuned.bleu == max(tuned.steps)
        True
    """
    from moses_compat.engine.development_check import DevelopmentCheck
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.jobs.tune import TuningOptions, checked_start, read_development_set, tune_model, tuned_ini

    if isinstance(references, str | os.PathLike):
        raise TypeError("expected several references, found one path")
    files = [os.fspath(path) for path in references]
    if not files:
        raise ValueError("expected at least one reference")
    settings = TuningOptions(**options)
    model = _model(moses_ini, table, search)
    refuse_overwriting([os.fspath(source), *files, *model.kept_paths], [os.fspath(output)])
    text, truth = read_development_set(os.fspath(source), files)
    development = DevelopmentCheck(model, os.fspath(source), files, force, watch)
    development.texts(text, truth)
    with watch.reading(model.tables) as progress:
        translator, loaded = model.load(text, threads, progress)
    model.report_reading(translator.table.targets, translator.table.target_symbols, watch)
    check = checked_start(development, translator, loaded, text, truth)
    steps: list[float] = []
    result, weights = tune_model(
        model, translator, loaded, truth, settings, threads, check=check, watch=watch,
        report=lambda run, weights: steps.append(run.bleu),
    )  # fmt: skip
    with Output(os.fspath(output)) as out:
        ini = tuned_ini(model, result, weights, settings, files, os.fspath(output))
        out.write_text(ini.encode(*ENCODING))
    return Tuned(result.best.bleu, weights, steps)
