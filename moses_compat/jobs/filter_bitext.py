"""Keep the pairs of a bitext that are translations of each other: streamed, block by block.

A sample of the first pairs shows whether the classifier fits the bitext.  A bitext may be dirty: half of its pairs may
be wrong, and still the model fits.  Measured with models of the right languages on 29,000 pairs of German and English,
half of them exchanged: see the guide to filtering.  So only chance itself is refused, and words that are hardly known.
"""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.bitexts import check_line_counts
from moses_compat.files.paths import STANDARD, display_name, is_pipe, same_file
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.mine import COPY, plain_words
from moses_compat.measures.model_fit import FitCheck, emptied
from moses_compat.measures.similarities import finishing, parts_beside
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.models.fit import ModelFit
from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer, PairScorer, PairScores
from phrasetool.pair_classifier.model import PairClassifierModel, fit_of_pairs
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.smt.corpus.symbols import sentence_lengths
from phrasetool.text_splitting import lines_with_ends, tabs_as_spaces
from phrasetool.watch import SILENT, FileProgress, Watch

if TYPE_CHECKING:
    from moses_compat.measures.saved_scores import ScoreParts

# Pairs of a block.  What is said of a pair depends, in its last bits, on its block, so this is no option.
PAIRS = 8192
# Pairs of a sample, and how many of the first pairs it is drawn from; what memory holds before work begins.
SAMPLE, LOOK_AHEAD = 2000, 1 << 16
# By how much the AUC must be higher with the sides swapped, if they are to be called so: half as much as elsewhere.
_BETTER = 0.07
# Pairs whose lengths stand for those of all.
_LENGTHS = 16
# Why a pair goes, and what else is noted of it; the names stand in the files that are written.
EMPTY, UNKNOWN, LOW, LONG = b"empty", b"unknown", b"probability", b"long"
REASONS = (EMPTY, UNKNOWN, LOW, COPY)
# Of the two files.
Sample = tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class SentencePairs:
    """N pairs that follow each other.

    Attributes:
        first: number of the first one, from 0.
        sources, targets: N lines each, with their line ends.
        position: bytes of the source's file that were read by then.
    """

    first: int
    sources: Sequence[bytes]
    targets: Sequence[bytes]
    position: int = 0

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """A fingerprint of each pair, shape (N,)."""
        both = zip(self.sources, self.targets, strict=True)
        return np.array([zlib.crc32(target, zlib.crc32(source)) for source, target in both], np.uint32)

    @cached_property
    def written(self) -> tuple[list[bytes], list[bytes]]:
        """Both sides without line ends, tabs as spaces: tabs separate the fields of what is written."""
        sources, targets = (tabs_as_spaces(b"".join(side)) for side in (self.sources, self.targets))
        return sources, targets


def pair_blocks(
    source: Input, target: Input, progress: Callable[[int, int], None] = lambda position, pairs: None
) -> Iterator[SentencePairs]:
    """Read both sides in step.

    Args:
        source, target: at their beginning.
        progress: called with the bytes of the source consumed and the pairs read.

    Raises:
        DataError: a file cannot be read, or one has more lines than the other; known when the shorter one ends.
    """
    lines = _lines(source), _lines(target)
    first = 0
    while True:
        sources, targets = (list(itertools.islice(side, PAIRS)) for side in lines)
        if len(sources) != len(targets):
            counts = [
                first + len(part) + sum(1 for _ in side) for part, side in zip((sources, targets), lines, strict=True)
            ]
            check_line_counts(source.name, counts[0], target.name, counts[1])
        if not sources:
            return
        yield SentencePairs(first, sources, targets, source.position())
        first += len(sources)
        progress(source.position(), first)


def _lines(file: Input) -> Iterator[bytes]:
    for block in file.whole_lines():
        yield from lines_with_ends(block)


def take_sample(
    blocks: Iterator[SentencePairs], seed: int = 1
) -> tuple[tuple[list[bytes], list[bytes]], list[SentencePairs]]:
    """Some of the first pairs, both sides with a word; and the blocks that were read for it.

    Args:
        blocks: of a bitext, from its beginning.
        seed: of what is drawn.
    """
    taken: list[SentencePairs] = []
    size = 0
    while size < LOOK_AHEAD and (block := next(blocks, None)) is not None:
        taken.append(block)
        size += len(block)
    sides = [[line for block in taken for line in block.written[which]] for which in range(2)]
    good = [row for row, pair in enumerate(zip(*sides, strict=True)) if all(pair)]
    rows = np.sort(np.random.default_rng(seed).permutation(np.array(good, np.int64))[:SAMPLE]).tolist()
    return ([sides[0][row] for row in rows], [sides[1][row] for row in rows]), taken


