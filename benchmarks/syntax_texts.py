"""Texts of the benchmark of the syntax encoder: held-out sentences, and bitexts without them.

Sentences with the same sequence of tags form a group; some groups of at least six sentences are held out.  Bitexts
contain no pair with a held-out side.  Spanish and Chinese are joined by the English sentences translated in both.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measuring import COMMAND, DATA, WORK

from moses_compat.corpora.treebanks import read_conllu
from phrasetool.phrases import Int64Array
from phrasetool.syntax.evaluation import NO_GROUP, group_numbers
from phrasetool.tagger.data import UPOS, TaggedSentence
from phrasetool.vocabulary import unescape

FOLDER = WORK / "syntax"
TAGGER = WORK / "tagger" / "model"
LEAST_GROUP, LEAST_WORDS = 6, 3
WINDOWS, MOST_PHRASES = (4, 5, 6), 4000
# Language -> a text with held-out groups, the number of lines to use, and the share of groups to hold out.
GROUPS = {
    "en": ("tatoeba-zh-en/train.en.gz", None, 0.17),
    "zh": ("tatoeba-zh-en/train.zh.gz", None, 0.1),
    "de": ("multi30k-de-en/mono/mono.de.gz", 60000, 0.05),
    "es": ("pydocs-es-en/train.es.gz", None, 0.2),
    "cs": ("multi30k-cs-en/train.cs.gz", None, 0.2),
}
BITEXTS = {
    "tatoeba": ("zh", "tatoeba-zh-en/train.zh.gz", "en", "tatoeba-zh-en/train.en.gz"),
    "pydocs-zh": ("zh", "pydocs-zh-en/train.zh.gz", "en", "pydocs-zh-en/train.en.gz"),
    "pydocs-es": ("es", "pydocs-es-en/train.es.gz", "en", "pydocs-es-en/train.en.gz"),
    "captions": ("de", "multi30k-de-en/train.de.gz", "en", "multi30k-de-en/train.en.gz"),
    "tanaka": ("ja", "enja-small/train.ja.gz", "en", "enja-small/train.en.gz"),
}
# Languages with few sentence pairs, with English only: 1,000 of Tatoeba, and a parallel treebank.
FEW = {"fr": "fra", "nl": "nld", "ko": "kor", "cs": "ces", "pt": "por", "id": "ind"}
# Training sentences of that treebank.  Its Korean has other words than the Korean test treebank; its remaining
# Portuguese and Indonesian sentences are test sets.
TREEBANK_PAIRS = {"fr": 1000, "cs": 1000, "pt": 500, "id": 500}
# Languages with a treebank whose sentences are also trained on, with the tagger's tags.
TREEBANKS = ("fr", "nl", "ko", "cs")
# A bitext whose two sides come from two of the bitexts above.
MET = ("met", "es", "pydocs-es", "zh", "pydocs-zh")


def lines(name: str) -> list[str]:
    """Return the unescaped lines of a data file."""
    return unescape(gzip.decompress((DATA / name).read_bytes())).decode().split("\n")[:-1]


def held_out(language: str) -> list[tuple[str, str]]:
    """Return the sentences of the held-out groups with their tags, written to a file once."""
    path = FOLDER / f"groups.{language}"
    if not path.is_file():
        name, most, share = GROUPS[language]
        texts = [line for line in dict.fromkeys(lines(name)[:most]) if len(line.split()) >= LEAST_WORDS]
        plain, tagged = FOLDER / f"all.{language}", FOLDER / f"all.{language}.upos"
        plain.write_text("".join(line + "\n" for line in texts), "utf-8")
        command = [COMMAND, "tag", plain, "-m", TAGGER, "--language", language, "--threads", "1", "-q", "-o", tagged]
        subprocess.run(list(map(str, command)), check=True)
        rows = sorted(zip(tagged.read_text("utf-8").split("\n"), texts, strict=False))
        groups = [list(group) for _, group in itertools.groupby(rows, lambda row: row[0])]
        groups = [group for group in groups if len(group) >= LEAST_GROUP]
        order = np.random.default_rng(1).permutation(len(groups))[: round(share * len(groups))]
        chosen = [row for number in sorted(order.tolist()) for row in groups[number]]
        counts = {"groups": len(groups), "sentences": sum(map(len, groups)), "held_out": len(order)}
        (FOLDER / f"groups.{language}.json").write_text(json.dumps(counts), "utf-8")
        path.write_text("".join(f"{text}\t{tags}\n" for tags, text in chosen), "utf-8")
    fields = [line.split("\t") for line in path.read_text("utf-8").split("\n")[:-1]]
    return [(text, tags) for text, tags in fields]


def test_files(language: str) -> tuple[Path, Path]:
    """Write the held-out sentences and their tags in the format of `evaluate-model`; return the paths."""
    paths = FOLDER / f"held.{language}", FOLDER / f"held.{language}.upos"
    rows = held_out(language)
    for number, path in enumerate(paths):
        path.write_text("".join(row[number] + "\n" for row in rows), "utf-8")
    return paths


def all_held_out() -> set[str]:
    """Return all held-out sentences."""
    return {text for language in GROUPS for text, _ in held_out(language)}


def pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a bitext."""
    if name != MET[0]:
        yield from zip(lines(BITEXTS[name][1]), lines(BITEXTS[name][3]), strict=True)
        return
    first, second = ({english: text for text, english in pairs(part)} for part in (MET[2], MET[4]))
    yield from ((text, second[english]) for english, text in first.items() if english in second)


