""""""

from __future__ import annotations

import pytest

from moses_compat.lines.words import phrase_text


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        (b"das haus", "das haus"),
        (b"  das \t haus ", "das haus"),
        (b"das [X][Y] haus [X]", "das haus"),
        (b"[X]", ""),
        (b"", ""),
        (b"haus|NN ist|VB", "haus ist"),
        (b"|", "|"),
        (b"&apos;s &quot; &#91; a&amp;b", "'s \" [ a&b"),
        (b"&#124;", "|"),
        ("größe 经济".encode(), "größe 经济"),
        (b"gr\xfcn", "gr�n"),
        (b"[ ]", "[ ]"),
    ],
)
def test_what_phrases_say(phrase, text):
    assert phrase_text(phrase) == text