def check_bitext(
    name: str, model: PairClassifierModel, sample: tuple[list[bytes], list[bytes]], check: FitCheck
) -> None:
    """Tell how well a classifier fits a bitext.

    Args:
        name: of the bitext, as messages call it.
        model: of the folder that the check names.
        sample: see `take_sample`.
        check: tells, and refuses.

    Raises:
        DataError: it does not fit, and nothing is forced.
    """
    check.judge(name, fit_of_pairs(model, *sample), lambda: fit_of_pairs(model, *sample, swapped=True), _BETTER)


def usual_lengths(sample: tuple[list[bytes], list[bytes]]) -> tuple[Int64Array, Int64Array]:
    """Words of the sources and the targets of some pairs, from short ones to long ones; shape (L,), L at most 16."""
    sources, targets = (sentence_lengths(side) for side in sample)
    order = np.lexsort((targets, sources))
    places = order[np.linspace(0, max(len(order) - 1, 0), min(_LENGTHS, len(order))).astype(np.int64)]
    return sources[places], targets[places]


@dataclass
class PairCounts:
    """What a run did.

    Attributes:
        pairs: all of them.
        kept: of them.
        reasons: why others went, by name; a pair that goes for several counts for each.
        copies: pairs of two equal sentences.
        over_long: pairs of which a side has more words than are read.
        certainty: sum of the scores of those kept.
    """

    pairs: int = 0
    kept: int = 0
    certainty: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    over_long: int = 0

    def add(self, other: PairCounts) -> None:
        """Add those of the block that follows."""
        self.pairs += other.pairs
        self.kept += other.kept
        self.certainty += other.certainty
        self.reasons.update(other.reasons)
        self.copies += other.copies
        self.over_long += other.over_long

    def as_dict(self) -> dict[str, Any]:
        """For statistics."""
        return {
            "pairs": self.pairs, "kept": self.kept, "rejected": self.pairs - self.kept,
            "reasons": {reason.decode(): self.reasons[reason.decode()] for reason in REASONS},
            "copies": self.copies, "over_long": self.over_long,
        }  # fmt: skip


@dataclass(frozen=True)
class PairDecisions:
    """What becomes of the N pairs of a block.

    Attributes:
        block: the pairs.
        judged: what was said of them.
        keep: bool, shape (N,).
        notes: of each, why it goes, or what else is noted.
    """

    block: SentencePairs
    judged: PairScores
    keep: Mask
    notes: Sequence[tuple[bytes, ...]]

    @classmethod
    def of(
        cls,
        block: SentencePairs,
        judged: PairScores,
        threshold: float,
        drop_copies: bool,
        longest: int | None,
        too_many: Int64Array | None = None,
    ) -> PairDecisions:
        """Decide.

        Args:
            block, judged: the pairs and what is said of them.
            threshold: the least score of a pair that stays.
            drop_copies: pairs of two equal sentences go.
            longest: words of a sentence that are read.
            too_many: rows of pairs that reach the threshold and go all the same, as a share of the pairs wants it.
        """
        below = np.isnan(judged.scores) | (judged.scores < np.float32(threshold))
        if too_many is not None:
            below[too_many] = True
        low = below.tolist()
        silent = np.isnan(judged.scores).tolist()
        keep, notes = np.ones(len(block), np.bool_), []
        words = np.maximum(*map(sentence_lengths, block.written)) if longest is not None else np.zeros(len(block))
        over_long = (words > (longest or 0)).tolist()
        for row, (source, target) in enumerate(zip(*block.written, strict=True)):
            found: list[bytes] = []
            if not source or not target:
                found.append(EMPTY)
            elif silent[row]:
                found.append(UNKNOWN)
            elif low[row]:
                found.append(LOW)
            keep[row] = not found
            if source and _same(source, target):
                found.append(COPY)
                keep[row] &= not drop_copies
            if over_long[row]:
                found.append(LONG)
            notes.append(tuple(found))
        return cls(block, judged, keep, notes)

    @property
    def counts(self) -> PairCounts:
        """Of the block."""
        gone = zip(self.keep.tolist(), self.notes, strict=True)
        reasons = Counter(note.decode() for keep, notes in gone if not keep for note in notes if note in REASONS)
        copies, over_long = (sum(name in notes for notes in self.notes) for name in (COPY, LONG))
        certainty = float(self.judged.scores[self.keep].sum(dtype=np.float64))
        return PairCounts(len(self.block), int(self.keep.sum()), certainty, reasons, copies, over_long)

    def kept_lines(self) -> tuple[bytes, bytes]:
        """What stays of both sides, as it was."""
        rows = np.flatnonzero(self.keep).tolist()
        return b"".join(self.block.sources[row] for row in rows), b"".join(self.block.targets[row] for row in rows)

    def score_lines(self) -> bytes:
        """A line a pair: score, `kept` or `rejected`, notes, source and target; and the score without length."""
        sources, targets = self.block.written
        blind = (
            [b""] * len(sources) if self.judged.blind is None else [b"\t" + x for x in _score_texts(self.judged.blind)]
        )
        rows = zip(
            _score_texts(self.judged.scores), self.keep.tolist(), self.notes, sources, targets, blind, strict=True
        )
        return b"".join(
            b"%b\t%b\t%b\t%b\t%b%b\n" % (score, b"kept" if keep else b"rejected", _noted(notes), source, target, more)
            for score, keep, notes, source, target, more in rows
        )

    def rejected_lines(self) -> bytes:
        """A line for each pair that goes: reasons, score, number of the line, source and target."""
        return b"".join(self._rejected(_score_texts(self.judged.scores)))

    def _rejected(self, scores: Sequence[bytes]) -> Iterator[bytes]:
        sources, targets = self.block.written
        for row in np.flatnonzero(~self.keep).tolist():
            line = self.block.first + row + 1
            yield b"%b\t%b\t%d\t%b\t%b\n" % (_noted(self.notes[row]), scores[row], line, sources[row], targets[row])


