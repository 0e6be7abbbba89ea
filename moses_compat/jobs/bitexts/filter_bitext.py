"""Keep the pairs of a bitext that are translations of each other: streamed, block by block."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moses_compat.files.paths import STANDARD, display_name, is_pipe, same_file
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.bitexts.bitext_fit import check_bitext, take_sample, usual_lengths
from moses_compat.jobs.bitexts.pair_blocks import PAIRS, SentencePairs, pair_blocks
from moses_compat.jobs.bitexts.pair_decisions import PairCounts, PairDecisions, copies_in
from moses_compat.measures.model_fit import FitCheck, emptied
from moses_compat.measures.score_folders import finishing, parts_beside
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.models.fit import ModelFit
from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer, PairScorer, PairScores
from phrasetool.phrases import FloatArray
from phrasetool.pipeline import run
from phrasetool.watch import NOBODY, FileProgress, Watch

if TYPE_CHECKING:
    from moses_compat.measures.score_parts import ScoreParts
    from phrasetool.pair_classifier.model import PairClassifierModel

# Of the two files.
Sample = tuple[list[bytes], list[bytes]]


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
    model: PairClassifierModel, folder: str, request: FilterRequest, explain: bool, watch: Watch = NOBODY
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
    request: FilterRequest, make: Callable[[Sample, FilterReport], PairScorer], watch: Watch = NOBODY
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
            self._parts.write(*self._key(block), _numbers(judged))

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
    from moses_compat.measures.score_parts import ScoreParts

    return ScoreParts(folder, f"{judge.signature}|pairs:{PAIRS}", "bitext")


def _numbers(judged: PairScores) -> FloatArray:
    """All scores of a block, those without length behind the others."""
    return judged.scores if judged.blind is None else np.concatenate([judged.scores, judged.blind])


def _judgements(found: FloatArray, columns: int) -> PairScores:
    """What `_numbers` gave."""
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
