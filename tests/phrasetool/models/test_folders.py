import pytest

from phrasetool.errors import ModelError
from phrasetool.models.folders import CHECKPOINT, check_model_folder


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
