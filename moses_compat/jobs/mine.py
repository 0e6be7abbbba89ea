"""Find the sentence pairs of two texts that are translations of each other, and read files of such pairs."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from moses_compat.files.packing import without_ending
from moses_compat.files.paths import STANDARD, same_file
from moses_compat.files.streams import Input
from moses_compat.lines.fields import is_number
from phrasetool.bitext.candidates import Candidates, best_of_both, candidates, retrieve
from phrasetool.bitext.mining_quality import best_threshold, evaluate_mining
from phrasetool.bitext.nearest import Agreement, Neighbours, approximately_nearest, nearest_both_ways
from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pair_classifier.bitext_scores import ClassifiedPairs, PairEncoder, PairModel, without_length
from phrasetool.phrases import DoubleArray, Int64Array
from phrasetool.text_encoders.vector_store import StoredPhrases, StoreKind, VectorStore
from phrasetool.text_splitting import single_spaced, split_lines, split_words
from phrasetool.vocabulary import unescape
from phrasetool.watch import SILENT, Watch

_DIGEST = 16


@dataclass(frozen=True)
class MiningText:
    """One side; its lines stand in memory one after another, 30 bytes a line more than they have.

    Attributes:
        name: of the file, for messages.
        lines: how many there are.
        empty: how many have no word.
        rows: of each different sentence, the line where it stands first: shortest first, then by a hash.
        keys: uint64, a hash of each, in the same order.
    """

    name: str
    lines: int
    empty: int
    rows: Int64Array
    keys: np.ndarray[tuple[int], np.dtype[np.uint64]]
    _text: bytearray
    _offsets: Int64Array
    _id_ends: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    def written(self, row: int) -> bytes:
        """A sentence as it stands in the file, tabs as spaces."""
        line = int(self.rows[row])
        return bytes(self._text[self._id_ends[line] : self._offsets[line + 1]])

    def name_of(self, row: int) -> bytes:
        """The name that stands before a sentence; empty without names."""
        line = int(self.rows[row])
        return bytes(self._text[self._offsets[line] : self._id_ends[line]])

    def plain(self, row: int) -> str:
        """The words of a sentence, escapes undone, with a space between."""
        return plain_words(self.written(row)).decode()


def plain_words(text: bytes) -> bytes:
    """Words with a space between, Moses' escapes undone."""
    return single_spaced(unescape(text) if b"&" in text else text)


class RowTexts(Sequence[str]):
    """The different sentences of a side, made when they are looked at.

    Args:
        text: the side.
        ready: from the words of a sentence to the text that is encoded.
    """

    def __init__(self, text: MiningText, ready: Callable[[str], str]) -> None:
        self._text, self._ready = text, ready

    def __len__(self) -> int:
        return len(self._text)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._ready(self._text.plain(place))


