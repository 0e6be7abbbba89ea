"""Start of training on phrase pairs: word vectors, or the encoders of trained autoencoders.

Where word vectors are not trained, a word without a given vector is read as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from phrasetool.embeddings.files import load_vectors, open_plain
from phrasetool.embeddings.training import components_to_remove, initial_vectors, phrase_sentences, train_word2vec
from phrasetool.errors import DataError, ModelError
from phrasetool.models.fit import CLEARLY, FEWEST, HARDLY_KNOWN, WELL_KNOWN, has_letter, measure_fit
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
    """Start of one language; by default, word vectors trained on the phrases themselves.

    Attributes:
        sentences: makes monolingual text to train word vectors on: words as byte strings.
        vectors: a file of word vectors.
        autoencoder: a trained one, whose encoder is taken as it is.
        name: what messages call the model or the files that were given.
        files: that will be read when it comes to that.
        opened: opens the file of word vectors, see `load_vectors`.
        loaded: the vectors, if the file was read before.
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
    """Start parameters of both languages, source first.

    Args:
        pairs: what will be learned from.
        settings: of the training.
        starts: what each language starts from, source first.
        report: called with a side and the share of its words that start from known vectors, if any vectors are known.
        report_problem: called if what was given for a language is of another one.

    Raises:
        DataError: of the words of a language, hardly any is known to what was given to start it from.
        PhraseToolError: a file cannot be read, or holds vectors of another dimension.
    """
    texts = (pairs.sources, pairs.source_vocabulary), (pairs.targets, pairs.target_vocabulary)
    written = [(phrases, vocabulary.words) for phrases, vocabulary in texts]

    def check(which: int, known: Collection[bytes]) -> None:
        if not starts[which].name:
            return
        problem = unfit(SIDES[which], written[which], written[1 - which], known)
        if not problem and not any(word in known or word.lower() in known for word in written[which][1][1:]):
            problem = f"knows no word of the {SIDES[which]}"
        if problem:
            report_problem(f"{starts[which].name}: {problem}")

    source, target = (_side(which, *texts[which], settings, starts[which], report, check) for which in range(2))
    return source, target


# Of the running words with letters, a text of the same language knows 41 to 100 %, one of another 0 to 30 %, most in
# manuals of the same programs, whose names they share; so only near zero is sure, or that the other side is known.
def unfit(
    side: str, own: tuple[Phrases, Sequence[bytes]], other: tuple[Phrases, Sequence[bytes]], known: Collection[bytes]
) -> str | None:
    """Why the known words cannot be meant for a side; None if they may be, or if it is too small to tell.

    Args:
        side: its name.
        own, other: the phrases of this side and of the other, and the words that their ids mean.
        known: words.
    """
    shares = []
    for phrases, words in (own, other):
        running = phrases.words[np.array([has_letter(word) for word in words])[phrases.words]]
        if len(running) < FEWEST:
            return None
        seen = np.array([word in known for word in words])
        shares.append(float(seen[running].mean()))
    share, turned = shares
    if share >= WELL_KNOWN or (share >= HARDLY_KNOWN and turned < share + CLEARLY):
        return None
    message = f"knows {share:.1%} of the running words of the {side}"
    if turned > share + CLEARLY:
        return f"{message} and {turned:.1%} of those of the other side: source and target look swapped"
    return f"{message}: it is of another language, or of other tokens"


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
    """The settings of training that an autoencoder prescribes to who starts from it.

    Args:
        model: the autoencoder.
        folder: where it is, for messages.
        chosen: settings by name, None where nothing was chosen.

    Raises:
        ValueError: something else was chosen than the autoencoder prescribes.
        ModelError: it cannot serve as the encoder of phrases.
    """
    try:
        prescribed = model.encoder_settings()
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    for name, value in prescribed.items():
        if chosen.get(name) not in (None, value):
            raise ValueError(f"{name} is {chosen[name]}, but the autoencoder in {folder} has {value}")
    return prescribed


