import pytest
import torch

from phrasetool.phrase_encoder.trainer import choose_training_device, training_speed
from tests.phrasetool.phrase_encoder.toy_language import settings


def test_auto_chooses_and_reports_the_fastest_device(monkeypatch, pairs):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tensor Engine")
    for cpu, gpu, expected in ((55_000.0, 15_500.0, "cpu"), (55_000.0, 300_000.0, "cuda")):

        def speed(pairs, settings, device, cpu=cpu, gpu=gpu):
            return {"cpu": cpu, "cuda": gpu}[device.type]

        choice = choose_training_device("auto", pairs, settings("in-batch"), speed)
        assert choice.device.type == expected
        assert f"{cpu:,.0f} pairs/s" in choice.message
        assert f"cuda (Tensor Engine): {gpu:,.0f} pairs/s" in choice.message
        assert choice.message.startswith(f"--device auto chose {expected}")


def test_a_named_device_or_the_only_one_is_taken_without_measuring(monkeypatch, pairs):
    def speed(*given):
        raise AssertionError("measured")

    assert choose_training_device("cpu", pairs, settings("in-batch"), speed).message == ""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_training_device("cuda:0", pairs, settings("in-batch"), speed).device.type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_training_device("auto", pairs, settings("in-batch"), speed).device.type == "cpu"


@pytest.mark.parametrize("loss", ["in-batch", "max-margin"])
def test_training_speed_is_measured_on_a_few_batches_and_leaves_the_pairs_alone(pairs, loss):
    before = pairs.fingerprint
    assert training_speed(pairs, settings(loss), torch.device("cpu")) > 0
    assert pairs.fingerprint == before
