import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.folders import CHECKPOINT
from phrasetool.models.storage import load_model, save_model
from phrasetool.training.training_run import TrainingRun


def test_what_would_be_lost_is_refused(tmp_path, model):
    run = TrainingRun(tmp_path / "m")
    run.check()
    save_model(model, run.folder)
    with pytest.raises(ModelError, match="a finished model already"):
        run.check()
    TrainingRun(run.folder, overwrite=True).check()
    with pytest.raises(ModelError, match="nothing to resume"):
        TrainingRun(run.folder, resume=True).check()


def test_room_is_asked_for(tmp_path):
    run = TrainingRun(tmp_path)
    run.check_space(1000)
    with pytest.raises(PhraseToolError, match="make room"):
        run.check_space(1 << 60)


def test_what_is_forced_is_told(tmp_path):
    told = []
    error = PhraseToolError("poor")
    with pytest.raises(PhraseToolError) as raised:
        TrainingRun(tmp_path, warn=told.append).refuse(error)
    assert raised.value is error
    assert told == []
    TrainingRun(tmp_path, force=True, warn=told.append).refuse(error)
    assert told == ["poor"]


def test_a_saved_model_takes_the_place_of_the_checkpoint(tmp_path, model):
    (tmp_path / CHECKPOINT).touch()
    # Of a run that was killed after its last epoch; who resumes saves no checkpoint that would remove it.
    dead = tmp_path / ".checkpoint-abcd1234"
    dead.mkdir()
    TrainingRun(tmp_path).save(model)
    assert not dead.exists()
    assert load_model(tmp_path).identity == model.identity
    assert not (tmp_path / CHECKPOINT).exists()
    TrainingRun(tmp_path).forget_checkpoint()
