"""Inputs of a classifier: trained vectors of words, or vectors of the subword tokens of a pretrained encoder.

`TokenInputs` is the protocol of all inputs; `WordSides` reads words, and `PretrainedInputs` the subword tokens of an
external encoder.

**Words.**  The paper sums the vectors of the characters of a word (Burmese, Thai).  Here all languages have vectors of
character n-grams: a word that does not occur in the training data still has known n-grams, which helps with Chinese
compounds and English inflections.

**Pretrained encoders**: a BERT in a folder.  The paper uses the vectors of multilingual BERT.  Its text describes them
as contextual, but its term "embedding layer" means static ones; both are available, frozen or tuned.
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

# Markers of the beginning and the end of a word; these characters do not occur in text.
WORD_BEGIN, WORD_END = "\x02", "\x03"
# Ids of the tokens of a text, and the positions of those that are not special tokens.
Pieces = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Lexicon:
    """Vocabulary ids and known character n-grams of U distinct words.

    Attributes:
        ids: int64, shape (U,), ids in the vocabulary; 0 for words that it lacks.
        parts: U lists of ids of known n-grams, int32.
    """

    ids: Int64Array
    parts: Phrases

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> Mask:
        """Mask of the words that are in the vocabulary or have a known n-gram; bool, shape (U,)."""
        return np.asarray((self.ids != UNKNOWN) | (self.parts.lengths > 0))


def word_parts(word: bytes, longest: int) -> list[bytes]:
    """Return the distinct character n-grams of a word with markers of its beginning and end.

    Args:
        word: UTF-8; each invalid byte counts as a character.
        longest: maximum length of an n-gram in characters, markers included.
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
    """Return the character n-grams that occur in several words, by descending number of words.

    Args:
        words: distinct words.
        longest: see `word_parts`; 0 for no n-grams.
        most: maximum number of n-grams.
    """
    counts: Counter[bytes] = Counter()
    for word in words if longest else ():
        counts.update(word_parts(word, longest))
    several = [(part, count) for part, count in counts.items() if count > 1 and part != UNKNOWN_WORD]
    shared = sorted(several, key=lambda pair: (-pair[1], pair[0]))[:most]
    return Vocabulary([UNKNOWN_WORD, *(part for part, _ in shared)], [0, *(count for _, count in shared)])


class LexiconMaker:
    """Look-up of words and of their character n-grams.

    Args:
        vocabulary: vocabulary of one language.
        parts: known n-grams.
        longest: maximum length of an n-gram.
    """

    def __init__(self, vocabulary: Vocabulary, parts: Vocabulary, longest: int) -> None:
        self._ids = {word: i for i, word in enumerate(vocabulary.words)}
        self._parts = {part: i for i, part in enumerate(parts.words)}
        self._longest = longest
        self._ids.pop(UNKNOWN_WORD)
        self._parts.pop(UNKNOWN_WORD)

    def __call__(self, words: Sequence[bytes]) -> Lexicon:
        """Return the lexicon of distinct words without escapes."""
        ids = np.fromiter((self._ids.get(word, UNKNOWN) for word in words), np.int64, len(words))
        if not self._longest:
            return Lexicon(ids, Phrases(np.zeros(len(words) + 1, np.int64), np.zeros(0, np.int32)))
        known = self._parts
        parts = [[known[part] for part in word_parts(word, self._longest) if part in known] for word in words]
        return Lexicon(ids, Phrases.from_lists(parts))


