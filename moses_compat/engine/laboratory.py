"""A model and texts to translate with it, when only some entries of its table are there: BLEU of tables never written.

Every entry that the texts can use is read once.  A pruned table is then a mask, and what the decoder does with it is
what it would do with the table written and read again (its reordering table left whole).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from moses_compat.corpora.texts import surface_words
from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.language_models import load_language_models
from moses_compat.engine.model import MosesModel
from phrasetool.phrases import Int32Array, Mask, Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import Entries, build_table
from phrasetool.smt.decoder.translator import Translator
from phrasetool.smt.language_model.ngrams import TargetModel
from phrasetool.watch import ReadingProgress


@dataclass(frozen=True)
class Laboratory:
    """What `load` reads.

    Attributes:
        model: the ini.
        sentences: of each text by its name, in the ids of `source_symbols`.
        source_symbols, target_symbols: words.
        entries: of the tables, those that the texts can use.
        language_model: of the target language.
        threads: for translating.
        runner: has sentences translated; threads if None.
    """

    model: MosesModel
    sentences: Mapping[str, Phrases]
    source_symbols: Symbols
    target_symbols: Symbols
    entries: Entries
    language_model: TargetModel
    threads: int = 1
    runner: Runner | None = None

    @classmethod
    def load(
        cls, model: MosesModel, texts: Mapping[str, bytes], threads: int = 1, progress: ReadingProgress | None = None
    ) -> Laboratory:
        """Read a model for some texts.

        Args:
            model: which files, weights and limits.
            texts: one tokenised sentence a line each.
            threads: for reading, and for translating.
            progress: told how far reading is.

        Raises:
            DataError: see `MosesModel.load`.
        """
        symbols, sentences = Symbols(), {}
        for name, text in texts.items():
            sentences[name] = symbols.read_lines(surface_words(text, f"the text {name}"))
        source = InputPhrases.of_sentences(symbols, Phrases.concatenate(list(sentences.values())), model.longest)
        # Words may have to be copied, whatever is pruned, so the language model is asked for all of them.
        targets = Symbols(symbols.words)
        entries = model.load_entries(source, targets, threads, progress)
        language_model = load_language_models(model.language_models, targets.words, model.language_orders)
        return cls(model, sentences, symbols, targets, entries, language_model, threads)

    def translator(self, keep: Mask | None = None) -> Translator:
        """A decoder that has some of the entries.

        Args:
            keep: bool, shape (N,), which of the N entries of the whole table are there; all if None.  Those of
                other tables of the ini stay.
        """
        entries = self.entries
        if keep is not None:
            own = entries.tables == self.model.place
            entries = entries.select(~own | keep[np.where(own, entries.numbers, 0)])
        words = [phrases.words for phrases in self.sentences.values()]
        copied: Int32Array = np.unique(np.concatenate([np.zeros(0, np.int32), *words]))
        table = build_table(entries, self.source_symbols, self.target_symbols, copied)
        limit = self.model.search.table_limit
        return Translator(table, self.language_model, self.model.features, self.model.weights, limit)

    def translate(self, translator: Translator, tick: Callable[[], None] = lambda: None) -> dict[str, list[str]]:
        """The translations of all texts, by their names.

        Args:
            translator: of `translator`.
            tick: called after each sentence.
        """
        found: dict[str, list[str]] = {}
        for name, sentences in self.sentences.items():
            lines = found[name] = []
            for translation in translator.translate_all(
                sentences, self.model.search, threads=self.threads, runner=self.runner or run
            ):
                lines.append(translator.text(translation).decode(errors="replace"))
                tick()
        return found
