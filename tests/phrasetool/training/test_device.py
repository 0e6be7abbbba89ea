import pytest
import torch

from phrasetool.errors import DeviceError
from phrasetool.training.device import choose_device


def test_unknown_devices_and_absent_ones_are_errors():
    with pytest.raises(DeviceError, match="expected cpu, cuda or auto"):
        choose_device("quantum")
    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        assert choose_device("auto").type == "cpu"
        with pytest.raises(DeviceError, match="no usable GPU"):
            choose_device("cuda")
