import re
from dataclasses import replace

import pytest

from phrasetool.translator.architecture import PRESETS, NeuralArchitecture
from tests.phrasetool.translator.small_translators import architecture


def test_presets_are_architectures_and_the_first_is_the_paper_s():
    made = {
        name: NeuralArchitecture(**sizes, heads=4, feed_forward=8, dimension=300) for name, sizes in PRESETS.items()
    }
    paper = made["lstm"]
    assert (paper.units, paper.layers, paper.word_units, paper.input_feeding) == (1024, 2, 512, True)
    assert not made["transformer"].recurrent
    assert made["gru"].continuous
    assert not replace(made["gru"], output="softmax").continuous


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("gru", {"cell": "rnn"}, "cell is 'rnn', expected one of lstm, gru, transformer"),
        ("gru", {"output": "words"}, "output is 'words'"),
        ("gru", {"units": 7}, "an even number"),
        ("gru", {"dimension": 1}, "dimension is 1, expected at least 2"),
        ("lstm", {"layers": 0}, "layers is 0"),
        ("transformer", {"heads": 4}, "4 heads cannot share 6 units"),
        ("transformer", {"input_feeding": True}, "input feeding does not allow"),
    ],
)
def test_what_cannot_be(kind, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(architecture(kind), **changes)