def copies_in(block: SentencePairs) -> Mask:
    """Which pairs of a block are two equal sentences: bool, shape (N,)."""
    sides = zip(*block.written, strict=True)
    return np.array([bool(source) and _same(source, target) for source, target in sides], np.bool_)


def _score_texts(scores: np.ndarray[Any, np.dtype[np.float32]]) -> list[bytes]:
    """With six decimals; 0 where nothing is said."""
    return [b"%.6f" % (score + 0.0) for score in np.nan_to_num(scores).tolist()]


def _noted(notes: Sequence[bytes]) -> bytes:
    return b",".join(notes) or b"-"


def _same(source: bytes, target: bytes) -> bool:
    if source == target:
        return True
    # Escapes are the one way in which equal words can differ in bytes.
    return (b"&" in source or b"&" in target or b"  " in source or b"  " in target) and plain_words(
        source
    ) == plain_words(target)


@dataclass(frozen=True)
class FilterRequest:
    """What is wanted.

    Attributes:
        source, target: the bitext; one of them may be `-`.
        kept: where both sides of what stays go.
        threshold: the least score of a pair that stays.
        share: in its place, how many of the pairs stay, those with the highest scores; the bitext is read twice.
        scores, rejected: files of lines, see `PairDecisions`.
        drop_copies: pairs of two equal sentences go.
        allow_empty: the bitext may have no pair.
        force: go on where the model does not fit, and where no pair stays.
        threads: blocks that are worked on at a time.
        holds_text: sentences have to be UTF-8.
    """

    source: str
    target: str
    kept: tuple[str, str]
    threshold: float
    share: float | None = None
    scores: str | None = None
    rejected: str | None = None
    drop_copies: bool = False
    allow_empty: bool = False
    force: bool = False
    threads: int = 1
    holds_text: bool = False

    @property
    def name(self) -> str:
        """Of the bitext, as messages call it."""
        return f"{display_name(self.source)} and {display_name(self.target)}"

    @property
    def outputs(self) -> list[str | None]:
        """Every file that is written."""
        return [*self.kept, self.scores, self.rejected]


@dataclass
class FilterReport:
    """What was done.

    Attributes:
        counts: of pairs.
        signature: of what judged them.
        fit: how well it fits, where that could be told.
        threshold: the least score of a pair that stays.
        resumed: pairs that an earlier run had judged already.
    """

    counts: PairCounts = field(default_factory=PairCounts)
    signature: str = ""
    fit: ModelFit | None = None
    threshold: float = 0.0
    resumed: int = 0


