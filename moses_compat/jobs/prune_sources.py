"""Where the similarities of a pruning run come from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import (
    ColumnSimilarities,
    FileSimilarities,
    ModelSimilarities,
    SimilaritySource,
)
from phrasetool.watch import NOBODY, Watch


def similarity_source(request: PruneRequest, watch: Watch = NOBODY) -> SimilaritySource:
    """Where the similarities come from; whether a model fits the table is told to `watch`.

    Raises:
        ModelError: the model cannot be loaded.
    """
    if request.columns:
        return ColumnSimilarities(*request.columns, request.scale)
    if request.scores and os.path.exists(request.scores):
        return FileSimilarities(request.scores)
    if request.encoder:
        from moses_compat.measures.encoded import encoder_similarities

        table = request.table
        return encoder_similarities(request.encoder, table, request.open_table, request.scan(watch), watch)
    from phrasetool.models.storage import load_bilingual_model

    check = FitCheck(request.model_folder, watch, request.force)
    return ModelSimilarities(load_bilingual_model(request.model_folder), check)


def fit_of_source(similarities: SimilaritySource | None) -> Callable[[], dict[str, Any]]:
    """What is known, in the end, of how a model or an encoder fits the table."""

    def known() -> dict[str, Any]:
        if isinstance(similarities, ModelSimilarities):
            fit: Any = similarities.check.fit if similarities.check else None
        else:
            # An encoder's, which was measured before.
            fit = getattr(similarities, "fit", None)
        found: dict[str, Any] = fit.as_dict() if fit else {}
        return found

    return known


def kept_path(request: PruneRequest, similarities: SimilaritySource) -> str | None:
    """Where the similarities are to be kept, if they are and are not there."""
    return request.scores if not isinstance(similarities, FileSimilarities) else None
