"""Mine sentence pairs of two texts that are translations of each other, and read files of such pairs."""

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
    """One text; its lines are concatenated in memory, with 30 additional bytes per line.

    Attributes:
        name: name of the file, for messages.
        lines: number of lines.
        empty: number of lines without words.
        rows: first line of each distinct sentence, ordered by length, then by a hash.
        keys: uint64, hashes of the distinct sentences, in the same order.
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
        """Return a sentence as in the file, with tabs and carriage returns as spaces."""
        line = int(self.rows[row])
        return bytes(self._text[self._id_ends[line] : self._offsets[line + 1]])

    def name_of(self, row: int) -> bytes:
        """Return the name before a sentence; empty if the text has no names."""
        line = int(self.rows[row])
        return bytes(self._text[self._offsets[line] : self._id_ends[line]])

    def plain(self, row: int) -> str:
        """Return the words of a sentence, unescaped, separated by spaces."""
        return plain_words(self.written(row)).decode()


def plain_words(text: bytes) -> bytes:
    """Return the words of a text, with Moses' escapes undone, separated by spaces."""
    return single_spaced(unescape(text) if b"&" in text else text)


class RowTexts(Sequence[str]):
    """The distinct sentences of a text, computed on access.

    Args:
        text: the text.
        ready: function that converts the words of a sentence to the text that is encoded.
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
    """Read both texts, which may have different numbers of lines.

    Args:
        source, target: files, compressed or not; one may be `-`, standard input.
        ids: whether a name and a tab precede each sentence, as in the files of BUCC.
        watch: progress listener.

    Raises:
        DataError: a file cannot be read, is not UTF-8, has no sentence, or has a line without a name.
        PhraseToolError: both are one file, or standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is also the source file; expected text of the other language")
    return _read(source, ids, watch), _read(target, ids, watch)


def _read(path: str, ids: bool, watch: Watch) -> MiningText:
    text, offsets, id_ends = bytearray(), array("q", [0]), array("q")
    digests, lengths = bytearray(), array("q")
    with Input(path) as file, watch.file(f"read {file.name}", file.size()) as progress:
        name = file.name
        for number, line in enumerate(_lines(file, progress), 1):
            if ids:
                sentence_name, tab, line = line.partition(b"\t")
                if not tab or not sentence_name.strip(b" "):
                    raise DataError(name, "expected a name, a tab and a sentence", number)
                text += sentence_name.strip(b" ")
            id_ends.append(len(text))
            written = line.replace(b"\t", b" ").replace(b"\r", b" ").strip(b" ")
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
        raise DataError(name, "has no sentences")
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
    """Return the first line of each distinct sentence that is not empty, and its key."""
    order = np.lexsort((np.arange(len(digests)), digests[:, 1], digests[:, 0], lengths))
    order = order[lengths[order] > 0]
    first = np.ones(len(order), np.bool_)
    first[1:] = (digests[order][1:] != digests[order][:-1]).any(1)
    rows = order[first]
    return rows, np.ascontiguousarray(digests[rows, 0], np.uint64)


def stored(sides: tuple[MiningText, MiningText], ready: Callable[[str, int], str]) -> StoredPhrases:
    """Return the sentences in the format of a store of vectors."""
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
    """The contents of an output file of `phrasetool mine`.

    Attributes:
        scores: float64, shape (N,).
        pairs: N sources and targets, sentences or their names.
    """

    scores: DoubleArray
    pairs: list[_Pair]


