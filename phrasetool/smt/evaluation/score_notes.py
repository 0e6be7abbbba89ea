"""Properties of scored texts that limit what their scores can be compared with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phrasetool.smt.evaluation.metrics import MetricReport
from phrasetool.text_splitting import split_words

# Below this BLEU and this share of words that stand in the reference of their line, a text translates another one.
# Measured: right ones have a BLEU of 2.2 and a share of 0.24 at least; another text or order of lines, 0.02 to 0.24.
_LOW_BLEU = 1.0
_FEW_SHARED = 0.25
_ESCAPE = re.compile(r"&(?:apos|quot|amp|lt|gt|#124|#91|#93|bar|bra|ket);")
_PUNCTUATION = frozenset(".,;:?!。，")


@dataclass(frozen=True)
class TextForm:
    """Surface form of a text.

    Attributes:
        tokenised: punctuation stands alone.
        lower_cased: there are letters, and no capital one.
        escaped: there are Moses' escapes, such as `&apos;`.
    """

    tokenised: bool
    lower_cased: bool
    escaped: bool


def text_form(lines: Sequence[str]) -> TextForm:
    """Guess from the first 1,000 lines how text was prepared."""
    text = " ".join(lines[:1000])
    tokens = split_words(text)
    loose = sum(token in _PUNCTUATION for token in tokens)
    tight = sum(len(token) > 1 and token[-1] in _PUNCTUATION and token[-2].isalnum() for token in tokens)
    # Tokenised text still has tight points: those of abbreviations.
    return TextForm(loose > tight, text == text.lower() != text.upper(), bool(_ESCAPE.search(text)))


def score_notes(texts: Mapping[str, Sequence[str]], references: Sequence[str], tokenize: str) -> list[str]:
    """Return what a reader must know to compare the figures with others.

    Args:
        texts: name -> lines, of hypotheses and references.
        references: names of the references, at least one.
        tokenize: sacrebleu's tokenizer for BLEU.
    """
    notes = []
    reference = references[0]
    form = text_form(texts[reference])
    names = {"tokenised": "tokenised", "lower_cased": "lower-cased", "escaped": "escaped for Moses (&apos;)"}
    looks = [name for key, name in names.items() if getattr(form, key)]
    if tokenize == "none":
        notes.append("Text was scored as it is (--tokenize none): words are what spaces separate, case counts in BLEU.")
    else:
        notes.append(f"BLEU is of text that sacrebleu tokenised (--tokenize {tokenize}).")
    if looks:
        *first, last = looks
        what = f"{', '.join(first)} and {last}" if first else last
        notes.append(f"The reference looks {what}: do not compare with figures of text that is not.")
        if form.tokenised and tokenize != "none":
            notes.append("It is tokenised twice now; --tokenize none takes it as it is.")
    for path, lines in texts.items():
        other = text_form(lines)
        for key, name in names.items():
            if getattr(other, key) != getattr(form, key):
                yes, no = (path, reference) if getattr(other, key) else (reference, path)
                notes.append(f"Warning: {yes} looks {name}, {no} does not.")
        if any(not line.isascii() and _has_surrogates(line) for line in lines):
            notes.append(f"Warning: {path} is not UTF-8; its other bytes count as characters.")
        if split := split_words_note(path, lines):
            notes.append(f"Warning: {split}.")
        empty = 0 if path in references else untranslated_lines(lines, [texts[other] for other in references])
        if empty:
            notes.append(f"Warning: {empty:,} of {len(lines):,} lines of {path} have no words.")
    return notes


def _has_surrogates(line: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in line)


def shared_words(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The share of a text's words that stand in a reference of their line, each as often as there at most.

    Args:
        hypothesis: lines, words between spaces.
        references: as many lines each.

    Returns:
        From 0 to 1; 1 for a text without words.
    """
    words = shared = 0
    for line, *truth in zip(hypothesis, *references, strict=True):
        hypothesis_counts, reference_counts = Counter(split_words(line)), Counter[str]()
        for other in truth:
            reference_counts |= Counter(split_words(other))
        words += hypothesis_counts.total()
        shared += (hypothesis_counts & reference_counts).total()
    return shared / words if words else 1.0


def split_words_note(name: str, lines: Sequence[str]) -> str:
    """Return how many words sacrebleu splits: those with Unicode white space other than a space or tab; "" if none.

    Args:
        name: name of the text.
        lines: words between spaces.
    """
    odd = (line for line in lines if line.split() != split_words(line))
    count = sum(word.split() != [word] for line in odd for word in split_words(line))
    if not count:
        return ""
    return (
        f"{count:,} words of {name} contain white space other than spaces and tabs, such as U+00A0; sacrebleu splits "
        "them there"
    )


def untranslated_lines(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> int:
    """Count the lines of a text that have no word although a reference of the line has one."""
    rows = zip(hypothesis, *references, strict=True)
    return sum(not split_words(line) and any(map(split_words, truth)) for line, *truth in rows)


def unlike_references(
    reports: Sequence[MetricReport], hypotheses: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]]
) -> list[str]:
    """Warnings of texts that can hardly be translations of what the references are translations of.

    Args:
        reports: of `evaluate`; without BLEU nothing is said.
        hypotheses: name -> lines, in the order of the systems.
        references: their lines.
    """
    warnings = []
    for report in (report for report in reports if report.name == "BLEU"):
        for (name, lines), system in zip(hypotheses.items(), report.systems, strict=True):
            if system.score < _LOW_BLEU and (shared := shared_words(lines, references)) < _FEW_SHARED:
                warnings.append(
                    f"Warning: BLEU of {name} is {system.score:.2f}, and {100 * shared:.1f} % of its words stand in "
                    "the reference of their line: another text, language or order of lines?"
                )
    return warnings
