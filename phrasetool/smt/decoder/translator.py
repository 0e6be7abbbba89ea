"""Front end of the decoder: a model with its weights, and translation of sentences on several threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int32Array, Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.decoder.cube_search import cube_search
from phrasetool.smt.decoder.derivations import Steps, best_steps, derivation_features, n_best_steps
from phrasetool.smt.decoder.features import FeatureSet, Vector
from phrasetool.smt.decoder.hypotheses import NO_SPAN, SPAN_END, WHOLE_SPAN, Search, longest_jump, make_stacks
from phrasetool.smt.decoder.stack_search import stack_search
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.smt.decoder.translation_options import (
    TableLimit,
    TranslationOptions,
    WordScores,
    prepare_options,
    score_targets,
)
from phrasetool.smt.language_model.combination import LACKS_ROOM
from phrasetool.smt.language_model.ngrams import SearchedModel, TargetModel

# Initial room for language-model states of a search.
_FIRST_ROOM = 1 << 14


@dataclass(frozen=True)
class SearchOptions:
    """Search options; the defaults are those of Moses.

    Args:
        algorithm: `stack` or `cube`.
        stack_size: hypotheses a stack keeps.
        pop_limit: hypotheses that cube pruning creates for a stack.
        beam_threshold: a stack rejects hypotheses with a probability below this share of its best one; in [0, 1), 0 for
            no threshold.
        distortion_limit: words a jump may span; negative for the maximum, 63 words.
        table_limit: translation options per source phrase, of each phrase table; 0 for all.  One number for all tables,
            or one for each, in the order of moses.ini.

    Raises:
        ValueError: a value is out of range.
    """

    algorithm: str = "stack"
    stack_size: int = 200
    pop_limit: int = 1000
    beam_threshold: float = 1e-5
    distortion_limit: int = 6
    table_limit: TableLimit = 20

    def __post_init__(self) -> None:
        if self.algorithm not in ("stack", "cube"):
            raise ValueError(f"unknown search {self.algorithm!r}; expected stack or cube")
        limits = (self.table_limit,) if isinstance(self.table_limit, int) else self.table_limit
        if self.stack_size < 1 or self.pop_limit < 1 or min(limits) < 0 or not 0 <= self.beam_threshold < 1:
            raise ValueError("stack size and pop limit must be positive, the beam threshold at least 0 and below 1")

    @property
    def beam(self) -> float:
        """The beam threshold as a logarithm."""
        return float(np.log(self.beam_threshold)) if self.beam_threshold > 0 else -np.inf


@dataclass(frozen=True)
class Translation:
    """Derivations of one sentence, best first.

    Attributes:
        steps: phrases and scores.
        features: float64, shape (D, F), of each derivation, unweighted.
    """

    steps: Steps
    features: DoubleArray

    def __len__(self) -> int:
        return len(self.steps.scores)


class Translator:
    """A phrase-based model.

    Args:
        table: the entries that the text to translate can use, with copies for its unknown words.
        language_model: of the target language; one or several.
        features: the model's feature functions.
        weights: float64, shape (F,).
        table_limit: see `SearchOptions`.
    """

    def __init__(
        self,
        table: TranslationTable,
        language_model: TargetModel,
        features: FeatureSet,
        weights: Vector,
        table_limit: TableLimit = 20,
        *,
        word_scores: WordScores | None = None,
    ) -> None:
        self.table = table
        self.language_model = language_model
        self.features = features
        self.weights = np.asarray(weights, np.float64)
        self.table_limit = table_limit
        self._room = _FIRST_ROOM
        self._words = word_scores or score_targets(table, language_model)
        self.options: TranslationOptions = prepare_options(
            table, language_model, self._words, features, self.weights, table_limit
        )

    def with_weights(self, weights: Vector) -> Translator:
        """Return the same model with other weights; nothing is read again."""
        return Translator(
            self.table, self.language_model, self.features, weights, self.table_limit, word_scores=self._words
        )

    def _search(self, options: SearchOptions, keep_arcs: bool, searched: SearchedModel) -> Search:
        slices, model = self.features.slices, self.features.reordering
        span = WHOLE_SPAN if model else SPAN_END if self.features.has_distortion else NO_SPAN
        return Search(
            searched.weight,
            float(self.weights[slices["Distortion"]][0]),
            longest_jump(options.distortion_limit),
            model.kind if model else -1,
            span,
            options.distortion_limit >= 0,
            searched.begin_state,
            searched.end_word,
            keep_arcs,
        )

    def translate(
        self, sentence: Int32Array, options: SearchOptions, n_best: int = 1, distinct: bool = True, factor: int = 20
    ) -> Translation:
        """Translate one sentence.

        Args:
            sentence: int32, shape (n,), ids of the table's source words.
            options: search options; their table limit must be the translator's.
            n_best: number of derivations.
            distinct: list no two derivations with the same words.
            factor: stop the search for distinct derivations after n_best * factor derivations.

        Raises:
            ValueError: a word has no id, the table limits differ, or no derivation covers the sentence.
        """
        if options.table_limit != self.table_limit:
            raise ValueError(f"the options were chosen for a table limit of {self.table_limit}")
        sentence = np.ascontiguousarray(sentence, np.int32)
        if not len(sentence):
            return self._with_features(np.zeros(2, np.int64), np.zeros((3, 0), np.int32), np.zeros(1))
        if sentence.min() < 0:
            raise ValueError("a word of the sentence is not among the table's source words")
        pool, best = self._found(sentence, options, n_best > 1)
        if best < 0:
            raise ValueError("no derivation covers the sentence")
        entries, targets = self.options.entries, self.table.targets
        if n_best > 1:
            derivations = n_best_steps(pool, best, entries, targets.offsets, targets.words, n_best, distinct, factor)
            return self._with_features(*derivations)
        steps, score = best_steps(pool, best)
        steps[0] = entries[steps[0]]
        return self._with_features(np.array([0, steps.shape[1]]), steps, np.array([score]))

    def _found(self, sentence: Int32Array, options: SearchOptions, keep_arcs: bool) -> tuple[npt.NDArray[np.void], int]:
        """Return the pool of a search and its best complete hypothesis."""
        while True:
            room = self._room
            cube = options.algorithm == "cube"
            stacks = make_stacks(len(sentence), options.stack_size, options.beam, cube)
            searched = self.language_model.searched(self.weights[self.features.language_part], room)
            arguments = (sentence, self.table.index, self.options, searched.model)
            search = self._search(options, keep_arcs, searched)
            if cube:
                pool, best = cube_search(*arguments, search, stacks, options.pop_limit)
            else:
                pool, best = stack_search(*arguments, search, stacks)
            if best != LACKS_ROOM:
                return pool, best
            # Later sentences begin with this much room.
            self._room = max(self._room, 4 * room)

    def _with_features(self, offsets: np.ndarray, steps: Int32Array, scores: DoubleArray) -> Translation:
        features = self.score_steps(offsets, steps)
        return Translation(Steps(offsets, steps[0], steps[1], steps[2], scores), features)

    def score_steps(self, offsets: np.ndarray, steps: Int32Array) -> DoubleArray:
        """Return the features of derivations, float64, shape (D, F).

        Args:
            offsets: int64, shape (D + 1,).
            steps: int32, shape (3, P): entries, starts and ends, in target order.
        """
        slices, model = self.features.slices, self.features.reordering
        names = ("LexicalReordering", "Distortion", "WordPenalty", "PhrasePenalty", "TranslationModel")
        layout = [slices[name].start if name in slices else -1 for name in names]
        layout += [model.kind, model.first_column("backward"), model.first_column("forward")] if model else [-1, -1, -1]
        features = np.zeros((len(offsets) - 1, len(self.features)))
        offsets, steps = np.asarray(offsets, np.int64), np.ascontiguousarray(steps, np.int32)
        targets = self.table.targets
        derivation_features(
            offsets, steps, targets.offsets, self.table.scores, self.table.reordering,
            np.array(layout, np.int64), model.column_weights if model else np.zeros(0, np.int32), features,
        )  # fmt: skip
        features[:, self.features.language_part] = self.language_model.sentences(
            offsets, steps[0], Phrases(targets.offsets, self._words.ids)
        )
        return features

    def words(self, translation: Translation, derivation: int = 0) -> Int32Array:
        """Return the target words of a derivation, as ids of the table's target words."""
        first, last = translation.steps.offsets[derivation : derivation + 2]
        return self.table.targets.select(translation.steps.entries[first:last].astype(np.int64)).words

    def text(self, translation: Translation, derivation: int = 0) -> bytes:
        """Return the target words of a derivation as text."""
        return self.table.target_symbols.join(self.words(translation, derivation))

    def translate_all(
        self,
        sentences: Phrases | Iterable[Int32Array],
        options: SearchOptions,
        n_best: int = 1,
        distinct: bool = True,
        threads: int = 1,
        runner: Runner = run,
    ) -> Iterator[Translation]:
        """Translate sentences on several threads; results are in order and do not depend on the number of threads."""
        options = replace(options, table_limit=self.table_limit)

        def work(sentence: Int32Array) -> Translation:
            return self.translate(sentence, options, n_best, distinct)

        yield from runner(sentences, work, threads)
