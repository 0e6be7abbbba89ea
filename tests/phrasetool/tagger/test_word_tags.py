import numpy as np
import torch

from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.tagger_shape import TaggerShape
from phrasetool.tagger.word_features import feature_rows
from phrasetool.tagger.word_tags import word_tags

SHAPE = TaggerShape(97, 6, 5, 1, 4)
SENTENCES = [["ein", "Haus"], [], ["Haus"], ["das", "Haus", "ist", "ein", "Haus"]]


def network():
    made = TaggerNetwork(SHAPE, 2)
    with torch.no_grad():
        made.features.weight[1:].normal_(std=2.0, generator=torch.Generator().manual_seed(1))
    return made


def test_each_word_has_the_tag_with_the_highest_score():
    made = network()
    found = word_tags(made.arrays(), SHAPE, "ABCD", SENTENCES, "de")
    assert [len(tags) for tags in found] == [2, 0, 1, 5]
    for words, tags in zip(SENTENCES, found, strict=True):
        if words:
            rows = torch.from_numpy(feature_rows(words, "de", 97).astype(np.int64))
            assert tags == ["ABCD"[i] for i in made(rows, np.array([len(words)])).argmax(1).tolist()]


def test_tags_that_are_not_named_are_never_given():
    found = word_tags(network().arrays(), SHAPE, "ABCD", SENTENCES, "de")
    first = word_tags(network().arrays(), SHAPE, "A", SENTENCES, "de")
    assert len({tag for tags in found for tag in tags}) > 1
    assert {tag for tags in first for tag in tags} == {"A"}


def test_no_sentences():
    assert word_tags(network().arrays(), SHAPE, "ABCD", [], "de") == []
