"""The configuration of an experiment: a TOML file, read with care, into dataclasses.

Everything that can be told to be wrong without doing any work is refused here, in one line that names the file and the
key.  Paths in the file are relative to it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from phrasetool.encoders import ENCODERS
from phrasetool.errors import DataError
from phrasetool.experiments.config_table import ConfigTable
from phrasetool.experiments.settings import (
    ALGORITHMS,
    ALL,
    COLUMNS,
    DEV,
    AnnotationSettings,
    BuildSettings,
    EncoderSettings,
    ExperimentConfig,
    FinishedModel,
    NeighbourSettings,
    SearchSettings,
    TextPair,
)
from phrasetool.experiments.systems import KEEP_TOP, PruningGrid, ways_of
from phrasetool.objectives import OBJECTIVES
from phrasetool.pruning.measures import SIGNIFICANCE
from phrasetool.pruning.methods import COMBINATIONS, parse_method
from phrasetool.pruning.protection import PROTECTIONS
from phrasetool.training.settings import TrainingSettings

_KNOWN = (
    "name", "output", "seed", "samples", "data", "moses", "build", "model", "prune", "annotate", "neighbours", "search",
)  # fmt: skip


def read_experiment_config(path: str, output: str | None = None) -> ExperimentConfig:
    """Read a configuration and check it.

    Args:
        path: the file.
        output: the folder to write to, instead of the file's.

    Raises:
        DataError: the file cannot be read or is no TOML; a key is unknown (the nearest one is named) or missing, a
            value is of the wrong type or out of range, a grid is empty, a file is missing, a method is unknown or needs
            what is not there.
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise DataError(path, error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, f"not TOML ({error})") from error
    return parse_config(values, path, output)


def parse_config(values: Mapping[str, Any], path: str, output: str | None = None) -> ExperimentConfig:
    """The same from what the file holds; see `read_experiment_config`."""
    top = ConfigTable(path, "", values, _KNOWN)
    data = top.table("data", ("bitext", "dev", "tests"))
    bitext = _pair(data, "bitext") if "bitext" in data else None
    dev = _pair(data, "dev")
    tests = _tests(data)
    moses = _moses(top) if "moses" in top else None
    if moses is None and bitext is None:
        raise DataError(path, "give [moses] with a finished model, or [data.bitext] to make one from")
    prune = _prune(top) if "prune" in top else None
    model = _model(top)
    config = ExperimentConfig(
        path,
        top.text("name", os.path.splitext(os.path.basename(path))[0]),
        output or top.output("output", "experiment"),
        top.integer("seed", 1, least=1),
        top.integer("samples", 1000, least=2),
        bitext,
        dev,
        tests,
        moses,
        _build(top),
        model,
        prune,
        _annotate(top, model) if "annotate" in top else None,
        _neighbours(top) if "neighbours" in top else None,
        _search(top),
    )
    if not (config.prune or config.annotate or config.neighbours):
        raise DataError(path, "nothing to do: give at least one of [prune], [annotate] and [neighbours]")
    if SIGNIFICANCE in config.needs and bitext is None:
        raise DataError(path, "significance is tested on the bitext that the table was made from: give [data.bitext]")
    if config.counts_uses and bitext is None:
        raise DataError(path, "uses are counted in forced decoding of the bitext that the table was made from: give "
                              "[data.bitext]")  # fmt: skip
    return config


def _pair(table: ConfigTable, key: str) -> TextPair:
    inner = table.table(key, ("source", "target"))
    return TextPair(inner.file("source"), inner.file("target"))


def _tests(data: ConfigTable) -> dict[str, TextPair]:
    tests = data.table("tests", None)
    found = {name: _pair(tests, name) for name in tests}
    for name in found:
        if name in (DEV, ALL):
            raise tests.error(name, "is the name of another text; choose a different one")
    if not found:
        raise data.error("tests", "is empty; give at least one [data.tests.NAME]")
    return found


def _moses(top: ConfigTable) -> FinishedModel:
    table = top.table("moses", ("ini", "table", "reordering_table", "pairs"))
    more = {key: table.file(key) for key in ("table", "reordering_table", "pairs") if key in table}
    return FinishedModel(table.file("ini"), **more)


def _build(top: ConfigTable) -> BuildSettings:
    table = top.table("build", ("lm_order", "lm_text", "max_phrase_length", "leave_one_out"))
    return BuildSettings(
        table.integer("lm_order", 5, least=1),
        table.files("lm_text"),
        table.integer("max_phrase_length", 7, least=1),
        table.boolean("leave_one_out", False),
    )


def _model(top: ConfigTable) -> EncoderSettings:
    own = ("encoder", "dimension", "loss", "iterations", "pretrain_iterations")
    table = top.table("model", (*own, "folder", "min_pair_count", "source_text", "target_text", "options"))
    loss = table.choice("loss", EncoderSettings.loss, tuple(OBJECTIVES))
    encoder = table.choice("encoder", EncoderSettings.encoder, tuple(ENCODERS))
    default = TrainingSettings.for_loss(loss, encoder)
    elsewhere = (*own, "seed", "freeze_encoders", "loss_options", "encoder_options")
    others = [field.name for field in fields(TrainingSettings) if field.name not in elsewhere]
    options = table.table("options", (*others, *default.loss_options, *default.encoder_options))
    chosen = EncoderSettings(
        table.folder("folder") if "folder" in table else None,
        table.integer("dimension", default.dimension, least=1),
        loss,
        encoder,
        table.integer("iterations", 0, least=0) if "iterations" in table else None,
        table.integer("pretrain_iterations", 0, least=0) if "pretrain_iterations" in table else None,
        table.number("min_pair_count", 0.0),
        table.files("source_text"),
        table.files("target_text"),
        dict(options.values),
    )
    _check_training(top.path, "[model]", chosen, chosen.dimension)
    return chosen


