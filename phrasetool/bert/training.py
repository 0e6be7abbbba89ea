"""Train a BERT from scratch, and save it in a folder that transformers can load.

Batches of texts and of joined pairs alternate, so that pieces of one language are predicted with the translation as
context (Lample and Conneau, 2019).  The output layer, which is as wide as the vocabulary, is computed at masked
positions only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from phrasetool.bert.data import PAD, SPECIAL, Batch, Batches, MaskedTexts, PieceTexts, mask_pieces
from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.disk.folders import staged
from phrasetool.nn.device import autocast
from phrasetool.text_encoders.folder_safety import folder_identity, go_offline, quieten
from phrasetool.training.data import fingerprint
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.training.run import StartError, TrainingRun

TRAINING = "training.json"


@dataclass(frozen=True)
class TrainedBert:
    """A trained BERT in its folder.

    Attributes:
        folder: folder that transformers loads.
        signature: text that differs when a file of the folder differs.
        training: record of its training, as in `training.json`.
    """

    folder: Path
    signature: str
    training: dict[str, Any]


def new_bert(settings: MaskedLmSettings, pieces: int) -> Any:
    """Return a randomly initialised `transformers.BertForMaskedLM`.

    Args:
        settings: sizes and random seed.
        pieces: size of the vocabulary, including special tokens.
    """
    go_offline()
    from transformers import BertConfig, BertForMaskedLM

    quieten()
    config_class: Any = BertConfig  # its signature lacks the keyword arguments
    config = config_class(
        vocab_size=pieces, hidden_size=settings.units, num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads, intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.positions, hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout, pad_token_id=PAD, attn_implementation="sdpa",
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return BertForMaskedLM(config)


def save_bert(module: Any, tokenizer: Any, folder: Path, training: dict[str, Any]) -> TrainedBert:
    """Write the folder atomically: configuration, weights in safetensors, and the tokenizer in its fast form.

    Args:
        module: result of `new_bert`.
        tokenizer: result of `train_word_pieces`.
        folder: model folder.
        training: content of `training.json`.

    Raises:
        PhraseToolError: the folder cannot be written; a previous model is kept.
    """
    texts = {
        "tokenizer_config.json": _tokenizer_settings(module.config.max_position_embeddings),
        "special_tokens_map.json": _special_tokens(),
        TRAINING: training,
    }
    with staged(folder) as stage:
        module.save_pretrained(stage)
        tokenizer.save(str(stage / "tokenizer.json"))
        for name, content in texts.items():
            (stage / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return TrainedBert(folder, f"bert-{folder_identity(folder)}", training)


def _special_tokens() -> dict[str, str]:
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return dict(zip(names, SPECIAL, strict=True))


def _tokenizer_settings(positions: int) -> dict[str, Any]:
    # This class uses tokenizer.json unchanged; the class for BERT would add its own rules.
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"], **_special_tokens(),
    }  # fmt: skip


@dataclass(frozen=True)
class MaskedLmReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean cross-entropy per predicted piece over the epoch.
        development_loss: the same for the development set, whose masked positions are fixed.
        development_accuracy: share of its predicted pieces that are correct.
        updates: number of updates so far.
    """

    epoch: int
    loss: float
    development_loss: float
    development_accuracy: float
    updates: int


class MaskedLmTrainer(EpochTrainer[MaskedLmReport]):
    """Trainer of a BERT.

    Args:
        data: training texts.
        development: texts that decide which epoch is kept.
        pieces: size of the vocabulary, including special tokens.
        settings: hyper-parameters.
        device: device to train on; CPU by default.

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
            (batch := held.batch(kind, rows, rng), mask_pieces(batch.ids, settings.mask_share, pieces, rng))
            for kind, rows in held.draw(rng)
        ]
        self._start_loss = self._development()[0]

    def best_network(self) -> Any:
        """Return the network with the parameters of the best epoch, which become the current ones."""
        self.learnt.take_best()
        return self.module.eval()

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per predicted piece."""
        self.module.train()
        total, count = 0.0, 0
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**63)))
            for number, (kind, rows) in enumerate(self._batches.draw(rng)):
                batch = self._batches.batch(kind, rows, rng)
                masked = mask_pieces(batch.ids, self.settings.mask_share, self._pieces, rng)
                if len(masked.targets):
                    total += self._update(batch, masked, number)
                    count += len(masked.targets)
                tick(int(batch.attended.sum()))
        return total / max(count, 1)

    def _update(self, batch: Batch, masked: MaskedTexts, number: int) -> float:
        """Make one update; return the sum of the losses."""
        s = self.settings
        self.learnt.scale_rates(s.rate_share(self.updates_done + number, s.epochs * len(self._batches)))
        with autocast(s.precision, self.module.device):
            logits, targets = self._logits(batch, masked)
        loss = cross_entropy(logits.float(), targets)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()) * len(targets)

    def _logits(self, batch: Batch, masked: MaskedTexts) -> tuple[Tensor, Tensor]:
        """Return the logits at the K positions to predict, shape (K, V), and the target pieces."""
        device = self.module.device
        # Attention is fastest without a mask.
        mask = None if batch.attended.all() else torch.from_numpy(batch.attended.astype(np.int64)).to(device)
        states = self.module.bert(
            input_ids=torch.from_numpy(masked.ids).to(device), attention_mask=mask,
            token_type_ids=torch.from_numpy(batch.segments).to(device),
        )[0]  # fmt: skip
        logits = self.module.cls(states[torch.from_numpy(masked.chosen).to(device)])
        return logits, torch.from_numpy(masked.targets).to(device)

    @torch.no_grad()
    def _development(self) -> tuple[float, float]:
        """Return mean loss and accuracy per predicted piece of the development set, without dropout."""
        self.module.eval()
        total = right = count = 0.0
        for batch, masked in self._held:
            logits, targets = self._logits(batch, masked)
            total += float(cross_entropy(logits, targets, reduction="sum"))
            right, count = right + int((logits.argmax(1) == targets).sum()), count + len(targets)
        return total / max(count, 1), right / max(count, 1)

    def _report(self, loss: float) -> MaskedLmReport:
        return MaskedLmReport(self.epoch, loss, *self._development(), self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of the development set before the first update."""
        return {"train": StartError.of(self._start_loss)}

    def progress(self) -> dict[str, Any]:
        """Return the state of the training that is not in tensors, as JSON values."""
        return {**super().progress(), "start_loss": self._start_loss}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Restore the state that `tensors` and `progress` recorded, see `EpochTrainer.restore`."""
        super().restore(tensors, progress)
        self._start_loss = progress["start_loss"]


def checkpoint_bytes(settings: MaskedLmSettings, pieces: int) -> int:
    """Return the maximum size in bytes of the files that training writes.

    These are the old and the new checkpoint, each with the parameters, two moments of Adam, and the best parameters.

    Args:
        settings: hyper-parameters.
        pieces: size of the vocabulary, including special tokens.
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
    """Train a BERT and save it.

    Args:
        data: training texts.
        development: texts that decide which epoch is kept.
        tokenizer: result of `train_word_pieces`, with which both were segmented.
        settings: hyper-parameters.
        run: model folder, device and listeners.

    Raises:
        ModelError: the folder holds a finished model or an unfinished training; the checkpoint is missing, damaged, or
            of other texts or settings.
        DivergedError: the learning rate is too large; the last good checkpoint is kept.
        PhraseToolError: the folder cannot be written, or the disk has too little space.
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
    trained = save_bert(trainer.best_network(), tokenizer, run.folder, training)
    run.forget_checkpoint()
    return trained
