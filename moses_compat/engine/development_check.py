"""Whether texts can be the development set of a model: what makes no sense is found before much is done with it.

Measured on tables of Multi30k German-English (a Moses run), of three corpora of 8,000 to 50,000 sentences, and of the
demo (816 sentences), with development sets of their own, of other domains, and wrong ones:

    coverage of the source     own 0.89 to 0.995, other domains 0.61 to 0.93, other domains under the demo's table
                               0.31 to 0.68; other languages 0.00 to 0.26, English under the German table 0.37 to 0.51,
                               other capitals, or words not between spaces 0.00 to 0.58
    gain of another form       right 0.00 to 0.01; sides swapped 0.45 to 0.99, German with its capitals 0.13,
                               German neither tokenised nor lower-cased 0.32
    BLEU                       own 7.6 to 42, other domains 6.0 to 16, under the demo's table 2.3 to 12; the reference
                               in another language, the source itself, or with other capitals 0.1 to 0.4
    words of the reference     own 0.6, other domains 0.3, three in ten of the target words 0.09; the source itself, or
    that correspond            another language 0.00 to 0.05

    target words of the      right 0.77 to 1, small models of other domains 0.34 to 0.68; models of other languages 0.04
    entries that the            to 0.17
    language model knows

A floor that is too high refuses what is right, and what passes one of them is still asked for the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.model import MosesModel
from moses_compat.engine.model_lines import MAX_PHRASE_LENGTH
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.hypotheses import WINDOW
from phrasetool.smt.decoder.table import TranslationTable, covered_tokens, offered_words
from phrasetool.smt.decoder.translator import Translator
from phrasetool.smt.evaluation.bleu import corpus_bleu, corpus_bleu_plus_half
from phrasetool.smt.evaluation.line_correspondence import ERROR_RATE, line_correspondence
from phrasetool.smt.language_model.ngrams import TargetModel
from phrasetool.text_splitting import split_lines, split_words
from phrasetool.watch import SILENT, Watch, raise_or_warn

LEAST_COVERAGE = 0.3
LEAST_BLEU = 1.0
# Of a development set, sentences with words.
LEAST_SENTENCES = 10
# The share of the distinct target words that a language model knows, asked of so many words with a letter.
_LEAST_KNOWN = 0.25
_FEW_WORDS = 5
# A text of fewer tokens is translated whatever the table knows of it.
_FEW_TOKENS = 20
# Where less is covered, it is asked whether another form of the text would be covered better: by so much, and so well.
_DOUBTFUL = 0.8
_GAIN = 0.1
_LIKELY = 0.6
# The entries of each source phrase whose words are compared with a reference, and the share of its tokens from which
# on the reference is surely in the table's language: a low BLEU is due to the weights then.
_BEST_ENTRIES = 3
_LEAST_CORRESPONDING = 0.1
# Where less is covered, most of a text is copied.
_MOST = 0.5
FORM = "text of the table's source language, with its tokens and its capitals"
_MARK = re.compile(r"([^\w\s])")


def coverage(table: TranslationTable, sentences: Phrases) -> float:
    """The share of a text's tokens that the table can translate, see `covered_tokens`; 1 for a text without tokens."""
    return float(covered_tokens(table, sentences).mean()) if len(sentences.words) else 1.0


def tell_coverage(
    table: TranslationTable, sentences: Phrases, text: str, table_name: str, watch: Watch, force: bool = False
) -> None:
    """Say how much of a text has no translation; warn if most of it has none.

    Args:
        table: what the decoder knows.
        sentences: the text.
        text, table_name: what the files are called.
        watch: is told.
        force: warn instead of refusing.

    Raises:
        PhraseToolError: less than `LEAST_COVERAGE` of its tokens can be translated, and there are `_FEW_TOKENS` of
            them or more: a name or a single word may well be unknown.
    """
    size = len(sentences.words)
    covered = coverage(table, sentences)
    if covered < _MOST:
        message = (
            f"{display_name(text)}: {_percent(1 - covered)} of its {size:,} tokens have no translation in "
            f"{table_name}; expected {FORM}"
        )
        accept = force or covered >= LEAST_COVERAGE or size < _FEW_TOKENS
        raise_or_warn(PhraseToolError(message, remedy="go on"), accept, watch.warn)
    elif size:
        watch.say(f"{_percent(1 - covered)} of {size:,} tokens have no translation")


