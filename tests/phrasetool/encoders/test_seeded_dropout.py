import pytest
import torch

from phrasetool.encoders.seeded_dropout import SeededDropout


def test_it_keeps_the_mean():
    dropped = SeededDropout(0.2)(torch.ones(200, 200))
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0, 1.25])
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)


def test_a_seed_fixes_what_is_dropped():
    dropout, values = SeededDropout(0.5), torch.ones(1000)
    found = []
    for seed in (1, 1, 2):
        dropout.seed(seed)
        found.append([dropout(values), dropout(values)])
    assert torch.equal(torch.cat(found[0]), torch.cat(found[1]))
    assert not torch.equal(*found[0])
    assert not torch.equal(found[0][0], found[2][0])


def test_nothing_is_dropped_at_use():
    values = torch.ones(1000)
    assert SeededDropout(0.5).eval()(values) is values
    assert SeededDropout(0.0)(values) is values
