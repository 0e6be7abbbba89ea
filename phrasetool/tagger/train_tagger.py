"""From treebanks to a saved tagger."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import numpy as np

from phrasetool.tagger.data import Treebanks, learnt_tags, tagger_examples
from phrasetool.tagger.model import TaggerModel
from phrasetool.tagger.settings import TaggerSettings
from phrasetool.tagger.tagger_measures import accuracies
from phrasetool.tagger.training import TaggerTrainer
from phrasetool.train.loop import train_epochs
from phrasetool.train.run import TrainingRun

# Where no development set is given, one sentence in so many is held out.
_HELD_OUT = 20


def held_out_sentences(treebanks: Treebanks, seed: int) -> tuple[Treebanks, Treebanks]:
    """Sentences to learn from, and one in twenty of each language as a development set.

    Args:
        treebanks: two sentences a language at least.
        seed: of the draw.

    Raises:
        ValueError: a language has fewer.
    """
    kept, held = {}, {}
    for language, sentences in treebanks.items():
        if len(sentences) < 2:
            raise ValueError(f"{len(sentences)} sentence of {language}, expected two at least, to hold one out")
        order = np.random.default_rng([seed, len(sentences)]).permutation(len(sentences))
        count = max(1, len(sentences) // _HELD_OUT)
        held[language] = [sentences[i] for i in sorted(order[:count].tolist())]
        kept[language] = [sentences[i] for i in sorted(order[count:].tolist())]
    return kept, held


def train_tagger(
    treebanks: Treebanks,
    development: Treebanks,
    settings: TaggerSettings,
    run: TrainingRun,
) -> TaggerModel:
    """Train a tagger and save it.

    Args:
        treebanks: what to learn from, by language.
        development: decides which epoch is kept; of some of these languages.
        settings: how.
        run: where and how.

    Raises:
        ModelError: there is a finished model or an unfinished training; the checkpoint is missing, damaged, or of
            other treebanks or settings.
        DivergedError: the learning rate is too large; the last good checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
    """
    run.check()
    # The table with two moments of Adam and the best so far, and the checkpoint that takes its place.
    run.check_space(2 * 4 * 4 * settings.buckets * settings.word_units)
    tags = learnt_tags(treebanks, settings.min_joint)
    examples = tagger_examples(treebanks, tags, settings.buckets)
    identity = {"treebanks": [_fingerprint(treebanks), _fingerprint(development)], "settings": settings.as_dict()}

    def start() -> TaggerTrainer:
        return TaggerTrainer(examples, development, tags, settings, run.device)

    trainer = train_epochs(run, identity, start)
    network = trainer.kept()
    shape = settings.shape(len(tags))
    found = accuracies(network.arrays(), shape, tags, development)
    training = {
        **settings.as_dict(),
        "sentences": {language: len(sentences) for language, sentences in treebanks.items()},
        **run.record,
        "epochs_done": trainer.epoch,
        "best_epoch": trainer.best["epoch"] if trainer.best else 0,
        "development": {
            language: {name: value for name, value in asdict(one).items() if name != "by_tag"}
            for language, one in found.items()
        },
    }
    model = TaggerModel(list(treebanks), tags, shape, network.arrays(), training)
    run.save(model)
    return model


def _fingerprint(treebanks: Treebanks) -> str:
    """Hexadecimal digits that differ when a sentence differs."""
    digest = hashlib.sha256()
    for language, sentences in treebanks.items():
        digest.update(repr((language, [(one.words, one.tags, one.tokens) for one in sentences])).encode())
    return digest.hexdigest()[:16]
