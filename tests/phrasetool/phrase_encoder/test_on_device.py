"""Encoders that run as PyTorch modules instead of kernels; PyTorch's CPU device replaces a GPU where none exists."""

import pickle

import numpy as np
import pytest
import torch

from moses_compat.jobs.annotate import AnnotateRequest, annotate
from phrasetool.phrase_encoder import encoder as encoder_module
from phrasetool.phrases import Phrases
from tests.commands import read, run_inside, write
from tests.tables import TABLES

# Another name of the CPU; unlike "cpu", it does not select the kernels.
CPU_BY_TORCH = "cpu:0"
DEVICES = [CPU_BY_TORCH, *(["cuda"] if torch.cuda.is_available() else [])]
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: torch's CPU stands for it")


def phrases(seed, count, longest=6, words=10):
    rng = np.random.default_rng(seed)
    return Phrases.from_lists([rng.integers(0, words, rng.integers(0, longest)).tolist() for _ in range(count)])


@pytest.mark.parametrize("device", DEVICES)
def test_similarities_equal_those_of_the_kernels(any_model, device, monkeypatch):
    sources, targets = phrases(1, 60), phrases(2, 60)
    expected = any_model.scorer().score_pairs(sources, targets)
    scorer = any_model.scorer(device)
    np.testing.assert_allclose(scorer.score_pairs(sources, targets), expected, atol=1e-5)
    assert expected.any()
    # Neither the batch size nor another process changes the scores.
    monkeypatch.setattr(encoder_module, "_BATCH", 7)
    again = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_allclose(again.score_pairs(sources, targets), expected, atol=1e-5)


def test_unnormalised_vectors_and_words_outside_the_vocabulary(any_model):
    encoder = encoder_module.PackedOnDevice(any_model.kind, any_model.source, CPU_BY_TORCH).encoder(0)
    kernels = any_model.kind.pack(any_model.source).encoder(1 << 10)
    some = phrases(3, 40)
    for vectors, expected in zip(encoder.encode(some, unit=False), kernels.encode(some, unit=False), strict=True):
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        encoder.encode(Phrases.from_lists([[10**6]]))


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_is_annotated_on_a_device(tmp_path, model, device):
    folder, table = tmp_path / "m", write(tmp_path / "t.gz", TABLES["model 1"])
    model.save(folder)
    rows = {}
    for name, device_name in (("kernels", "cpu"), ("device", device)):
        output = tmp_path / f"{name}.gz"
        annotate(AnnotateRequest(str(table), str(output), [str(folder)], scale="raw", device=device_name))
        rows[name] = [line.split(b" ||| ") for line in read(output).splitlines()]
    assert [row[:2] + row[3:] for row in rows["device"]] == [row[:2] + row[3:] for row in rows["kernels"]]
    scores = [[[float(score) for score in row[2].split()] for row in lines] for lines in rows.values()]
    np.testing.assert_allclose(scores[0], scores[1], atol=2e-6)


def test_the_device_option_is_checked(tmp_path, model):
    folder, table = tmp_path / "m", write(tmp_path / "t", TABLES["model 1"])
    model.save(folder)
    outcome = run_inside("annotate", table, "-m", folder, "-o", tmp_path / "o", "--device", "nowhere")
    assert outcome.code == 1
    assert "unknown device 'nowhere'; expected cpu, cuda or auto" in outcome.message
    if not torch.cuda.is_available():
        outcome = run_inside("prune", table, "-t", 0.1, "-m", folder, "-o", tmp_path / "o", "--device", "cuda")
        assert outcome.message.endswith("this machine has no usable GPU; use --device cpu or auto")
    outcome = run_inside("annotate", table, "-m", folder, "-o", tmp_path / "o", "--device", CPU_BY_TORCH, "--force")
    assert outcome.code == 0
    assert f"{folder} encodes on {CPU_BY_TORCH}: similarities differ from those of a CPU" in outcome.err


@cuda
def test_parameters_are_on_the_gpu(any_model):
    encoder = encoder_module.PackedOnDevice(any_model.kind, any_model.source, "cuda").encoder(0)
    assert next(encoder._module.parameters()).is_cuda
