"""Initial parameters for training on phrase pairs, from word vectors or from the encoders of trained autoencoders.

If word vectors are not trained, words without a given vector are treated as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from phrasetool.embeddings.files import load_vectors, open_plain
from phrasetool.embeddings.training import components_to_remove, initial_vectors, phrase_sentences, train_word2vec
from phrasetool.errors import DataError, ModelError
from phrasetool.models.fit import FEWEST, MIN_KNOWN_SHARE, MIN_SWAP_GAIN, WELL_KNOWN, has_letter, measure_fit
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.scoring import by_cosine
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.ranking import CHANCE
from phrasetool.training.data import PhrasePairs
from phrasetool.training.run import ProblemHandler
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

if TYPE_CHECKING:
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.phrase_encoder.encoder import EncoderParameters
    from phrasetool.phrase_encoder.settings import TrainingSettings
    from phrasetool.training.data import PhrasePairs


SIDES = ("source", "target")


@dataclass(frozen=True)
class Start:
    """Source of the initial parameters of one language; by default, word vectors trained on the phrases themselves.

    Attributes:
        sentences: returns monolingual text to train word vectors on: words as byte strings.
        vectors: a file of word vectors.
        autoencoder: a trained autoencoder, whose encoder is used unchanged.
        name: name of the given model or files in messages.
        files: files that are read later.
        opened: opens the file of word vectors, see `load_vectors`.
        loaded: the vectors, if the file has already been read.
    """

    sentences: Callable[[], Iterable[list[bytes]]] | None = None
    vectors: str | None = None
    autoencoder: AutoencoderModel | None = None
    name: str = ""
    files: tuple[str, ...] = ()
    opened: Callable[[str], BinaryIO] = open_plain
    loaded: Mapping[bytes, FloatArray] | None = None


def start_parameters(
    pairs: PhrasePairs,
    settings: TrainingSettings,
    starts: tuple[Start, Start],
    report: Callable[[str, float], None] = lambda side, share: None,
    report_problem: ProblemHandler = lambda message: None,
) -> tuple[EncoderParameters, EncoderParameters]:
    """Return the initial parameters of both languages, source first.

    Args:
        pairs: the training pairs.
        settings: training settings.
        starts: sources of the initial parameters of both languages, source first.
        report: called with a side and the share of its words with known initial vectors, if any vectors are known.
        report_problem: called if the vectors or the autoencoder of a language seem to be of another language.

    Raises:
        DataError: a file cannot be read, has vectors of another dimension, or has a vector for none of the words.
        ModelError: an autoencoder cannot serve as the encoder of phrases.
    """
    texts = (pairs.sources, pairs.source_vocabulary), (pairs.targets, pairs.target_vocabulary)
    written = [(phrases, vocabulary.words) for phrases, vocabulary in texts]

    def check(which: int, known: Collection[bytes]) -> None:
        if not starts[which].name:
            return
        problem = unfit(SIDES[which], written[which], written[1 - which], known)
        if not problem and not any(word in known or word.lower() in known for word in written[which][1][1:]):
            problem = f"has no word of the {SIDES[which]}"
        if problem:
            report_problem(f"{starts[which].name}: {problem}")

    source, target = (_side(which, *texts[which], settings, starts[which], report, check) for which in range(2))
    return source, target


# The words of a text of the same language cover 41 to 100 % of the running words with letters, those of another
# language 0 to 30 %, most in manuals of the same programs, which share names; so only a share near zero is conclusive,
# or a much larger share of the other side.
def unfit(
    side: str, own: tuple[Phrases, Sequence[bytes]], other: tuple[Phrases, Sequence[bytes]], known: Collection[bytes]
) -> str | None:
    """Return why known words are unsuitable for a side; None if they may be suitable, or if a side is too small.

    Args:
        side: name of the side.
        own, other: the phrases of this side and of the other side, with the words of their ids.
        known: the known words.
    """
    shares = []
    for phrases, words in (own, other):
        running = phrases.words[np.array([has_letter(word) for word in words])[phrases.words]]
        if len(running) < FEWEST:
            return None
        is_known = np.array([word in known for word in words])
        shares.append(float(is_known[running].mean()))
    share, other_share = shares
    if share >= WELL_KNOWN or (share >= MIN_KNOWN_SHARE and other_share < share + MIN_SWAP_GAIN):
        return None
    message = f"knows {share:.1%} of the running words of the {side}"
    if other_share > share + MIN_SWAP_GAIN:
        return f"{message} and {other_share:.1%} of those of the other side: source and target look swapped"
    return f"{message}: it is in another language, or tokenised differently"


def _side(
    which: int, phrases: Phrases, vocabulary: Vocabulary, settings: TrainingSettings, start: Start,
    report: Callable[[str, float], None], check: Callable[[int, Collection[bytes]], None],
) -> EncoderParameters:  # fmt: skip
    known: Mapping[bytes, FloatArray | None] = {}
    vectors: Mapping[bytes, FloatArray] = {}
    if start.autoencoder is not None:
        known = dict.fromkeys(start.autoencoder.vocabulary.words)
    elif settings.vectors != "random":
        known = vectors = _known_vectors(phrases, vocabulary, settings, start)
    if known:
        share = sum(word in known for word in vocabulary.words[1:]) / max(len(vocabulary) - 1, 1)
        report(SIDES[which], share)
    check(which, known)
    if start.autoencoder is not None:
        return settings.kind.parameters(start.autoencoder.encoder_arrays(vocabulary.words))
    rng = np.random.default_rng([settings.seed, which])
    dimension = settings.kind.word_dimension(settings.dimension)
    components = components_to_remove(dimension) if settings.vectors == "centred" else 0
    first = initial_vectors(vocabulary, vectors, dimension, settings.vector_scale, rng, components)
    return settings.kind.initial(first, settings.dimension, settings.start, rng)


def _known_vectors(
    phrases: Phrases, vocabulary: Vocabulary, settings: TrainingSettings, start: Start
) -> Mapping[bytes, FloatArray]:
    if start.loaded is not None:
        return start.loaded
    dimension = settings.kind.word_dimension(settings.dimension)
    if start.vectors:
        return load_vectors(start.vectors, vocabulary.words, dimension, start.opened)
    sentences = start.sentences() if start.sentences else phrase_sentences(phrases, vocabulary)
    return train_word2vec(sentences, dimension, settings.seed)


def prescribed_settings(model: AutoencoderModel, folder: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training settings that an autoencoder prescribes for encoders that start from it.

    Args:
        model: the autoencoder.
        folder: its folder, for messages.
        chosen: requested settings by name; None if not requested.

    Raises:
        ValueError: a requested setting differs from the prescribed one.
        ModelError: the autoencoder cannot serve as the encoder of phrases.
    """
    try:
        prescribed = model.encoder_settings()
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    for name, value in prescribed.items():
        if chosen.get(name) not in (None, value):
            raise ValueError(f"{name} is {chosen[name]}, but the autoencoder in {folder} has {value}")
    return prescribed


