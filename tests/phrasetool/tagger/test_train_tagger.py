import pytest

from phrasetool.errors import ModelError
from phrasetool.tagger.model import load_tagger
from phrasetool.tagger.settings import TaggerSettings
from phrasetool.tagger.train_tagger import held_out_sentences, train_tagger
from phrasetool.train.run import CHECKPOINT, TrainingRun
from tests.toy_treebanks import FAST, toy_sentences

BANKS = {language: toy_sentences(language, 40, 1) for language in ("en", "de")}
HELD = {language: toy_sentences(language, 10, 2) for language in ("en", "de")}
SETTINGS = TaggerSettings(**{**FAST, "epochs": 3})


class _Enough(Exception):
    pass


def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path):
    whole = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "whole"))

    def stop(report):
        if report.epoch == 2:
            raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", on_report=stop))
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    with pytest.raises(ModelError, match="unfinished training"):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts"))
    again = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", resume=True))
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert again.identity == whole.identity == load_tagger(tmp_path / "whole").identity
    assert again.training == whole.training
    for name in ("weights.safetensors", "config.json", "training.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_treebanks_cannot_be_resumed(tmp_path):
    def stop(report):
        raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", on_report=stop))
    with pytest.raises(ModelError, match="the treebanks are other ones"):
        train_tagger(HELD, HELD, SETTINGS, TrainingRun(tmp_path / "m", resume=True))


def test_the_model_remembers_what_it_learnt_from(tmp_path):
    model = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", record={"treebanks": [["en", "a"]]}))
    assert model.languages == ("en", "de")
    assert model.training["sentences"] == {"en": 40, "de": 40}
    assert model.training["treebanks"] == [["en", "a"]]
    assert model.training["development"]["de"]["words"] == sum(len(one.words) for one in HELD["de"])
    assert "ADP+DET" in model.tags


def test_one_sentence_in_twenty_is_held_out():
    kept, held = held_out_sentences(BANKS, 1)
    for language, sentences in BANKS.items():
        assert (len(kept[language]), len(held[language])) == (38, 2)
        both = [*map(id, kept[language]), *map(id, held[language])]
        assert sorted(both) == sorted(map(id, sentences))
    with pytest.raises(ValueError, match="1 sentence of en, expected two"):
        held_out_sentences({"en": BANKS["en"][:1]}, 1)
