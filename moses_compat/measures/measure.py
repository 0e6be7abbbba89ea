"""Measure a whole table: what the criteria that look at all entries together need to know of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.bitext import check_line_counts
from moses_compat.corpora.phrase_index import read_index
from moses_compat.engine.decoder_tables import log_scores
from moses_compat.files.streams import STANDARD, Input
from moses_compat.jobs.filter_pt import CorpusCheck, PairTest, Significance, Tested
from moses_compat.jobs.prune import BlockScorer, Similarities
from moses_compat.lines.counts import read_counts
from moses_compat.lines.insert_scores import DIRECT_COLUMN, INVERSE_COLUMN, check_trained_scores
from moses_compat.lines.separators import find_separator
from moses_compat.measures.entry_numbers import EntryNumbering, FieldPlaces
from moses_compat.measures.model_weights import TableWeights
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.smoothed import SmoothedProbabilities, count_table
from moses_compat.tables.blocks import FaultPolicy, RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, EntryBlock, FloatArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.pruning.composition import composition_losses
from phrasetool.pruning.measures import FORCED_NEEDS, Measures
from phrasetool.scoring.forced_probabilities import forced_probabilities
from phrasetool.scoring.scorer import Scores

_LARGEST = np.finfo(np.float32).max
_Rows = tuple[npt.NDArray[np.uint32], Scores] | None
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True)
class MeasureRequest:
    """What to find out about a table, besides what every criterion may ask for.

    Attributes:
        weights: of a model, for the model scores; none without.
        similarities: where they come from; none without.
        corpora: the two sides of the bitext that the table was made from, for the test of significance; none without.
        hierarchical: test the runs of words between labels such as `[X]`, not the labels, as filter-pt's `-h`.
        force: go on when the corpora do not match the table.
        losses: whether to find compositions.
        forced_pairs: of forced decoding, with counts, for the uses; none without.
        forced_probabilities: whether to make phrase probabilities of these counts.
        smoothing: a method of `smoothed_probabilities`, for probabilities by the counts of the table; none without.
        scan: how the table is read; its threads work on the rest, too.

    Raises:
        ValueError: losses are asked for without weights, or probabilities without pairs.
    """

    weights: TableWeights | None = None
    similarities: Similarities | None = None
    corpora: tuple[str, str] | None = None
    hierarchical: bool = False
    force: bool = False
    losses: bool = False
    forced_pairs: PairUses | None = None
    forced_probabilities: bool = False
    smoothing: str | None = None
    scan: TableScan = field(default_factory=TableScan)

    def __post_init__(self) -> None:
        if self.losses and self.weights is None:
            raise ValueError("losses cannot be measured without the weights of a model")
        if self.forced_probabilities and self.forced_pairs is None:
            raise ValueError("probabilities of forced decoding cannot be measured without its pairs")

    @classmethod
    def of(
        cls,
        needs: Collection[str],
        scan: TableScan,
        *,
        weights: Callable[[], TableWeights],
        similarities: Similarities | None = None,
        corpora: tuple[str, str] | None = None,
        forced_pairs: str | None = None,
    ) -> MeasureRequest:
        """What criteria or columns need, out of what is there; what nobody needs is not read.

        Args:
            needs: of criteria, see `Criterion`; `forced` for the probabilities of forced decoding, `kneser-ney` for
                smoothed ones.
            scan: how the table is read.
            weights: called for the weights of a model.
            similarities, corpora: see above.
            forced_pairs: the file of the pairs.

        Raises:
            DataError: the file of the pairs is damaged or has a line that is none.
        """
        needs = frozenset(needs)
        forced = forced_pairs if needs & FORCED_NEEDS else None
        return cls(
            weights=weights() if needs & {"composition", "model_scores"} else None,
            similarities=similarities if "similarities" in needs else None,
            corpora=corpora if "significance" in needs else None,
            losses="composition" in needs,
            forced_pairs=PairUses.read(forced) if forced else None,
            forced_probabilities="forced" in needs,
            smoothing="kneser-ney" if "kneser-ney" in needs else None,
            scan=scan,
        )


def measure_table(source: Input, request: MeasureRequest) -> Measures:
    """Read a table once (twice, to smooth) and say of all its entries what `request` asks for.

    Faulty lines that `scan.on_error` lets pass are entries whose other measures are 0; they take no part in
    compositions.  An entry with a side without words has infinite significance, for there is nothing to test.  A
    count that is missing, negative or no finite number is 1.  Neither threads nor the size of blocks change anything.

    Takes some 40 bytes an entry in the end; 300 in between, if losses are asked for.

    Raises:
        DataError: the table is damaged or has a faulty line (see `scan.on_error`); it does not fit the weights, the
            saved similarities or the pairs of forced decoding; or, with weights, a score is negative or infinite; or,
            for losses, it is all rules; or, for probabilities of forced decoding, it has fewer than four scores; or,
            to smooth, an entry has no counts.
        CorpusMismatchError: more than half of the first entries do not occur in the corpora.
        ValueError: smoothed probabilities are asked for of standard input.
    """
    scan = request.scan
    significance = _significance(request)
    work = _BlockMeasurer(source, request, significance, _smoothed(source.path, request))
    trial = CorpusCheck(source.name, significance) if significance and not request.force else None
    numbering = EntryNumbering() if request.losses else None
    parts: list[_Part] = []
    done = 0
    for raw, part, places, tested in run(work.inputs(), work, scan.threads):
        if trial and tested:
            trial.add(tested)
        if numbering and places:
            numbering.add(raw.text, places)
        parts.append(part)
        done += raw.lines
        scan.progress(raw.position, done)
    work.finish(done)
    if trial:
        trial.check()
    measures = _joined(parts, request, work.alpha)
    if request.forced_pairs and measures.uses is not None and not measures.faulty.all() and not measures.uses.any():
        raise DataError(request.forced_pairs.path, f"none of its pairs is in {source.name}")
    if numbering and request.weights and measures.model_scores is not None:
        losses = np.zeros(done, np.float32)
        good = ~measures.faulty
        losses[good] = composition_losses(
            numbering.entries(source.name), measures.model_scores[good], request.weights.distortion, scan.threads
        ) / np.float32(request.weights.size)
        measures = replace(measures, losses=losses)
    return measures


def _significance(request: MeasureRequest) -> Significance | None:
    if request.corpora is None:
        return None
    threads = request.scan.threads
    # Two at a time, with half of the threads each.
    first, second = run(request.corpora, lambda path: read_index(path, max(threads // 2, 1)), min(threads, 2))
    check_line_counts(first.name, first.sentences.sentences, second.name, second.sentences.sentences)
    return Significance(first, second, hierarchical=request.hierarchical, force=request.force)


def _smoothed(path: str, request: MeasureRequest) -> SmoothedProbabilities | None:
    """Read the table for the first time."""
    if request.smoothing is None:
        return None
    if path == STANDARD:
        raise ValueError("to smooth, a table is read twice, which standard input cannot be")
    scan = request.scan
    with Input(path) as source:
        counts = count_table(source, on_error=scan.on_error, threads=scan.threads, block_bytes=scan.block_bytes)
        return SmoothedProbabilities(source.name, counts, request.smoothing)


@dataclass(frozen=True)
class _Part:
    """The measures of a block; arrays of its N entries and G groups, none of which keeps the text alive."""

    group_offsets: Int64Array
    source_lengths: Int64Array
    faulty: npt.NDArray[np.bool_]
    probabilities: FloatArray
    counts: FloatArray
    model_scores: FloatArray | None
    scores: Scores | None
    significance: FloatArray | None
    uses: FloatArray | None
    forced: FloatArray | None
    smoothed: FloatArray | None


@exact_kernel
def _find_fields(text: ByteArray, line_offsets: Int64Array, source_ends: Int64Array, target_ends: Int64Array) -> None:
    """The first two `|||` of every line; -1 where missing."""
    for line in range(len(source_ends)):
        end = line_offsets[line + 1]
        source_ends[line] = find_separator(text, line_offsets[line], end)
        target_ends[line] = -1
        if source_ends[line] >= 0:
            target_ends[line] = find_separator(text, source_ends[line] + 3, end)


class _BlockMeasurer:
    """Measures one block; may be called by several threads."""

    def __init__(
        self,
        source: Input,
        request: MeasureRequest,
        significance: Significance | None,
        smoothed: SmoothedProbabilities | None,
    ) -> None:
        self._source = source
        self._request = request
        self._policy = FaultPolicy(source.name, request.scan.on_error)
        self._test = PairTest(significance) if significance else None
        self._smoothed = smoothed
        self._scorer: BlockScorer | None = None
        if request.similarities is not None:
            self._scorer = BlockScorer(source, request.similarities, request.scan, columns=self._columns)

    @property
    def alpha(self) -> float:
        return self._test.alpha if self._test else 0.0

    def inputs(self) -> Iterable[tuple[RawBlock, _Rows]]:
        """Raw blocks, each with its rows of saved similarities."""
        if self._scorer:
            return self._scorer.inputs()
        return ((raw, None) for raw in raw_blocks(self._source, self._request.scan.block_bytes))

    def finish(self, entries: int) -> None:
        """Make sure that no saved similarity is left over."""
        if self._scorer and self._scorer.saved:
            self._scorer.saved.finish(self._source.name, entries)

    def _columns(self, scores: int) -> Sequence[int]:
        """All score columns if they are weighted, else p(target | source), after p(source | target) if need be."""
        if scores < 0:
            return ()
        if self._request.weights:
            return range(scores)
        direct = min(DIRECT_COLUMN, scores - 1)
        return (INVERSE_COLUMN, direct) if self._request.forced_probabilities else (direct,)

    def __call__(self, item: tuple[RawBlock, _Rows]) -> tuple[RawBlock, _Part, FieldPlaces | None, Tested | None]:
        raw, _ = item
        weights = self._request.weights
        if weights and raw.scores >= 0 and raw.scores != len(weights.scores):
            raise DataError(
                self._source.name,
                f"the entries have {raw.scores} scores, but {weights.name} has {len(weights.scores)} weights",
                raw.first_entry + 1,
            )
        if self._request.forced_probabilities:
            check_trained_scores(self._source.name, raw.scores, raw.first_entry)
        scores: Scores | None = None
        if self._scorer:
            scored = self._scorer(item)
            block, scores = scored.block, scored.scores
        else:
            parser = TableParser(scores=raw.scores, columns=self._columns(raw.scores))
            block, faults = parser(raw.index, raw.first_entry, raw.text)
            self._policy.keep_mask(block, faults)
        rows = np.flatnonzero(~block.faulty)
        places = FieldPlaces.of(block, rows, *self._fields(block)) if self._test or self._request.losses else None
        tested = None
        if self._test and places:
            tested = self._test(raw.text, places.starts, places.source_ends, places.target_ends)
        part = self._part(block, rows, scores, tested)
        return raw, part, places if self._request.losses else None, tested

    @staticmethod
    def _fields(block: EntryBlock) -> tuple[Int64Array, Int64Array]:
        source_ends, target_ends = np.empty((2, len(block)), np.int64)
        _find_fields(block.text, block.line_offsets, source_ends, target_ends)
        return source_ends, target_ends

    def _part(self, block: EntryBlock, rows: Int64Array, scores: Scores | None, tested: Tested | None) -> _Part:
        weights = self._request.weights
        values = block.columns[rows]
        probabilities = np.zeros(len(block), np.float32)
        model_scores = np.zeros(len(block), np.float32) if weights else None
        if values.shape[1]:
            # What is too large for single precision is no probability, but stays a number.
            direct = values[:, min(DIRECT_COLUMN, values.shape[1] - 1)]
            probabilities[rows] = np.clip(direct, -_LARGEST, _LARGEST)
            if weights and model_scores is not None:
                logs = log_scores(self._source.name, values, block.first_entry + rows)
                model_scores[rows] = weights.total(logs)
        joint = read_counts(block.text, block.score_ends[rows], block.line_offsets[1:][rows])[:, 2]
        counts = np.zeros(len(block), np.float32)
        counts[rows] = np.where(np.isfinite(joint) & (joint >= 0), joint, 1)
        significance = None
        if tested:
            significance = np.zeros(len(block), np.float32)
            significance[rows] = np.where(tested.wordless, np.inf, tested.values)
        uses, forced = self._forced(block, rows, values)
        smoothed = None
        if self._smoothed:
            smoothed = np.where(block.faulty[:, None], 0, self._smoothed(block)).astype(np.float32)
        return _Part(
            block.first_entry + block.group_offsets[:-1], block.source_lengths, block.faulty, probabilities, counts,
            model_scores, scores, significance, uses, forced, smoothed,
        )  # fmt: skip

    def _forced(
        self, block: EntryBlock, rows: Int64Array, values: npt.NDArray[np.float64]
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """How often each of N entries was used, shape (N,); probabilities made of that, shape (N, 2), if asked for."""
        pairs = self._request.forced_pairs
        if pairs is None:
            return None, None
        found = pairs.look_up(block.text, block.line_offsets, ~block.faulty)
        uses = np.ascontiguousarray(found[:, 0])
        if not self._request.forced_probabilities:
            return uses, None
        forced = np.zeros((len(block), 2), np.float32)
        if values.shape[1]:
            direct = values[:, min(DIRECT_COLUMN, values.shape[1] - 1)]
            forced[rows] = forced_probabilities(found[rows], direct, values[:, INVERSE_COLUMN])
        return uses, forced


def _joined(parts: Sequence[_Part], request: MeasureRequest, alpha: float) -> Measures:
    """One table of its blocks."""

    def joined(kind: type[_Number], arrays: Iterator[npt.NDArray[_Number] | None]) -> npt.NDArray[_Number]:
        return np.concatenate([np.zeros(0, kind), *(array for array in arrays if array is not None)])

    def columns(arrays: Iterator[FloatArray | None]) -> FloatArray:
        return np.concatenate([np.zeros((0, 2), np.float32), *(array for array in arrays if array is not None)])

    faulty = joined(np.bool_, (part.faulty for part in parts))
    model_scores = joined(np.float32, (part.model_scores for part in parts)) if request.weights else None
    similarities, opinion = None, None
    if request.similarities is not None:
        scores = [part.scores for part in parts if part.scores]
        similarities = columns(part.similarities for part in scores)
        opinion = joined(np.bool_, (part.opinion for part in scores))
    return Measures(
        group_offsets=np.append(joined(np.int64, (part.group_offsets for part in parts)), len(faulty)),
        source_lengths=joined(np.int64, (part.source_lengths for part in parts)),
        faulty=faulty,
        probabilities=joined(np.float32, (part.probabilities for part in parts)),
        counts=joined(np.float32, (part.counts for part in parts)),
        model_scores=model_scores,
        similarities=similarities,
        opinion=opinion,
        significance=joined(np.float32, (part.significance for part in parts)) if request.corpora else None,
        alpha=alpha,
        uses=joined(np.float32, (part.uses for part in parts)) if request.forced_pairs else None,
        forced=columns(part.forced for part in parts) if request.forced_probabilities else None,
        smoothed=columns(part.smoothed for part in parts) if request.smoothing else None,
    )
