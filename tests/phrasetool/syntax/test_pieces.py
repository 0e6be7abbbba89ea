import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.syntax.pieces import UNKNOWN_PIECE, PieceTable, in_parts, known_pieces, learn_pieces
from tests.syntax_models import toy_pieces

COUNTS = {b"lower": 5, b"lowest": 3, b"newer": 6, "größer".encode(): 2, b"a\tb": 1}


def test_pieces_make_up_the_word():
    table = PieceTable(learn_pieces(COUNTS, 290))
    for word in COUNTS:
        text = "".join(table.pieces[piece] for piece in table.of_word(word))
        assert text.removeprefix("▁") == word.decode().replace("\t", "▁")
    assert len(table) == 290
    # Frequent words have fewer pieces than letters.
    assert len(table.of_word(b"newer")) < 4


def test_unseen_characters_are_parted_into_bytes():
    table = PieceTable(learn_pieces(COUNTS, 290))
    assert [table.pieces[piece] for piece in table.of_word("ř".encode())][1:] == ["<0xC5>", "<0x99>"]
    assert table.of_word(b"x" * 1000) == [UNKNOWN_PIECE]
    assert table.of_word(b"\xff") == table.of_word("\N{REPLACEMENT CHARACTER}".encode())


def test_learning_is_the_same_whatever_the_order_and_goes_back_to_what_there_is():
    turned = dict(reversed(COUNTS.items()))
    assert learn_pieces(COUNTS, 290) == learn_pieces(turned, 290)
    table = PieceTable(learn_pieces(COUNTS, 9999))
    assert 280 < len(table) < 330


def test_silent_pieces_say_nothing():
    table = toy_pieces()
    silent = [piece for piece, says_nothing in zip(table.pieces, table.silent, strict=True) if says_nothing]
    assert silent == [table.pieces[UNKNOWN_PIECE], "▁"]


@pytest.mark.parametrize(("counts", "size"), [({}, 300), (COUNTS, 20)])
def test_what_cannot_be_learnt_is_refused(counts, size):
    with pytest.raises(ValueError, match=r"no word|too few"):
        learn_pieces(counts, size)


def test_a_damaged_table_is_refused():
    with pytest.raises(ValueError, match="not a model of sentencepiece"):
        PieceTable(b"no model")


def test_texts_are_those_of_their_words():
    table = toy_pieces()
    words = [b"The", b"bader", b"."]
    found = table.of_texts(Phrases.from_lists([[0, 1, 2], [], [2, 2]]), words)
    expected = [
        [piece for number in text for piece in table.of_word(words[number])] for text in ((0, 1, 2), (), (2, 2))
    ]
    assert [text.tolist() for text in found] == expected


def test_parts_and_known_pieces():
    parts = in_parts(Phrases.from_lists([[1, 0], [2]]), Phrases.from_lists([[5], [6, 7], []]))
    assert [text.tolist() for text in parts] == [[6, 7, 5], []]
    known = known_pieces(Phrases.from_lists([[1, 2], [2]]), np.array([False, False, True]))
    assert [text.tolist() for text in known] == [[0, 2], [2]]
