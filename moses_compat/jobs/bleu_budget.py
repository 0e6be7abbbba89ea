"""The smallest table whose translations of a development set hold: sizes that are tried without writing a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moses_compat.corpora.bitext import shared_pairs
from moses_compat.engine.laboratory import Laboratory
from moses_compat.engine.model import MosesModel, check_sides
from moses_compat.files.streams import Input
from moses_compat.jobs.prune import Chosen
from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Mask
from phrasetool.pruning.budget import Comparison, Found, compare, search_size, size_grid
from phrasetool.pruning.decision import Decision, Everything, OfSize, Ranking, decide
from phrasetool.pruning.protection import KeepBest
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap
from phrasetool.watch import Watch

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
    def read(cls, request: PruneRequest, watch: Watch) -> DevelopmentSet:
        """Read the model's ini and both sides; warn of sentences that the table was made from.

        Raises:
            DataError: the ini is not one for the decoder; a file is empty, or the two differ in their number of lines.
            ValueError: there is no ini, or no development set.
        """
        if request.ini is None or request.dev is None:
            raise ValueError("to search for a loss of BLEU takes an ini and a development set")
        model = MosesModel.read(request.ini, request.read_path).searching(**request.search)
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
            _warn_of_overlap(request.dev, texts, request.corpora, watch)
        return cls(model, source, reference, sentences)


def _warn_of_overlap(dev: tuple[str, str], texts: list[bytes], corpora: tuple[str, str], watch: Watch) -> None:
    """BLEU on sentences that the table has seen says nothing of others."""
    shared = shared_pairs(corpora, {_TEXT: (texts[0], texts[1])})
    if shared:
        seen, of = shared[_TEXT]
        watch.warn(
            f"{seen:,} of {of:,} sentence pairs of {dev[0]} are in {corpora[0]}; BLEU on what the table was "
            "made from says little of other text"
        )


class _Steps:
    """Tables of one ranking, each compared with the full one.

    Args:
        request: what was asked for.
        development: what is translated.
        ranking: of the entries of the full table.
        watch: follows the work.
    """

    def __init__(self, request: PruneRequest, development: DevelopmentSet, ranking: Ranking, watch: Watch) -> None:
        self._request, self._development = request, development
        self._ranking, self._watch = ranking, watch
        # What is protected in a table of so many entries.
        self.best = request.rule_for_size(ranking.measures)
        model = development.model
        with watch.reading(model.tables) as progress:
            self._laboratory = Laboratory.load(model, {_TEXT: development.source}, request.threads, progress)
        self._symbols = Symbols()
        self._references = [self._symbols.read_lines(development.reference)]
        self._count = 0
        self._bootstrap = Bootstrap(development.sentences)
        self._baseline = self._translate("full table", None)
        self.full = compare(self._baseline, self._baseline)

    @property
    def entries(self) -> int:
        """Of the full table."""
        return len(self._ranking.worth)

    def select(self, entries: int) -> Decision:
        """The table of this size.

        Raises:
            TooSmallError: more are protected.
        """
        share = entries / max(self.entries, 1)
        return decide(self._ranking, OfSize(share), self.best(entries))

    def smallest(self) -> int:
        """The entries of the smallest table there can be."""
        return int(decide(self._ranking, Everything(), self.best(0)).keep.sum())

    def __call__(self, entries: int) -> Comparison:
        if entries == self.entries:
            result = self.full
        else:
            label = f"{entries / self.entries:.1%}"
            result = compare(self._translate(label, self.select(entries).keep), self._baseline)
        self._tell(entries, result)
        return result

    def _translate(self, label: str, keep: Mask | None) -> BleuSamples:
        """BLEU of the translations of some entries, on all samples."""
        laboratory = self._laboratory
        with self._watch.items(label, self._development.sentences, "sentence") as tick:
            lines = laboratory.translate(laboratory.translator(keep), lambda: tick(1))[_TEXT]
        found = self._symbols.read_lines("".join(f"{line}\n" for line in lines).encode())
        return self._bootstrap(bleu_statistics(np.arange(len(found)), found, self._references))

    def _tell(self, entries: int, result: Comparison) -> None:
        self._count += 1
        if entries == self.entries:
            self._watch.say(f"step {self._count}: 100 % ({entries:,} entries): BLEU {result.bleu:.2f}")
            return
        assert self._request.max_bleu_loss is not None
        holds = -result.difference <= self._request.max_bleu_loss
        self._watch.say(
            f"step {self._count}: {_size(entries, self.entries, self.best(entries))}: {_difference(result)}: "
            f"{'holds' if holds else 'does not hold'}"
        )


def _size(entries: int, of: int, best: KeepBest) -> str:
    kept = "" if best.protect == "none" else f", {best.words} among them"
    return f"{entries / of:.2%} ({entries:,} entries{kept})"


def _difference(result: Comparison) -> str:
    return f"BLEU {result.bleu:.2f}, {result.difference:+.2f} [{result.low:+.2f}, {result.high:+.2f}]"


def search_budget(request: PruneRequest, development: DevelopmentSet, ranking: Ranking, watch: Watch) -> Chosen:
    """Find the smallest table that loses no more than `request.max_bleu_loss` of BLEU.

    Raises:
        PhraseToolError: the table has no entries.
    """
    if not len(ranking.worth):
        raise PhraseToolError(f"{request.table}: the table has no entries")
    assert request.max_bleu_loss is not None
    steps = _Steps(request, development, ranking, watch)
    found = search_size(steps, size_grid(steps.entries, steps.smallest()), request.max_bleu_loss)
    entries = found.answer.entries
    best = steps.best(entries)
    _tell_answer(found, steps.entries, best, watch)
    rule = f"loss{request.max_bleu_loss:g}+size{entries}+"
    return Chosen(steps.select(entries), best, rule, {"budget": _figures(request, steps, found)})


def _tell_answer(found: Found, of: int, best: KeepBest, watch: Watch) -> None:
    answer = found.answer
    watch.say(f"answer: {_size(answer.entries, of, best)}: {_difference(answer.result)}")
    for trial in found.lucky:
        watch.say(
            f"  {trial.entries / of:.2%} held by itself ({_difference(trial.result)}), but not together with the sizes "
            "about it; taken for luck"
        )
    result = answer.result
    watch.say(
        f"  what chance does to a text of this length: the difference to the full table lies between {result.low:+.2f} "
        f"and {result.high:+.2f} (95 %)"
    )


def _figures(request: PruneRequest, steps: _Steps, found: Found) -> dict[str, Any]:
    """For the statistics; the same input gives the same."""
    trials = [
        {
            "entries": trial.entries, "share": round(trial.entries / steps.entries, 6),
            "keep_top": steps.best(trial.entries).k,
            **{name: round(value, 4) for name, value in asdict(trial.result).items()},
        }
        for trial in found.trials
    ]  # fmt: skip
    return {
        "max_bleu_loss": request.max_bleu_loss, "full_bleu": round(steps.full.bleu, 4),
        "entries": found.answer.entries, "trials": trials, "lucky": [trial.entries for trial in found.lucky],
    }  # fmt: skip