def warn_of_long_jumps(sentences: Phrases, distortion_limit: int, text: str, watch: Watch) -> None:
    """Warn of sentences in which the decoder's window, and not the distortion limit, decides how far phrases may jump.

    Args:
        sentences: the text.
        distortion_limit: words a jump may span; negative for no limit.
        text: what the file is called.
        watch: is warned.
    """
    long = int((sentences.lengths > WINDOW).sum())
    if long and not 0 <= distortion_limit <= WINDOW - MAX_PHRASE_LENGTH:
        limit = "without a distortion limit" if distortion_limit < 0 else f"at a distortion limit of {distortion_limit}"
        watch.warn(
            f"{display_name(text)}: {long:,} sentences have more than {WINDOW} words; {limit}, phrases that end "
            f"{WINDOW} words or more behind the first untranslated word are not tried there"
        )


def check_language_models(
    model: MosesModel, language_model: TargetModel, table: TranslationTable, watch: Watch, force: bool = False
) -> None:
    """Refuse a language model of another language than the target side of the table.

    Args:
        model: names the files.
        language_model: its language models, loaded.
        table: the entries that the text can use.
        watch: is warned.
        force: warn instead of refusing.

    Raises:
        PhraseToolError: a language model knows too few of the target words, see `_LEAST_KNOWN`.
    """
    used = np.unique(table.targets.select(_best_entries(table)).words)
    words = [word for place in used if _has_letter(word := table.target_symbols.words[place])]
    if len(words) < _FEW_WORDS:
        return
    for path, known in zip(model.language_models, language_model.known(words).mean(axis=1), strict=True):
        if known < _LEAST_KNOWN:
            message = (
                f"{display_name(path)}: the language model knows {_percent(float(known))} of the {len(words):,} target "
                f"words of {model.shown_tables}; expected a model of the table's target language"
            )
            raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


def _best_entries(table: TranslationTable) -> npt.NDArray[np.int64]:
    """The entry of each source with the highest sum of scores: the tail of a frequent word holds words of any kind."""
    sums = table.scores.sum(axis=1)
    sources = np.repeat(np.arange(len(table.first) - 1), np.diff(table.first))
    order = np.lexsort((-sums, sources))
    best = order[table.first[:-1][np.diff(table.first) > 0]]
    return np.sort(best[~table.copies[best]])


def _has_letter(word: bytes) -> bool:
    return any(map(str.isalpha, word.decode("utf-8", "replace")))


class DevelopmentFit(NamedTuple):
    """How well a development set fits a table.

    Attributes:
        covered: share of the source's tokens that the table can translate.
        corresponding: share of the tokens of the worst reference that the table has for its source line, beyond
            those expected by chance, see `line_correspondence`.
    """

    covered: float
    corresponding: float


