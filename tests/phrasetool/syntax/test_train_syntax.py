import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.syntax.train_syntax import train_syntax
from phrasetool.train.run import CHECKPOINT, TrainingRun
from phrasetool.watch import Watch
from tests.syntax_models import FAST, named, toy_bitext, toy_lines

SETTINGS = SyntaxSettings(**FAST)
BITEXTS = [toy_bitext(80)]


class _Enough(Exception):
    pass


def stop_after(epoch):
    def stop(report):
        if report.epoch == epoch:
            raise _Enough

    return stop


def test_an_interrupted_training_ends_as_one_that_was_not(toy_tagger, tmp_path):
    whole = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_Enough):
        train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "parts", on_report=stop_after(2)))
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    again = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "parts", resume=True))
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert again.identity == whole.identity == SyntaxModel.load(tmp_path / "whole").identity
    for name in ("weights.safetensors", "config.json", "training.jsonl", "pieces.model"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_bitexts_or_settings_cannot_be_resumed(toy_tagger, tmp_path):
    with pytest.raises(_Enough):
        train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", on_report=stop_after(1)))
    with pytest.raises(ModelError, match="the bitexts are other ones"):
        train_syntax([toy_bitext(70)], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", resume=True))
    alone = SyntaxSettings(**FAST, own_language=False)
    with pytest.raises(ModelError, match="own_language was True, not False"):
        train_syntax(BITEXTS, toy_tagger, alone, TrainingRun(tmp_path / "m", resume=True))


def test_what_the_model_remembers(toy_tagger, tmp_path):
    class Listening(Watch):
        said = ()

        def say(self, message):
            self.said = (*self.said, message)

    watch = Listening()
    long = named(["a " * 61, *toy_lines(40)[0]], ["b", *toy_lines(40)[1]])
    model = train_syntax([long], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m", record={"bitexts": 1}), watch=watch)
    assert (model.languages, model.targets) == (("en", "de"), ("en", "de"))
    assert "1 pairs with a side of other than 1 to 60 words are left out" in watch.said
    training = model.training
    assert (training["bitexts"], training["epochs_done"], training["start"]) == (1, 3, None)
    assert training["tagger"] == toy_tagger.signature
    assert training["pairs"]["en-de"] * 4 == training["examples"]
    assert 0 < model.known.sum() < len(model.known)
    # Bytes are for what was never seen.
    assert not any(
        known for known, piece in zip(model.known, model.pieces.pieces, strict=True) if piece.startswith("<0")
    )


def test_own_parts_of_speech_are_more_examples(toy_tagger, tmp_path):
    own = train_syntax(BITEXTS, toy_tagger, SyntaxSettings(**{**FAST, "epochs": 1}), TrainingRun(tmp_path / "own"))
    settings = SyntaxSettings(**{**FAST, "epochs": 1}, own_language=False)
    plain = train_syntax(BITEXTS, toy_tagger, settings, TrainingRun(tmp_path / "plain"))
    assert own.training["examples"] == 2 * plain.training["examples"]


def test_a_model_learns_a_new_language(toy_tagger, tmp_path):
    start = train_syntax(BITEXTS, toy_tagger, SETTINGS, TrainingRun(tmp_path / "start"))
    english, other = toy_lines(60, 3)
    words = [line.replace("ung", "ø").replace("te", "å") for line in other]
    new = [named(words, english, ("nb", "en"))]
    model = train_syntax(new, toy_tagger, SETTINGS, TrainingRun(tmp_path / "new"), start=start)
    assert (model.languages, model.targets) == (("en", "de", "nb"), ("en", "de"))
    assert model.pieces.stored == start.pieces.stored
    assert model.training["start"] == start.signature
    assert (model.known >= start.known).all()
    assert model.known.sum() > start.known.sum()
    # What it starts from is learnt from on.
    first = model.training["best"]["development_loss"]
    alone = train_syntax(new, toy_tagger, SETTINGS, TrainingRun(tmp_path / "alone")).training["best"][
        "development_loss"
    ]
    assert first < alone
    assert not np.array_equal(model.arrays["output.bias"], start.arrays["output.bias"])


def test_languages_without_tags_give_nothing_to_learn(toy_tagger, tmp_path):
    with pytest.raises(ValueError, match="the tagger knows none of the languages"):
        train_syntax([named(*toy_lines(40), ("ja", "ko"))], toy_tagger, SETTINGS, TrainingRun(tmp_path / "m"))
