"""What training starts from: word vectors, or trained autoencoders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import ModelError

if TYPE_CHECKING:
    from phrasetool.encoders.protocols import EncoderParameters
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.phrases import Phrases
    from phrasetool.training.pairs import PhrasePairs
    from phrasetool.training.settings import TrainingSettings
    from phrasetool.vocabulary import Vocabulary

_NAMES = ("source", "target")


@dataclass(frozen=True)
class Start:
    """What the user gave to start from, source first.

    Attributes:
        texts: monolingual text to train word vectors on.
        vectors: files of word vectors.
        autoencoders: trained ones, whose encoders are taken as they are.
        quiet: say nothing.
    """

    texts: tuple[tuple[str, ...], tuple[str, ...]]
    vectors: tuple[str | None, str | None]
    autoencoders: tuple[AutoencoderModel | None, AutoencoderModel | None]
    quiet: bool

    def parameters(self, data: PhrasePairs, settings: TrainingSettings) -> tuple[EncoderParameters, EncoderParameters]:
        """Start parameters of both languages.

        Raises:
            PhraseToolError: a file cannot be read, or holds vectors of another dimension.
        """
        source = self._side(0, data.sources, data.source_vocabulary, settings)
        return source, self._side(1, data.targets, data.target_vocabulary, settings)

    def _side(
        self, which: int, phrases: Phrases, vocabulary: Vocabulary, settings: TrainingSettings
    ) -> EncoderParameters:
        import numpy as np

        from phrasetool.embeddings.initial import components_to_remove, initial_vectors
        from phrasetool_cli.shared.progress import say

        known: Mapping[bytes, Any] = {}
        autoencoder = self.autoencoders[which]
        if autoencoder is not None:
            known = dict.fromkeys(autoencoder.vocabulary.words)
        elif settings.vectors != "random":
            known = self._known_vectors(which, phrases, vocabulary, settings)
        if not self.quiet and known:
            share = sum(word in known for word in vocabulary.words[1:]) / max(len(vocabulary) - 1, 1)
            say(f"{_NAMES[which]} word vectors: {share:.1%} of the words start from known vectors")
        if autoencoder is not None:
            return settings.kind.parameters(autoencoder.encoder_arrays(vocabulary.words))
        rng = np.random.default_rng([settings.seed, which])
        dimension = settings.kind.word_dimension(settings.dimension)
        components = components_to_remove(dimension) if settings.vectors == "centred" else 0
        vectors = initial_vectors(vocabulary, known, dimension, settings.vector_scale, rng, components)
        return settings.kind.initial(vectors, settings.dimension, settings.start, rng)

    def _known_vectors(
        self, which: int, phrases: Phrases, vocabulary: Vocabulary, settings: TrainingSettings
    ) -> dict[bytes, Any]:
        from phrasetool.embeddings.files import load_vectors
        from phrasetool.embeddings.word2vec import phrase_sentences, train_word2vec

        dimension = settings.kind.word_dimension(settings.dimension)
        file, texts = self.vectors[which], self.texts[which]
        if file:
            return load_vectors(file, vocabulary.words, dimension)
        sentences = _sentences(texts) if texts else phrase_sentences(phrases, vocabulary)
        return train_word2vec(sentences, dimension, settings.seed)


def _sentences(paths: tuple[str, ...]) -> Iterator[list[bytes]]:
    """The lines of text files as words, Moses' escapes undone."""
    from moses_compat.files.streams import Input
    from phrasetool.vocabulary import unescape

    for path in paths:
        with Input(path) as source:
            for line in source.read_all().split(b"\n"):
                yield (unescape(line) if b"&" in line else line).split()


def load_autoencoders(
    folders: tuple[str | None, str | None], chosen: dict[str, Any]
) -> tuple[AutoencoderModel | None, AutoencoderModel | None]:
    """Load the autoencoders to start from.

    Args:
        folders: of the source's and the target's, None for none.
        chosen: settings by name, None where nothing was chosen; gets what the autoencoders prescribe.

    Raises:
        click.UsageError: something else was chosen than an autoencoder prescribes.
        ModelError: a folder does not hold an autoencoder that can serve as the encoder of phrases.
    """
    from phrasetool.models.storage import load_autoencoder

    source, target = (load_autoencoder(folder) if folder else None for folder in folders)
    for folder, model in zip(folders, (source, target), strict=True):
        if model is None:
            continue
        try:
            prescribed = model.encoder_settings()
        except ModelError as error:
            raise ModelError(f"{folder}: {error}") from error
        for name, value in prescribed.items():
            if chosen.get(name) not in (None, value):
                raise click.UsageError(f"{name} is {chosen[name]}, but the autoencoder in {folder} has {value}")
            chosen[name] = value
    return source, target