def _check_training(path: str, what: str, model: EncoderSettings, dimension: int) -> None:
    """Refuse settings with which no model of this dimension can be trained; `what` says where they stand."""
    try:
        TrainingSettings.for_loss(
            model.loss, model.encoder, dimension=dimension, pretrain_iterations=model.pretrain_iterations,
            **model.options,
        )  # fmt: skip
    except ValueError as error:
        raise DataError(path, f"{what}: {error}") from error


def _prune(top: ConfigTable) -> PruningGrid:
    table = top.table("prune", ("methods", "combine", "sizes", "thresholds", "protect", "keep_top", "seeds"))
    combine = table.choices("combine", ("product",), COMBINATIONS)
    methods = table.texts("methods")
    sizes = table.shares("sizes")
    inner = table.table("thresholds", None) if "thresholds" in table else None
    thresholds = {method: inner.numbers(method) for method in inner} if inner else {}
    for method in (*methods, *thresholds):
        _check_method(table, "methods" if method in methods else "thresholds", method, combine)
    cut = {method for method in methods if parse_method(method, None).thresholds or method in thresholds}
    if not sizes and set(methods) - cut:
        raise table.error("sizes", "is empty; give shares of the entries to keep, as in sizes = [0.28, 0.1]")
    if not methods and not thresholds:
        raise table.error("methods", 'is empty; give methods, as in methods = ["composition+semantic"]')
    protect = table.choices("protect", ("words",), PROTECTIONS)
    seeds = table.integers("seeds", (1,))
    table.needed(combine=combine, protect=protect, seeds=seeds)
    return PruningGrid(
        methods, combine, sizes, thresholds, tuple(dict.fromkeys(protect)), _keep_top(table),
        tuple(dict.fromkeys(seeds)),
    )  # fmt: skip


def _check_method(table: ConfigTable, key: str, method: str, combine: tuple[str, ...]) -> None:
    try:
        ways_of(method, combine)
    except ValueError as error:
        raise table.error(key, f"{error}") from error


def _keep_top(table: ConfigTable) -> dict[float, int]:
    """One number for all sizes, or a table from the largest size that a number is meant for to the number."""
    if "keep_top" not in table:
        return {}
    if not isinstance(table.values["keep_top"], Mapping):
        return {1.0: table.integer("keep_top", KEEP_TOP, least=0)}
    inner = table.table("keep_top", None)
    found = {}
    for key in inner:
        try:
            size = float(key)
        except ValueError:
            size = 0.0
        if not 0 < size <= 1:
            raise table.error("keep_top", f'has the key {key!r}; expected a size, as in {{"0.07" = 3, "1" = 10}}')
        found[size] = inner.integer(key, KEEP_TOP, least=0)
    return found


def _annotate(top: ConfigTable, model: EncoderSettings) -> AnnotationSettings:
    table = top.table("annotate", ("dimensions", "columns", "tuning_seeds", "start", "iterations", "sizes", "method"))
    dimensions = table.integers("dimensions", (model.dimension,))
    texts = table.texts("columns", ("semantic",))
    columns = tuple("+".join(part.strip() for part in text.split("+")) for text in texts)
    seeds = table.integers("tuning_seeds", (1, 2, 3))
    sizes = table.shares("sizes", (1.0,))
    table.needed(dimensions=dimensions, tuning_seeds=seeds, sizes=sizes)
    if not columns and len(sizes) < 2:
        raise table.error("columns", "is empty, and there is one size only: nothing to compare")
    if min(dimensions) < 1:
        raise table.error("dimensions", f"holds {min(dimensions)}; expected 1 or more")
    for column in (part for text in columns for part in text.split("+")):
        if column not in COLUMNS:
            raise table.error("columns", f"holds {column!r}; expected {', '.join(COLUMNS)}")
    for dimension in dimensions:
        _check_training(top.path, "annotate.dimensions", model, dimension)
    settings = AnnotationSettings(
        tuple(dict.fromkeys(dimensions)), tuple(dict.fromkeys(columns)), tuple(dict.fromkeys(seeds)),
        table.choice("start", "default", ("default", "ini")), table.integer("iterations", 25, least=1),
        sizes, table.text("method", AnnotationSettings.method),
    )  # fmt: skip
    _check_method(table, "method", settings.method, ("product",))
    if parse_method(settings.method, None).thresholds:
        raise table.error("method", "has thresholds, but the table is cut at a size")
    return settings


def _neighbours(top: ConfigTable) -> NeighbourSettings:
    table = top.table("neighbours", ("phrases", "count", "pretrain_iterations"))
    return NeighbourSettings(
        table.texts("phrases"),
        table.integer("count", 5, least=1),
        table.integer("pretrain_iterations", 5, least=1),
    )


def _search(top: ConfigTable) -> SearchSettings:
    table = top.table("search", ("algorithm", "stack", "pop_limit", "table_limit"))
    return SearchSettings(
        table.choice("algorithm", "cube", ALGORITHMS),
        table.integer("stack", 400, least=1),
        table.integer("pop_limit", 400, least=1),
        table.integer("table_limit", 20, least=0) if "table_limit" in table else None,
    )
