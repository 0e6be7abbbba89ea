"""Train a classifier of sentence pairs and save it.

`train_pair_classifier` builds a classifier with initial values (`fresh_classifier`), trains it
(`PairClassifierTrainer`), calibrates it, and trains search vectors (`SearchTrainer`).  Each sentence of a batch is
encoded once; its negatives are targets of others in the batch, and some that contain the correct target or are a part
of it.  On a CPU, training is reproducible for a given seed and number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.embeddings.training import initial_vectors, train_word2vec
from phrasetool.nn.losses import contrastive_loss
from phrasetool.pair_classifier.inputs import SOURCE, TARGET, PretrainedInputs, WordSides, known_parts, random_vectors
from phrasetool.pair_classifier.labelled_pairs import (
    KnownTranslations,
    batch_negatives,
    contained_pairs,
    containment_negatives,
    encoded_logits,
    epoch_batches,
    random_pairs,
)
from phrasetool.pair_classifier.model import SEARCH_VECTORS, PairClassifierModel, probabilities_of
from phrasetool.pair_classifier.network import PairClassifier, SiameseNetwork, lexicon_units, sentence_units, summed
from phrasetool.pair_classifier.quality import (
    best_quality,
    calibrated_temperature,
    calibration_error,
    quality_at,
)
from phrasetool.pair_classifier.settings import WORD2VEC, PairClassifierArchitecture, PairClassifierSettings
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Phrases
from phrasetool.ranking import CHANCE, area_under_curve
from phrasetool.text_encoders.text_encoder import SIDES
from phrasetool.training.data import TextPairs, fingerprint
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.training.run import CHECKPOINT, SEARCH, DivergedError, StartError, TrainingRun
from phrasetool.vocabulary import Vocabulary

# Scale of the components of word2vec's vectors, equal to that of random ones.
_WORD_VECTOR_SCALE = 0.1


@dataclass(frozen=True)
class FreshClassifier:
    """Untrained classifier and its vocabularies, from which training starts.

    Attributes:
        vocabularies: words of source and target, n-grams of source and target; empty with an encoder.
        encoder: encoder of subword tokens; None for words.
        architecture: architecture of the classifier.
        classifier: classifier with initial values.
    """

    vocabularies: list[Vocabulary]
    encoder: PretrainedInputs | None
    architecture: PairClassifierArchitecture
    classifier: PairClassifier


def fresh_classifier(pairs: TextPairs, settings: PairClassifierSettings) -> FreshClassifier:
    """Return a new classifier, with the encoder of the settings or with the words of the pairs.

    Args:
        pairs: pairs that provide the words and n-grams of the vocabularies.
        settings: settings of training.

    Raises:
        ModelError: the encoder's folder is refused.
    """
    encoder: PretrainedInputs | None = None
    vocabularies: list[Vocabulary] = []
    inputs: Any
    if settings.folder is not None:
        inputs = encoder = PretrainedInputs(Path(settings.folder), settings.layer, settings.tuned, settings.precision)
        architecture = settings.architecture(encoder.width)
    else:
        architecture = settings.architecture()
        limits = settings.min_count, settings.vocabulary_size
        words = pairs.source_vocabulary(*limits), pairs.target_vocabulary(*limits)
        sides = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        parts = [known_parts(_used(*side), settings.characters, settings.parts) for side in sides]
        vocabularies = [*words, *parts]
        arrays = _start(pairs, settings, vocabularies)
        inputs = WordSides(words, (parts[0], parts[1]), settings.characters, arrays, settings.hidden_words)
    network = SiameseNetwork(architecture, settings.seed, settings.dropout, settings.output_dropout)
    return FreshClassifier(vocabularies, encoder, architecture, PairClassifier(inputs, network))


def _used(texts: Phrases, words: Any) -> list[bytes]:
    """Return the words that occur."""
    return [words[i] for i in np.unique(texts.words)]


def _start(pairs: TextPairs, settings: PairClassifierSettings, vocabularies: list[Vocabulary]) -> dict[str, FloatArray]:
    """Return the initial vectors of words and n-grams."""
    rng = np.random.default_rng([settings.seed, 5])
    units = settings.sizes["word_units"]
    arrays = {}
    names = [f"{side}.{kind}" for kind in ("words", "parts") for side in SIDES]
    for name, vocabulary in zip(names, vocabularies, strict=True):
        arrays[name] = random_vectors(rng, len(vocabulary), units)
    if settings.encoder == WORD2VEC:
        sides = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        for name, vocabulary, (texts, words) in zip(names, vocabularies, sides, strict=False):
            known = train_word2vec(([words[i] for i in text] for text in texts), units, settings.seed)
            arrays[name] = initial_vectors(vocabulary, known, units, _WORD_VECTOR_SCALE, rng)
    return arrays


def label_loss(logits: Tensor, parallel: Tensor) -> Tensor:
    """Return the mean binary cross-entropy of K pairs: -log p of parallel ones, -log(1 - p) of others.

    Equation 8 of Mao et al. (2021) is misprinted; it must mean this loss.

    Args:
        logits: logits, shape (K,).
        parallel: labels, 1 or 0, shape (K,).
    """
    return functional.binary_cross_entropy_with_logits(logits, parallel)


# Share of the updates in which the step size rises from nearly 0.
_WARM = 0.05
# Random negative pairs per true pair of the development set, as in the paper.
_NEGATIVES = 5


@dataclass(frozen=True)
class PairClassifierReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean loss of the updates of the epoch, including the contrastive loss.
        development_loss: binary cross-entropy on the development set, with five random negatives per true pair.
        precision, recall, f1: measures of these pairs at 0.5.
        best_f1, best_threshold: the highest F1 and its threshold.
        contained_f1: F1 at 0.5 with one negative by containment per true pair.
        auc: AUC on the random pairs.
        updates: updates so far.
    """

    epoch: int
    loss: float
    development_loss: float
    precision: float
    recall: float
    f1: float
    best_f1: float
    best_threshold: float
    contained_f1: float
    auc: float
    updates: int


