"""The configuration of an experiment: a TOML file that is read into dataclasses and checked.

Every error that can be detected before the experiment runs is reported here, in one line that names the file and the
key.  Paths in the file are relative to it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from moses_compat.experiments.config_table import ConfigTable
from moses_compat.experiments.settings import (
    ALL,
    DEV,
    AnnotationSettings,
    BuildSettings,
    EncoderSettings,
    ExperimentConfig,
    FinishedModel,
    LadderSettings,
    NeighbourSettings,
    PretrainedEncoderSettings,
    PruningGrid,
    SearchSettings,
    TextPair,
    combinations_of,
)
from phrasetool.errors import DataError, reason
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.pruning.measures import PARALLEL, SIGNIFICANCE, SYNTAX
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.thresholds import Threshold

_KNOWN = (
    "name", "output", "seed", "samples", "data", "moses", "build", "model", "prune", "annotate", "ladder", "neighbours",
    "search",
)  # fmt: skip
# Default pop limit of cube pruning.
_POP_LIMIT = 400


def read_experiment_config(path: str, output: str | None = None) -> ExperimentConfig:
    """Read a configuration and check it.

    Args:
        path: the file.
        output: the output folder; None for the one in the file.

    Raises:
        DataError: the file cannot be read or is not TOML; a key is unknown (the error names the most similar one) or
            missing, a value has the wrong type or is out of range, a grid is empty, a file is missing, or a method is
            unknown or lacks an input.
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except RecursionError as error:
        raise DataError(path, "is nested too deeply") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, f"not TOML ({error})") from error
    return parse_config(values, path, output)


def parse_config(values: Mapping[str, Any], path: str, output: str | None = None) -> ExperimentConfig:
    """Check the values of a configuration file and return the configuration; see `read_experiment_config`."""
    top = ConfigTable(path, "", values, _KNOWN)
    data = top.table("data", ("bitext", "dev", "tests"))
    bitext = data.section("bitext", TextPair) if "bitext" in data else None
    dev = data.section("dev", TextPair)
    tests = _tests(data)
    moses = top.section("moses", FinishedModel) if "moses" in top else None
    if moses is None and bitext is None:
        raise DataError(path, "give [moses] with a finished model, or [data.bitext] to make one from")
    prune = _prune(top) if "prune" in top else None
    model = _model(top)
    config = top.settings(
        ExperimentConfig,
        path=path,
        name=os.path.splitext(os.path.basename(path))[0],
        output=output or top.output("output", "experiment"),
        bitext=bitext,
        dev=dev,
        tests=tests,
        moses=moses,
        build=top.section("build", BuildSettings),
        model=model,
        prune=prune,
        annotate=_annotate(top, model) if "annotate" in top else None,
        ladder=_ladder(top) if "ladder" in top else None,
        neighbours=top.section("neighbours", NeighbourSettings) if "neighbours" in top else None,
        search=_search(top),
    )
    if not (config.prune or config.annotate or config.ladder or config.neighbours):
        raise DataError(path, "nothing to do: give at least one of [prune], [annotate], [ladder] and [neighbours]")
    if SIGNIFICANCE in config.all_needs and bitext is None:
        raise DataError(path, "significance is tested on the bitext that the table was made from: give [data.bitext]")
    if config.counts_uses and bitext is None:
        raise DataError(path, "uses are counted in forced decoding of the bitext that the table was made from: give "
                              "[data.bitext]")  # fmt: skip
    return config


def _tests(data: ConfigTable) -> dict[str, TextPair]:
    tests = data.table("tests", None)
    pairs = {name: tests.section(name, TextPair) for name in tests}
    for name in pairs:
        if name in (DEV, ALL):
            raise tests.error(name, "is the name of another text; choose a different one")
    if not pairs:
        raise data.error("tests", "is empty; give at least one [data.tests.NAME]")
    return pairs


def _search(top: ConfigTable) -> SearchSettings:
    search = top.section("search", SearchSettings)
    if search.algorithm == "cube":
        return search if search.pop_limit else replace(search, pop_limit=_POP_LIMIT)
    if search.pop_limit is not None:
        message = f"limits cube pruning, and algorithm is {search.algorithm!r}; leave it out"
        raise top.table("search", None).error("pop_limit", message)
    return search