def read_mined(path: str) -> MinedPairs:
    """Read pairs with scores: tab-separated score, source and target; further columns are ignored.

    Raises:
        DataError: the file cannot be read, or a line is malformed.
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
    """Read gold pairs: tab-separated source and target; a score before them, as in mined pairs, is ignored.

    Raises:
        DataError: the file cannot be read, has no pair, or a line is malformed.
    """
    gold_pairs = set()
    for number, line in _numbered_lines(path):
        fields = line.split(b"\t")
        if len(fields) >= 3 and is_number(fields[0]):
            fields = fields[1:]
        if len(fields) < 2 or not _words(fields[0]) or not _words(fields[1]):
            raise DataError(path, "expected a source and a target, with a tab between", number)
        gold_pairs.add((_words(fields[0]), _words(fields[1])))
    if not gold_pairs:
        raise DataError(path, "has no pairs")
    return gold_pairs


def _words(field: bytes) -> bytes:
    """Return a field with blanks normalised to single spaces."""
    return single_spaced(field)


def _numbered_lines(path: str) -> list[tuple[int, bytes]]:
    with Input(path) as file:
        return [(number, line) for number, line in enumerate(split_lines(file.read_all()), 1) if split_words(line)]


# Largest number of sentences of a text for exact search.
EXACT_UP_TO = 300_000
# Weights of probabilities from which gold pairs select one.
WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
# Lower bound of probabilities before the logarithm.
_LEAST = 1e-6


@dataclass(frozen=True)
class MiningSettings:
    """Settings of the search for pairs.

    Attributes:
        k: number of nearest neighbours of each sentence.
        margin: one of `phrasetool.bitext.candidates.MARGINS`.
        retrieval: one of `phrasetool.bitext.candidates.RETRIEVALS`.
        search: exact, approximate or auto.
        min_cosine: lowest cosine of a pair, whatever its margin.
        rerank: number of candidates per sentence that the classifier scores; 0 for none.
        weight: weight of the logarithm of the probability, which is added to the margin of a candidate.
        threshold: lowest score of a written pair; None for all.
        drop_copies: whether to skip pairs of two equal sentences.
        ids: whether a name and a tab precede each sentence; then names are written instead of sentences.
        explain: whether to write the components of the scores.
        threads, block: worker threads, and sentences that each processes at a time; the output does not depend on them.
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
    """Pairs mined from two texts, before a threshold is applied.

    Attributes:
        sides: the texts.
        pairs: rows of both texts, the best first; `scores` are final.
        margins: margins of the pairs, without the classifier.
        probabilities: probabilities that the pairs are parallel; None without a classifier.
        blind: probabilities without the influence of length; None unless `explain` is set.
        copies: number of pairs of equal sentences.
        agreement: agreement of approximate with exact search, the lower one of both directions; None for exact search.
        over_long: sentences that the encoder truncated.
        unknown: for both texts, number of sentences without a known word.
        judged: probabilities of all candidates; None without a classifier.
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

    def weighted(self, weight: float, settings: MiningSettings) -> MinedTexts:
        """Return the pairs for another weight of the probabilities; the same pairs if there is no classifier."""
        if self.judged is None:
            return self
        ranked = self.judged.ranked(replace(settings, weight=weight))
        return replace(self, pairs=ranked.pairs, margins=ranked.margins, probabilities=ranked.probabilities,
                       blind=ranked.blind)  # fmt: skip

    def texts(self, place: int, ids: bool) -> tuple[bytes, bytes]:
        """Return the two sentences of a pair as they are written, or their names."""
        source, target = int(self.pairs.sources[place]), int(self.pairs.targets[place])
        if ids:
            return self.sides[0].name_of(source), self.sides[1].name_of(target)
        return self.sides[0].written(source), self.sides[1].written(target)

    def is_copy(self, place: int) -> bool:
        """Return whether both sentences of a pair are the same."""
        return _same(self.sides, int(self.pairs.sources[place]), int(self.pairs.targets[place]))


def mine_texts(
    source: str, target: str, encoder: PairEncoder, ready: Callable[[str, int], str], texts: str, store: str | None,
    settings: MiningSettings, watch: Watch = SILENT,
) -> MinedTexts:  # fmt: skip
    """Mine pairs from two texts.

    Args:
        source, target: the files.
        encoder: computes vectors, and optionally probabilities.
        ready: function that converts the words of a sentence, given its side, to the text that is encoded.
        texts: description of `ready`, for the store.
        store: the folder of vectors; None for one that is removed at the end.
        settings: the settings of the search.
        watch: progress listener.

    Raises:
        DataError: see `read_sides`.
        ModelError: the encoder cannot be loaded, or does not return vectors of equal dimension; or the store belongs to
            another encoder or other texts, or is damaged.
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
    unknown = tuple(int((neighbours.rows[:, :1] < 0).sum()) for neighbours in (forward, backward))
    candidate_pairs = candidates(forward, backward, settings.margin, settings.min_cosine)
    candidate_pairs, copies = _without_copies(sides, candidate_pairs, settings.drop_copies)
    judged = None
    if encoder.model is not None and settings.rerank:
        judged = _judged(sides, candidate_pairs, encoder.model, ready, settings.rerank, watch)
        ranked = judged.ranked(settings)
    else:
        chosen = retrieve(candidate_pairs, settings.retrieval)
        ranked = _Ranked(candidate_pairs.take(chosen), candidate_pairs.scores[chosen])
    return MinedTexts(
        sides, ranked.pairs, ranked.margins, ranked.probabilities, ranked.blind, copies, agreement, over_long,
        (unknown[0], unknown[1]), judged,
    )  # fmt: skip


