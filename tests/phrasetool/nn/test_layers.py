import pytest
import torch

from phrasetool.nn.layers import LengthGroups, SeededDropout, SelfAttention, layer_norm
from phrasetool.phrases import Phrases


def test_dropout_keeps_the_mean():
    dropped = SeededDropout(0.2)(torch.ones(200, 200))
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0, 1.25])
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)


def test_the_seed_decides_which_values_are_dropped():
    dropout, values = SeededDropout(0.5), torch.ones(1000)
    collected = []
    for seed in (1, 1, 2):
        dropout.seed(seed)
        collected.append([dropout(values), dropout(values)])
    assert torch.equal(torch.cat(collected[0]), torch.cat(collected[1]))
    assert not torch.equal(*collected[0])
    assert not torch.equal(collected[0][0], collected[2][0])


def test_nothing_is_dropped_outside_training():
    values = torch.ones(1000)
    assert SeededDropout(0.5).eval()(values) is values
    assert SeededDropout(0.0)(values) is values


@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_torchs_own_layer(causal):
    units, heads, groups = 12, 3, [(2, 1), (3, 4), (1, 7)]
    layer = torch.nn.MultiheadAttention(units, heads, bias=False, batch_first=True)
    with torch.no_grad():
        layer.out_proj.weight.copy_(torch.eye(units))
    attention = SelfAttention(*(part.clone() for part in layer.in_proj_weight.detach().chunk(3)), heads, causal)
    parts = [torch.randn(*group, units) for group in groups]
    result = attention(torch.cat([part.reshape(-1, units) for part in parts]), groups)
    masks = [torch.ones(length, length, dtype=torch.bool).triu(1) if causal else None for _, length in groups]
    expected = [layer(p, p, p, attn_mask=mask)[0].reshape(-1, units) for p, mask in zip(parts, masks, strict=True)]
    torch.testing.assert_close(result, torch.cat(expected), atol=1e-5, rtol=1e-5)


def test_layer_norm_equals_torchs_own_layer():
    layer = torch.nn.LayerNorm(7)
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.bias)
    values = torch.randn(5, 7)
    torch.testing.assert_close(layer_norm(values, layer.weight, layer.bias), layer(values))


def test_length_groups():
    batch = LengthGroups.from_phrases(Phrases.from_lists([[1, 2], [], [3], [4, 5], []]))
    assert batch.groups == [(2, 0), (1, 1), (2, 2)]
    assert batch.words.tolist() == [3, 1, 2, 4, 5]
    assert batch.order.tolist() == [1, 4, 2, 0, 3]
    assert batch.restored(torch.tensor([[1], [4], [2], [0], [3]])).flatten().tolist() == [0, 1, 2, 3, 4]