def _parameter_groups(classifier: PairClassifier, settings: PairClassifierSettings) -> list[dict[str, Any]]:
    """Return the trained parameters, grouped by step size."""
    layers = classifier.inputs.layers()
    slow = {id(parameter) for parameter in layers}
    fast = [parameter for parameter in classifier.parameters() if parameter.requires_grad and id(parameter) not in slow]
    rates = ((fast, settings.learning_rate), (layers, settings.layers_learning_rate))
    return [{"params": params, "lr": rate} for params, rate in rates if params]


class PairClassifierTrainer(EpochTrainer[PairClassifierReport]):
    """Trainer of a classifier.

    Args:
        pairs: training pairs.
        development: development set, which decides the epoch to keep.
        classifier: new classifier; it is trained in place.
        settings: hyper-parameters of training.
        device: device; CPU by default.
    """

    def __init__(
        self, pairs: TextPairs, development: TextPairs, classifier: PairClassifier, settings: PairClassifierSettings,
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.pairs, self.settings = pairs, settings
        self.module = classifier.to(device or torch.device("cpu"))
        self.random = random_pairs(development, _NEGATIVES, settings.seed)
        self.contained = contained_pairs(development, settings.seed)
        adam = torch.optim.Adam(_parameter_groups(classifier, settings), fused=True)
        learnt = {name: value for name, value in classifier.named_parameters() if value.requires_grad}
        updates = -(-len(pairs) // settings.batch_size)
        super().__init__(LearntParameters(learnt, {ADAM: adam}), (settings.seed,), settings.epochs, updates)
        self._known = KnownTranslations(pairs.sources, pairs.targets)
        inputs = classifier.inputs
        self._lexicons = inputs.lexicon(SOURCE, pairs.source_words), inputs.lexicon(TARGET, pairs.target_words)
        for side, texts in ((SOURCE, pairs.sources), (TARGET, pairs.targets)):
            inputs.keep(side, texts, self._lexicons[side])

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per update."""
        self.module.train()
        self.module.network.seed_dropout(int(rng.integers(2**62)))
        self.module.inputs.seed(int(rng.integers(2**62)))
        batches = epoch_batches(len(self.pairs), self.settings.batch_size, rng)
        total = 0.0
        for number, batch in enumerate(batches):
            total += self._update(batch, rng, number)
            tick(len(batch))
        return total / len(batches)

    def kept(self) -> PairClassifier:
        """Return the classifier of the best epoch."""
        self.learnt.take_best()
        self.module.inputs.forget()
        return self.module.eval()

    def _update(self, batch: Int64Array, rng: np.random.Generator, number: int) -> float:
        """Take one step of Adam; return the loss."""
        if self.settings.schedule == "linear":
            share = self.share(number)
            self.learnt.scale_rates(min(1.0, (share + 1e-3) / _WARM) * (1 - share))
        loss = self._loss(batch, rng)
        self.learnt.step(loss, self.settings.clip)
        return float(loss.detach())

    def _loss(self, batch: Int64Array, rng: np.random.Generator) -> Tensor:
        s, pairs, module = self.settings, self.pairs, self.module
        translations = self._known.among(batch)
        rows, columns = batch_negatives(~translations, s.negatives, rng)
        repeated = np.tile(np.arange(len(batch)), s.containment)
        wrong, wrong_of = containment_negatives(pairs.targets, batch[repeated], self._known, rng)
        row_of_pair = {pair: row for row, pair in enumerate(batch.tolist())}
        sources, targets = pairs.sources.select(batch), Phrases.concatenate([pairs.targets.select(batch), wrong])
        own = np.arange(len(batch))
        rows = np.concatenate([own, rows, np.array([row_of_pair[pair] for pair in wrong_of.tolist()], np.int64)])
        columns = np.concatenate([own, columns, len(batch) + np.arange(len(wrong))])
        first, second = self._vectors(sources, targets)
        logits = module.network.logits(
            *self._chosen(first, sources.lengths, rows), *self._chosen(second, targets.lengths, columns)
        )
        loss = label_loss(logits, (torch.arange(len(rows), device=logits.device) < len(batch)).to(logits.dtype))
        if s.contrast:
            known = torch.from_numpy(translations).to(logits.device)
            loss = loss + s.contrast * contrastive_loss(first, second[: len(batch)], known, s.contrast_temperature)
        return loss

    def _vectors(self, sources: Phrases, targets: Phrases) -> tuple[Tensor, Tensor]:
        """Return the vectors of both sides; the network encodes them as one batch."""
        inputs = self.module.inputs
        first, counts = inputs.vectors(SOURCE, sources, self._lexicons[SOURCE])
        second, more = inputs.vectors(TARGET, targets, self._lexicons[TARGET])
        vectors = self.module.network.encode(torch.cat([first, second]), np.concatenate([counts, more]))
        return vectors[: len(sources)], vectors[len(sources) :]

    def _chosen(self, vectors: Tensor, lengths: Int64Array, rows: Int64Array) -> tuple[Tensor, Tensor]:
        device = vectors.device
        return vectors.index_select(0, torch.from_numpy(rows).to(device)), torch.from_numpy(lengths[rows]).to(device)

    def _report(self, loss: float) -> PairClassifierReport:
        """Measure the classifier on the development set after an epoch."""
        self.module.eval()
        logits, sources = encoded_logits(self.module, self.random)
        logits = _numbers(logits)
        probabilities, parallel = probabilities_of(logits), self.random.parallel
        half, best = quality_at(probabilities, parallel, 0.5), best_quality(probabilities, parallel)
        contained = probabilities_of(_numbers(encoded_logits(self.module, self.contained, sources)[0]))
        # Pairs without known words have probability 0 and are left out of the loss.
        finite = np.isfinite(logits)
        losses = np.logaddexp(0, np.where(parallel, -logits, logits)[finite])
        development_loss = float(losses.sum() / max(len(losses), 1))
        return PairClassifierReport(
            self.epoch, loss, development_loss, half.precision, half.recall, half.f1, best.f1, best.threshold,
            quality_at(contained, self.contained.parallel, 0.5).f1,
            area_under_curve(probabilities[parallel], probabilities[~parallel]), self.updates_done,
        )  # fmt: skip

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return float(report["best_f1"])

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of guessing, as before the first update."""
        s = self.settings
        others = np.log(min(s.batch_size, len(self.pairs)))
        return {"train": StartError.of(float(np.log(2) + s.contrast * others))}


def _numbers(logits: DoubleArray) -> DoubleArray:
    """Replace NaN in logits by 0; a diverged training, which is recognised by its loss, has such logits."""
    return np.nan_to_num(logits, nan=0.0, posinf=np.inf, neginf=-np.inf)


# Number of hash values; large enough that few units collide.
BUCKETS = 1 << 17
# Pairs per batch; a larger batch has more negatives.
_SEARCH_BATCH = 1024
_SEARCH_TEMPERATURE = 0.1
_UNIT_VECTOR_SCALE, _TABLE_RATE, _MAP_RATE = 0.01, 2e-3, 1e-3
_TABLE, _MAP = "table_optimizer.", "map_optimizer."


@dataclass(frozen=True)
class SearchReport:
    """One line of the log.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean loss of the updates of the epoch.
    """

    epoch: int
    loss: float


class SearchTrainer(EpochTrainer[SearchReport]):
    """Trainer of search vectors: of the vectors of units.

    Args:
        pairs: training pairs, at least two different ones.
        settings: size of the vectors, epochs and seed.
    """

    def __init__(self, pairs: TextPairs, settings: PairClassifierSettings) -> None:
        self._pairs = len(pairs)
        self._known = KnownTranslations(pairs.sources, pairs.targets)
        sides = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        self._sides = [(texts, lexicon_units(words, BUCKETS)) for texts, words in sides]
        rng = np.random.default_rng([settings.seed, 7])
        size = settings.search_units
        drawn = rng.standard_normal((BUCKETS, size), np.float32) * np.float32(_UNIT_VECTOR_SCALE)
        self._table = nn.Parameter(torch.from_numpy(drawn))
        # Transforms all vectors at once, including those of units that occur in no pair.
        self._map = nn.Parameter(torch.eye(size))
        optimizers = {
            _TABLE: torch.optim.SparseAdam([self._table], lr=_TABLE_RATE),
            _MAP: torch.optim.Adam([self._map], lr=_MAP_RATE),
        }
        learnt = LearntParameters({"table": self._table, "map": self._map}, optimizers)
        super().__init__(learnt, (settings.seed, 8), settings.search_epochs, -(-len(pairs) // _SEARCH_BATCH))

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per update."""
        batches = epoch_batches(self._pairs, _SEARCH_BATCH, rng)
        total = 0.0
        for batch in batches:
            total += self._update(batch)
            tick(len(batch))
        return total / len(batches)

    def _report(self, loss: float) -> SearchReport:
        return SearchReport(self.epoch, loss)

    def vectors(self) -> npt.NDArray[np.float16]:
        """Return the table for `SearchVectors`."""
        with torch.no_grad():
            return (self._table @ self._map).numpy().astype(np.float16)

    def _update(self, batch: Int64Array) -> float:
        """Take one step of Adam; return the loss."""
        sources, targets = (
            summed(sentence_units(texts.select(batch), lexicon), self._table, sparse=True) @ self._map
            for texts, lexicon in self._sides
        )
        loss = contrastive_loss(sources, targets, torch.from_numpy(self._known.among(batch)), _SEARCH_TEMPERATURE)
        self.learnt.step(loss)
        return float(loss.detach())

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of guessing, as before the first update."""
        return {"train": StartError.of(float(np.log(min(_SEARCH_BATCH, self._pairs))))}


def train_pair_classifier(
    pairs: TextPairs,
    development: TextPairs,
    settings: PairClassifierSettings,
    run: TrainingRun,
) -> PairClassifierModel:
    """Train a classifier of sentence pairs and save it.

    Args:
        pairs: training pairs, at least two different ones.
        development: development set, which decides the epoch to keep, the temperature and the threshold; at least two
            different pairs.
        settings: hyper-parameters of training.
        run: folder, device and progress; its examples are pairs, `PairClassifierSettings.passes` times all of them.

    Raises:
        ModelError: the folder has a finished model or an unfinished training; the checkpoint is missing, damaged, or
            of other texts or settings; or the encoder's folder is refused.
        DivergedError: the learning rate is too large, and the last good checkpoint is kept; or the classifier is no
            better than guessing, and its checkpoint is kept.
        PhraseToolError: the folder cannot be written, or the disk has too little space.
        ValueError: there are fewer than two different targets.
    """
    for name, texts in (("to learn from", pairs), ("in the development set", development)):
        if (count := distinct_targets(texts)) < 2:
            raise ValueError(f"{count} distinct pair {name}, expected at least two")
    run.check()
    fresh = fresh_classifier(pairs, settings)
    learnt = sum(value.numel() for value in fresh.classifier.parameters() if value.requires_grad)
    # The old and the new checkpoint, float32: parameters, two moments of Adam, and (of the classifier) the best epoch.
    run.check_space(2 * 4 * (4 * learnt + 3 * BUCKETS * settings.search_units))
    identity = {
        "texts": [pairs.fingerprint, development.fingerprint],
        "encoder's weights": _encoder_identity(fresh),
        "settings": settings.as_dict(),
    }

    def start() -> PairClassifierTrainer:
        return PairClassifierTrainer(pairs, development, fresh.classifier, settings, run.device)

    if not run.resume:
        # Else this training, if it is interrupted, would later resume from search vectors of an earlier one.
        run.forget_search()
    trainer = train_epochs(run, identity, start)
    assert trainer.best is not None
    if trainer.best["auc"] < CHANCE:
        message = (
            f"{run.folder}: the trained model is no better than chance: the area under its curve is "
            f"{trainer.best['auc']:.2f} on the development set (chance: 0.50); train again with more pairs, "
            "more epochs or another learning rate"
        )
        run.refuse(DivergedError(message, remedy="keep a poor model"))
    model = _finished(trainer, fresh, {**settings.as_dict(), "pairs": len(pairs), **run.record})
    if settings.search_units:
        _learn_to_search(model, pairs, settings, identity, run)
    run.save(model)
    return model


def _learn_to_search(
    model: PairClassifierModel,
    pairs: TextPairs,
    settings: PairClassifierSettings,
    identity: dict[str, Any],
    run: TrainingRun,
) -> None:
    """Train search vectors and add them to a model; see `train_pair_classifier`."""
    folder = run.folder / SEARCH
    within = replace(run, folder=folder, resume=run.resume and (folder / CHECKPOINT).is_file())
    trainer = train_epochs(within, identity, lambda: SearchTrainer(pairs, settings))
    model.arrays[SEARCH_VECTORS] = trainer.vectors()


def distinct_targets(texts: TextPairs) -> int:
    """Return the number of different targets."""
    return len({target.tobytes() for target in texts.targets})


def _finished(trainer: PairClassifierTrainer, fresh: FreshClassifier, training: dict[str, Any]) -> PairClassifierModel:
    """Return the classifier of the best epoch with its temperature and thresholds."""
    classifier = trainer.kept().to(torch.device("cpu"))
    logits, _ = encoded_logits(classifier, trainer.random)
    parallel = trainer.random.parallel
    finite = np.isfinite(logits)
    temperature = calibrated_temperature(logits[finite], parallel[finite])
    raw, calibrated = probabilities_of(logits), probabilities_of(logits, temperature)
    best = best_quality(calibrated, parallel)
    training |= {
        "epochs_done": trainer.epoch,
        "best_epoch": trainer.best["epoch"] if trainer.best else 0,
        "development": {
            "f1": quality_at(calibrated, parallel, 0.5).f1, "best_f1": best.f1,
            "calibration_error_before": calibration_error(raw, parallel),
            "calibration_error": calibration_error(calibrated, parallel),
        },
    }  # fmt: skip
    thresholds = {"half": 0.5, "best": best.threshold}
    return PairClassifierModel(
        fresh.vocabularies, fresh.architecture, classifier.arrays(), temperature, thresholds, training, fresh.encoder
    )


def _encoder_identity(fresh: FreshClassifier) -> str:
    """Return the fingerprint of the encoder before it is tuned; empty for words."""
    if fresh.encoder is None:
        return ""
    weights = sorted(fresh.encoder.state_dict().items())
    parts = (part for name, value in weights for part in (name.encode(), value.cpu().numpy()))
    return fingerprint((fresh.encoder.tokenizer_text, *parts))
