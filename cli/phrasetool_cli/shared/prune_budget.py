"""`phrasetool prune --max-bleu-loss`: search for the smallest table whose translations of a development set hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from moses_compat.engine.model import MosesModel, check_sides
from moses_compat.experiments.laboratory import Laboratory
from moses_compat.experiments.texts import shared_pairs
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.experiments.settings import TextPair
from phrasetool.phrases import FloatArray, Mask
from phrasetool.pruning.budget import Comparison, Found, compare, search_size, size_grid
from phrasetool.pruning.measures import Measures
from phrasetool.pruning.selection import KeepBest, Selection, select_entries
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap
from phrasetool_cli.shared.click_options import chosen_search
from phrasetool_cli.shared.loading import load_progress
from phrasetool_cli.shared.progress import ItemProgress, say
from phrasetool_cli.shared.prune_method import Decision, protection, rule_for_size
from phrasetool_cli.shared.prune_options import PruneRequest

_TEXT = "dev"


@dataclass(frozen=True)
class DevelopmentSet:
    """What BLEU is measured on.

    Attributes:
        model: which translates it.
        source, reference: the text of the two files.
        sentences: lines of each.
    """

    model: MosesModel
    source: bytes
    reference: bytes
    sentences: int

    @classmethod
    def read(cls, request: PruneRequest) -> DevelopmentSet:
        """Read the model's ini and both sides; warn of sentences that the table was made from.

        Raises:
            DataError: the ini is not one for the decoder; a file is empty, or the two differ in their number of lines.
        """
        assert request.ini is not None
        assert request.dev is not None
        model = MosesModel.read(request.ini, request.table)
        model = replace(model, search=chosen_search(model, **request.search))
        texts = []
        for path in request.dev:
            with Input(path) as stream:
                texts.append(stream.read_all())
        source, reference = texts
        sentences, references = (len(Symbols().read_lines(text)) for text in texts)
        if not sentences:
            raise DataError(request.dev[0], "the file has no lines")
        check_sides(sentences, references, *request.dev)
        if request.corpora:
            _warn_of_overlap(request.dev, texts, request.corpora)
        return cls(model, source, reference, sentences)


def _warn_of_overlap(dev: tuple[str, str], texts: list[bytes], corpora: tuple[str, str]) -> None:
    """BLEU on sentences that the table has seen says nothing of others."""

    shared = shared_pairs(TextPair(*corpora), {_TEXT: (texts[0], texts[1])})
    if shared:
        seen, of = shared[_TEXT]
        say(
            f"warning: {seen:,} of {of:,} sentence pairs of {dev[0]} are in {corpora[0]}; BLEU on what the table was "
            "made from says little of other text"
        )


class _Steps:
    """Tables of one ranking, each compared with the full one.

    Args:
        request: what was asked for.
        development: what is translated.
        measures: of the table.
        worth: of its entries.
    """

    def __init__(
        self, request: PruneRequest, development: DevelopmentSet, measures: Measures, worth: FloatArray
    ) -> None:
        self._request = request
        self._development = development
        self._measures, self._worth = measures, worth
        self._rule = rule_for_size(request, measures, worth)
        self._laboratory = self._load()
        self._symbols = Symbols()
        self._references = [self._symbols.read_lines(development.reference)]
        self._count = 0
        self._bootstrap = Bootstrap(development.sentences)
        self._baseline = self._translate("full table", None)
        self.full = compare(self._baseline, self._baseline)

    def _load(self) -> Laboratory:
        model, request = self._development.model, self._request
        with load_progress(model, request.quiet) as progress:
            return Laboratory.load(model, {_TEXT: self._development.source}, request.threads, progress)

    def best(self, entries: int) -> KeepBest:
        """What is protected in a table of this size."""
        rule: KeepBest = self._rule(entries)
        return rule

    def select(self, entries: int) -> Selection:
        """The table of this size.

        Raises:
            TooSmallError: more are protected.
        """
        share = entries / max(len(self._measures), 1)
        return select_entries(self._measures, self._worth, self.best(entries), size=share)

    def smallest(self) -> int:
        """The entries of the smallest table there can be."""
        worthless = self._worth <= float("inf")
        return int(select_entries(self._measures, self._worth, self.best(0), fails=worthless).keep.sum())

    def __call__(self, entries: int) -> Comparison:
        if entries == len(self._measures):
            result = self.full
        else:
            label = f"{entries / len(self._measures):.1%}"
            result = compare(self._translate(label, self.select(entries).keep), self._baseline)
        self._tell(entries, result)
        return result

    def _translate(self, label: str, keep: Mask | None) -> BleuSamples:
        """BLEU of the translations of some entries, on all samples."""
        laboratory = self._laboratory
        with ItemProgress(label, self._development.sentences, "sentence", self._request.quiet) as progress:
            lines = laboratory.translate(laboratory.translator(keep), progress.tick)[_TEXT]
        found = self._symbols.read_lines("".join(f"{line}\n" for line in lines).encode())
        return self._bootstrap(bleu_statistics(np.arange(len(found)), found, self._references))

    def _tell(self, entries: int, result: Comparison) -> None:
        self._count += 1
        if self._request.quiet:
            return
        if entries == len(self._measures):
            say(f"step {self._count}: 100 % ({entries:,} entries): BLEU {result.bleu:.2f}")
            return
        assert self._request.max_bleu_loss is not None
        holds = -result.difference <= self._request.max_bleu_loss
        say(
            f"step {self._count}: {_size(entries, self._measures, self.best(entries))}: {_difference(result)}: "
            f"{'holds' if holds else 'does not hold'}"
        )


def _size(entries: int, measures: Measures, best: KeepBest) -> str:
    kept = "" if best.protect == "none" else f", {protection(best)} among them"
    return f"{entries / len(measures):.2%} ({entries:,} entries{kept})"


def _difference(result: Comparison) -> str:
    return f"BLEU {result.bleu:.2f}, {result.difference:+.2f} [{result.low:+.2f}, {result.high:+.2f}]"


def search_budget(
    request: PruneRequest, development: DevelopmentSet, measures: Measures, worth: FloatArray
) -> Decision:
    """Find the smallest table that loses no more than `--max-bleu-loss` of BLEU."""
    if not len(measures):
        raise PhraseToolError(f"{request.table}: the table has no entries")
    assert request.max_bleu_loss is not None
    steps = _Steps(request, development, measures, worth)
    found = search_size(steps, size_grid(len(measures), steps.smallest()), request.max_bleu_loss)
    entries = found.answer.entries
    best = steps.best(entries)
    if not request.quiet:
        _tell_answer(found, measures, best)
    rule = f"loss{request.max_bleu_loss:g}+size{entries}+"
    return Decision(steps.select(entries), best, rule, {"budget": _figures(request, steps, found, len(measures))})


def _tell_answer(found: Found, measures: Measures, best: KeepBest) -> None:
    answer = found.answer
    say(f"answer: {_size(answer.entries, measures, best)}: {_difference(answer.result)}")
    for trial in found.lucky:
        say(
            f"  {trial.entries / len(measures):.2%} held by itself ({_difference(trial.result)}), but not together "
            "with the sizes about it; taken for luck"
        )
    result = answer.result
    say(
        f"  what chance does to a text of this length: the difference to the full table lies between {result.low:+.2f} "
        f"and {result.high:+.2f} (95 %)"
    )


def _figures(request: PruneRequest, steps: _Steps, found: Found, entries: int) -> dict[str, Any]:
    """For the statistics; the same input gives the same."""
    trials = [
        {
            "entries": trial.entries, "share": round(trial.entries / entries, 6),
            "keep_top": steps.best(trial.entries).k,
            **{name: round(value, 4) for name, value in asdict(trial.result).items()},
        }
        for trial in found.trials
    ]  # fmt: skip
    return {
        "max_bleu_loss": request.max_bleu_loss, "full_bleu": round(steps.full.bleu, 4),
        "entries": found.answer.entries, "trials": trials, "lucky": [trial.entries for trial in found.lucky],
    }  # fmt: skip