class WordInputs(nn.Module):
    """Vectors of the words of one language: the vector of the word plus the mean vector of its n-grams.

    Args:
        words: initial vectors of words, shape (V, w); row 0 is the unknown word.
        parts: initial vectors of n-grams, shape (P, w); row 0 is a placeholder and is never read.
    """

    def __init__(self, words: FloatArray, parts: FloatArray) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.from_numpy(words.copy()))
        self.parts = nn.Parameter(torch.from_numpy(parts.copy()))
        # Share of words that are read as unknown in training, so that n-grams learn to represent a word alone.
        self.hidden_share = 0.0
        self.generator: torch.Generator | None = None

    def forward(self, texts: Phrases, lexicon: Lexicon) -> Tensor:
        """Return the vectors of the words of some texts, one text after another; shape (T, w).

        Args:
            texts: T words, as indices into the lexicon.
            lexicon: result of `LexiconMaker`.
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
    """Return initial vectors: normal, with standard deviation 0.1; float32, shape (words, units)."""
    drawn: Any = rng.normal(0, 0.1, (words, units))
    return np.asarray(drawn, np.float32)


# Values of `side` in this package.
SOURCE, TARGET = 0, 1


class TokenInputs(Protocol):
    """A `torch.nn.Module` that turns sentences into vectors.

    The result of `lexicon` describes distinct words, and is passed back with texts in indices of these words.
    """

    def lexicon(self, side: int, words: Sequence[bytes]) -> Any:
        """Return a description of distinct words of one language, without escapes."""

    def vectors(self, side: int, texts: Phrases, lexicon: Any) -> tuple[Tensor, Int64Array]:
        """Return the concatenated vectors of N texts, shape (T, w), and their number per text, above 0, shape (N,)."""

    def keep(self, side: int, texts: Phrases, lexicon: Any) -> None:
        """Cache vectors that are slow to compute and constant, for texts that are read repeatedly with this lexicon."""

    def forget(self) -> None:
        """Release cached vectors."""

    def known(self, side: int, texts: Phrases, lexicon: Any) -> Mask:
        """Return which texts have a known word or token; bool, shape (N,)."""

    def seed(self, seed: int) -> None:
        """Make all later random draws of training depend on this seed only."""

    def layers(self) -> list[nn.Parameter]:
        """Return the parameters of a pretrained network, if more is trained than its table of vectors."""


class WordSides(nn.Module):
    """Word inputs of two languages.

    Args:
        vocabularies: vocabularies of source and target words.
        parts: vocabularies of their character n-grams.
        characters: maximum length of an n-gram.
        arrays: initial values: `source.words`, `source.parts`, `target.words`, `target.parts`.
        hidden_share: share of words that training reads as unknown.
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
        """Return the vectors of N texts, one per word, and the numbers of words."""
        inputs = self.target if side else self.source
        return inputs(texts, lexicon), texts.lengths

    def keep(self, side: int, texts: Phrases, lexicon: Lexicon) -> None:
        """Cache nothing; word vectors are quick to compute."""

    def forget(self) -> None:
        """Do nothing; no vectors are cached."""

    def known(self, side: int, texts: Phrases, lexicon: Lexicon) -> Mask:
        """Return which texts have a known word, bool."""
        counts = prefix_sums(lexicon.known[texts.words])
        return np.asarray(counts[texts.offsets[1:]] > counts[texts.offsets[:-1]])

    def seed(self, seed: int) -> None:
        """Set the seeds of both languages."""
        self.source.generator = torch.Generator().manual_seed(seed)
        self.target.generator = torch.Generator().manual_seed(seed + 1)

    def layers(self) -> list[nn.Parameter]:
        """Return no parameters."""
        return []


