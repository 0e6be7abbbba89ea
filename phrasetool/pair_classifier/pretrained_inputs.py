"""Inputs of a classifier: the pieces of a pretrained encoder, a BERT in a folder.

The paper takes the vectors of multilingual BERT.  Its text describes them as contextual, its "embedding layer" as
static; both are available, frozen or tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.errors import ModelError
from phrasetool.nn.device import FINE, products_in
from phrasetool.phrases import Int64Array, Mask, Phrases
from phrasetool.text_encoders.encoders import check_pieces, longest_input, read_transformer
from phrasetool.text_encoders.folder_safety import checked_folder
from phrasetool.text_encoders.text_encoder import TOKENIZER, read_tokenizer
from phrasetool.unique_phrases import distinct_phrases

# The pieces of a text, and the places of those that stand for text.
Pieces = tuple[list[int], list[int]]


class CachedVectors:
    """Of the texts of one language.

    Texts of about one length are computed together, in groups that do not depend on when they are asked for: the last
    bits of a vector depend on what is computed with it, and an interrupted training goes on with the same bits.

    Args:
        texts: that will be read again.
        lexicon: of their words.
        pieces: of each distinct one, in the order in which they first occur.
        read: gives the vectors of some texts, one text after another.
        together: texts of a group.
        most: vectors that are kept at most; the longest texts go without.
    """

    def __init__(
        self,
        texts: Phrases,
        lexicon: Any,
        pieces: Callable[[Phrases], list[Pieces]],
        read: Callable[[Sequence[Pieces]], Tensor],
        together: int,
        most: int,
    ) -> None:
        self.lexicon, self._read, self._together = lexicon, read, together
        distinct = distinct_phrases(texts)[1]
        texts_in_pieces = pieces(distinct)
        order = np.argsort([len(ids) for ids, _ in texts_in_pieces], kind="stable")
        within = np.cumsum([len(texts_in_pieces[text][1]) for text in order.tolist()]) <= most
        kept = order[within].tolist()
        self._pieces = [texts_in_pieces[text] for text in kept]
        self._places = {distinct[text].tobytes(): place for place, text in enumerate(kept)}
        self._vectors: list[Tensor | None] = [None] * len(kept)

    def of(self, text: Any) -> Tensor | None:
        """The vectors of a text's pieces; None if it is none of those that are kept."""
        place = self._places.get(text.tobytes())
        if place is None:
            return None
        if self._vectors[place] is None:
            first = place - place % self._together
            group = self._pieces[first : first + self._together]
            counts = [len(kept) for _, kept in group]
            self._vectors[first : first + self._together] = torch.split(self._read(group), counts)
        return self._vectors[place]


# The tokenizer, and its settings.
_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json")
# Texts that go through the encoder together: as many as fit the cache.
_TOGETHER = 64
# Memory for the vectors of the texts of a language while a classifier is trained that does not change them.
_KEPT_BYTES = 1 << 30