def classifier_judge(
    model: PairClassifierModel, folder: str, request: FilterRequest, explain: bool, watch: Watch = SILENT
) -> Callable[[Sample, FilterReport], PairScorer]:
    """What makes the judge, once a sample of the bitext is known.

    Args:
        model: the classifier, of this folder.
        request: whose bitext is judged.
        explain: ask for probabilities without length, too.
        watch: is told how well the model fits.
    """

    def make(sample: Sample, report: FilterReport) -> PairScorer:
        check = FitCheck(folder, watch, request.force)
        check_bitext(request.name, model, sample, check)
        report.fit = check.fit
        return ClassifierScorer(model, usual_lengths(sample) if explain else None)

    return make


def filter_bitext(
    request: FilterRequest, make: Callable[[Sample, FilterReport], PairScorer], watch: Watch = SILENT
) -> FilterReport:
    """Write what stays of a bitext.

    Finished blocks are kept beside the first output until all is done, so interrupted work goes on.

    Args:
        request: what is wanted.
        make: the judge, given a sample of the first pairs.
        watch: follows the work.

    Raises:
        DataError: a file cannot be read, has fewer lines than the other, none at all, or bytes that the judge cannot
            read; the model does not fit the bitext; no pair stays; or finished blocks are of another bitext or judge.
        PhraseToolError: both sides are one file, standard input is to be read twice, or an output cannot be written.
    """
    if request.source == request.target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides of a bitext")
    if request.share is not None:
        for path in (request.source, request.target):
            if path == STANDARD or is_pipe(path):
                raise PhraseToolError(
                    f"{display_name(path)}: cannot be read twice, as a share of the pairs needs; name a file"
                )
    if same_file(request.source, request.target):
        raise PhraseToolError(f"{request.target}: is the file of the source, too; expected its translation")
    report = FilterReport(threshold=request.threshold)
    folder = parts_beside(request.kept[0], 1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(finishing([folder]))
        outputs = [stack.enter_context(Output(path)) if path else None for path in request.outputs]
        with _opened(request) as (source, blocks):
            sample, taken = take_sample(blocks)
            if not taken and not request.allow_empty:
                raise DataError(source.name, "there is no sentence pair in it", remedy="allow an empty input")
            judge = make(sample, report)
            report.signature = judge.signature
            stack.enter_context(one_torch_thread())
            work = _Work(request, judge, outputs, _parts(folder, judge))
            blocks = itertools.chain(emptied(taken), blocks)
            if request.share is None:
                work.write(blocks, report, stack.enter_context(watch.file("filter", source.size())))
            else:
                with watch.file("judge", source.size()) as progress:
                    report.threshold = work.threshold_for(request.share, blocks, progress)
        if request.share is not None:
            with _opened(request) as (source, blocks), watch.file("filter", source.size()) as progress:
                work.write(blocks, report, progress)
        counts = report.counts
        if counts.pairs and not counts.kept and not request.force:
            best = f"the best has {work.best:.3g}" if work.best > -np.inf else "nothing is known of any"
            reason = f"no pair of {counts.pairs:,} reaches the threshold {report.threshold:.3g}; {best}"
            raise DataError(request.name, reason, remedy="go on")
    return report


@contextlib.contextmanager
def _opened(request: FilterRequest) -> Iterator[tuple[Input, Iterator[SentencePairs]]]:
    """The source and the pairs of the bitext."""
    with Input(request.source) as source, Input(request.target) as target:
        blocks = pair_blocks(source, target)
        yield source, _checked(blocks, (source.name, target.name)) if request.holds_text else blocks


@dataclass(frozen=True)
class _Done:
    """A block that was judged: the text of each output, packed."""

    block: SentencePairs
    judged: PairScores
    new: bool
    texts: list[bytes]
    counts: PairCounts


class _Work:
    """Judges blocks, by any thread, and takes them in their order.

    Attributes:
        best: the highest score of a pair so far; minus infinity where no pair had one.
    """

    def __init__(
        self, request: FilterRequest, judge: PairScorer, outputs: list[Output | None], parts: ScoreParts | None
    ) -> None:
        self._request, self._judge, self._outputs, self._parts = request, judge, outputs, parts
        self._threshold = request.threshold
        self._remembered: dict[int, PairScores] = {}
        # Places of pairs that reach a threshold made for a share, and go for more would stay than the share.
        self._ties = np.zeros(0, np.int64)
        self.best = -np.inf

    def threshold_for(self, share: float, blocks: Iterator[SentencePairs], progress: FileProgress) -> float:
        """Judge all pairs, and tell the score that a share of them reaches.

        Of pairs with this very score, as many stay as fit, the first of the bitext; see `_ties`.

        Args:
            share: of all pairs; those of which nothing is known stay last, and with `drop_copies` copies never.
            blocks: of the bitext.
            progress: follows the work.
        """
        scores = [np.empty(0, np.float32)]
        for block, judged, new in run(blocks, self._judged, self._request.threads):
            self._store(block, judged, new)
            self._remembered[block.first] = judged
            good = judged.scores.copy()
            if self._request.drop_copies:
                good[copies_in(block)] = np.nan
            scores.append(good)
            progress(block.position, block.first + len(block))
        every = np.concatenate(scores)
        known = np.sort(every[~np.isnan(every)])[::-1]
        wanted = min(max(round(share * len(every)), 1), len(known))
        if not wanted:
            return self._request.threshold
        threshold = float(known[wanted - 1])
        places = np.flatnonzero(every == np.float32(threshold))
        self._ties = places[wanted - int((every > np.float32(threshold)).sum()) :]
        return threshold

    def write(self, blocks: Iterator[SentencePairs], report: FilterReport, progress: FileProgress) -> None:
        """Decide about all pairs and write them."""
        self._threshold = report.threshold
        for done in run(blocks, self._decided, self._request.threads):
            self._keep(done, report)
            progress(done.block.position, report.counts.pairs)

    def _judged(self, block: SentencePairs) -> tuple[SentencePairs, PairScores, bool]:
        """What is said of a block, and whether it is new."""
        if (remembered := self._remembered.get(block.first)) is not None:
            return block, remembered, False
        found = self._parts.read(*self._key(block)) if self._parts else None
        if found is not None:
            return block, _judgements(found, self._judge.columns), False
        return block, self._judge(*block.written), True

    def _decided(self, block: SentencePairs) -> _Done:
        _, judged, new = self._judged(block)
        longest = self._judge.longest
        first, last = np.searchsorted(self._ties, [block.first, block.first + len(block)])
        too_many = self._ties[first:last] - block.first
        decided = PairDecisions.of(block, judged, self._threshold, self._request.drop_copies, longest, too_many)
        kept = decided.kept_lines()
        makers: tuple[Callable[[], bytes], ...] = (
            lambda: kept[0],
            lambda: kept[1],
            decided.score_lines,
            decided.rejected_lines,
        )
        texts = [out.encode(make()) if out else b"" for out, make in zip(self._outputs, makers, strict=True)]
        return _Done(block, judged, new, texts, decided.counts)

    def _store(self, block: SentencePairs, judged: PairScores, new: bool) -> None:
        """Keep what is said of a block for a run that goes on after an interruption.

        In order, so that nothing is added to the parts of another bitext before they are refused.
        """
        if self._parts and new:
            self._parts.write(*self._key(block), _joined_scores(judged))

    def _keep(self, done: _Done, report: FilterReport) -> None:
        """Write what came of a block, behind those before it."""
        self._store(done.block, done.judged, done.new)
        for out, text in zip(self._outputs, done.texts, strict=True):
            if out:
                out.write(text)
        report.counts.add(done.counts)
        report.resumed += 0 if done.new or self._remembered else len(done.block)
        if len(scores := done.judged.scores[~np.isnan(done.judged.scores)]):
            self.best = max(self.best, float(scores.max()))

    def _key(self, block: SentencePairs) -> tuple[int, npt.NDArray[np.uint32]]:
        """Number and fingerprints of what is kept of a block: one of each pair for each of its scores."""
        return block.first // PAIRS, np.tile(block.hashes, self._judge.columns)


def _parts(folder: str | None, judge: PairScorer) -> ScoreParts | None:
    if folder is None:
        return None
    from moses_compat.measures.saved_scores import ScoreParts

    return ScoreParts(folder, f"{judge.signature}|pairs:{PAIRS}", "bitext")


def _joined_scores(judged: PairScores) -> FloatArray:
    """All scores of a block, those without length behind the others."""
    return judged.scores if judged.blind is None else np.concatenate([judged.scores, judged.blind])


def _judgements(found: FloatArray, columns: int) -> PairScores:
    """What `_joined_scores` gave."""
    parts = found.reshape(columns, -1)
    return PairScores(parts[0], parts[1] if columns > 1 else None)


def _checked(blocks: Iterator[SentencePairs], names: tuple[str, str]) -> Iterator[SentencePairs]:
    """The same blocks, if they are UTF-8."""
    for block in blocks:
        for name, lines in zip(names, (block.sources, block.targets), strict=True):
            for number, line in enumerate(lines, block.first + 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    raise DataError(name, "is not UTF-8, which the encoder reads", number) from error
        yield block