class CachedVectors:
    """Cached vectors of the texts of one language.

    Texts of similar length are computed together, in groups that do not depend on the order of requests: the last bits
    of a vector depend on what is computed with it, and a resumed training must continue with the same bits.

    Args:
        texts: texts that will be read repeatedly.
        lexicon: lexicon of their words.
        pieces: tokenises the distinct texts, in order of first occurrence.
        read: returns the vectors of tokenised texts, one text after another.
        together: texts per group.
        most: maximum number of cached vectors; the longest texts are not cached if there are more.
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
        self._places = {distinct[text].tobytes(): index for index, text in enumerate(kept)}
        self._vectors: list[Tensor | None] = [None] * len(kept)

    def of(self, text: Any) -> Tensor | None:
        """Return the vectors of the tokens of a text; None if the text is not cached."""
        index = self._places.get(text.tobytes())
        if index is None:
            return None
        if self._vectors[index] is None:
            first = index - index % self._together
            group = self._pieces[first : first + self._together]
            counts = [len(kept) for _, kept in group]
            self._vectors[first : first + self._together] = torch.split(self._read(group), counts)
        return self._vectors[index]


# Files of the tokenizer and its settings.
_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json")
# Texts per call of the encoder: as many as fit the processor's cache.
_BATCH = 64
# Memory for the cached vectors of one language while a classifier with a frozen encoder is trained.
_KEPT_BYTES = 1 << 30


def _is_decoder(config: Any) -> bool:
    """Return whether a configuration is that of a decoder; of GPT and the like, only its type shows this."""
    from transformers.models.auto import modeling_auto

    kind = getattr(config, "model_type", "")
    named = (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    only_writes = kind in named[0] and kind not in named[1]
    return only_writes or any(getattr(config, name, False) for name in ("is_encoder_decoder", "is_decoder"))


class PretrainedInputs(nn.Module):
    """Subword tokens of both languages, from one tokenizer.

    Args:
        folder: folder of an encoder; all of it is checked before any file is loaded.
        layer: `static` or `contextual`.
        tuned: whether the vectors are trained.
        precision: precision of the products of its layers in training: `float32` or `bfloat16`; parameters, sums,
            softmax and inference are float32.

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
        # Contents are kept, so that the encoder can be saved after the folder has been deleted.
        self._files = {name: (folder / name).read_bytes() for name in _FILES if (folder / name).is_file()}
        encoder = read_transformer(folder)
        config = encoder.config
        if _is_decoder(config):
            raise ModelError(f"{folder}: not an encoder, but a decoder or encoder-decoder model")
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
        """Stay in evaluation mode: checkpoints do not hold the random state of the encoder's own dropout."""
        return super().train(False)

    def lexicon(self, side: int, words: Sequence[bytes]) -> list[str]:
        """Return the words as text.

        Raises:
            UnicodeDecodeError: a word is not UTF-8.
        """
        return [word.decode("utf-8") for word in words]

    def vectors(self, side: int, texts: Phrases, lexicon: list[str]) -> tuple[Tensor, Int64Array]:
        """Return the vectors of N texts, one per token, and the numbers of tokens."""
        if side in self._kept and self._kept[side].lexicon is lexicon:
            return self._with_kept(side, texts, lexicon)
        return self._vectors(self._all_pieces(texts, lexicon))

    def keep(self, side: int, texts: Phrases, lexicon: list[str]) -> None:
        """Cache the vectors of texts if they are contextual and frozen."""
        if not self._static and not self._tuned:
            device = self.encoder.get_input_embeddings().weight.device

            @torch.no_grad()
            def read(pieces: Sequence[Pieces]) -> Tensor:
                return self._read(pieces, device)

            most = _KEPT_BYTES // (4 * self.width)
            self._kept[side] = CachedVectors(
                texts, lexicon, lambda some: self._all_pieces(some, lexicon), read, _BATCH, most
            )

    def forget(self) -> None:
        """Release the cached vectors."""
        self._kept.clear()

    def _with_kept(self, side: int, texts: Phrases, lexicon: list[str]) -> tuple[Tensor, Int64Array]:
        vectors_of_texts = [self._kept[side].of(text) for text in texts]
        if missing := [index for index, vectors in enumerate(vectors_of_texts) if vectors is None]:
            fresh = texts.select(np.array(missing))
            vectors, counts = self._vectors(self._all_pieces(fresh, lexicon))
            for index, computed in zip(missing, torch.split(vectors, counts.tolist()), strict=True):
                vectors_of_texts[index] = computed
        complete = [vectors for vectors in vectors_of_texts if vectors is not None]
        return torch.cat(complete), np.array([len(vectors) for vectors in complete], np.int64)

    def _vectors(self, pieces: list[Pieces]) -> tuple[Tensor, Int64Array]:
        """Return the vectors of tokenised texts and the numbers of tokens, see `TokenInputs.vectors`."""
        counts = np.array([len(kept) for _, kept in pieces], np.int64)
        device = self.encoder.get_input_embeddings().weight.device
        with torch.set_grad_enabled(self._tuned and torch.is_grad_enabled()):
            if self._static:
                flat = np.concatenate([np.array(ids)[kept] for ids, kept in pieces]).astype(np.int64)
                table = self.encoder.get_input_embeddings().weight
                return functional.embedding(torch.from_numpy(flat).to(device), table), counts
            return self._contextual(pieces, counts, device), counts

    def known(self, side: int, texts: Phrases, lexicon: list[str]) -> Mask:
        """Return which texts have a token other than the unknown token, bool."""
        pieces_of_texts = self._all_pieces(texts, lexicon)
        return np.array([any(ids[i] != self._unknown for i in kept) for ids, kept in pieces_of_texts], np.bool_)

    def over_long(self, texts: Phrases, lexicon: list[str]) -> Mask:
        """Return which texts have more tokens than the encoder reads, so that they are truncated; bool, shape (N,)."""
        # Every token has at least one byte, and few tokens are added.
        sizes = np.array([len(word.encode()) + 1 for word in lexicon], np.int64)[texts.words]
        result: Mask = np.diff(np.concatenate([[0], np.cumsum(sizes)])[texts.offsets]) + 8 > self._longest
        rows = np.flatnonzero(result)
        result[rows] = [bool(encoding.overflowing) for encoding in self._encodings(texts.select(rows), lexicon)]
        return result

    def seed(self, seed: int) -> None:
        """Do nothing; nothing is drawn at random."""

    def layers(self) -> list[nn.Parameter]:
        """Return all parameters of the encoder, if it is tuned and contextual."""
        return list(self.encoder.parameters()) if self._tuned and not self._static else []

    def save(self, folder: Path) -> None:
        """Write the encoder with its current weights, and its tokenizer, as a folder of the same format."""
        self.encoder.save_pretrained(folder, safe_serialization=True)
        for name, content in self._files.items():
            (folder / name).write_bytes(content)

    @property
    def tokenizer_text(self) -> bytes:
        """Content of the tokenizer's file, which identifies the tokenizer."""
        return self._files[TOKENIZER]

    def _all_pieces(self, texts: Phrases, lexicon: list[str]) -> list[Pieces]:
        return [self._pieces(encoding) for encoding in self._encodings(texts, lexicon)]

    def _encodings(self, texts: Phrases, lexicon: list[str]) -> Sequence[Any]:
        """Return the truncated encodings of texts."""
        self._tokenizer.enable_truncation(self._longest)
        lines = [" ".join(lexicon[word] for word in text) for text in texts]
        encodings: Sequence[Any] = self._tokenizer.encode_batch(lines, add_special_tokens=not self._static)
        return encodings

    def _pieces(self, encoding: Any) -> Pieces:
        """Return token ids and the positions of tokens that are not special, at least one of each."""
        ids = encoding.ids or [self._unknown or 0]
        kept = [position for position, special in enumerate(encoding.special_tokens_mask) if not special]
        return ids, kept or [len(ids) - 1]

    def _contextual(self, pieces: list[Pieces], counts: Int64Array, device: torch.device) -> Tensor:
        """Return the vectors of all tokens that are not special; texts of similar length are encoded together."""
        order = np.argsort([len(ids) for ids, _ in pieces], kind="stable")
        groups = [order[i : i + _BATCH] for i in range(0, len(order), _BATCH)]
        vectors = torch.cat([self._read([pieces[text] for text in group.tolist()], device) for group in groups])
        # First row of each text in `vectors`.
        starts = np.empty(len(counts), np.int64)
        starts[order] = np.cumsum(counts[order]) - counts[order]
        _, rows = gathered_runs(starts, counts)
        return vectors.index_select(0, torch.from_numpy(rows).to(device))

    def _read(self, pieces: Sequence[Pieces], device: torch.device) -> Tensor:
        """Return the vectors of the tokens of some texts, one text after another."""
        width = max(len(ids) for ids, _ in pieces)
        words, mask = np.full((len(pieces), width), self._pad, np.int64), np.zeros((len(pieces), width), np.int64)
        positions = []
        for row, (ids, kept) in enumerate(pieces):
            words[row, : len(ids)], mask[row, : len(ids)] = ids, 1
            positions.append(row * width + np.array(kept, np.int64))
        tensors = (torch.from_numpy(array).to(device) for array in (words, mask))
        precision = self._precision if torch.is_grad_enabled() else FLOAT32
        with autocast(precision, device):
            hidden: Tensor = self.encoder(**dict(zip(("input_ids", "attention_mask"), tensors, strict=True)))[0]
        hidden = hidden.float()
        rows = torch.from_numpy(np.concatenate(positions)).to(device)
        return hidden.reshape(-1, hidden.shape[-1]).index_select(0, rows)
