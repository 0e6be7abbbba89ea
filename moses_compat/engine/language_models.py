"""Estimation of language models from files of sentences, and loading of ARPA text or kenlm's files for a decoder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moses_compat.corpora.texts import corpus_sentences, refuse_empty
from moses_compat.engine.arpa import load_language_model, read_order, write_arpa
from moses_compat.engine.kenlm_files import (
    PROBING,
    has_rest_costs,
    hashed_model,
    is_kenlm_binary,
    map_file,
    read_header,
    trie_model,
)
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.automaton import LanguageModel
from phrasetool.smt.language_model.combination import LanguageModels
from phrasetool.smt.language_model.hashed import HashedModel
from phrasetool.smt.language_model.kenlm_model import KenlmModel
from phrasetool.smt.language_model.kneser_ney import Discounts, estimate_language_model, estimate_on_disk
from phrasetool.smt.language_model.ngram_counts import MARKERS, DiskText
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, TargetModel
from phrasetool.watch import Watch, raise_or_warn

# Share of tokens that a language model must know in a text of its language.
_LEAST_KNOWN = 0.6
# Upper bounds of memory in bytes: per word, while positions are sorted and probabilities computed; per n-gram, without
# its words.
_WORD, _NGRAM = 115, 40


def order_of(path: str) -> int:
    """Return the order of the language model in a file, ARPA text or binary.

    Raises:
        DataError: the file is neither, or its order is 1.
    """
    if is_kenlm_binary(path):
        return len(read_header(path, map_file(path)).counts)
    with Input(path) as source:
        order = read_order(source)
    check_order(path, order)
    return order


def check_order(path: str, order: int) -> None:
    """Refuse a model without contexts, as kenlm and therefore Moses do.

    Raises:
        DataError: the order is 1.
    """
    if order < 2:
        raise DataError(path, "a language model of order 1, which Moses refuses; expected order 2 or more")


def load_language_models(
    paths: Sequence[str], vocabulary: Collection[bytes], orders: Sequence[int | None] = ()
) -> TargetModel:
    """Read one or several language models.

    Args:
        paths: ARPA text, plain or gzip, or binary files of kenlm.
        vocabulary: the only words that are scored; all others become unknown.
        orders: required order of each model; None, or an empty sequence, allows any order.

    Raises:
        DataError: a file cannot be read, is damaged, is of an unsupported kind, or has another order or order 1.
    """
    models = [_load(path, vocabulary) for path in paths]
    for path, model in zip(paths, models, strict=True):
        check_order(path, model.order)
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


def open_kenlm_model(path: str, words: Collection[bytes] = ()) -> KenlmModel:
    """Load a model with kenlm, after the checks of phrasetool's own reader: kenlm does not detect damaged binary files.

    Args:
        path: ARPA text or a binary file of kenlm.
        words: words whose n-grams are checked in a trie.

    Raises:
        DataError: the file is damaged, or kenlm does not accept it as a language model.
        ModuleNotFoundError: the package kenlm is not installed.
    """
    if is_kenlm_binary(path) and not has_rest_costs(map_file(path)):
        load_language_models((path,), words)
    return KenlmModel.load(path)


def check_known_words(model: KenlmModel, counts: Mapping[bytes, int], text: str, force: bool, watch: Watch) -> None:
    """Refuse a model that knows few words of a text, because it is of another language or another tokenisation.

    Args:
        model: the model.
        counts: words of the text, with the number of their occurrences; a text without words is accepted.
        text: name of the text in messages.
        force: warn instead of raising an error.
        watch: receives the warning.

    Raises:
        PhraseToolError: the model knows less than `_LEAST_KNOWN` of the tokens.
    """
    if not (total := sum(counts.values())):
        return
    share = sum(count for word, count in counts.items() if word in model) / total
    if share < _LEAST_KNOWN:
        message = (
            f"{model.path}: knows {share:.0%} of the tokens of {text}, expected at least {_LEAST_KNOWN:.0%}: is it of "
            "that language, and are its words tokenised and escaped alike?"
        )
        raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


def _load(path: str, vocabulary: Collection[bytes]) -> LanguageModel | HashedModel:
    if not is_kenlm_binary(path):
        return load_language_model(path, vocabulary)
    data = map_file(path)
    header = read_header(path, data)
    try:
        if header.kind != PROBING:
            return trie_model(path, data, header, vocabulary)
        model = hashed_model(path, data, header)
        for marker in (BEGIN_WORD, END_WORD):
            if not model.ids([marker])[0]:
                raise DataError(path, f"the language model has no {marker.decode()}")
        return model
    except ValueError as error:
        raise DataError(path, str(error)) from error


@dataclass(frozen=True)
class Estimated:
    """Statistics of an estimated language model.

    Attributes:
        sentences: number of sentences in the corpus.
        ngrams, counted: number of n-grams of each order, in the model and in the corpus.
        discounts: one per order.
        on_disk: whether temporary files were needed.
    """

    sentences: int
    ngrams: list[int]
    counted: list[int]
    discounts: list[Discounts]
    on_disk: bool


def estimate_arpa(
    paths: Sequence[str], output: Output, order: int, prune: Sequence[int], memory: int, folder: str | None = None
) -> Estimated:
    """Estimate a language model and write it as ARPA text.

    Args:
        paths: the corpus, files with one sentence per line; `-` for standard input.
        output: receives the text.
        order, prune: as for `kneser_ney.estimate_language_model`.
        memory: bytes for counts and probabilities, in addition to the words; larger data are kept in unnamed temporary
            files.  The output does not depend on it.
        folder: folder of the temporary files; None for the system's default.

    Raises:
        DataError: a file cannot be read, has no words, or contains a reserved word of the model.
        PhraseToolError: a disk is full.
    """
    symbols, parts, disk = Symbols(), [Phrases.from_lists([])], None
    sentences = words = 0
    most = memory // (_WORD + sum(_NGRAM + 4 * n for n in range(2, order + 1)))
    for part in corpus_sentences(paths, symbols, MARKERS):
        sentences += len(part)
        words += len(part.words)
        if disk is None and words + 2 * sentences > most:
            disk = DiskText(folder, memory)
            for earlier in parts:
                disk.append(earlier)
            parts = []
        if disk is None:
            parts.append(part)
        else:
            disk.append(part)
    refuse_empty(paths, sentences, words)
    if disk is None:
        whole = Phrases.concatenate(parts)
        parts = []
        estimate = estimate_language_model(symbols.words, whole, order, prune)
        write_arpa(estimate.model, output)
        sizes = [len(table) for table in estimate.model.tables]
        return Estimated(sentences, sizes, estimate.counted, estimate.discounts, False)
    disk_estimate = estimate_on_disk(symbols.words, disk, order, prune)
    write_arpa(disk_estimate.model, output)
    sizes = [len(table) for table in disk_estimate.model.tables]
    return Estimated(sentences, sizes, disk_estimate.counted, disk_estimate.discounts, True)


_CHUNK = 1 << 22
_FALLBACK = "Substituting fallback discounts for order"


def find_lmplz() -> str | None:
    """Return the path of lmplz, or None if it is not on the PATH."""
    return shutil.which("lmplz")


def run_lmplz(
    program: str, blocks: Iterable[bytes], output: Output, order: int, prune: Sequence[int], memory: int,
    folder: str | None = None,
) -> list[int]:  # fmt: skip
    """Estimate a language model with lmplz, with --discount_fallback.

    Args:
        program: the path of lmplz.
        blocks: the corpus, whole lines.
        output: receives the ARPA text, compressed according to its name.
        order: the length of the longest n-grams.
        prune: as lmplz --prune.
        memory: bytes for lmplz, whose default is 80 % of the machine's memory; larger data are sorted on disk.
        folder: folder of its temporary files; None for its default.

    Returns:
        The orders whose discounts could not be estimated and were replaced.

    Raises:
        PhraseToolError: lmplz failed; the message is that of lmplz.
    """
    pruning = ["--prune", *map(str, prune)] if prune else []
    folder_options = ["-T", os.path.join(folder, "")] if folder else []
    command = [program, "-o", str(order), "-S", f"{memory}b", *folder_options, *pruning, "--discount_fallback"]
    messages: list[str] = []
    errors: list[Exception] = []

    def feed() -> None:
        assert process.stdin
        try:
            # If lmplz ends early, its own message is reported instead.
            with contextlib.suppress(BrokenPipeError), process.stdin as stream:
                for block in blocks:
                    stream.write(block)
        except Exception as error:
            errors.append(error)
            process.kill()

    def listen() -> None:
        assert process.stderr
        messages.extend(line.decode(errors="replace").strip() for line in process.stderr)

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        feeder, listener = (threading.Thread(target=work, daemon=True) for work in (feed, listen))
        try:
            feeder.start()
            listener.start()
            assert process.stdout
            while chunk := process.stdout.read(_CHUNK):
                output.write_text(chunk)
        except BaseException:
            process.kill()
            feeder.join(1.0)
            raise
        feeder.join()
        listener.join()
    if errors:
        raise errors[0]
    if process.returncode:
        error_lines = [line for line in messages if line and not line.startswith("=")]
        raise PhraseToolError(f"{program}: {error_lines[-1] if error_lines else f'exit status {process.returncode}'}")
    # lmplz counts orders from 0 in this message.
    return [int(line[len(_FALLBACK) :].split(":")[0]) + 1 for line in messages if line.startswith(_FALLBACK)]
