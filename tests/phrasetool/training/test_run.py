import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.training.run import CHECKPOINT, TrainingRun, check_model_folder


def test_what_would_be_lost_is_refused(tmp_path, model):
    run = TrainingRun(tmp_path / "m")
    run.check()
    model.save(run.folder)
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
    assert load_saved_model(tmp_path).identity == model.identity
    assert not (tmp_path / CHECKPOINT).exists()
    TrainingRun(tmp_path).forget_checkpoint()


@pytest.mark.parametrize(
    ("files", "options", "message", "remedy"),
    [
        ([], {}, None, None),
        ([CHECKPOINT], {"overwrite": True}, None, None),
        ([CHECKPOINT], {}, "there is an unfinished training already", "resume or replace a training"),
        ([CHECKPOINT], {"resume": True}, None, None),
        (["config.json"], {"overwrite": True}, None, None),
        # A finished model was being replaced, when that was interrupted.
        (["config.json", CHECKPOINT], {"resume": True}, None, None),
        (["config.json"], {}, "there is a finished model already", "overwrite the model"),
        (["config.json", CHECKPOINT], {}, "an unfinished training already", "resume or replace a training"),
        (["config.json"], {"resume": True}, "the training is finished", "train anew"),
        (["config.json"], {"resume": True, "overwrite": True}, "the training is finished", "train anew"),
        ([], {"resume": True}, "checkpoint.safetensors: no checkpoint to resume from", "train without a checkpoint"),
    ],
)
def test_what_a_model_folder_holds(tmp_path, files, options, message, remedy):
    for name in files:
        (tmp_path / name).write_text("")
    if message is None:
        check_model_folder(tmp_path, **options)
        return
    with pytest.raises(ModelError, match=message) as caught:
        check_model_folder(tmp_path, **options)
    assert caught.value.remedy == remedy
