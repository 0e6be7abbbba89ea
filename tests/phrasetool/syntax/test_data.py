import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.syntax.data import (
    UNKNOWN_PIECE,
    PieceTable,
    directed_examples,
    held_out_pairs,
    in_parts,
    known_pieces,
    learn_pieces,
    numbered,
    piece_numbers,
    short_pairs,
    tag_numbers,
)
from phrasetool.tagger.data import UPOS
from phrasetool.tagger.model import TaggerModel
from tests.syntax_models import named, toy_pieces

COUNTS = {b"lower": 5, b"lowest": 3, b"newer": 6, "größer".encode(): 2, b"a\tb": 1}


def test_pieces_concatenate_to_the_word():
    table = PieceTable(learn_pieces(COUNTS, 290))
    for word in COUNTS:
        text = "".join(table.pieces[piece] for piece in table.of_word(word))
        assert text.removeprefix("▁") == word.decode().replace("\t", "▁")
    assert len(table) == 290
    # Frequent words have fewer pieces than letters.
    assert len(table.of_word(b"newer")) < 4


def test_unseen_characters_are_split_into_bytes():
    table = PieceTable(learn_pieces(COUNTS, 290))
    assert [table.pieces[piece] for piece in table.of_word("ř".encode())][1:] == ["<0xC5>", "<0x99>"]
    assert table.of_word(b"x" * 1000) == [UNKNOWN_PIECE]
    assert table.of_word(b"\xff") == table.of_word("\N{REPLACEMENT CHARACTER}".encode())


def test_learning_does_not_depend_on_the_order_and_reduces_the_size_if_necessary():
    reversed_counts = dict(reversed(COUNTS.items()))
    assert learn_pieces(COUNTS, 290) == learn_pieces(reversed_counts, 290)
    table = PieceTable(learn_pieces(COUNTS, 9999))
    assert 280 < len(table) < 330


def test_silent_pieces():
    table = toy_pieces()
    silent = [piece for piece, is_silent in zip(table.pieces, table.silent, strict=True) if is_silent]
    assert silent == [table.pieces[UNKNOWN_PIECE], "▁"]


@pytest.mark.parametrize(("counts", "size"), [({}, 300), (COUNTS, 20)])
def test_too_few_words_and_too_small_sizes_are_refused(counts, size):
    with pytest.raises(ValueError, match=r"no word|too few"):
        learn_pieces(counts, size)


def test_a_damaged_table_is_refused():
    with pytest.raises(ValueError, match="not a model of sentencepiece"):
        PieceTable(b"no model")


def test_texts_are_those_of_their_words():
    table = toy_pieces()
    words = [b"The", b"bader", b"."]
    result = table.of_texts(Phrases.from_lists([[0, 1, 2], [], [2, 2]]), words)
    expected = [
        [piece for number in text for piece in table.of_word(words[number])] for text in ((0, 1, 2), (), (2, 2))
    ]
    assert [text.tolist() for text in result] == expected


def test_parts_and_known_pieces():
    parts = in_parts(Phrases.from_lists([[1, 0], [2]]), Phrases.from_lists([[5], [6, 7], []]))
    assert [text.tolist() for text in parts] == [[6, 7, 5], []]
    known = known_pieces(Phrases.from_lists([[1, 2], [2]]), np.array([False, False, True]))
    assert [text.tolist() for text in known] == [[0, 2], [2]]


class FakeTagger(TaggerModel):
    """Tagger for which capitalised words are determiners, `im` is two words, and all others are verbs."""

    def __init__(self):
        self.languages, self.tags = ("en", "de"), (*UPOS, "ADP+DET")

    def tag(self, sentences, language, joined=True):
        assert language in self.languages
        return [["ADP+DET" if w == "im" else "DET" if w.istitle() else "VERB" for w in words] for words in sentences]


ONE = named(["A b", "c d", "A b"], ["im e", "F g h", "im e"])
TWO = named(["x y", "z"], ["A b", "new"], ("ja", "en"))


