"""Search for the smallest table within a budget of BLEU loss on a development set, without writing tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from moses_compat.corpora.bitexts import shared_pairs
from moses_compat.corpora.texts import read_sentences, surface_words
from moses_compat.engine.development_check import DevelopmentCheck
from moses_compat.engine.model import LoadedModel, MosesModel, check_sides
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from moses_compat.jobs.prune_ranking import Chosen
from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Int32Array, Mask, Phrases
from phrasetool.pruning.budget import Comparison, Found, compare, search_size, size_grid
from phrasetool.pruning.decision import Everything, OfSize
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.ranked_table import DecidedTable, RankedTable
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.translator import Translator
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap, bleu_statistics
from phrasetool.watch import Watch

_TEXT = "dev"


@dataclass(frozen=True)
class DevelopmentSet:
    """The development set on which BLEU is measured.

    Attributes:
        model: the model that translates it.
        source, reference: the texts of the two files.
        sentences: number of lines of each file.
        check: the sanity checks of the files.
    """

    model: MosesModel
    source: bytes
    reference: bytes
    sentences: int
    check: DevelopmentCheck

    @classmethod
    def read(cls, request: PruneRequest, watch: Watch) -> DevelopmentSet:
        """Read the ini and both sides; warn about sentence pairs of the bitext that the table was made from.

        Raises:
            DataError: the decoder does not support the ini; a file is empty, or the two differ in their number of
                lines.
            PhraseToolError: the two are the same text.
        """
        # The request has checked that both are given.
        assert request.ini is not None
        assert request.dev is not None
        model = MosesModel.read(request.ini, request.read_path).searching(**request.search)
        model = replace(model, table_name=request.read_name)
        source = surface_words(read_sentences(request.dev[0]), display_name(request.dev[0]))
        with Input(request.dev[1]) as stream:
            reference = stream.read_all()
        texts = [source, reference]
        sentences, references = (len(Symbols().read_lines(text)) for text in texts)
        if not sentences:
            raise DataError(request.dev[0], "the file has no lines")
        check_sides(sentences, references, *request.dev)
        check = DevelopmentCheck(model, request.dev[0], request.dev[1:], request.scan.force, watch)
        check.texts(source, [reference])
        if request.corpora:
            _warn_of_overlap(request.dev, texts, request.corpora, watch)
        return cls(model, source, reference, sentences, check)


def _warn_of_overlap(dev: tuple[str, str], texts: list[bytes], corpora: tuple[str, str], watch: Watch) -> None:
    """Warn if development and training texts overlap, because BLEU would not generalise to other text."""
    shared = shared_pairs(corpora, {_TEXT: (texts[0], texts[1])})
    if shared:
        overlap, total = shared[_TEXT]
        watch.warn(
            f"{overlap:,} of {total:,} sentence pairs of {dev[0]} are in {corpora[0]}; BLEU on training data says "
            "little about other text"
        )


class FullTable:
    """The translations of the development set with the full table, and a decoder for subsets of the table.

    Args:
        development: the development set.
        loaded: the model, loaded for the source.
        watch: progress listener.
    """

    def __init__(self, development: DevelopmentSet, loaded: LoadedModel, watch: Watch) -> None:
        self._loaded, self._watch, self._sentences = loaded, watch, development.sentences
        self._symbols = Symbols()
        self._references = [self._symbols.read_lines(development.reference)]
        self._bootstrap = Bootstrap(development.sentences)
        translator = loaded.translator()
        sentences = loaded.sentences[_TEXT]
        fit = development.check.fit(translator.table, sentences, development.source, [development.reference])
        development.check.language_models(translator)
        measure = self._translated("full table", translator)
        development.check.bleu(measure, self._references, fit)
        self.bleu = self._bootstrap(measure(self._references))
        development.model.report_reading(loaded.entries.targets, loaded.target_symbols, watch)

    @classmethod
    def translate(cls, request: PruneRequest, development: DevelopmentSet, watch: Watch) -> FullTable:
        """Read the part of the model that the development set needs, and translate it.

        Raises:
            DataError: a file is damaged or does not match the ini, or the table has no entries.
            PhraseToolError: a check of the development set fails, see `DevelopmentCheck`.
        """
        with watch.reading(development.model.tables) as progress:
            loaded = LoadedModel.load(development.model, {_TEXT: development.source}, request.scan.threads, progress)
        return cls(development, loaded, watch)

    def pruned(self, label: str, keep: Mask) -> BleuSamples:
        """Return BLEU of the translations with a subset of the entries, on all bootstrap samples.

        Args:
            label: name of the table in progress reports.
            keep: bool, shape (N,), the entries of the subset.
        """
        return self._bootstrap(self._translated(label, self._loaded.translator(keep))(self._references))

    def _translated(self, label: str, translator: Translator) -> Callable[[Sequence[Phrases]], Int32Array]:
        """Translate, and return a function from references to the BLEU statistics of the translations."""
        with self._watch.items(label, self._sentences, "sentence") as tick:
            lines = self._loaded.translate(translator, lambda: tick(1))[_TEXT]
        hypotheses = self._symbols.read_lines("".join(f"{line}\n" for line in lines).encode())
        return partial(bleu_statistics, np.arange(len(hypotheses)), hypotheses)


class _Steps:
    """Tables of different sizes from one ranking, each compared with the full table.

    Args:
        request: the settings.
        baseline: the full table.
        ranking: ranking of its entries.
        watch: progress listener.
    """

    def __init__(self, request: PruneRequest, baseline: FullTable, ranking: RankedTable, watch: Watch) -> None:
        self._request, self._baseline = request, baseline
        self._ranking, self._watch = ranking, watch
        # The protection rule for a table of a given number of entries.
        self.best = request.rule_for_size(ranking.table)
        self._count = 0
        self.full = compare(baseline.bleu, baseline.bleu)

    @property
    def entries(self) -> int:
        """The number of entries of the full table."""
        return len(self._ranking)

    def select(self, entries: int) -> DecidedTable:
        """Return the table of this size.

        Raises:
            TooSmallError: more entries than this are protected.
        """
        share = entries / max(self.entries, 1)
        return self._ranking.decide(OfSize(share), self.best(entries))

    def smallest(self) -> int:
        """Return the number of entries of the smallest possible table."""
        return int(self._ranking.decide(Everything(), self.best(0)).keep.sum())

    def __call__(self, entries: int) -> Comparison:
        if entries == self.entries:
            result = self.full
        else:
            label = f"{entries / self.entries:.1%}"
            result = compare(self._baseline.pruned(label, self.select(entries).keep), self._baseline.bleu)
        self._tell(entries, result)
        return result

    def _tell(self, entries: int, result: Comparison) -> None:
        self._count += 1
        if entries == self.entries:
            self._watch.say(f"step {self._count}: 100 % ({entries:,} entries): BLEU {result.bleu:.2f}")
            return
        assert self._request.max_bleu_loss is not None
        keeps = result.keeps(self._request.max_bleu_loss, self._request.non_inferior)
        self._watch.say(
            f"step {self._count}: {_size(entries, self.entries, self.best(entries))}: {_difference(result)}: "
            f"{_verdict(keeps, self._request.non_inferior)}"
        )


def _verdict(keeps: bool, non_inferior: bool) -> str:
    if non_inferior:
        return "non-inferior" if keeps else "not shown to be non-inferior"
    return "within the budget" if keeps else "beyond the budget"


def _size(entries: int, of: int, best: KeepBest) -> str:
    kept = "" if best.protect == "none" else f", {best.words} among them"
    return f"{entries / of:.2%} ({entries:,} entries{kept})"


def _difference(result: Comparison) -> str:
    return f"BLEU {result.bleu:.2f}, {result.difference:+.2f} [{result.low:+.2f}, {result.high:+.2f}]"


def search_budget(request: PruneRequest, baseline: FullTable, ranking: RankedTable, watch: Watch) -> Chosen:
    """Find the smallest table that loses at most `request.max_bleu_loss` BLEU.

    Raises:
        PhraseToolError: the table has no entries.
    """
    if not len(ranking):
        raise PhraseToolError(f"{request.table}: the table has no entries")
    assert request.max_bleu_loss is not None
    steps = _Steps(request, baseline, ranking, watch)
    search = search_size(steps, size_grid(steps.entries, steps.smallest()), request.max_bleu_loss, request.non_inferior)
    entries = search.answer.entries
    best = steps.best(entries)
    _report_answer(search, steps.entries, best, watch)
    rule = f"loss{request.max_bleu_loss:g}{'+non-inferior' if request.non_inferior else ''}+size{entries}+"
    return Chosen(steps.select(entries), best, rule, {"budget": _figures(request, steps, search)})


def _report_answer(search: Found, of: int, best: KeepBest, watch: Watch) -> None:
    answer = search.answer
    watch.say(f"answer: {_size(answer.entries, of, best)}: {_difference(answer.result)}")
    for trial in search.by_chance:
        watch.say(
            f"  {trial.entries / of:.2%} met the budget ({_difference(trial.result)}), but neighbouring sizes did not; "
            "treated as noise"
        )
    result = answer.result
    watch.say(
        f"  difference to the full table on this development set: {result.low:+.2f} to {result.high:+.2f} (95 % "
        "interval)"
    )


def _figures(request: PruneRequest, steps: _Steps, search: Found) -> dict[str, Any]:
    """Return the trials as JSON values for the statistics; they are deterministic."""
    trials = [
        {
            "entries": trial.entries, "share": round(trial.entries / steps.entries, 6),
            "keep_top": steps.best(trial.entries).k,
            **{name: round(value, 4) for name, value in asdict(trial.result).items()},
        }
        for trial in search.trials
    ]  # fmt: skip
    return {
        "max_bleu_loss": request.max_bleu_loss, "non_inferior": request.non_inferior,
        "full_bleu": round(steps.full.bleu, 4),
        "entries": search.answer.entries, "trials": trials, "by_chance": [trial.entries for trial in search.by_chance],
    }  # fmt: skip