# Approximate number of pairs that a model is measured on.
_SAMPLE = 2000


def with_known_words(
    pairs: PhrasePairs, settings: TrainingSettings, starts: tuple[Start, Start]
) -> tuple[PhrasePairs, tuple[Start, Start]]:
    """Return pairs in which words without a vector are unknown, and starts with the vectors loaded.

    Pairs and starts for encoders that train word vectors are returned unchanged.

    Raises:
        DataError: a file of vectors cannot be read, has another dimension or values that are not finite, or has no
            word of its side.
        ValueError: vectors of one space are required, but not given for both languages.
    """
    if not settings.kind.fixed_words:
        return pairs, starts
    if not settings.kind.learns and not all(start.vectors for start in starts):
        raise ValueError("without a transformation to learn, both languages need word vectors of one space, in files")
    phrases, vocabularies = [pairs.sources, pairs.targets], [pairs.source_vocabulary, pairs.target_vocabulary]
    loaded_starts = list(starts)
    for which, start in enumerate(starts):
        if not start.vectors:
            continue
        known = _known(which, vocabularies[which], settings, start)
        loaded_starts[which] = replace(start, loaded=known)
        phrases[which], vocabularies[which] = _only(known, phrases[which], vocabularies[which])
    return replace(
        pairs, sources=phrases[0], targets=phrases[1],
        source_vocabulary=vocabularies[0], target_vocabulary=vocabularies[1],
    ), (loaded_starts[0], loaded_starts[1])  # fmt: skip


def check_one_space(model: BilingualModel, pairs: PhrasePairs, report_problem: ProblemHandler) -> None:
    """Report a problem if an untrained model distinguishes pairs from others hardly better than chance.

    Args:
        model: model with vectors that should be of one space.
        pairs: pairs to distinguish.
        report_problem: called with the problem.
    """
    step = max(1, len(pairs) // _SAMPLE)
    rows = np.arange(0, len(pairs), step)
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    fit = measure_fit(by_cosine(model.scorer()), (pairs.sources.select(rows), pairs.targets.select(rows)), vocabularies)
    if fit.is_conclusive and fit.chance < CHANCE:
        report_problem(
            "the word vectors of the two languages are not in one space: they rank true pairs no better than "
            f"chance (AUC {fit.chance:.2f}); a learnt transformation may help"
        )


def _known(which: int, vocabulary: Vocabulary, settings: TrainingSettings, start: Start) -> Mapping[bytes, FloatArray]:
    assert start.vectors is not None
    dimension = settings.kind.word_dimension(settings.dimension)
    vectors = load_vectors(start.vectors, vocabulary.words, dimension, start.opened)
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            text = word.decode("utf-8", "replace")
            raise DataError(start.vectors, f"the vector of {text!r} holds values that are not finite")
    # A zero vector carries no information.
    kept = {word: vector for word, vector in vectors.items() if vector.any()}
    if not any(word in kept or word.lower() in kept for word in vocabulary.words[1:]):
        raise DataError(start.vectors, f"has no word of the {SIDES[which]}")
    return kept


def _only(known: Mapping[bytes, FloatArray], phrases: Phrases, vocabulary: Vocabulary) -> tuple[Phrases, Vocabulary]:
    """Return the phrases and their vocabulary reduced to the known words; all others become unknown."""
    kept = [i for i, word in enumerate(vocabulary.words) if i and (word in known or word.lower() in known)]
    numbers = np.full(len(vocabulary), UNKNOWN, np.int32)
    numbers[kept] = np.arange(1, len(kept) + 1)
    lost = int(vocabulary.counts.sum() - vocabulary.counts[kept].sum())
    words = [UNKNOWN_WORD, *(vocabulary.words[i] for i in kept)]
    reduced = Vocabulary(words, [lost, *vocabulary.counts[kept].tolist()])
    return Phrases(phrases.offsets, numbers[phrases.words]), reduced
