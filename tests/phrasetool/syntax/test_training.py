import numpy as np
import pytest
import torch

from phrasetool.errors import ModelError
from phrasetool.nn.device import has_instructions
from phrasetool.phrases import Phrases
from phrasetool.syntax.data import SyntaxExamples
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.syntax.training import SyntaxTrainer, batches_by_length, train_syntax
from phrasetool.training.run import CHECKPOINT, TrainingRun
from phrasetool.watch import Watch
from tests.syntax_models import FAST, named, toy_bitext, toy_lines


def examples(count, seed=1):
    """Return examples in which each piece determines its tag; a text has one to six pieces."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(1, 9, rng.integers(1, 7)).tolist() for _ in range(count)]
    tags = [[piece % 4 for piece in text] for text in texts]
    numbers = np.arange(count)
    return SyntaxExamples(
        Phrases.from_lists(texts), Phrases.from_lists(tags), numbers, numbers, np.zeros(count, np.int64)
    )


def several_targets(count):
    """Return examples of each text with its own tags and with those of two other texts."""
    single = examples(count)
    sources = np.tile(np.arange(count), 3)
    targets = (sources + np.repeat([0, 1, 2], count)) % count
    return SyntaxExamples(single.texts, single.tags, sources, targets, np.zeros(3 * count, np.int64))


def trainer(**changes):
    settings = SyntaxSettings(**{**FAST, **changes})
    shape = settings.shape(10, 1)
    return SyntaxTrainer(examples(200), examples(40, 2), shape, shape.initial_arrays(1), settings)


def test_training_learns_and_keeps_the_best_epoch():
    syntax_trainer = trainer(epochs=8)
    reports = list(syntax_trainer.run())
    assert [report.epoch for report in reports] == list(range(1, 9))
    assert reports[-1].development_loss < 0.7 * reports[0].development_loss
    assert reports[-1].development_accuracy > reports[0].development_accuracy
    assert reports[-1].updates == 8 * 25
    assert syntax_trainer.best["development_loss"] == min(report.development_loss for report in reports)


@pytest.mark.skipif(
    not has_instructions("bfloat16", torch.device("cpu")), reason="the processor has no bfloat16 for LSTMs"
)
def test_the_precision_affects_only_training():
    fine, coarse = (trainer(epochs=3, precision=precision) for precision in ("float32", "bfloat16"))
    assert fine._report(0.0) == coarse._report(0.0)
    ends = [list(syntax_trainer.run())[-1] for syntax_trainer in (fine, coarse)]
    assert ends[0].development_loss != ends[1].development_loss
    assert ends[0].development_loss == pytest.approx(ends[1].development_loss, rel=0.05)
    assert all(value.dtype == torch.float32 for value in coarse.network.parameters())


def test_patience_ends_training():
    # A learning rate that is far too large prevents any improvement.
    syntax_trainer = trainer(epochs=30, patience=2, learning_rate=3.0, schedule="constant")
    reports = list(syntax_trainer.run())
    assert len(reports) < 30
    assert len(reports) - syntax_trainer.best["epoch"] == 2
    assert syntax_trainer.best_arrays()["output.bias"].shape == (18,)
    assert list(syntax_trainer.run()) == []


def test_the_development_loss_is_the_mean_per_tag_without_dropout():
    syntax_trainer = trainer(epochs=1)
    (report,) = syntax_trainer.run()
    development = syntax_trainer.development
    total, tags = 0.0, 0
    with torch.no_grad():
        for number in range(len(development)):
            text, expected = development.texts[number].tolist(), [*development.tags[number].tolist(), 17]
            vectors, last = syntax_trainer.network.encode(torch.tensor([text]), torch.tensor([len(text)]))
            logits = syntax_trainer.network.decode(vectors, last, torch.tensor([0]), torch.tensor([expected[:-1]]))[0]
            total -= float(torch.log_softmax(logits, 1)[range(len(expected)), expected].sum())
            tags += len(expected)
    assert report.development_loss == pytest.approx(total / tags, rel=1e-5)


def test_a_restored_trainer_continues_bit_for_bit():
    uninterrupted = trainer()
    list(uninterrupted.run())
    interrupted, resumed = trainer(), trainer()
    next(iter(interrupted.run()))
    resumed.restore({name: value.clone() for name, value in interrupted.tensors().items()}, interrupted.progress())
    assert len(list(resumed.run())) == FAST["epochs"] - 1
    for name, value in uninterrupted.tensors().items():
        assert torch.equal(value, resumed.tensors()[name]), name
    assert uninterrupted.best == resumed.best


def test_batches_hold_every_example_once_and_similar_lengths():
    data = examples(500)
    rng = np.random.default_rng(1)
    batches = batches_by_length(data, 8, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    spread = [np.ptp(data.texts.lengths[data.sources[batch]]) for batch in batches]
    assert np.mean(spread) < 0.5
    repeated = batches_by_length(data, 8, np.random.default_rng(1))
    assert [batch.tolist() for batch in repeated] == [batch.tolist() for batch in batches]


def test_examples_of_one_sentence_are_together_and_it_is_encoded_once(monkeypatch):
    data = several_targets(120)
    batches = batches_by_length(data, 9, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(360))
    assert sum(len(np.unique(data.sources[batch])) for batch in batches) == 120
    syntax_trainer = trainer()
    counts = []
    encode = syntax_trainer.network.eval().encode
    monkeypatch.setattr(
        syntax_trainer.network, "encode", lambda texts, *rest: (counts.append(len(texts)), encode(texts, *rest))[1]
    )
    with torch.no_grad():
        logits, expected = syntax_trainer._logits(data, batches[0])
        alone = [syntax_trainer._logits(data, batches[0][[row]]) for row in range(9)]
    assert counts == [3, *[1] * 9]
    steps = logits.shape[0] // 9
    for row, (own_logits, tags) in enumerate(alone):
        count = len(tags)
        part = slice(row * steps, row * steps + count)
        assert torch.equal(expected[part], tags)
        torch.testing.assert_close(logits[part], own_logits, atol=1e-6, rtol=1e-6)


SETTINGS = SyntaxSettings(**FAST)
BITEXTS = [toy_bitext(80)]


class _Enough(Exception):
    pass


def stop_after(epoch):
    def stop(report):
        if report.epoch == epoch:
            raise _Enough

    return stop


def test_interrupted_training_ends_with_the_same_model(toy_tagger, tmp_path):
    uninterrupted = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_Enough):
        train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "parts", on_report=stop_after(2)))
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    resumed = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "parts", resume=True))
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert resumed.identity == uninterrupted.identity == SyntaxModel.load(tmp_path / "whole").identity
    for name in ("weights.safetensors", "config.json", "training.jsonl", "pieces.model"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_training_cannot_be_resumed_with_other_bitexts_or_settings(toy_tagger, tmp_path):
    with pytest.raises(_Enough):
        train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", on_report=stop_after(1)))
    with pytest.raises(ModelError, match="the bitexts differ"):
        train_syntax([toy_bitext(70)], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", resume=True))
    other_settings = SyntaxSettings(**FAST, own_language=False)
    with pytest.raises(ModelError, match="own_language was True, not False"):
        train_syntax(BITEXTS, toy_tagger, other_settings, TrainingRun(tmp_path / "m", resume=True))


def test_the_model_records_its_training_data(toy_tagger, tmp_path):
    class Listening(Watch):
        said = ()

        def say(self, message):
            self.said = (*self.said, message)

    watch = Listening()
    long = named(["a " * 61, *toy_lines(40)[0]], ["b", *toy_lines(40)[1]])
    model = train_syntax([long], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", record={"bitexts": 1}), watch=watch)
    assert (model.languages, model.targets) == (("en", "de"), ("en", "de"))
    assert "1 pairs with a side outside 1 to 60 words are left out" in watch.said
    training = model.training
    assert (training["bitexts"], training["epochs_done"], training["start"]) == (1, 3, None)
    assert training["tagger"] == toy_tagger.signature
    assert training["pairs"]["en-de"] * 4 == training["examples"]
    assert 0 < model.known.sum() < len(model.known)
    # Pieces of single bytes, into which unseen characters are split, are not known.
    assert not any(
        known for known, piece in zip(model.known, model.pieces.pieces, strict=True) if piece.startswith("<0")
    )


def test_tags_of_the_own_language_double_the_examples(toy_tagger, tmp_path):
    own = train_syntax(BITEXTS, toy_tagger, SyntaxSettings(**{**FAST, "epochs": 1}), TrainingRun(tmp_path / "own"))
    settings = SyntaxSettings(**{**FAST, "epochs": 1}, own_language=False)
    plain = train_syntax(BITEXTS, toy_tagger, settings, TrainingRun(tmp_path / "plain"))
    assert own.training["examples"] == 2 * plain.training["examples"]


def test_a_model_learns_a_new_language(toy_tagger, tmp_path):
    start = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "start"))
    english, german = toy_lines(60, 3)
    words = [line.replace("ung", "ø").replace("te", "å") for line in german]
    new = [named(words, english, ("nb", "en"))]
    model = train_syntax(new, toy_tagger, SETTINGS, TrainingRun(tmp_path / "new"), start=start)
    assert (model.languages, model.targets) == (("en", "de", "nb"), ("en", "de"))
    assert model.pieces.stored == start.pieces.stored
    assert model.training["start"] == start.signature
    assert (model.known >= start.known).all()
    assert model.known.sum() > start.known.sum()
    # Training continues from the weights of the start model.
    continued_loss = model.training["best"]["development_loss"]
    loss_from_scratch = train_syntax(new, toy_tagger, SETTINGS, TrainingRun(tmp_path / "alone")).training["best"][
        "development_loss"
    ]
    assert continued_loss < loss_from_scratch
    assert not np.array_equal(model.arrays["output.bias"], start.arrays["output.bias"])


def test_languages_without_tags_are_refused(toy_tagger, tmp_path):
    with pytest.raises(ValueError, match="the tagger knows none of the languages"):
        train_syntax([named(*toy_lines(40), ("ja", "ko"))], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m"))
