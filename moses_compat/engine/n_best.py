"""Moses' n-best lists: `id ||| words ||| features ||| total [||| segmentation] [||| alignment]`.

Every word is followed by a space, so two stand before the bars; features are `Name= values`, six significant digits;
the segmentation lists `source=target` spans, inclusive, in target order; the alignment lists `source-target` words.
"""

from __future__ import annotations

from collections.abc import Sequence

from moses_compat.engine.printing import PLAIN, Printing, phrases_of, word_alignment
from moses_compat.lines.words import check_listed
from phrasetool.smt.decoder.translator import Translation, Translator


def _span(start: int, end: int) -> str:
    return f"{start}" if start == end else f"{start}-{end}"


def segmentation(translator: Translator, translation: Translation, derivation: int) -> str:
    """`0=0 1-2=1`: the source and target spans of the phrases, in target order."""
    return " ".join(
        f"{_span(start, end)}={_span(at, at + len(translator.table.targets[entry]) - 1)}"
        for entry, start, end, at in phrases_of(translator, translation, derivation)
    )


def n_best_lines(
    translator: Translator,
    number: int,
    translation: Translation,
    listed: Sequence[str],
    segmented: bool = False,
    aligned: bool = False,
    printing: Printing = PLAIN,
) -> bytes:
    """The lines of one sentence.

    Args:
        translator: that made the translation.
        number: of the sentence, from 0.
        translation: its derivations.
        listed: the feature functions to name, as `FeatureSet` knows them.
        segmented, aligned: whether to append these fields.
        printing: how words are printed.
    """
    features = translator.features
    lines = []
    for d in range(len(translation)):
        values = translation.features[d]
        # Adding 0 turns -0 into 0, as Moses prints it.
        numbers = {f: " ".join(format(value + 0.0, ".6g") for value in values[features.slices[f]]) for f in listed}
        named = " ".join(f"{features.name(f)}= {numbers[f]}" for f in listed)
        tail = ""
        if segmented:
            tail += f" ||| {segmentation(translator, translation, d)}"
        if aligned:
            tail += f" ||| {word_alignment(translator, translation, d)} "
        text, total = printing.words(translator, translation, d), translation.steps.scores[d]
        lines.append(n_best_line(number, text, named, total, tail))
    return b"".join(lines)


def n_best_line(number: int, text: bytes, named: str, total: float, tail: str = "") -> bytes:
    """One line of a list.

    Args:
        number: of the sentence, from 0.
        text: its translation, words between spaces.
        named: its features, `Name= values`.
        total: what the list is sorted by.
        tail: further fields, each after its bars.

    Raises:
        PhraseToolError: the translation holds bars.
    """
    check_listed(number, text)
    fields = f" ||| {named} ||| {total:.6g}{tail}\n"
    return b"%d ||| %s%s" % (number, text + b" " if text else b"", fields.encode())
