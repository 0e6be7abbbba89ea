"""Sources of similarities and scores for a table, from a model of any family in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.similarities import LikelihoodRequest, ModelSimilarities, SimilaritySource
from moses_compat.measures.translator_scores import NeuralScores
from moses_compat.measures.windowed_scores import PairScores
from phrasetool.errors import ModelError
from phrasetool.models.saved_model import load_saved_model, read_model_config, wrong_family
from phrasetool.phrase_encoder.model import CPU, BilingualModel
from phrasetool.translator.settings import READINGS

# Number of columns of a model of phrase pairs, and of all other models.
_SIMILARITIES, _SCORES = 2, 1


def is_translator(folder: str) -> bool:
    """Return whether the model in a folder is a translator.

    Raises:
        ModelError: the folder has no model.
    """
    return _kind(folder) == "continuous"


def is_classifier(folder: str) -> bool:
    """Return whether the model in a folder is a classifier of sentence pairs.

    Raises:
        ModelError: the folder has no model.
    """
    return _kind(folder) == "parallel"


def is_syntax(folder: str) -> bool:
    """Return whether the model in a folder is a syntactic encoder.

    Raises:
        ModelError: the folder has no model.
    """
    return _kind(folder) == "syntax"


def gives_probabilities(folder: str) -> bool:
    """Return whether the model in a folder computes probabilities of pairs instead of similarities.

    Raises:
        ModelError: the folder has no model.
    """
    return is_translator(folder) or is_classifier(folder)


def dimension_of_model(folder: str) -> int:
    """Return the dimension of the phrase vectors of the model in a folder; 0 for other models.

    Raises:
        ModelError: the folder has no model, or the model is damaged.
    """
    model = load_saved_model(folder)
    return model.dimension if isinstance(model, BilingualModel) else 0


def columns_of_model(folder: str, likelihood: LikelihoodRequest | None = None) -> int:
    """Return the number of columns of a model's scores, see `model_sources`.

    Raises:
        ModelError: the folder has no model.
    """
    if _kind(folder) == BilingualModel.name:
        return _SIMILARITIES
    return _SCORES * sources_of_model(folder, likelihood)


def model_source(
    check: FitCheck, reading: str = READINGS[0], threads: int = 1, folder: str | None = None, device: str = CPU
) -> SimilaritySource:
    """Load the model in a check's folder, and return its similarity source.

    Args:
        check: the check that the model matches the table.
        reading: for a translator, see `NeuralScores`.
        threads, folder: for a translator, a classifier or a syntactic encoder, see `WindowedScores`.
        device: for a phrase encoder, see `BilingualModel.scorer`.

    Raises:
        ModelError: the model cannot be loaded, is of an unsupported kind, or does not support the device.
    """
    if device != CPU and (gives_probabilities(check.folder) or is_syntax(check.folder)):
        raise ModelError(f"{check.folder}: scores tables on a CPU alone; only encoders of phrases do on {device}")
    model = load_saved_model(check.folder)
    if isinstance(model, BilingualModel):
        if device != CPU:
            check.watch.warn(
                f"{check.folder} encodes on {device}: similarities differ from those of a CPU in the last of six "
                "digits, and more where two trees of a phrase are equally good"
            )
        return ModelSimilarities(model, check, device)
    # Each family has modules that only its own models need.
    if model.name == "continuous":
        from phrasetool.translator.model import TranslatorModel

        assert isinstance(model, TranslatorModel)
        return NeuralScores(model, check, reading, threads, folder)
    if model.name == "parallel":
        from moses_compat.measures.text_model_scores import ParallelScores
        from phrasetool.pair_classifier.model import PairClassifierModel

        assert isinstance(model, PairClassifierModel)
        return ParallelScores(model, check, threads, folder)
    if model.name == "syntax":
        from moses_compat.measures.text_model_scores import SyntaxScores
        from phrasetool.syntax.model import SyntaxModel

        assert isinstance(model, SyntaxModel)
        return SyntaxScores(model, check, threads, folder)
    if model.column:
        return PairScores(model, check, threads, folder)
    raise wrong_family(check.folder, model.name, BilingualModel.name)


def model_sources(
    check: FitCheck,
    reading: str,
    threads: int,
    folders: Sequence[str | None],
    likelihood: LikelihoodRequest | None = None,
    device: str = CPU,
) -> list[SimilaritySource]:
    """Load the model in a check's folder, and return its similarity source, or several for a syntactic encoder.

    Args:
        check, reading, threads, device: see `model_source`.
        folders: folder of each source, see `WindowedScores`; as many as `sources_of_model` returns.
        likelihood: the requested columns of a syntactic encoder; only the cosine if None.

    Raises:
        ModelError: as `model_source`; or the tagger cannot be loaded.
        ValueError: the encoder or the tagger does not support a language.
    """
    if likelihood is None or not is_syntax(check.folder):
        return [model_source(check, reading, threads, folders[0], device)]
    from moses_compat.measures.text_model_scores import syntax_sources

    return [*syntax_sources(check, threads, folders, likelihood)]


def sources_of_model(folder: str, likelihood: LikelihoodRequest | None = None) -> int:
    """Return the number of similarity sources of the model in a folder.

    Raises:
        ModelError: the folder has no model.
    """
    return len(likelihood.kinds) if likelihood and is_syntax(folder) else 1


def _kind(folder: str) -> str:
    return str(read_model_config(Path(folder))["model"])


def both_directions(models: Sequence[SimilaritySource], folders: Sequence[str]) -> SimilaritySource:
    """Return the similarities of one model, or of translators in both directions.

    Raises:
        ModelError: there are several models, and one is not a translator.
    """
    from moses_compat.measures.translator_scores import NeuralSimilarities
    from moses_compat.measures.windowed_scores import WindowedScores

    if len(models) == 1:
        return NeuralSimilarities((models[0],)) if isinstance(models[0], WindowedScores) else models[0]
    translators = [model for model in models if isinstance(model, NeuralScores)]
    if not translators:
        raise ModelError(f"{folders[0]}: computes both directions; only translators can be combined")
    if len(translators) < len(models):
        folder = folders[int(isinstance(models[0], NeuralScores))]
        raise ModelError(f"{folder}: not a translator; two models must be translators of the two directions")
    return NeuralSimilarities(tuple(translators))