def check_correspondence(
    offered: Phrases, reference: Phrases, source: str, path: str, system: str, watch: Watch, force: bool = False
) -> float:
    """Refuse a reference whose lines do not belong to those of the source text, see `line_correspondence`.

    Args:
        offered: for each source line, words that its translation may have.
        reference: the lines of the reference, in the same ids.
        source, path: the files of the source text and of the reference.
        system: the file that the offered words are from.
        watch: is warned.
        force: warn instead of refusing.

    Returns:
        The share of the reference's tokens that correspond.

    Raises:
        PhraseToolError: a permutation test finds no relation between the lines, or a move of the lines fits better.
    """
    fit = line_correspondence(offered, reference)
    if fit.rejected:
        name, text = display_name(path), display_name(source)
        if fit.moved:
            lines = "1 line" if abs(fit.moved) == 1 else f"{abs(fit.moved)} lines"
            direction = "down" if fit.moved > 0 else "up"
            message = f"{name}: fits {text} much better if it is moved {direction} by {lines}"
        else:
            message = (
                f"{name}: its lines share no more words with what {system} has for the lines of {text} than in random "
                f"order (p = {fit.p_value:.3f}, at most {ERROR_RATE:g} is accepted)"
            )
        raise_or_warn(
            PhraseToolError(f"{message}; expected its translation, line for line", remedy="go on"), force, watch.warn
        )
    return fit.share