def bitext(name: str) -> tuple[str, ...]:
    """Write a bitext without held-out sentences once; return its arguments of `--language-bitext`."""
    languages = (MET[1], MET[3]) if name == MET[0] else BITEXTS[name][::2]
    paths = [FOLDER / f"{name}.{language}" for language in languages]
    if not all(path.is_file() for path in paths):
        held = all_held_out()
        if name == MET[0]:
            both = [{english: text for text, english in pairs(part) if english not in held} for part in MET[2::2]]
            rows = [(text, both[1][english]) for english, text in both[0].items() if english in both[1]]
        else:
            rows = list(pairs(name))
        kept = [row for row in rows if not held.intersection(row) and all(side.split() for side in row)]
        for number, path in enumerate(paths):
            path.write_text("".join(row[number] + "\n" for row in kept), "utf-8")
    return (languages[0], str(paths[0]), languages[1], str(paths[1]))


def bitexts(names: Sequence[str] = (*BITEXTS, MET[0])) -> list[str]:
    """Return the arguments for several bitexts."""
    return [argument for name in names for argument in ("--language-bitext", *bitext(name))]


def quarters() -> list[str]:
    """Write every fourth pair of all bitexts; return the arguments."""
    arguments = []
    for name in (*BITEXTS, MET[0]):
        first, source, second, target = bitext(name)
        for language, path in ((first, source), (second, target)):
            rows = Path(path).read_text("utf-8").split("\n")[:-1:4]
            (FOLDER / f"{name}.quarter.{language}").write_text("".join(row + "\n" for row in rows), "utf-8")
        paths = [str(FOLDER / f"{name}.quarter.{language}") for language in (first, second)]
        arguments += ["--language-bitext", first, paths[0], second, paths[1]]
    return arguments