def _writes_text(config: Any) -> bool:
    """Whether a model is not an encoder, by its configuration; of one like GPT that has only its type."""
    from transformers.models.auto import modeling_auto

    kind = getattr(config, "model_type", "")
    named = (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    only_writes = kind in named[0] and kind not in named[1]
    return only_writes or any(getattr(config, name, False) for name in ("is_encoder_decoder", "is_decoder"))


class PretrainedInputs(nn.Module):
    """Pieces of both languages, by one tokenizer.

    Args:
        folder: of an encoder; it is looked through before anything of it is read.
        layer: `static` or `contextual`.
        tuned: whether the vectors learn.
        precision: of the products of its layers while they learn: `float32` or `bfloat16`; what is learnt, sums,
            softmax and all use later are float32.

    Attributes:
        width: w, size of a vector.

    Raises:
        ModelError: the folder holds no encoder with its tokenizer, or it is refused.
    """

    def __init__(self, folder: Path, layer: str, tuned: bool, precision: str = "float32") -> None:
        super().__init__()
        checked_folder(folder)
        if not any(folder.glob("*.safetensors")):
            raise ModelError(
                f"{folder}: holds no weights in safetensors; convert the model with "
                "AutoModel.from_pretrained(FOLDER).save_pretrained(NEW, safe_serialization=True)"
            )
        self._static, self._tuned, self._precision = layer == "static", tuned, precision
        self._tokenizer = read_tokenizer(folder)
        # Kept, so that the encoder can be saved when the folder is gone.
        self._files = {name: (folder / name).read_bytes() for name in _FILES if (folder / name).is_file()}
        encoder = read_transformer(folder)
        config = encoder.config
        if _writes_text(config):
            raise ModelError(f"{folder}: not an encoder, but a model that writes text")
        check_pieces(folder, encoder, self._tokenizer)
        self.encoder = encoder.requires_grad_(False)
        learning = encoder.get_input_embeddings() if self._static else encoder
        learning.requires_grad_(tuned)
        self.width = int(config.hidden_size)
        self._longest = longest_input(folder, config)
        self._pad = config.pad_token_id if isinstance(getattr(config, "pad_token_id", None), int) else 0
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        self._unknown = self._tokenizer.token_to_id(unknown) if unknown else None
        self._kept: dict[int, CachedVectors] = {}

    def train(self, mode: bool = True) -> PretrainedInputs:
        """Never: the encoder's own dropout would draw from numbers that no checkpoint holds."""
        return super().train(False)

    def lexicon(self, side: int, words: Sequence[bytes]) -> list[str]:
        """See `TokenInputs`: the words as text.

        Raises:
            UnicodeDecodeError: a word is not UTF-8.
        """
        return [word.decode("utf-8") for word in words]

    def vectors(self, side: int, texts: Phrases, lexicon: list[str]) -> tuple[Tensor, Int64Array]:
        """See `TokenInputs`; a vector a piece."""
        if side in self._kept and self._kept[side].lexicon is lexicon:
            return self._with_kept(side, texts, lexicon)
        return self._vectors(self._all_pieces(texts, lexicon))

    def keep(self, side: int, texts: Phrases, lexicon: list[str]) -> None:
        """See `TokenInputs`: vectors that take time and never change."""
        if not self._static and not self._tuned:
            device = self.encoder.get_input_embeddings().weight.device

            @torch.no_grad()
            def read(pieces: Sequence[Pieces]) -> Tensor:
                return self._read(pieces, device)

            most = _KEPT_BYTES // (4 * self.width)
            self._kept[side] = CachedVectors(
                texts, lexicon, lambda some: self._all_pieces(some, lexicon), read, _TOGETHER, most
            )

    def forget(self) -> None:
        """Release the kept vectors."""
        self._kept.clear()

    def _with_kept(self, side: int, texts: Phrases, lexicon: list[str]) -> tuple[Tensor, Int64Array]:
        vectors_of_texts = [self._kept[side].of(text) for text in texts]
        if missing := [place for place, vectors in enumerate(vectors_of_texts) if vectors is None]:
            fresh = texts.select(np.array(missing))
            vectors, counts = self._vectors(self._all_pieces(fresh, lexicon))
            for place, one in zip(missing, torch.split(vectors, counts.tolist()), strict=True):
                vectors_of_texts[place] = one
        there = [vectors for vectors in vectors_of_texts if vectors is not None]
        return torch.cat(there), np.array([len(vectors) for vectors in there], np.int64)

    def _vectors(self, pieces: list[Pieces]) -> tuple[Tensor, Int64Array]:
        """Of some texts: see `TokenInputs.vectors`."""
        counts = np.array([len(kept) for _, kept in pieces], np.int64)
        device = self.encoder.get_input_embeddings().weight.device
        with torch.set_grad_enabled(self._tuned and torch.is_grad_enabled()):
            if self._static:
                flat = np.concatenate([np.array(ids)[kept] for ids, kept in pieces]).astype(np.int64)
                table = self.encoder.get_input_embeddings().weight
                return functional.embedding(torch.from_numpy(flat).to(device), table), counts
            return self._contextual(pieces, counts, device), counts

    def known(self, side: int, texts: Phrases, lexicon: list[str]) -> Mask:
        """See `TokenInputs`: where a piece is none that stands for unknown text."""
        pieces_of_texts = self._all_pieces(texts, lexicon)
        return np.array([any(ids[i] != self._unknown for i in kept) for ids, kept in pieces_of_texts], np.bool_)

    def seed(self, seed: int) -> None:
        """See `TokenInputs`: nothing is drawn."""

    def layers(self) -> list[nn.Parameter]:
        """See `TokenInputs`: all of the encoder, if it is tuned and contextual."""
        return list(self.encoder.parameters()) if self._tuned and not self._static else []

    def save(self, folder: Path) -> None:
        """Write the encoder as it is now, and its tokenizer, as a folder of the same kind."""
        self.encoder.save_pretrained(folder, safe_serialization=True)
        for name, content in self._files.items():
            (folder / name).write_bytes(content)

    @property
    def tokenizer_text(self) -> bytes:
        """Contents of the tokenizer's file, which identify the tokenizer."""
        return self._files[TOKENIZER]

    def _all_pieces(self, texts: Phrases, lexicon: list[str]) -> list[Pieces]:
        self._tokenizer.enable_truncation(self._longest)
        lines = [" ".join(lexicon[word] for word in text) for text in texts]
        encodings = self._tokenizer.encode_batch(lines, add_special_tokens=not self._static)
        return [self._pieces(encoding) for encoding in encodings]

    def _pieces(self, encoding: Any) -> Pieces:
        """Numbers of the pieces, and the places of those that stand for text, of which there is one at least."""
        ids = encoding.ids or [self._unknown or 0]
        kept = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        return ids, kept or [len(ids) - 1]

    def _contextual(self, pieces: list[Pieces], counts: Int64Array, device: torch.device) -> Tensor:
        """Vectors of all pieces that stand for text; texts of about one length go through the encoder together."""
        order = np.argsort([len(ids) for ids, _ in pieces], kind="stable")
        groups = [order[i : i + _TOGETHER] for i in range(0, len(order), _TOGETHER)]
        vectors = torch.cat([self._read([pieces[text] for text in group.tolist()], device) for group in groups])
        # Where the vectors of each text begin among these.
        starts = np.empty(len(counts), np.int64)
        starts[order] = np.cumsum(counts[order]) - counts[order]
        rows = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return vectors.index_select(0, torch.from_numpy(rows).to(device))

    def _read(self, pieces: Sequence[Pieces], device: torch.device) -> Tensor:
        """Vectors of the pieces of some texts, one text after another."""
        width = max(len(ids) for ids, _ in pieces)
        words, mask = np.full((len(pieces), width), self._pad, np.int64), np.zeros((len(pieces), width), np.int64)
        places = []
        for row, (ids, kept) in enumerate(pieces):
            words[row, : len(ids)], mask[row, : len(ids)] = ids, 1
            places.append(row * width + np.array(kept, np.int64))
        tensors = (torch.from_numpy(array).to(device) for array in (words, mask))
        precision = self._precision if torch.is_grad_enabled() else FINE
        with products_in(precision, device):
            hidden: Tensor = self.encoder(**dict(zip(("input_ids", "attention_mask"), tensors, strict=True)))[0]
        hidden = hidden.float()
        rows = torch.from_numpy(np.concatenate(places)).to(device)
        return hidden.reshape(-1, hidden.shape[-1]).index_select(0, rows)
