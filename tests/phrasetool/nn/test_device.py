import threading

import pytest
import torch

from phrasetool.errors import DeviceError
from phrasetool.nn.device import (
    PRECISIONS,
    autocast,
    check_precision,
    choose_device,
    flushes_subnormals,
    one_torch_thread,
    subnormals_as_zero,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_have_the_precision_and_gradients_are_float32(precision):
    rng = torch.Generator().manual_seed(1)
    left, right = (torch.randn(20, 20, generator=rng, requires_grad=True) for _ in range(2))
    with autocast(precision, CPU):
        result = left @ right
    assert result.dtype == getattr(torch, precision)
    deviation = (result.float() - left @ right).abs().max()
    assert (0 < deviation < 0.1) if precision == "bfloat16" else deviation == 0
    result.float().sum().backward()
    assert left.grad.dtype == torch.float32
    assert (left @ right).dtype == torch.float32


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_bfloat16_without_instructions_is_refused(monkeypatch, device):
    torch_device = torch.device(device)
    for has in (True, False):
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda has=has: has)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation, has=has: has)
        check_precision("float32", torch_device)
        if has:
            check_precision("bfloat16", torch_device)
        else:
            with pytest.raises(DeviceError, match=f"{device} has no instructions for it; float32 is faster"):
                check_precision("bfloat16", torch_device)


def test_bfloat16_without_onednn_is_refused(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    with pytest.raises(DeviceError):
        check_precision("bfloat16", CPU)


torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def two_threads():
    torch.set_num_threads(2)


def test_one_thread_inside_and_the_former_number_afterwards():
    with one_torch_thread():
        assert torch.get_num_threads() == 1
        with one_torch_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_is_restored_after_an_exception():
    with pytest.raises(KeyError), one_torch_thread():
        raise KeyError
    assert torch.get_num_threads() == 2


def test_blocks_may_end_in_any_order():
    """Generators that are closed early may leave their blocks in any order."""
    first, second = one_torch_thread(), one_torch_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_blocks_in_other_threads_do_not_restore_the_number_early():
    counts = []

    def work():
        with one_torch_thread():
            counts.append(torch.get_num_threads())

    with one_torch_thread():
        for _ in range(3):
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
            counts.append(torch.get_num_threads())
    assert counts == [1] * 6
    assert torch.get_num_threads() == 2


def test_unknown_devices_and_absent_ones_are_errors():
    with pytest.raises(DeviceError, match="expected cpu, cuda or auto"):
        choose_device("quantum")
    with pytest.raises(DeviceError, match="unknown device 'gpu'; expected cpu, cuda or auto"):
        choose_device("gpu")
    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        assert choose_device("auto").type == "cpu"
        with pytest.raises(DeviceError, match="no usable GPU"):
            choose_device("cuda")


def test_a_gpu_beyond_the_last_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1").index == 1
    with pytest.raises(
        DeviceError, match="cuda:2 was requested, but this machine has 2 GPUs, from cuda:0 on"
    ) as caught:
        choose_device("cuda:2")
    assert caught.value.remedy == "another device"


def test_subnormal_numbers_are_zero_inside_and_as_before_afterwards():
    # The bits of a subnormal number, about 1e-42, because a product would already be 0.
    tiny = torch.full((4,), 700, dtype=torch.int32).view(torch.float32)
    assert not flushes_subnormals()
    with subnormals_as_zero():
        assert flushes_subnormals()
        assert not (tiny * 1.5).view(torch.int32).any()
        assert float(torch.tensor(1e-37) * 0.5) > 0
        with pytest.raises(KeyError), subnormals_as_zero():
            raise KeyError
        assert flushes_subnormals()
    assert not flushes_subnormals()
    assert (tiny * 1.5).view(torch.int32).all()
