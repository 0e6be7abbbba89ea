"""The network of an own BERT, and its folder, which transformers loads as any other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from phrasetool.disk.staged_folder import staged
from phrasetool.text_encoders.folder_safety import folder_identity
from phrasetool.text_encoders.offline import go_offline, quieten
from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings
from phrasetool.training.masked_lm.word_pieces import PAD, SPECIAL

TRAINING = "training.json"


@dataclass(frozen=True)
class TrainedBert:
    """An own BERT in its folder.

    Attributes:
        folder: that transformers loads.
        signature: differs when a file of the folder differs.
        training: how it was trained, as in `training.json`.
    """

    folder: Path
    signature: str
    training: dict[str, Any]


def new_bert(settings: MaskedLmSettings, pieces: int) -> Any:
    """A `transformers.BertForMaskedLM` with weights drawn by the seed.

    Args:
        settings: its sizes.
        pieces: in the vocabulary, special tokens included.
    """
    go_offline()
    from transformers import BertConfig, BertForMaskedLM

    quieten()
    make: Any = BertConfig  # what it takes by name is not in its signature
    config = make(
        vocab_size=pieces, hidden_size=settings.units, num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads, intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.positions, hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout, pad_token_id=PAD, attn_implementation="sdpa",
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return BertForMaskedLM(config)


def save_bert(module: Any, tokenizer: Any, folder: Path, training: dict[str, Any]) -> TrainedBert:
    """Write the folder: settings, weights in safetensors, and the tokenizer in its fast form.

    Args:
        module: of `new_bert`.
        tokenizer: of `train_word_pieces`.
        folder: gets the files, as a whole.
        training: for `training.json`.

    Raises:
        PhraseToolError: it cannot be written; a model that was there still is.
    """
    texts = {
        "tokenizer_config.json": _tokenizer_settings(module.config.max_position_embeddings),
        "special_tokens_map.json": _special_tokens(),
        TRAINING: training,
    }
    with staged(folder) as stage:
        module.save_pretrained(stage)
        tokenizer.save(str(stage / "tokenizer.json"))
        for name, found in texts.items():
            (stage / name).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return TrainedBert(folder, f"bert-{folder_identity(folder)}", training)


def _special_tokens() -> dict[str, str]:
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return dict(zip(names, SPECIAL, strict=True))


def _tokenizer_settings(positions: int) -> dict[str, Any]:
    # The class that reads tokenizer.json as it is; that of BERT would make rules of its own.
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"], **_special_tokens(),
    }  # fmt: skip
