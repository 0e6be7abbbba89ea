"""Train an own BERT.

Batches of texts and of joined pairs alternate, so that the pieces of one language are predicted with the other's at
hand (Lample and Conneau, 2019).  The head, which is as wide as the vocabulary, sees the places to predict alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from phrasetool.nn.device import products_in
from phrasetool.train.checks import StartError
from phrasetool.train.data import fingerprint
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.train.run import TrainingRun
from phrasetool.training.masked_lm.bert_folder import TrainedBert, new_bert, save_bert
from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings
from phrasetool.training.masked_lm.masking import Hidden, hide
from phrasetool.training.masked_lm.piece_texts import Batch, Batches, PieceTexts


@dataclass(frozen=True)
class MaskedLmReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        loss: mean cross-entropy of a hidden piece over the epoch.
        development_loss: that of the development set, whose hidden places never change.
        development_accuracy: the share of its hidden pieces that are predicted.
        updates: done so far.
    """

    epoch: int
    loss: float
    development_loss: float
    development_accuracy: float
    updates: int


class MaskedLmTrainer(EpochTrainer[MaskedLmReport]):
    """Trains an own BERT.

    Args:
        data: what to learn from.
        development: decides which epoch is kept.
        pieces: in the vocabulary, special tokens included.
        settings: how.
        device: where; CPU by default.

    Attributes:
        module: a `transformers.BertForMaskedLM`.
    """

    def __init__(
        self,
        data: PieceTexts,
        development: PieceTexts,
        pieces: int,
        settings: MaskedLmSettings,
        device: torch.device | None = None,
    ) -> None:
        self.settings = settings
        self.module = new_bert(settings, pieces).to(device or torch.device("cpu"))
        adam = torch.optim.Adam(self.module.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.module.named_parameters()), {ADAM: adam})
        self._pieces, self._batches = pieces, Batches(data, settings.batch_tokens)
        super().__init__(learnt, (settings.seed,), settings.epochs, len(self._batches))
        rng = np.random.default_rng([settings.seed, 0])
        held = Batches(development, settings.batch_tokens)
        self._held = [
            (batch := held.batch(kind, rows, rng), hide(batch.ids, settings.mask_share, pieces, rng))
            for kind, rows in held.draw(rng)
        ]
        self._start_loss = self._development()[0]

    def kept(self) -> Any:
        """The network of the best epoch."""
        self.learnt.take_best()
        return self.module.eval()

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of a hidden piece."""
        self.module.train()
        total, count = 0.0, 0
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**63)))
            for number, (kind, rows) in enumerate(self._batches.draw(rng)):
                batch = self._batches.batch(kind, rows, rng)
                hidden = hide(batch.ids, self.settings.mask_share, self._pieces, rng)
                if len(hidden.wanted):
                    total += self._update(batch, hidden, number)
                    count += len(hidden.wanted)
                tick(int(batch.there.sum()))
        return total / max(count, 1)

    def _update(self, batch: Batch, hidden: Hidden, number: int) -> float:
        """One step of Adam; the sum of the losses."""
        s = self.settings
        self.learnt.scale_rates(s.rate_share(self.updates_done + number, s.epochs * len(self._batches)))
        with products_in(s.precision, self.module.device):
            logits, wanted = self._predicted(batch, hidden)
        loss = cross_entropy(logits.float(), wanted)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()) * len(wanted)

    def _predicted(self, batch: Batch, hidden: Hidden) -> tuple[Tensor, Tensor]:
        """Logits, shape (K, V), of the K hidden places, and what stood there."""
        device = self.module.device
        # Without a mask, attention takes its fastest way.
        mask = None if batch.there.all() else torch.from_numpy(batch.there.astype(np.int64)).to(device)
        states = self.module.bert(
            input_ids=torch.from_numpy(hidden.ids).to(device), attention_mask=mask,
            token_type_ids=torch.from_numpy(batch.segments).to(device),
        )[0]  # fmt: skip
        logits = self.module.cls(states[torch.from_numpy(hidden.chosen).to(device)])
        return logits, torch.from_numpy(hidden.wanted).to(device)

    @torch.no_grad()
    def _development(self) -> tuple[float, float]:
        """Mean loss of a hidden piece of the development set, and the share that is predicted; without dropout."""
        self.module.eval()
        total = right = count = 0.0
        for batch, hidden in self._held:
            logits, wanted = self._predicted(batch, hidden)
            total += float(cross_entropy(logits, wanted, reduction="sum"))
            right, count = right + int((logits.argmax(1) == wanted).sum()), count + len(wanted)
        return total / max(count, 1), right / max(count, 1)

    def _report(self, loss: float) -> MaskedLmReport:
        return MaskedLmReport(self.epoch, loss, *self._development(), self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of the development set before the first update."""
        return {"train": StartError.of(self._start_loss)}

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        return {**super().progress(), "start_loss": self._start_loss}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """See `EpochTrainer`."""
        super().restore(tensors, progress)
        self._start_loss = progress["start_loss"]


def checkpoint_bytes(settings: MaskedLmSettings, pieces: int) -> int:
    """What training writes at most: a checkpoint with two moments of Adam and the best so far, and its successor.

    Args:
        settings: of the training.
        pieces: in the vocabulary, special tokens included.
    """
    with torch.device("meta"):
        module = new_bert(settings, pieces)
    numbers: int = sum(value.numel() for value in module.parameters())
    return 2 * 4 * 4 * numbers


def train_masked_lm(
    data: PieceTexts,
    development: PieceTexts,
    tokenizer: Any,
    settings: MaskedLmSettings,
    run: TrainingRun,
) -> TrainedBert:
    """Train an own BERT and save it.

    Args:
        data: what to learn from.
        development: decides which epoch is kept.
        tokenizer: of `train_word_pieces`, of which both are pieces.
        settings: how.
        run: where and how.

    Raises:
        ModelError: there is a finished model; or the checkpoint is missing, damaged, or of other texts or settings.
        DivergedError: the learning rate is too large; the last good checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: no text has a piece.
    """
    if not len(data.texts) or not len(development.texts):
        raise ValueError("expected texts with pieces, to learn from and to develop on")
    pieces = tokenizer.get_vocab_size()
    run.check()
    run.check_space(checkpoint_bytes(settings, pieces))
    identity = {
        "texts": [data.fingerprint, development.fingerprint],
        "pieces of words": fingerprint((tokenizer.to_str().encode(),)),
        "settings": settings.as_dict(),
    }

    def start() -> MaskedLmTrainer:
        return MaskedLmTrainer(data, development, pieces, settings, run.device)

    trainer = train_epochs(run, identity, start)
    sizes = {"texts": len(data.texts), "pairs": len(data.sources), "tokens": data.tokens, "pieces": pieces}
    training = {**settings.as_dict(), **sizes, "epochs_done": trainer.epoch, **run.record}
    trained = save_bert(trainer.kept(), tokenizer, run.folder, training)
    run.forget_checkpoint()
    return trained
