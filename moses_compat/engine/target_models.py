"""The language models that a moses.ini names, ARPA text or kenlm's binary files, for a decoder."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moses_compat.engine.arpa import load_language_model, read_order
from moses_compat.engine.kenlm_files import PROBING, hashed_model, is_kenlm_binary, mapped, read_head, trie_model
from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.smt.language_model.automaton import LanguageModel
from phrasetool.smt.language_model.hashed import HashedModel
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD
from phrasetool.smt.language_model.several_models import LanguageModels
from phrasetool.smt.language_model.target_model import TargetModel


def order_of(path: str) -> int:
    """The order of the language model in a file, ARPA text or binary.

    Raises:
        DataError: it is neither.
    """
    if is_kenlm_binary(path):
        return len(read_head(path, mapped(path)).counts)
    with Input(path) as source:
        return read_order(source)


def load_language_models(
    paths: Sequence[str], vocabulary: Collection[bytes], orders: Sequence[int | None] = ()
) -> TargetModel:
    """Read one language model or several.

    Args:
        paths: ARPA text, plain or gzip, or binary files of kenlm.
        vocabulary: the only words they will be asked for; the others become unknown.
        orders: that each must have; None, or nothing at all, for any.

    Raises:
        DataError: a file cannot be read, is damaged, is of a kind that is not supported or of another order.
    """
    models = [_load(path, vocabulary) for path in paths]
    for path, model, order in zip(paths, models, orders, strict=False):
        if order not in (None, model.order):
            message = f"the language model has order {model.order}, but the ini limits it to {order}; use KENLM"
            raise DataError(path, f"{message}, which always uses the whole model, or a model of that order")
    if len(models) == 1 and isinstance(models[0], LanguageModel):
        return models[0]
    try:
        return LanguageModels(models, vocabulary)
    except ValueError as error:
        raise DataError(" and ".join(paths), str(error)) from error


def _load(path: str, vocabulary: Collection[bytes]) -> LanguageModel | HashedModel:
    if not is_kenlm_binary(path):
        return load_language_model(path, vocabulary)
    data = mapped(path)
    head = read_head(path, data)
    try:
        if head.kind != PROBING:
            return trie_model(path, data, head, vocabulary)
        model = hashed_model(path, data, head)
        for marker in (BEGIN_WORD, END_WORD):
            if not model.ids([marker])[0]:
                raise DataError(path, f"the language model has no {marker.decode()}")
        return model
    except ValueError as error:
        raise DataError(path, str(error)) from error
