import math

import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.training.run import CHECKPOINT, StartError, TrainingRun, check_model_folder, divergence, problem_handler
from phrasetool.watch import Watch
from tests.variants import for_each


def test_existing_models_are_not_overwritten(tmp_path, model):
    run = TrainingRun(tmp_path / "m")
    run.check()
    model.save(run.folder)
    with pytest.raises(ModelError, match="already has a finished model"):
        run.check()
    TrainingRun(run.folder, overwrite=True).check()
    with pytest.raises(ModelError, match="nothing to resume"):
        TrainingRun(run.folder, resume=True).check()


def test_disk_space_is_checked(tmp_path):
    run = TrainingRun(tmp_path)
    run.check_space(1000)
    with pytest.raises(PhraseToolError, match="make room"):
        run.check_space(1 << 60)


def test_forced_errors_are_warnings(tmp_path):
    recorded = []
    error = PhraseToolError("poor")
    with pytest.raises(PhraseToolError) as raised:
        TrainingRun(tmp_path, warn=recorded.append).refuse(error)
    assert raised.value is error
    assert recorded == []
    TrainingRun(tmp_path, force=True, warn=recorded.append).refuse(error)
    assert recorded == ["poor"]


def test_saving_a_model_removes_the_checkpoint(tmp_path, model):
    (tmp_path / CHECKPOINT).touch()
    # Left by a run that was killed after its last epoch; a resumed run saves no checkpoint, which would remove it.
    dead = tmp_path / ".checkpoint-abcd1234"
    dead.mkdir()
    TrainingRun(tmp_path).save(model)
    assert not dead.exists()
    assert load_saved_model(tmp_path).identity == model.identity
    assert not (tmp_path / CHECKPOINT).exists()
    TrainingRun(tmp_path).forget_checkpoint()


def test_saving_a_model_removes_the_checkpoint_of_search_vectors(tmp_path, model):
    """A model of another family may replace an unfinished classifier."""
    search = tmp_path / "search"
    (search / ".checkpoint-abcd1234").mkdir(parents=True)
    for name in (CHECKPOINT, "training.jsonl", "other"):
        (search / name).touch()
    TrainingRun(tmp_path).save(model)
    assert [file.name for file in search.iterdir()] == ["other"]
    (search / "other").unlink()
    TrainingRun(tmp_path).forget_checkpoint()
    assert not search.exists()


@for_each(
    ("files", "options", "message", "remedy"),
    [
        ([], {}, None, None),
        ([CHECKPOINT], {"overwrite": True}, None, None),
        ([CHECKPOINT], {}, "the folder already has an unfinished training", "resume or replace a training"),
        ([CHECKPOINT], {"resume": True}, None, None),
        (["config.json"], {"overwrite": True}, None, None),
        # The replacement of a finished model was interrupted.
        (["config.json", CHECKPOINT], {"resume": True}, None, None),
        (["config.json"], {}, "the folder already has a finished model", "overwrite the model"),
        (["config.json", CHECKPOINT], {}, "already has an unfinished training", "resume or replace a training"),
        (["config.json"], {"resume": True}, "the training is finished", "train again"),
        (["config.json"], {"resume": True, "overwrite": True}, "the training is finished", "train again"),
        ([], {"resume": True}, "checkpoint.safetensors: no checkpoint to resume from", "train without a checkpoint"),
    ],
)
def test_the_contents_of_a_model_folder_are_checked(tmp_path, files, options, message, remedy):
    for name in files:
        (tmp_path / name).write_text("")
    if message is None:
        check_model_folder(tmp_path, **options)
        return
    with pytest.raises(ModelError, match=message) as caught:
        check_model_folder(tmp_path, **options)
    assert caught.value.remedy == remedy


def lines(*errors, phase="train"):
    return [{"phase": phase, "joint_error": error} for error in errors]


def starts(**errors):
    return {phase: StartError.of(error) for phase, error in errors.items()}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([math.nan], "the joint error is nan"),
        ([2, 1, math.inf], "the joint error is inf"),
        ([41], "the joint error is 41, it was 4 at the start"),
        ([3, 2, 21], "the joint error is 21, it was 2 before"),
        ([39], None),
        ([3, 2, 19], None),
        # The lowest error was nearly zero.
        ([3, 1e-6, 0.3], None),
        ([3, 1e-6, 0.95], "the joint error is 0.95, it was 1e-06 before"),
    ],
)
def test_divergence_of_the_joint_error(errors, expected):
    assert divergence(lines(*errors), starts(train=4.0)) == expected


def test_phases_are_checked_separately():
    history = lines(0.1, phase="pretrain") + lines(20)
    assert divergence(history, starts(pretrain=1.0, train=25.0)) is None
    assert divergence(history, starts(pretrain=1.0, train=1.0)) == "the joint error is 20, it was 1 before"


def test_divergence_of_errors_that_can_be_negative():
    start = {"train": StartError.of(-40.0, 50.0)}
    assert divergence(lines(-60, -50), start) is None
    assert divergence(lines(-60, 400), start) is None
    assert divergence(lines(-60, 500), start) == "the joint error is 500, it was -60 before"
    assert divergence(lines(0.01, 7), {"train": StartError.of(7.0, 16.0)}) is None


def test_divergence_of_the_cross_entropy():
    history = [{"epoch": 1, "cross_entropy": 80.0}]
    assert divergence(history, starts(train=7.0)) == "the cross-entropy is 80, it was 7 at the start"
    assert divergence(history, starts(train=8.0)) is None


def test_problems_are_errors_or_forced_warnings():
    class Listening(Watch):
        def warn(self, message):
            warnings.append(message)

    warnings = []
    with pytest.raises(PhraseToolError, match=r"^odd$") as caught:
        problem_handler(Listening(), force=False)("odd")
    assert caught.value.remedy == "go on"
    assert warnings == []
    problem_handler(Listening(), force=True)("odd")
    assert warnings == ["odd"]
