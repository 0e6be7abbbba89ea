"""What a model says of the entries of a table, whatever family it is of."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeGuard

from moses_compat.files.names import scratch_place
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.neural_scores import NeuralScores
from moses_compat.measures.similarities import ModelSimilarities, SimilaritySource
from phrasetool.models.storage import load_bilingual_model, load_neural_model, read_model_config
from phrasetool.neural.architecture import READINGS

# Columns of a model of phrase pairs, and of a translator.
_SIMILARITIES, _SCORES = 2, 1


def is_translator(folder: str) -> bool:
    """Whether the model in a folder is a translator.

    Raises:
        ModelError: there is no model.
    """
    return bool(read_model_config(Path(folder))["model"] == "continuous")


def columns_of_model(folder: str) -> int:
    """How many columns its opinion has.

    Raises:
        ModelError: there is no model.
    """
    return _SCORES if is_translator(folder) else _SIMILARITIES


def parts_beside(output: str, number: int) -> str | None:
    """The folder for the finished scores of a translator; None where there is no place, or no Parquet.

    Args:
        output: the file that is made of them.
        number: of the model, from 1.
    """
    if scratch_place(output) is None or not importlib.util.find_spec("pyarrow"):
        return None
    return f"{output}.scores-{number}"


def model_source(
    check: FitCheck, reading: str = READINGS[0], threads: int = 1, folder: str | None = None
) -> SimilaritySource:
    """Load the model that a check names.

    Args:
        check: whether it fits.
        reading, threads, folder: of a translator, see `NeuralScores`.

    Raises:
        ModelError: it cannot be loaded, or is of another kind.
    """
    if is_translator(check.folder):
        return NeuralScores(load_neural_model(check.folder), check, reading, threads, folder)
    return ModelSimilarities(load_bilingual_model(check.folder), check)


def are_translators(sources: Sequence[SimilaritySource]) -> TypeGuard[Sequence[NeuralScores]]:
    """Whether all of them are."""
    return all(isinstance(source, NeuralScores) for source in sources)


@contextlib.contextmanager
def finishing(folders: Sequence[str | None]) -> Iterator[None]:
    """Work whose finished scores are kept in some folders until it ends well; torch has its threads back after it."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(threads)
    if there := [folder for folder in folders if folder and Path(folder).is_dir()]:
        from moses_compat.measures.score_parts import remove_parts

        remove_parts(there)