def few_shot_bitexts() -> list[str]:
    """Write the texts of languages with few sentence pairs, without held-out sentences; return the arguments."""
    held, arguments = all_held_out(), []
    for language, code in FEW.items():
        sides = ((DATA / "tatoeba-v1" / f"tatoeba.{code}-eng.{name}").read_text("utf-8") for name in (code, "eng"))
        rows = list(zip(*(_words_apart(side) for side in sides), strict=True))
        if language in TREEBANK_PAIRS:
            rows += treebank_pairs(language, TREEBANK_PAIRS[language])
        kept = [row for row in rows if not held.intersection(row)]
        paths = [FOLDER / f"few.{language}-en.{name}" for name in (language, "en")]
        for number, path in enumerate(paths):
            path.write_text("".join(row[number] + "\n" for row in kept), "utf-8")
        arguments += ["--language-bitext", language, str(paths[0]), "en", str(paths[1])]
        if language in TREEBANKS:
            path, rows = (
                FOLDER / f"few.{language}",
                [line(sentence.words).decode() for sentence in treebank(f"{language}-train")],
            )
            path.write_text("".join(row + "\n" for row in rows if row not in held), "utf-8")
            arguments += ["--language-text", language, str(path)]
    return arguments


def _words_apart(text: str) -> list[str]:
    """Return lower-cased lines, with punctuation separated from words except within words."""
    apart = (re.sub(r"(?<!\w)([^\w\s])|([^\w\s])(?!\w)", r" \1\2 ", row) for row in text.lower().split("\n")[:-1])
    return [" ".join(row.split()) for row in apart]


def treebank_pairs(language: str, size: int) -> list[tuple[str, str]]:
    """Return the first sentences of a parallel treebank and their English translations, lower-cased."""
    sides = [[line(sentence.words).decode() for sentence in treebank(f"pud/{name}-pud")] for name in (language, "en")]
    return list(zip(*sides, strict=True))[:size]


def test_treebank(language: str) -> list[TaggedSentence]:
    """Return treebank sentences that no model is trained on."""
    if language not in ("pt", "id"):
        return treebank(f"{language}-test")
    return treebank(f"pud/{language}-pud")[TREEBANK_PAIRS[language] :]


def numbers(tags: tuple[str, ...]) -> list[int]:
    """Return the indices of tags among the universal parts of speech."""
    return [UPOS.index(tag) for tag in tags]


def treebank(name: str) -> list[TaggedSentence]:
    """Read the sentences of a treebank."""
    return read_conllu(str(DATA / "ud" / f"{name}.conllu.gz"))


def line(words: tuple[str, ...]) -> bytes:
    """Return words as a line in the format of the bitexts, lower-cased."""
    return " ".join(words).lower().encode()


@dataclass(frozen=True)
class TreebankPhrases:
    """Phrases of four to six words without punctuation, from a random sample of groups.

    Attributes:
        texts: distinct phrases.
        tags: indices of the tags of each phrase.
        sentences: index of the sentence of each phrase.
        all_groups, all_phrases: numbers of groups and phrases before sampling.
    """

    texts: list[bytes]
    tags: list[list[int]]
    sentences: Int64Array
    all_groups: int
    all_phrases: int


def treebank_phrases(sentences: Sequence[TaggedSentence]) -> TreebankPhrases:
    """Return phrases of treebank sentences."""
    tags_by_text: dict[bytes, tuple[tuple[str, ...], int]] = {}
    for number, sentence in enumerate(sentences):
        for size in WINDOWS:
            for first in range(len(sentence.words) - size + 1):
                part = slice(first, first + size)
                if "PUNCT" not in sentence.tags[part]:
                    tags_by_text.setdefault(line(sentence.words[part]), (sentence.tags[part], number))
    texts = list(tags_by_text)
    group_of_text = group_numbers([tags_by_text[text][0] for text in texts])
    drawn = np.random.default_rng(1).permutation(np.unique(group_of_text[group_of_text != NO_GROUP]))
    sizes = np.cumsum([int((group_of_text == group).sum()) for group in drawn])
    kept = np.flatnonzero(np.isin(group_of_text, drawn[: max(1, int(np.searchsorted(sizes, MOST_PHRASES, "right")))]))
    chosen = [texts[number] for number in kept.tolist()]
    tags = [numbers(tags_by_text[text][0]) for text in chosen]
    origins = np.array([tags_by_text[text][1] for text in chosen])
    return TreebankPhrases(chosen, tags, origins, len(drawn), int((group_of_text != NO_GROUP).sum()))
