"""Features appended to n-best lists, and reranking of lists by tuned weights of all their features.

`AppendedColumns` holds log probabilities of translation models, a column per direction, and of language models.
`tune_weights` tunes the weights of all features on a development set, `RerankWeights` stores them for other lists, and
`chosen_text` takes the best line of each sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.texts import read_sentences
from moses_compat.engine.development_check import check_correspondence
from moses_compat.engine.n_best import FeatureNames, NBestList, described, with_features
from moses_compat.files.finished_work import fingerprint
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, ModelError, PhraseToolError
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import Bootstrap, bleu_of_sums, bleu_statistics
from phrasetool.smt.language_model.kenlm_model import KenlmModel, SentenceScores
from phrasetool.smt.tuning.candidates import Weights
from phrasetool.smt.tuning.reranking import ListWeights, best_first, first_lines, list_weights, oracle, tuned_weights
from phrasetool.translator.model import TranslatorModel
from phrasetool.vocabulary import UNKNOWN, Vocabulary
from phrasetool.watch import SILENT, Watch, raise_or_warn

LENGTHS = ("words", "none")
# Beginnings of the names of appended features.
NEURAL, LANGUAGE_MODEL = "Neural", "ExtraLM"
# Significant digits with which features are written: those of Moses, and all that kenlm's single precision has.
_DIGITS, _LANGUAGE_MODEL_DIGITS = 6, 9
# Tokens that a vocabulary must know of a text in its language.  Vocabularies of Multi30k German-English: 0.94 to 0.98
# of its own texts, 0.67 and 0.86 of English texts of two other domains, 0.01 to 0.47 of texts in other languages.
LEAST_KNOWN = 0.6
# How often a sentence must be likelier beside its own list than beside another.  A model of 37.9 BLEU, lists of two
# texts of Multi30k: 1.00; of another text, or with lines moved by one or shuffled, 0.47 to 0.55.
LEAST_SHARE = 0.75
_SAMPLE = 200
# So few say nothing.
_FEWEST = 10

SCHEMA_VERSION = 1


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
class AppendedColumns:
    """Features that models give.

    Attributes:
        models: translators.
        length: `words` divides a log probability by the words that it is of, and their end; `none` leaves it.
        each: a column a model, instead of one a direction, the mean of its models.
        language_models: each gives a column: the log probability of the hypothesis, whatever `length` is, as Moses'
            own models do.
    """

    models: Sequence[DirectedModel]
    length: str = "words"
    each: bool = False
    language_models: Sequence[KenlmModel] = ()

    @property
    def groups(self) -> dict[str, list[DirectedModel]]:
        """The name of each column, and whose mean it is."""
        found: dict[str, list[DirectedModel]] = {}
        for backward, name in ((False, f"{NEURAL}Forward"), (True, f"{NEURAL}Backward")):
            models = [judge for judge in self.models if judge.backward == backward]
            parts = [[judge] for judge in models] if self.each else [models] if models else []
            found.update({f"{name}{number}": part for number, part in enumerate(parts)})
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.groups, *(f"{LANGUAGE_MODEL}{number}" for number in range(len(self.language_models))))

    def record(self) -> dict[str, Any]:
        """Identities of the models, for a file of weights."""
        names = {name: [judge.model.identity for judge in part] for name, part in self.groups.items()}
        record: dict[str, Any] = {"length": self.length, "models": names}
        if self.language_models:
            record["language_models"] = [fingerprint(model.path) for model in self.language_models]
        return record

    def values(
        self, text: SourceText, found: NBestList, threads: int, watch: Watch = SILENT
    ) -> tuple[FeatureNames, DoubleArray]:
        """The features, with the digits with which they are written.

        Returns:
            Their names, and float64 of shape (N, K).

        Raises:
            DataError: the list has such a feature already.
            LengthError: a sentence is too long.
        """
        for name in self.names:
            if name in dict(found.names):
                raise DataError(found.name, f"has the feature {name} already; leave out the models to use it")
        columns = [
            np.mean([self._scores(judge, text, found, threads, watch) for judge in part], axis=0)
            for part in self.groups.values()
        ]
        columns += [_language_scores(model, found, watch).log_probabilities for model in self.language_models]
        values = np.zeros((len(found), len(columns)))
        for place, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            values[:, place] = [float(_written(name, value)) for value in column.tolist()]
        return tuple((name, 1) for name in self.names), values

    def _scores(
        self, judge: DirectedModel, text: SourceText, found: NBestList, threads: int, watch: Watch
    ) -> DoubleArray:
        sources, hypotheses = judge.read(text, found)
        scores = judge.scores(sources, hypotheses, found.sentences, threads, watch)
        if self.length == "none":
            return scores
        predicted = sources.lengths[found.sentences] if judge.backward else hypotheses.lengths
        return scores / (predicted + 1)


def _language_scores(model: KenlmModel, found: NBestList, watch: Watch) -> SentenceScores:
    with watch.items(f"scoring with {model.path}", len(found), "hypothesis") as tick:
        return model.score(found.words, found.symbols.words, tick)


def check_language(model: KenlmModel, found: NBestList, force: bool, watch: Watch) -> None:
    """Refuse a language model that knows few words of the hypotheses: it is of another language, or of other tokens.

    Raises:
        PhraseToolError: it knows less than `LEAST_KNOWN` of the tokens.
    """
    used = np.bincount(found.words.words, minlength=len(found.symbols.words))
    known = np.array([word in model for word in found.symbols.words], bool)
    share = float(used[known].sum() / max(used.sum(), 1))
    if share < LEAST_KNOWN:
        message = (
            f"{model.path}: knows {share:.0%} of the tokens of {found.name}, expected {LEAST_KNOWN:.0%} at least: "
            "is it of the target language, and are its words tokenised and escaped as those of the list?"
        )
        raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


def _written(name: str, value: float) -> str:
    digits = _LANGUAGE_MODEL_DIGITS if name.startswith(LANGUAGE_MODEL) else _DIGITS
    # Adding 0 turns -0 into 0.
    return format(value + 0.0, f".{digits}g")


def named_values(names: FeatureNames, values: npt.NDArray[np.float64]) -> bytes:
    """`Name= values` of one line."""
    parts, at = [], 0
    for name, count in names:
        parts.append(f"{name}= " + " ".join(_written(name, value) for value in values[at : at + count].tolist()))
        at += count
    return " ".join(parts).encode()


def load_columns(
    folders: Sequence[str], text: SourceText, found: NBestList, length: str = "words", each: bool = False,
    force: bool = False, watch: Watch = SILENT, language_models: Sequence[str] = (),
) -> AppendedColumns:  # fmt: skip
    """The features that translators and language models give of a list; see `AppendedColumns` and `load_directed`.

    Args:
        folders: of translators.
        text, found: what they judge.
        length, each: see `AppendedColumns`.
        force: go on with models that hardly know the words, with a warning to `watch`.
        language_models: files that kenlm reads.

    Raises:
        DataError: a file is no language model.
        ModelError: see `load_directed`.
        PhraseToolError: see `check_language`.
    """
    loaded = [KenlmModel.load(path) for path in language_models]
    for model in loaded:
        check_language(model, found, force, watch)
    judges = [load_directed(folder, text, found, force, watch) for folder in folders]
    return AppendedColumns(judges, length, each, loaded)


@dataclass(frozen=True)
class FeaturedList:
    """A list with the features that were appended to it.

    Attributes:
        found: as read.
        names: of all features.
        features: of all lines, float64, shape (N, F).
        appended: how many of the names the list itself lacks.
    """

    found: NBestList
    names: FeatureNames
    features: DoubleArray
    appended: int = 0

    @classmethod
    def of(cls, found: NBestList, names: FeatureNames, values: DoubleArray) -> FeaturedList:
        """A list, and features of it, float64, shape (N, K), which come before the sparse ones of the list."""
        dense, width = found.dense
        features = np.concatenate([found.features[:, :width], values, found.features[:, width:]], 1)
        return cls(found, (*found.names[:dense], *names, *found.names[dense:]), features, len(names))

    def lines(self, scores: DoubleArray | None = None, order: Int64Array | None = None) -> list[bytes]:
        """The lines with all features.

        Args:
            scores: take the place of the totals, shape (N,); None leaves them.
            order: of the lines; None leaves them where they are.
        """
        dense, width = self.found.dense
        names = self.names[dense : dense + self.appended]
        last = width + sum(count for _, count in names)
        rows = range(len(self.found)) if order is None else order.tolist()
        return [
            with_features(
                self.found.lines[i], named_values(names, self.features[i, width:last]) if names else b"",
                None if scores is None else format(scores[i] + 0.0, ".6g").encode(),
            )
            for i in rows
        ]  # fmt: skip


def featured_list(
    columns: AppendedColumns,
    text: SourceText,
    found: NBestList,
    threads: int,
    force: bool = False,
    watch: Watch = SILENT,
) -> FeaturedList:
    """A list with the features of models, after it was asked whether it is a list of the text.

    Raises:
        PhraseToolError: it is not, see `check_fit`; or it has the features already.
    """
    check_fit(columns.models, text, found, threads, force, watch)
    missing = len(text.sentences) - len(first_lines(found.sentences))
    if missing:
        watch.warn(f"{found.name}: no hypotheses of {missing:,} of the {len(text.sentences):,} lines of {text.name}")
    return FeaturedList.of(found, *columns.values(text, found, threads, watch))


@dataclass(frozen=True)
class RerankWeights:
    """Weights of features, and how the appended ones came about.

    Attributes:
        names: of the features.
        weights: float64, shape (F,).
        columns: of `AppendedColumns.record`.
        origin: what they were tuned on, and what came of it.
    """

    names: FeatureNames
    weights: Weights
    columns: Mapping[str, Any]
    origin: Mapping[str, Any]

    def named(self) -> dict[str, list[float]]:
        """The weights of each feature."""
        values, at = {}, 0
        for name, count in self.names:
            values[name] = self.weights[at : at + count].tolist()
            at += count
        return values

    def as_json(self) -> bytes:
        """The text of their file."""
        document = {
            "schema_version": SCHEMA_VERSION, "weights": self.named(), "neural": dict(self.columns), **self.origin,
        }  # fmt: skip
        return json.dumps(document, indent=2).encode() + b"\n"

    @classmethod
    def read(cls, path: str) -> RerankWeights:
        """Read what `as_json` gave.

        Raises:
            DataError: the file cannot be read, or holds something else.
        """
        with Input(path) as file:
            data = file.read_all()
        try:
            document = json.loads(data)
            if document["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"schema_version {document['schema_version']}, expected {SCHEMA_VERSION}")
            values = document["weights"]
            names = tuple((name, len(numbers)) for name, numbers in values.items())
            weights = np.array([number for numbers in values.values() for number in numbers], np.float64)
            if not np.isfinite(weights).all() or not weights.any():
                raise ValueError("weights must be finite, and not all 0")
            return cls(names, weights, dict(document["neural"]), {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(display_name(path), f"not a file of weights that `rerank` saved ({error})") from error

    def check(self, featured: FeaturedList, columns: Mapping[str, Any] | None = None) -> None:
        """Refuse a list of other features, or features of other models.

        Args:
            featured: the list.
            columns: of the models that its features were made with; None if it brought them.

        Raises:
            DataError: what differs.
        """
        if featured.names != self.names:
            message = f"has the features {described(featured.names)}, but the weights are of {described(self.names)}"
            raise DataError(featured.found.name, message)
        if columns is not None and dict(columns) != dict(self.columns):
            message = "the weights were tuned with other models, or with another --length-normalisation or --each"
            raise DataError(featured.found.name, message)


def with_sparse_features_of(found: NBestList, names: FeatureNames, known: str, watch: Watch = SILENT) -> NBestList:
    """A list with the sparse features that weights are known for; others count for nothing, as after tuning with Moses.

    Args:
        found: the list.
        names: of the features that have weights.
        known: what has them, for the warning.
        watch: is warned of features without a weight.
    """
    dense = {name for name, _ in found.names[: found.dense[0]]}
    sparse = [name for name, count in names if count == 1 and "_" in name and name not in dense]
    others = set(found.sparse_names).difference(sparse)
    if others:
        watch.warn(f"{found.name}: {len(others):,} sparse features are not in {known}; they have no weight")
    return found.with_sparse(sparse)


def check_same_features(found: NBestList, development: NBestList) -> None:
    """Refuse a development list with other features.

    Raises:
        DataError: naming both.
    """
    if found.names != development.names:
        message = f"has the features {described(development.names)}, but {found.name} has {described(found.names)}"
        raise DataError(development.name, message)


def read_references(paths: Sequence[str], sentences: int, found: NBestList) -> list[Phrases]:
    """References in ids of a list's words; others are -1.

    Raises:
        DataError: one cannot be read, has not so many lines, or has no word.
    """
    references = []
    for path in paths:
        references.append(found.symbols.read_lines(read_sentences(path), add=False))
        if len(references[-1]) != sentences:
            message = f"has {len(references[-1]):,} lines, but the source has {sentences:,}"
            raise DataError(display_name(path), message)
        if not len(references[-1].words):
            raise DataError(display_name(path), "has no words; expected a translation a line")
    return references


def check_development_references(
    found: NBestList,
    references: Sequence[Phrases],
    source: str,
    paths: Sequence[str],
    force: bool = False,
    watch: Watch = SILENT,
) -> None:
    """Refuse references of a development list that are no translations of its source, see `check_correspondence`.

    Args:
        found: the list.
        references: of all sentences, in ids of the list's symbols.
        source, paths: the files of the source and of the references.
        force: warn instead of refusing.
        watch: is warned.

    Raises:
        PhraseToolError: the lines of a reference have nothing to do with the hypotheses of their sentences.
    """
    hypotheses = np.searchsorted(found.sentences, np.arange(len(references[0]) + 1))
    offered = Phrases(found.words.offsets[hypotheses], found.words.words)
    for path, reference in zip(paths, references, strict=True):
        check_correspondence(offered, reference, source, path, found.name, watch, force)


def tune_weights(
    featured: FeaturedList,
    references: Sequence[Phrases],
    columns: Mapping[str, Any],
    seed: int,
    together: bool = False,
) -> RerankWeights:
    """Tune weights on a development list, from the weights it was made with; see `tuned_weights`.

    Raises:
        DataError: its totals are no sums of its features, or there is only one hypothesis a sentence.
    """
    found = featured.found
    made_with = _made_with(featured)
    if not made_with.found:
        message = (
            f"its totals are no weighted sums of its features ({made_with.unexplained:.0%} of their variance is "
            "left): is it reranked already, or edited?"
        )
        raise DataError(found.name, message)
    if not made_with.weights.any():
        raise DataError(found.name, "hypotheses of a sentence do not differ: there is nothing to choose from")
    start = made_with.weights
    weights = tuned_weights(featured.features, found.words, found.sentences, references, start, seed, together=together)
    before, after = (_bleu(featured, weighted, references) for weighted in (start, weights))
    # A weight's size says nothing; the sum of the absolute ones is 1, as Moses writes them.
    weights = weights / np.abs(weights).sum()
    return RerankWeights(featured.names, weights, columns, {"development_bleu": {"before": before, "after": after}})


def _made_with(featured: FeaturedList) -> ListWeights:
    """The weights of a list, 0 for the features that were appended, now or before."""
    found = featured.found
    of = [name for name, count in featured.names for _ in range(count)]
    old = np.array([not name.startswith((NEURAL, LANGUAGE_MODEL)) for name in of])
    made_with = list_weights(featured.features[:, old], found.totals, found.sentences)
    weights = np.zeros(len(of))
    weights[old] = made_with.weights
    return ListWeights(weights, made_with.unexplained)


def _bleu(featured: FeaturedList, weights: Weights, references: Sequence[Phrases]) -> float:
    chosen = chosen_lines(featured, weights)
    return _of_corpus(_statistics(featured.found, chosen, references))


def _of_corpus(statistics: Int32Array) -> float:
    """BLEU as `evaluate` reports it."""
    return float(bleu_of_sums(statistics.sum(0, dtype=np.int64)))


def _statistics(found: NBestList, lines: Int64Array, references: Sequence[Phrases]) -> Int32Array:
    """BLEU statistics of a line for each sentence of the text; a sentence without a hypothesis has an empty line."""
    sentences = len(references[0])
    rows = np.full(sentences, len(found), np.int64)
    rows[found.sentences[lines]] = lines
    written = Phrases.concatenate([found.words, Phrases.from_lists([[]])]).select(rows)
    return bleu_statistics(np.arange(sentences), written, references)


def chosen_lines(featured: FeaturedList, weights: Weights) -> Int64Array:
    """The best line of each sentence that has any; int64, shape (S,)."""
    sentences = featured.found.sentences
    return best_first(featured.features @ weights, sentences)[first_lines(sentences)]


@dataclass(frozen=True)
class RerankReport:
    """What reranking changed.

    Attributes:
        sentences: with hypotheses.
        hypotheses: in all.
        changed: sentences whose translation is another one.
        bleu_before, bleu_after: of the whole text, in which a sentence without hypotheses has an empty translation, 0
            to 100; None without references.
        bleu_oracle: of the whole text, with the hypotheses with the best BLEU+1.
        p_value: of the difference, by paired bootstrap.
    """

    sentences: int
    hypotheses: int
    changed: int
    bleu_before: float | None = None
    bleu_after: float | None = None
    bleu_oracle: float | None = None
    p_value: float | None = None


def report_of(featured: FeaturedList, weights: Weights, references: Sequence[Phrases]) -> RerankReport:
    """What the weights change, and whether it is better.

    Args:
        featured: the list.
        weights: of its features.
        references: of all sentences, in ids of its words; may be none.
    """
    found = featured.found
    first, chosen = first_lines(found.sentences), chosen_lines(featured, weights)
    texts = [[found.text(line) for line in lines.tolist()] for lines in (first, chosen)]
    changed = sum(a != b for a, b in zip(*texts, strict=True))
    counts = len(first), len(found), changed
    if not references:
        return RerankReport(*counts)
    best = oracle(found.words, found.sentences, references)
    before, after, top = (_statistics(found, lines, references) for lines in (first, chosen, best))
    test = Bootstrap(len(references[0]))
    samples = test(before), test(after)
    return RerankReport(*counts, samples[0].bleu, samples[1].bleu, _of_corpus(top), samples[1].p_value(samples[0]))


def chosen_text(featured: FeaturedList, weights: Weights, sentences: int) -> bytes:
    """The best translation of each of S sentences, a line each; empty where there is no hypothesis."""
    lines = [b""] * sentences
    for line in chosen_lines(featured, weights).tolist():
        lines[int(featured.found.sentences[line])] = featured.found.text(line)
    return b"".join(line + b"\n" for line in lines)


def reordered_lines(featured: FeaturedList, weights: Weights) -> list[bytes]:
    """All lines, the best of each sentence first; the total is the new score."""
    scores = featured.features @ weights
    return featured.lines(scores, best_first(scores, featured.found.sentences))
