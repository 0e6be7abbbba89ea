"""Inputs of a classifier: the words of sentences as vectors that are trained, or the pieces of a pretrained encoder.

`TokenInputs` is the protocol of all inputs, `WordSides` reads words, and `PretrainedInputs` the pieces of an external
encoder.

**Words.**  The paper sums the vectors of the characters of a word (Burmese, Thai).  Here all languages have vectors of
character n-grams: a word that does not occur in the training data still has known n-grams, which makes Chinese
compounds and English inflections readable.

**Pretrained encoders**, a BERT in a folder.  The paper takes the vectors of multilingual BERT.  Its text describes them
as contextual, its "embedding layer" as static; both are available, frozen or tuned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phrasetool.errors import ModelError
from phrasetool.nn.device import FLOAT32, autocast
from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases, gathered_runs, prefix_sums
from phrasetool.text_encoders.encoders import check_pieces, longest_input, read_transformer
from phrasetool.text_encoders.folder_safety import checked_folder
from phrasetool.text_encoders.text_encoder import TOKENIZER, read_tokenizer
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

# Marks of the beginning and the end of a word; no text holds these characters.
WORD_BEGIN, WORD_END = "\x02", "\x03"
# The pieces of a text, and the places of those that stand for text.
Pieces = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Lexicon:
    """Vocabulary numbers and known parts of U distinct words.

    Attributes:
        ids: int64, shape (U,), their numbers in the vocabulary; 0 where it lacks one.
        parts: U lists of numbers of known parts, int32.
    """

    ids: Int64Array
    parts: Phrases

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> Mask:
        """Which words are in the vocabulary or have a known part; bool, shape (U,)."""
        return np.asarray((self.ids != UNKNOWN) | (self.parts.lengths > 0))


def word_parts(word: bytes, longest: int) -> list[bytes]:
    """The distinct parts of a word of up to so many characters, those at its ends marked as such.

    Args:
        word: in UTF-8; other bytes count as characters.
        longest: characters of a part, a mark included.
    """
    text = f"{WORD_BEGIN}{word.decode('utf-8', 'surrogateescape')}{WORD_END}"
    parts = {
        text[first : first + size]: None
        for size in range(1, longest + 1)
        for first in range(len(text) - size + 1)
        if text[first : first + size] not in (WORD_BEGIN, WORD_END)
    }
    return [part.encode("utf-8", "surrogateescape") for part in parts]


def known_parts(words: Iterable[bytes], longest: int, most: int) -> Vocabulary:
    """The parts that several words share, those of most words first.

    Args:
        words: distinct.
        longest: see `word_parts`; 0 gives none.
        most: how many to keep at most.
    """
    counts: Counter[bytes] = Counter()
    for word in words if longest else ():
        counts.update(word_parts(word, longest))
    several = [(part, count) for part, count in counts.items() if count > 1 and part != UNKNOWN_WORD]
    shared = sorted(several, key=lambda pair: (-pair[1], pair[0]))[:most]
    return Vocabulary([UNKNOWN_WORD, *(part for part, _ in shared)], [0, *(count for _, count in shared)])


class LexiconMaker:
    """Looks words up.

    Args:
        vocabulary: of one language.
        parts: known ones.
        longest: characters of a part.
    """

    def __init__(self, vocabulary: Vocabulary, parts: Vocabulary, longest: int) -> None:
        self._ids = {word: i for i, word in enumerate(vocabulary.words)}
        self._parts = {part: i for i, part in enumerate(parts.words)}
        self._longest = longest
        self._ids.pop(UNKNOWN_WORD)
        self._parts.pop(UNKNOWN_WORD)

    def __call__(self, words: Sequence[bytes]) -> Lexicon:
        """Return the lexicon of distinct words, unescaped."""
        ids = np.fromiter((self._ids.get(word, UNKNOWN) for word in words), np.int64, len(words))
        if not self._longest:
            return Lexicon(ids, Phrases(np.zeros(len(words) + 1, np.int64), np.zeros(0, np.int32)))
        known = self._parts
        parts = [[known[part] for part in word_parts(word, self._longest) if part in known] for word in words]
        return Lexicon(ids, Phrases.from_lists(parts))


class WordInputs(nn.Module):
    """Words of one language as vectors: that of the word, plus the mean of those of its parts.

    Args:
        words: initial vectors, shape (V, w), the unknown word's first.
        parts: initial vectors, shape (P, w); row 0 stands for no part and is never read.
    """

    def __init__(self, words: FloatArray, parts: FloatArray) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.from_numpy(words.copy()))
        self.parts = nn.Parameter(torch.from_numpy(parts.copy()))
        # Words that are read as unknown in training, so that parts learn to stand alone.
        self.hidden_share = 0.0
        self.generator: torch.Generator | None = None

    def forward(self, texts: Phrases, lexicon: Lexicon) -> Tensor:
        """The vectors of the words of some texts, one after another; shape (T, w).

        Args:
            texts: in numbers of the lexicon's words, T words.
            lexicon: of `LexiconMaker`.
        """
        device = self.words.device
        distinct, which = np.unique(texts.words, return_inverse=True)
        ids = torch.from_numpy(lexicon.ids[distinct]).to(device)
        if self.training and self.hidden_share:
            drawn = torch.rand(len(ids), generator=self.generator).to(device)
            ids = torch.where(drawn < self.hidden_share, UNKNOWN, ids)
        vectors = functional.embedding(ids, self.words)
        if len(lexicon.parts.words):
            parts = lexicon.parts.select(distinct)
            numbers = torch.from_numpy(parts.words.astype(np.int64)).to(device)
            offsets = torch.from_numpy(parts.offsets[:-1].copy()).to(device)
            vectors = vectors + functional.embedding_bag(numbers, self.parts, offsets, mode="mean")
        return vectors.index_select(0, torch.from_numpy(which.astype(np.int64)).to(device))


def random_vectors(rng: np.random.Generator, words: int, units: int) -> FloatArray:
    """Vectors to start from: normal, with components of 0.1; float32, shape (words, units)."""
    drawn: Any = rng.normal(0, 0.1, (words, units))
    return np.asarray(drawn, np.float32)


# Source and target as numbers, in arguments of this room.
SOURCE, TARGET = 0, 1


class TokenInputs(Protocol):
    """Reads sentences as vectors; a `torch.nn.Module`.

    `lexicon` describes distinct words, and is passed back with texts in numbers of these words.
    """

    def lexicon(self, side: int, words: Sequence[bytes]) -> Any:
        """Return a description of distinct words of one language, unescaped."""

    def vectors(self, side: int, texts: Phrases, lexicon: Any) -> tuple[Tensor, Int64Array]:
        """The vectors of all texts, one after another, shape (T, w), and how many each has, at least 1, shape (N,)."""

    def keep(self, side: int, texts: Phrases, lexicon: Any) -> None:
        """These texts will be read again and again, with this lexicon: what takes time and never changes is kept."""

    def forget(self) -> None:
        """Release kept vectors, which are not needed any more."""

    def known(self, side: int, texts: Phrases, lexicon: Any) -> Mask:
        """In which texts something is known; bool, shape (N,)."""

    def seed(self, seed: int) -> None:
        """Make what training draws from here on a matter of this seed alone."""

    def layers(self) -> list[nn.Parameter]:
        """Layers of a pretrained network that are trained, apart from tables of vectors."""


class WordSides(nn.Module):
    """Words of two languages.

    Args:
        vocabularies: of words, source first.
        parts: of their parts.
        characters: longest part.
        arrays: initial values: `source.words`, `source.parts`, `target.words`, `target.parts`.
        hidden_share: words that training reads as unknown.
    """

    def __init__(
        self,
        vocabularies: tuple[Vocabulary, Vocabulary],
        parts: tuple[Vocabulary, Vocabulary],
        characters: int,
        arrays: Mapping[str, FloatArray],
        hidden_share: float = 0.0,
    ) -> None:
        super().__init__()
        self._makers = [LexiconMaker(*known, characters) for known in zip(vocabularies, parts, strict=True)]
        self.source, self.target = (
            WordInputs(arrays[f"{side}.words"], arrays[f"{side}.parts"]) for side in ("source", "target")
        )
        self.source.hidden_share = self.target.hidden_share = hidden_share

    def lexicon(self, side: int, words: Sequence[bytes]) -> Lexicon:
        """Return the lexicon of distinct words of one language."""
        return self._makers[side](words)

    def vectors(self, side: int, texts: Phrases, lexicon: Lexicon) -> tuple[Tensor, Int64Array]:
        """See `TokenInputs`; a vector a word."""
        inputs = self.target if side else self.source
        return inputs(texts, lexicon), texts.lengths

    def keep(self, side: int, texts: Phrases, lexicon: Lexicon) -> None:
        """See `TokenInputs`: nothing takes time."""

    def forget(self) -> None:
        """Release kept vectors; there are none."""

    def known(self, side: int, texts: Phrases, lexicon: Lexicon) -> Mask:
        """Return which texts have a known word, bool."""
        counts = prefix_sums(lexicon.known[texts.words])
        return np.asarray(counts[texts.offsets[1:]] > counts[texts.offsets[:-1]])

    def seed(self, seed: int) -> None:
        """Set the seeds of both languages."""
        self.source.generator = torch.Generator().manual_seed(seed)
        self.target.generator = torch.Generator().manual_seed(seed + 1)

    def layers(self) -> list[nn.Parameter]:
        """See `TokenInputs`: none."""
        return []


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
        _, rows = gathered_runs(starts, counts)
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
        precision = self._precision if torch.is_grad_enabled() else FLOAT32
        with autocast(precision, device):
            hidden: Tensor = self.encoder(**dict(zip(("input_ids", "attention_mask"), tensors, strict=True)))[0]
        hidden = hidden.float()
        rows = torch.from_numpy(np.concatenate(places)).to(device)
        return hidden.reshape(-1, hidden.shape[-1]).index_select(0, rows)