@dataclass(frozen=True)
class DevelopmentCheck:
    """Asks whether a development set makes sense, and refuses it if not.

    Attributes:
        model: what is to translate it.
        source, references: its files.
        force: warn instead of refusing.
        watch: is warned.
    """

    model: MosesModel
    source: str
    references: Sequence[str]
    force: bool = False
    watch: Watch = SILENT

    def texts(self, source: bytes, references: Sequence[bytes]) -> None:
        """Look at the texts alone.

        Raises:
            DataError: one of them has no words.
            PhraseToolError: a reference is the source, or there are less than `LEAST_SENTENCES` sentences.
        """
        lines = _lines_of_words(source)
        for path, text in zip((self.source, *self.references), (source, *references), strict=True):
            if not any(_lines_of_words(text)):
                raise DataError(display_name(path), "has no words; expected a tokenised sentence a line")
        for path, text in zip(self.references, references, strict=True):
            if _lines_of_words(text) == lines:
                self._found(
                    f"{display_name(path)}: is the same text as {display_name(self.source)}; expected its translation"
                )

        sentences = sum(1 for line in lines if line)
        if sentences < LEAST_SENTENCES:
            self._found(
                f"{display_name(self.source)}: has {sentences} sentences with words; BLEU of so few means nothing, "
                f"expected at least {LEAST_SENTENCES}, better 500 or more"
            )

    def language_models(self, translator: Translator) -> None:
        """Look at the language models, see `check_language_models`."""
        check_language_models(self.model, translator.language_model, translator.table, self.watch, self.force)

    def fit(
        self, table: TranslationTable, sentences: Phrases, source: bytes, references: Sequence[bytes]
    ) -> DevelopmentFit:
        """Compare the texts with the table: tokens that it covers, and words of the references that it has for them.

        Args:
            table: all entries of the model's table that the source can use.
            sentences: the source, in ids of the table's words.
            source: the same as text.
            references: translations of it, in the order of their files.

        Raises:
            DataError: the table has no entries.
            PhraseToolError: the covered share is less than `LEAST_COVERAGE`, or much less than that of the reference or
                of the same text with other capitals or tokens; or the lines of a reference do not belong to those of
                the source.
        """
        warn_of_long_jumps(sentences, self.model.search.distortion_limit, self.source, self.watch)
        covered = self._covered(table, sentences, source, references[0])
        offered = offered_words(table, sentences, _BEST_ENTRIES)
        shares = [
            check_correspondence(
                offered, table.target_symbols.read_lines(text, add=False), self.source, path,
                self.model.shown_tables, self.watch, self.force,
            )
            for path, text in zip(self.references, references, strict=True)
        ]  # fmt: skip
        return DevelopmentFit(covered, min(shares))

    def _covered(self, table: TranslationTable, sentences: Phrases, source: bytes, reference: bytes) -> float:
        share = coverage(table, sentences)
        if share >= _DOUBTFUL:
            return share
        table_name = self.model.shown_tables
        _check_entries(self.model.used_tables, table_name)
        name = display_name(self.source)
        found = f"{name}: {_percent(share)} of its {len(sentences.words):,} tokens have a translation in "
        found += table_name
        better, advice = self._better_form(source, reference, share)
        if advice:
            self._found(f"{found}, but {_percent(better)} {advice}")
        elif share < LEAST_COVERAGE:
            self._found(f"{found}, expected at least {_percent(LEAST_COVERAGE)}: {FORM}")
        elif share < _LIKELY:
            self.watch.warn(f"{found}; is it {FORM}?")
        return share

    def _better_form(self, source: bytes, reference: bytes, share: float) -> tuple[float, str]:
        """A form of the text that is covered clearly better: by how much, and what that tells; nothing if there is
        none.
        """
        text = source.decode("utf-8", "surrogateescape")
        forms = {
            f"of those of {display_name(self.references[0])}: the source and the reference are swapped":
                reference.decode("utf-8", "surrogateescape"),
            "if it is lower-cased: give it the capitals of the table": text.lower(),
            "if spaces stand around its punctuation: tokenise it as the table is": _MARK.sub(r" \1 ", text),
            "if it is lower-cased and spaces stand around its punctuation: prepare it as the table was":
                _MARK.sub(r" \1 ", text.lower()),
        }  # fmt: skip
        symbols = Symbols()
        sentences = [symbols.read_lines(form.encode("utf-8", "surrogateescape")) for form in forms.values()]
        known = InputPhrases.of_sentences(symbols, Phrases.concatenate(sentences), self.model.longest)
        table = replace(self.model, reordering=None).load_table(known, Symbols())
        best, advice = max(share + _GAIN, _LIKELY), ""
        for form, words in zip(forms, sentences, strict=True):
            # A simpler change is preferred to one that adds little to it.
            if (found := coverage(table, words)) > best + (0.02 if advice else 0):
                best, advice = found, form
        return best, advice

    def bleu(
        self,
        measure: Callable[[Sequence[Phrases]], npt.NDArray[np.integer]],
        references: Sequence[Phrases],
        fit: DevelopmentFit | None = None,
        *,
        tuned: bool = True,
    ) -> None:
        """Look at how well the full table translates.

        Half a match is added to each order, so that a few sentences are not judged by chance.

        Args:
            measure: gives the BLEU statistics of the translations, integers of shape (S, 9), by references.
            references: S sentences each.
            fit: of the development set, for the message.
            tuned: whether the weights are final; a low BLEU of weights that are still to be tuned is no reason to
                refuse references whose words correspond to the source.

        Raises:
            PhraseToolError: BLEU is less than `LEAST_BLEU`.
        """
        statistics = measure(references)
        if corpus_bleu_plus_half(statistics) >= LEAST_BLEU:
            return
        covered = f", which can translate {_percent(fit.covered)} of the tokens," if fit else ""
        message = (
            f"{', '.join(map(display_name, self.references))}: what the whole table{covered} makes of "
            f"{display_name(self.source)} reaches BLEU {corpus_bleu(statistics):.2f}, expected at least "
            f"{LEAST_BLEU:g}; give its translation, line for line, with the tokens and capitals of the table, and "
            "weights that suit the table"
        )
        corresponds = fit is not None and fit.corresponding >= _LEAST_CORRESPONDING
        raise_or_warn(
            PhraseToolError(message, remedy="go on"), self.force or (corresponds and not tuned), self.watch.warn
        )

    def _found(self, message: str) -> None:
        raise_or_warn(PhraseToolError(message, remedy="go on"), self.force, self.watch.warn)


def _lines_of_words(text: bytes) -> list[list[bytes]]:
    return [split_words(line) for line in split_lines(text)]


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _check_entries(paths: Sequence[str], name: str) -> None:
    for path in paths:
        with Input(path, name) as table:
            if any(block.strip(b" \t\r\n") for block in table.whole_lines()):
                return
    raise DataError(name, "the table has no entries")
