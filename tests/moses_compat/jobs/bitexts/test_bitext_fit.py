import numpy as np

from moses_compat.jobs.bitexts import bitext_fit
from moses_compat.jobs.bitexts.bitext_fit import take_sample, usual_lengths
from moses_compat.jobs.bitexts.pair_blocks import SentencePairs


def blocks(count, size=10):
    for first in range(0, count, size):
        numbers = range(first, first + size)
        yield SentencePairs(
            first, [b"s%d\n" % i for i in numbers], [b"\n" if i % 5 == 0 else b"t%d\n" % i for i in numbers]
        )


def test_a_sample_is_of_pairs_with_words_and_reads_no_more_than_it_needs(monkeypatch):
    monkeypatch.setattr(bitext_fit, "LOOK_AHEAD", 35)
    monkeypatch.setattr(bitext_fit, "SAMPLE", 12)
    rest = blocks(100)
    (sources, targets), taken = take_sample(rest)
    assert [block.first for block in taken] == [0, 10, 20, 30]
    assert next(rest).first == 40
    numbers = [int(source[1:]) for source in sources]
    assert len(set(numbers)) == 12
    assert numbers == sorted(numbers)
    assert max(numbers) < 40
    assert not any(number % 5 == 0 for number in numbers)
    assert targets == [b"t%d" % number for number in numbers]
    assert take_sample(blocks(100))[0] == (sources, targets)
    assert take_sample(blocks(100), 2)[0] != (sources, targets)


def test_an_empty_bitext_has_an_empty_sample():
    assert take_sample(iter(())) == (([], []), [])
    assert [len(side) for side in usual_lengths(([], []))] == [0, 0]


def test_usual_lengths_go_from_short_to_long():
    sources = [b"a " * (1 + i % 40) for i in range(400)]
    lengths = usual_lengths((sources, [b"b " + source for source in sources]))
    assert len(lengths[0]) == 16
    assert lengths[0][0] == 1
    assert lengths[0][-1] == 40
    assert (np.diff(lengths[0]) > 0).all()
    assert np.array_equal(lengths[1], lengths[0] + 1)