def test_sentences_are_numbered_once_by_language():
    sentences, pairs = numbered([ONE, TWO])
    assert {name: list(known) for name, known in sentences.numbers.items()} == {
        "en": [b"A b", b"c d", b"new"], "de": [b"im e", b"F g h"], "ja": [b"x y", b"z"],
    }  # fmt: skip
    assert [rows.tolist() for rows in pairs] == [[[0, 3], [1, 4]], [[5, 0], [6, 2]]]
    assert sentences.word_counts()[b"b"] == 1


def test_tags_are_of_known_languages_and_joined_tags_are_split():
    sentences, _ = numbered([ONE, TWO])
    tags = tag_numbers(sentences, FakeTagger())
    named_tags = [[UPOS[number] for number in text] for text in tags]
    assert named_tags == [
        ["DET", "VERB"],
        ["VERB"] * 2,
        ["VERB"],
        ["ADP", "DET", "VERB"],
        ["DET", "VERB", "VERB"],
        [],
        [],
    ]
    assert len(piece_numbers(sentences, toy_pieces())) == 7


def examples(own=False, longest=99, languages=None):
    sentences, pairs = numbered([ONE, TWO])
    texts, tags = piece_numbers(sentences, toy_pieces()), tag_numbers(sentences, FakeTagger())
    languages = {"en": 0, "de": 1} if languages is None else languages
    language_pairs = [ONE.languages, TWO.languages]
    result = directed_examples(texts, tags, pairs, languages, language_pairs, longest, own)
    return sorted(zip(result.sources.tolist(), result.targets.tolist(), result.languages.tolist(), strict=True))


def test_a_pair_is_learnt_in_both_directions_where_the_target_has_tags():
    both = [(0, 3, 1), (1, 4, 1), (3, 0, 0), (4, 1, 0)]
    assert examples() == sorted([*both, (5, 0, 0), (6, 2, 0)])
    assert examples(languages={"de": 0}) == [(0, 3, 0), (1, 4, 0)]
    # `A b` occurs in two bitexts, but is only one example of its own language.
    assert examples(own=True) == sorted([*examples(), (0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 1), (4, 4, 1)])
    assert examples(longest=1) == []


def test_short_and_long_sentences_are_left_out():
    kept = short_pairs(named(["a", "a b", "a b c", "a b c d"], ["a b", "a", "a b", "a b c"]), 2, 3)
    assert kept.pairs.sources.lengths.tolist() == [3]
    assert len(short_pairs(kept, 9, 9).pairs) == 0


def test_no_sentence_is_in_both_parts():
    rng = np.random.default_rng(1)
    pairs = [np.unique(np.column_stack([rng.integers(0, 200, 300), rng.integers(200, 400, 300)]), axis=0) for _ in "ab"]
    kept, held = held_out_pairs(pairs, 1)
    assert [len(rows) for rows in held] == [-(-len(rows) // 20) for rows in pairs]
    sentences = [set(np.concatenate([rows.ravel() for rows in part]).tolist()) for part in (kept, held)]
    assert not sentences[0] & sentences[1]
    for before, left, out in zip(pairs, kept, held, strict=True):
        assert {*map(tuple, left.tolist()), *map(tuple, out.tolist())} <= set(map(tuple, before.tolist()))
    assert [rows.tolist() for rows in held_out_pairs(pairs, 1)[1]] == [rows.tolist() for rows in held]
    many = [np.column_stack([np.arange(20000), np.arange(20000)])]
    assert len(held_out_pairs(many, 1)[1][0]) == 500


def test_too_few_pairs_are_refused():
    with pytest.raises(ValueError, match="too few pairs"):
        held_out_pairs([np.array([[0, 1]])], 1)


def test_selection_of_examples():
    texts = Phrases.from_lists([[1], [2]])
    result = directed_examples(texts, texts, [np.array([[0, 1]])], {"a": 0, "b": 1}, [("a", "b")], 9)
    assert (len(result), result.select(np.array([1])).sources.tolist()) == (2, [1])
