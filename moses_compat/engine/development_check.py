"""Checks of a development set, which reject unsuitable texts before long work begins.

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

The thresholds are low, because a threshold that is too high rejects suitable texts, and a text that passes one check
must still pass the others.
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
# Sentences with words that a development set must have.
LEAST_SENTENCES = 10
# The share of the distinct target words that a language model must know; checked if at least _FEW_WORDS have a letter.
_LEAST_KNOWN = 0.25
_FEW_WORDS = 5
# A text of fewer tokens is accepted at any coverage.
_FEW_TOKENS = 20
# At a lower coverage, other forms of the text are tried.  A form is suggested if it improves the coverage by at least
# _GAIN, to at least _LIKELY.
_DOUBTFUL = 0.8
_GAIN = 0.1
_LIKELY = 0.6
# Number of entries per source phrase whose words are compared with a reference.  If at least the share
# _LEAST_CORRESPONDING of its tokens correspond, a reference is certainly in the table's language, so a low BLEU is due
# to the weights.
_BEST_ENTRIES = 3
_LEAST_CORRESPONDING = 0.1
# At a lower coverage, most of a text is copied untranslated.
_MOST = 0.5
FORM = "text of the table's source language, with its tokens and its capitals"
_MARK = re.compile(r"([^\w\s])")


def coverage(table: TranslationTable, sentences: Phrases) -> float:
    """Return the share of a text's tokens that the table translates, see `covered_tokens`; 1 for an empty text."""
    return float(covered_tokens(table, sentences).mean()) if len(sentences.words) else 1.0


def report_coverage(
    table: TranslationTable, sentences: Phrases, text: str, table_name: str, watch: Watch, force: bool = False
) -> None:
    """Report the share of a text's tokens that have no translation; warn if most of them have none.

    Args:
        table: the entries of the decoder.
        sentences: the text.
        text, table_name: names of the files in messages.
        watch: receives the messages.
        force: warn instead of raising an error.

    Raises:
        PhraseToolError: the table translates less than `LEAST_COVERAGE` of at least `_FEW_TOKENS` tokens.  Shorter
            texts are accepted, because a name or a single word is often unknown.
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
        text: name of the file in messages.
        watch: receives the warning.
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
    """Reject a language model of another language than the target side of the table.

    Args:
        model: names the files.
        language_model: its language models, loaded.
        table: the entries that the text can use.
        watch: receives warnings.
        force: warn instead of raising an error.

    Raises:
        PhraseToolError: a language model knows too few of the target words, see `_LEAST_KNOWN`.
    """
    used = np.unique(table.targets.select(_best_entries(table)).words)
    words = [word for word_id in used if _has_letter(word := table.target_symbols.words[word_id])]
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
    """Return the entry with the highest sum of scores of each source, without copies.

    Other entries are left out, because the rare translations of a frequent word contain words of any kind.
    """
    sums = table.scores.sum(axis=1)
    sources = np.repeat(np.arange(len(table.first) - 1), np.diff(table.first))
    order = np.lexsort((-sums, sources))
    best = order[table.first[:-1][np.diff(table.first) > 0]]
    return np.sort(best[~table.copies[best]])


def _has_letter(word: bytes) -> bool:
    return any(map(str.isalpha, word.decode("utf-8", "replace")))


class DevelopmentFit(NamedTuple):
    """Agreement of a development set with a table.

    Attributes:
        covered: share of the source's tokens that the table can translate.
        corresponding: share of the reference's tokens that the table has for the source line, beyond those expected by
            chance (see `line_correspondence`); the lowest share of several references.
    """

    covered: float
    corresponding: float


def check_correspondence(
    offered: Phrases, reference: Phrases, source: str, path: str, system: str, watch: Watch, force: bool = False
) -> float:
    """Reject a reference whose lines do not correspond to those of the source text, see `line_correspondence`.

    Args:
        offered: for each source line, words that its translation may have.
        reference: the lines of the reference, in the same ids.
        source, path: the files of the source text and of the reference.
        system: name of the file with the offered words.
        watch: receives warnings.
        force: warn instead of raising an error.

    Returns:
        The share of the reference's tokens that correspond.

    Raises:
        PhraseToolError: a permutation test finds no relation between the lines, or shifted lines fit better.
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


def check_translation(
    source: bytes, reference: bytes, source_path: str, path: str, watch: Watch, force: bool = False
) -> None:
    """Reject a reference with the same text as the source, whatever the names of their files.

    Raises:
        PhraseToolError: the lines of both have the same words.
    """
    if _lines_of_words(reference) == _lines_of_words(source):
        message = f"{display_name(path)}: is the same text as {display_name(source_path)}; expected its translation"
        raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)


