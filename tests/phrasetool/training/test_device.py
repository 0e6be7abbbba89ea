import pytest
import torch

from phrasetool.errors import DeviceError
from phrasetool.training.device import choose_device


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
        DeviceError, match="cuda:2 was asked for, but this machine has 2 GPUs, from cuda:0 on"
    ) as caught:
        choose_device("cuda:2")
    assert caught.value.remedy == "another device"
