"""Filter a bitext for pairs that are translations of each other, streaming it block by block.

A sample of the first pairs shows whether the classifier matches the bitext.  A bitext may be noisy: the model can be
suitable even if half of the pairs are wrong, as measured on 29,000 pairs of German and English, half of them exchanged
(see the guide to filtering).  So a model is rejected only if it is at chance level, or if most words are unknown.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.bitexts import check_line_counts, check_two_sides
from moses_compat.files.paths import STANDARD, display_name, is_pipe
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.mine import COPY, plain_words
from moses_compat.measures.model_fit import FitCheck, drain
from moses_compat.measures.similarities import finishing, parts_folder, remove_finished_scores
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.models.fit import ModelCompatibility
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

# Pairs per block.  The last bits of a score depend on the block of the pair, so this is not an option.
PAIRS = 8192
# Number of pairs of a sample, and of the first pairs from which it is drawn and which are held in memory.
SAMPLE, LOOK_AHEAD = 2000, 1 << 16
# Increase of the AUC with swapped sides at which a swap is suggested: half as large as for tables.
_BETTER = 0.07
# Number of pairs whose lengths represent those of all.
_LENGTHS = 16
# Reasons for rejection and other notes on pairs; the names appear in output files.
EMPTY, UNKNOWN, LOW, TIE, LONG = b"empty", b"unknown", b"probability", b"tie", b"long"
REASONS = (EMPTY, UNKNOWN, LOW, TIE, COPY)
# Text in place of the score of a pair without a score: its probability is 0; any cosine or fluency may be a good one.
_IMPROBABLE, _NO_SCORE = b"0.000000", b"-"
# Sentences of the two files.
Sample = tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class SentencePairs:
    """N consecutive pairs.

    Attributes:
        first: 0-based index of the first pair.
        sources, targets: N lines each, with their line ends.
        position: bytes of the source file that have been read at the end of the pairs.
    """

    first: int
    sources: Sequence[bytes]
    targets: Sequence[bytes]
    position: int = 0

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """Fingerprints of the pairs, shape (N,)."""
        both = zip(self.sources, self.targets, strict=True)
        return np.array([zlib.crc32(target, zlib.crc32(source)) for source, target in both], np.uint32)

    @cached_property
    def written(self) -> tuple[list[bytes], list[bytes]]:
        """Both sides without line ends, with tabs as spaces, because tabs separate the fields of output files."""
        sources, targets = (tabs_as_spaces(b"".join(side)) for side in (self.sources, self.targets))
        return sources, targets


def pair_blocks(source: Input, target: Input) -> Iterator[SentencePairs]:
    """Read both sides in parallel.

    Args:
        source, target: the files, at their beginning.

    Raises:
        DataError: a file cannot be read, or has more lines than the other (raised at the end of the shorter one).
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


def _lines(file: Input) -> Iterator[bytes]:
    for block in file.whole_lines():
        yield from lines_with_ends(block)


def take_sample(
    blocks: Iterator[SentencePairs], seed: int = 1
) -> tuple[tuple[list[bytes], list[bytes]], list[SentencePairs]]:
    """Draw a sample of the first pairs without empty sides; return it and the blocks that were read for it.

    Args:
        blocks: blocks of a bitext, from its beginning.
        seed: random seed of the sample.
    """
    blocks_read: list[SentencePairs] = []
    size = 0
    while size < LOOK_AHEAD and (block := next(blocks, None)) is not None:
        blocks_read.append(block)
        size += len(block)
    sides = [[line for block in blocks_read for line in block.written[side]] for side in range(2)]
    good = [row for row, pair in enumerate(zip(*sides, strict=True)) if all(pair)]
    rows = np.sort(np.random.default_rng(seed).permutation(np.array(good, np.int64))[:SAMPLE]).tolist()
    return ([sides[0][row] for row in rows], [sides[1][row] for row in rows]), blocks_read


def check_bitext(
    name: str, model: PairClassifierModel, sample: tuple[list[bytes], list[bytes]], check: FitCheck
) -> None:
    """Check how well a classifier matches a bitext.

    Args:
        name: name of the bitext in messages.
        model: the model of the folder that the check names.
        sample: see `take_sample`.
        check: reports the result, or rejects the model.

    Raises:
        DataError: the model does not match, and `force` is not set.
    """
    check.judge(name, fit_of_pairs(model, *sample), lambda: fit_of_pairs(model, *sample, swapped=True), _BETTER)


