import pytest
import torch

from phrasetool.encoders.torch_precision import PRECISIONS, check_precision, products_in
from phrasetool.errors import DeviceError

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


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_products_without_instructions_are_refused(monkeypatch, device):
    place = torch.device(device)
    for has in (True, False):
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda has=has: has)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation, has=has: has)
        check_precision("float32", place)
        if has:
            check_precision("bfloat16", place)
        else:
            with pytest.raises(DeviceError, match=f"{device} has no instructions for it; float32 is faster"):
                check_precision("bfloat16", place)


def test_without_onednn_there_are_none(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    with pytest.raises(DeviceError):
        check_precision("bfloat16", CPU)
