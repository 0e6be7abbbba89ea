"""Coverage and match of a bitext compared with naive computations on random texts."""

import random

import numpy as np
import pytest

from moses_compat.lines.hashes import side_keys
from moses_compat.measures.pair_test import read_indexes
from moses_compat.table_report import texts
from moses_compat.table_report.texts import BitextLookup, KnownWords, WordMarks, cover
from phrasetool.smt.corpus.symbols import Symbols
from tests.commands import write
from tests.variants import for_each

WORDS = [b"a", b"b", b"c", b"\xe5\x8c\x97", b"e"]


def drawn_sentences(rng, count):
    blanks = [b" ", b"  ", b"\t", b" \t "]
    lines = []
    for _ in range(count):
        words = rng.choices(WORDS, k=rng.randint(0, 9))
        lines.append(b"".join(word + rng.choice(blanks) for word in words))
    return lines


def keys_of(sources):
    text = b"".join(b" ".join(source) + b" ||| x |||\n" for source in sources)
    array = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(array == 10) + 1
    return side_keys(array, np.concatenate([[0], ends]), np.arange(len(sources)))[0]


@for_each("seed", range(8))
@for_each("hashed", [20, 1 << 24])
def test_coverage_is_that_of_a_search_in_each_sentence(seed, hashed, monkeypatch):
    monkeypatch.setattr(texts, "_HASHED", hashed)
    rng = random.Random(seed)
    sources = sorted({tuple(rng.choices(WORDS[:4], k=rng.choice([1, 2, 3, 21]))) for _ in range(seed)})
    lines = drawn_sentences(rng, 12)
    if seed == 7:
        # Phrases of more than 20 words are not looked up.
        sources.append((b"e",) * 21)
        lines.append(b" ".join([b"e"] * 25))
    result = cover(b"\n".join(lines), keys_of(sources), np.array([len(source) for source in sources], np.int64))
    tokens = single = covered = whole_single = whole = sentences = 0
    unknown = {}
    for line in lines:
        words = line.split()
        inside = [False] * len(words)
        for source in sources:
            for i in range(len(words) - len(source) + 1):
                if len(source) <= 20 and tuple(words[i : i + len(source)]) == source:
                    inside[i : i + len(source)] = [True] * len(source)
        alone = [(word,) in sources for word in words]
        tokens, single, covered = tokens + len(words), single + sum(alone), covered + sum(inside)
        sentences += bool(words)
        whole_single, whole = whole_single + bool(words and all(alone)), whole + bool(words and all(inside))
        for word, known, is_covered in zip(words, alone, inside, strict=True):
            if not known:
                count, longer = unknown.get(word, (0, 0))
                unknown[word] = count + 1, longer + is_covered
    assert (result.tokens, result.sentences, result.by_words, result.by_any) == (tokens, sentences, single, covered)
    assert (result.sentences_by_words, result.sentences_by_any) == (whole_single, whole)
    order = sorted(unknown, key=lambda word: (-unknown[word][0], word))
    assert result.unknown == tuple((word, *unknown[word]) for word in order)


@pytest.mark.parametrize("seed", range(5))
def test_lookup_is_that_of_a_search_in_each_sentence_pair(seed, tmp_path):
    rng = random.Random(seed)
    sides = [[b" ".join(line.split()) for line in drawn_sentences(rng, 15)] for _ in range(2)]
    files = [str(write(tmp_path / name, b"\n".join(side) + b"\n")) for name, side in zip("st", sides, strict=True)]
    lookup = BitextLookup(*read_indexes(*files))
    pairs = [
        tuple(tuple(rng.choices([*WORDS, b"zzz"], k=rng.randint(1, 2))) for _ in range(2)) for _ in range(60)
    ]  # fmt: skip
    joint = np.array([rng.choice([np.nan, 1, 2, 5, 2.5]) for _ in pairs])

    def occurrences(phrase, line):
        words = line.split()
        return sum(tuple(words[i : i + len(phrase)]) == phrase for i in range(len(words)))

    read = []
    for side, marks in enumerate(lookup.marks):
        fields = [b" ".join(pair[side]) for pair in pairs]
        ends = np.cumsum([len(field) for field in fields])
        starts = ends - [len(field) for field in fields]
        read.append(marks.read(np.frombuffer(b"".join(fields), np.uint8), starts, ends))
        marks.add(texts.distinct_words(read[-1]))
    together, consistent = lookup(*read, joint)
    for row, (source, target) in enumerate(pairs):
        result = [(occurrences(source, a), occurrences(target, b)) for a, b in zip(*sides, strict=True)]
        least = min(sum(counts) for counts in zip(*result, strict=True))
        assert together[row] == any(a and b for a, b in result)
        assert consistent[row] == (together[row] and joint[row] <= least)
    known = [{word for pair in pairs for word in pair[side]} for side in range(2)]
    source, target, whole = lookup.known_pairs()
    for side, counted in enumerate((source, target)):
        words = [word for line in sides[side] for word in line.split()]
        assert counted == KnownWords(len(words), sum(word in known[side] for word in words))
    assert whole == sum(
        set(a.split()) <= known[0] and set(b.split()) <= known[1] for a, b in zip(*sides, strict=True)
    )  # fmt: skip


def test_words_without_a_phrase_are_unknown():
    symbols = Symbols()
    running = symbols.read_lines(b"a b a c\n").words.astype(np.int64)
    marks = WordMarks(symbols)
    text = np.frombuffer(b"a zzz", np.uint8)
    marks.add(texts.distinct_words(marks.read(text, np.array([0]), np.array([5]))))
    assert KnownWords.of(marks, running) == KnownWords(4, 2)