def usual_lengths(sample: tuple[list[bytes], list[bytes]]) -> tuple[Int64Array, Int64Array]:
    """Return the lengths in words of sources and of targets of some pairs, ascending; shape (L,), L at most 16."""
    sources, targets = (sentence_lengths(side) for side in sample)
    order = np.lexsort((targets, sources))
    rows = order[np.linspace(0, max(len(order) - 1, 0), min(_LENGTHS, len(order))).astype(np.int64)]
    return sources[rows], targets[rows]


@dataclass
class PairCounts:
    """Counts of a filter run.

    Attributes:
        pairs: all pairs.
        kept: kept pairs.
        reasons: numbers of rejected pairs by reason; a pair with several reasons counts for each.
        copies: pairs of two equal sentences.
        over_long: pairs with a side that is longer than the input limit of the classifier.
        certainty: sum of the scores of the kept pairs.
    """

    pairs: int = 0
    kept: int = 0
    certainty: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    over_long: int = 0

    def add(self, other: PairCounts) -> None:
        """Add the counts of the next block."""
        self.pairs += other.pairs
        self.kept += other.kept
        self.certainty += other.certainty
        self.reasons.update(other.reasons)
        self.copies += other.copies
        self.over_long += other.over_long

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "pairs": self.pairs, "kept": self.kept, "rejected": self.pairs - self.kept,
            "reasons": {reason.decode(): self.reasons[reason.decode()] for reason in REASONS},
            "copies": self.copies, "over_long": self.over_long,
        }  # fmt: skip


@dataclass(frozen=True)
class PairDecisions:
    """Decisions for the N pairs of a block.

    Attributes:
        block: the pairs.
        judged: their scores.
        keep: bool, shape (N,).
        notes: reasons for rejection and other notes of each pair.
        drop_copies: whether `COPY` is a reason for rejection.
        unscored: text in place of the score of a pair without a score.
    """

    block: SentencePairs
    judged: PairScores
    keep: Mask
    notes: Sequence[tuple[bytes, ...]]
    drop_copies: bool
    unscored: bytes

    @classmethod
    def of(
        cls,
        block: SentencePairs,
        judged: PairScores,
        threshold: float,
        drop_copies: bool,
        truncated: Mask,
        too_many: Int64Array | None = None,
        unscored: bytes = _IMPROBABLE,
    ) -> PairDecisions:
        """Decide which pairs of a block to keep.

        Args:
            block, judged: the pairs and their scores.
            threshold: lowest score of a kept pair.
            drop_copies: whether to reject pairs of two equal sentences.
            truncated: which pairs have a sentence that the classifier truncates, bool, shape (N,).
            too_many: rows of pairs at the threshold that are rejected so that the exact share of pairs is kept.
            unscored: text in place of the score of a pair without a score.
        """
        low = (np.isnan(judged.scores) | (judged.scores < np.float32(threshold))).tolist()
        surplus = np.zeros(len(block), np.bool_)
        if too_many is not None:
            surplus[too_many] = True
        tied = surplus.tolist()
        without_score = np.isnan(judged.scores).tolist()
        keep, notes = np.ones(len(block), np.bool_), []
        over_long = truncated.tolist()
        for row, (source, target) in enumerate(zip(*block.written, strict=True)):
            row_notes: list[bytes] = []
            if not source or not target:
                row_notes.append(EMPTY)
            elif without_score[row]:
                row_notes.append(UNKNOWN)
            elif low[row]:
                row_notes.append(LOW)
            elif tied[row]:
                row_notes.append(TIE)
            keep[row] = not row_notes
            if source and _same(source, target):
                row_notes.append(COPY)
                keep[row] &= not drop_copies
            if over_long[row]:
                row_notes.append(LONG)
            notes.append(tuple(row_notes))
        return cls(block, judged, keep, notes, drop_copies, unscored)

    @property
    def counts(self) -> PairCounts:
        """The counts of the block."""
        decisions = zip(self.keep.tolist(), self.notes, strict=True)
        counted = REASONS if self.drop_copies else set(REASONS) - {COPY}
        reasons = Counter(note.decode() for keep, notes in decisions if not keep for note in notes if note in counted)
        copies, over_long = (sum(name in notes for notes in self.notes) for name in (COPY, LONG))
        certainty = float(self.judged.scores[self.keep].sum(dtype=np.float64))
        return PairCounts(len(self.block), int(self.keep.sum()), certainty, reasons, copies, over_long)

    def kept_lines(self) -> tuple[bytes, bytes]:
        """Return the kept lines of both sides, unchanged."""
        rows = np.flatnonzero(self.keep).tolist()
        return b"".join(self.block.sources[row] for row in rows), b"".join(self.block.targets[row] for row in rows)

    def score_lines(self) -> bytes:
        """Return a line per pair: score, `kept` or `rejected`, notes, source, target, and the score without length."""
        sources, targets = self.block.written
        blind = (
            [b""] * len(sources)
            if self.judged.blind is None
            else [b"\t" + text for text in self._score_texts(self.judged.blind)]
        )
        rows = zip(
            self._score_texts(self.judged.scores), self.keep.tolist(), self.notes, sources, targets, blind, strict=True
        )
        return b"".join(
            b"%b\t%b\t%b\t%b\t%b%b\n" % (score, b"kept" if keep else b"rejected", _noted(notes), source, target, more)
            for score, keep, notes, source, target, more in rows
        )

    def rejected_lines(self) -> bytes:
        """Return a line per rejected pair: reasons, score, line number, source and target."""
        return b"".join(self._rejected(self._score_texts(self.judged.scores)))

    def _score_texts(self, scores: FloatArray) -> list[bytes]:
        """Format scores with six decimals."""
        return [self.unscored if math.isnan(score) else b"%.6f" % (score + 0.0) for score in scores.tolist()]

    def _rejected(self, scores: Sequence[bytes]) -> Iterator[bytes]:
        sources, targets = self.block.written
        for row in np.flatnonzero(~self.keep).tolist():
            line = self.block.first + row + 1
            yield b"%b\t%b\t%d\t%b\t%b\n" % (_noted(self.notes[row]), scores[row], line, sources[row], targets[row])


