import numpy as np
import pytest
import torch

from phrasetool.pair_classifier.architecture import SiameseArchitecture
from phrasetool.pair_classifier.length import LONGEST_LENGTH, LengthEmbedding
from tests.parallel_models import SMALL

VECTORS, LENGTHS = torch.randn(3, 12), torch.tensor([2, LONGEST_LENGTH, LONGEST_LENGTH + 50])


def made(length):
    architecture = SiameseArchitecture(**{**SMALL, "length": length})
    return LengthEmbedding(architecture, np.random.default_rng(1))


@pytest.mark.parametrize(("length", "tables"), [("concat", 2), ("shared", 1)])
def test_beside_the_sentence(length, tables):
    module = made(length)
    assert module.tables.shape == (tables, 101, 4)
    for side in (0, 1):
        found = module(VECTORS, LENGTHS, side)
        table = module.tables[side if tables == 2 else 0]
        assert torch.equal(found, torch.cat([VECTORS, table[[2, 100, 100]]], 1))


def test_added_to_the_sentence():
    module = made("add")
    for side in (0, 1):
        assert torch.equal(module(VECTORS, LENGTHS, side), VECTORS + module.tables[side][[2, 100, 100]])


def test_no_length():
    module = made("none")
    assert torch.equal(module(VECTORS, LENGTHS, 0), VECTORS)
    assert not list(module.parameters())
