"""Append what neural models say of n-best lists: log probabilities as features, a column a direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.texts import read_sentences
from moses_compat.engine.n_best import FeatureNames, NBestList
from moses_compat.files.paths import display_name
from phrasetool.errors import DataError, ModelError, PhraseToolError
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.tuning.reranking import first_lines
from phrasetool.translator.model import TranslatorModel
from phrasetool.vocabulary import UNKNOWN, Vocabulary
from phrasetool.watch import SILENT, Watch, raise_or_warn

LENGTHS = ("words", "none")
# What the names of the features that are appended begin with.
NEURAL = "Neural"
# Tokens that a vocabulary must know of a text in its language.  Vocabularies of Multi30k German-English: 0.94 to 0.98
# of its own texts, 0.67 and 0.86 of English texts of two other domains, 0.01 to 0.47 of texts in other languages.
LEAST_KNOWN = 0.6
# How often a sentence must be likelier beside its own list than beside another.  A model of 37.9 BLEU, lists of two
# texts of Multi30k: 1.00; of another text, or with lines moved by one or shuffled, 0.47 to 0.55.
LEAST_SHARE = 0.75
_SAMPLE = 200
# So few say nothing.
_FEWEST = 10


@dataclass(frozen=True)
class SourceText:
    """The text that lists translate.

    Attributes:
        name: of the file, for messages.
        sentences: in ids of the symbols.
        symbols: the words, as written.
    """

    name: str
    sentences: Phrases
    symbols: Symbols

    @classmethod
    def read(cls, path: str) -> SourceText:
        """Read a text, a sentence a line.

        Raises:
            DataError: it cannot be read, or has no lines.
        """
        found = cls.of_text(display_name(path), read_sentences(path))
        if not len(found.sentences):
            raise DataError(found.name, "the file has no lines")
        return found

    @classmethod
    def of_text(cls, name: str, text: bytes) -> SourceText:
        """The lines of a text."""
        symbols = Symbols()
        return cls(name, symbols.read_lines(text), symbols)

    def check(self, found: NBestList) -> None:
        """Refuse a list of more sentences than the text has.

        Raises:
            DataError: with the first line that is one too many.
        """
        beyond = np.flatnonzero(found.sentences >= len(self.sentences))
        if len(beyond):
            line = int(beyond[0])
            message = f"sentence {found.sentences[line]}, but {self.name} has {len(self.sentences):,} lines, from 0"
            raise DataError(found.name, message, line + 1)


@dataclass(frozen=True)
class DirectedModel:
    """A translator and how it stands to a list.

    Attributes:
        model: the translator.
        folder: where it is.
        backward: whether it reads hypotheses and writes sources.
    """

    model: TranslatorModel
    folder: str
    backward: bool

    def scores(
        self, text: Phrases, hypotheses: Phrases, sentences: Int64Array, threads: int, watch: Watch = SILENT
    ) -> DoubleArray:
        """log p of each hypothesis of a sentence, or of the sentence; see `list_scores`."""
        from phrasetool.translator.decoding import list_scores

        with watch.items(f"scoring with {self.folder}", len(np.unique(sentences)), "sentence") as tick:
            return list_scores(
                self.model.network, self.model.temperature, text, hypotheses, sentences,
                backward=self.backward, threads=threads, tick=tick,
            )  # fmt: skip

    def read(self, text: SourceText, found: NBestList) -> tuple[Phrases, Phrases]:
        """Both sides in ids of the model."""
        source, target = self.model.source_vocabulary, self.model.target_vocabulary
        if self.backward:
            source, target = target, source
        return _in_ids(text.sentences, text.symbols, source), _in_ids(found.words, found.symbols, target)


def _in_ids(phrases: Phrases, symbols: Symbols, vocabulary: Vocabulary) -> Phrases:
    ids = np.array([vocabulary.id(word) for word in symbols.words], np.int32)
    return Phrases(phrases.offsets, ids[phrases.words] if len(ids) else phrases.words)


def load_directed(
    folder: str, text: SourceText, found: NBestList, force: bool = False, watch: Watch = SILENT
) -> DirectedModel:
    """Load a translator, and tell its direction by its vocabularies.

    Args:
        folder: of the model.
        text, found: what it is to judge.
        force: go on although it knows few of the words, with a warning to `watch`.

    Raises:
        DataError: the text, or the hypotheses of the list, have no word.
        ModelError: it cannot be loaded, or its languages are not those of the list and its text; says if these are
            swapped.
    """
    model = TranslatorModel.load(folder)
    if not len(text.sentences.words):
        raise DataError(text.name, "has no words; expected the text that the list translates")
    first = found.words.select(first_lines_with_words(found))
    known = {
        (side, language): _known(phrases, symbols, vocabulary)
        for side, phrases, symbols in (("text", text.sentences, text.symbols), ("list", first, found.symbols))
        for language, vocabulary in (("source", model.source_vocabulary), ("target", model.target_vocabulary))
    }
    ways = {False: ("source", "target"), True: ("target", "source")}
    worst = {way: min(known["text", ours], known["list", theirs]) for way, (ours, theirs) in ways.items()}
    backward = worst[True] > worst[False]
    if worst[backward] >= LEAST_KNOWN:
        return DirectedModel(model, folder, backward)
    shares = (
        f"its source words are {known['text', 'source']:.0%} of the tokens of {text.name} and "
        f"{known['list', 'source']:.0%} of those of {found.name}, its target words {known['text', 'target']:.0%} and "
        f"{known['list', 'target']:.0%}"
    )
    for language in ("source", "target"):
        if min(known["text", language], known["list", language]) >= LEAST_KNOWN:
            raise ModelError(f"{folder}: both {text.name} and {found.name} are in its {language} language ({shares})")
    message = f"{folder}: does not translate between {text.name} and {found.name}: {shares}"
    raise_or_warn(ModelError(message, remedy="go on"), force, watch.warn)
    return DirectedModel(model, folder, backward)


def first_lines_with_words(found: NBestList) -> Int64Array:
    """The first hypothesis with a word of each sentence that has one; int64, ascending.

    Raises:
        DataError: no hypothesis of the list has a word.
    """
    lines = np.flatnonzero(found.words.lengths > 0)
    if not len(lines):
        raise DataError(found.name, f"none of its {len(found):,} hypotheses has a word")
    chosen: Int64Array = lines[first_lines(found.sentences[lines])]
    return chosen


def _known(phrases: Phrases, symbols: Symbols, vocabulary: Vocabulary) -> float:
    """The share of tokens that a vocabulary has; 0 without tokens."""
    ids = _in_ids(phrases, symbols, vocabulary).words
    return float((ids != UNKNOWN).mean()) if len(ids) else 0.0


def own_share(judge: DirectedModel, text: SourceText, found: NBestList, threads: int) -> float | None:
    """How often a sentence is likelier beside its own first hypothesis than beside that of another sentence.

    A hypothesis without a word does not count.

    It is the area under the curve of pairs that differ in nothing else: a half if the list translates another text.

    Returns:
        The share, ties for a half; None if the list has too few sentences to tell.
    """
    first = first_lines_with_words(found)
    first = first[np.linspace(0, len(first) - 1, min(len(first), _SAMPLE)).astype(np.int64)]
    if len(first) < _FEWEST:
        return None
    sources, hypotheses = judge.read(text, found)
    own, other = sources.select(found.sentences[first]), hypotheses.select(first)
    moved = np.roll(np.arange(len(first)), len(first) // 2)
    numbers = np.arange(len(first))
    right = judge.scores(own, other, numbers, threads)
    # What is predicted stays, and what is read moves.
    wrong = judge.scores(own, other.select(moved), numbers, threads) if judge.backward else judge.scores(
        own.select(moved), other, numbers, threads
    )  # fmt: skip
    return float(((right > wrong) + 0.5 * (right == wrong)).mean())


def check_fit(
    judges: Sequence[DirectedModel], text: SourceText, found: NBestList, threads: int, force: bool, watch: Watch
) -> None:
    """Refuse a list that does not translate the text.

    Raises:
        PhraseToolError: the share of `own_share` is too near a half.
    """
    for judge in judges:
        share = own_share(judge, text, found, threads)
        if share is not None and share < LEAST_SHARE:
            message = (
                f"{found.name}: its hypotheses fit their sentences in {text.name} hardly better than others "
                f"(AUC {share:.2f} by {judge.folder}, 0.5 is chance): is it the list of another text, are lines "
                "moved, or is the model untrained?"
            )
            raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


@dataclass(frozen=True)
class NeuralColumns:
    """Features that models give.

    Attributes:
        models: all of them.
        length: `words` divides a log probability by the words that it is of, and their end; `none` leaves it.
        each: a column a model, instead of one a direction, the mean of its models.
    """

    models: Sequence[DirectedModel]
    length: str = "words"
    each: bool = False

    @property
    def groups(self) -> dict[str, list[DirectedModel]]:
        """The name of each column, and whose mean it is."""
        found: dict[str, list[DirectedModel]] = {}
        for backward, name in ((False, f"{NEURAL}Forward"), (True, f"{NEURAL}Backward")):
            models = [judge for judge in self.models if judge.backward == backward]
            parts = [[judge] for judge in models] if self.each else [models] if models else []
            found.update({f"{name}{number}": part for number, part in enumerate(parts)})
        return found

    def record(self) -> dict[str, Any]:
        """What they are, for a file of weights."""
        names = {name: [judge.model.identity for judge in part] for name, part in self.groups.items()}
        return {"length": self.length, "models": names}

    def values(
        self, text: SourceText, found: NBestList, threads: int, watch: Watch = SILENT
    ) -> tuple[FeatureNames, DoubleArray]:
        """The features, as they read when they are written with six digits.

        Returns:
            Their names, and float64 of shape (N, K).

        Raises:
            DataError: the list has such a feature already.
            LengthError: a sentence is too long.
        """
        there = {name for name, _ in found.names}
        columns = []
        for name, part in self.groups.items():
            if name in there:
                raise DataError(found.name, f"has the feature {name} already; leave out the models to use it")
            columns.append(np.mean([self._scores(judge, text, found, threads, watch) for judge in part], axis=0))
        values = np.stack(columns, 1) if columns else np.zeros((len(found), 0))
        return tuple((name, 1) for name in self.groups), np.vectorize(_as_written, otypes=[np.float64])(values)

    def _scores(
        self, judge: DirectedModel, text: SourceText, found: NBestList, threads: int, watch: Watch
    ) -> DoubleArray:
        sources, hypotheses = judge.read(text, found)
        scores = judge.scores(sources, hypotheses, found.sentences, threads, watch)
        if self.length == "none":
            return scores
        predicted = sources.lengths[found.sentences] if judge.backward else hypotheses.lengths
        return scores / (predicted + 1)


def _written(value: float) -> str:
    # Adding 0 turns -0 into 0.
    return format(value + 0.0, ".6g")


def _as_written(value: float) -> float:
    return float(_written(value))


def named_values(names: FeatureNames, values: npt.NDArray[np.float64]) -> bytes:
    """`Name= values` of one line."""
    parts, at = [], 0
    for name, count in names:
        parts.append(f"{name}= " + " ".join(_written(value) for value in values[at : at + count].tolist()))
        at += count
    return " ".join(parts).encode()


def load_columns(
    folders: Sequence[str], text: SourceText, found: NBestList, length: str = "words", each: bool = False,
    force: bool = False, watch: Watch = SILENT,
) -> NeuralColumns:  # fmt: skip
    """The features that the models in some folders give of a list; see `NeuralColumns` and `load_directed`.

    Raises:
        ModelError: see `load_directed`.
    """
    return NeuralColumns([load_directed(folder, text, found, force, watch) for folder in folders], length, each)