@dataclass(frozen=True)
class _Ranked:
    """Selected pairs; see `MinedTexts`."""

    pairs: Candidates
    margins: DoubleArray
    probabilities: DoubleArray | None = None
    blind: DoubleArray | None = None


@dataclass(frozen=True)
class JudgedCandidates:
    """The best candidates of each sentence, with the probabilities of a classifier.

    Attributes:
        candidates: the candidates, with their margins as scores.
        pairs: their sentences, encoded.
        probabilities: probabilities of being parallel, float64, shape (C,).
    """

    candidates: Candidates
    pairs: ClassifiedPairs
    probabilities: DoubleArray

    def ranked(self, settings: MiningSettings) -> _Ranked:
        """Select pairs by the margin plus the weighted logarithm of the probability.

        The weight must be small enough that probabilities do not overrule clear margins: an overconfident classifier
        selects worse pairs than margins do.
        """
        margins = self.candidates.scores
        scores = margins + settings.weight * np.log(np.maximum(self.probabilities, _LEAST))
        reweighted = replace(self.candidates, scores=scores)
        chosen = retrieve(reweighted, settings.retrieval)
        blind = without_length(self.pairs, chosen) if settings.explain else None
        return _Ranked(reweighted.take(chosen), margins[chosen], self.probabilities[chosen], blind)


def _judged(
    sides: tuple[MiningText, MiningText], candidate_pairs: Candidates, model: PairModel,
    ready: Callable[[str, int], str], count: int, watch: Watch,
) -> JudgedCandidates:  # fmt: skip
    """Score the best candidates of each sentence with the classifier."""
    candidate_pairs = candidate_pairs.take(best_of_both(candidate_pairs, count))
    texts = RowTexts(sides[0], lambda text: ready(text, 0)), RowTexts(sides[1], lambda text: ready(text, 1))
    sentences = len(np.unique(candidate_pairs.sources)) + len(np.unique(candidate_pairs.targets))
    with watch.items("encode candidates", sentences, "sentence") as tick:
        pairs = ClassifiedPairs(model, texts, (candidate_pairs.sources, candidate_pairs.targets), tick)
    all_pairs = np.arange(len(candidate_pairs), dtype=np.int64)
    return JudgedCandidates(candidate_pairs, pairs, _probabilities(pairs, all_pairs, watch))


def store_for_output(output: str, encoder: PairEncoder) -> str | None:
    """Return the folder of vectors for an output; None for standard output."""
    names = [identity.rpartition("-")[2][:8] for identity in dict.fromkeys(encoder.identities)]
    return None if output == STANDARD else f"{without_ending(output)}.{'-'.join(names)}.vectors"


def settings_from_gold(
    mined: MinedTexts, gold: str, settings: MiningSettings, weights: Sequence[float]
) -> MiningSettings:
    """Return the settings with the threshold and the weight that maximise F1 against gold pairs.

    Args:
        mined: pairs mined from the texts of the gold pairs.
        gold: file of the gold pairs.
        settings: the settings of the search.
        weights: candidate weights of probabilities; the first of equally good ones is used.

    Raises:
        DataError: the gold pairs cannot be read.
        PhraseToolError: no gold pair was mined.
    """
    right = read_gold(gold)
    best = -1.0
    chosen = settings
    for weight in weights if mined.judged else [settings.weight]:
        weighted = mined.weighted(weight, replace(settings, explain=False))
        pairs = [
            (single_spaced(source), single_spaced(target))
            for source, target in (weighted.texts(row, settings.ids) for row in range(len(weighted.pairs)))
        ]
        if not right.intersection(pairs):
            raise PhraseToolError(f"{gold}: none of its {len(right):,} pairs was found; are they of these texts?")
        quality = evaluate_mining(weighted.pairs.scores, pairs, right)
        if quality.best and quality.best.f1 > best:
            best = quality.best.f1
            threshold = best_threshold(weighted.pairs.scores, pairs, right)
            chosen = replace(settings, weight=weight, threshold=threshold)
    return chosen


