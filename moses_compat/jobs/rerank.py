"""Features appended to n-best lists, and reranking of lists by tuned weights of all their features.

`AppendedColumns` holds log probabilities of translation models, a column per direction, and of language models.
`tune_weights` tunes the weights of all features on a development set, `RerankWeights` stores them for other lists, and
`chosen_text` returns the best hypothesis of each sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.texts import read_sentences
from moses_compat.engine.development_check import check_correspondence, check_translation
from moses_compat.engine.language_models import check_known_words, open_kenlm_model
from moses_compat.engine.n_best import FeatureNames, NBestList, described, with_features
from moses_compat.files.finished_work import fingerprint
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, ModelError, PhraseToolError
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import Bootstrap, bleu_of_sums, bleu_statistics
from phrasetool.smt.language_model.kenlm_model import KenlmModel
from phrasetool.smt.tuning.candidates import Weights
from phrasetool.smt.tuning.reranking import (
    ListWeights,
    best_first,
    first_lines,
    is_explained,
    list_weights,
    oracle,
    tuned_weights,
    unexplained_share,
)
from phrasetool.translator.model import TranslatorModel
from phrasetool.vocabulary import UNKNOWN, Vocabulary
from phrasetool.watch import SILENT, Watch, raise_or_warn

LENGTHS = ("words", "none")
# Names of appended features, which a number follows.
NEURAL_FORWARD, NEURAL_BACKWARD, LANGUAGE_MODEL = "NeuralForward", "NeuralBackward", "ExtraLM"
_APPENDED = re.compile(rf"(?:{NEURAL_FORWARD}|{NEURAL_BACKWARD}|{LANGUAGE_MODEL})\d+")
# Significant digits with which features are written: those of Moses, and all that kenlm's single precision has.
_DIGITS, _LANGUAGE_MODEL_DIGITS = 6, 9
# Share of tokens that a vocabulary must cover in a text of its language.  Vocabularies of Multi30k German-English: 0.94
# to 0.98 of its own texts, 0.67 and 0.86 of English texts of two other domains, 0.01 to 0.47 of other languages.
LEAST_KNOWN = 0.6
# Smallest share of sentences that are likelier with their own list than with another.  A model of 37.9 BLEU, lists of
# two texts of Multi30k: 1.00; of another text, or with lines shifted by one or shuffled, 0.47 to 0.55.
LEAST_SHARE = 0.75
_SAMPLE = 200
# Fewer sentences are not enough for this check.
_FEWEST = 10

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SourceText:
    """The text that lists translate.

    Attributes:
        name: name of the file, for messages.
        sentences: sentences as ids of the symbols.
        symbols: the words, as written.
    """

    name: str
    sentences: Phrases
    symbols: Symbols

    @classmethod
    def read(cls, path: str) -> SourceText:
        """Read a text with one sentence per line.

        Raises:
            DataError: it cannot be read, or has no lines.
        """
        source_text = cls.of_text(display_name(path), read_sentences(path))
        if not len(source_text.sentences):
            raise DataError(source_text.name, "the file has no lines")
        return source_text

    @classmethod
    def of_text(cls, name: str, text: bytes) -> SourceText:
        """Split a text into sentences and words."""
        symbols = Symbols()
        return cls(name, symbols.read_lines(text), symbols)

    def check(self, n_best: NBestList) -> None:
        """Reject a list with more sentences than the text has.

        Raises:
            DataError: the list has more sentences; the message names the first superfluous line.
        """
        beyond = np.flatnonzero(n_best.sentences >= len(self.sentences))
        if len(beyond):
            line = int(beyond[0])
            message = f"sentence {n_best.sentences[line]}, but {self.name} has {len(self.sentences):,} lines, from 0"
            raise DataError(n_best.name, message, line + 1)


@dataclass(frozen=True)
class DirectedModel:
    """A translator and its direction with respect to a list.

    Attributes:
        model: the translator.
        folder: its folder.
        backward: whether it translates hypotheses into sources.
    """

    model: TranslatorModel
    folder: str
    backward: bool

    def scores(
        self, text: Phrases, hypotheses: Phrases, sentences: Int64Array, threads: int, watch: Watch = SILENT
    ) -> DoubleArray:
        """Return log p of each hypothesis given its sentence, or the reverse for `backward`; see `list_scores`."""
        from phrasetool.translator.decoding import list_scores

        with watch.items(f"scoring with {self.folder}", len(np.unique(sentences)), "sentence") as tick:
            return list_scores(
                self.model.network, self.model.temperature, text, hypotheses, sentences,
                backward=self.backward, threads=threads, tick=tick,
            )  # fmt: skip

    def read(self, text: SourceText, n_best: NBestList) -> tuple[Phrases, Phrases]:
        """Return both sides as word ids of the model."""
        source, target = self.model.source_vocabulary, self.model.target_vocabulary
        if self.backward:
            source, target = target, source
        return _in_ids(text.sentences, text.symbols, source), _in_ids(n_best.words, n_best.symbols, target)


def _in_ids(phrases: Phrases, symbols: Symbols, vocabulary: Vocabulary) -> Phrases:
    ids = np.array([vocabulary.id(word) for word in symbols.words], np.int32)
    return Phrases(phrases.offsets, ids[phrases.words] if len(ids) else phrases.words)


def load_directed(
    folder: str, text: SourceText, n_best: NBestList, force: bool = False, watch: Watch = SILENT
) -> DirectedModel:
    """Load a translator, and determine its direction by its vocabularies.

    Args:
        folder: folder of the model.
        text, n_best: the text and the list that it will score.
        force: only warn if it knows few of the words.

    Raises:
        DataError: the text or the hypotheses of the list have no words.
        ModelError: it cannot be loaded, or its languages are not those of the text and the list; the message reports if
            both are in the same language of the model.
    """
    model = TranslatorModel.load(folder)
    if not len(text.sentences.words):
        raise DataError(text.name, "has no words; expected the text that the list translates")
    first = n_best.words.select(first_lines_with_words(n_best))
    known = {
        (side, language): _known(phrases, symbols, vocabulary)
        for side, phrases, symbols in (("text", text.sentences, text.symbols), ("list", first, n_best.symbols))
        for language, vocabulary in (("source", model.source_vocabulary), ("target", model.target_vocabulary))
    }
    directions = {False: ("source", "target"), True: ("target", "source")}
    worst = {
        direction: min(known["text", text_language], known["list", list_language])
        for direction, (text_language, list_language) in directions.items()
    }
    backward = worst[True] > worst[False]
    if worst[backward] >= LEAST_KNOWN:
        return DirectedModel(model, folder, backward)
    shares = (
        f"its source words are {known['text', 'source']:.0%} of the tokens of {text.name} and "
        f"{known['list', 'source']:.0%} of those of {n_best.name}, its target words {known['text', 'target']:.0%} and "
        f"{known['list', 'target']:.0%}"
    )
    for language in ("source", "target"):
        if min(known["text", language], known["list", language]) >= LEAST_KNOWN:
            raise ModelError(f"{folder}: both {text.name} and {n_best.name} are in its {language} language ({shares})")
    message = f"{folder}: does not translate between {text.name} and {n_best.name}: {shares}"
    raise_or_warn(ModelError(message, remedy="go on"), force, watch.warn)
    return DirectedModel(model, folder, backward)


def first_lines_with_words(n_best: NBestList) -> Int64Array:
    """Return the first hypothesis with words of each sentence that has one; int64, ascending.

    Raises:
        DataError: no hypothesis of the list has words.
    """
    lines = np.flatnonzero(n_best.words.lengths > 0)
    if not len(lines):
        raise DataError(n_best.name, f"none of its {len(n_best):,} hypotheses has a word")
    chosen: Int64Array = lines[first_lines(n_best.sentences[lines])]
    return chosen


def _known(phrases: Phrases, symbols: Symbols, vocabulary: Vocabulary) -> float:
    """Return the share of tokens that are in a vocabulary; 0 without tokens."""
    ids = _in_ids(phrases, symbols, vocabulary).words
    return float((ids != UNKNOWN).mean()) if len(ids) else 0.0


def own_share(model: DirectedModel, text: SourceText, n_best: NBestList, threads: int) -> float | None:
    """Return the share of sentences that are likelier with their own first hypothesis than with that of another.

    This is the pairwise AUC of matching against mismatched pairs: about 0.5 if the list translates another text.
    Hypotheses without words are ignored.

    Returns:
        The share, where ties count as a half; None if the list has too few sentences.
    """
    first = first_lines_with_words(n_best)
    first = first[np.linspace(0, len(first) - 1, min(len(first), _SAMPLE)).astype(np.int64)]
    if len(first) < _FEWEST:
        return None
    sources, hypotheses = model.read(text, n_best)
    own, targets = sources.select(n_best.sentences[first]), hypotheses.select(first)
    moved = np.roll(np.arange(len(first)), len(first) // 2)
    numbers = np.arange(len(first))
    right = model.scores(own, targets, numbers, threads)
    # The predicted side is the same, and the conditioning side is exchanged.
    wrong = model.scores(own, targets.select(moved), numbers, threads) if model.backward else model.scores(
        own.select(moved), targets, numbers, threads
    )  # fmt: skip
    return float(((right > wrong) + 0.5 * (right == wrong)).mean())


def check_fit(
    models: Sequence[DirectedModel], text: SourceText, n_best: NBestList, threads: int, force: bool, watch: Watch
) -> None:
    """Reject a list that does not translate the text.

    Raises:
        PhraseToolError: the result of `own_share` is too close to 0.5.
    """
    for model in models:
        share = own_share(model, text, n_best, threads)
        if share is not None and share < LEAST_SHARE:
            message = (
                f"{n_best.name}: its hypotheses fit their sentences in {text.name} hardly better than others "
                f"(AUC {share:.2f} by {model.folder}, 0.5 is chance): is it the list of another text, are lines "
                "moved, or is the model untrained?"
            )
            raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


@dataclass(frozen=True)
class AppendedColumns:
    """Features computed by models.

    Attributes:
        models: translators.
        length: `words` divides a log probability by the number of words, including </s>; `none` does not.
        each: whether each model has its own column, instead of one column per direction with the mean of its models.
        language_models: each adds a column with the log probability of the hypothesis, regardless of `length`, as
            Moses' own models do.
    """

    models: Sequence[DirectedModel]
    length: str = "words"
    each: bool = False
    language_models: Sequence[KenlmModel] = ()

    @property
    def groups(self) -> dict[str, list[DirectedModel]]:
        """The models of each column, by its name."""
        columns: dict[str, list[DirectedModel]] = {}
        for backward, name in ((False, NEURAL_FORWARD), (True, NEURAL_BACKWARD)):
            models = [model for model in self.models if model.backward == backward]
            parts = [[model] for model in models] if self.each else [models] if models else []
            columns.update({f"{name}{number}": part for number, part in enumerate(parts)})
        return columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.groups, *(f"{LANGUAGE_MODEL}{number}" for number in range(len(self.language_models))))

    def record(self) -> dict[str, Any]:
        """Return the identities of the models, for a file of weights."""
        names = {name: [directed.model.identity for directed in part] for name, part in self.groups.items()}
        record: dict[str, Any] = {"length": self.length, "models": names}
        if self.language_models:
            record["language_models"] = [fingerprint(model.path) for model in self.language_models]
        return record

    def values(
        self, text: SourceText, n_best: NBestList, threads: int, watch: Watch = SILENT
    ) -> tuple[FeatureNames, DoubleArray]:
        """Compute the features, rounded to the digits with which they are written.

        Returns:
            Their names, and float64 of shape (N, K).

        Raises:
            DataError: the list already has one of the features.
            LengthError: a sentence is too long.
        """
        for name in self.names:
            if name in dict(n_best.names):
                raise DataError(n_best.name, f"has the feature {name} already; leave out the models to use it")
        columns = [
            np.mean([self._scores(model, text, n_best, threads, watch) for model in part], axis=0)
            for part in self.groups.values()
        ]
        for model in self.language_models:
            with watch.items(f"scoring with {model.path}", len(n_best), "hypothesis") as tick:
                columns.append(model.log_probabilities(n_best.words, n_best.symbols.words, tick))
        values = np.zeros((len(n_best), len(columns)))
        for index, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            values[:, index] = [float(_written(name, value)) for value in column.tolist()]
        return tuple((name, 1) for name in self.names), values

    def _scores(
        self, model: DirectedModel, text: SourceText, n_best: NBestList, threads: int, watch: Watch
    ) -> DoubleArray:
        sources, hypotheses = model.read(text, n_best)
        scores = model.scores(sources, hypotheses, n_best.sentences, threads, watch)
        if self.length == "none":
            return scores
        predicted = sources.lengths[n_best.sentences] if model.backward else hypotheses.lengths
        return scores / (predicted + 1)


def _written(name: str, value: float) -> str:
    digits = _LANGUAGE_MODEL_DIGITS if name.startswith(LANGUAGE_MODEL) else _DIGITS
    # Adding 0 turns -0 into 0.
    return format(value + 0.0, f".{digits}g")


def named_values(names: FeatureNames, values: npt.NDArray[np.float64]) -> bytes:
    """Format the features of one line as `Name= values`."""
    parts, at = [], 0
    for name, count in names:
        parts.append(f"{name}= " + " ".join(_written(name, value) for value in values[at : at + count].tolist()))
        at += count
    return " ".join(parts).encode()


def load_columns(
    folders: Sequence[str], text: SourceText, n_best: NBestList, length: str = "words", each: bool = False,
    force: bool = False, watch: Watch = SILENT, language_models: Sequence[str] = (),
) -> AppendedColumns:  # fmt: skip
    """Load translators and language models for the features of a list; see `AppendedColumns` and `load_directed`.

    Args:
        folders: folders of translators.
        text, n_best: the text and the list that they will score.
        length, each: see `AppendedColumns`.
        force: only warn about models that know few of the words.
        language_models: files of language models for kenlm.

    Raises:
        DataError: a file is not a language model.
        ModelError: see `load_directed`.
        PhraseToolError: see `check_known_words`.
    """
    loaded = [open_kenlm_model(path, n_best.symbols.words) for path in language_models]
    used = np.bincount(n_best.words.words, minlength=len(n_best.symbols.words))
    counts = dict(zip(n_best.symbols.words, used.tolist(), strict=True))
    for model in loaded:
        check_known_words(model, counts, n_best.name, force, watch)
    models = [load_directed(folder, text, n_best, force, watch) for folder in folders]
    return AppendedColumns(models, length, each, loaded)


@dataclass(frozen=True)
class FeaturedList:
    """A list with the features that were appended to it.

    Attributes:
        n_best: the list as read.
        names: names of all features.
        features: features of all lines, float64, shape (N, F).
        appended: number of features that the list itself lacks.
    """

    n_best: NBestList
    names: FeatureNames
    features: DoubleArray
    appended: int = 0

    @classmethod
    def of(cls, n_best: NBestList, names: FeatureNames, values: DoubleArray) -> FeaturedList:
        """Add features, float64, shape (N, K), to a list, before its sparse features."""
        dense, width = n_best.dense
        features = np.concatenate([n_best.features[:, :width], values, n_best.features[:, width:]], 1)
        return cls(n_best, (*n_best.names[:dense], *names, *n_best.names[dense:]), features, len(names))

    def lines(self, scores: DoubleArray | None = None, order: Int64Array | None = None) -> list[bytes]:
        """Return the lines with all features.

        Args:
            scores: new totals, shape (N,); None keeps the old ones.
            order: order of the lines; None keeps the current order.
        """
        dense, width = self.n_best.dense
        names = self.names[dense : dense + self.appended]
        last = width + sum(count for _, count in names)
        rows = range(len(self.n_best)) if order is None else order.tolist()
        return [
            with_features(
                self.n_best.lines[i], named_values(names, self.features[i, width:last]) if names else b"",
                None if scores is None else format(scores[i] + 0.0, ".6g").encode(),
            )
            for i in rows
        ]  # fmt: skip


def featured_list(
    columns: AppendedColumns,
    text: SourceText,
    n_best: NBestList,
    threads: int,
    force: bool = False,
    watch: Watch = SILENT,
) -> FeaturedList:
    """Check that a list matches the text, and add the features of models.

    Raises:
        PhraseToolError: it does not match, see `check_fit`; or it already has the features.
    """
    check_fit(columns.models, text, n_best, threads, force, watch)
    missing = len(text.sentences) - len(first_lines(n_best.sentences))
    if missing:
        watch.warn(f"{n_best.name}: no hypotheses of {missing:,} of the {len(text.sentences):,} lines of {text.name}")
    return FeaturedList.of(n_best, *columns.values(text, n_best, threads, watch))


@dataclass(frozen=True)
class RerankWeights:
    """Weights of features, and a description of the appended features.

    Attributes:
        names: names of the features.
        weights: float64, shape (F,).
        columns: result of `AppendedColumns.record`.
        origin: description of the tuning and its result.
    """

    names: FeatureNames
    weights: Weights
    columns: Mapping[str, Any]
    origin: Mapping[str, Any]

    def named(self) -> dict[str, list[float]]:
        """Return the weights by feature name."""
        values, at = {}, 0
        for name, count in self.names:
            values[name] = self.weights[at : at + count].tolist()
            at += count
        return values

    def as_json(self) -> bytes:
        """Return the weights as the text of a JSON file."""
        document = {
            "schema_version": SCHEMA_VERSION, "weights": self.named(), "neural": dict(self.columns), **self.origin,
        }  # fmt: skip
        return json.dumps(document, indent=2).encode() + b"\n"

    @classmethod
    def read(cls, path: str) -> RerankWeights:
        """Read weights from a file that contains the result of `as_json`.

        Raises:
            DataError: the file cannot be read, or is not such a file.
        """
        with Input(path) as file:
            data = file.read_all()
        try:
            return cls._of_document(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise DataError(display_name(path), f"not a file of weights that `rerank` saved ({error})") from error

    @classmethod
    def _of_document(cls, document: object) -> RerankWeights:
        if not isinstance(document, dict):
            raise ValueError("not an object with keys")
        if document.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"schema_version is {document.get('schema_version')}, expected {SCHEMA_VERSION}")
        values, columns = document.get("weights"), document.get("neural")
        if not isinstance(values, dict) or not isinstance(columns, dict):
            raise ValueError("weights and neural must be objects with keys")
        for name, numbers in values.items():
            if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
                raise ValueError(f"the weights of {name} must be a list of numbers")
        names = tuple((name, len(numbers)) for name, numbers in values.items())
        weights = np.array([number for numbers in values.values() for number in numbers], np.float64)
        if not np.isfinite(weights).all() or not weights.any():
            raise ValueError("weights must be finite, and not all 0")
        return cls(names, weights, columns, {})

    def check(self, featured: FeaturedList, columns: Mapping[str, Any] | None = None) -> None:
        """Reject a list with other features, or with features of other models.

        Args:
            featured: the list.
            columns: description of the models that computed its features; None if the list already had them.

        Raises:
            DataError: they differ.
        """
        if featured.names != self.names:
            message = f"has the features {described(featured.names)}, but the weights are of {described(self.names)}"
            raise DataError(featured.n_best.name, message)
        if columns is not None and dict(columns) != dict(self.columns):
            message = "the weights were tuned with other models, or with another --length-normalisation or --each"
            raise DataError(featured.n_best.name, message)


def with_sparse_features_of(n_best: NBestList, names: FeatureNames, known: str, watch: Watch = SILENT) -> NBestList:
    """Return a list with only the sparse features that have weights; others are ignored, as after tuning with Moses.

    Args:
        n_best: the list.
        names: names of the features that have weights.
        known: name of the origin of the weights, for the warning.
        watch: receives a warning about features without a weight.
    """
    dense = {name for name, _ in n_best.names[: n_best.dense[0]]}
    sparse = [name for name, count in names if count == 1 and "_" in name and name not in dense]
    others = set(n_best.sparse_names).difference(sparse)
    if others:
        watch.warn(f"{n_best.name}: {len(others):,} sparse features are not in {known}; they have no weight")
    return n_best.with_sparse(sparse)


def check_same_features(n_best: NBestList, development: NBestList) -> None:
    """Reject a development list with other features.

    Raises:
        DataError: the features differ.
    """
    if n_best.names != development.names:
        message = f"has the features {described(development.names)}, but {n_best.name} has {described(n_best.names)}"
        raise DataError(development.name, message)


def read_references(paths: Sequence[str], sentences: int, n_best: NBestList) -> list[Phrases]:
    """Read references as ids of a list's words; unknown words are -1.

    Raises:
        DataError: a reference cannot be read, has another number of lines, or has no words.
    """
    references = []
    for path in paths:
        references.append(n_best.symbols.read_lines(read_sentences(path), add=False))
        if len(references[-1]) != sentences:
            message = f"has {len(references[-1]):,} lines, but the source has {sentences:,}"
            raise DataError(display_name(path), message)
        if not len(references[-1].words):
            raise DataError(display_name(path), "has no words; expected one translation per line")
    return references


# If the share of tokens that are words of the hypotheses is lower by this in a reference than in the source, the two
# are swapped.
_LANGUAGE_MARGIN = 0.2


def _share_of_list_words(text: Phrases) -> float:
    return float((text.words >= 0).mean()) if len(text.words) else 0.0


def check_references(
    n_best: NBestList,
    references: Sequence[Phrases],
    source: str,
    paths: Sequence[str],
    force: bool = False,
    watch: Watch = SILENT,
) -> None:
    """Reject references of a list that do not translate its source, see `check_correspondence`.

    Args:
        n_best: the list.
        references: references of all sentences, as ids of the list's symbols.
        source, paths: the files of the source and of the references.
        force: warn instead of refusing.
        watch: receives warnings.

    Raises:
        PhraseToolError: a reference is the source, or contains far fewer words of the hypotheses than the source does,
            because the sides are swapped; or its lines are unrelated to the hypotheses of their sentences.
    """
    text = read_sentences(source)
    own = _share_of_list_words(n_best.symbols.read_lines(text, add=False))
    for path, reference in zip(paths, references, strict=True):
        check_translation(text, read_sentences(path), source, path, watch, force)
        if (share := _share_of_list_words(reference)) < own - _LANGUAGE_MARGIN:
            message = (
                f"{display_name(path)}: {share:.0%} of its tokens are words of {n_best.name}, and {own:.0%} of those "
                f"of {display_name(source)}: are the source and the reference swapped?"
            )
            raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)
    hypotheses = np.searchsorted(n_best.sentences, np.arange(len(references[0]) + 1))
    offered = Phrases(n_best.words.offsets[hypotheses], n_best.words.words)
    for path, reference in zip(paths, references, strict=True):
        check_correspondence(offered, reference, source, path, n_best.name, watch, force)


def tune_weights(
    featured: FeaturedList,
    references: Sequence[Phrases],
    columns: Mapping[str, Any],
    seed: int,
    together: bool = False,
) -> RerankWeights:
    """Tune weights on a development list, from the weights it was made with; see `tuned_weights`.

    Raises:
        DataError: its totals are not weighted sums of its features, or no sentence has different hypotheses.
    """
    n_best = featured.n_best
    made_with = _made_with(featured)
    if not made_with.found:
        message = (
            f"its totals are not weighted sums of its features ({made_with.unexplained:.0%} of their variance is "
            "unexplained): was it reranked or edited, or has the ini a feature with tuneable=false, which lists lack?"
        )
        raise DataError(n_best.name, message)
    if not made_with.weights.any():
        raise DataError(n_best.name, "hypotheses of a sentence do not differ: there is nothing to choose from")
    start = made_with.weights
    weights = tuned_weights(
        featured.features, n_best.words, n_best.sentences, references, start, _is_appended(featured), seed,
        together=together,
    )  # fmt: skip
    before, after = (_bleu(featured, weighted, references) for weighted in (start, weights))
    # Only ratios of weights matter; their absolute values are normalised to the sum 1, as in Moses.
    weights = weights / np.abs(weights).sum()
    return RerankWeights(featured.names, weights, columns, {"development_bleu": {"before": before, "after": after}})


def _made_with(featured: FeaturedList) -> ListWeights:
    """Return the weights with which a list was made, 0 for appended features."""
    n_best, old = featured.n_best, ~_is_appended(featured)
    made_with = list_weights(featured.features[:, old], n_best.totals, n_best.sentences)
    weights = np.zeros(len(old))
    weights[old] = made_with.weights
    return replace(made_with, weights=weights)


def _is_appended(featured: FeaturedList) -> Mask:
    """Return whether each feature is of `rescore` or `rerank` rather than of the decoder, shape (F,)."""
    return np.array([_APPENDED.fullmatch(name) is not None for name, count in featured.names for _ in range(count)])


def check_determined(development: FeaturedList, featured: FeaturedList) -> None:
    """Reject a development list whose hypotheses do not determine the weights that both lists were made with.

    Then many weights have the same totals in the development list, and those that were tuned do not rank another list.

    Raises:
        DataError: the fitted weights are one of many solutions, and do not explain the totals of `featured`.
    """
    made_with, n_best = _made_with(development), featured.n_best
    if made_with.unique:
        return
    share = unexplained_share(featured.features, n_best.totals, n_best.sentences, made_with.weights)
    if not is_explained(share):
        message = (
            "its hypotheses are too few to determine the weights that it was made with: the fitted ones leave "
            f"{share:.0%} of the variance of the totals in {n_best.name} unexplained; decode more hypotheses per "
            "sentence"
        )
        raise DataError(development.n_best.name, message)


def _bleu(featured: FeaturedList, weights: Weights, references: Sequence[Phrases]) -> float:
    chosen = chosen_lines(featured, weights)
    return _of_corpus(_statistics(featured.n_best, chosen, references))


def _of_corpus(statistics: Int32Array) -> float:
    """Return corpus BLEU, as `evaluate` reports it."""
    return float(bleu_of_sums(statistics.sum(0, dtype=np.int64)))


def _statistics(n_best: NBestList, lines: Int64Array, references: Sequence[Phrases]) -> Int32Array:
    """Return BLEU statistics of one line per sentence of the text; an empty line for a sentence without hypotheses."""
    sentences = len(references[0])
    rows = np.full(sentences, len(n_best), np.int64)
    rows[n_best.sentences[lines]] = lines
    written = Phrases.concatenate([n_best.words, Phrases.from_lists([[]])]).select(rows)
    return bleu_statistics(np.arange(sentences), written, references)


def chosen_lines(featured: FeaturedList, weights: Weights) -> Int64Array:
    """Return the best line of each sentence that has hypotheses; int64, shape (S,)."""
    sentences = featured.n_best.sentences
    return best_first(featured.features @ weights, sentences)[first_lines(sentences)]


@dataclass(frozen=True)
class RerankReport:
    """Effects of reranking.

    Attributes:
        sentences: sentences with hypotheses.
        hypotheses: all hypotheses.
        changed: sentences whose translation has changed.
        bleu_before, bleu_after: BLEU of the whole text, 0 to 100, with an empty translation of a sentence without
            hypotheses; None without references.
        bleu_oracle: BLEU of the whole text with the hypotheses of the best BLEU+1.
        p_value: p-value of the difference, by paired bootstrap.
    """

    sentences: int
    hypotheses: int
    changed: int
    bleu_before: float | None = None
    bleu_after: float | None = None
    bleu_oracle: float | None = None
    p_value: float | None = None


def report_of(featured: FeaturedList, weights: Weights, references: Sequence[Phrases]) -> RerankReport:
    """Compare the translations before and after reranking.

    Args:
        featured: the list.
        weights: weights of its features.
        references: references of all sentences, as ids of its words; may be empty.
    """
    n_best = featured.n_best
    first, chosen = first_lines(n_best.sentences), chosen_lines(featured, weights)
    texts = [[n_best.text(line) for line in lines.tolist()] for lines in (first, chosen)]
    changed = sum(a != b for a, b in zip(*texts, strict=True))
    counts = len(first), len(n_best), changed
    if not references:
        return RerankReport(*counts)
    best = oracle(n_best.words, n_best.sentences, references)
    before, after, top = (_statistics(n_best, lines, references) for lines in (first, chosen, best))
    test = Bootstrap(len(references[0]))
    samples = test(before), test(after)
    return RerankReport(*counts, samples[0].bleu, samples[1].bleu, _of_corpus(top), samples[1].p_value(samples[0]))


def chosen_text(featured: FeaturedList, weights: Weights, sentences: int) -> bytes:
    """Return the best translations of S sentences, one per line; empty for a sentence without hypotheses."""
    lines = [b""] * sentences
    for line in chosen_lines(featured, weights).tolist():
        lines[int(featured.n_best.sentences[line])] = featured.n_best.text(line)
    return b"".join(line + b"\n" for line in lines)


def reordered_lines(featured: FeaturedList, weights: Weights) -> list[bytes]:
    """Return all lines with their new scores as totals, the best of each sentence first."""
    scores = featured.features @ weights
    return featured.lines(scores, best_first(scores, featured.n_best.sentences))
