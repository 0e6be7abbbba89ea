import numpy as np

from moses_compat.measures.neural.text_pieces import TextPiece
from moses_compat.tables.parser import TableParser
from tests.syntax_models import random_syntax_model

TEXT = b"a &apos; ||| b ||| 0.5\nno entry\na &apos; ||| c  d ||| 0.25\n"


def piece():
    text = np.frombuffer(TEXT, np.uint8)
    offsets = np.array([0, *(np.flatnonzero(text == 10) + 1)])
    block = TableParser(None, None, 1, fingerprints=True)(0, text, offsets)[0]
    return block, TextPiece.of(block)


def test_good_entries_are_read_as_text():
    block, found = piece()
    assert block.faulty.tolist() == [False, True, False]
    model = random_syntax_model()
    assert np.array_equal(model.encode(found.sources), model.encode([b"a '", b"a '"]))
    assert [text.split() for text in found.targets] == [[b"b"], [b"c", b"d"]]
    assert found.hashes.tolist() == block.fingerprints[[0, 2]].tolist()


def test_parts_join_to_the_whole():
    _, found = piece()
    again = TextPiece.joined([found.part(0, 1), found.part(1, 2)])
    assert (again.sources, again.targets) == (found.sources, found.targets)
    assert again.hashes.tolist() == found.hashes.tolist()
