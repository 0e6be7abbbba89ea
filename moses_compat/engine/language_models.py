"""Language models: estimated from the sentences of files, and loaded for a decoder from ARPA text or kenlm's files."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from moses_compat.corpora.texts import corpus_sentences, refuse_empty
from moses_compat.engine.arpa import load_language_model, read_order, write_arpa
from moses_compat.engine.kenlm_files import PROBING, hashed_model, is_kenlm_binary, mapped, read_head, trie_model
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.automaton import LanguageModel
from phrasetool.smt.language_model.combination import LanguageModels
from phrasetool.smt.language_model.hashed import HashedModel
from phrasetool.smt.language_model.kneser_ney import Discounts, estimate_language_model, estimate_on_disk
from phrasetool.smt.language_model.ngram_counts import MARKERS, DiskText
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, TargetModel

# At most, for each word: while places are sorted and probabilities computed; and of each n-gram, beside its words.
_WORD, _NGRAM = 115, 40


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


@dataclass(frozen=True)
class Estimated:
    """How a language model came about.

    Attributes:
        sentences: in the corpus.
        ngrams, counted: n-grams of each order, in the model and in the corpus.
        discounts: one per order.
        on_disk: whether files were needed.
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
        paths: the corpus, files with a sentence a line; `-` for standard input.
        output: where the text goes.
        order, prune: as of `kneser_ney.estimate_language_model`.
        memory: bytes that counts and probabilities may take, beside the words; what needs more goes to files without a
            name.  Never changes a byte of the output.
        folder: where these are; None for the system's folder of temporary files.

    Raises:
        DataError: a file cannot be read, has no words, or has one of the model's own.
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
        found = estimate_language_model(symbols.words, whole, order, prune)
        write_arpa(found.model, output)
        sizes = [len(table) for table in found.model.tables]
        return Estimated(sentences, sizes, found.counted, found.discounts, False)
    done = estimate_on_disk(symbols.words, disk, order, prune)
    write_arpa(done.model, output)
    return Estimated(sentences, [len(table) for table in done.model.tables], done.counted, done.discounts, True)


_CHUNK = 1 << 22
_FALLBACK = "Substituting fallback discounts for order"


def find_lmplz() -> str | None:
    """Where lmplz is on the PATH, or None."""
    return shutil.which("lmplz")


def run_lmplz(
    program: str, blocks: Iterable[bytes], output: Output, order: int, prune: Sequence[int], memory: int,
    folder: str | None = None,
) -> list[int]:  # fmt: skip
    """Estimate a language model with lmplz, with --discount_fallback.

    Args:
        program: the path of lmplz.
        blocks: the corpus, whole lines.
        output: where the ARPA text goes, compressed if the name says so.
        order: the length of the longest n-grams.
        prune: as lmplz --prune.
        memory: bytes that it may take, of which it would take 80 % of the machine by itself; what does not fit is
            sorted on disk.
        folder: where its files go; None for where it puts them.

    Returns:
        The orders whose discounts could not be estimated and were replaced.

    Raises:
        PhraseToolError: lmplz failed; the message is its own.
    """
    pruning = ["--prune", *map(str, prune)] if prune else []
    place = ["-T", os.path.join(folder, "")] if folder else []
    command = [program, "-o", str(order), "-S", f"{memory}b", *place, *pruning, "--discount_fallback"]
    messages: list[str] = []
    errors: list[Exception] = []

    def feed() -> None:
        assert process.stdin
        try:
            # When lmplz has ended early, what it said is the error.
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
        said = [line for line in messages if line and not line.startswith("=")]
        raise PhraseToolError(f"{program}: {said[-1] if said else f'exit status {process.returncode}'}")
    # lmplz counts orders from 0 in this message.
    return [int(line[len(_FALLBACK) :].split(":")[0]) + 1 for line in messages if line.startswith(_FALLBACK)]