def copies_in(block: SentencePairs) -> Mask:
    """Return a mask, shape (N,), of the pairs of a block that are two equal sentences."""
    sides = zip(*block.written, strict=True)
    return np.array([bool(source) and _same(source, target) for source, target in sides], np.bool_)


def _noted(notes: Sequence[bytes]) -> bytes:
    return b",".join(notes) or b"-"


def _same(source: bytes, target: bytes) -> bool:
    if source == target:
        return True
    # Only escapes and blanks can make equal words differ in bytes.
    return (b"&" in source or b"&" in target or b"  " in source or b"  " in target) and plain_words(
        source
    ) == plain_words(target)


@dataclass(frozen=True)
class FilterRequest:
    """Settings of a filter run.

    Attributes:
        source, target: files of the bitext; one of them may be `-`.
        kept: output files of both sides of the kept pairs.
        threshold: lowest score of a kept pair.
        share: share of the pairs to keep, by score, instead of a threshold; the bitext is then read twice.
        scores, rejected: further output files, see `PairDecisions`.
        drop_copies: whether to reject pairs of two equal sentences.
        allow_empty: whether the bitext may be empty.
        force: only warn if the model does not match, or if no pair is kept.
        threads: number of blocks that are processed in parallel.
        holds_text: whether sentences must be UTF-8.
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
        """The name of the bitext in messages."""
        return f"{display_name(self.source)} and {display_name(self.target)}"

    @property
    def outputs(self) -> list[str | None]:
        """All output files."""
        return [*self.kept, self.scores, self.rejected]


@dataclass
class FilterReport:
    """Results of a filter run.

    Attributes:
        counts: counts of pairs.
        signature: signature of the scorer.
        fit: how well the model matches the bitext, if it could be measured.
        threshold: lowest score of a kept pair.
        resumed: pairs whose scores were reused from an interrupted run.
    """

    counts: PairCounts = field(default_factory=PairCounts)
    signature: str = ""
    fit: ModelCompatibility | None = None
    threshold: float = 0.0
    resumed: int = 0


def classifier_scorer(
    model: PairClassifierModel, folder: str, request: FilterRequest, explain: bool, watch: Watch = SILENT
) -> Callable[[Sample, FilterReport], PairScorer]:
    """Return a function that checks the model on a sample of the bitext and makes the scorer.

    Args:
        model, folder: the classifier and its folder.
        request: the settings.
        explain: whether to compute probabilities without length, too.
        watch: receives a message on how well the model matches.
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
    """Write the kept pairs of a bitext.

    Finished blocks are stored next to the first output, so that interrupted work can be resumed.

    Args:
        request: the settings.
        make: function that returns the scorer, given a sample of the first pairs.
        watch: progress listener.

    Raises:
        DataError: a file cannot be read, has fewer lines than the other, none at all, or bytes that the scorer cannot
            read; the model does not match the bitext; no pair is kept; or stored blocks belong to another run.
        PhraseToolError: both sides are one file, standard input is to be read twice, or an output cannot be written.
    """
    check_two_sides(request.source, request.target)
    if request.share is not None:
        for path in (request.source, request.target):
            if path == STANDARD or is_pipe(path):
                raise PhraseToolError(
                    f"{display_name(path)}: cannot be read twice, which keeping a share of the pairs needs; name a file"
                )
    report = FilterReport(threshold=request.threshold)
    folder = parts_folder(request.kept[0], 1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(finishing([folder]))
        outputs = [stack.enter_context(Output(path)) if path else None for path in request.outputs]
        with _opened(request) as (source, blocks):
            sample, first_blocks = take_sample(blocks)
            if not first_blocks and not request.allow_empty:
                raise DataError(source.name, "has no sentence pairs", remedy="allow an empty input")
            scorer = make(sample, report)
            report.signature = scorer.signature
            stack.enter_context(one_torch_thread())
            work = _Work(request, scorer, outputs, _parts(folder, scorer))
            blocks = itertools.chain(drain(first_blocks), blocks)
            if request.share is None:
                work.write(blocks, report, stack.enter_context(watch.file("filter", source.size())))
            else:
                with watch.file("judge", source.size()) as progress:
                    report.threshold = work.threshold_for(request.share, blocks, report, progress)
        if request.share is not None:
            with _opened(request) as (source, blocks), watch.file("filter", source.size()) as progress:
                work.write(blocks, report, progress)
        counts = report.counts
        if counts.pairs and not counts.kept and not request.force:
            best = f"the best has {work.best:.3g}" if work.best > -np.inf else "no pair has a score"
            reason = f"no pair of {counts.pairs:,} reaches the threshold {report.threshold:.3g}; {best}"
            # Otherwise, another model would be refused at the next attempt.
            remove_finished_scores([folder])
            raise DataError(request.name, reason, remedy="go on")
    return report


@contextlib.contextmanager
def _opened(request: FilterRequest) -> Iterator[tuple[Input, Iterator[SentencePairs]]]:
    """Open the bitext; yield the source and the pairs."""
    with Input(request.source) as source, Input(request.target) as target:
        blocks = pair_blocks(source, target)
        yield source, _checked(blocks, (source.name, target.name)) if request.holds_text else blocks


@dataclass(frozen=True)
class _Done:
    """A block with decisions: the text for each output, compressed."""

    block: SentencePairs
    judged: PairScores
    new: bool
    texts: list[bytes]
    counts: PairCounts


class _Work:
    """Worker that scores blocks in any thread, and writes them in order.

    Attributes:
        best: highest score of a pair so far; minus infinity if no pair had one.
    """

    def __init__(
        self, request: FilterRequest, scorer: PairScorer, outputs: list[Output | None], parts: ScoreParts | None
    ) -> None:
        self._request, self._scorer, self._outputs, self._parts = request, scorer, outputs, parts
        self._threshold = request.threshold
        self._remembered: dict[int, PairScores] = {}
        # Positions of pairs at the threshold of a share that are rejected, because more pairs than the share reach it.
        self._ties = np.zeros(0, np.int64)
        self.best = -np.inf

    def threshold_for(
        self, share: float, blocks: Iterator[SentencePairs], report: FilterReport, progress: FileProgress
    ) -> float:
        """Score all pairs, and return the score that a given share of them reaches.

        Among pairs with exactly this score, the first ones of the bitext are kept; see `_ties`.

        Args:
            share: share of all pairs; pairs without a score, and with `drop_copies` copies, are never kept.
            blocks: blocks of the bitext.
            report: receives the number of pairs whose scores are reused.
            progress: progress listener.
        """
        scores = [np.empty(0, np.float32)]
        for block, judged, new in run(blocks, self._judged, self._request.threads):
            self._store(block, judged, new)
            self._remembered[block.first] = judged
            report.resumed += 0 if new else len(block)
            good = judged.scores.copy()
            if self._request.drop_copies:
                good[copies_in(block)] = np.nan
            scores.append(good)
            progress(block.position, block.first + len(block))
        every = np.concatenate(scores)
        known = np.sort(every[~np.isnan(every)])[::-1]
        kept_count = min(max(round(share * len(every)), 1), len(known))
        if not kept_count:
            return self._request.threshold
        threshold = float(known[kept_count - 1])
        tied = np.flatnonzero(every == np.float32(threshold))
        self._ties = tied[kept_count - int((every > np.float32(threshold)).sum()) :]
        return threshold

    def write(self, blocks: Iterator[SentencePairs], report: FilterReport, progress: FileProgress) -> None:
        """Decide which pairs to keep, and write the outputs."""
        self._threshold = report.threshold
        for finished in run(blocks, self._decided, self._request.threads):
            self._keep(finished, report)
            progress(finished.block.position, report.counts.pairs)

    def _judged(self, block: SentencePairs) -> tuple[SentencePairs, PairScores, bool]:
        """Return the scores of a block, and whether they are new."""
        if (remembered := self._remembered.get(block.first)) is not None:
            return block, remembered, False
        stored = self._parts.read(*self._key(block)) if self._parts else None
        if stored is not None:
            return block, _judgements(stored, self._scorer.columns), False
        return block, self._scorer(*block.written), True

    def _decided(self, block: SentencePairs) -> _Done:
        _, judged, new = self._judged(block)
        truncated = self._scorer.truncated(*block.written)
        unscored = _IMPROBABLE if self._scorer.probabilities else _NO_SCORE
        first, last = np.searchsorted(self._ties, [block.first, block.first + len(block)])
        too_many = self._ties[first:last] - block.first
        decided = PairDecisions.of(
            block, judged, self._threshold, self._request.drop_copies, truncated, too_many, unscored
        )
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
        """Store the scores of a block for resuming after an interruption.

        Blocks are stored in order, so that parts of another bitext are rejected before anything is added to them.
        """
        if self._parts and new:
            self._parts.write(*self._key(block), _joined_scores(judged))

    def _keep(self, done: _Done, report: FilterReport) -> None:
        """Write the texts of a block after those of the previous blocks."""
        self._store(done.block, done.judged, done.new)
        for out, text in zip(self._outputs, done.texts, strict=True):
            if out:
                out.write(text)
        report.counts.add(done.counts)
        report.resumed += 0 if done.new or self._remembered else len(done.block)
        if len(scores := done.judged.scores[~np.isnan(done.judged.scores)]):
            self.best = max(self.best, float(scores.max()))

    def _key(self, block: SentencePairs) -> tuple[int, npt.NDArray[np.uint32]]:
        """Return the number of a block and the fingerprints of its stored scores, one for each pair and column."""
        return block.first // PAIRS, np.tile(block.hashes, self._scorer.columns)


def _parts(folder: str | None, scorer: PairScorer) -> ScoreParts | None:
    if folder is None:
        return None
    from moses_compat.measures.saved_scores import ScoreParts

    return ScoreParts(folder, f"{scorer.signature}|pairs:{PAIRS}", "bitext")


def _joined_scores(judged: PairScores) -> FloatArray:
    """Concatenate the scores of a block with and without length."""
    return judged.scores if judged.blind is None else np.concatenate([judged.scores, judged.blind])


def _judgements(scores: FloatArray, columns: int) -> PairScores:
    """Split the result of `_joined_scores`."""
    parts = scores.reshape(columns, -1)
    return PairScores(parts[0], parts[1] if columns > 1 else None)


def _checked(blocks: Iterator[SentencePairs], names: tuple[str, str]) -> Iterator[SentencePairs]:
    """Yield the blocks, and check that they are UTF-8."""
    for block in blocks:
        for name, lines in zip(names, (block.sources, block.targets), strict=True):
            for number, line in enumerate(lines, block.first + 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    raise DataError(name, "is not UTF-8, which the encoder needs", number) from error
        yield block