def _model(top: ConfigTable) -> EncoderSettings:
    own = ("encoder", "dimension", "loss", "iterations", "pretrain_iterations")
    pretrained = ("folder", "second_folder", "text_encoder")
    table = top.table("model", (*own, *pretrained, "min_pair_count", "source_text", "target_text", "options"))
    encoder = table.section("text_encoder", PretrainedEncoderSettings) if "text_encoder" in table else None
    chosen = table.settings(EncoderSettings, text_encoder=encoder)
    if encoder and chosen.folder:
        raise table.error("text_encoder", "takes the place of model.folder; give one of them")
    if chosen.second_folder and not chosen.folder:
        raise table.error("second_folder", "is the translator of the other direction; give the first as model.folder")
    default = TrainingSettings.for_loss(chosen.loss, chosen.encoder)
    fixed = (*own, "seed", "freeze_encoders", "loss_options", "encoder_options")
    others = [field.name for field in fields(TrainingSettings) if field.name not in fixed]
    options = table.table("options", (*others, *default.loss_options, *default.encoder_options))
    dimension = chosen.dimension if "dimension" in table else default.dimension
    chosen = replace(chosen, dimension=dimension, options=dict(options.values))
    _check_training(top.path, "[model]", chosen, dimension)
    return chosen


def _check_training(path: str, what: str, model: EncoderSettings, dimension: int) -> None:
    """Raise DataError for settings that cannot train a model of this dimension; `what` names their key."""
    try:
        TrainingSettings.for_loss(
            model.loss, model.encoder, dimension=dimension, pretrain_iterations=model.pretrain_iterations,
            **model.options,
        )  # fmt: skip
    except ValueError as error:
        raise DataError(path, f"{what}: {error}") from error


def _prune(top: ConfigTable) -> PruningGrid:
    grid = top.section("prune", PruningGrid)
    for method in (*grid.methods, *grid.thresholds):
        key = "prune.methods" if method in grid.methods else "prune.thresholds"
        _check_method(top, key, method, grid.combine)
        _check_thresholds(top, method, grid)
    cut = {method for method in grid.methods if parse_method(method, None).thresholds or method in grid.thresholds}
    if not grid.sizes and set(grid.methods) - cut:
        raise top.error("prune.sizes", "is empty; give shares of the entries to keep, as in sizes = [0.28, 0.1]")
    if not grid.methods and not grid.thresholds:
        raise top.error("prune.methods", 'is empty; give methods, as in ["composition+semantic"], or leave [prune] out')
    for key, values in (("combine", grid.combine), ("protect", grid.protect)):
        if not values:
            raise top.error(f"prune.{key}", "is empty")
    return replace(grid, protect=tuple(dict.fromkeys(grid.protect)))


def _check_method(top: ConfigTable, key: str, method: str, combine: tuple[str, ...]) -> None:
    try:
        combinations_of(method, combine)
        needs = parse_method(method, None).needs
    except ValueError as error:
        raise top.error(key, f"{error}") from error
    if needs & {PARALLEL, SYNTAX}:
        raise top.error(
            key, f"the method {method} is not supported in experiments, which have no classifier or syntactic encoder"
        )


def _check_method_of_sizes(top: ConfigTable, key: str, method: str) -> None:
    """Raise DataError for a method that cannot prune a table to a given size."""
    _check_method(top, key, method, ("product",))
    if parse_method(method, None).thresholds:
        raise top.error(key, "has thresholds, but the table is cut at a size")


def _check_thresholds(top: ConfigTable, method: str, grid: PruningGrid) -> None:
    values = grid.thresholds.get(method, ())
    for combination in combinations_of(method, grid.combine):
        for threshold in (None, *map(Threshold.of, values)):
            try:
                parse_method(method, combination or None).check_threshold(threshold)
            except ValueError as error:
                key = "prune.methods" if threshold is None else f"prune.thresholds.{method}"
                raise top.error(key, f"{error}") from error


def _annotate(top: ConfigTable, model: EncoderSettings) -> AnnotationSettings:
    own = 0 if model.exists else model.dimension
    settings = top.section("annotate", AnnotationSettings, dimensions=(own,))
    if not settings.sizes:
        raise top.error("annotate.sizes", "is empty")
    if not settings.columns and len(settings.sizes) < 2:
        raise top.error("annotate.columns", "is empty, and there is one size only: nothing to compare")
    if not model.exists and min(settings.dimensions) < 1:
        raise top.error("annotate.dimensions", f"holds {min(settings.dimensions)}; expected 1 or more")
    for dimension in filter(None, settings.dimensions):
        _check_training(top.path, "annotate.dimensions", model, dimension)
    _check_method_of_sizes(top, "annotate.method", settings.method)
    return settings


def _ladder(top: ConfigTable) -> LadderSettings:
    settings = top.section("ladder", LadderSettings)
    if not (settings.columns or settings.augment or settings.rerank or settings.sizes):
        raise top.error("ladder", "has no steps: give at least one of columns, augment, rerank and sizes")
    if 1.0 in settings.sizes:
        raise top.error("ladder.sizes", "holds 1; the full table is there already")
    _check_method_of_sizes(top, "ladder.method", settings.method)
    return settings
