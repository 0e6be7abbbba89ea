"""Where the similarities of a pruning run come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import (
    ColumnSimilarities,
    FileSimilarities,
    SimilaritySource,
)
from phrasetool.errors import ModelError
from phrasetool.pruning.criteria import Parallel, Syntactic
from phrasetool.watch import NOBODY, Watch


def similarity_source(request: PruneRequest, watch: Watch = NOBODY) -> SimilaritySource:
    """Where the similarities come from; whether a model fits the table is told to `watch`.

    Raises:
        ModelError: the model cannot be loaded, is no translator where a second one is given, or not what the method
            asks for.
    """
    if request.columns:
        return ColumnSimilarities(*request.columns, request.scale)
    if request.scores and os.path.exists(request.scores):
        return FileSimilarities(request.scores)
    if request.encoder:
        from moses_compat.measures.encoded import encoder_similarities

        table = request.table
        return encoder_similarities(request.encoder, table, request.open_table, request.scan(watch), watch)
    from moses_compat.measures.model_sources import is_classifier, is_syntax, model_source

    asked = request.parsed_method().names
    for method, good, what in (
        (Parallel.name, is_classifier, "a classifier of sentence pairs"),
        (Syntactic.name, is_syntax, "a syntactic encoder"),
    ):
        if method in asked and not good(request.model_folder):
            message = f"{request.model_folder}: not {what}, which the method {method} asks"
            raise ModelError(message, remedy=f"train {what}")
    folders = [request.model_folder, *([request.second_model] if request.second_model else [])]
    models = [
        model_source(FitCheck(folder, watch, request.force), request.reading, request.threads, parts, request.device)
        for folder, parts in zip(folders, request.part_folders, strict=False)
    ]
    return both_directions(models, folders)


def both_directions(models: Sequence[SimilaritySource], folders: Sequence[str]) -> SimilaritySource:
    """The similarities of one model, or of translators.

    Raises:
        ModelError: there are several, and one is no translator.
    """
    from moses_compat.measures.neural.neural_scores import NeuralScores
    from moses_compat.measures.neural.neural_similarities import NeuralSimilarities
    from moses_compat.measures.neural.score_windows import WindowedScores

    if len(models) == 1:
        return NeuralSimilarities((models[0],)) if isinstance(models[0], WindowedScores) else models[0]
    translators = [model for model in models if isinstance(model, NeuralScores)]
    if not translators:
        raise ModelError(f"{folders[0]}: gives both similarities by itself; a second model is for translators")
    if len(translators) < len(models):
        other = folders[int(isinstance(models[0], NeuralScores))]
        raise ModelError(f"{other}: no translator; two models are translators of the two directions")
    return NeuralSimilarities(tuple(translators))


def fit_of_source(similarities: SimilaritySource | None) -> Callable[[], dict[str, Any]]:
    """What is known, in the end, of how a model or an encoder fits the table."""

    def known() -> dict[str, Any]:
        check = getattr(similarities, "check", None)
        # An encoder's was measured before.
        fit: Any = check.fit if isinstance(check, FitCheck) else getattr(similarities, "fit", None)
        found: dict[str, Any] = fit.as_dict() if fit else {}
        return found

    return known


def kept_path(request: PruneRequest, similarities: SimilaritySource) -> str | None:
    """Where the similarities are to be kept, if they are and are not there."""
    return request.scores if not isinstance(similarities, FileSimilarities) else None
