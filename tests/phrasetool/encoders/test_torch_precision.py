import pytest
import torch

from phrasetool.encoders.torch_precision import PRECISIONS, products_in

CPU = torch.device("cpu")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_are_taken_in_it_and_parameters_stay(precision):
    rng = torch.Generator().manual_seed(1)
    left, right = (torch.randn(20, 20, generator=rng, requires_grad=True) for _ in range(2))
    with products_in(precision, CPU):
        found = left @ right
    assert found.dtype == getattr(torch, precision)
    off = (found.float() - left @ right).abs().max()
    assert (0 < off < 0.1) if precision == "bfloat16" else off == 0
    found.float().sum().backward()
    assert left.grad.dtype == torch.float32
    assert (left @ right).dtype == torch.float32
