import numpy as np
import pytest
import torch

from phrasetool.nn.device import has_instructions
from phrasetool.phrases import Phrases
from phrasetool.syntax.data import SyntaxExamples
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.syntax.training import SyntaxTrainer, batches_by_length
from tests.syntax_models import FAST


def examples(count, seed=1):
    """A piece tells its tag; a text has one to six of them."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(1, 9, rng.integers(1, 7)).tolist() for _ in range(count)]
    tags = [[piece % 4 for piece in text] for text in texts]
    numbers = np.arange(count)
    return SyntaxExamples(
        Phrases.from_lists(texts), Phrases.from_lists(tags), numbers, numbers, np.zeros(count, np.int64)
    )


def several_targets(count):
    """Each text with its own tags, and with those of two others."""
    one = examples(count)
    sources = np.tile(np.arange(count), 3)
    targets = (sources + np.repeat([0, 1, 2], count)) % count
    return SyntaxExamples(one.texts, one.tags, sources, targets, np.zeros(3 * count, np.int64))


def trainer(**changes):
    settings = SyntaxSettings(**{**FAST, **changes})
    shape = settings.shape(10, 1)
    return SyntaxTrainer(examples(200), examples(40, 2), shape, shape.initial_arrays(1), settings)


def test_it_learns_and_keeps_the_best():
    made = trainer(epochs=8)
    reports = list(made.run())
    assert [report.epoch for report in reports] == list(range(1, 9))
    assert reports[-1].development_loss < 0.7 * reports[0].development_loss
    assert reports[-1].development_accuracy > reports[0].development_accuracy
    assert reports[-1].updates == 8 * 25
    assert made.best["development_loss"] == min(report.development_loss for report in reports)


@pytest.mark.skipif(
    not has_instructions("bfloat16", torch.device("cpu")), reason="the processor has no bfloat16 for LSTMs"
)
def test_precision_is_that_of_training_alone():
    fine, coarse = (trainer(epochs=3, precision=precision) for precision in ("float32", "bfloat16"))
    assert fine._report(0.0) == coarse._report(0.0)
    ends = [list(made.run())[-1] for made in (fine, coarse)]
    assert ends[0].development_loss != ends[1].development_loss
    assert ends[0].development_loss == pytest.approx(ends[1].development_loss, rel=0.05)
    assert all(value.dtype == torch.float32 for value in coarse.network.parameters())


def test_patience_ends_training():
    # A step that is far too large makes nothing better.
    made = trainer(epochs=30, patience=2, learning_rate=3.0, schedule="constant")
    reports = list(made.run())
    assert len(reports) < 30
    assert len(reports) - made.best["epoch"] == 2
    assert made.kept().arrays()["output.bias"].shape == (18,)
    assert list(made.run()) == []


def test_the_development_loss_is_the_mean_of_a_tag_without_dropout():
    made = trainer(epochs=1)
    (report,) = made.run()
    there = made.development
    total, tags = 0.0, 0
    with torch.no_grad():
        for number in range(len(there)):
            text, wanted = there.texts[number].tolist(), [*there.tags[number].tolist(), 17]
            vectors, last = made.network.encode(torch.tensor([text]), torch.tensor([len(text)]))
            logits = made.network.decode(vectors, last, torch.tensor([0]), torch.tensor([wanted[:-1]]))[0]
            total -= float(torch.log_softmax(logits, 1)[range(len(wanted)), wanted].sum())
            tags += len(wanted)
    assert report.development_loss == pytest.approx(total / tags, rel=1e-5)


def test_it_goes_on_bit_for_bit():
    whole = trainer()
    list(whole.run())
    first, second = trainer(), trainer()
    next(iter(first.run()))
    second.restore({name: value.clone() for name, value in first.tensors().items()}, first.progress())
    assert len(list(second.run())) == FAST["epochs"] - 1
    for name, value in whole.tensors().items():
        assert torch.equal(value, second.tensors()[name]), name
    assert whole.best == second.best


def test_batches_hold_every_example_once_and_lengths_that_are_near():
    some = examples(500)
    rng = np.random.default_rng(1)
    batches = batches_by_length(some, 8, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    spread = [np.ptp(some.texts.lengths[some.sources[batch]]) for batch in batches]
    assert np.mean(spread) < 0.5
    again = batches_by_length(some, 8, np.random.default_rng(1))
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


def test_examples_that_read_one_sentence_are_together_and_it_is_read_once(monkeypatch):
    some = several_targets(120)
    batches = batches_by_length(some, 9, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(360))
    assert sum(len(np.unique(some.sources[batch])) for batch in batches) == 120
    made = trainer()
    read = []
    encode = made.network.eval().encode
    monkeypatch.setattr(made.network, "encode", lambda texts, *rest: (read.append(len(texts)), encode(texts, *rest))[1])
    with torch.no_grad():
        logits, wanted = made._logits(some, batches[0])
        alone = [made._logits(some, batches[0][[row]]) for row in range(9)]
    assert read == [3, *[1] * 9]
    steps = logits.shape[0] // 9
    for row, (own, tags) in enumerate(alone):
        count = len(tags)
        there = slice(row * steps, row * steps + count)
        assert torch.equal(wanted[there], tags)
        torch.testing.assert_close(logits[there], own, atol=1e-6, rtol=1e-6)