def read_sides(source: str, target: str, ids: bool, watch: Watch = SILENT) -> tuple[MiningText, MiningText]:
    """Read both texts, which need not have equally many lines.

    Args:
        source, target: files, compressed or not; one may be `-`, standard input.
        ids: a name and a tab stand before each sentence, as in the files of BUCC.
        watch: follows the work.

    Raises:
        DataError: a file cannot be read, is not UTF-8, has no sentence, or a line without a name.
        PhraseToolError: both are one file, or standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is the file of the source, too; expected text of the other language")
    return _read(source, ids, watch), _read(target, ids, watch)


def _read(path: str, ids: bool, watch: Watch) -> MiningText:
    text, offsets, id_ends = bytearray(), array("q", [0]), array("q")
    digests, lengths = bytearray(), array("q")
    with Input(path) as file, watch.file(f"read {file.name}", file.size()) as progress:
        name = file.name
        for number, line in enumerate(_lines(file, progress), 1):
            if ids:
                found, tab, line = line.partition(b"\t")
                if not tab or not found.strip(b" "):
                    raise DataError(name, "expected a name, a tab and a sentence", number)
                text += found.strip(b" ")
            id_ends.append(len(text))
            written = line.replace(b"\t", b" ").strip(b" ")
            plain = plain_words(written)
            try:
                plain.decode()
            except UnicodeDecodeError as error:
                raise DataError(name, f"is not UTF-8 (byte {line[error.start] if error.start < len(line) else 0:#04x})",
                                number) from error  # fmt: skip
            text += written
            offsets.append(len(text))
            digests += blake2b(plain, digest_size=_DIGEST).digest()
            lengths.append(len(plain))
    rows, keys = _different(np.frombuffer(digests, "<u8").reshape(-1, 2), np.array(lengths, np.int64))
    if not len(rows):
        raise DataError(name, "there is no sentence in it")
    empty = sum(length == 0 for length in lengths)
    return MiningText(
        name, len(lengths), empty, rows, keys, text, np.array(offsets, np.int64), np.array(id_ends, np.int64)
    )


def _lines(file: Input, progress: Callable[[int, int], None]) -> Iterator[bytes]:
    read = 0
    for block in file.whole_lines():
        lines = split_lines(block)
        yield from lines
        read += len(lines)
        progress(file.position(), read)


def _different(
    digests: np.ndarray[tuple[int, int], np.dtype[np.uint64]], lengths: Int64Array
) -> tuple[Int64Array, np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    """The first line of each different sentence that is not empty, and its key."""
    order = np.lexsort((np.arange(len(digests)), digests[:, 1], digests[:, 0], lengths))
    order = order[lengths[order] > 0]
    first = np.ones(len(order), np.bool_)
    first[1:] = (digests[order][1:] != digests[order][:-1]).any(1)
    rows = order[first]
    return rows, np.ascontiguousarray(digests[rows, 0], np.uint64)


def stored(sides: tuple[MiningText, MiningText], ready: Callable[[str, int], str]) -> StoredPhrases:
    """The sentences as a store of vectors takes them."""
    keys, rows = [], []
    for side in sides:
        order = np.argsort(side.keys, kind="stable")
        keys.append(side.keys[order])
        rows.append(order.astype(np.int64))
    texts = RowTexts(sides[0], lambda text: ready(text, 0)), RowTexts(sides[1], lambda text: ready(text, 1))
    return StoredPhrases((keys[0], keys[1]), (rows[0], rows[1]), texts, np.zeros((0, 3), np.int64))


COPY = b"copy"
_Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class MinedPairs:
    """A file of `phrasetool mine`.

    Attributes:
        scores: float64, shape (N,).
        pairs: N sources and targets, sentences or their names.
    """

    scores: DoubleArray
    pairs: list[_Pair]


def read_mined(path: str) -> MinedPairs:
    """Read pairs with scores: score, source and target between tabs; what follows is not looked at.

    Raises:
        DataError: the file cannot be read, or a line is something else.
    """
    scores, pairs = [], []
    for number, line in _numbered_lines(path):
        fields = line.split(b"\t")
        if len(fields) < 3:
            raise DataError(path, "expected a score, a source and a target, with tabs between", number)
        try:
            score = float(fields[0])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            shown = fields[0].decode("utf-8", "replace")
            raise DataError(path, f"{shown!r} is not a score; expected a finite number", number)
        scores.append(score)
        pairs.append((_words(fields[1]), _words(fields[2])))
    return MinedPairs(np.array(scores, np.float64), pairs)


def read_gold(path: str) -> set[_Pair]:
    """Read right pairs: source and target between a tab; a score before them, as in mined pairs, is not looked at.

    Raises:
        DataError: the file cannot be read, has no pair, or a line is something else.
    """
    found = set()
    for number, line in _numbered_lines(path):
        fields = line.split(b"\t")
        if len(fields) >= 3 and is_number(fields[0]):
            fields = fields[1:]
        if len(fields) < 2 or not _words(fields[0]) or not _words(fields[1]):
            raise DataError(path, "expected a source and a target, with a tab between", number)
        found.add((_words(fields[0]), _words(fields[1])))
    if not found:
        raise DataError(path, "there is no pair in it")
    return found


def _words(field: bytes) -> bytes:
    """Blanks are not told apart."""
    return single_spaced(field)


def _numbered_lines(path: str) -> list[tuple[int, bytes]]:
    with Input(path) as file:
        return [(number, line) for number, line in enumerate(split_lines(file.read_all()), 1) if split_words(line)]


# Sentences of a side up to which all are compared with all.
EXACT_UP_TO = 300_000
# Weights of probabilities that gold pairs choose from.
WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
# A probability that is nothing counts as this.
_LEAST = 1e-6


@dataclass(frozen=True)
class MiningSettings:
    """How pairs are found.

    Attributes:
        k: nearest sentences that are looked at.
        margin: one of `phrasetool.bitext.candidates.MARGINS`.
        retrieval: one of `phrasetool.bitext.candidates.RETRIEVALS`.
        search: exact, approximate or auto.
        min_cosine: pairs below it are left out, whatever their margin.
        rerank: candidates of a sentence that the classifier sees; 0: none.
        weight: of the logarithm of the probability, which is added to the margin of a candidate.
        threshold: the lowest score that is written; None: every one.
        drop_copies: leave out pairs of two equal sentences.
        ids: a name and a tab stand before each sentence, and names are written.
        explain: write what the scores are made of.
        threads, block: worker threads, and sentences that one takes at a time; they change no output.
    """

    k: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    search: str = "auto"
    min_cosine: float = 0.0
    rerank: int = 0
    weight: float = 0.02
    threshold: float | None = None
    drop_copies: bool = False
    ids: bool = False
    explain: bool = False
    threads: int = 1
    block: int | None = None


@dataclass(frozen=True)
class MinedTexts:
    """What was found in two texts, before a threshold.

    Attributes:
        sides: the texts.
        pairs: rows of both sides, the best first; `scores` are final.
        margins: of the pairs, without the classifier.
        probabilities: of the pairs being parallel; None without a classifier.
        blind: the same as if lengths said nothing; None unless it was asked for.
        copies: how many pairs of equal sentences there were.
        agreement: of approximate search, the lower one of both directions; None of exact search.
        over_long: sentences that the encoder cut.
        unknown: sentences of which the encoder knows nothing.
        judged: what the classifier said of all candidates; None without one.
    """

    sides: tuple[MiningText, MiningText]
    pairs: Candidates
    margins: DoubleArray
    probabilities: DoubleArray | None
    blind: DoubleArray | None
    copies: int
    agreement: Agreement | None
    over_long: int
    unknown: tuple[int, int]
    judged: JudgedCandidates | None = None

    def weighted(self, weight: float, settings: MiningSettings, watch: Watch = SILENT) -> MinedTexts:
        """What is found with another weight of the probabilities; without a classifier the same."""
        if self.judged is None:
            return self
        ranked = self.judged.ranked(replace(settings, weight=weight), watch)
        return replace(self, pairs=ranked.pairs, margins=ranked.margins, probabilities=ranked.probabilities,
                       blind=ranked.blind)  # fmt: skip

    def texts(self, place: int, ids: bool) -> tuple[bytes, bytes]:
        """The two sentences of a pair, as they are written, or their names."""
        source, target = int(self.pairs.sources[place]), int(self.pairs.targets[place])
        if ids:
            return self.sides[0].name_of(source), self.sides[1].name_of(target)
        return self.sides[0].written(source), self.sides[1].written(target)

    def is_copy(self, place: int) -> bool:
        """Whether both sentences of a pair are the same."""
        return _same(self.sides, int(self.pairs.sources[place]), int(self.pairs.targets[place]))


def mine_texts(
    source: str, target: str, encoder: PairEncoder, ready: Callable[[str, int], str], texts: str, store: str | None,
    settings: MiningSettings, watch: Watch = SILENT,
) -> MinedTexts:  # fmt: skip
    """Search two texts.

    Args:
        source, target: files.
        encoder: gives vectors, and perhaps probabilities.
        ready: from the words of a sentence and its side to the text that is encoded.
        texts: what `ready` does, for the store.
        store: the folder of vectors; None: one that is removed at the end.
        settings: how.
        watch: follows the work.

    Raises:
        DataError: see `read_sides`.
        ModelError: the encoder cannot be loaded, or gives something else than vectors of one dimension; or the store
            is of another encoder or of other texts, or damaged.
        PhraseToolError: the store cannot be written.
    """
    sides = read_sides(source, target, settings.ids, watch)
    with _folder(store) as folder:
        vectors = VectorStore(folder, StoreKind(encoder.identities, texts, "bitext"))
        phrases = stored(sides, ready)
        if not (vectors.complete and vectors.is_of(phrases)):
            vectors.fill(phrases, encoder.load, encoder.name, watch, settings.threads)
        both = vectors.vectors("source"), vectors.vectors("target")
        forward, backward, agreement = _neighbours(both[0], both[1], settings, watch)
        over_long = vectors.over_long
    unknown = tuple(int((found.rows[:, :1] < 0).sum()) for found in (forward, backward))
    found = candidates(forward, backward, settings.margin, settings.min_cosine)
    found, copies = _without_copies(sides, found, settings.drop_copies)
    judged = None
    if encoder.model is not None and settings.rerank:
        judged = _judged(sides, found, encoder.model, ready, settings.rerank, watch)
        ranked = judged.ranked(settings, watch)
    else:
        chosen = retrieve(found, settings.retrieval)
        ranked = _Ranked(found.take(chosen), found.scores[chosen])
    return MinedTexts(
        sides, ranked.pairs, ranked.margins, ranked.probabilities, ranked.blind, copies, agreement, over_long,
        (unknown[0], unknown[1]), judged,
    )  # fmt: skip


@dataclass(frozen=True)
class _Ranked:
    """Pairs that are taken; see `MinedTexts`."""

    pairs: Candidates
    margins: DoubleArray
    probabilities: DoubleArray | None = None
    blind: DoubleArray | None = None


@dataclass(frozen=True)
class JudgedCandidates:
    """The best candidates of each sentence, and what a classifier says of them.

    Attributes:
        found: the candidates, with their margins as scores.
        pairs: their sentences, encoded.
        probabilities: of being parallel, float64, shape (C,).
    """

    found: Candidates
    pairs: ClassifiedPairs
    probabilities: DoubleArray

    def ranked(self, settings: MiningSettings, watch: Watch) -> _Ranked:
        """Choose by the margin plus the weighted logarithm of the probability.

        A probability alone must not turn over what margins say clearly: a classifier that is sure of little things
        chooses worse than they do.
        """
        margins = self.found.scores
        scores = margins + settings.weight * np.log(np.maximum(self.probabilities, _LEAST))
        found = replace(self.found, scores=scores)
        chosen = retrieve(found, settings.retrieval)
        blind = without_length(self.pairs, chosen) if settings.explain else None
        return _Ranked(found.take(chosen), margins[chosen], self.probabilities[chosen], blind)


def _judged(
    sides: tuple[MiningText, MiningText], found: Candidates, model: PairModel, ready: Callable[[str, int], str],
    count: int, watch: Watch,
) -> JudgedCandidates:  # fmt: skip
    """Let the classifier see the best candidates of each sentence."""
    found = found.take(best_of_both(found, count))
    texts = RowTexts(sides[0], lambda text: ready(text, 0)), RowTexts(sides[1], lambda text: ready(text, 1))
    sentences = len(np.unique(found.sources)) + len(np.unique(found.targets))
    with watch.items("encode candidates", sentences, "sentence") as tick:
        pairs = ClassifiedPairs(model, texts, (found.sources, found.targets), tick)
    return JudgedCandidates(found, pairs, _probabilities(pairs, np.arange(len(found), dtype=np.int64), watch))


def store_beside(output: str, encoder: PairEncoder) -> str | None:
    """The folder of vectors that belongs to an output; None for standard output."""
    names = [identity.rpartition("-")[2][:8] for identity in dict.fromkeys(encoder.identities)]
    return None if output == STANDARD else f"{without_ending(output)}.{'-'.join(names)}.vectors"


def settings_from_gold(
    found: MinedTexts, gold: str, settings: MiningSettings, weights: Sequence[float]
) -> MiningSettings:
    """The settings with the threshold, and of some weights the one, with which pairs agree best with gold ones, by F1.

    Args:
        found: in the texts that the gold pairs are of.
        gold: their file.
        settings: with which they were found.
        weights: of probabilities; of equally good ones the first is taken.

    Raises:
        DataError: the gold pairs cannot be read.
        PhraseToolError: none of them was found.
    """
    right = read_gold(gold)
    best = -1.0
    chosen = settings
    for weight in weights if found.judged else [settings.weight]:
        weighted = found.weighted(weight, replace(settings, explain=False))
        pairs = [
            (single_spaced(source), single_spaced(target))
            for source, target in (weighted.texts(place, settings.ids) for place in range(len(weighted.pairs)))
        ]
        if not right.intersection(pairs):
            raise PhraseToolError(f"{gold}: none of its {len(right):,} pairs was found; are they of these texts?")
        quality = evaluate_mining(weighted.pairs.scores, pairs, right)
        if quality.best and quality.best.f1 > best:
            best = quality.best.f1
            threshold = best_threshold(weighted.pairs.scores, pairs, right)
            chosen = replace(settings, weight=weight, threshold=threshold)
    return chosen


def mined_lines(found: MinedTexts, settings: MiningSettings) -> Iterator[bytes]:
    """The lines of the pairs that reach the threshold, best first; see `phrasetool mine`."""
    for place in range(kept_pairs(found, settings.threshold)):
        fields = [b"%.6f" % found.pairs.scores[place], *found.texts(place, settings.ids)]
        if settings.explain:
            columns: list[NDArray[Any] | None] = [found.margins, found.pairs.cosines, found.probabilities, found.blind]
            fields += [b"%.6f" % float(column[place]) for column in columns if column is not None]
        if found.is_copy(place):
            fields.append(COPY)
        yield b"\t".join(fields) + b"\n"


def kept_pairs(found: MinedTexts, threshold: float | None) -> int:
    """How many pairs reach a threshold."""
    return len(found.pairs) if threshold is None else int((found.pairs.scores >= threshold).sum())


@contextlib.contextmanager
def _folder(store: str | None) -> Iterator[str]:
    if store is not None:
        yield store
        return
    with scratch_folder(None, "phrasetool-") as folder:
        yield str(Path(folder) / "vectors")


def _neighbours(
    sources: np.ndarray[tuple[int, int], np.dtype[np.float16]],
    targets: np.ndarray[tuple[int, int], np.dtype[np.float16]],
    settings: MiningSettings,
    watch: Watch,
) -> tuple[Neighbours, Neighbours, Agreement | None]:
    large = max(len(sources), len(targets)) > EXACT_UP_TO
    if settings.search == "exact" or (settings.search == "auto" and not large):
        return (*nearest_both_ways(sources, targets, settings.k, settings.threads, settings.block, watch), None)
    forward, there = approximately_nearest(sources, targets, settings.k, settings.threads, watch)
    backward, back = approximately_nearest(targets, sources, settings.k, settings.threads, watch)
    for found in (there, back):
        watch.say(
            f"approximate search: the nearest is the right one of {found.share:.1%} of {found.sample:,} sentences, "
            f"{found.probed:,} of {found.cells:,} cells looked into"
        )
    return forward, backward, min(there, back, key=lambda found: found.share)


def _probabilities(pairs: ClassifiedPairs, chosen: Int64Array, watch: Watch) -> DoubleArray:
    parts: list[DoubleArray] = [np.zeros(0)]
    with watch.items("classify", len(chosen), "pair") as tick:
        for part in pairs.probabilities(chosen):
            parts.append(part)
            tick(len(part))
    return np.concatenate(parts)


def _same(sides: tuple[MiningText, MiningText], source: int, target: int) -> bool:
    if sides[0].keys[source] != sides[1].keys[target]:
        return False
    return sides[0].plain(source) == sides[1].plain(target)


def _without_copies(sides: tuple[MiningText, MiningText], found: Candidates, drop: bool) -> tuple[Candidates, int]:
    alike = np.flatnonzero(sides[0].keys[found.sources] == sides[1].keys[found.targets])
    copies = [place for place in alike.tolist() if _same(sides, int(found.sources[place]), int(found.targets[place]))]
    if not drop:
        return found, len(copies)
    stay: Int64Array = np.setdiff1d(np.arange(len(found), dtype=np.int64), copies)
    return found.take(stay), len(copies)


def mining_statistics(found: MinedTexts, settings: MiningSettings, encoder: str) -> dict[str, Any]:
    """Counts and settings, for JSON."""
    names = ("source", "target")
    return {
        "encoder": encoder,
        **{
            name: {
                "file": side.name, "lines": side.lines, "empty": side.empty, "different": len(side),
                "without_vector": found.unknown[which],
            }
            for which, (name, side) in enumerate(zip(names, found.sides, strict=True))
        },
        "over_long": found.over_long,
        "search": "exact" if found.agreement is None else {"approximate": asdict(found.agreement)},
        "k": settings.k, "margin": settings.margin, "retrieval": settings.retrieval,
        "min_cosine": settings.min_cosine, "rerank": settings.rerank if found.judged else 0,
        "weight": settings.weight if found.judged else None,
        "copies": found.copies, "copies_dropped": settings.drop_copies,
        "found": len(found.pairs), "threshold": settings.threshold,
        "written": kept_pairs(found, settings.threshold),
    }  # fmt: skip


def mining_summary(statistics: dict[str, Any]) -> list[str]:
    """The same in a few lines."""
    lines = []
    for side in ("source", "target"):
        counts = statistics[side]
        line = f"{counts['file']}: {counts['lines']:,} lines, {counts['different']:,} different sentences"
        for name, text in (("empty", "empty"), ("without_vector", "of which the encoder knows nothing")):
            line += f", {counts[name]:,} {text}" if counts[name] else ""
        lines.append(line)
    if statistics["over_long"]:
        lines.append(
            f"{statistics['over_long']:,} sentences are longer than the encoder reads; their ends were not seen"
        )
    if statistics["copies"]:
        fate = "were left out" if statistics["copies_dropped"] else "are candidates, and marked `copy` where written"
        lines.append(f"{statistics['copies']:,} pairs of two equal sentences {fate}")
    threshold = statistics["threshold"]
    least = "" if threshold is None else f" that score at least {threshold:.6g}"
    lines.append(f"{statistics['written']:,} of {statistics['found']:,} pairs{least} written")
    return lines