@dataclass(frozen=True)
class DevelopmentCheck:
    """Plausibility checks of a development set, which reject an unsuitable one.

    Attributes:
        model: the model that will translate the development set.
        source, references: files of the development set.
        force: warn instead of raising an error.
        watch: receives warnings.
    """

    model: MosesModel
    source: str
    references: Sequence[str]
    force: bool = False
    watch: Watch = SILENT

    def texts(self, source: bytes, references: Sequence[bytes]) -> None:
        """Check the texts, without the model.

        Raises:
            DataError: one of them has no words.
            PhraseToolError: a reference is the source, or there are fewer than `LEAST_SENTENCES` sentences.
        """
        lines = _lines_of_words(source)
        for path, text in zip((self.source, *self.references), (source, *references), strict=True):
            if not any(_lines_of_words(text)):
                raise DataError(display_name(path), "has no words; expected one tokenised sentence per line")
        for path, text in zip(self.references, references, strict=True):
            check_translation(source, text, self.source, path, self.watch, self.force)

        sentences = sum(1 for line in lines if line)
        if sentences < LEAST_SENTENCES:
            self._reject(
                f"{display_name(self.source)}: has {sentences} sentences with words; BLEU of so few means nothing, "
                f"expected at least {LEAST_SENTENCES}, better 500 or more"
            )

    def language_models(self, translator: Translator) -> None:
        """Check the language models, see `check_language_models`."""
        check_language_models(self.model, translator.language_model, translator.table, self.watch, self.force)

    def fit(
        self, table: TranslationTable, sentences: Phrases, source: bytes, references: Sequence[bytes]
    ) -> DevelopmentFit:
        """Compare the texts with the table: source tokens that it covers, and reference words that it offers for them.

        Args:
            table: all entries of the model's table that the source can use.
            sentences: the source, in ids of the table's words.
            source: the source as text.
            references: translations of it, in the order of their files.

        Raises:
            DataError: the table has no entries.
            PhraseToolError: the covered share is less than `LEAST_COVERAGE`, or much less than that of the reference or
                of the same text with other capitals or tokens; or the lines of a reference do not correspond to those
                of the source.
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
        statement = f"{name}: {_percent(share)} of its {len(sentences.words):,} tokens have a translation in "
        statement += table_name
        better, advice = self._better_form(source, reference, share)
        if advice:
            self._reject(f"{statement}, but {_percent(better)} {advice}")
        elif share < LEAST_COVERAGE:
            self._reject(f"{statement}, expected at least {_percent(LEAST_COVERAGE)}: {FORM}")
        elif share < _LIKELY:
            self.watch.warn(f"{statement}; is it {FORM}?")
        return share

    def _better_form(self, source: bytes, reference: bytes, share: float) -> tuple[float, str]:
        """Return the coverage of the form of the text that is covered best, and advice on how to get this form.

        The advice is empty if no form is covered clearly better than the text itself.
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
            # Two changes are suggested only if they help clearly more than one.
            if (covered := coverage(table, words)) > best + (0.02 if advice else 0):
                best, advice = covered, form
        return best, advice

    def bleu(
        self,
        measure: Callable[[Sequence[Phrases]], npt.NDArray[np.integer]],
        references: Sequence[Phrases],
        fit: DevelopmentFit | None = None,
        *,
        tuned: bool = True,
    ) -> None:
        """Check the BLEU of the full table's translations.

        Half a match is added to each n-gram order, so that the BLEU of a few sentences is not 0 by chance.

        Args:
            measure: returns the BLEU statistics of the translations against given references, integers, shape (S, 9).
            references: S sentences each.
            fit: agreement of the development set with the table, for the message.
            tuned: whether the weights are final; if they are still to be tuned, a low BLEU is accepted for references
                whose words correspond to the source.

        Raises:
            PhraseToolError: BLEU is less than `LEAST_BLEU`.
        """
        statistics = measure(references)
        if corpus_bleu_plus_half(statistics) >= LEAST_BLEU:
            return
        covered = f", which can translate {_percent(fit.covered)} of the tokens," if fit else ""
        message = (
            f"{', '.join(map(display_name, self.references))}: the translation of {display_name(self.source)} with the "
            f"whole table{covered} reaches BLEU {corpus_bleu(statistics):.2f}, expected at least "
            f"{LEAST_BLEU:g}; give its translation, line for line, with the tokens and capitals of the table, and "
            "weights that suit the table"
        )
        corresponds = fit is not None and fit.corresponding >= _LEAST_CORRESPONDING
        raise_or_warn(
            PhraseToolError(message, remedy="go on"), self.force or (corresponds and not tuned), self.watch.warn
        )

    def _reject(self, message: str) -> None:
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