def mined_lines(mined: MinedTexts, settings: MiningSettings) -> Iterator[bytes]:
    """Yield the lines of the pairs that reach the threshold, best first; see `phrasetool mine`."""
    for row in range(kept_pairs(mined, settings.threshold)):
        fields = [b"%.6f" % mined.pairs.scores[row], *mined.texts(row, settings.ids)]
        if settings.explain:
            columns: list[NDArray[Any] | None] = [mined.margins, mined.pairs.cosines, mined.probabilities, mined.blind]
            fields += [b"%.6f" % float(column[row]) for column in columns if column is not None]
        if mined.is_copy(row):
            fields.append(COPY)
        yield b"\t".join(fields) + b"\n"


def kept_pairs(mined: MinedTexts, threshold: float | None) -> int:
    """Return the number of pairs that reach a threshold."""
    return len(mined.pairs) if threshold is None else int((mined.pairs.scores >= threshold).sum())


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
    forward, forward_agreement = approximately_nearest(sources, targets, settings.k, settings.threads, watch)
    backward, backward_agreement = approximately_nearest(targets, sources, settings.k, settings.threads, watch)
    for agreement in (forward_agreement, backward_agreement):
        watch.say(
            f"approximate search: the nearest is the right one of {agreement.share:.1%} of {agreement.sample:,} "
            f"sentences, {agreement.probed:,} of {agreement.cells:,} cells searched"
        )
    return forward, backward, min(forward_agreement, backward_agreement, key=lambda agreement: agreement.share)


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


def _without_copies(
    sides: tuple[MiningText, MiningText], candidate_pairs: Candidates, drop: bool
) -> tuple[Candidates, int]:
    alike = np.flatnonzero(sides[0].keys[candidate_pairs.sources] == sides[1].keys[candidate_pairs.targets])
    copies = [
        row
        for row in alike.tolist()
        if _same(sides, int(candidate_pairs.sources[row]), int(candidate_pairs.targets[row]))
    ]
    if not drop:
        return candidate_pairs, len(copies)
    kept: Int64Array = np.setdiff1d(np.arange(len(candidate_pairs), dtype=np.int64), copies)
    return candidate_pairs.take(kept), len(copies)


def mining_statistics(mined: MinedTexts, settings: MiningSettings, encoder: str) -> dict[str, Any]:
    """Return counts and settings as JSON values."""
    names = ("source", "target")
    return {
        "encoder": encoder,
        **{
            name: {
                "file": side.name, "lines": side.lines, "empty": side.empty, "different": len(side),
                "without_vector": mined.unknown[index],
            }
            for index, (name, side) in enumerate(zip(names, mined.sides, strict=True))
        },
        "over_long": mined.over_long,
        "search": "exact" if mined.agreement is None else {"approximate": asdict(mined.agreement)},
        "k": settings.k, "margin": settings.margin, "retrieval": settings.retrieval,
        "min_cosine": settings.min_cosine, "rerank": settings.rerank if mined.judged else 0,
        "weight": settings.weight if mined.judged else None,
        "copies": mined.copies, "copies_dropped": settings.drop_copies,
        "found": len(mined.pairs), "threshold": settings.threshold,
        "written": kept_pairs(mined, settings.threshold),
    }  # fmt: skip


def mining_summary(statistics: dict[str, Any]) -> list[str]:
    """Return the lines of a readable summary of the statistics."""
    lines = []
    for side in ("source", "target"):
        counts = statistics[side]
        line = f"{counts['file']}: {counts['lines']:,} lines, {counts['different']:,} different sentences"
        for name, text in (("empty", "empty"), ("without_vector", "without words known to the encoder")):
            line += f", {counts[name]:,} {text}" if counts[name] else ""
        lines.append(line)
    if statistics["over_long"]:
        lines.append(f"{statistics['over_long']:,} sentences exceed the encoder's maximum length and were truncated")
    if statistics["copies"]:
        fate = "were left out" if statistics["copies_dropped"] else "are candidates, and marked `copy` where written"
        lines.append(f"{statistics['copies']:,} pairs of two equal sentences {fate}")
    threshold = statistics["threshold"]
    least = "" if threshold is None else f" that score at least {threshold:.6g}"
    lines.append(f"{statistics['written']:,} of {statistics['found']:,} pairs{least} written")
    return lines
