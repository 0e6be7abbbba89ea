"""Where the similarities of a pruning run come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import (
    ColumnSimilarities,
    FileSimilarities,
    SimilaritySource,
)
from phrasetool.errors import ModelError
from phrasetool.pruning.measures import OPINIONS, PARALLEL, SIMILARITIES, SYNTAX, Measure
from phrasetool.pruning.methods import Method
from phrasetool.watch import NOBODY, Watch


def similarity_sources(
    request: PruneRequest, method: Method, watch: Watch = NOBODY
) -> dict[Measure[np.float32], SimilaritySource]:
    """Where the similarities come from that a method asks for; whether models fit the table is told to `watch`.

    What is similar in meaning may be said by any model, by columns, by saved similarities or by a sentence encoder;
    what an encoder of syntax or a classifier would say, by one of them alone, or, if a method asks for nothing else, by
    the same columns or files.

    Raises:
        ModelError: a model cannot be loaded, or is not what the method asks for.
    """
    wanted = [measure for measure in OPINIONS if measure in method.needs]
    if not wanted:
        # Modules of models are slow to import.
        return {}
    if len(wanted) == 1 and (given := _given(request, watch)):
        return {wanted[0]: given}
    places, sources = list(range(len(request.folders))), dict[Measure[np.float32], SimilaritySource]()
    for measure, good, what in _judges():
        if measure not in wanted:
            continue
        judges = [place for place in places if good(request.folders[place])]
        if not judges:
            name = next(part.name for part in method.parts if measure in part.needs)
            raise ModelError(
                f"{request.model_folder}: not {what}, which the method {name} asks", remedy=f"train {what}"
            )
        sources[measure] = _of_models(request, judges[:1], watch)
        places.remove(judges[0])
    if SIMILARITIES in wanted:
        meant = _given(request, watch) or _of_models(request, places, watch)
        return {SIMILARITIES: meant, **sources}
    if sources and places:
        raise ModelError(f"{request.folders[places[0]]}: the method {method.name} has no use for this model")
    return sources


def _judges() -> tuple[tuple[Measure[np.float32], Callable[[str], bool], str], ...]:
    """Criteria with a kind of model of their own: what they measure, whether a folder holds such a model, its name."""
    from moses_compat.measures.model_sources import is_classifier, is_syntax

    return (PARALLEL, is_classifier, "a classifier of sentence pairs"), (SYNTAX, is_syntax, "a syntactic encoder")


def _given(request: PruneRequest, watch: Watch) -> SimilaritySource | None:
    """Similarities that are there, or those of a sentence encoder; None where models are asked."""
    if request.columns:
        return ColumnSimilarities(*request.columns, request.scale)
    if request.scores and os.path.exists(request.scores):
        return FileSimilarities(request.scores)
    if request.encoder:
        from moses_compat.measures.encoded import encoder_similarities

        table = request.table
        return encoder_similarities(request.encoder, table, request.open_table, request.scan(watch), watch)
    return None


def similarity_source(request: PruneRequest, watch: Watch = NOBODY) -> SimilaritySource:
    """Where similarities of meaning come from; whether a model fits the table is told to `watch`.

    Raises:
        ModelError: the model cannot be loaded, or is no translator where a second one is given.
    """
    return _given(request, watch) or _of_models(request, range(len(request.folders)), watch)


def _of_models(request: PruneRequest, places: Sequence[int], watch: Watch) -> SimilaritySource:
    """Of some of the request's folders: one model, or two translators.

    Raises:
        ModelError: there is none.
    """
    from moses_compat.measures.model_sources import model_source

    if not places:
        raise ModelError(f"{request.model_folder}: the method asks for meaning, too; name a model that says it with -m")
    folders = [request.folders[place] for place in places]
    checks = [FitCheck(folder, watch, request.force) for folder in folders]
    models = [
        model_source(check, request.reading, request.threads, request.part_folders[place], request.device)
        for place, check in zip(places, checks, strict=True)
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
