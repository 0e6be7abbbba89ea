"""What a model says of the entries of a table, whatever family it is of."""

from __future__ import annotations

from pathlib import Path

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.neural.neural_scores import NeuralScores
from moses_compat.measures.similarities import ModelSimilarities, SimilaritySource
from phrasetool.models.storage import (
    load_bilingual_model,
    load_neural_model,
    load_parallel_model,
    load_syntax_model,
    read_model_config,
)
from phrasetool.neural.architecture import READINGS

# Columns of a model of phrase pairs, and of a translator, a classifier or an encoder of syntax.
_SIMILARITIES, _SCORES = 2, 1


def is_translator(folder: str) -> bool:
    """Whether the model in a folder is a translator.

    Raises:
        ModelError: there is no model.
    """
    return _kind(folder) == "continuous"


def is_classifier(folder: str) -> bool:
    """Whether the model in a folder is a classifier of sentence pairs.

    Raises:
        ModelError: there is no model.
    """
    return _kind(folder) == "parallel"


def is_syntax(folder: str) -> bool:
    """Whether the model in a folder is a syntactic encoder.

    Raises:
        ModelError: there is no model.
    """
    return _kind(folder) == "syntax"


def columns_of_model(folder: str) -> int:
    """How many columns its opinion has.

    Raises:
        ModelError: there is no model.
    """
    return _SCORES if _kind(folder) in ("continuous", "parallel", "syntax") else _SIMILARITIES


def model_source(
    check: FitCheck, reading: str = READINGS[0], threads: int = 1, folder: str | None = None
) -> SimilaritySource:
    """Load the model that a check names.

    Args:
        check: whether it fits.
        reading: of a translator, see `NeuralScores`.
        threads, folder: of a translator, a classifier or an encoder of syntax, see `WindowedScores`.

    Raises:
        ModelError: it cannot be loaded, or is of another kind.
    """
    if is_translator(check.folder):
        return NeuralScores(load_neural_model(check.folder), check, reading, threads, folder)
    if is_classifier(check.folder):
        # Here: its modules are for those who have one.
        from moses_compat.measures.neural.parallel_scores import ParallelScores

        return ParallelScores(load_parallel_model(check.folder), check, threads, folder)
    if is_syntax(check.folder):
        from moses_compat.measures.neural.syntax_scores import SyntaxScores

        return SyntaxScores(load_syntax_model(check.folder), check, threads, folder)
    return ModelSimilarities(load_bilingual_model(check.folder), check)


def _kind(folder: str) -> str:
    return str(read_model_config(Path(folder))["model"])