# Pairs that a model is measured on.
_SAMPLE = 2000


def with_known_words(
    pairs: PhrasePairs, settings: TrainingSettings, starts: tuple[Start, Start]
) -> tuple[PhrasePairs, tuple[Start, Start]]:
    """Pairs in which a word without a vector is unknown, and starts that need not read the vectors again.

    Pairs and starts for encoders whose words learn come back as they are.

    Raises:
        DataError: a file of vectors cannot be read, has another dimension or values that are not finite, or knows no
            word of its side.
        ValueError: vectors of one space are required, and none are given.
    """
    if not settings.kind.fixed_words:
        return pairs, starts
    if not settings.kind.learns and not all(start.vectors for start in starts):
        raise ValueError("without a transformation to learn, both languages need word vectors of one space, in files")
    phrases, vocabularies = [pairs.sources, pairs.targets], [pairs.source_vocabulary, pairs.target_vocabulary]
    made = list(starts)
    for which, start in enumerate(starts):
        if not start.vectors:
            continue
        known = _known(which, vocabularies[which], settings, start)
        made[which] = replace(start, loaded=known)
        phrases[which], vocabularies[which] = _only(known, phrases[which], vocabularies[which])
    return replace(
        pairs, sources=phrases[0], targets=phrases[1],
        source_vocabulary=vocabularies[0], target_vocabulary=vocabularies[1],
    ), (made[0], made[1])  # fmt: skip


def check_one_space(model: BilingualModel, pairs: PhrasePairs, report_problem: ProblemHandler) -> None:
    """Say it where a model that learnt nothing tells pairs from others hardly better than chance.

    Args:
        model: of vectors that should be of one space.
        pairs: that it is to tell.
        report_problem: called if it does not.
    """
    step = max(1, len(pairs) // _SAMPLE)
    some = np.arange(0, len(pairs), step)
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    fit = measure_fit(by_cosine(model.scorer()), (pairs.sources.select(some), pairs.targets.select(some)), vocabularies)
    if fit.can_tell and fit.chance < CHANCE:
        report_problem(
            "the word vectors of the two languages are not of one space: they tell pairs from others no better than "
            f"chance (AUC {fit.chance:.2f}); with a transformation that is learnt they may do"
        )


def _known(which: int, vocabulary: Vocabulary, settings: TrainingSettings, start: Start) -> Mapping[bytes, FloatArray]:
    assert start.vectors is not None
    dimension = settings.kind.word_dimension(settings.dimension)
    vectors = load_vectors(start.vectors, vocabulary.words, dimension, start.opened)
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            text = word.decode("utf-8", "replace")
            raise DataError(start.vectors, f"the vector of {text!r} holds values that are not finite")
    # A zero vector says nothing.
    kept = {word: vector for word, vector in vectors.items() if vector.any()}
    if not any(word in kept or word.lower() in kept for word in vocabulary.words[1:]):
        raise DataError(start.vectors, f"knows no word of the {SIDES[which]}")
    return kept


def _only(known: Mapping[bytes, FloatArray], phrases: Phrases, vocabulary: Vocabulary) -> tuple[Phrases, Vocabulary]:
    """The same with an entry in the vocabulary for known words alone."""
    kept = [i for i, word in enumerate(vocabulary.words) if i and (word in known or word.lower() in known)]
    numbers = np.full(len(vocabulary), UNKNOWN, np.int32)
    numbers[kept] = np.arange(1, len(kept) + 1)
    lost = int(vocabulary.counts.sum() - vocabulary.counts[kept].sum())
    words = [UNKNOWN_WORD, *(vocabulary.words[i] for i in kept)]
    reduced = Vocabulary(words, [lost, *vocabulary.counts[kept].tolist()])
    return Phrases(phrases.offsets, numbers[phrases.words]), reduced
